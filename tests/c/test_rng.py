"""Builds the random streams alone, with $CC (default gcc), and runs tests/c/test_rng.c in both builds of its loops.
With EMBER_ORACLE set to an interpreter that has torch, also compares some ten thousand fills and states with it."""
import os
import pathlib
import shlex
import subprocess

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
GEN = os.path.join(os.environ.get('EMBER_BUILD', ROOT / 'build'), 'gen')
FLAGS = ('-std=gnu11 -O2 -Wall -Wextra -Werror -Wno-unused-parameter -fwrapv -ffp-contract=off -fopenmp-simd '
         '-fno-math-errno -fno-trapping-math -D_GNU_SOURCE -Isrc -Iinclude').split() + ['-I' + GEN]
SOURCES = ['src/core/rng.c', 'src/core/rng_fill.c', 'tests/c/rng_standalone.c']


def compile_with(extra, out):
    cc = shlex.split(os.environ.get('CC', 'gcc'))
    if 'clang' in cc[-1]:
        extra = ['-Wno-pass-failed', *extra]  # the plain build of a loop with fma() does not vectorise, and need not
    subprocess.run([*cc, *FLAGS, *extra, *SOURCES, '-o', str(out), '-lm', '-lpthread'], cwd=ROOT, check=True)
    return out


@pytest.mark.parametrize('isa', ['baseline', 'best'])
def test_rng_in_c(tmp_path, isa):
    program = compile_with(['-fsanitize=undefined', '-fno-sanitize-recover=undefined', 'tests/c/test_rng.c'],
                           tmp_path / 'test_rng')
    env = {k: v for k, v in os.environ.items() if k != 'EMBER_ISA'}
    if isa == 'baseline':
        env['EMBER_ISA'] = isa
    run = subprocess.run([program], env=env, capture_output=True, text=True)
    assert run.returncode == 0, run.stderr[-4000:]


@pytest.mark.slow
@pytest.mark.parametrize('isa', ['baseline', 'best'])
def test_rng_against_torch(tmp_path, isa):
    oracle = os.environ.get('EMBER_ORACLE')
    if not oracle:
        pytest.skip('EMBER_ORACLE does not name an interpreter with torch')
    library = compile_with(['-fPIC', '-shared'], tmp_path / 'librng.so')
    env = {k: v for k, v in os.environ.items() if k != 'EMBER_ISA'}
    if isa == 'baseline':
        env['EMBER_ISA'] = isa
    run = subprocess.run([oracle, ROOT / 'tests/c/rng_oracle.py', library], env=env, capture_output=True, text=True)
    assert run.returncode == 0, run.stdout[-4000:] + run.stderr[-2000:]
    assert ' passed, 0 failed' in run.stdout

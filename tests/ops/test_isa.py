"""The three builds of the kernels: each gives right values, and reductions give the same bits in all of them."""

import os
import subprocess
import sys

import pytest
from sampling import cases
from subject import IS_EMBER
from table import GROUPS

pytestmark = pytest.mark.skipif(not IS_EMBER, reason="PyTorch has builds of its own")
HERE = os.path.dirname(os.path.abspath(__file__))
BUILDS = ["baseline", "avx2", "avx512"]
SAMPLE = [
    entry.name
    for group in ("arithmetic", "functions", "choices", "comparisons", "activation_functions", "reductions", "losses", "conv")
    for entry in GROUPS[group]
]


def runnable(build):
    with open("/proc/cpuinfo", encoding="utf-8") as file:
        flags = next((line for line in file if line.startswith("flags")), "").split()
    needed = {"baseline": [], "avx2": ["avx2", "fma"], "avx512": ["avx512f", "avx512bw", "avx512dq", "avx512vl"]}
    return all(flag in flags for flag in needed[build])


def run(build, *command):
    if not runnable(build):
        pytest.skip(f"this processor has no {build}")
    done = subprocess.run(
        [sys.executable, *command],
        cwd=HERE,
        capture_output=True,
        text=True,
        timeout=300,
        env=dict(os.environ, EMBER_ISA=build),
    )
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
    return done.stdout


@pytest.mark.parametrize("build", BUILDS)
def test_values(build):
    """The value tests of what the builds compile: pointwise, reductions, softmax, in a dtype of each kind."""
    chosen = [
        f"test_values.py::test_value[{name}-{dtype}]"
        for name in SAMPLE
        for dtype in ("float32", "bfloat16", "int64", "complex64")
    ]
    present = {f"test_values.py::test_value[{name}-{dtype}]" for name, dtype in cases()}
    out = run(build, "-m", "pytest", "-q", "-p", "no:cacheprovider", *[c for c in chosen if c in present])
    assert " failed" not in out


def test_reductions_have_the_same_bits_in_every_build():
    results = {build: run(build, "isa_results.py").splitlines() for build in BUILDS if runnable(build)}
    first = results["baseline"]
    assert len(first) > 1000
    for build, lines in results.items():
        different = [a.split(" ")[:-1] for a, b in zip(first, lines, strict=True) if a != b]
        assert not different, f"{build}: {len(different)} results differ, the first is {' '.join(different[0])}"


@pytest.mark.parametrize("threads", [1, 2])
def test_reductions_have_the_same_bits_for_any_number_of_threads(threads):
    program = (
        f"import ember as torch; torch.set_num_threads({threads}); torch.manual_seed(0); x = torch.randn(700, 1031);"
        "print(x.sum().item().hex(), [v.hex() for v in x.sum(0).tolist() + x.mean(1).tolist()])"
    )
    assert run("baseline", "-c", program) == run("baseline", "-c", program.replace(f"threads({threads})", "threads(1)"))

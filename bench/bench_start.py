#!/usr/bin/env python3
"""What Ember costs before and beside its operators, with PyTorch 2.13 beside it where that says something.

  .venv/bin/python bench/bench_start.py [--repeats 15] [--strict]

import time        a process that imports the module, less one that does not (target: at most 50 ms, median)
imported           numpy, and maths libraries mapped by the import (target: none)
library size       Ember's own shared libraries, stripped copies, together (target: under 8 MB)
page faults        minor faults of 20 repeated additions of 4M f32 elements, 16 MB results (target: under 40 together:
                   a result that is freed and made again reuses its memory; fresh pages would fault 4096 times each)
"""

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
import time

import benchlib

IMPORT_MS, SIZE_MB, FAULTS = 50.0, 8.0, 40
MATHS = ("openblas", "dnnl", "onednn", "mkl", "libblas", "lapack")


def once(python, code):
    t = time.perf_counter()
    subprocess.run([python, "-c", code], check=True, stdout=subprocess.DEVNULL)
    return (time.perf_counter() - t) * 1e3


def import_ms(python, module, repeats):
    """Medians (with, without), measured in turn."""
    once(python, f"import {module}")
    full, bare = [], []
    for _ in range(repeats):
        full.append(once(python, f"import {module}"))
        bare.append(once(python, "pass"))
    return benchlib.median(full), benchlib.median(bare)


def imported(python, module):
    """What importing the module brings in that it should not: numpy, maths libraries."""
    code = f"import sys, {module}; print('numpy' in sys.modules); print(open('/proc/self/maps').read())"
    numpy, *maps = subprocess.run(
        [python, "-c", code], check=True, text=True, stdout=subprocess.PIPE
    ).stdout.splitlines()
    libs = {os.path.basename(line.split()[-1]) for line in maps if "/" in line}
    return (["numpy"] if numpy == "True" else []) + sorted(x for x in libs if any(m in x.lower() for m in MATHS))


def own_libraries(python, module):
    """The shared libraries that the module maps by itself: not mapped without it, and of its package."""
    code = "print(open('/proc/self/maps').read())"

    def maps(extra):
        text = subprocess.run([python, "-c", extra + code], check=True, text=True, stdout=subprocess.PIPE).stdout
        return {os.path.realpath(line.split()[-1]) for line in text.splitlines() if ".so" in line and "/" in line}

    return sorted(p for p in maps(f"import {module}; ") - maps("") if f"{module}" in p or "libember" in p)


def stripped_mb(paths):
    total = 0
    with tempfile.TemporaryDirectory() as d:
        for p in paths:
            copy = os.path.join(d, os.path.basename(p))
            shutil.copyfile(p, copy)
            subprocess.run(["strip", copy], check=True)
            total += os.path.getsize(copy)
    return total / 1e6


def faults(python, module):
    """Minor page faults of 20 additions with 16 MB results, after three to warm up."""
    code = f"""import resource, {module} as T
x, y = T.ones(4 << 20), T.ones(4 << 20)
for _ in range(3):
    z = x + y
before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
for _ in range(20):
    z = x + y
print(resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before)"""
    env = {**os.environ, "OMP_NUM_THREADS": "1"}
    return int(subprocess.run([python, "-c", code], check=True, text=True, stdout=subprocess.PIPE, env=env).stdout)


def main():
    ap = argparse.ArgumentParser(
        description=__doc__.split("\n")[0],
        epilog="\n".join(__doc__.split("\n")[1:]),
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    ap.add_argument("--repeats", type=int, default=15, help="processes per figure (default 15)")
    ap.add_argument("--python", default=sys.executable, help="interpreter that has Ember (default: this one)")
    ap.add_argument("--module", default="ember", help="the module under test (default ember)")
    ap.add_argument("--no-torch", action="store_true", help="Ember's figures alone")
    ap.add_argument("--json", default="", help="where the figures go (default out/bench_start.json)")
    ap.add_argument("--strict", action="store_true", help="exit with 1 when a figure is over its target")
    args = ap.parse_args()
    data, over = [], 0
    todo = [(args.module, args.python)] + ([] if args.no_torch else [("torch", benchlib.oracle_python())])
    for module, python in todo:
        own = module == args.module
        full, bare = import_ms(python, module, args.repeats if own else 3)
        extra = imported(python, module)
        libs = own_libraries(python, module)
        size, minor = stripped_mb(libs), faults(python, module)
        rows = [
            ("import time, ms", full - bare, IMPORT_MS, f"bare interpreter {bare:.1f} ms"),
            ("import brings in (count)", len(extra), 0, " ".join(extra)),
            ("shared libraries stripped, MB", size, SIZE_MB, " ".join(os.path.basename(p) for p in libs)),
            ("minor page faults, 20 x 16 MB", minor, FAULTS, ""),
        ]
        for name, got, target, note in rows:
            mark = "" if not own else "ok" if got <= target else "over"
            over += mark == "over"
            print(
                f"{module:<8} {name:<32} {got:>10.1f}  {f'target {target:g} {mark}' if own else '':<18} {note[:120]}"
            )
            data.append(
                {"module": module, "row": name, "value": got, "target": target if own else None, "verdict": mark}
            )
    benchlib.write_json(args, "bench_start", {"rows": data})
    return 1 if args.strict and over else 0


if __name__ == "__main__":
    sys.exit(main())

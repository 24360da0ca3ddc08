#!/usr/bin/env python3
"""make bench: every benchmark, one after the other; arguments go to each (--rounds 31, --strict).

.venv/bin/python bench/bench_all.py [--strict]
"""

import argparse
import os
import subprocess
import sys

SCRIPTS = ("bench_start.py", "bench_overhead.py", "bench_pointwise.py")
HERE = os.path.dirname(os.path.abspath(__file__))


def main():
    ap = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    ap.add_argument("--rounds", type=int, help="bursts of each row for each module")
    ap.add_argument("--strict", action="store_true", help="exit with 1 when a target is missed")
    args = ap.parse_args()
    status = 0
    for script in SCRIPTS:
        more = ["--strict"] if args.strict else []
        if args.rounds:
            more += ["--repeats" if script == "bench_start.py" else "--rounds", str(args.rounds)]
        print(f"# {script}", flush=True)
        status = subprocess.run([sys.executable, os.path.join(HERE, script), *more]).returncode or status
    return status


if __name__ == "__main__":
    sys.exit(main())

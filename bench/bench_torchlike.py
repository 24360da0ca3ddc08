"""The peer benchmark on PyTorch and on Ember: section after section, in turns, and the table of docs/benchmarks.md.

The benchmark itself (../shared/bench/bench_torchlike.py, or --script) takes the module to measure as an argument. Each
section runs as a process of one module, then of the other, --rounds times; a row's figure is the median of its rounds'
medians. One thread, both on processor 0. EMBER_ORACLE names a Python that has PyTorch.
"""
import argparse
import json
import os
import platform
import statistics
import subprocess
import sys
import tempfile

import bench_more

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
SECTIONS = "add chain matmul mlp cnn gpt lstm elementwise decode conv import rss".split()
RATES = ("GFLOP/s", "tok/s")  # more is better
# Ember's time over PyTorch's that a row may take; the others 1.3.
TARGETS = {"MLP step, SGD": 0.7, "MLP step, Adam": 0.7, "CNN (LeNet) step, batch 64, SGD": 1.0, "GPT step, AdamW": 1.0,
           "LSTM step (128->128, 32 steps, batch 16), SGD": 1.0, "sort, 1M elem": 0.3, "x + y.t(), 1M elem": 0.3}


def measure(python, module, script, section, repeats):
    """{row: (unit, median, error)} of one section in a process of its own."""
    env = {k: v for k, v in os.environ.items() if not k.startswith("OPENBLAS_")}
    env.update(OMP_NUM_THREADS="1", BENCH_TRIES="2")
    if module == "ember":
        env["PYTHONPATH"] = os.path.join(ROOT, "python")
    else:
        env.pop("PYTHONPATH", None)
    with tempfile.NamedTemporaryFile(suffix=".json") as file:
        done = subprocess.run([python, script, "--module", module, "--only", section, "--repeats", str(repeats),
                               "--json", file.name], env=env, capture_output=True, text=True, cwd=os.path.dirname(script))
        if done.returncode != 0:
            return {section: ("", None, done.stderr.strip().splitlines()[-1] if done.stderr else f"status {done.returncode}")}
        rows = json.load(open(file.name, encoding="utf-8"))["rows"]
    return {row["name"]: (row["unit"], row.get("median"), row.get("error")) for row in rows}


def collect(options, oracle):
    """{row: {module: [figures], "unit": unit, "error": {module: why}}}, in the order of the benchmark."""
    found = {}
    for section in options.only or SECTIONS:
        for _ in range(options.rounds if section not in ("import", "rss") else 1):
            for module, python in (("torch", oracle), ("ember", sys.executable)):
                for name, (unit, median, error) in measure(python, module, options.script, section, options.repeats).items():
                    row = found.setdefault(name, {"torch": [], "ember": [], "unit": unit, "error": {}})
                    row["unit"] = row["unit"] or unit
                    if error:
                        row["error"][module] = error
                    else:
                        row[module].append(median)
        print(f"{section} measured", file=sys.stderr, flush=True)
    return found


def lines(found):
    """Rows of the table: (name, PyTorch's figure, Ember's, unit, Ember's time over PyTorch's or None, target)."""
    for name, row in found.items():
        ours, theirs = (statistics.median(row[m]) if row[m] else None for m in ("ember", "torch"))
        ratio = None
        if ours and theirs:
            ratio = theirs / ours if row["unit"] in RATES else ours / theirs
        yield name, theirs, ours, row["unit"], ratio, TARGETS.get(name, 1.3), row["error"]


def number(value):
    return "-" if value is None else f"{value:.4g}"


def page(found, options):
    """docs/benchmarks.md."""
    with open("/proc/cpuinfo", encoding="utf-8") as file:
        cpu = next((line.split(":", 1)[1].strip() for line in file if line.startswith("model name")), platform.machine())
    text = ["# Benchmarks beside PyTorch 2.13", "",
            "Written by `make bench` (bench/bench_torchlike.py); change the tool, not this page.", "",
            f"Machine: {cpu}, one thread, pinned to one processor. Each section ran as a process of PyTorch, then of Ember, "
            f"{options.rounds} times in turn; the figures are medians of the rounds' medians. Ratio: Ember's time over "
            "PyTorch's (for rates, the inverse), so below 1 Ember is faster. Target: the largest ratio that we accept. "
            f"Load average of the last 15 minutes at the end: {os.getloadavg()[2]:.1f} on {os.cpu_count()} processors (busy: "
            "compare columns, not pages). The empty loop is the interpreter's, and shows the noise.", "",
            "| what | PyTorch | Ember | unit | ratio | target |  |", "| --- | ---: | ---: | --- | ---: | ---: | --- |"]
    for name, theirs, ours, unit, ratio, target, error in lines(found):
        verdict = "; ".join(f"{m}: {e}" for m, e in error.items()) if error else "" if ratio is None or ratio <= target else "above"
        text.append(f"| {name} | {number(theirs)} | {number(ours)} | {unit} | {'-' if ratio is None else f'{ratio:.2f}'} | "
                    f"{target} | {verdict.replace('|', '/')} |")
    return "\n".join(text) + "\n"


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--script", default=os.path.join(os.path.dirname(ROOT), "shared", "bench", "bench_torchlike.py"))
    parser.add_argument("--only", action="append", choices=SECTIONS, help="only this section (may be repeated)")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--repeats", type=int, default=7)
    parser.add_argument("--page", help="write the table to this file (docs/benchmarks.md)")
    options = parser.parse_args()
    options.script = os.path.abspath(options.script)
    oracle = os.environ.get("EMBER_ORACLE")
    if not oracle:
        sys.exit("EMBER_ORACLE must name a Python that has PyTorch 2.13: EMBER_ORACLE=/path/to/venv/bin/python make bench")
    if not os.path.exists(options.script):
        sys.exit(f"{options.script} is not there; --script FILE names the peer benchmark")
    found = collect(options, oracle)
    print(f"{'what':<48} {'PyTorch':>10} {'Ember':>10} {'unit':<8} {'ratio':>6} {'target':>6}")
    above = 0
    for name, theirs, ours, unit, ratio, target, error in lines(found):
        bad = ratio is not None and ratio > target
        above += bad
        print(f"{name:<48} {number(theirs):>10} {number(ours):>10} {unit:<8} {'-' if ratio is None else f'{ratio:.2f}':>6} "
              f"{target:>6}{'  ABOVE' if bad else ''}{''.join(f'  {m}: {e}' for m, e in error.items())}")
    print(f"{above} rows above their target")
    if options.page:
        kept = ""
        if os.path.exists(options.page):
            with open(options.page, encoding="utf-8") as file:
                kept = "".join(file.read().partition(bench_more.HEADING)[1:])  # bench_more.py writes this part
        with open(options.page, "w", encoding="utf-8") as file:
            file.write(page(found, options) + ("\n" + kept if kept else ""))
    return 0


if __name__ == "__main__":
    sys.exit(main())

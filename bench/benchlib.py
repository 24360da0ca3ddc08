"""benchlib.py: what the benchmarks of two modules in one run share.

A benchmark file defines rows(T, tools) -> {name: thunk}. Called with --worker it serves them from one process of one
module over stdin and stdout, a JSON line a request; the driver starts one worker a module, both pinned to the same
processor, and asks each in turn for short timed bursts, many rounds, so that both see the same weather.
"""

import argparse
import json
import os
import subprocess
import sys
import timeit

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(HERE)


# ---- worker
def timer(make):
    """A timer for what a row gives: a callable, (statement, names) compiled into the loop, or something with timeit."""
    made = make()
    if hasattr(made, "timeit"):
        return made
    if callable(made):
        return timeit.Timer(made, "import gc; gc.enable()")
    return timeit.Timer(made[0], "import gc; gc.enable()", globals=made[1])


def serve(rows, keep=True):
    """Answers requests until stdin ends: {"row", "seconds"} -> {"ns"} per execution, or {"error"}. What a row needs is made
    once; without `keep` it is given up when the next row is asked for."""
    wire = os.fdopen(os.dup(1), "w", buffering=1)
    os.dup2(2, 1)
    timers, loops = {}, {}
    for line in sys.stdin:
        ask = json.loads(line)
        if not keep and ask["row"] not in timers:
            timers.clear()
        try:
            wire.write(json.dumps(burst(rows, ask["row"], ask["seconds"], timers, loops)) + "\n")
        except Exception as e:  # the module cannot do this row: its row says so
            wire.write(
                json.dumps({"error": f"{type(e).__name__}: {str(e).splitlines()[0] if str(e) else ''}"[:160]}) + "\n"
            )


def burst(rows, name, seconds, timers, loops):
    if name not in timers:
        t = timers[name] = timer(rows[name])
        n, s = 1, t.timeit(1)
        while s < seconds / 2:
            n = max(n + 1, int(n * min(10.0, 1.2 * seconds / max(s, 1e-9))))
            s = t.timeit(n)
        loops[name] = n
    n = loops[name]
    return {"ns": timers[name].timeit(n) / n * 1e9}


# ---- driver
class Worker:
    def __init__(self, module, script, python, threads, cpus):
        self.module, self.errors = module, {}
        env = {k: v for k, v in os.environ.items() if k not in ("OPENBLAS_CORETYPE", "OPENBLAS_L2_SIZE")}
        env["OMP_NUM_THREADS"] = str(threads)
        env["BENCH_CPUS"] = ",".join(map(str, sorted(cpus)))
        self.p = subprocess.Popen(
            [python, script, "--worker", module, "--threads", str(threads)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env=env,
        )

    def ask(self, row, seconds):
        """Nanoseconds per execution, or None and the reason kept."""
        if row in self.errors:
            return None
        try:
            self.p.stdin.write(json.dumps({"row": row, "seconds": seconds}) + "\n")
            self.p.stdin.flush()
            line = self.p.stdout.readline()
        except BrokenPipeError:
            line = ""
        if not line:
            self.errors[row] = f"the {self.module} process ended with status {self.p.wait()}"
            return None
        got = json.loads(line)
        if "error" in got:
            self.errors[row] = got["error"]
            return None
        return got["ns"]

    def close(self):
        try:
            self.p.stdin.close()
        except BrokenPipeError:  # it ended before; its rows say so
            pass
        self.p.wait()


def pin_worker():
    """Pins this process before it imports anything that starts threads."""
    cpus = os.environ.get("BENCH_CPUS")
    if cpus:
        os.sched_setaffinity(0, {int(c) for c in cpus.split(",")})


def alternate(workers, names, seconds, rounds, progress=True):
    """{row: {module: [ns, ..]}}: every round asks each worker in turn for one burst of every row."""
    got = {n: {w.module: [] for w in workers} for n in names}
    for r in range(rounds):
        for k, n in enumerate(names):
            for w in workers if r % 2 == 0 else workers[::-1]:
                ns = w.ask(n, seconds)
                if ns is not None:
                    got[n][w.module].append(ns)
            if progress and sys.stderr.isatty():
                print(f"\r\033[Kround {r + 1}/{rounds} {k + 1}/{len(names)} {n}", end="", file=sys.stderr, flush=True)
    if progress and sys.stderr.isatty():
        print("\r\033[K", end="", file=sys.stderr)
    return got


def median(xs):
    xs = sorted(xs)
    n = len(xs)
    return None if not n else xs[n // 2] if n % 2 else (xs[n // 2 - 1] + xs[n // 2]) / 2


def oracle_python():
    r = subprocess.run([os.path.join(ROOT, "tools", "oracle.sh")], stdout=subprocess.PIPE, text=True)
    if r.returncode:
        sys.exit("bench: no oracle: tools/oracle.sh failed")
    return r.stdout.strip().splitlines()[-1]


def arguments(doc, rounds, seconds):
    ap = argparse.ArgumentParser(
        description=doc.split("\n")[0],
        epilog="\n".join(doc.split("\n")[1:]),
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    ap.add_argument(
        "--rounds", type=int, default=rounds, help=f"bursts of each row for each module (default {rounds})"
    )
    ap.add_argument("--seconds", type=float, default=seconds, help=f"length of a burst (default {seconds})")
    ap.add_argument("--only", default="", help="rows whose name contains this")
    ap.add_argument(
        "--modules", default="ember,torch", help="which modules, the one under test first (default ember,torch)"
    )
    ap.add_argument("--python", default=sys.executable, help="interpreter that has Ember (default: this one)")
    ap.add_argument("--json", default="", help="where the figures go (default out/NAME.json)")
    ap.add_argument("--strict", action="store_true", help="exit with 1 when a row with a target is over it")
    ap.add_argument("--worker", default="", help=argparse.SUPPRESS)
    ap.add_argument("--threads", type=int, default=1, help=argparse.SUPPRESS)
    return ap


def start(args, script, threads, cpus):
    workers = []
    for m in args.modules.split(","):
        workers.append(Worker(m, script, oracle_python() if m == "torch" else args.python, threads, cpus))
    return workers


def write_json(args, name, data):
    path = args.json or os.path.join(ROOT, "out", name + ".json")
    os.makedirs(os.path.dirname(os.path.abspath(path)), exist_ok=True)
    with open(path, "w") as f:
        json.dump(data, f, indent=1)

#!/usr/bin/env python3
"""make parity: Ember's results beside real PyTorch's, sample by sample.

  .venv/bin/python tests/parity/run_samples.py [--op add] [--dtype f32] [--limit 10] [-v]

Asks the oracle for its samples first (tests/parity/make_samples.py under tools/oracle.sh's interpreter; cached), runs
each operator in a process of its own, two at a time, so that a crash costs one sample, and writes out/parity.json and
docs/parity.md. The last line of output reads: N samples, N passed (NN.N%), N in the ledger, N failed.
--module torch compares real PyTorch with itself: anything but 100% is a fault of these tools.
"""

import argparse
import json
import os
import pickle
import queue
import signal
import subprocess
import sys
import tempfile
import threading
import time

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
sys.path.insert(0, HERE)


# ---- worker: one operator in this process; a line when a sample starts, a line when it ends
def worker(args):
    wire = os.fdopen(os.dup(1), "w", buffering=1)
    os.dup2(2, 1)  # whatever the module prints must not look like our lines
    with open(args.worker, "rb") as f:
        records = pickle.load(f)["records"]
    import importlib

    T = importlib.import_module(args.module)
    if hasattr(T, "set_num_threads"):
        T.set_num_threads(1)
    from compare import compare, notes
    from runner import observe

    reference = {}
    if args.reference:
        with open(args.reference, "rb") as f:
            reference = pickle.load(f)
    for i in range(args.start, len(records)):
        rec = records[i]
        if args.dtype and rec["dtype"] not in args.dtype or args.sample and i not in args.sample:
            continue
        wire.write(json.dumps({"start": i}) + "\n")
        got = observe(T, rec)
        failures = compare(rec, rec["expected"], got, reference.get(i))
        wire.write(json.dumps({"end": i, "failures": failures, "notes": notes(rec, rec["expected"], got)}) + "\n")


# ---- driver
class Job:
    """One operator's results: runs workers until every sample has an answer."""

    def __init__(self, name, path, args):
        self.name, self.path, self.args, self.results, self.broken = name, path, args, {}, ""
        self.only, self.reference, self.nearer = args.sample, "", set()

    def command(self, start):
        c = [
            self.args.python,
            os.path.join(HERE, "run_samples.py"),
            "--module",
            self.args.module,
            "--worker",
            self.path,
            "--start",
            str(start),
        ]
        for d in self.args.dtype:
            c += ["--dtype", d]
        for i in self.only:
            c += ["--sample", str(i)]
        return c + (["--reference", self.reference] if self.reference else [])

    def doubtful(self):
        """{sample: forms} whose values differ: the oracle is asked for them in double precision."""
        out = {}
        for i, r in self.results.items():
            forms = sorted({k.rpartition(":")[0] for k, _ in r["failures"] if k.endswith(":value")})
            if forms:
                out[i] = forms
        return out

    def again(self, reference):
        """The doubtful samples once more, beside the results in double precision; those that pass now are `nearer`."""
        self.only, self.reference = list(self.doubtful()), reference
        self.run()
        self.nearer = {i for i in self.only if not self.results[i]["failures"]}

    def run(self):
        start = 0
        while start is not None:
            start = self.once(start)

    def once(self, start):
        """Runs one worker; the number to go on from when it died on a sample, else None."""
        env = {**os.environ, "OMP_NUM_THREADS": "1"}
        p = subprocess.Popen(self.command(start), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=env)
        noise = []
        drain = threading.Thread(target=lambda: noise.extend(p.stderr), daemon=True)
        drain.start()
        alarm = Alarm(p, self.args.timeout)
        running = None
        for line in p.stdout:
            m = json.loads(line)
            if "start" in m:
                running = m["start"]
                alarm.restart()
            else:
                self.results[m["end"]] = m
                running = None
        alarm.cancel()
        rc = p.wait()
        drain.join(5)
        if running is not None:
            died = f"signal {-rc}" if rc < 0 else f"exit status {rc}"
            kind, detail = ("timeout", f"no answer in {self.args.timeout} s") if alarm.fired else ("crash", died)
            self.results[running] = {"failures": [[kind, detail]], "notes": []}
            return running + 1
        if rc:
            self.broken = (
                f"worker ended with {'signal' if rc < 0 else 'status'} {abs(rc)}: " + "".join(noise)[-600:].strip()
            )
        return None


class Alarm:
    """Kills a worker that is silent for too long."""

    def __init__(self, process, seconds):
        self.process, self.seconds, self.fired, self.timer = process, seconds, False, None
        self.restart()

    def restart(self):
        self.cancel()
        self.timer = threading.Timer(self.seconds, self.fire)
        self.timer.daemon = True
        self.timer.start()

    def cancel(self):
        if self.timer:
            self.timer.cancel()

    def fire(self):
        self.fired = True
        self.process.send_signal(signal.SIGKILL)


def oracle_python():
    r = subprocess.run([os.path.join(ROOT, "tools", "oracle.sh")], stdout=subprocess.PIPE, text=True)
    if r.returncode:
        sys.exit("parity: no oracle: tools/oracle.sh failed")
    return r.stdout.strip().splitlines()[-1]


def oracle_files(args):
    """{operator: pickle of its samples}, made by the oracle where the cache has none."""
    c = [
        args.oracle or oracle_python(),
        os.path.join(HERE, "make_samples.py"),
        "--cache",
        args.cache,
        "--cap",
        str(args.cap),
    ]
    for op in args.op:
        c += ["--op", op]
    env = {k: v for k, v in os.environ.items() if k not in ("OPENBLAS_CORETYPE", "OPENBLAS_L2_SIZE")}
    r = subprocess.run(c, stdout=subprocess.PIPE, text=True, env=env)
    if r.returncode:
        sys.exit(f"parity: the oracle failed with status {r.returncode}")
    return dict(line.split("\t") for line in r.stdout.splitlines() if "\t" in line)


def second_look(jobs, args):
    """Where values differ: asks the oracle for them in double precision and compares again (compare.py says how)."""
    with tempfile.TemporaryDirectory() as folder:
        doubtful = [(j, d, os.path.join(folder, f"{k}.pkl")) for k, j in enumerate(jobs) if (d := j.doubtful())]
        todo = [{"samples": j.path, "out": out, "forms": d} for j, d, out in doubtful]
        if not todo:
            return
        with open(os.path.join(folder, "jobs.json"), "w") as f:
            json.dump(todo, f)
        subprocess.run([args.oracle, os.path.join(HERE, "reference.py"), f.name], check=True)
        for j, _, out in doubtful:
            j.again(out)


def run_jobs(jobs, n):
    todo = queue.Queue()
    for j in jobs:
        todo.put(j)
    done, lock, began, tty = [0], threading.Lock(), time.time(), sys.stderr.isatty()

    def loop():
        while True:
            try:
                j = todo.get_nowait()
            except queue.Empty:
                return
            j.run()
            with lock:
                done[0] += 1
                if tty:
                    k = 30 * done[0] // len(jobs)
                    print(
                        f"\r\033[K[{'#' * k:.<30}] {done[0]}/{len(jobs)} {time.time() - began:.0f} s {j.name}",
                        end="\n" if done[0] == len(jobs) else "",
                        file=sys.stderr,
                        flush=True,
                    )

    threads = [threading.Thread(target=loop) for _ in range(n)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()


def arguments():
    ap = argparse.ArgumentParser(
        description=__doc__.split("\n")[0],
        epilog="\n".join(__doc__.split("\n")[1:]),
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    ap.add_argument("--module", default="ember", help="ember (default) or torch, the self-test")
    ap.add_argument("--op", action="append", default=[], help="only this operator of ops.txt (may be given again)")
    ap.add_argument(
        "--dtype", action="append", default=[], help="only samples of this dtype: f32 f64 i64 bool bf16 c64 errors"
    )
    ap.add_argument("--sample", action="append", default=[], type=int, help="only the sample of this number")
    ap.add_argument(
        "--limit",
        type=int,
        default=40,
        help="failures to print (default 40); without --op at most two of a kind for each operator",
    )
    ap.add_argument("--cap", type=int, default=40, help="samples per operator and dtype (default 40)")
    ap.add_argument("--jobs", type=int, default=2, help="processes at a time (default 2)")
    ap.add_argument("--timeout", type=float, default=60.0, help="seconds that one sample may take (default 60)")
    ap.add_argument(
        "--python", default="", help="interpreter that has the module (default: this one; torch: the oracle's)"
    )
    ap.add_argument("--oracle", default="", help="interpreter that has PyTorch (default: tools/oracle.sh's)")
    ap.add_argument(
        "--cache",
        default=os.environ.get("EMBER_PARITY_CACHE") or os.path.join(ROOT, ".cache", "parity"),
        help="where the oracle's samples are kept (default EMBER_PARITY_CACHE, or .cache/parity)",
    )
    ap.add_argument("--no-docs", action="store_true", help="leave docs/parity.md as it is")
    ap.add_argument("--min", type=float, default=0.0, help="exit with 1 below this percentage of passed samples")
    ap.add_argument("-v", "--verbose", action="store_true", help="with each failure a line of Python that shows it")
    ap.add_argument("--worker", default="", help=argparse.SUPPRESS)
    ap.add_argument("--reference", default="", help=argparse.SUPPRESS)
    ap.add_argument("--start", type=int, default=0, help=argparse.SUPPRESS)
    return ap.parse_args()


def main():
    args = arguments()
    if args.worker:
        return worker(args)
    import report

    if not args.oracle:
        args.oracle = oracle_python()
    args.python = args.python or (args.oracle if args.module == "torch" else sys.executable)
    files = oracle_files(args)
    unknown = [op for op in args.op if op not in files]
    if unknown:
        sys.exit(f"parity: not in ops.txt: {' '.join(unknown)}")
    jobs = [Job(name, path, args) for name, path in files.items()]
    run_jobs(jobs, args.jobs)
    second_look(jobs, args)
    ledger = report.Ledger(os.path.join(HERE, "ledger.yaml"))
    tables = [report.table(j, ledger, args) for j in jobs]
    os.makedirs(os.path.join(ROOT, "out"), exist_ok=True)
    report.write_json(os.path.join(ROOT, "out", "parity.json"), args.module, tables)
    report.print_failures(tables, args)
    whole = not (args.op or args.dtype or args.sample)
    if whole and args.module == "ember" and not args.no_docs:
        report.write_page(os.path.join(ROOT, "docs", "parity.md"), tables, ledger)
    line, percent, failed = report.summary(tables)
    print(line)
    return 1 if percent < args.min or (failed and args.module == "torch") else 0


if __name__ == "__main__":
    sys.exit(main())

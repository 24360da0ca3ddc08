#!/usr/bin/env python3
"""Every operator of tests/ops beside PyTorch 2.13: sizes, layouts, dtypes, forward and backward. Asserts nothing.

A row is OPERATOR DTYPE SIZE LAYOUT DIRECTION. Its arguments are the first sample of the operator's entry in tests/ops/table.py
that runs in both modules, made larger by repeating its dimensions (equal sizes grow alike; where that does not run, the
leading one only) until the largest argument has about as many elements as the size says. Layouts: `plain` (contiguous),
`turned` (the last two dimensions stored the other way round), `wide` (every argument after the first, or the only one,
expanded along its leading dimension). `bwd` is autograd.grad of everything that can have a gradient, the graph kept.

Every row is measured in a few short bursts in turns; the rows that look slow are measured again, longer. Times are CPU times
when one thread is asked for, so that a busy machine disturbs little, and wall times otherwise. Rows above --above are
printed, the operator with the worst row first; all of them go to --json (default out/sweep.json).

  EMBER_ORACLE=/path/to/venv/bin/python .venv/bin/python bench/sweep.py --op softmax --dtypes float32 --layouts plain
"""
import gc
import importlib
import math
import os
import re
import resource
import signal
import sys
import time
import timeit

import benchlib

SIZES = {"tiny": 0, "4k": 4096, "1M": 1 << 20}
LAYOUTS, WAYS = ("plain", "turned", "wide"), ("fwd", "bwd")
# Operators whose kernels, windows or planes should keep their sizes: only the leading dimension grows.
SMALL_KERNELS = re.compile("conv|pool|unfold|fold|im2col|grid|lstm|gru|rnn|attention|pad|upsample|interpolate|linalg|_norm|einsum")
MEMORY = 6 << 30  # bytes that a row may take; with more it is reported as failed
SLOWEST = 0.5  # seconds of one call beyond which a row is left out


def key(name, dtype, size, layout, way):
    return f"{name} {dtype} {size} {layout} {way}"


# ---- worker
class Calls:
    """Rows of one module by name: calls["softmax.int float32 4k plain fwd"] is a function that makes what is timed."""

    def __init__(self, T, threads):
        os.environ["EMBER_TEST_MODULE"] = T.__name__
        sys.path.insert(0, os.path.join(benchlib.ROOT, "tests", "ops"))
        self.T, self.clock = T, time.process_time if threads == 1 else time.perf_counter
        self.subject, self.sampling, self.table = (importlib.import_module(m) for m in ("subject", "sampling", "table"))

    def __getitem__(self, row):
        return lambda: self.make(*row.split())

    def make(self, name, dtype, size, layout, way):
        call = self.subject.operator(name)
        if call is None:
            raise NotImplementedError(f"{self.T.__name__} has no {name}")
        gc.collect()  # what failed keeps its tensors in a cycle with its traceback
        why = ValueError("no samples")
        for sample in self.sampling.samples(name, dtype):
            for grow in (self.alike, self.leading) if not SMALL_KERNELS.search(name) else (self.leading,):
                try:
                    return self.ready(call, *grow(sample, dtype, SIZES[size], layout), way)
                except Exception as e:  # this way of making it larger does not suit the operator
                    why = e
        raise why

    def ready(self, call, args, kwargs, way):
        began = time.perf_counter()
        if way == "fwd":
            with self.T.no_grad():
                call(*args, **kwargs)
            run = lambda: call(*args, **kwargs)  # noqa: E731
        else:
            outs = [o for o in self.subject.flat(call(*args, **kwargs)) if isinstance(o, self.T.Tensor) and o.requires_grad]
            ins, grads = self.leaves, [self.T.ones_like(o) for o in outs]
            grad = self.T.autograd.grad
            run = lambda: grad(outs, ins, grads, retain_graph=True, allow_unused=True)  # noqa: E731
            run()
        if time.perf_counter() - began > SLOWEST:
            raise TimeoutError("slow")
        return timeit.Timer(run, "import gc; gc.enable()", timer=self.clock)

    def tensors(self, sample, dtype, layout, factors, grad=False):
        """A sample's (args, kwargs); factors(shape) says how often each dimension is repeated."""
        self.leaves, count = [], []
        self.subject.map_args(list(sample), lambda arg: count.append(arg))
        at = [0]

        def make(arg):
            t = arg.tensor(dtype)
            if t.dim():
                t = t.repeat(factors(tuple(t.shape)))
            at[0] += 1
            if layout == "turned" and t.dim() > 1:
                t = t.transpose(-1, -2).contiguous().transpose(-1, -2)
            elif layout == "wide" and t.dim() > 0 and (at[0] > 1 or len(count) == 1):
                t = t[:1].expand(t.shape)
            if arg.diff and t.is_floating_point():
                t.requires_grad_()
                self.leaves.append(t)
            return t

        return self.subject.map_args(list(sample), make)

    def largest(self, sample):
        shapes = []
        self.subject.map_args(list(sample), lambda arg: shapes.append(arg.values.shape))
        shapes = [s for s in shapes if s and all(s)]
        if not shapes:
            raise ValueError("no dimension to make larger")
        return max(shapes, key=math.prod)

    def alike(self, sample, dtype, target, layout):
        """Dimensions of more than one element grow by one factor."""
        big = self.largest(sample)
        dims = sum(d > 1 for d in big) or 1
        factor = max(1, round((target / math.prod(big)) ** (1 / dims))) if target else 1
        return self.tensors(sample, dtype, layout, lambda s: [factor if d > 1 else 1 for d in s])

    def leading(self, sample, dtype, target, layout):
        """Arguments with the largest one's leading size grow along it; so does nothing else."""
        big = self.largest(sample)
        factor = max(1, target // math.prod(big)) if target else 1
        return self.tensors(sample, dtype, layout,
                            lambda s: [factor if s[0] == big[0] and len(s) == len(big) else 1] + [1] * (len(s) - 1))

# ---- driver
def names_of(args):
    """The rows that are asked for, by the tables: (operator, dtype, ...) where PyTorch takes the dtype."""
    sys.path.insert(0, os.path.join(benchlib.ROOT, "tests", "ops"))
    sampling = importlib.import_module("sampling")
    groups = importlib.import_module("table").GROUPS
    wanted = {e.name for g, entries in groups.items() for e in entries if not args.group or g in args.group.split(",")}
    for name in sampling.PRESENT:
        if name not in wanted or args.op not in name or (args.exact and args.op != name) or sampling.writes_first(name):
            continue
        for dtype in args.dtypes.split(","):
            if dtype not in sampling.dtypes_of(name):
                continue
            for size in args.sizes.split(","):
                for layout in args.layouts.split(","):
                    for way in args.ways.split(","):
                        if way == "bwd" and (dtype == "int64" or not sampling.gradients_of(name)):
                            continue
                        if layout == "plain" or size != "tiny":
                            yield key(name, dtype, size, layout, way)


def ratio(got, n, under, other):
    a, b = (benchlib.median(got[n][m]) for m in (under, other))
    return a / b if a and b else None


def show(rows, args):
    by_operator = {}
    for row in rows:
        if row["ratio"] and row["ratio"] >= args.above:
            by_operator.setdefault(row["row"].split()[0], []).append(row)
    worst = sorted(by_operator.items(), key=lambda item: -max(r["ratio"] for r in item[1]))
    under, other = args.modules.split(",")[0], args.modules.split(",")[-1]
    print(f"{'row':<64} {under + ' us':>10} {other + ' us':>10} {'ratio':>6} {'best':>6}")
    for _, found in worst:
        for r in sorted(found, key=lambda r: -r["ratio"]):
            print(f"{r['row']:<64} {r[under] / 1e3:>10.2f} {r[other] / 1e3:>10.2f} {r['ratio']:>6.2f} {r['best']:>6.2f}")
    measured = [r["ratio"] for r in rows if r["ratio"]]
    print(f"{len(measured)} rows measured, {len(rows) - len(measured)} not; {sum(map(len, by_operator.values()))} at or above "
          f"{args.above}; geometric mean of ratios {math.exp(sum(map(math.log, measured)) / max(1, len(measured))):.3f}")


def main():
    ap = benchlib.arguments(__doc__, rounds=9, seconds=0.01)
    ap.add_argument("--op", default="", help="operators whose full name contains this")
    ap.add_argument("--exact", action="store_true", help="--op is the whole name")
    ap.add_argument("--group", default="", help="groups of the table, comma between")
    ap.add_argument("--dtypes", default="float32,int64,bfloat16")
    ap.add_argument("--sizes", default=",".join(SIZES))
    ap.add_argument("--layouts", default=",".join(LAYOUTS))
    ap.add_argument("--ways", default=",".join(WAYS))
    ap.add_argument("--above", type=float, default=1.3, help="ratio from which a row is printed (default 1.3)")
    ap.add_argument("--errors", action="store_true", help="print the rows that one module could not do, and why")
    args = ap.parse_args()
    if args.worker:
        benchlib.pin_worker()
        resource.setrlimit(resource.RLIMIT_DATA, (MEMORY, MEMORY))
        T = importlib.import_module(args.worker)
        T.set_num_threads(args.threads)
        return benchlib.serve(Calls(T, args.threads), keep=False)
    names = [n for n in names_of(args) if args.only in n]
    under, other = args.modules.split(",")[0], args.modules.split(",")[-1]
    workers = benchlib.start(args, __file__, args.threads, set(range(args.threads)))
    rows, began = [], time.time()
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # what was measured until then is shown
    try:
        for row in measure(args, workers, names, under, other, began):
            rows.append(row)
            if len(rows) % 50 == 0:
                benchlib.write_json(args, "sweep", {"threads": args.threads, "rows": rows})
    except KeyboardInterrupt:
        print("stopped", file=sys.stderr)
    for w in workers:
        w.close()
    show(rows, args)
    if args.errors:
        for r in rows:
            if r["errors"]:
                print(r["row"], r["errors"])
    benchlib.write_json(args, "sweep", {"threads": args.threads, "rows": rows})
    return 0


def measure(args, workers, names, under, other, began):
    """Each row's figures, as soon as they are known."""
    for k, n in enumerate(names):
        got = benchlib.alternate(workers, [n], args.seconds / 5, 3, progress=False)
        if (ratio(got, n, under, other) or 0) >= 0.9 * args.above:
            got = benchlib.alternate(workers, [n], args.seconds, args.rounds, progress=False)
        a, b = (got[n][m] for m in (under, other))
        yield {"row": n, under: benchlib.median(a), other: benchlib.median(b), "ratio": ratio(got, n, under, other),
               "best": min(a) / min(b) if a and b else None,
               "errors": {w.module: w.errors[n] for w in workers if n in w.errors}}
        if sys.stderr.isatty() or k % 500 == 499:
            print(f"\r{k + 1}/{len(names)} rows, {time.time() - began:.0f} s", end="", file=sys.stderr, flush=True)


if __name__ == "__main__":
    sys.exit(main())

#!/usr/bin/env python3
"""Larger operators, Ember and PyTorch 2.13 alternating in one run, with one and with two threads.

  .venv/bin/python bench/bench_pointwise.py [--rounds 9] [--only exp] [--cpus 0,1]

exp, tanh, gelu and softmax on 1M f32 elements may not be slower than PyTorch (issue 2): ratio at most 1.05, a twentieth
being what two runs of the same module differ by.
"""

import ast
import importlib
import sys

import benchlib
from bench_overhead import show, show_ratio

NOT_SLOWER = ("exp, 1M", "tanh, 1M", "gelu, 1M", "softmax, 1024 x 1024")
SLACK = 1.05
ROWS = {
    "exp, 1M": "T.exp(x)",
    "tanh, 1M": "T.tanh(x)",
    "gelu, 1M": "T.nn.functional.gelu(x)",
    "sigmoid, 1M": "T.sigmoid(x)",
    "relu, 1M": "T.relu(x)",
    "log, 1M": "T.log(p)",
    "sqrt, 1M": "T.sqrt(p)",
    "pow, 1M": "T.pow(p, 2.5)",
    "softmax, 1024 x 1024": "T.softmax(m, -1)",
    "log_softmax, 1024 x 1024": "T.log_softmax(m, -1)",
    "add, 1M": "x + y",
    "add a row, 1024 x 1024": "m + w",
    "add the transposed": "m + m.t()",
    "where, 1M": "T.where(c, x, y)",
    "x * 2 + y, 1M": "x * 2 + y",
    "compare, 1M": "x < y",
    "sum, 1M": "x.sum()",
    "sum of columns": "m.sum(0)",
    "sum of rows": "m.sum(1)",
    "mean, 1M": "x.mean()",
    "var, 1M": "x.var()",
    "max, 1M": "x.max()",
    "argmax of rows": "m.argmax(1)",
    "transposed, contiguous": "m.t().contiguous()",
    "to bfloat16, 1M": "x.to(T.bfloat16)",
    "add bfloat16, 1M": "h + h",
    "exp bfloat16, 1M": "T.exp(h)",
    "add int64, 1M": "i + i",
    "cat of two, 1M": "T.cat([x, y])",
    "gather 1M": "T.gather(x, 0, i)",
    "index 1M": "x[i]",
    "randn, 1M": "T.randn(1 << 20)",
    "rand, 1M": "T.rand(1 << 20)",
    "add, 4M (16 MB results)": "u + u",
    "mm 64": "s @ s",
    "mm 512": "q @ q",
    "bmm 32 x 64 x 64": "b @ b",
    "cross_entropy, 1024 x 1024": "T.nn.functional.cross_entropy(m, t)",
    "exp with backward, 1M": "T.exp(g).sum().backward()",
}


class Lazy(dict):
    """The operands a statement mentions, each made when first used, so that a missing operator costs its rows only."""

    def __init__(self, T):
        super().__init__(T=T)
        self.T = T
        n = 1 << 20
        self.makers = {
            "x": lambda: T.randn(n),
            "y": lambda: T.randn(n),
            "p": lambda: T.rand(n) + 0.5,
            "m": lambda: T.randn(1024, 1024),
            "w": lambda: T.randn(1024),
            "c": lambda: T.randn(n) > 0,
            "h": lambda: T.randn(n).to(T.bfloat16),
            "i": lambda: T.randint(0, n, (n,)),
            "u": lambda: T.ones(4 * n),
            "s": lambda: T.randn(64, 64),
            "q": lambda: T.randn(512, 512),
            "b": lambda: T.randn(32, 64, 64),
            "t": lambda: T.randint(0, 1024, (1024,)),
            "g": lambda: T.randn(n).requires_grad_(),
        }

    def of(self, text):
        used = {n.id for n in ast.walk(ast.parse(text)) if isinstance(n, ast.Name)} - {"T"}
        self.T.manual_seed(0)
        for k in used:
            if k not in self:
                self[k] = self.makers[k]()
        return dict(self)


def main():
    ap = benchlib.arguments(__doc__, rounds=9, seconds=0.05)
    ap.add_argument("--cpus", default="0,1", help="processors to use (default 0,1)")
    args = ap.parse_args()
    if args.worker:
        benchlib.pin_worker()
        T = importlib.import_module(args.worker)
        importlib.import_module(args.worker + ".nn")
        if hasattr(T, "set_num_threads"):
            T.set_num_threads(args.threads)
        lazy = Lazy(T)
        return benchlib.serve({n: (lambda text=text: (text, lazy.of(text))) for n, text in ROWS.items()})
    todo = [n for n in ROWS if args.only in n]
    cpus = sorted(int(c) for c in args.cpus.split(","))
    under, other = args.modules.split(",")[0], args.modules.split(",")[-1]
    data, over = [], 0
    for threads in (1, 2) if len(cpus) > 1 else (1,):
        workers = benchlib.start(args, __file__, threads, set(cpus[:threads]))
        got = benchlib.alternate(workers, todo, args.seconds, args.rounds)
        print(f"{f'{threads} thread(s)':<36} {under + ' us':>11} {other + ' us':>11} {'ratio':>8}")
        for n in todo:
            a, b = (benchlib.median(got[n][m]) for m in (under, other))
            ratio = a / b if a and b else None
            mark = "" if n not in NOT_SLOWER else "ok" if ratio is not None and ratio <= SLACK else "over"
            over += mark == "over"
            errors = {w.module: w.errors[n] for w in workers if n in w.errors}
            print(
                f"{n:<36} {show(a and a / 1e3):>11} {show(b and b / 1e3):>11} {show_ratio(ratio):>8} {mark}"
                f"{'  '.join(f' {m}: {e}' for m, e in errors.items())}"
            )
            data.append(
                {"row": n, "threads": threads, under: a, other: b, "ratio": ratio, "verdict": mark, "errors": errors}
            )
        for w in workers:
            w.close()
    benchlib.write_json(args, "bench_pointwise", {"rounds": args.rounds, "rows": data})
    return 1 if args.strict and over else 0


if __name__ == "__main__":
    sys.exit(main())

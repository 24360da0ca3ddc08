#!/usr/bin/env python3
"""make bench-overhead: the fixed cost of an operator, Ember and PyTorch 2.13 alternating in one run.

  .venv/bin/python bench/bench_overhead.py [--rounds 15] [--only 'a + b']

One process a module, both on processor 0 with one thread; each round asks both for a short burst of every row. Prints
medians, their ratio and the best burst, beside the floors that the interpreter itself sets in the same run. Targets are
those of issue 2: a number of nanoseconds, or a fraction of PyTorch's time.
"""

import importlib
import operator
import sys
import timeit

import benchlib

# row -> targets: "ns" at most so many nanoseconds, "ratio" at most this fraction of PyTorch's median
TARGETS = {
    "a + b": {"ns": 80, "ratio": 1 / 8},
    "g + h, recorded": {"ratio": 1 / 8},
    "(g + h).backward()": {"ratio": 1 / 12},
    "ten operators, 100 elements": {"ratio": 1 / 8},
    "ten operators, with backward": {"ratio": 1 / 10},
}
FLOORS = ("floor: empty loop", "floor: C function of two arguments", "floor: float + float")


def chain(T):
    def f(x, a, b):
        y = x * a
        y = y + b
        y = T.relu(y)
        y = T.tanh(y)
        y = y - a
        y = T.sigmoid(y)
        y = y * b
        y = -y
        y = T.exp(y)
        return y / a

    x, a, b = T.full((100,), 0.3), T.full((100,), 0.7), T.full((100,), 0.9)
    return {"f": f, "x": x, "xg": x.clone().requires_grad_(), "a": a, "b": b}


def adam_step(T):
    nn, optim = (importlib.import_module(f"{T.__name__}.{m}") for m in ("nn", "optim"))
    m = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 1))
    x, opt = T.ones(4, 8), optim.Adam(m.parameters(), lr=1e-6)

    def step():
        opt.zero_grad()
        m(x).sum().backward()
        opt.step()

    return step


def linear(T):
    m = importlib.import_module(T.__name__ + ".nn").Linear(8, 8)
    return "m(x)", {"m": m, "x": T.ones(4, 8)}


def without_grad(T, names):
    """The statement's loop runs inside no_grad: the switch is thrown once, as a program does."""

    def make():
        t = timeit.Timer("g + h", "import gc; gc.enable()", globals=names())

        class Quiet:
            def timeit(self, n):
                with T.no_grad():
                    return t.timeit(n)

        return Quiet()

    return make


def rows(T):
    """{row: () -> (statement, names) or a callable}; names are made when the row is first asked for."""

    def one():
        n = {"T": T, "a": T.full((1,), 1.0), "b": T.full((1,), 2.0), "add": T.add}
        return n

    def with_int():
        return {**one(), "i": T.full((1,), 1, dtype=T.int64)}

    def with_grad():
        return {"g": T.full((1,), 1.0).requires_grad_(), "h": T.full((1,), 2.0).requires_grad_()}

    def st(text, names):
        return lambda: (text, names())

    r = {
        FLOORS[0]: st("pass", dict),
        FLOORS[1]: st("f(p, q)", lambda: {"f": operator.is_, "p": 1, "q": 2}),
        FLOORS[2]: st("p + q", lambda: {"p": 1.5, "q": 2.5}),
        "a + b": st("a + b", one),
        "add(a, b)": st("add(a, b)", one),
        "a.add(b)": st("a.add(b)", one),
        "a + 1.0": st("a + 1.0", one),
        "a * b": st("a * b", one),
        "int64 + float32": st("i + a", with_int),
        "a.add_(b)": st("a.add_(b)", one),
        "add(a, b, out=c)": st("add(a, b, out=c)", lambda: {**one(), "c": T.full((1,), 0.0)}),
        "g + h, recorded": st("g + h", with_grad),
        "g + h under no_grad": without_grad(T, with_grad),
        "(g + h).backward()": st("(g + h).backward()", with_grad),
        "ten operators, 100 elements": st("f(x, a, b)", lambda: chain(T)),
        "ten operators, recorded": st("f(xg, a, b)", lambda: chain(T)),
        "ten operators, with backward": st("f(xg, a, b).sum().backward()", lambda: chain(T)),
        "a.shape": st("a.shape", one),
        "a.item()": st("a.item()", one),
        "a[0]": st("a[0]", one),
        "a.view(-1)": st("a.view(-1)", one),
        "a.sum()": st("a.sum()", one),
        "relu(a)": st("relu(a)", lambda: {**one(), "relu": T.relu}),
        "m @ m, 2 x 2": st("m @ m", lambda: {"m": T.ones(2, 2)}),
        "torch.empty(1)": st("empty(1)", lambda: {"empty": T.empty}),
        "torch.zeros(1)": st("zeros(1)", lambda: {"zeros": T.zeros}),
        "torch.tensor(1.0)": st("tensor(1.0)", lambda: {"tensor": T.tensor}),
        "Linear(8, 8)(x)": lambda: linear(T),
        "MLP 8-16-1, Adam step": lambda: adam_step(T),
    }
    return r


def verdict(target, ns, ratio):
    """(what the target says, "ok", "over" or "")."""
    if not target:
        return "", ""
    words, over = [], False
    if "ns" in target:
        words.append(f"{target['ns']} ns")
        over |= ns is None or ns > target["ns"]
    if "ratio" in target:
        words.append(f"1/{1 / target['ratio']:.0f}")
        over |= ratio is None or ratio > target["ratio"]
    return ", ".join(words), "over" if over else "ok"


def show(x):
    return "-" if x is None else f"{x:.1f}" if x < 1000 else f"{x:.0f}"


def show_ratio(ratio):
    return "-" if ratio is None else f"1/{1 / ratio:.1f}" if ratio < 1 else f"{ratio:.2f}"


def main():
    ap = benchlib.arguments(__doc__, rounds=15, seconds=0.02)
    args = ap.parse_args()
    if args.worker:
        benchlib.pin_worker()
        T = importlib.import_module(args.worker)
        if hasattr(T, "set_num_threads"):
            T.set_num_threads(1)
        return benchlib.serve(rows(T))
    names = [n for n in rows_names() if args.only in n or n in FLOORS]
    workers = benchlib.start(args, __file__, 1, {0})
    got = benchlib.alternate(workers, names, args.seconds, args.rounds)
    under, other = args.modules.split(",")[0], args.modules.split(",")[-1]
    print(f"{'row':<36} {under + ' ns':>11} {other + ' ns':>11} {'ratio':>8} {'best':>9} {'best':>9}  {'target':<12}")
    data, over = [], 0
    for n in names:
        a, b = (benchlib.median(got[n][m]) for m in (under, other))
        ratio = a / b if a and b else None
        words, mark = verdict(TARGETS.get(n), a, ratio)
        over += mark == "over"
        best = [min(got[n][m]) if got[n][m] else None for m in (under, other)]
        errors = {w.module: w.errors[n] for w in workers if n in w.errors}
        print(
            f"{n:<36} {show(a):>11} {show(b):>11} {show_ratio(ratio):>8} {show(best[0]):>9} {show(best[1]):>9}  "
            f"{words:<12} {mark}{'  '.join(f' {m}: {e}' for m, e in errors.items())}"
        )
        data.append(
            {
                "row": n,
                under: a,
                other: b,
                "ratio": ratio,
                "best": best,
                "target": TARGETS.get(n),
                "verdict": mark,
                "errors": errors,
            }
        )
    for w in workers:
        w.close()
    benchlib.write_json(args, "bench_overhead", {"rounds": args.rounds, "seconds": args.seconds, "rows": data})
    return 1 if args.strict and over else 0


def rows_names():
    """The rows' names without a module: rows() touches T only inside its thunks, but for two plain attributes."""
    return list(rows(None))


if __name__ == "__main__":
    sys.exit(main())

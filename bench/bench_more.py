#!/usr/bin/env python3
"""Rows that the peer benchmark lacks, Ember and PyTorch 2.13 in turns: kernels of odd sizes, small calls of a training loop.

One process a module, one thread, both on processor 0, short bursts in turns; CPU time, medians. --page docs/benchmarks.md
rewrites the section `## More rows` at the end of that page.

  EMBER_ORACLE=/path/to/venv/bin/python .venv/bin/python bench/bench_more.py [--rounds 9] [--only fft]
"""
import importlib
import os
import sys
import time
import timeit

import benchlib

TARGETS = {"cross_entropy 512x65": 1.0, "softmax 512x1024, half of it masked": 1.0, "stack of 64 x 10": 0.5, "nn.Module call, empty": 0.5,
           "clip_grad_norm_, 20 x 32": 0.5, "Adam step, 20 x 32": 0.2, "TensorDataset by 50, 1000 x 8": 0.5}
HEADING = "## More rows"


def rows(T):
    """{row: () -> (statement, names) or a callable}."""

    def sub(name):
        return importlib.import_module(f"{T.__name__}.{name}")

    def masked():
        return T.randn(512, 1024).masked_fill(T.rand(512, 1024) < 0.5, float("-inf"))

    def parameters(count):
        made = [T.randn(32).requires_grad_() for _ in range(count)]
        for p in made:
            p.grad = T.randn(32)
        return made

    def grid():
        return {"f": sub("nn.functional").grid_sample, "x": T.randn(4, 16, 64, 64), "g": T.rand(4, 64, 64, 2) * 2 - 1}

    def empty():
        class Empty(sub("nn").Module):
            def forward(self, x):
                return x

        return {"m": Empty(), "x": T.ones(1)}

    def loader():
        data = sub("utils.data")
        batches = data.DataLoader(data.TensorDataset(T.randn(1000, 8), T.randn(1000)), batch_size=50, shuffle=True)

        def run():
            for _ in batches:
                pass

        return run

    f = lambda name, **more: lambda: {"f": getattr(sub("nn.functional"), name), **{k: v() for k, v in more.items()}}  # noqa: E731
    made = {
        "log_softmax 512x65": ("f(x, 1)", f("log_softmax", x=lambda: T.randn(512, 65))),
        "softmax 512x65": ("f(x, 1)", f("softmax", x=lambda: T.randn(512, 65))),
        "softmax 512x1024, half of it masked": ("f(x, 1)", f("softmax", x=masked)),
        "cross_entropy 512x65": ("f(x, t)", f("cross_entropy", x=lambda: T.randn(512, 65), t=lambda: T.randint(0, 65, (512,)))),
        "mean of 14x14 planes, 32x128": ("x.mean((2, 3))", lambda: {"x": T.randn(32, 128, 14, 14)}),
        "amax of rows, 1024x1024": ("x.amax(1)", lambda: {"x": T.randn(1024, 1024)}),
        "amax of rows, 4096x64": ("x.amax(1)", lambda: {"x": T.randn(4096, 64)}),
        "rfft 64x256": ("f(x)", lambda: {"f": sub("fft").rfft, "x": T.randn(64, 256)}),
        "rfft 64x1000": ("f(x)", lambda: {"f": sub("fft").rfft, "x": T.randn(64, 1000)}),
        "fft 64x127": ("f(x)", lambda: {"f": sub("fft").fft, "x": T.randn(64, 127, dtype=T.complex64)}),
        "fft 64x1024": ("f(x)", lambda: {"f": sub("fft").fft, "x": T.randn(64, 1024, dtype=T.complex64)}),
        "irfft 64x1024": ("f(x)", lambda: {"f": sub("fft").irfft, "x": T.randn(64, 513, dtype=T.complex64)}),
        "rfft2 8x256x256": ("f(x)", lambda: {"f": sub("fft").rfft2, "x": T.randn(8, 256, 256)}),
        "grid_sample 4x16x64x64, bilinear": ("f(x, g, align_corners=False)", grid),
        "grid_sample 4x16x64x64, bicubic": ("f(x, g, 'bicubic', align_corners=False)", grid),
        "stack of 64 x 10": ("f(l)", lambda: {"f": T.stack, "l": [T.randn(10) for _ in range(64)]}),
        "tolist of 1000": ("x.tolist()", lambda: {"x": T.randn(1000)}),
        "nn.Module call, empty": ("m(x)", empty),
        "clip_grad_norm_, 20 x 32": ("f(p, 1.0)", lambda: {"f": sub("nn.utils").clip_grad_norm_, "p": parameters(20)}),
        "Adam step, 20 x 32": ("o.step()", lambda: {"o": sub("optim").Adam(parameters(20), lr=1e-6)}),
    }
    return {**{name: (lambda row: lambda: (row[0], row[1]()))(row) for name, row in made.items()},
            "TensorDataset by 50, 1000 x 8": loader}


class CpuRows(dict):
    """The same rows timed by the process's CPU time, which a busy machine disturbs less."""

    def __getitem__(self, name):
        def make():
            row = dict.__getitem__(self, name)()
            statement, names = row if isinstance(row, tuple) else (row, None)
            return timeit.Timer(statement, "import gc; gc.enable()", globals=names, timer=time.process_time)

        return make


def section(found):
    text = [HEADING, "", "Written by bench/bench_more.py: CPU time of one thread, both modules in turns in one run, medians.", "",
            "| what | PyTorch us | Ember us | ratio | target |  |", "| --- | ---: | ---: | ---: | ---: | --- |"]
    for name, ours, theirs, ratio, target in found:
        mark = "above" if ratio is None or ratio > target else ""
        show = lambda v: "-" if v is None else f"{v / 1e3:.4g}"  # noqa: E731
        text.append(f"| {name} | {show(theirs)} | {show(ours)} | {'-' if ratio is None else f'{ratio:.2f}'} | {target} | {mark} |")
    return "\n".join(text) + "\n"


def main():
    ap = benchlib.arguments(__doc__, rounds=9, seconds=0.01)
    ap.add_argument("--page", help="file whose last section is rewritten")
    args = ap.parse_args()
    if args.worker:
        benchlib.pin_worker()
        T = importlib.import_module(args.worker)
        T.set_num_threads(1)
        return benchlib.serve(CpuRows(rows(T)))
    names = [n for n in rows(None) if args.only in n]
    workers = benchlib.start(args, os.path.abspath(__file__), 1, {0})
    got = benchlib.alternate(workers, names, args.seconds, args.rounds)
    under, other = args.modules.split(",")[0], args.modules.split(",")[-1]
    found = []
    for n in names:
        a, b = (benchlib.median(got[n][m]) for m in (under, other))
        found.append((n, a, b, a / b if a and b else None, TARGETS.get(n, 1.3)))
    for w in workers:
        for row, why in w.errors.items():
            print(f"{row}: {w.module}: {why}", file=sys.stderr)
        w.close()
    text = section(found)
    print(text)
    if args.page:
        with open(args.page, encoding="utf-8") as file:
            before = file.read().split(HEADING)[0].rstrip()
        with open(args.page, "w", encoding="utf-8") as file:
            file.write(before + "\n\n" + text)
    benchlib.write_json(args, "bench_more", {"rows": [dict(zip(("row", under, other, "ratio", "target"), r)) for r in found]})
    return 1 if args.strict and any(r[3] is None or r[3] > r[4] for r in found) else 0


if __name__ == "__main__":
    sys.exit(main())

#!/usr/bin/env python3
"""Runs under the oracle (real PyTorch): takes OpInfo's samples, runs them, writes one pickle an operator.

  .venv-oracle/bin/python tests/parity/make_samples.py --cache .cache/parity [--op add]

Each pickle holds {"op", "records": [..], "skipped": [..]} in plain Python (see codec.py): the arguments with their
exact layout, and what every form of the call gave. It is made again only when its inputs changed: the hash of this
folder's sources, the operator's line in ops.txt, the cap and torch's version is part of the file's name.
"""

import argparse
import glob
import hashlib
import os
import pickle
import random
import sys
import time
import zlib

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE)
os.environ.setdefault("OMP_NUM_THREADS", "1")

import codec  # noqa: E402
import own_samples  # noqa: E402
from runner import observe  # noqa: E402

DTYPES = ("f32", "f64", "i64", "bool", "bf16", "c64")
SOURCES = ("codec.py", "calls.py", "runner.py", "make_samples.py", "own_samples.py", "creation.txt", "programs.txt")
FORMAT = 1


def op_lines():
    """[(OpInfo name, call path, flags)] of ops.txt."""
    with open(os.path.join(HERE, "ops.txt")) as f:
        rows = [line.split() for line in f if line.strip() and not line.startswith("#")]
    return [(r[0], r[1], tuple(r[2:])) for r in rows]


def file_of(cache, name, spec, version, cap):
    h = hashlib.sha256(repr((FORMAT, name, spec, version, cap)).encode())
    for s in SOURCES:
        if s not in ("own_samples.py", "creation.txt", "programs.txt") or name.startswith(own_samples.PREFIXES):
            with open(os.path.join(HERE, s), "rb") as f:
                h.update(f.read())
    return os.path.join(cache, f"{name}-{h.hexdigest()[:16]}.pkl")


def spread(items, cap):
    """At most cap of the items, first and last included, evenly spread."""
    n = len(items)
    if n <= cap:
        return items
    return [items[i * (n - 1) // (cap - 1)] for i in range(cap)] if cap > 1 else items[:1]


def seed_all(torch, seed):
    import numpy as np

    torch.manual_seed(seed)
    random.seed(seed)
    np.random.seed(seed % 2**32)


class Maker:
    def __init__(self, torch, info, call, flags):
        self.torch, self.info, self.call, self.flags = torch, info, call, flags
        self.name = info.name + ("." + info.variant_test_name if info.variant_test_name else "")
        self.records, self.skipped = [], []

    def record(self, short, sample):
        enc = codec.Encoder(self.torch)
        args = [enc.value(sample.input)] + [enc.value(a) for a in sample.args]
        kwargs = [(k, enc.value(v)) for k, v in sample.kwargs.items()]
        i = len(self.records)
        return {
            "op": self.name,
            "dtype": short,
            "i": i,
            "call": self.call,
            "flags": self.flags,
            "args": args,
            "kwargs": kwargs,
            "storages": enc.storages,
            "seed": zlib.crc32(f"{self.name}{i}".encode()) & 0x7FFFFFFF,
        }

    def forms(self, rec, first, expected):
        """The forms worth trying, now that the outcome of the call is known."""
        info, out, ok = self.info, ["call"], "ok" in expected
        if not ok:
            return out
        tensor_first = rec["args"] and rec["args"][0][0] == "in"
        if any(t["requires_grad"] for t in leaves(expected["ok"])):
            out.append("grad")
        call_name = rec["call"].rpartition(".")[2]
        if tensor_first and info.method_variant is not None and not rec["call"].startswith(("Tensor.", "@")):
            out.append("method:" + method_name(info.method_variant, call_name))
        if info.operator_variant is not None and not rec["kwargs"] and len(rec["args"]) == 2:
            out.append("operator:" + info.operator_variant.__name__)
        out += ["alias:" + a.name for a in info.aliases if not rec["call"].startswith(("Tensor.", "@"))]
        if tensor_first and "rand" not in self.flags:
            if info.inplace_variant is not None:
                name = method_name(info.inplace_variant, info.name + "_")
                out.append("inplace:" + name)
                if rec["args"][0][-1]:
                    out.append("inplace_grad:" + name)
        outs = leaves(expected["ok"])
        if info.supports_out and outs and "rand" not in self.flags and not rec["call"].startswith("Tensor."):
            rec["out_meta"] = [(t["dtype"], t["shape"], t["strides"]) for t in outs]
            rec["out_tuple"] = expected["ok"][0] in ("tuple", "list")
            out += ["out:same", "out:empty", "out:strided"] + (["out:dtype", "out:grad"] if first else [])
        return out

    def add(self, short, sample, first, want_error=False):
        try:
            rec = self.record(short, sample)
        except codec.Unsupported as e:
            self.skipped.append((short, str(e)))
            return False
        rec["forms"] = ["call"]
        call = observe(self.torch, rec)
        if "setup" in call:
            self.skipped.append((short, "oracle cannot rebuild it: " + call["setup"]["err"][1]))
            return False
        rec["error_input"] = want_error
        rec["forms"] = self.forms(rec, first, call["call"])
        got = observe(self.torch, rec)
        rec["forms"] = [f for f in rec["forms"] if not absent(f, got[f])]
        rec["expected"] = {
            f: ({"like": "call"} if f != "call" and got[f] == got["call"] else got[f]) for f in rec["forms"]
        }
        self.records.append(rec)
        return True

    def samples(self, short, cap):
        torch, info = self.torch, self.info
        dtype = getattr(torch, codec.SHORT[short])
        if not info.supports_dtype(dtype, "cpu"):
            return
        seed_all(torch, zlib.crc32(f"{self.name}/{short}".encode()))
        grad = (
            (dtype.is_floating_point or dtype.is_complex)
            and info.supports_autograd
            and dtype in info.supported_backward_dtypes("cpu")
        )
        first, samples = True, list(info.sample_inputs("cpu", dtype, requires_grad=grad))
        for s in spread(samples, cap):
            first = not self.add(short, s, first) and first
        for s in spread(samples, cap // 5):
            for twin in (lambda x: x.noncontiguous(), self.permuted, self.expanded):
                self.add_twin(short, s, twin)

    def add_twin(self, short, sample, twin):
        """The same call with its tensors laid out otherwise; None where the layout makes no difference."""
        try:
            s = twin(sample)
        except (RuntimeError, TypeError) as e:  # OpInfo cannot spread this one (overlapping, or no tensor)
            self.skipped.append((short, "no strided twin: " + str(e).split("\n")[0]))
            return
        if s is not None:
            self.add(short, s, False)

    def permuted(self, sample):
        """Every tensor of two or more dimensions with its first and last dimension swapped in memory."""
        changed = []

        def swap(t):
            if not isinstance(t, self.torch.Tensor) or t.dim() < 2:
                return t
            d = t.detach()
            changed.append(t)
            return d.transpose(0, -1).contiguous().transpose(0, -1).requires_grad_(t.requires_grad)

        s = sample.transform(swap)
        return s if changed else None

    def expanded(self, sample):
        """The first argument's first row, repeated without memory of its own (stride 0)."""
        x = sample.input
        if not isinstance(x, self.torch.Tensor) or x.dim() == 0 or x.shape[0] < 2:
            return None
        s = sample.transform(lambda t: t)
        s.input = x.detach()[:1].clone().expand(x.shape).requires_grad_(x.requires_grad)
        return s

    def errors(self):
        if self.info.error_inputs_func is None:
            return
        seed_all(self.torch, zlib.crc32(f"{self.name}/errors".encode()))
        for e in self.info.error_inputs("cpu"):
            self.add("errors", e.sample_input, False, want_error=True)


def leaves(e):
    if e[0] == "out":
        return [e[1]]
    return [t for x in e[1] for t in leaves(x)] if e[0] in ("list", "tuple") else []


def method_name(variant, fallback):
    """A variant's method name; OpInfo gives some as lambdas."""
    name = getattr(variant, "__name__", "")
    return name if name.isidentifier() and name != "<lambda>" else fallback


def absent(form, outcome):
    """A spelling that real PyTorch itself does not have for these arguments says nothing about Ember."""
    return form.split(":")[0] in ("method", "operator", "alias") and "err" in outcome


def own(torch, name):
    records = []
    for i, (short, flags, code) in enumerate(own_samples.samples(name)):
        rec = {
            "op": name,
            "dtype": short,
            "i": i,
            "call": name,
            "flags": flags,
            "code": code,
            "forms": ["call"],
            "storages": [],
            "args": [],
            "kwargs": [],
            "error_input": False,
        }
        rec["expected"] = observe(torch, rec)
        records.append(rec)
    return {"op": name, "records": records, "skipped": []}


def main():
    ap = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    ap.add_argument("--cache", default=os.path.join(HERE, "..", "..", ".cache", "parity"))
    ap.add_argument("--op", action="append", default=[], help="only this operator (may be given again)")
    ap.add_argument("--cap", type=int, default=40, help="samples per operator and dtype (default 40)")
    args = ap.parse_args()
    import torch

    torch.set_num_threads(1)
    os.makedirs(args.cache, exist_ok=True)
    todo = [(n, (p, f)) for n, p, f in op_lines()] + [(n, ("own", ())) for n in own_samples.GROUPS]
    todo = [(n, s) for n, s in todo if not args.op or n in args.op]
    missing = [(n, s, file_of(args.cache, n, s, torch.__version__, args.cap)) for n, s in todo]
    index = {n: f for n, _, f in missing}
    missing = [m for m in missing if not os.path.exists(m[2])]
    infos = {}
    if any(s[0] != "own" for _, s, _ in missing):
        from torch.testing._internal.common_methods_invocations import op_db

        infos = {o.name + ("." + o.variant_test_name if o.variant_test_name else ""): o for o in op_db}
    for k, (name, spec, path) in enumerate(missing):
        if sys.stderr.isatty():
            print(f"\r\033[Koracle {k + 1}/{len(missing)} {name}", end="", file=sys.stderr, flush=True)
        if spec[0] == "own":
            data = own(torch, name)
        else:
            m = Maker(torch, infos[name], *spec)
            for short in DTYPES:
                m.samples(short, args.cap)
            m.errors()
            data = {"op": name, "records": m.records, "skipped": m.skipped}
        with open(path + ".new", "wb") as f:
            pickle.dump(data, f, protocol=4)
        os.replace(path + ".new", path)
        for old in glob.glob(os.path.join(args.cache, glob.escape(name) + "-" + "[0-9a-f]" * 16 + ".pkl")):
            if old != path and time.time() - os.path.getmtime(old) > 86400:  # another run may be using it
                os.remove(old)
    if sys.stderr.isatty() and missing:
        print("\r\033[K", end="", file=sys.stderr)
    for name, path in index.items():
        print(f"{name}\t{path}")


if __name__ == "__main__":
    main()

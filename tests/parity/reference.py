#!/usr/bin/env python3
"""Runs under the oracle (real PyTorch): calls of samples again in double precision, to say who is nearer the truth.

  .venv-oracle/bin/python tests/parity/reference.py JOBS.json

JOBS.json: [{"samples": pickle of an operator, "out": pickle to write, "forms": {sample: [form, ..]}}, ..]. Every float of
the arguments, the cotangents, dtype= and out= becomes float64 (complex128); what came out is written as {sample: {form:
outcome}}. Samples that draw random numbers, and programs, have no such twin and are left out.
"""

import json
import os
import pickle
import sys

import numpy as np

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE)

import codec  # noqa: E402
from runner import observe  # noqa: E402

WIDE = {"float16": "float64", "bfloat16": "float64", "float32": "float64", "complex64": "complex128"}


def widen(dtype, data):
    return codec.array(dtype, data).astype(codec.NUMPY[WIDE[dtype]]).tobytes() if dtype in WIDE else data


def widen_value(e, storages, kinds):
    """An encoded argument with its floats widened; kinds gathers which dtypes look at each storage."""
    if e[0] == "in":
        kinds.setdefault(e[1], set()).add(e[2])
        return (e[0], e[1], WIDE.get(e[2], e[2]), *e[3:])
    if e[0] == "dtype":
        return ("dtype", WIDE.get(e[1], e[1]))
    if e[0] in ("list", "tuple", "size"):
        return (e[0], [widen_value(x, storages, kinds) for x in e[1]], *e[2:])
    if e[0] == "dict":
        return ("dict", [(k, widen_value(v, storages, kinds)) for k, v in e[1]])
    return e


def twin(rec):
    """The record in double precision; None where it has none."""
    if "code" in rec or "seed" in rec["flags"] and dict(rec["kwargs"]).get("dropout_p") != ("py", 0.0):
        return None
    kinds, storages = {}, rec["storages"]
    new = {
        **rec,
        "args": [widen_value(a, storages, kinds) for a in rec["args"]],
        "kwargs": [(k, widen_value(v, storages, kinds)) for k, v in rec["kwargs"]],
    }
    if any(len(k) > 1 and k & set(WIDE) for k in kinds.values()):
        return None  # one storage seen as two dtypes
    new["storages"] = [widen(min(kinds[s]), b) if s in kinds else b for s, b in enumerate(storages)]
    new["cotangents"] = {
        k: [(WIDE.get(d, d), shape, widen(d, b)) for d, shape, b in v] for k, v in rec.get("cotangents", {}).items()
    }
    if "out_meta" in rec:
        new["out_meta"] = [(WIDE.get(d, d), *rest) for d, *rest in rec["out_meta"]]
    return new


def main():
    import torch

    torch.set_num_threads(1)
    torch.set_default_dtype(torch.float64)
    with open(sys.argv[1]) as f:
        jobs = json.load(f)
    for job in jobs:
        with open(job["samples"], "rb") as f:
            records = pickle.load(f)["records"]
        out = {}
        for i, forms in job["forms"].items():
            t = twin(records[int(i)])
            if t:
                with np.errstate(all="ignore"):
                    out[int(i)] = observe(torch, t, forms)
        with open(job["out"], "wb") as f:
            pickle.dump(out, f, protocol=4)


if __name__ == "__main__":
    main()

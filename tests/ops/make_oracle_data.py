"""Writes oracle_data.py: what real PyTorch answers about dtypes, promotion and gradients of the table's samples.

    EMBER_TEST_MODULE=torch /path/to/oracle/python tests/ops/make_oracle_data.py
"""
import os

import torch
from makers import Maker
from subject import DTYPES, flat, kind, map_args, operator
from table import TABLE


def attempt(entry, dtype, grad=False):
    """Runs every sample; True when all succeed (and, with grad, some result requires grad)."""
    needs = lambda t: t.requires_grad_() if grad and (t.is_floating_point() or t.is_complex()) else t  # noqa: E731
    recorded = False
    samples = list(entry.samples(Maker(entry.name, dtype)))
    try:
        for args, kwargs in samples:
            make = lambda arg: needs(arg.tensor(dtype)) if arg.diff else arg.tensor(dtype)  # noqa: E731
            args, kwargs = map_args(args, make), map_args(kwargs, make)
            if grad and entry.name.split(".")[0].endswith("_") and isinstance(args[0], torch.Tensor):
                args = (args[0].clone(), *args[1:])
            result = operator(entry.name)(*args, **kwargs)
            if any(isinstance(r, torch.Tensor) and r.dtype == torch.complex32 for r in flat(result)):
                return False  # a dtype that Ember does not have
            recorded = recorded or any(isinstance(r, torch.Tensor) and r.requires_grad for r in flat(result))
    except RuntimeError:
        return False
    return recorded or not grad


def letters():
    """One letter a dtype, in the order of DTYPES."""
    return dict(zip(DTYPES, "?BbhilegfdFD"))


def promotion():
    code = dict(letters(), complex32=".")  # half precision with a complex number: a dtype that Ember does not have
    kinds = {"tensor with tensor": lambda d: torch.ones(2, dtype=getattr(torch, d)),
             "tensor with 0-dim tensor": lambda d: torch.ones((), dtype=getattr(torch, d))}
    tables = {}
    for title, second in kinds.items():
        tables[title] = ["".join(code[str(torch.result_type(torch.ones(2, dtype=getattr(torch, a)), second(b)))[6:]]
                                 for b in DTYPES) for a in DTYPES]
    numbers = {"bool": True, "int": 1, "float": 1.5, "complex": 1j}
    tables["tensor with number"] = ["".join(code[str(torch.result_type(torch.ones(2, dtype=getattr(torch, a)), n))[6:]]
                                            for n in numbers.values()) for a in DTYPES]
    tables["0-dim tensor with number"] = ["".join(code[str(torch.result_type(torch.ones((), dtype=getattr(torch, a)),
                                                                             n))[6:]] for n in numbers.values())
                                          for a in DTYPES]
    return tables


def main():
    lines = [
    '"""Made by make_oracle_data.py from PyTorch %s: not to be edited."""' %
     torch.__version__.split("+")[0], "# lint: table", ""]
    lines += ["# A letter a dtype:", "LETTERS = {"]
    lines += [f'    "{c}": "{d}",' for d, c in letters().items()] + ["}"]
    for title, options in (("DTYPES", {}), ("GRADIENTS", {"grad": True})):
        lines += [f"{title} = {{"]
        for name, entry in TABLE.items():
            wanted = DTYPES if title == "DTYPES" else ("float64", "complex128")
            known = operator(name) is not None
            if known:
                taken = [d for d in wanted if kind(d) in entry.kinds and attempt(entry, d, **options)]
                lines += [f'    "{name}": "{"".join(letters()[d] for d in taken)}",']
        lines += ["}"]
    lines += ["# Rows: the first operand's dtype, in the order of subject.DTYPES; columns: the second's."]
    lines += ["PROMOTION = {"]
    for title, rows in promotion().items():
        lines += [f'    "{title}": ['] + [f'        "{row}",  # {dtype}' for row,
            dtype in zip(rows, DTYPES)] + ["    ],"]
    lines += ["}", ""]
    path = os.path.join(os.path.dirname(os.path.abspath(__file__)), "oracle_data.py")
    with open(path, "w", encoding="utf-8") as file:
        file.write("\n".join(lines))


if __name__ == "__main__":
    main()

"""Which operator is the in-place or out= form of another: read from the schemas."""
import functools
import os
import sys

from subject import IS_EMBER, operator, schema_of, torch

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "..", "..", "gen"))
import schema as schemas  # noqa: E402  the generator's reader of the schema language

FACTORY = {"dtype", "layout", "device", "pin_memory", "memory_format"}


def overloads(base):
    """Full names of every overload of `base`."""
    if IS_EMBER:
        names = torch._C._overloads("aten", base)
    else:
        packet = getattr(torch.ops.aten, base, None)
        names = packet.overloads() if packet else []
    return [base if name in ("", "default") else f"{base}.{name}" for name in names]


@functools.lru_cache(None)
def parsed(full):
    """None for a schema with types that no row has (PyTorch's TorchScript overloads)."""
    try:
        return schemas.parse(schema_of(full))
    except schemas.RowError:
        return None


def inputs(schema):
    return schema and [(a.name, a.type.base, a.type.is_list) for a in schema.args
            if not (a.kwarg_only and a.type.mutated) and a.name not in FACTORY]


def outs(full):
    return parsed(full) and [a.name for a in parsed(full).args if a.kwarg_only and a.type.mutated]


def inplace_of(name):
    """`add.Tensor` -> `add_.Tensor`: the overload of the in-place name that takes the same inputs."""
    base, _, overload = name.partition(".")
    same = [full for full in overloads(base + "_") if inputs(parsed(full)) == inputs(parsed(name))]
    return next((full for full in same if full.partition(".")[2] == overload), same[0] if same else None)


def out_of(name):
    """`sum.dim_IntList` -> `sum.IntList_out`: the overload with the same inputs and written keyword arguments."""
    for full in overloads(name.split(".")[0]):
        if outs(full) and inputs(parsed(full)) == inputs(parsed(name)):
            return full
    return None

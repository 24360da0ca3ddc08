"""Writes tests/api/schemas.txt with PyTorch's own Python: every schema that both have, and a digest of its arguments and tags.

    /path/to/oracle/python tests/api/make_schemas.py OPERATORS      a file of names: aten::add.Tensor, one a line
"""
import hashlib
import os
import sys

import importlib

torch = importlib.import_module(os.environ.get("EMBER_TEST_MODULE", "torch"))


def facts(schema):
    """What the attributes of a schema's arguments and results say."""
    rows = []
    for a in [*schema.arguments, *schema.returns]:
        alias = a.alias_info
        rows.append((a.name, str(a.type), str(a.real_type), a.type.kind(), repr(a.default_value), a.has_default_value(), a.kwarg_only,
                     a.N, a.is_out, a.is_write,
                     None if alias is None else (alias.is_write, sorted(alias.before_set), sorted(alias.after_set))))
    return schema.name, schema.overload_name, schema.is_mutable, len(schema.arguments), rows


def line(full):
    """`digest digest schema`, or None for an operator that is not there."""
    name, _, overload = full.partition(".")
    try:
        schema = torch._C._get_schema(name, overload)
    except RuntimeError:
        return None
    op = getattr(getattr(torch.ops.aten, name.removeprefix("aten::")), overload or "default")
    digests = [hashlib.sha1(repr(x).encode()).hexdigest()[:8] for x in (facts(schema), sorted(t.name for t in op.tags))]
    return f"{digests[0]} {digests[1]} {schema}"


if __name__ == "__main__":
    with open(sys.argv[1], encoding="utf-8") as file:
        lines = [line(name.strip()) for name in file]
    with open(os.path.join(os.path.dirname(os.path.abspath(__file__)), "schemas.txt"), "w", encoding="utf-8") as file:
        file.write("\n".join(sorted((x for x in lines if x), key=lambda x: x.split(" ", 2)[2])) + "\n")

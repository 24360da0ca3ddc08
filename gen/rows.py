"""rows.py: reads ops/*.yaml into Row and Op objects, with file and line for every row, and refuses bad ones.

A Row is what a person wrote. Each row has one Op a form: functional, in-place, out=. Emitters work on these.
"""
import copy
import os
import re
from dataclasses import dataclass, field

import yaml

from schema import Arg, Ret, RowError, Schema, Type, parse

KINDS = ("pointwise", "reduction", "check", "view", "views", "composite", "native", "alias")
FIELDS = set(KINDS) | {
    "func", "variants", "forms", "python_module", "hot", "doc", "out", "out_overload", "inplace_overload", "tags", "cpu", "fallible",
    "promotion", "complex", "integer", "bool", "dtypes", "out_dtype", "dispatch", "data_shape", "factory", "samples", "ref", "grain",
    "contiguous_out", "out_exact", "out_layout", "out_unnamed", "shape", "args", "example",
    "promote", "masks", "operands", "mode", "mode_error", "cases", "guard", "inplace_guard", "out_guard", "when_absent", "absent", "loops",
    "reduce", "spread", "unversioned", "meta", "manual_python", "autograd", "kernel_name", "inplace_check", "nondeterministic"}


class LineLoader(getattr(yaml, "CSafeLoader", yaml.SafeLoader)):
    """SafeLoader whose mappings carry the line they began on, and which refuses a key given twice."""


def _mapping(loader, node):
    seen = set()
    for key, _ in node.value:
        if key.value in seen:
            raise RowError(f"{os.path.basename(node.start_mark.name)}:{key.start_mark.line + 1}: key '{key.value}' is given twice")
        seen.add(key.value)
    out = yaml.SafeLoader.construct_mapping(loader, node, deep=True)
    out["__line__"] = node.start_mark.line + 1
    return out


LineLoader.add_constructor(yaml.resolver.BaseResolver.DEFAULT_MAPPING_TAG, _mapping)


def load_yaml(path):
    with open(path) as f:
        try:
            return yaml.load(f, LineLoader)
        except yaml.YAMLError as e:
            mark = getattr(e, "problem_mark", None)
            where = f"{os.path.basename(path)}:{mark.line + 1}" if mark else os.path.basename(path)
            raise RowError(f"{where}: {getattr(e, 'problem', e)}") from None


@dataclass
class Op:
    """One operator: one form of a row."""
    schema: Schema
    variant: str           # functional, inplace, out
    row: "Row" = None

    @property
    def name(self): return self.schema.name
    @property
    def overload(self): return self.schema.overload
    @property
    def full(self): return self.schema.full
    @property
    def cname(self): return self.schema.cname
    @property
    def args(self): return self.schema.args
    @property
    def returns(self): return self.schema.returns
    @property
    def where(self): return self.row.where
    @property
    def outs(self): return [a for a in self.args if a.out]
    @property
    def ins(self): return [a for a in self.args if not a.out]

    @property
    def typed_returns(self):
        """Returns that are out-parameters of the typed function: none for in-place and out= forms."""
        return self.returns if self.variant == "functional" else []

    @property
    def out_names(self):
        n = len(self.typed_returns)
        return ["out"] if n == 1 else [f"out{i}" for i in range(n)]


@dataclass
class Row:
    fields: dict
    file: str
    line: int
    kind: str
    ops: dict = field(default_factory=dict)  # form -> Op

    @property
    def where(self): return f"{self.file}:{self.line}"
    @property
    def functional(self): return self.ops.get("functional") or next(iter(self.ops.values()))
    @property
    def variants(self): return self.fields.get("variants", "function")
    @property
    def hot(self): return bool(self.fields.get("hot"))

    def fail(self, message):
        raise RowError(f"{self.where}: {self.fields.get('func', '?').split('(')[0]}: {message}")


def _words(value):
    return [w.strip() for w in value.split(",")] if isinstance(value, str) else list(value or [])


def make_inplace(s, row):
    o = copy.deepcopy(s)
    o.name += "_"
    if "inplace_overload" in row.fields:
        o.overload = row.fields["inplace_overload"]
    if not o.args or o.args[0].type.base != "Tensor" or o.args[0].type.is_list:
        row.fail("an in-place form needs a Tensor as its first argument")
    o.args[0].type.alias = "a!"
    o.returns = [Ret(Type("Tensor", alias="a!"))]
    return o


def make_out(s, row):
    o = copy.deepcopy(s)
    o.overload = row.fields.get("out_overload") or ("out" if s.overload in ("", "Tensor") else s.overload + "_out")
    names = _words(row.fields.get("out")) or (["out"] if len(s.returns) == 1 else [f"out{i}" for i in range(len(s.returns))])
    if len(names) != len(s.returns):
        row.fail(f"'out:' names {len(names)} tensors, the schema returns {len(s.returns)}")
    for i, (n, r) in enumerate(zip(names, s.returns)):
        letter = chr(ord("a") + i)
        if r.type.base != "Tensor" or r.type.is_list:
            row.fail("an out form needs Tensor results")
        o.args.append(Arg(n, Type("Tensor", alias=letter + "!"), None, True, True))
        o.returns[i] = Ret(Type("Tensor", alias=letter + "!"), "" if row.fields.get("out_unnamed") else r.name)
    o.args = [a for a in o.args if a.name not in ("dtype", "layout", "device", "pin_memory") or not row.fields.get("factory")]
    return o


def _row(fields, file):
    line = fields.pop("__line__")
    where = f"{file}:{line}"
    if "func" not in fields:
        raise RowError(f"{where}: a row needs 'func:'")
    unknown = [k for k in fields if k not in FIELDS]
    if unknown:
        raise RowError(f"{where}: unknown field '{unknown[0]}' (known: {', '.join(sorted(FIELDS))})")
    kinds = [k for k in KINDS if k in fields]
    if len(kinds) != 1:
        raise RowError(f"{where}: a row has exactly one of {', '.join(KINDS)}; this one has {', '.join(kinds) or 'none'}")
    row = Row(fields, file, line, kinds[0])
    try:
        s = parse(fields["func"])
    except RowError as e:
        row.fail(str(e))
    default = "functional, inplace, out" if row.kind in ("pointwise", "alias") else "functional"
    written = "inplace" if s.args and s.args[0].type.mutated and s.name.endswith("_") else "functional"
    if any(a.type.mutated and a.kwarg_only for a in s.args):
        written = "out"
        for a in s.args:
            a.out = a.type.mutated and a.kwarg_only
    if written != "functional":
        row.ops[written] = Op(s, written, row)
        return row
    for form in _words(fields.get("forms", default)):
        if form == "functional":
            row.ops[form] = Op(s, form, row)
        elif form == "inplace":
            row.ops[form] = Op(make_inplace(s, row), form, row)
        elif form == "out":
            row.ops[form] = Op(make_out(s, row), form, row)
        else:
            row.fail(f"unknown form '{form}' (known: functional, inplace, out)")
    if row.kind == "check" and "cpu" not in fields:
        row.fail("a structured row needs 'cpu:', its kernel")
    if not re.match(r"^[a-z_]\w*$", s.name):
        row.fail(f"'{s.name}' is not an operator name")
    return row


def load_rows(ops_dir):
    """All rows of native_functions.yaml and native_*.yaml, in file order."""
    rows, seen = [], {}
    files = sorted(f for f in os.listdir(ops_dir) if re.match(r"native_\w+\.yaml$", f))
    for f in files:
        for fields in load_yaml(os.path.join(ops_dir, f)) or []:
            if not isinstance(fields, dict):
                raise RowError(f"{f}: a row is a mapping, got '{fields}'")
            row = _row(fields, f)
            for op in row.ops.values():
                if op.full in seen:
                    row.fail(f"{op.full} is also made by {seen[op.full]}")
                seen[op.full] = row.where
            rows.append(row)
    return rows

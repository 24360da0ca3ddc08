"""emit_stubs.py: what type checkers read about operators, from the rows: the package's stub (ember/__init__.pyi, after the
hand-written part in gen/stubs.pyi)."""
import keyword
import os
import re

TYPES = {"Tensor": "Tensor", "Scalar": "Number", "int": "_int", "SymInt": "_int", "float": "_float", "bool": "_bool", "str": "builtins.str",
         "ScalarType": "_dtype", "Layout": "_layout", "Device": "_device | builtins.str | _int", "MemoryFormat": "_memory_format",
         "Generator": "Generator"}
DUNDERS = {"add": "__add__ __radd__ __iadd__", "sub": "__sub__ __rsub__ __isub__", "mul": "__mul__ __rmul__ __imul__",
           "div": "__truediv__ __rtruediv__ __itruediv__", "floor_divide": "__floordiv__ __rfloordiv__ __ifloordiv__",
           "remainder": "__mod__ __rmod__ __imod__", "pow": "__pow__ __rpow__ __ipow__", "matmul": "__matmul__ __rmatmul__",
           "bitwise_and": "__and__ __rand__ __iand__", "bitwise_or": "__or__ __ror__ __ior__", "bitwise_xor": "__xor__ __rxor__ __ixor__",
           "lt": "__lt__", "le": "__le__", "gt": "__gt__", "ge": "__ge__"}
UNARY = ("__neg__", "__pos__", "__abs__", "__invert__")


# ---------------------------------------------------------------- signatures
def _type(arg, numbers):
    t = arg.type
    base = TYPES.get(t.base)
    if base is None:
        return None  # a Dimname: no tensor has names
    if t.base == "Tensor" and numbers and not t.is_list and not t.optional:
        base = "Tensor | Number"
    if t.is_list:
        item = f"{base} | None" if t.item_optional else base
        base = f"Sequence[{item}]" + (f" | {TYPES[t.base]}" if t.size and t.base != "Tensor" else "")
    return base + (" | None" if t.optional else "")


def _named(op):
    """Name of the class of results with names, or None."""
    names = [r.name for r in op.returns]
    return "_" + "_".join(names) if len(names) > 1 and all(names) and op.variant == "functional" else None


def _result_classes(rows):
    classes = {}
    for row in rows:
        for op in row.ops.values():
            if _named(op):
                classes[_named(op)] = [f"class {_named(op)}(NamedTuple):"] + [
                    f"    {r.name}: {'tuple[Tensor, ...]' if r.type.is_list else TYPES.get(r.type.base, 'Any')}" for r in op.returns]
    return [line for _, lines in sorted(classes.items()) for line in lines]


def _returns(op):
    if _named(op):
        return _named(op)
    kinds = [("tuple[Tensor, ...]" if r.type.is_list else TYPES.get(r.type.base, "Any")) for r in op.returns]
    return "None" if not kinds else kinds[0] if len(kinds) == 1 else f"tuple[{', '.join(kinds)}]"


def _name(arg, method):
    if arg.name == "self" and not method:
        return "input"
    return arg.name + "_" if keyword.iskeyword(arg.name) else arg.name


def signatures(op, method):
    """[(parameters, result)] of an operator as Python sees it; several when sizes may come one by one."""
    numbers = op.row.kind in ("pointwise", "alias")
    parts, star, optional = ["self"] if method else [], False, False
    ins = [a for a in op.ins if not (method and a.name == "self")]
    for a in ins:
        kind = _type(a, numbers and a.name != "self")
        if kind is None:
            return []
        if a.kwarg_only and not star:
            parts.append("*")
            star = True
        optional = a.default is not None or optional and not star
        parts.append(f"{_name(a, method)}: {kind}" + (" = ..." if optional else ""))
    extra = []
    outs = op.row.ops.get("out")
    if op.variant == "functional" and outs and not method:
        extra.append("out: Tensor | None = ..." if len(outs.outs) == 1 else "out: Sequence[Tensor] | None = ...")
    if op.row.fields.get("factory") and not method:
        extra.append("requires_grad: _bool = ...")
    tail = ([] if star or not extra else ["*"]) + extra
    result = "Self" if op.variant == "inplace" and method else _returns(op)
    result = "Tensor" if result == "Self" else result
    all_of_them = [(", ".join(parts + tail), result)]
    first = next(iter(ins), None)
    if first is not None and first.type.is_list and first.type.base in ("int", "SymInt") and not first.type.size:
        rest = [p for p in parts[2 if method else 1:] if p != "*"]
        rest = [p if "=" in p else p + " = ..." for p in rest]
        all_of_them.append((", ".join((["self"] if method else []) + [f"*{_name(first, method)}: _int"] + rest + extra), result))
    return all_of_them


def _defs(name, overloads, indent):
    lines = []
    for parameters, result in dict.fromkeys(overloads):
        if len(dict.fromkeys(overloads)) > 1:
            lines.append(f"{indent}@overload")
        lines.append(f"{indent}def {name}({parameters}) -> {result}: ...")
    return lines


def _operators():
    lines = []
    for names in DUNDERS.values():
        lines += [f"    def {name}(self, other: Any) -> Tensor: ..." for name in names.split()]
    return lines + [f"    def {name}(self) -> Tensor: ..." for name in UNARY]


def _written(head):
    """Names that the hand-written part has: of Tensor, of the module."""
    methods, functions = set(), set()
    for line in head:
        words = line.strip().split("(")[0].split()
        if line.lstrip().startswith("def "):
            (methods if line.startswith(" ") else functions).add(words[1])
        elif not line.startswith(" ") and ":" in line and line[:1].isidentifier():
            functions.add(line.split(":")[0])
    return methods, functions


def stub(rows, names):
    with open(os.path.join(os.path.dirname(os.path.abspath(__file__)), "stubs.pyi"), encoding="utf-8") as file:
        head = file.read().split("\n")
    methods, functions = _written(head)
    found = {1: [], 2: []}
    for (name, bit), ops in sorted(names.items()):
        if bit not in found or name in (methods if bit == 2 else functions) or keyword.iskeyword(name):
            continue
        overloads = [s for op in ops if op.variant != "out" for s in signatures(op, bit == 2)]
        found[bit] += _defs(name, overloads, "    " if bit == 2 else "")
    out = []
    for line in head:
        if line.strip() == "# -- results with names":
            out += _result_classes(rows)
        elif line.strip() == "# -- operators":
            out += _operators()
        elif line.strip() == "# -- methods of the rows":
            out += found[2]
        elif line.strip() == "# -- functions of the rows":
            out += found[1]
        else:
            out.append(line)
    return "\n".join(out)


MODULES = {"linalg": (8, "linalg_"), "special": (16, "special_"), "fft": (32, "fft_")}
SHARED = ("Number", "Tensor", "Generator", "_int", "_float", "_bool", "_dtype", "_device", "_layout", "_memory_format")


def _functions(names, bit, prefix, indent):
    lines = []
    for (name, where), ops in sorted(names.items()):
        if where == bit and not keyword.iskeyword(name.removeprefix(prefix)):
            overloads = [s for op in ops if op.variant != "out" for s in signatures(op, False)]
            for line in _defs(name.removeprefix(prefix), overloads, indent):
                lines += [f"{indent}@staticmethod", line] if indent and not line.lstrip().startswith("@") else [line]
    return lines


def _imports(lines):
    """The head of a module's stub: the types that its lines name."""
    text = "\n".join(lines)
    used = [n for n in SHARED if re.search(rf"\b{n}\b", text)] + sorted(set(re.findall(r"-> (_[A-Za-z]\w*): \.\.\.", text)) - set(SHARED))
    return ["# Written by gen/emit_stubs.py from the rows.", "from collections.abc import Sequence", "from typing import Any, overload",
            "import builtins", "", f"from . import {', '.join(used)}", ""]


def emit(rows, ops_dir):
    from emit_python import collect
    names = collect(rows)
    files = {"__init__.pyi": stub(rows, names)}
    inner = []
    for module, (bit, prefix) in {"nn": (4, ""), **MODULES}.items():
        inner += [f"class _{module}:", *_functions(names, bit, "", "    "), ""]
    classes = "from . import Size as Size, Tensor as Tensor, device as device, dtype as dtype, layout as layout"
    files["_C.pyi"] = "\n".join([*_imports(inner), classes, *inner, "def __getattr__(name: builtins.str) -> Any: ...", ""])
    for module, (bit, prefix) in MODULES.items():
        lines = _functions(names, bit, prefix, "")
        if module == "linalg":
            lines = ["class LinAlgError(RuntimeError): ...", *lines]
        files[f"{module}.pyi"] = "\n".join([*_imports(lines), *lines, ""])
    return files, {}

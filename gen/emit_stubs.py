"""emit_stubs.py: what people and type checkers read about operators, from the rows: the package's stub (ember/__init__.pyi, after
the hand-written part in gen/stubs.pyi), `help(ember.add)`, and the reference in docs/ops."""
import keyword
import os

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


# ---------------------------------------------------------------- words
KIND_WORDS = {
    "pointwise": "operands broadcast against each other; the result has the broadcast shape",
    "reduction": "`dim` is reduced (all dimensions without one) and kept with size 1 when `keepdim`",
    "check": "checked before anything is computed; meta tensors tell the result's",
    "view": "the result shares the bytes of its argument", "views": "the results share the bytes of their argument",
    "composite": "as the operators it is made of ask", "native": "any that the arguments' meaning allows",
}
ERRORS = {
    "pointwise": "RuntimeError: sizes that do not broadcast. NotImplementedError: a dtype that it has no loop for",
    "reduction": "IndexError: a dim out of range. RuntimeError: a dim given twice, a dtype that it does not reduce",
    "view": "IndexError: a dim out of range. RuntimeError: sizes or strides that no view of these bytes can have",
    "views": "IndexError: a dim out of range. RuntimeError: sizes that do not add up",
}
UNSAID = "RuntimeError, IndexError or TypeError in the words of PyTorch, before anything is computed"
DTYPE_WORDS = {"int": "integers", "float": "floating point", "complex": "complex", "bool": "bool"}


def _dtypes(row):
    f = row.fields
    given = f.get("dtypes")
    given = [w.strip() for w in given.split(",")] if isinstance(given, str) else given
    if given is None and row.kind == "pointwise":
        given = ["int", "float"] + (["complex"] if f.get("complex") else [])
    if given is None:
        return "those of its arguments' meaning (floating point for mathematics)"
    words = ", ".join(DTYPE_WORDS.get(w, w) for w in given)
    promotion = {"int_to_float": "; integers become the default floating point dtype", "bool_out": "; the result is bool",
                 "complex_to_real": "; complex arguments give real results"}.get(f.get("promotion"), "")
    return words + promotion


def describe(name, ops):
    """What help() says, a line each."""
    row, lines = ops[0].row, []
    if row.kind == "alias":
        row = ALIASES.get(str(row.fields["alias"]), row)
    if row.fields.get("doc"):
        lines += [row.fields["doc"], ""]
    lines += [str(op.schema) for op in ops]
    shapes, errors = KIND_WORDS.get(row.kind, KIND_WORDS["native"]), ERRORS.get(row.kind, UNSAID)
    if row.kind == "pointwise" and sum(a.type.base == "Tensor" for a in row.functional.ins) == 1:
        shapes, errors = "the result has the shape of its argument", "NotImplementedError: a dtype that it has no loop for"
    lines += ["", f"Shapes: {shapes}.", f"Dtypes: {_dtypes(row)}.",
              f"Errors: {errors}."]
    if any(op.variant == "out" for op in ops):
        lines.append("out=: must have the result's shape or be empty, and a dtype that the result can be cast to.")
    return lines


ALIASES = {}


def learn(rows):
    ALIASES.clear()
    for row in rows:
        op = row.functional
        ALIASES[op.name + (f".{op.overload}" if op.overload else "")] = row


def reference(rows, names):
    """{file name: text}: one page a yaml file, each operator once."""
    learn(rows)
    places = {1: "ember", 2: "Tensor", 4: "ember._C._nn", 8: "ember.linalg", 16: "ember.special", 32: "ember.fft"}
    pages, by_op = {}, {}
    for (name, bit), ops in names.items():
        by_op.setdefault(name, ({}, []))[0][bit] = ops
    for name, (where, _) in sorted(by_op.items()):
        ops = next(iter(where.values()))
        page = ops[0].row.file.replace("native_", "").replace(".yaml", "")
        text = [f"## {name}", "",
                "As " + ", ".join(f"`{places[bit]}.{name}`" for bit in sorted(where)) + f"; row `{ops[0].row.where}`.", "",
                "```"]
        lines = describe(name, ops)
        cut = lines.index("") if "" in lines else len(lines)
        text += [line for line in lines[:cut]] + ["```", ""] + [f"- {line}" for line in lines[cut + 1:]] + [""]
        pages.setdefault(page, []).append("\n".join(text))
    files = {f"{page}.md": f"# Operators of {page}\n\nWritten by `make docs-ops` from the rows in ops/.\n\n" + "\n".join(parts)
             for page, parts in pages.items()}
    index = [f"- [{page}]({page}.md): {len(parts)} names" for page, parts in sorted(pages.items())]
    files["README.md"] = "# Operators\n\nWritten by `make docs-ops` from the rows in ops/.\n\n" + "\n".join(index) + "\n"
    return files


def emit(rows, ops_dir):
    from emit_python import collect
    learn(rows)
    return {"__init__.pyi": stub(rows, collect(rows))}, {}

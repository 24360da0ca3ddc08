"""emit_api.py: the C face of the operators: gen_api.h (every operator, explicit) and gen_short.h (operators as expressions).

A short form is named em_<name> for a name's plain overload, em_<name>_<overload> for the others. It takes the arguments that
PyTorch requires; where there are others, em_<name>_with takes them all. In-place operators return what they wrote. Operators
that return numbers have no short form: their explicit one says what went wrong.
"""
import re

from emit_ops import head, params
from schema import RowError, c_decl, c_type

NOT_GIVEN = {"em_tensor *": "NULL", "em_ints": "EM_INTS_NONE", "em_opt_int": "em_no_int()", "em_opt_double": "em_no_double()",
             "em_opt_bool": "-1", "em_scalar": "em_scalar_none()", "int": "-1", "em_device": "EM_DEVICE_NONE",
             "const char *": "NULL", "struct em_generator *": "NULL", "em_doubles": "EM_LIST(em_doubles, NULL, -1)",
             "em_tensors": "EM_LIST(em_tensors, NULL, 0)", "em_scalars": "EM_LIST(em_scalars, NULL, -1)",
             "em_bools": "EM_LIST(em_bools, NULL, -1)"}
ENUMS = {"contiguous_format": "EM_FORMAT_CONTIGUOUS", "preserve_format": "EM_FORMAT_PRESERVE", "long": "EM_I64",
         "float": "EM_F32", "bool": "EM_BOOL", "Mean": "1", "Sum": "2", "strided": "0"}


PLAIN = {"": 0, "Tensor": 1}  # overloads that have the plain name, first choice first; else the first row


def scalar_text(text):
    if text in ("True", "False"):
        return f"em_scalar_bool({text.lower()})"
    if re.match(r"^-?\d+$", text):
        return f"em_scalar_int({text})"
    return f"em_scalar_double({float(text)!r})"


def default_text(t, text):
    """C expression of a schema's default, as the typed convention passes it."""
    kind = c_type(t)
    if text in ("None", "none"):
        return NOT_GIVEN[kind]
    if t.is_list:
        m = re.match(r"^\[(.*)\]$", text)
        items = [x.strip() for x in m[1].split(",") if x.strip()] if m else [text] * (t.size or 1)
        item = {"em_ints": "int64_t", "em_bools": "uint8_t", "em_doubles": "double"}.get(kind)
        if item is None:
            raise RowError(f"default '{text}' of type {t} is not understood")
        values = ", ".join(x.lower() for x in items)
        if not items:
            return f"EM_LIST({kind}, NULL, 0)"
        return f"EM_INTS({values})" if kind == "em_ints" else f"({kind}){{(const {item}[]){{{values}}}, {len(items)}}}"
    if kind == "em_opt_int":
        return f"em_some_int({ENUMS.get(text, text)})"
    if kind in ("em_opt_double", "double"):
        number = repr(float(text)).replace("inf", "__builtin_inf()")
        return f"em_some_double({number})" if kind == "em_opt_double" else number
    if kind == "em_scalar":
        return scalar_text(text)
    if kind == "const char *":
        return '"' + text.strip("'\"") + '"'
    return ENUMS.get(text, text.lower() if kind in ("bool", "em_opt_bool") else text)


def needed(op):
    """C condition: some tensor that must be there is NULL."""
    return " || ".join(f"{a.name} == NULL" for a in op.args if a.type.base == "Tensor" and not a.type.is_list and not a.type.optional)


def short_params(op, args):
    """Parameters of a short form: these arguments, then second and later results as out-parameters."""
    p = [c_decl(a.type, a.name) for a in args]
    p += [f"em_tensor **{n}" for n in op.out_names[1:]] if op.variant == "functional" else []
    return ", ".join(p) or "void"


def body(op):
    """The statements of the form that takes every argument."""
    call = f"em_call_{op.cname}"
    guard = needed(op)
    if op.variant == "inplace":
        written = next(a.name for a in op.args if a.type.mutated)
        given = ", ".join(a.name for a in op.args)
        return (f"  if ({guard}) return NULL;\n" if guard else "") + f"  return em_scope_note({call}({given}), {written});\n"
    given, outs = ", ".join(a.name for a in op.args), op.out_names
    if op.returns[0].type.is_list:
        o = f"  if ({guard}) return EM_LIST(em_tensors, NULL, 0);\n" if guard else ""
        o += f"  em_tensor_list l_ = {{NULL, 0}};\n  em_status s_ = {call}({given}{', ' if given else ''}&l_);\n"
        return o + "  return em_scope_take_list(s_, &l_);\n"
    o = "".join(f"  *{n} = NULL;\n" for n in outs[1:])
    o += f"  if ({guard}) return NULL;\n" if guard else ""
    o += "".join(f"  em_tensor *r{i}_ = NULL;\n" for i in range(len(outs)))
    places = ", ".join(f"&r{i}_" for i in range(len(outs)))
    o += f"  em_status s_ = {call}({given}{', ' if given else ''}{places});\n"
    o += "".join(f"  *{n} = em_scope_take(s_, r{i}_);\n" for i, n in enumerate(outs) if i)
    return o + "  return em_scope_take(s_, r0_);\n"


def has_short(op):
    if op.variant == "inplace":
        return len(op.returns) == 1 and op.returns[0].type.base == "Tensor" and not op.returns[0].type.is_list
    if op.variant != "functional" or not op.returns:
        return False
    lists = [r.type.is_list for r in op.returns]
    return all(r.type.base == "Tensor" for r in op.returns) and (not any(lists) or len(lists) == 1)


def short_form(op, name):
    """One operator's short forms."""
    result = "em_tensors" if op.variant == "functional" and op.returns[0].type.is_list else "em_tensor *"
    space = "" if result.endswith("*") else " "
    required = [a for a in op.args if a.default is None]
    o = f"// {op.schema}\n"
    full = name if len(required) == len(op.args) else name + "_with"
    o += f"static inline {result}{space}{full}({short_params(op, op.args)}) {{\n{body(op)}}}\n"
    if full != name:
        given = ", ".join([a.name if a.default is None else default_text(a.type, a.default) for a in op.args]
                          + (op.out_names[1:] if op.variant == "functional" else []))
        o += f"static inline {result}{space}{name}({short_params(op, required)}) {{ return {full}({given}); }}\n"
    return o


def short_names(ops):
    """[(operator, name of its short form)] of those that have one."""
    shown, plain = [op for op in ops if has_short(op)], {}
    for op in shown:
        if PLAIN.get(op.overload, 2) < PLAIN.get(plain.setdefault(op.name, op).overload, 2):
            plain[op.name] = op
    for op in shown:
        name = op.name if op is plain[op.name] else op.cname
        if op is not plain[op.name] and name in plain:  # scatter.reduce beside scatter_reduce
            name = f"{op.name}_by_{op.overload}"
        yield op, f"em_{name}"


def emit_short(ops):
    o = [head("emit_api.py"), "#ifndef EMBER_GEN_SHORT_H\n#define EMBER_GEN_SHORT_H"]
    o += [short_form(op, name) for op, name in short_names(ops)]
    return "\n".join([*o, "#endif\n"])


def emit_declarations(ops):
    o = [head("emit_api.py"), "#ifndef EMBER_GEN_API_H\n#define EMBER_GEN_API_H\n#ifdef __cplusplus\nextern \"C\" {\n#endif"]
    for op in ops:
        o.append(f"// {op.schema}")
        o.append(f"EM_API em_status em_call_{op.cname}({params(op, ks=False)});")
    return "\n".join([*o, "#ifdef __cplusplus\n}\n#endif\n#endif\n"])


def emit(rows, ops_dir):
    """The generator's plugin interface: files, and no kernels."""
    ops = [op for row in rows for op in row.ops.values()]
    return {"gen_api.h": emit_declarations(ops), "gen_short.h": emit_short(ops)}, {}

"""emit_pointwise.py: pointwise rows -> loops (compiled once an instruction set), descriptors, CPU and Meta entries.

Fields of a pointwise row (gen/README.md explains them):
  pointwise   the expression; a list: one an output; with `mode`, a mapping from the mode's value to an
              expression or to fields
  integer, bool, complex   expressions for these loops where the general one does not fit
  promotion   default, int_to_float, bool_out, complex_to_real, float_to_real (both of the last: integers become floats)
  dtypes      accepted common dtypes: classes or names
  operands    the tensors in the order in which the iterator meets them, where it is not the schema's
  promote     Scalar arguments that join promotion as Python numbers do masks    bool tensors outside promotion
  mode        a str argument that selects the expression; mode_error: what to say of other values
  when_absent {argument: operator to run when it is None}
  absent      {optional float argument: C double that stands for None}
  guard       C call that raises errors first: check_add(self, alpha); inplace_guard, out_guard: for that form only
  kernel_name the name in '"x" not implemented for'                     loops    dtypes worth a loop of their own: [I32]
  reduce      an int argument (0 none, 1 mean, 2 sum) that says how the values are reduced: a loss
  spread      the same argument of the loss's derivative: grad_output is divided by the number of values when it is 1
  cases       [[condition on attributes, expression], ...]: loops for common attribute values, tried in order
"""

import re
from dataclasses import dataclass, field, replace

from emit_ops import head, params
from expr import C_TYPES, CPrinter, Node, Vocabulary, parse_expression, type_tree, used_names
from schema import c_decl, split_top

SLOTS = {
    "f32": "EM_CD_F32",
    "f64": "EM_CD_F64",
    "i64": "EM_CD_I64",
    "c64": "EM_CD_C64",
    "c128": "EM_CD_C128",
    "b8": "EM_CD_BOOL",
    "i32": "EM_CD_I32",
}
CLASSES = {
    "bool": ["BOOL"],
    "int": ["U8", "I8", "I16", "I32", "I64"],
    "float": ["F16", "F32", "F64", "BF16"],
    "complex": ["C64", "C128"],
}
LOOP_OF = {
    "BOOL": "i64",
    "U8": "i64",
    "I8": "i64",
    "I16": "i64",
    "I32": "i64",
    "I64": "i64",
    "F16": "f32",
    "BF16": "f32",
    "F32": "f32",
    "F64": "f64",
    "C64": "c64",
    "C128": "c128",
}
PROMOTIONS = {
    "default": "EM_PROMO_DEFAULT",
    "int_to_float": "EM_PROMO_INT_TO_FLOAT",
    "bool_out": "EM_PROMO_BOOL_OUT",
    "complex_to_real": "EM_PROMO_COMPLEX_TO_REAL",
    "float_to_real": "EM_PROMO_FLOAT_TO_REAL",
}
TO_REAL = ("complex_to_real", "float_to_real")
REAL = {"c64": "f32", "c128": "f64"}
KERNEL_FILES = 4


@dataclass
class Desc:
    """One descriptor: a row, or one mode of a row."""

    row: object
    cname: str
    fields: dict
    tensors: list  # operand names, in schema order
    masks: list
    attrs: list  # attribute names, in schema order
    promote: list
    loops: dict = field(default_factory=dict)  # loop type -> [typed tree an output]
    cases: dict = field(default_factory=dict)  # loop type -> [(typed condition, typed tree)]
    texts: list = field(default_factory=list)
    file: int = 0
    index: int = 0


def as_list(v):
    return [w.strip() for w in v.split(",")] if isinstance(v, str) else list(v or [])


def accepted(row, f):
    """Accepted common dtypes."""
    dtypes = []
    for word in as_list(f.get("dtypes", "int, float")):
        if word in CLASSES:
            dtypes += CLASSES[word]
        elif word in LOOP_OF:
            dtypes.append(word)
        else:
            row.fail(f"unknown dtype or class '{word}' in 'dtypes:' (classes: {', '.join(CLASSES)})")
    return dtypes


def build_desc(row, cname, f, vocabulary):
    args = row.functional.ins
    tensors = [a.name for a in args if a.type.base == "Tensor"]
    order = as_list(f.get("operands"))
    if order:
        if sorted(order) != sorted(tensors):
            row.fail(f"'operands:' must name each of {', '.join(tensors)} once")
        tensors = order
    texts = as_texts(f["pointwise"])
    every = [t for key in ("pointwise", "integer", "bool", "complex") if key in f for t in as_texts(f[key])]
    names = [a.name for a in args]
    cases = f.get("cases", [])
    if not all(isinstance(c, list) and len(c) == 2 for c in cases) or cases and len(texts) > 1:
        row.fail("'cases:' is a list of [condition on attributes, expression], for rows with one output")
    every += [str(t) for c in cases for t in c]
    trees = {t: parse_expression(t, names, vocabulary.arity, row.where) for t in every}
    used = set().union(*(used_names(t) for t in trees.values()))
    promote, masks = as_list(f.get("promote")), as_list(f.get("masks"))
    for n in promote + masks:
        if n not in names:
            row.fail(f"'{n}' is not an argument")
    attrs = [a.name for a in args if a.type.base != "Tensor" and (a.name in used or a.name in promote)]
    for a in args:
        if a.name in attrs and a.type.base not in ("Scalar", "float", "int", "bool"):
            row.fail(f"argument '{a.name}' of type {a.type} cannot be used in an expression")
    if len(tensors) > 5 or len(attrs) > 4:
        row.fail("at most 5 tensors and 4 attributes fit a pointwise row")
    promotion = f.get("promotion", "default")
    if promotion not in PROMOTIONS:
        row.fail(f"unknown promotion '{promotion}' (known: {', '.join(PROMOTIONS)})")
    d = Desc(row, cname, f, tensors, masks, attrs, promote, texts=texts)
    dtypes = accepted(row, f)
    want = {LOOP_OF[t] for t in dtypes if not (t == "BOOL" and "bool" in f)}
    if "bool" in f:
        want.add("b8")
    for extra in as_list(f.get("loops")):
        if extra != "I32":
            row.fail(f"no native loop for '{extra}' (known: I32)")
        want.add("i32")
    for loop in sorted(want):
        key = {"i64": "integer", "i32": "integer", "b8": "bool", "c64": "complex", "c128": "complex"}.get(
            loop, "pointwise"
        )
        types = {n: "flag" if n in masks else loop for n in tensors + attrs}
        result = "flag" if promotion == "bool_out" else REAL.get(loop, loop) if promotion in TO_REAL else loop
        d.loops[loop] = [
            type_tree(trees[t], loop, types, result, row.where, t) for t in as_texts(f.get(key, f["pointwise"]))
        ]
        if key == "pointwise" or key not in f:
            d.cases[loop] = [
                (
                    type_tree(trees[str(c)], loop, types, "flag", row.where, str(c)),
                    type_tree(trees[str(t)], loop, types, result, row.where, str(t)),
                )
                for c, t in cases
            ]
    for c, _ in cases:
        if not used_names(trees[str(c)]) <= set(attrs):
            row.fail(f"the condition '{c}' of a case may only use attributes")
    return d


def as_texts(v):
    return [str(t) for t in v] if isinstance(v, list) else [str(v)]


def modes_of(row):
    """[(mode value or None, fields)]: one descriptor each."""
    f = row.fields
    if "mode" not in f:
        return [(None, f)]
    if not isinstance(f["pointwise"], dict):
        row.fail("with 'mode:', 'pointwise:' maps each value to an expression")
    out = []
    for value, body in f["pointwise"].items():
        if value == "__line__":
            continue
        own = {k: v for k, v in (body if isinstance(body, dict) else {"pointwise": body}).items() if k != "__line__"}
        out.append((value, {**f, **own}))
    return out


# ---- loops ---------------------------------------------------------------------------------------------------------


def masks_supported(nin):
    return {1: [0], 2: [0, 1, 2], 3: [0, 1, 2, 4, 6]}.get(nin, [0])


def emit_function(name, sig, result, body):
    return f"static inline __attribute__((always_inline)) {result} {name}({sig}) {{ return {body}; }}"


TILE = 256  # elements whose hoisted calls are made at once


def hoisted(trees, loop, d, printer):
    """(trees without calls that array routines make faster, [(name, routine, the call's argument)]).

    A call that is only part of an expression, such as exp in x / (1 + exp(-x)): its argument goes to a tile, the
    routine runs over the tile, and the rest of the expression finds the result there under `name`.
    """
    found = {}

    def walk(n):
        n = replace(n, args=tuple(walk(a) for a in n.args))
        stem = printer.vocabulary.functions[n.value].get("array") if n.op == "call" and len(n.args) == 1 else None
        varies = set(d.tensors) | {name for name, _, _ in found.values()}
        if not stem or n.type != loop or n.args[0].type != loop or not names_in(n) & varies:
            return n
        name = found.setdefault(printer.print(n), (f"h{len(found)}", f"{stem}_{loop}", n.args[0]))[0]
        return Node("name", (), name, loop)

    return ([walk(t) for t in trees], list(found.values())) if loop == "f32" else (trees, [])


def names_in(n):
    return ({n.value} if n.op == "name" else set()).union(*map(names_in, n.args))


def emit_tiles(d, ins, tile, functions, types, loop, tail, indent):
    """The loops over one piece whose hoisted calls go through tiles. tile: (name, routine, function of its argument)."""
    pad, extra = " " * indent, []
    o = [f"{pad}for (int64_t at = 0; at < n; at += {TILE}) {{",
         f"{pad}  const int64_t m = n - at < {TILE} ? n - at : {TILE};"]
    for name, routine, function in tile:
        o.append(f"{pad}  {C_TYPES[loop]} {name}[{TILE}];")
        o += emit_runs(d, ins, [function], types, loop, tail, True, indent + 2, extra, name)
        o.append(f"{pad}  {routine}({name}, {name}, m);")
        extra = [*extra, name]
    return o + emit_runs(d, ins, functions, types, loop, tail, True, indent + 2, extra, None) + [f"{pad}}}"]


def emit_runs(d, ins, functions, types, loop, tail, pragma, indent, tiles=None, into=None):
    """The loops over one piece, one a broadcast mask. functions: the expression of each output.

    tiles: names of tiles that the functions take after the operands; into: the tile that is written instead of outputs.
    """
    o, supported = [], masks_supported(len(ins))
    pad, n, base = (" " * indent, "n", "") if tiles is None else (" " * indent, "m", "at + ")
    load = lambda k, at: f"p{k}[{at if at == 0 else base + at}]" + (" != 0" if loop == "b8" else "")
    store = lambda k: f"{into}[i]" if into else f"o{k}[{base}i]"
    tail = [f"{t}[i]" for t in tiles or []] + tail
    if len(supported) > 1:
        o.append(f"{pad}switch (bcast) {{")
    for m in supported:
        if len(supported) > 1:
            o.append(f"{pad}case {m}: {{")
        o += [f"{pad}  const {ty} {x} = {load(k, 0)};" for k, (x, ty) in enumerate(ins) if m >> k & 1]
        args = ", ".join([x if m >> j & 1 else load(j, "i") for j, (x, _) in enumerate(ins)] + tail)
        if pragma:
            o.append(f'{pad}  _Pragma("omp simd")')
        if len(functions) == 1:
            o.append(f"{pad}  for (int64_t i = 0; i < {n}; i++) {store(0)} = {functions[0]}({args});")
        else:
            stores = " ".join(f"{store(k)} = v{k};" for k in range(len(functions)))
            values = " ".join(f"const {types[k]} v{k} = {fn}({args});" for k, fn in enumerate(functions))
            o.append(
                f"{pad}  for (int64_t i = 0; i < {n}; i++) {{ {values} {stores} }}"
            )
        if len(supported) > 1:
            o.append(f"{pad}  break;\n{pad}}}")
    if len(supported) > 1:
        o.append(f"{pad}}}")
    return o


LOOP_NAMES = ("n", "i", "m", "at", "data", "bcast", "attr", "flags", "sticky")  # an argument of such a name gets a twist


def local(name):
    return name + "_" if name in LOOP_NAMES else name


def emit_loop(d, loop, printer):
    t, name = C_TYPES[loop], f"{d.cname}_{loop}"
    promotion = d.fields.get("promotion")
    kind = "flag" if promotion == "bool_out" else REAL.get(loop, loop) if promotion in TO_REAL else loop
    ot = [C_TYPES[kind]] * len(d.loops[loop])
    sticky = any("sticky" in printer.print(tree) for tree in d.loops[loop])
    own = [(n, "uint8_t" if n in d.masks else t) for n in d.tensors]
    ins = [(local(n), ty) for n, ty in own]
    whole = printer.vocabulary.array_call(d.loops[loop][0]) if len(ins) == 1 and len(ot) == 1 else None
    o = []

    def functions(trees, stem):
        """Defines the functions of an expression; returns the lines that run it."""
        trees, calls = hoisted(trees, loop, d, printer)
        tile, seen, attrs = [], [], [f"{t} {a}" for a in d.attrs] + (["uint32_t *sticky"] if sticky else [])
        for k, (h, routine, argument) in enumerate(calls):
            sig = ", ".join([f"{ty} {n}" for n, ty in own] + seen + attrs)
            o.append(emit_function(f"{stem}{h}_{name}", sig, t, printer.print(argument)))
            tile.append((h, routine, f"{stem}{h}_{name}"))
            seen.append(f"{t} {h}")
        sig = ", ".join([f"{ty} {n}" for n, ty in own] + seen + attrs)
        named = [f"{stem}{k}_{name}" for k in range(len(trees))]
        o.extend(emit_function(f, sig, ot[k], printer.print(trees[k])) for k, f in enumerate(named))
        tail = [local(a) for a in d.attrs] + (["sticky"] if sticky else [])
        return lambda indent: (emit_tiles(d, ins, tile, named, ot, loop, tail, indent) if tile
                               else emit_runs(d, ins, named, ot, loop, tail, not sticky, indent))

    run = None if whole else functions(d.loops[loop], "x")
    cases = [(printer.print(c), functions([b], f"case{k}_")) for k, (c, b) in enumerate(d.cases.get(loop, []))]
    o.append(f"static uint32_t {name}(char *const *data, uint32_t bcast, int64_t n, const void *attr) {{")
    o += [
        f"  const {t} {local(a)} = ((const {t} *)attr)[{k}]{' != 0' if loop == 'b8' else ''};" for k, a in enumerate(d.attrs)
    ]
    o += [f"  {c} *o{k} = ({c} *)data[{k}];" for k, c in enumerate(ot)]
    o += [f"  const {ty} *p{k} = (const {ty} *)data[{len(ot) + k}];" for k, (_, ty) in enumerate(ins)]
    if sticky:
        o.append("  uint32_t flags = 0, *sticky = &flags;")
    for test, case in cases:
        o.append(f"  if ({test}) {{")
        o += case(4)
        o.append("    return 0;\n  }")
    o += [f"  {whole}(o0, p0, n);"] if whole else run(2)
    o.append(f"  return {'flags' if sticky else '0'};\n}}")
    return "\n".join(o)


def emit_kernels(descs, number, vocabulary):
    printer = CPrinter(vocabulary)
    o = [
        head("emit_pointwise.py"),
        '#include "backend/cpu/isa.h"\n#include "backend/cpu/kernel_math.h"\n#include "dispatch/pointwise.h"\n',
    ]
    for d in descs:
        o.append(f"// {d.row.functional.full}: {' ; '.join(d.texts)}  [{d.row.where}]")
        o += [emit_loop(d, loop, printer) for loop in d.loops]
    o.append(f"\nconst em_pw_loop EM_ISA_NAME(em_priv_pw_{number})[{len(descs)}][EM_CD_COUNT] = {{")
    for d in descs:
        o.append("  {" + ", ".join(f"[{SLOTS[l]}] = {d.cname}_{l}" for l in d.loops) + "},")
    o.append("};\n")
    return "\n".join(o)


# ---- descriptors and entries ---------------------------------------------------------------------------------------


def bits(names, chosen):
    return sum(1 << i for i, n in enumerate(names) if n in chosen)


def emit_desc(d):
    f = d.fields
    dtypes = accepted(d.row, f)
    slots = []
    for t in LOOP_OF:
        loop = LOOP_OF[t]
        if t == "BOOL" and "b8" in d.loops:
            loop = "b8"
        elif t not in dtypes:
            slots.append(f"[EM_{t}] = EM_CD_NONE")
            continue
        elif t == "I32" and "i32" in d.loops:
            loop = "i32"
        slots.append(f"[EM_{t}] = {SLOTS[loop]}")
    promotion = f.get("promotion", "default")
    nout = len(d.texts)
    kernel = f.get("kernel_name", d.row.functional.name + "_cpu")
    return (
        f"  [PW_{d.cname}] = {{  // {d.row.where}\n"
        f'    .name = "{d.row.functional.full}", .kernel_name = "{kernel}",\n'
        f"    .nin = {len(d.tensors)}, .nout = {nout}, .nattr = {len(d.attrs)},\n"
        f"    .promotion = {PROMOTIONS[promotion]}, .mask = {bits(d.tensors, d.masks)}, "
        f".bool_out = {(1 << nout) - 1 if promotion == 'bool_out' else 0}, "
        f".promote_attr = {bits(d.attrs, d.promote)},\n"
        f"    .bcast = {sum(1 << m for m in masks_supported(len(d.tensors)))}, .slot = {{{', '.join(slots)}}}}},"
    )


def scalar_of(row, arg):
    if arg.type.base == "float" and arg.type.optional:
        default = (row.fields.get("absent") or {}).get(arg.name)
        if default is None:
            row.fail(f"'absent:' must say what stands for '{arg.name}' when it is None")
        return f"em_scalar_double({arg.name}.has ? {arg.name}.v : {default})"
    return {
        "Scalar": "{0}",
        "float": "em_scalar_double({0})",
        "int": "em_scalar_int({0})",
        "bool": "em_scalar_bool({0})",
    }[arg.type.base].format(arg.name)


def guard_call(text):
    m = re.match(r"^(\w+)\((.*)\)$", text.strip())
    return (m[1], split_top(m[2])) if m else (None, None)


def guard_prototype(name, args, types):
    parts = [c_decl(types[a].type, a) if a in types else "const char *message" for a in args]
    return f"em_status {name}({', '.join(parts)});"


def emit_choice(row, descs):
    """Statements that set `d`."""
    if "mode" not in row.fields:
        return [f"  const em_pw_desc *d = &em_pwd[PW_{descs[0][1].cname}];"]
    mode, o, word = row.fields["mode"], ["  const em_pw_desc *d = NULL;"], ""
    for value, d in descs:
        test = f"{mode} == NULL" if value is None else f'{mode} != NULL && strcmp({mode}, "{value}") == 0'
        o.append(f"  {word}if ({test}) d = &em_pwd[PW_{d.cname}];")
        word = "else "
    message = row.fields.get("mode_error", f"{row.functional.name}: unknown {mode} '%s'")
    tail = f', {mode} == NULL ? "None" : {mode}' if "%s" in message else ""
    o.append(f'  if (d == NULL) return em_fail(EM_ERR_RUNTIME, "{message}"{tail});')
    return o


def emit_loss(row, op, d, key, given):
    """The end of an entry whose values are reduced, or whose gradient is spread over them."""
    ins, meta = ", ".join(d.tensors), " | EM_ITER_META" if key == "meta" else ""
    if "spread" in row.fields:
        others = [t for t in d.tensors if t != op.args[0].name]
        grad, flags = op.args[0].name, "0" if op.variant == "functional" else "EM_ITER_OUT"
        run = f"em_pw_run(d, {flags}{meta}, (em_tensor *[]){{{ins}}}, attr, outs)"
        outs = "NULL" if op.variant == "functional" else given
        store = "  if (st == EM_OK) *out = outs[0];" if op.variant == "functional" else ""
        return [f"  EM_PASS(em_pw_spread({grad}, {row.fields['spread']}, (em_tensor *[]){{{', '.join(others)}}}, "
                f"{len(others)}, &{grad}));",
                f"  em_tensor *outs[] = {{{outs}}};", f"  em_status st = {run};",
                f"  em_tensor_release({grad});", store, "  return st;"]
    reduction = row.fields["reduce"]
    lines = ["  em_tensor *outs[] = {NULL};"]
    run = f"em_pw_run(d, 0{meta}, (em_tensor *[]){{{ins}}}, attr, outs)"
    if op.variant == "functional":
        fast = f"em_pw_fast2(d, {ins}, attr, &outs[0], &st)" if key == "cpu" and len(d.tensors) == 2 else "false"
        return [*lines, "  em_status st = EM_OK;", f"  if (!{fast}) st = {run};",
                f"  return st != EM_OK ? st : em_pw_reduce(outs[0], {reduction}, out);"]
    whole = f"em_pw_run(d, EM_ITER_OUT{meta}, (em_tensor *[]){{{ins}}}, attr, (em_tensor *[]){{{given}}})"
    return [f"  if ({reduction} == 0) return {whole};", *lines, f"  EM_PASS({run});",
            f"  return em_pw_reduce_out(outs[0], {reduction}, {given});"]


def emit_op(row, op, descs, by_name):
    """The entries of one form."""
    d = descs[0][1]
    by_arg = {a.name: a for a in op.args}
    o = [f"// {op.full}  [{row.where}]"]
    prologue = []
    for arg, other in (row.fields.get("when_absent") or {}).items():
        if arg == "__line__":
            continue
        target = by_name.get(other)
        if target is None or op.variant not in target.ops:
            row.fail(f"'when_absent:' names '{other}', which has no {op.variant} form here")
        rest = [a.name for a in op.ins if a.name != arg] + [a.name for a in op.args if a.out] + op.out_names
        missing = f"{arg} == NULL" if by_arg[arg].type.base == "Tensor" else f"!em_scalar_given({arg})"
        prologue.append((missing, target.ops[op.variant].cname, rest))
    guards = [row.fields[k] for k in ("guard", f"{op.variant}_guard") if k in row.fields]
    body = [f"  EM_PASS({g});" for g in guards]
    absent = lambda key: [f"  if ({m}) return em_{key}_{c}({', '.join(['ks', *rest])});" for m, c, rest in prologue]
    common = emit_choice(row, descs)
    attrs = ", ".join(scalar_of(row, by_arg[a]) for a in d.attrs) or "{.kind = EM_SCALAR_NONE}"
    common.append(f"  const em_scalar attr[] = {{{attrs}}};")
    ins = ", ".join(d.tensors)
    if op.variant == "functional":
        names = op.out_names
        common_outs = "  em_tensor *outs[] = {" + ", ".join(["NULL"] * len(names)) + "};"
        flags = "0"
        finish = [
            "  em_status st = em_pw_run(d, {flags}, (em_tensor *[]){{%s}}, attr, outs);" % ins,
            "  if (EM_LIKELY(st == EM_OK)) {{ %s }}" % " ".join(f"*{n} = outs[{k}];" for k, n in enumerate(names)),
            "  return st;",
        ]
    else:
        given = "self" if op.variant == "inplace" else ", ".join(a.name for a in op.outs)
        common_outs = f"  em_tensor *outs[] = {{{given}}};"
        flags = "EM_ITER_INPLACE" if op.variant == "inplace" else "EM_ITER_OUT"
        finish = ["  return em_pw_run(d, {flags}, (em_tensor *[]){{%s}}, attr, outs);" % ins]
    plain = len(d.tensors) in (1, 2) and not d.masks and len(d.texts) == 1
    fast = []
    if plain and op.variant == "functional":
        call = f"em_pw_fast{len(d.tensors)}(d, {ins}, attr, out, &fast)"
        fast = ["  em_status fast;", f"  if (EM_LIKELY({call})) return fast;"]
    elif plain and op.variant == "inplace":
        call = f"em_pw_inplace{len(d.tensors)}(d, {ins}, attr, &fast)"
        fast = ["  em_status fast;", f"  if (EM_LIKELY({call})) return fast;"]
    for key, extra in (("cpu", ""), ("meta", " | EM_ITER_META")):
        if "reduce" in row.fields or "spread" in row.fields:
            lines = body + common + emit_loss(row, op, d, key, ", ".join(a.name for a in op.outs))
            o.append(f"em_status em_{key}_{op.cname}({params(op)}) {{\n" + "\n".join(filter(None, lines)) + "\n}")
            continue
        lines = (
            body
            + absent(key)
            + common
            + (fast if key == "cpu" else [])
            + [common_outs]
            + [l.format(flags=flags + extra) for l in finish]
        )
        o.append(f"em_status em_{key}_{op.cname}({params(op)}) {{\n" + "\n".join(lines) + "\n}")
    return "\n".join(o)


def emit_entries(rows, descs, by_name):
    all_descs = [d for r in rows for _, d in descs[r.functional.full]]
    o = [
        head("emit_pointwise.py"),
        '#include "backend/cpu/isa.h"\n#include "dispatch/pointwise.h"\n#include "gen_ops.h"\n#include <string.h>\n',
    ]
    o.append("enum {\n" + "\n".join(f"  PW_{d.cname}," for d in all_descs) + "\n  PW_COUNT\n};\n")
    o.append("static em_pw_desc em_pwd[PW_COUNT] = {\n" + "\n".join(map(emit_desc, all_descs)) + "\n};\n")
    seen = set()
    for r in rows:
        for form, g in ((form, r.fields.get(form)) for form in ("guard", "inplace_guard", "out_guard")):
            if g is None:
                continue
            name, args = guard_call(g)
            types = {a.name: a for a in (r.ops["out"].args if form == "out_guard" else r.functional.ins)}
            if name is None or any(a not in types and not a.startswith('"') for a in args):
                r.fail(f"a guard is a C call over arguments, such as check_add(self, alpha); got '{g}'")
            if name not in seen:
                seen.add(name)
                o.append(
                    guard_prototype(name, args, types)
                )
    for r in rows:
        for op in r.ops.values():
            for key in ("cpu", "meta"):
                o.append(f"em_status em_{key}_{op.cname}({params(op)});")
    o.append("")
    for r in rows:
        o += [emit_op(r, op, descs[r.functional.full], by_name) for op in r.ops.values()]
    o.append("\n// The loops of the instruction set chosen at load.\ntypedef const em_pw_loop loop_row[EM_CD_COUNT];")
    body = []
    for k in range(KERNEL_FILES):
        mine = [d for d in all_descs if d.file == k]
        if mine:
            o.append(f"EM_ISA_DECLARE(loop_row, em_priv_pw_{k}, [{len(mine)}]);")
            body.append(f"  static const uint16_t rows_{k}[] = {{{', '.join('PW_' + d.cname for d in mine)}}};")
            body.append(
                f"  for (int i = 0; i < {len(mine)}; i++) em_pwd[rows_{k}[i]].loops = EM_ISA_PICK(em_priv_pw_{k})[i];"
            )
    o.append("__attribute__((constructor)) static void choose_loops(void) {\n" + "\n".join(body) + "\n}\n")
    return "\n".join(o)


def mode_suffix(row, value):
    return "" if "mode" not in row.fields else f"_mode_{value if value is not None else 'None'}"


def emit(rows, ops_dir):
    """({file: text}, {(op.cname, key): function})."""
    rows = [r for r in rows if r.kind == "pointwise"]
    vocabulary = Vocabulary(ops_dir)
    descs, number = {}, 0
    for r in rows:
        descs[r.functional.full] = []
        for value, f in modes_of(r):
            d = build_desc(r, r.functional.cname + mode_suffix(r, value), f, vocabulary)
            d.file = number % KERNEL_FILES
            number += 1
            descs[r.functional.full].append((value, d))
    by_name = {r.functional.full.split("::")[1]: r for r in rows}
    all_descs = [d for r in rows for _, d in descs[r.functional.full]]
    files = {"gen_pointwise.c": emit_entries(rows, descs, by_name)}
    for k in range(KERNEL_FILES):
        files[f"gen_pointwise_{k}.c"] = emit_kernels([d for d in all_descs if d.file == k], k, vocabulary)
    functions = {}
    for r in rows:
        for op in r.ops.values():
            functions[(op.cname, "CPU")] = f"em_cpu_{op.cname}"
            functions[(op.cname, "Meta")] = f"em_meta_{op.cname}"
    return files, functions

"""emit_reduction.py: reduction rows -> loops (compiled once an instruction set), descriptors, CPU and Meta entries.

A reduction row carries a mapping:
  state    {variable: initial value}, at most three variables; `index` ones hold int64
  index    the state variables that hold element indices
  step     {variable: expression} over the state, x (the element) and index: what one element does, simultaneously
  merge    {variable: expression} over the state (earlier elements) and its twin, named with _b (later elements)
  finish   one expression an output, over the state, n (elements reduced) and the row's attributes
  results  one word an output: same, index, bool, real. Default same
  dtype    same; sum (integers become int64); float (must be floating or complex); bool (uint8 stays uint8)
  loop     compute (default), double: accumulates in f64; bool: elements become truth values first
  dtypes   accepted dtypes, as in pointwise rows           kernel_name  as there
  empty    identity, or error: nothing to reduce raises     empty_dims   all, or none: what dim=[] means
  complex  {step, merge, finish} for complex loops, where they differ
  flatten  true: without dim, indices count the flattened tensor (argmax)
"""

from dataclasses import dataclass, field

from emit_ops import head, params
from emit_pointwise import CLASSES, LOOP_OF, SLOTS, as_list, guard_call, guard_prototype
from expr import C_TYPES, REAL_OF, CPrinter, Vocabulary, parse_expression, type_tree

KEYS = {
    "state",
    "index",
    "step",
    "merge",
    "finish",
    "results",
    "dtype",
    "loop",
    "dtypes",
    "kernel_name",
    "empty",
    "empty_dims",
    "flatten",
    "complex",
    "__line__",
}
KINDS = {"same": "EM_RED_SAME", "index": "EM_RED_INDEX", "bool": "EM_RED_BOOL", "real": "EM_RED_REAL"}
RULES = {
    "same": "EM_RED_DTYPE_SAME",
    "sum": "EM_RED_DTYPE_SUM",
    "float": "EM_RED_DTYPE_FLOAT",
    "bool": "EM_RED_DTYPE_BOOL",
}
ATTRS = ("correction",)  # Scalar arguments that finish may use, as doubles


@dataclass
class Reduction:
    row: object
    f: dict
    names: list  # state variables
    index: list
    loops: dict = field(default_factory=dict)  # loop type -> {(part, name): typed tree}
    dtypes: list = field(default_factory=list)
    attrs: list = field(default_factory=list)
    key: str = ""


def loop_of(dtype, f):
    how = f.get("loop", "compute")
    if how == "bool":
        return "b8"
    loop = LOOP_OF[dtype]
    return {"f32": "f64", "i64": "f64", "c64": "c128"}.get(loop, loop) if how == "double" else loop


def build(row, vocabulary):
    f = row.fields["reduction"]
    if not isinstance(f, dict):
        row.fail("'reduction:' is a mapping with state, step, merge and finish")
    unknown = [k for k in f if k not in KEYS]
    missing = [k for k in ("state", "step", "merge", "finish") if k not in f]
    if unknown or missing:
        row.fail(f"reduction: unknown key '{unknown[0]}'" if unknown else f"reduction: '{missing[0]}' is missing")
    names = [n for n in f["state"] if n != "__line__"]
    index = as_list(f.get("index"))
    r = Reduction(row, f, names, index, attrs=[a.name for a in row.functional.ins if a.name in ATTRS])
    if not 1 <= len(names) <= 3 or any(i not in names for i in index):
        row.fail("reduction: 1 to 3 state variables, and 'index' names some of them")
    for word in as_list(f.get("dtypes", "int, float")):
        if word not in CLASSES and word not in LOOP_OF:
            row.fail(f"unknown dtype or class '{word}' in 'dtypes:' (classes: {', '.join(CLASSES)})")
        r.dtypes += CLASSES.get(word, [word])
    for loop in sorted({loop_of(t, f) for t in r.dtypes}):
        r.loops[loop] = type_parts(r, loop, vocabulary)
    return r


def type_parts(r, loop, vocabulary):
    row = r.row
    f = {**r.f, **(r.f.get("complex", {}) if loop in REAL_OF else {})}
    state = {n: "i64" if n in r.index else loop for n in r.names}
    twin = {n + "_b": t for n, t in state.items()}
    parts = {}

    def add(part, name, text, types, result):
        tree = parse_expression(str(text), list(types), vocabulary.arity, row.where)
        parts[part, name] = type_tree(tree, loop, types, result, row.where, str(text))

    for n in r.names:
        # an index is typed as an integer loop's literal, so that `highest` means INT64_MAX
        tree = parse_expression(str(f["state"][n]), [], vocabulary.arity, row.where)
        parts["init", n] = type_tree(tree, state[n], {}, state[n], row.where, str(f["state"][n]))
        for part, types in (("step", {**state, "x": loop, "index": "i64"}), ("merge", {**state, **twin})):
            if n not in f[part]:
                row.fail(f"reduction: '{part}' does not say what becomes of '{n}'")
            add(part, n, f[part][n], types, state[n])
    outs = f["finish"] if isinstance(f["finish"], list) else [f["finish"]]
    for k, text in enumerate(outs):
        kind = results(r)[k]
        result = {"same": loop, "index": "i64", "bool": "b8", "real": REAL_OF.get(loop, loop)}[kind]
        add("finish", k, text, {**state, "n": "i64", **{a: "f64" for a in r.attrs}}, result)
    return parts


def results(r):
    words = as_list(r.f.get("results", "same"))
    outs = r.f["finish"] if isinstance(r.f["finish"], list) else [r.f["finish"]]
    if len(words) != len(outs) or any(w not in KINDS for w in words) or len(words) != len(r.row.functional.returns):
        r.row.fail(
            f"reduction: 'finish', 'results' ({', '.join(KINDS)}) and the schema's returns must agree in number"
        )
    return words


# ---- loops ---------------------------------------------------------------------------------------------------------


def emit_loops(r, loop, printer):
    parts, name = r.loops[loop], f"{r.key}_{loop}"
    ct = {n: C_TYPES["i64" if n in r.index else loop] for n in r.names}
    arrays = lambda src, const="", suffix="": [
        f"  {const}{ct[n]} *const s_{n}{suffix} = ({const}{ct[n]} *)({src} + {k} * EM_RED_VAR_BYTES);"
        for k, n in enumerate(r.names)
    ]
    reads = lambda suffix="": " ".join(f"const {ct[n]} {n}{suffix} = s_{n}{suffix}[j];" for n in r.names)
    o = [f"static void init_{name}(char *s, int64_t w) {{", *arrays("s")]
    o.append(
        "  for (int64_t j = 0; j < w; j++) { "
        + " ".join(f"s_{n}[j] = {printer.print(parts['init', n])};" for n in r.names)
        + " }\n}"
    )
    x = "p[j] != 0" if loop == "b8" else "p[j]"
    index = "      const int64_t index = first + j * index_lane;\n" if r.index else ""
    step = " ".join(f"const {ct[n]} new_{n} = {printer.print(parts['step', n])};" for n in r.names)
    store = " ".join(f"s_{n}[j] = new_{n};" for n in r.names)
    o.append(
        f"static inline __attribute__((always_inline)) void step_{name}(char *restrict s, const {C_TYPES[loop]} *restrict p, int64_t w, "
        "int64_t nrows, int64_t row_stride, "
        "int64_t first, int64_t index_row, int64_t index_lane) {"
    )
    o += arrays("s")
    o.append(
        "  (void)index_row, (void)index_lane;\n"
        '  for (int64_t r = 0; r < nrows; r++, p += row_stride, first += index_row) {\n    _Pragma("omp simd")\n'
        f"    for (int64_t j = 0; j < w; j++) {{\n{index}      const {C_TYPES[loop]} x = {x};\n"
        f"      {reads()}\n      {step}\n      {store}\n    }}\n  }}\n}}"
    )
    args = "nrows, row_stride, index, index_row, index_lane"
    o.append(
        f"static void rows_{name}(char *restrict s, const char *restrict x, int64_t w, int64_t nrows, int64_t row_stride, "
        "int64_t index, int64_t index_row, int64_t index_lane) {\n"
        f"  const {C_TYPES[loop]} *p = (const {C_TYPES[loop]} *)x;\n"
        f"  if (w == EM_RED_LANES) step_{name}(s, p, EM_RED_LANES, {args});  // a constant width vectorises best\n"
        f"  else step_{name}(s, p, w, {args});\n}}"
    )
    merge = " ".join(f"const {ct[n]} new_{n} = {printer.print(parts['merge', n])};" for n in r.names)
    o.append(f"static inline __attribute__((always_inline)) void merge_{name}(char *a, const char *b, int64_t w) {{")
    o += arrays("a") + arrays("b", "const ", "_b")
    o.append(
        f"  _Pragma(\"omp simd\")\n  for (int64_t j = 0; j < w; j++) {{\n    {reads()} {reads('_b')}\n"
        f"    {merge}\n    {store}\n  }}\n}}"
    )
    if has_segment(r, loop):
        lanes = "EM_RED_FOLDED(sizeof *acc)"
        at = lambda k: f"(char *)(acc + {k})"  # noqa: E731
        n = r.names[0]
        segment = [
            f"static void segment_{name}(char *s, const char *x, int64_t n) {{",
            f"  {C_TYPES[loop]} acc[EM_RED_LANES];",
            f"  const {C_TYPES[loop]} *p = (const {C_TYPES[loop]} *)x;",
            "  const int64_t rows = n / EM_RED_LANES, rest = n % EM_RED_LANES;",
            f"  _Pragma(\"omp simd\")\n  for (int64_t j = 0; j < EM_RED_LANES; j++) {{ const {C_TYPES[loop]} x = {x}; const {ct[n]} {n} = "
            f"{printer.print(parts['init', n])}; {step} acc[j] = new_{n}; }}",
            f"  step_{name}((char *)acc, p + EM_RED_LANES, EM_RED_LANES, rows - 1, EM_RED_LANES, 0, 0, 0);",
            f"  if (rest > 0) step_{name}((char *)acc, p + rows * EM_RED_LANES, rest, 1, 0, 0, 0, 0);",
            *(f"  if ({half} >= {lanes}) merge_{name}((char *)acc, {at(half)}, {half});" for half in (32, 16, 8)),
            f"  memcpy(s, acc, {lanes} * sizeof *acc);",
            "}",
        ]
        o += segment
    o.append(
        f"static void finish_{name}(const char *s, int64_t w, int64_t n, const double *attr, char *const *out) {{\n"
        "  (void)n, (void)attr;"
    )
    o += arrays("s", "const ")
    o += [f"  const double {a} = attr[{k}];" for k, a in enumerate(r.attrs)]
    kinds = [{"same": loop, "index": "i64", "bool": "b8", "real": REAL_OF.get(loop, loop)}[k] for k in results(r)]
    unused = " ".join(f"(void){n};" for n in r.names)
    writes = " ".join(
        f"(({C_TYPES[t]} *)out[{k}])[j] = {printer.print(parts['finish', k])};" for k, t in enumerate(kinds)
    )
    o.append(
        f"  for (int64_t j = 0; j < w; j++) {{\n    {reads()}\n    {unused}\n    {writes}\n  }}\n}}"
    )
    return "\n".join(o)


def has_segment(r, loop):
    """One variable of 4 or 8 bytes: the lanes of a short line fit into registers."""
    return len(r.names) == 1 and not r.index and SIZES[loop] in (4, 8) and not loop.startswith("c")


SIZES = {"f32": 4, "f64": 8, "i64": 8, "c64": 8, "c128": 16, "b8": 1}


def emit_kernels(reductions, vocabulary):
    printer = CPrinter(vocabulary)
    o = [
        head("emit_reduction.py"),
        '#include <string.h>\n#include "backend/cpu/isa.h"\n#include "backend/cpu/kernel_math.h"\n#include "dispatch/reduction.h"\n',
    ]
    for r in reductions:
        o.append(f"// {r.row.functional.full}  [{r.row.where}]")
        o += [emit_loops(r, loop, printer) for loop in r.loops]
    o.append(f"\nconst em_red_kernel EM_ISA_NAME(em_priv_red)[{len(reductions)}][EM_CD_COUNT] = {{")
    for r in reductions:
        o.append("  {")
        for loop in r.loops:
            sizes = ", ".join(str(8 if n in r.index else SIZES[loop]) for n in r.names)
            o.append(
                f"    [{SLOTS[loop]}] = {{{{{sizes}}}, "
                f"init_{r.key}_{loop}, rows_{r.key}_{loop}, merge_{r.key}_{loop}, finish_{r.key}_{loop}, "
                f"{f'segment_{r.key}_{loop}' if has_segment(r, loop) else 'NULL'}}},"
            )
        o.append("  },")
    o.append("};\n")
    return "\n".join(o)


# ---- descriptors and entries ---------------------------------------------------------------------------------------


def emit_desc(r):
    f, rule = r.f, r.f.get("dtype", "same")
    if rule not in RULES:
        r.row.fail(f"reduction: unknown dtype rule '{rule}' (known: {', '.join(RULES)})")
    slots = ", ".join(f"[EM_{t}] = {SLOTS[loop_of(t, f)] if t in r.dtypes else 'EM_CD_NONE'}" for t in LOOP_OF)
    flags = [
        name
        for name, on in (
            ("EM_RED_ALL_EMPTY_DIMS", f.get("empty_dims", "all") == "all"),
            ("EM_RED_NO_IDENTITY", f.get("empty") == "error"),
            ("EM_RED_FLATTEN", bool(f.get("flatten"))),
        )
        if on
    ]
    return (
        f"  [RED_{r.key}] = {{  // {r.row.where}\n    .name = \"{r.row.functional.name}\", "
        f".kernel_name = \"{f.get('kernel_name', r.row.functional.name + '_cpu')}\",\n    "
        f".nvars = {len(r.names)}, .nout = {len(results(r))}, .nattr = {len(r.attrs)}, "
        f".dtype_rule = {RULES[rule]}, .flags = {' | '.join(flags) or '0'},\n"
        f"    .out_kind = {{{', '.join(KINDS[k] for k in results(r))}}}, .slot = {{{slots}}}}},"
    )


def emit_op(r, op):
    args = {a.name: a for a in op.args}
    dims = "EM_INTS_NONE"
    pre = []
    if "dim" in args:
        t = args["dim"].type
        if t.is_list:
            dims = "dim"
        elif t.optional:
            dims = "dim.has ? (em_ints){&dim.v, 1} : EM_INTS_NONE"
        else:
            dims = "(em_ints){&dim, 1}"
    for a in r.attrs:
        pre.append(f"  const double attr[] = {{em_scalar_given({a}) ? em_scalar_to_double({a}) : 1.0}};")
    guard = r.row.fields.get("guard")
    if guard:
        pre.insert(0, f"  EM_PASS({guard});")
    keep = "keepdim" if "keepdim" in args else "false"
    dtype = "dtype" if "dtype" in args else "EM_DTYPE_NONE"
    o = [f"// {op.full}  [{r.row.where}]"]
    for key, extra in (("cpu", "0"), ("meta", "EM_ITER_META")):
        flags = extra if op.variant == "functional" else f"EM_ITER_OUT | {extra}" if extra != "0" else "EM_ITER_OUT"
        outs = (
            ", ".join("NULL" for _ in op.out_names)
            if op.variant == "functional"
            else ", ".join(a.name for a in op.outs)
        )
        attr = "attr" if r.attrs else "NULL"
        call = f"em_red_run(&em_redd[RED_{r.key}], {flags}, self, {dims}, {keep}, {dtype}, {attr}, outs)"
        body = [*pre, f"  em_tensor *outs[] = {{{outs}}};"]
        if op.variant == "functional":
            body += [
                f"  EM_PASS({call});",
                "  " + " ".join(f"*{n} = outs[{k}];" for k, n in enumerate(op.out_names)),
                "  return EM_OK;",
            ]
        else:
            body.append(f"  return {call};")
        o.append(f"em_status em_{key}_{op.cname}({params(op)}) {{\n" + "\n".join(body) + "\n}")
    return "\n".join(o)


def emit(rows, ops_dir):
    """({file: text}, {(op.cname, key): function})."""

    rows = [r for r in rows if r.kind == "reduction"]
    vocabulary = Vocabulary(ops_dir)
    # rows with the same mapping (sum and sum.dim_IntList) share loops and descriptor
    unique, of_row = [], []
    for row in rows:
        r = build(row, vocabulary)
        twin = next(
            (
                u
                for u in unique
                if {k: v for k, v in u.f.items() if k != "__line__"}
                == {k: v for k, v in r.f.items() if k != "__line__"}
                and u.row.functional.name == row.functional.name
                and u.attrs == r.attrs
            ),
            None,
        )
        if twin is None:
            r.key = row.functional.cname
            unique.append(r)
        r.key = (twin or r).key
        of_row.append(r)
    o = [
        head("emit_reduction.py"),
        '#include "backend/cpu/isa.h"\n#include "dispatch/reduction.h"\n#include "gen_ops.h"\n',
    ]
    o.append("enum {\n" + "\n".join(f"  RED_{r.key}," for r in unique) + "\n  RED_COUNT\n};\n")
    o.append("static em_red_desc em_redd[RED_COUNT + 1] = {\n" + "\n".join(map(emit_desc, unique)) + "\n};\n")
    declared = set()
    for row in rows:
        name, args = guard_call(row.fields["guard"]) if "guard" in row.fields else (None, None)
        if name and name not in declared:
            declared.add(name)
            types = {a.name: a for a in row.functional.ins}
            o.append(
                guard_prototype(name, args, types)
            )
    functions = {}
    for r in of_row:
        for op in r.row.ops.values():
            for key in ("cpu", "meta"):
                o.append(f"em_status em_{key}_{op.cname}({params(op)});")
            functions[(op.cname, "CPU")] = f"em_cpu_{op.cname}"
            functions[(op.cname, "Meta")] = f"em_meta_{op.cname}"
    o += [emit_op(r, op) for r in of_row for op in r.row.ops.values()]
    if unique:
        o.append(
            "\n// The loops of the instruction set chosen at load.\n"
            "typedef const em_red_kernel kernel_row[EM_CD_COUNT];\n"
            f"EM_ISA_DECLARE(kernel_row, em_priv_red, [{len(unique)}]);\n"
            "__attribute__((constructor)) static void choose_loops(void) {\n"
            "  for (int i = 0; i < RED_COUNT; i++) em_redd[i].kernels = EM_ISA_PICK(em_priv_red)[i];\n}\n"
        )
    return {"gen_reduction.c": "\n".join(o), "gen_reduction_loops.c": emit_kernels(unique, vocabulary)}, functions

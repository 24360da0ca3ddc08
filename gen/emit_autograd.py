"""emit_autograd.py: node classes, apply functions, Autograd and Alias entries of operators, from ops/derivatives*.yaml.

A row of derivatives.yaml:

    - op: addmm                       # operator by name.overload; its in-place and out= forms are covered too
      self: grad * beta.conj()        # gradient of an argument; `none`: no gradient flows through it
      mat1, mat2: formula_f(grad, mat1, mat2, grad_input_mask)   # grouped: one helper with several results
      output_differentiability: [True, False]
      node: AddmmBackward0            # only where PyTorch's number differs from the order of rows
      jvp: ...                        # forward mode, parsed and kept
    - not_differentiable: [eq.Tensor, argmax, ...]     # results never need a gradient

Names in formulas: the arguments; `grad` (of the only differentiable output), `grads`, `grads[i]`; `result`, `result0`
or an output's own name; `grad_input_mask`. `x.sizes()`, `x.size(k)`, `x.dim()`, `x.numel()`, `x.strides()`,
`x.storage_offset()`, `x.scalar_type()`, `x.is_complex()` of an argument save that property only. See formulas.py for
the language.
"""
import ast
import os
import re
import sys
from dataclasses import dataclass, field

from emit_ops import arg_names, head, params
from formulas import KIND_OF_C, Lower, Unknown, Val, read_helpers
from rows import load_yaml
from schema import RowError, box, c_type

RESERVED = {"op", "node", "output_differentiability", "jvp", "__line__", "__file__"}
# property -> (suffix of the saved field, its C type, expression that reads it from the tensor when saving, kind)
PROPERTIES = {
    "sizes": ("sym_sizes", "em_saved_ints", "(em_ints){{{0}->sizes, {0}->ndim}}", "IL"),
    "strides": ("sym_strides", "em_saved_ints", "(em_ints){{{0}->strides, {0}->ndim}}", "IL"),
    "numel": ("sym_numel", "int64_t", "{0}->numel", "I"),
    "storage_offset": ("sym_storage_offset", "int64_t", "{0}->offset", "I"),
    "scalar_type": ("scalar_type", "int", "{0}->dtype", "DT"),
}
KIND_OF_GET = {"I": "em_value_int({})", "D": "em_value_double({})", "B": "em_value_bool({})",
               "S": "em_value_scalar({})", "IL": "em_value_ints(em_saved_ints_get(&{}))",
               "STR": "em_value_string(em_saved_text_get(&{}))", "OI": "em_value_opt_int({})",
               "OD": "em_value_opt_double({})", "OB": "em_value_opt_bool({})",
               "DT": "em_value_enum(EM_TAG_DTYPE, {})", "DEV": "em_value_device({})"}


def strict():
    """Whether a row for an operator that no row makes is an error (else a note)."""
    return os.environ.get("EMBER_GEN_STRICT", "1") == "1"


@dataclass
class Saved:
    """One field of a node."""
    name: str          # C field and, after `_saved_`, what Python sees
    ctype: str
    kind: str          # T, TL or an attribute kind
    source: str        # argument or output that it comes from
    take: str          # C expression that yields the value when saving
    users: set = field(default_factory=set)   # indices of formulas that need it
    output: bool = False
    prop: bool = False


@dataclass
class Derivative:
    where: str
    row: object             # the operator's Row
    op: object              # functional Op, or the in-place one where there is no other
    forms: list             # all Ops that share it
    node: str               # C identifier: numbered by the order of rows
    shown: str              # what users see: the same unless the row says `node:`
    formulas: list          # [((arg, ...), expression)]
    edges: list             # differentiable arguments in order
    outputs: list           # indices of differentiable returns
    saved: dict = field(default_factory=dict)
    jvp: object = None

    @property
    def list_edge(self):
        return next((a for a in self.edges if self.arg(a).type.is_list), None)

    @property
    def list_output(self):
        return len(self.op.returns) == 1 and self.op.returns[0].type.is_list

    def arg(self, name):
        return next(a for a in self.op.args if a.name == name)

    def fail(self, message):
        raise RowError(f"{self.where}: {self.op.full}: {message}")


def node_base(name):
    """PyTorch's spelling: _log_softmax -> LogSoftmaxBackward, nll_loss_forward -> NllLossBackward."""
    name = name.strip("_").removesuffix("_forward")
    return "".join(w.title() for w in name.split("_")) + "Backward"


def output_names(op):
    n = len(op.returns)
    return [r.name or ("result" if n == 1 else f"result{i}") for i, r in enumerate(op.returns)]


# ---- reading -----------------------------------------------------------------------------------------------------

def full_name(op):
    return op.name + (f".{op.overload}" if op.overload else "")


def forms_of(op, ops, own):
    """The functional operator and whatever in-place and out= forms share its derivative, in whichever row they stand.

    ops: {name: [(place in the rows' order, operator)]}; own: names that have a row of their own in derivatives.yaml.
    """
    def shape(args):
        return [(a.name, c_type(a.type)) for a in args]
    found = [op]
    functional = op.row.ops.get("functional")
    if op.variant == "inplace" and functional is not None and full_name(functional) in own:
        return found  # a formula of the in-place form's own: the row's other forms have theirs
    near = {i: o for name in (op.name, op.name + "_", *(o.name for o in op.row.ops.values())) for i, o in ops.get(name, [])}
    for o in (near[i] for i in sorted(near)):
        if o is op or full_name(o) in own:
            continue
        same_row = o.row is op.row
        inplace = o.variant == "inplace" and o.name == op.name + "_" and shape(o.args) == shape(op.args)
        out = o.variant == "out" and o.name == op.name and shape(o.ins) == shape(op.args)
        if same_row or inplace or out:
            found.append(o)
    return found


def read(rows, ops_dir, notes):
    """(derivatives, set of full names that are not differentiable)."""
    ops, by_name = {}, {}
    for i, op in enumerate(op for row in rows for op in row.ops.values()):
        ops.setdefault(op.name, []).append((i, op))
        by_name[full_name(op)] = op
    listed = []
    for f in sorted(f for f in os.listdir(ops_dir) if re.match(r"derivatives\w*\.yaml$", f)):
        listed += [dict(fields, __file__=f) for fields in load_yaml(os.path.join(ops_dir, f)) or []]
    own = {fields.get("op") for fields in listed}
    found, counts, never, seen = [], {}, set(), {}
    for fields in listed:
        where = f"{fields['__file__']}:{fields['__line__']}"
        if "not_differentiable" in fields:
            for name in fields["not_differentiable"]:
                if name not in by_name:
                    unknown(notes, f"{where}: no operator '{name}'")
                    continue
                never.add(by_name[name].full)
                for op in forms_of(by_name[name], ops, own):
                    if op.variant == "inplace":  # what was there no longer matters
                        base = node_base(op.name)
                        node = f"{base}{counts.get(base, 0)}"
                        counts[base] = counts.get(base, 0) + 1
                        self = op.args[0].name
                        zeros = [((self,), "zeros_like(grad)")]
                        found.append(Derivative(where, op.row, op, [op], node, node, zeros, [self], [0]))
            continue
        if "op" not in fields:
            raise RowError(f"{where}: a derivative needs 'op:'")
        name = fields["op"]
        if name in seen:
            raise RowError(f"{where}: {name} has a derivative already, at {seen[name]}")
        seen[name] = where
        base = node_base(name.split(".")[0])
        number = counts.get(base, 0)
        counts[base] = number + 1
        node = f"{base}{number}"
        if name not in by_name:
            unknown(notes, f"{where}: no operator '{name}'")
            continue
        op = by_name[name]
        found.append(read_row(fields, where, op, forms_of(op, ops, own), node, fields.get("node", node)))
    return found, never


def unknown(notes, message):
    if strict():
        raise RowError(message)
    notes.append(message)


def read_row(fields, where, op, forms, node, shown):
    d = Derivative(where, op.row, op, forms, node, shown, [], [], [])
    args = {a.name: a for a in op.args}
    formulas, none = [], set()
    for key, text in fields.items():
        if key in RESERVED:
            continue
        names = tuple(n.strip() for n in key.split(","))
        for n in names:
            if n not in args:
                d.fail(f"'{n}' is not an argument (arguments: {', '.join(args)})")
            if args[n].type.base != "Tensor":
                d.fail(f"'{n}' is a {args[n].type}; only tensors have gradients")
            if n in none or any(n in done for done, _ in formulas):
                d.fail(f"'{n}' has two formulas")
        if str(text) == "none":
            none |= set(names)
        else:
            formulas.append((names, str(text)))
    covered = {n for names, _ in formulas for n in names}
    for a in op.args:
        if a.type.base == "Tensor" and not a.out and a.name not in covered | none:
            d.fail(f"argument '{a.name}' has no formula: write one, or `{a.name}: none`")
    d.formulas = formulas
    d.edges = [a.name for a in op.args if a.name in covered]
    if d.list_edge and len(d.edges) != 1:
        d.fail("a differentiable list must be the only differentiable argument")
    flags = fields.get("output_differentiability") or [r.type.base == "Tensor" for r in op.returns]
    if len(flags) != len(op.returns):
        d.fail(f"output_differentiability has {len(flags)} entries, the operator returns {len(op.returns)}")
    d.outputs = [i for i, f in enumerate(flags) if f]
    if "jvp" in fields:
        d.jvp = Lower(where, {}, {}, {}).parse(fields["jvp"])
    return d


# ---- what a formula needs ----------------------------------------------------------------------------------------

def find_saved(d, parser):
    """Fills d.saved: every property, value, attribute and output that the formulas name."""
    args = {a.name: a for a in d.op.args}
    outs = output_names(d.op)
    for index, (names, text) in enumerate(d.formulas):
        tree = parser.parse(text)
        skip = set()
        for node in ast.walk(tree):
            method = isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute)
            if method and isinstance(node.func.value, ast.Name):
                who, what = node.func.value.id, node.func.attr
                if who in args and args[who].type.base == "Tensor" and save_property(d, args[who], what, node, index):
                    skip.add(node.func.value)
        for node in ast.walk(tree):
            if isinstance(node, ast.Name) and node not in skip:
                if node.id in args:
                    save_arg(d, args[node.id], index)
                elif node.id in outs:
                    i = outs.index(node.id)
                    add(d, Saved(node.id, "em_saved", "T", node.id, "", output=True), index).output = True
                    if d.op.returns[i].type.is_list:
                        d.fail(f"the list '{node.id}' cannot be saved")


def add(d, saved, index):
    s = d.saved.setdefault(saved.name, saved)
    s.users.add(index)
    return s


def save_property(d, arg, what, node, index):
    if arg.type.is_list:
        if what != "size":
            return False
        dim = ast.unparse(node.args[0])
        take = f"formula_list_size({arg.name}, {dim}, &node->{arg.name}_size)"
        add(d, Saved(f"{arg.name}_size", "em_saved_ints", "IL", arg.name, take, prop=True), index)
        return True
    what = {"dim": "sizes", "is_complex": "scalar_type"}.get(what, what)
    if what == "size" and len(node.args) == 1 and isinstance(node.args[0], ast.Constant):
        k = node.args[0].value
        take = f"formula_size({arg.name}, {k})"
        add(d, Saved(f"{arg.name}_sym_argsize_{k}", "int64_t", "I", arg.name, take, prop=True), index)
        return True
    if what == "size":
        what = "sizes"
    if what not in PROPERTIES:
        return False
    suffix, ctype, take, kind = PROPERTIES[what]
    add(d, Saved(f"{arg.name}_{suffix}", ctype, kind, arg.name, take.format(arg.name), prop=True), index)
    return True


def save_arg(d, arg, index):
    c = c_type(arg.type)
    kind = KIND_OF_C[c]
    ctype = {"T": "em_saved", "TL": "em_saved_list", "IL": "em_saved_ints", "STR": "em_saved_text"}.get(kind, c)
    if kind in ("GEN", "SL", "DL", "MASK"):
        d.fail(f"a formula cannot use '{arg.name}' of type {arg.type}")
    add(d, Saved(arg.name, ctype, kind, arg.name, arg.name), index)


# ---- apply -------------------------------------------------------------------------------------------------------

def environment(d):
    names = {"grad_input_mask": Val(f"((em_bools){{mask, {max(1, len(d.edges))}}})", "MASK"),
             "grads": Val("((em_tensors){grads, base->n_inputs})", "TL")}
    if not d.list_output:
        if len(d.outputs) == 1:
            names["grad"] = Val("grad", "T")
        for j, i in enumerate(d.outputs):
            names[f"grads[{j}]"] = Val(f"g{j}", "T")
    for s in d.saved.values():
        f = f"n->{s.name}"
        if s.kind == "T":
            names[s.name] = Val(f"v_{s.name}", "T")
        elif s.kind == "TL":
            names[s.name] = Val(f"((em_tensors){{v_{s.name}.p, v_{s.name}.n}})", "TL")
        else:
            code = {"IL": f"em_saved_ints_get(&{f})", "STR": f"em_saved_text_get(&{f})"}.get(s.kind, f)
            names[property_key(s) if s.prop else s.name] = Val(code, s.kind)
            if s.prop and s.name.endswith("_sym_sizes"):
                names[f"{s.source}.dim()"] = Val(f"{f}.n", "I")
            if s.prop and s.name.endswith("_scalar_type"):
                names[f"{s.source}.is_complex()"] = Val(f"em_dtype_is_complex({f})", "B")
    return names


def property_key(s):
    suffix = s.name[len(s.source) + 1:]
    if suffix.startswith("sym_argsize_"):
        return f"{s.source}.size({suffix.rsplit('_', 1)[1]})"
    if suffix == "size":
        m = re.search(r", (.*), &", s.take)
        return f"{s.source}.size({m[1]})"
    return f"{s.source}.{next(p for p, v in PROPERTIES.items() if v[0] == suffix)}()"


def wants(d, indices):
    edges = sorted({d.edges.index(a) for i in indices for a in d.formulas[i][0]})
    if len(edges) == len(d.edges) or d.list_edge:
        return ""
    return " || ".join(f"em_node_wants(base, {e})" for e in edges)


def emit_apply(d, ops, helpers):
    low = Lower(d.where, environment(d), ops, helpers)
    blocks = []
    for index, (names, text) in enumerate(d.formulas):
        low.lines = []
        value = low.expr(low.parse(text))
        if d.list_edge:
            if value.kind != "TL":
                d.fail(f"the gradient of the list '{names[0]}' is a list, got {value.kind}")
            low.put(f"for (int64_t i = 0; i < {value.temp}.n && i < (int64_t)base->n_edges; i++) {{")
            low.put(f"  out[i] = {value.temp}.p[i];\n{low.indent}  {value.temp}.p[i] = NULL;\n{low.indent}}}")
            blocks.append(("    // " + f"{', '.join(names)}: {text}", "", low.lines))
            continue
        values = value.items if value.kind == "LIST" else [value]
        if len(values) != len(names):
            d.fail(f"formula of {', '.join(names)} yields {len(values)} gradients")
        for name, v in zip(names, values):
            low.give(v, f"out[{d.edges.index(name)}]")
        cond = " || ".join(f"em_node_wants(base, {d.edges.index(a)})" for a in names)
        blocks.append((f"{', '.join(names)}: {text}", cond, low.lines))
    o = [f"static em_status apply_{d.node}(em_node *base, em_tensor *const *grads, em_tensor **out) {{"]
    body = "\n".join("\n".join(lines) for _, _, lines in blocks)
    if d.saved:
        o.append(f"  {d.node} *n = ({d.node} *)base;")
    o.append("  em_status st = EM_OK;")
    o += declarations(d, low, body)
    o += unpacking(d)
    for comment, cond, lines in blocks:
        if cond:
            o.append(f"  if ({cond}) {{  // {comment}")
        else:
            o.append(f"  {{  // {comment.strip().removeprefix('// ')}")
        o += lines + ["  }"]
    o.append("fail:")
    o += [f"  em_tensor_release({t});" for t in low.temps]
    o += [f"  em_tensor_list_clear(&{t});" for t in low.lists]
    o += [f"  em_tensor_release(v_{s.name});" for s in d.saved.values() if s.kind == "T"]
    o += [f"  em_tensor_list_clear(&v_{s.name});" for s in d.saved.values() if s.kind == "TL"]
    o += [f"  em_tensor_release({g});" for g in sorted(used_grads(d))]
    o.append("  return st;\n}")
    text = "\n".join(o)
    return text if "goto fail" in text or "EM_TRY" in text else text.replace("\nfail:\n", "\n")


def used_grads(d):
    text = " ".join(t for _, t in d.formulas)
    return {f"g{m}" for m in re.findall(r"grads\[(\d+)\]", text)}


def declarations(d, low, body):
    o = []
    if not d.list_output and len(d.outputs) == 1 and re.search(r"\bgrad\b", body):
        o.append("  em_tensor *grad = grads[0];\n  if (grad == NULL) return EM_OK;")
    pointers = [f"*{t} = NULL" for t in low.temps] + [f"*v_{s.name} = NULL" for s in d.saved.values() if s.kind == "T"]
    pointers += [f"*{g} = NULL" for g in sorted(used_grads(d))]
    for i in range(0, len(pointers), 8):
        o.append("  em_tensor " + ", ".join(pointers[i:i + 8]) + ";")
    lists = low.lists + [f"v_{s.name}" for s in d.saved.values() if s.kind == "TL"]
    if lists:
        o.append("  em_tensor_list " + ", ".join(f"{t} = {{NULL, 0}}" for t in lists) + ";")
    if re.search(r"\bmask\b", body):
        edges = ", ".join(f"em_node_wants(base, {e})" for e in range(len(d.edges)))
        o.append(f"  const uint8_t mask[] = {{{edges}}};")
    return o


def unpacking(d):
    o = []
    for s in d.saved.values():
        if s.kind not in ("T", "TL"):
            continue
        f = "em_saved_unpack" if s.kind == "T" else "em_saved_list_unpack"
        cond = wants(d, s.users)
        line = f"EM_TRY({f}(&n->{s.name}, base, &v_{s.name}));"
        o.append(f"  if ({cond}) {line}" if cond else f"  {line}")
    o += [f"  EM_TRY(formula_grad(base, {g[1:]}, grads[{g[1:]}], &{g}));" for g in sorted(used_grads(d))]
    return o


# ---- the class ---------------------------------------------------------------------------------------------------

def emit_class(d):
    o = []
    fields = "".join(f"  {s.ctype}{'' if s.ctype.endswith('*') else ' '}{s.name};\n" for s in d.saved.values())
    o.append(f"typedef struct {d.node} {{\n  em_node node;\n{fields}}} {d.node};")
    return "\n".join(o)


def emit_class_table(d):
    o, release, destroy, table = [], [], [], []
    for s in d.saved.values():
        if s.kind == "T":
            release.append(f"  em_saved_release(&n->{s.name});")
        elif s.kind == "TL":
            release.append(f"  em_saved_list_release(&n->{s.name});")
            destroy.append(f"  em_saved_list_free(&n->{s.name});")
        elif s.kind == "IL":
            destroy.append(f"  em_saved_ints_free(&n->{s.name});")
        kind = {"T": "EM_SAVED_TENSOR", "TL": "EM_SAVED_TENSOR_LIST"}.get(s.kind, "EM_SAVED_VALUE")
        get = "NULL"
        if kind == "EM_SAVED_VALUE":
            get = f"get_{d.node}_{s.name}"
            o.append(f"static em_status {get}(em_node *base, em_value *out) {{\n  *out = "
                     + KIND_OF_GET[s.kind].format(f"(({d.node} *)base)->{s.name}") + ";\n  return EM_OK;\n}")
        table.append(f'  {{"{s.name}", offsetof({d.node}, {s.name}), {kind}, {get}}},')
    for name, lines in (("release", release), ("destroy", destroy)):
        if lines:
            o.append(f"static void {name}_{d.node}(em_node *base) {{\n  {d.node} *n = ({d.node} *)base;")
            o += lines + ["}"]
    if table:
        o.append(f"static const em_saved_field fields_{d.node}[] = {{\n" + "\n".join(table) + "\n};")
    parts = [f'.name = "{d.shown}"', f".apply = apply_{d.node}", f".size = sizeof({d.node})", f'.where = "{d.where}"']
    if release:
        parts.append(f".release_saved = release_{d.node}")
    if destroy:
        parts.append(f".destroy = destroy_{d.node}")
    if table:
        parts.append(f".fields = fields_{d.node}, .nfields = {len(table)}")
    o.append(f"static const em_node_class class_{d.node} = {{\n  {', '.join(parts)}}};")
    return "\n".join(o)


# ---- entries -----------------------------------------------------------------------------------------------------

def requires(d, op):
    tests = []
    for name in d.edges:
        a = next(x for x in op.args if x.name == name)
        if a.type.is_list:
            tests.append(f"em_any_requires_grad({name}.p, (int){name}.n)")
        elif a.type.optional:
            tests.append(f"({name} != NULL && em_tensor_requires_grad({name}))")
        else:
            tests.append(f"em_tensor_requires_grad({name})")
    return " || ".join(tests)


def emit_edges(d):
    if d.list_edge:
        x = d.list_edge
        return [f"  for (int64_t i = 0; i < {x}.n; i++) EM_TRY(em_node_set_edge(&node->node, (uint32_t)i, {x}.p[i]));"]
    return [f"  EM_TRY(em_node_set_edge(&node->node, {i}, {a}));" for i, a in enumerate(d.edges)]


def emit_saves(d, op, outputs):
    """Lines that fill the node's fields: inputs (before an in-place write), or outputs (after history is set)."""
    o = []
    for s in d.saved.values():
        if s.output != outputs:
            continue
        f = f"&node->{s.name}"
        edges = sorted({d.edges.index(a) for i in s.users for a in d.formulas[i][0]})
        every = len(edges) == len(d.edges) or d.list_edge
        cond = "" if every else " || ".join(f"em_node_has_edge(&node->node, {e})" for e in edges)
        guard = f"if ({cond}) " if cond else ""
        if s.output:
            i = output_names(d.op).index(s.name)
            what = "self" if op.variant == "inplace" else f"*{op.out_names[i]}"
            o.append(f"  {guard}EM_TRY(em_saved_save({f}, {what}, {str(i in d.outputs).lower()}));")
        elif s.prop and s.take.startswith("formula_list_size"):
            o.append(f"  EM_TRY({s.take});")
        elif s.kind == "T" and op.variant == "inplace" and s.source == op.args[0].name:
            o.append(f"  {guard}EM_TRY(em_saved_save_copy({f}, {s.take}));  // the write will change it")
        elif s.kind == "T":
            o.append(f"  {guard}EM_TRY(em_saved_save({f}, {s.take}, false));")
        elif s.kind == "TL":
            o.append(f"  {guard}EM_TRY(em_saved_list_save({f}, {s.take}));")
        elif s.kind == "IL":
            o.append(f"  EM_TRY(em_saved_ints_set({f}, {s.take}));")
        elif s.kind == "STR":
            o.append(f"  em_saved_text_set({f}, {s.take});")
        else:
            o.append(f"  node->{s.name} = {s.take};")
    return o


def below(d, op, leave):
    """Lines that run the layers below.

    What is made of other calls (composite rows, in-place forms of native rows) must not record once more.
    """
    call = f"em_redispatch_{op.cname}({arg_names(op, ['ks'])})"
    bail = f"  if (EM_UNLIKELY(st != EM_OK)) {leave}"
    if op.row.kind == "composite" or (op.row.kind == "native" and op.variant == "inplace"):
        keys = "EM_KEYBIT(EM_KEY_Autograd)" + ("" if op.variant == "inplace" else " | EM_KEYBIT(EM_KEY_Alias)")
        return [f"  em_guard guard = em_guard_exclude({keys});", f"  st = {call};", "  em_guard_restore(guard);", bail]
    return [f"  st = {call};", bail]


def emit_functional(d, op):
    attach = "em_view_set_history" if op.row.kind in ("view", "views") else "em_node_set_history"
    first = op.out_names[0]
    inputs = f"(uint32_t){first}->n" if d.list_output else str(len(d.outputs))
    edges = f"(uint32_t){d.list_edge}.n" if d.list_edge else str(len(d.edges))
    o = [f"em_status autograd_{op.cname}({params(op)}) {{", "  ks &= EM_KEYS_BELOW(EM_KEY_Autograd);",
         f"  if (!({requires(d, op)}))\n    return em_redispatch_{op.cname}({arg_names(op, ['ks'])});",
         "  em_status st = EM_OK;", f"  {d.node} *node = NULL;"]
    o += below(d, op, "return st;")
    o += [f"  node = ({d.node} *)em_node_new(&class_{d.node}, {edges}, {inputs});",
          f"  if (EM_UNLIKELY(node == NULL)) {{\n    st = EM_NOMEM(sizeof({d.node}));\n    goto fail;\n  }}"]
    o += emit_edges(d) + emit_saves(d, op, False)
    outputs = emit_saves(d, op, True)
    if attach == "em_node_set_history" and len(d.outputs) == 1 and not d.list_output and not outputs:
        o.append(f"  st = em_node_give_history(&node->node, *{op.out_names[d.outputs[0]]});\n  node = NULL;\n"
                 "  if (EM_LIKELY(st == EM_OK)) return EM_OK;")
        return finish_functional(op, o)
    if d.list_output:
        o.append(f"  for (int64_t i = 0; i < {first}->n; i++)\n"
                 f"    EM_TRY({attach}(&node->node, (uint32_t)i, {first}->p[i]));")
    else:
        o += [f"  EM_TRY({attach}(&node->node, {j}, *{op.out_names[i]}));" for j, i in enumerate(d.outputs)]
    o += outputs + ["  em_node_release(&node->node);", "  return EM_OK;"]
    return finish_functional(op, o)


def finish_functional(op, o):
    o += ["fail:", "  if (node != NULL) em_node_release(&node->node);"]
    for r, name in zip(op.typed_returns, op.out_names):
        if r.type.base == "Tensor":
            o.append(f"  em_tensor_list_clear({name});" if r.type.is_list else f"  EM_CLEAR_TENSOR({name});")
    return "\n".join(o + ["  return st;\n}"])


def emit_inplace(d, op):
    self = op.args[0].name
    o = [f"em_status autograd_{op.cname}({params(op)}) {{", "  ks &= EM_KEYS_BELOW(EM_KEY_Autograd);",
         f"  bool records = {requires(d, op)};", f"  EM_PASS(em_inplace_check({self}, records, &em_opr_{op.cname}));",
         f"  if (!records) return em_redispatch_{op.cname}({arg_names(op, ['ks'])});", "  em_status st = EM_OK;",
         f"  {d.node} *node = ({d.node} *)em_node_new(&class_{d.node}, {len(d.edges)}, 1);",
         f"  if (EM_UNLIKELY(node == NULL)) return EM_NOMEM(sizeof({d.node}));"]
    o += emit_edges(d) + emit_saves(d, op, False) + below(d, op, "goto fail;")
    # A moved window writes no bytes: a base's history stands.
    rebase = (f"em_view_set_history(&node->node, 0, {self})" if op.row.kind == "view"
              else f"em_inplace_rebase({self}, &node->node)")
    o += [f"  EM_TRY({rebase});"] + emit_saves(d, op, True)
    o += ["fail:", "  em_node_release(&node->node);", "  return st;\n}"]
    return "\n".join(o)


def requires_any(op):
    """Whether some tensor argument of a composite needs a gradient."""
    tests = []
    for a in op.args:
        if a.type.base == "Tensor" and a.type.is_list:
            tests.append(f"em_any_requires_grad({a.name}.p, (int){a.name}.n)")
        elif a.type.base == "Tensor":
            present = f"{a.name} != NULL && " if a.type.optional else ""
            tests.append(f"({present}em_tensor_requires_grad({a.name}))")
    return " || ".join(tests)


def emit_out(tests, op):
    return (f"em_status autograd_{op.cname}({params(op)}) {{\n  if ({tests})\n    return em_fail(EM_ERR_RUNTIME, "
            f'"{op.name}(): functions with out=... arguments don\'t support automatic differentiation, "\n'
            f'                   "but one of the arguments requires grad.");\n'
            f"  return em_redispatch_{op.cname}({arg_names(op, ['ks & EM_KEYS_BELOW(EM_KEY_Autograd)'])});\n}}")


def emit_alias(op):
    """Alias entry of one operator, or None."""
    call = f"em_redispatch_{op.cname}({arg_names(op, ['ks & EM_KEYS_BELOW(EM_KEY_Alias)'])})"
    top = f"em_status alias_{op.cname}({params(op)}) {{\n"
    if op.variant in ("inplace", "out"):
        if op.row.kind in ("composite", "alias") or (op.row.kind == "native" and op is not op.row.functional):
            return None       # the copy_ that it ends with does it
        # `unversioned:` names what the derivative saves before the operator writes it
        kept = op.row.fields.get("unversioned", "")
        written = [a.name for a in op.args if a.type.mutated and a.name != kept]
        checks = "".join(f"  EM_PASS(em_alias_check_write({w}));\n" for w in written)
        bumps = "".join(f"  em_version_bump({w}->version);\n" for w in written)
        if op.row.kind == "view":
            return (f"{top}{checks}  int64_t offset = self->offset;\n  EM_PASS({call});\n"
                    f"{bumps}  return em_view_moved(self, offset);\n}}")
        return f"{top}{checks}  EM_PASS({call});\n{bumps}  return EM_OK;\n}}"
    if op.row.kind not in ("view", "views"):
        return None
    self, out = op.args[0].name, op.out_names[0]
    boxed = ", ".join(box(a.type, a.name) for a in op.args)
    if op.row.kind == "views":
        return (f"{top}  EM_PASS({call});\n"
                f"  em_creation how = em_grad_enabled() ? EM_CREATED_MULTI_OUTPUT : em_alias_creation();\n"
                f"  for (int64_t i = 0; i < {out}->n; i++) {{\n"
                f"    em_status st = em_view_mark({out}->p[i], {self}, &em_opr_{op.cname}, NULL, how);\n"
                f"    if (EM_UNLIKELY(st != EM_OK)) {{\n      em_tensor_list_clear({out});\n      return st;\n    }}\n"
                f"  }}\n  return EM_OK;\n}}")
    return (f"{top}  EM_PASS({call});\n  em_status st;\n"
            f"  if (EM_LIKELY((*{out})->dtype == {self}->dtype)) {{\n"
            f"    st = em_view_mark(*{out}, {self}, &em_opr_{op.cname}, NULL, em_alias_creation());\n  }} else {{\n"
            f"    const em_value args[] = {{{boxed}}};\n"
            f"    st = em_view_mark(*{out}, {self}, &em_opr_{op.cname}, args, em_alias_creation());\n  }}\n"
            f"  if (EM_UNLIKELY(st != EM_OK)) EM_CLEAR_TENSOR({out});\n  return st;\n}}")


# ---- putting it together -----------------------------------------------------------------------------------------

DETACHED = {"detach", "detach_"}  # share bytes without being views


def emit_derivative(d, ops, helpers, functions):
    find_saved(d, Lower(d.where, {}, ops, helpers))
    apply = emit_apply(d, ops, helpers)
    o = [f"\n// {d.op.full}  [{d.where}, operator {d.op.where}]", emit_class(d), apply, emit_class_table(d)]
    for op in d.forms:
        if op.variant == "out":
            outs = [f"em_tensor_requires_grad({a.name})" for a in op.outs]
            o.append(emit_out(" || ".join([requires(d, op), *outs]), op))
        else:
            o.append((emit_functional if op.variant == "functional" else emit_inplace)(d, op))
        functions[(op.cname, "Autograd")] = f"autograd_{op.cname}"
    return "\n".join(o)


def read_formulas_header():
    path = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "src", "autograd", "formulas.h")
    with open(path) as f:
        return read_helpers(f.read())


def emit(rows, ops_dir, helpers=None):
    """Returns ({file name: text}, {(op.cname, key): function})."""
    notes = []
    helpers = read_formulas_header() if helpers is None else helpers
    derivatives, never = read(rows, ops_dir, notes)
    ops = {}
    for row in rows:
        for op in row.ops.values():
            ops.setdefault(op.name, []).append(op)
    includes = ("<string.h>", '"autograd/formulas.h"', '"autograd/saved.h"', '"autograd/view.h"', '"gen_ops.h"')
    functions, o = {}, [head("emit_autograd.py"), *(f"#include {name}" for name in includes)]
    for d in derivatives:
        try:
            o.append(emit_derivative(d, ops, helpers, functions))
        except Unknown as e:
            unknown(notes, str(e))
    for row in rows:  # out= of composites, whose parts would otherwise record
        for op in row.ops.values():
            explicit = row.kind != "composite" or row.fields.get("autograd") == "explicit"
            if op.variant == "out" and not explicit and (op.cname, "Autograd") not in functions:
                o.append(f"// {op.full}  [{op.where}]\n{emit_out(requires_any(op), op)}")
                functions[(op.cname, "Autograd")] = f"autograd_{op.cname}"
    o.append("\n// ---- Alias: views and versions")
    for row in rows:
        for op in row.ops.values():
            text = None if op.name in DETACHED else emit_alias(op)
            if text:
                o.append(f"// {op.full}  [{op.where}]\n{text}")
                functions[(op.cname, "Alias")] = f"alias_{op.cname}"
    if notes and os.environ.get("EMBER_GEN_NOTES"):
        print("\n".join(["emit_autograd: derivatives without an operator:", *notes]), file=sys.stderr)
    return {"gen_autograd.c": "\n".join(o) + "\n"}, functions

"""formulas.py: derivative formulas, from Python expression syntax to typed C. Used by emit_autograd.py.

A formula is parsed with `ast` and lowered expression by expression: each value has a kind, operators are picked by the
kinds of their arguments from the rows' schemas, helpers (`formula_x`) by their C prototypes in
src/autograd/formulas.h. Text is never pasted.

Kinds: T tensor (may be NULL), TL borrowed list of tensors, OL owned list, S Scalar, I int, D double, B bool, IL ints,
OI OD OB optional int, double and bool, DT dtype, DEV device, STR string, MASK grad_input_mask, NONE, LIST a literal
list.
"""
import ast
import re
from dataclasses import dataclass, field

from schema import RowError, c_type


@dataclass
class Val:
    code: str
    kind: str
    temp: str = ""             # the owned temporary behind `code`, which may be moved from
    items: list = field(default_factory=list)  # LIST


KIND_OF_C = {"em_tensor *": "T", "em_tensors": "TL", "em_scalar": "S", "int64_t": "I", "double": "D", "bool": "B",
             "em_ints": "IL", "em_opt_int": "OI", "em_opt_double": "OD", "em_opt_bool": "OB", "const char *": "STR",
             "em_device": "DEV", "int": "DT", "em_bools": "MASK",
             "struct em_generator *": "GEN", "em_scalars": "SL", "em_doubles": "DL"}
BINARY = {ast.Add: "add", ast.Sub: "sub", ast.Mult: "mul", ast.Div: "div", ast.Pow: "pow", ast.BitAnd: "bitwise_and",
          ast.BitOr: "bitwise_or", ast.MatMult: "matmul"}
C_BINARY = {ast.Add: "+", ast.Sub: "-", ast.Mult: "*", ast.Div: "/", ast.FloorDiv: "/"}
COMPARE = {ast.Eq: ("eq", "=="), ast.NotEq: ("ne", "!="), ast.Lt: ("lt", "<"), ast.LtE: ("le", "<="),
           ast.Gt: ("gt", ">"), ast.GtE: ("ge", ">=")}
NUMBER = ("I", "D", "B", "S")


@dataclass
class Helper:
    """A function of formulas.h."""
    name: str
    params: list     # C types
    outs: list       # T or OL for each out-parameter
    value: str       # kind when it returns a value and cannot fail, else ""
    takes_node: bool


def read_helpers(text):
    """{name: Helper} from the prototypes of formulas.h."""
    text = re.sub(r"//[^\n]*", "", text)
    found = {}
    for m in re.finditer(r"(?:EM_PRIV|static inline)\s+([\w ]+?)\s*\**\s*(formula_\w+)\(([^)]*)\)", text, re.S):
        params, outs, node = [], [], False
        for p in (" ".join(x.split()) for x in m[3].split(",")):
            kind = re.sub(r"(\*?)\w+$", r"\1", p).strip()
            if kind in ("const em_node *", "em_node *"):
                node = True
            elif kind == "em_tensor **":
                outs.append("T")
            elif kind == "em_tensor_list *":
                outs.append("OL")
            elif kind == "em_saved_ints *":
                params = None      # a helper of generated code, not of formulas
                break
            elif kind in KIND_OF_C:
                params.append(kind)
            else:
                raise RowError(f"formulas.h: {m[2]}: a formula cannot take '{p}'")
        if params is None:
            continue
        value = "" if m[1].endswith("em_status") else KIND_OF_C[m[1].strip()]
        found[m[2]] = Helper(m[2], params, outs, value, node)
    return found


def default_code(t, text):
    """C expression of a schema default (or None) for a parameter type."""
    c = c_type(t)
    if text in (None, "None"):
        return {"em_tensor *": "NULL", "em_scalar": "em_scalar_none()", "em_ints": "EM_INTS_NONE",
                "em_opt_int": "em_no_int()", "em_opt_double": "em_no_double()", "em_opt_bool": "-1",
                "const char *": "NULL", "em_device": "EM_DEVICE_NONE", "int": "-1",
                "struct em_generator *": "NULL", "em_doubles": "(em_doubles){NULL, -1}"}[c]
    if c == "bool":
        return text.lower()
    if c == "int64_t":
        return {"Mean": "1", "Sum": "2"}.get(text, text)
    if c == "double":
        return repr(float(text))
    if c == "em_scalar":
        return f"em_scalar_int({text})" if re.match(r"^-?\d+$", text) else f"em_scalar_double({float(text)!r})"
    if c == "em_ints":
        items = text.strip("[]")
        return f"EM_INTS({items})" if items else "(em_ints){NULL, 0}"
    if c == "const char *":
        return '"' + text.strip("'\"") + '"'
    if c == "em_opt_int":
        return f"em_some_int({text})"
    if c == "em_opt_double":
        return f"em_some_double({text})"
    if c == "int" and t.base == "MemoryFormat":
        return {"contiguous_format": "EM_FORMAT_CONTIGUOUS", "preserve_format": "EM_FORMAT_PRESERVE"}[text]
    raise RowError(f"default '{text}' of {t} in a formula is not understood")


class Unknown(RowError):
    """A formula uses an operator that no row has (yet)."""


class Lower:
    """Lowers the formulas of one derivative row into the body of its apply function."""

    def __init__(self, where, names, ops, helpers):
        self.where, self.names, self.ops, self.helpers = where, names, ops, helpers
        self.lines, self.temps, self.lists = [], [], []
        self.indent = "    "

    def fail(self, message, unknown=False):
        raise (Unknown if unknown else RowError)(f"{self.where}: {message}")

    def put(self, line):
        self.lines.append(self.indent + line)

    def temp(self):
        name = f"t{len(self.temps)}"
        self.temps.append(name)
        return name

    def parse(self, text):
        try:
            return ast.parse(str(text).strip(), mode="eval").body
        except SyntaxError as e:
            self.fail(f"formula '{text}': {e.msg}")

    # ---- expressions

    def expr(self, e):
        method = getattr(self, "on_" + type(e).__name__, None)
        if method is None:
            self.fail(f"formula: '{ast.unparse(e)}' is not part of the language")
        return method(e)

    def on_Constant(self, e):
        v = e.value
        if v is None:
            return Val("NULL", "NONE")
        if isinstance(v, bool):
            return Val(str(v).lower(), "B")
        if isinstance(v, int):
            return Val(str(v), "I")
        if isinstance(v, float):
            return Val(repr(v), "D")
        if isinstance(v, str):
            return Val('"' + v + '"', "STR")
        self.fail(f"formula: literal {v!r}")

    def on_Name(self, e):
        if e.id not in self.names:
            self.fail(f"formula: unknown name '{e.id}' (known: {', '.join(sorted(self.names))})")
        return self.names[e.id]

    def on_List(self, e):
        return Val("", "LIST", items=[self.expr(x) for x in e.elts])

    on_Tuple = on_List

    def on_UnaryOp(self, e):
        v = self.expr(e.operand)
        if isinstance(e.op, ast.Not):
            return Val(f"!{self.as_bool(v)}", "B")
        if not isinstance(e.op, ast.USub):
            self.fail(f"formula: '{ast.unparse(e)}' is not part of the language")
        if v.kind == "T":
            return self.call_op("neg", [v], {})
        if v.kind == "S":
            return Val(f"em_scalar_neg({v.code})", "S")
        return Val(f"-{v.code}" if re.match(r"^[\w.]+$", v.code) else f"-({v.code})", v.kind)

    def on_BinOp(self, e):
        a, b = self.expr(e.left), self.expr(e.right)
        if "T" in (a.kind, b.kind):
            if type(e.op) not in BINARY:
                self.fail(f"formula: '{ast.unparse(e)}' is not defined for tensors")
            if isinstance(e.op, ast.Mult) and b.kind in NUMBER:
                return self.call_helper("formula_scale", [a, b])
            if isinstance(e.op, ast.Mult) and a.kind in NUMBER:
                return self.call_helper("formula_scale", [b, a])
            if isinstance(e.op, ast.Sub) and a.kind in NUMBER and a.kind != "T":
                return self.call_helper("formula_subtract_from", [a, b])
            return self.call_op(BINARY[type(e.op)], [a, b], {})
        if "S" in (a.kind, b.kind):
            name = {ast.Add: "add", ast.Sub: "sub", ast.Mult: "mul"}.get(type(e.op))
            if name is None:
                self.fail(f"formula: '{ast.unparse(e)}' is not defined for Scalars")
            f = "em_scalar_mul" if name == "mul" else f"formula_scalar_{name}"
            return Val(f"{f}({self.as_scalar(a)}, {self.as_scalar(b)})", "S")
        if a.kind in ("I", "D") and b.kind in ("I", "D") and type(e.op) in C_BINARY:
            kind = "D" if "D" in (a.kind, b.kind) or isinstance(e.op, ast.Div) else "I"
            left = f"(double){a.code}" if kind == "D" and a.kind == "I" else a.code
            return Val(f"({left} {C_BINARY[type(e.op)]} {b.code})", kind)
        self.fail(f"formula: '{ast.unparse(e)}' mixes {a.kind} and {b.kind}")

    def on_Compare(self, e):
        if len(e.ops) != 1:
            self.fail("formula: one comparison at a time")
        op = e.ops[0]
        a, b = self.expr(e.left), self.expr(e.comparators[0])
        if isinstance(op, (ast.Is, ast.IsNot)) and b.kind == "NONE":
            given = {"T": f"{a.code} != NULL", "OI": f"{a.code}.has", "OD": f"{a.code}.has",
                     "S": f"em_scalar_given({a.code})", "IL": f"{a.code}.n >= 0",
                     "STR": f"{a.code} != NULL"}.get(a.kind)
            if given is None:
                self.fail(f"formula: '{ast.unparse(e.left)}' is always there")
            return Val(f"({given})" if isinstance(op, ast.IsNot) else f"!({given})", "B")
        if type(op) not in COMPARE:
            self.fail(f"formula: '{ast.unparse(e)}' is not part of the language")
        name, sign = COMPARE[type(op)]
        if "T" in (a.kind, b.kind):
            return self.call_op(name, [a, b], {})
        if a.kind == "S" and b.kind in ("I", "D") and sign in ("==", "!="):
            return Val(("" if sign == "==" else "!") + f"em_scalar_equal({a.code}, {b.code})", "B")
        if a.kind == "STR" and b.kind == "STR" and sign in ("==", "!="):
            return Val(f"(strcmp({a.code}, {b.code}) {sign} 0)", "B")
        return Val(f"({a.code} {sign} {b.code})", "B")

    def on_BoolOp(self, e):
        sign = " && " if isinstance(e.op, ast.And) else " || "
        return Val("(" + sign.join(self.as_bool(self.expr(v)) for v in e.values) + ")", "B")

    def on_IfExp(self, e):
        cond = self.as_bool(self.expr(e.test))
        branches = []
        for b in (e.body, e.orelse):
            outer, self.lines, self.indent = self.lines, [], self.indent + "  "
            v = self.expr(b)
            branches.append((v, self.lines))
            self.lines, self.indent = outer, self.indent[:-2]
        kinds = {v.kind for v, _ in branches}
        if kinds <= {"T", "NONE"}:
            t = self.temp()
            for word, (v, lines) in zip((f"if ({cond}) {{", "} else {"), branches):
                self.put(word)
                self.lines += lines
                if v.kind == "T":
                    self.indent += "  "
                    self.give(v, t)
                    self.indent = self.indent[:-2]
            self.put("}")
            return Val(t, "T", t)
        if any(lines for _, lines in branches) or len(kinds) != 1:
            self.fail(f"formula: the branches of '{ast.unparse(e)}' are {', '.join(sorted(kinds))}")
        return Val(f"({cond} ? {branches[0][0].code} : {branches[1][0].code})", kinds.pop())

    def on_Subscript(self, e):
        key = f"{ast.unparse(e.value)}[{ast.unparse(e.slice)}]"
        if key in self.names:
            return self.names[key]
        v, i = self.expr(e.value), self.expr(e.slice)
        if v.kind == "IL" and i.kind == "I":
            return Val(f"{v.code}.p[{i.code}]", "I")
        self.fail(f"formula: '{ast.unparse(e)}' cannot be indexed")

    def on_Attribute(self, e):
        self.fail(f"formula: '{ast.unparse(e)}': attributes are written as calls, such as x.sizes()")

    def on_Call(self, e):
        kwargs = {k.arg: k.value for k in e.keywords}
        if isinstance(e.func, ast.Name):
            args = [self.expr(a) for a in e.args]
            if e.func.id.startswith("formula_"):
                if kwargs:
                    self.fail(f"formula: {e.func.id} takes no keyword arguments")
                return self.call_helper(e.func.id, args)
            return self.call_op(e.func.id, args, {k: self.expr(v) for k, v in kwargs.items()})
        if not isinstance(e.func, ast.Attribute):
            self.fail(f"formula: cannot call '{ast.unparse(e.func)}'")
        special = f"{ast.unparse(e.func)}({', '.join(ast.unparse(a) for a in e.args)})"
        if special in self.names:      # a saved property: self.sizes()
            return self.names[special]
        v = self.expr(e.func.value)
        args = [self.expr(a) for a in e.args]
        return self.method(v, e.func.attr, args, {k: self.expr(x) for k, x in kwargs.items()})

    def method(self, v, name, args, kwargs):
        if name == "conj" and v.kind == "S":
            return Val(f"em_scalar_conj({v.code})", "S")
        if name == "conj" and v.kind in ("I", "D"):
            return v
        if v.kind != "T":
            self.fail(f"formula: a {v.kind} has no method '{name}'")
        if name == "conj":
            return self.call_helper("formula_conj", [v])
        plain = {"sizes": (f"((em_ints){{{v.code}->sizes, {v.code}->ndim}})", "IL"),
                 "dim": (f"(int64_t){v.code}->ndim", "I"),
                 "strides": (f"((em_ints){{{v.code}->strides, {v.code}->ndim}})", "IL"),
                 "numel": (f"{v.code}->numel", "I"), "scalar_type": (f"(int){v.code}->dtype", "DT"),
                 "is_complex": (f"em_dtype_is_complex({v.code}->dtype)", "B"),
                 "storage_offset": (f"{v.code}->offset", "I")}
        if name in plain and not args:
            return Val(*plain[name])
        if name == "size" and len(args) == 1 and args[0].kind == "I":
            return Val(f"formula_size({v.code}, {args[0].code})", "I")
        return self.call_op(name, [v] + args, kwargs)

    # ---- calls

    def call_helper(self, name, args):
        h = self.helpers.get(name)
        if h is None:
            self.fail(f"formula: src/autograd/formulas.h has no '{name}'")
        if len(args) != len(h.params):
            self.fail(f"formula: {name} takes {len(h.params)} arguments, got {len(args)}")
        codes = ["base"] if h.takes_node else []
        for a, c in zip(args, h.params):
            code = self.convert_c(a, c)
            if code is None:
                self.fail(f"formula: {name}: cannot pass {a.kind} '{a.code}' as {c}")
            codes.append(code)
        if h.value:
            return Val(f"{name}({', '.join(codes)})", h.value)
        return self.finish_call(name, codes, h.outs)

    def finish_call(self, name, codes, outs):
        results = []
        for kind in outs:
            if kind == "T":
                t = self.temp()
                results.append(Val(t, "T", t))
            else:
                t = f"l{len(self.lists)}"
                self.lists.append(t)
                results.append(Val(f"((em_tensors){{{t}.p, {t}.n}})", "TL", t))
        self.put(f"EM_TRY({name}({', '.join(codes + ['&' + r.temp for r in results])}));")
        return results[0] if len(results) == 1 else Val("", "LIST", items=results)

    def call_op(self, name, args, kwargs):
        overloads = self.ops.get(name)
        if not overloads:
            self.fail(f"formula: no operator '{name}'", unknown=True)
        for loose in (False, True):
            for op in overloads:
                if op.variant == "out":
                    continue
                if op.variant == "inplace":
                    self.fail(f"formula: '{name}' writes in place; formulas are functional")
                plan = self.match(op, args, kwargs, loose)
                if plan is not None:
                    codes = [self.wrap(a) if a is not None and how == "wrap" else how for a, how in plan]
                    outs = ["OL" if r.type.is_list else "T" for r in op.typed_returns]
                    return self.finish_call(f"em_call_{op.cname}", codes, outs)
        self.fail(f"formula: no overload of '{name}' takes ({', '.join(a.kind for a in args)})", unknown=True)

    def match(self, op, args, kwargs, loose):
        """[(value, code)] for each parameter, or None. code 'wrap': a number becomes a 0-dim tensor."""
        plan, rest, used = [], list(args), 0
        for p in op.args:
            if rest and not p.kwarg_only:
                a = rest.pop(0)
            elif p.name in kwargs:
                a, used = kwargs[p.name], used + 1
            elif p.default is not None or p.type.optional:
                plan.append((None, default_code(p.type, p.default)))
                continue
            else:
                return None
            code = self.convert(a, p.type)
            if code is None and loose and c_type(p.type) == "em_tensor *" and a.kind in NUMBER:
                code = "wrap"
            if code is None:
                return None
            plan.append((a, code))
        return plan if not rest and used == len(kwargs) else None

    def wrap(self, a):
        t = self.temp()
        self.put(f"EM_TRY(em_tensor_wrap_scalar({self.as_scalar(a)}, &{t}));")
        return t

    def convert(self, a, t):
        if a.kind == "NONE":
            return default_code(t, None) if t.optional else None
        if t.is_list and t.base in ("int", "SymInt") and a.kind == "I" and t.size != 1:
            return None
        return self.convert_c(a, c_type(t), t)

    def convert_c(self, a, c, t=None):
        """C code passing value `a` as C type `c`, or None."""
        kind = KIND_OF_C[c]
        if a.kind == "NONE":
            return {"T": "NULL", "OI": "em_no_int()", "OD": "em_no_double()", "IL": "EM_INTS_NONE", "OB": "-1",
                    "S": "em_scalar_none()", "DT": "-1", "STR": "NULL"}.get(kind)
        if a.kind == kind:
            return a.code
        if kind == "S" and a.kind in ("I", "D", "B"):
            return self.as_scalar(a)
        if kind == "IL" and a.kind == "I":
            return f"EM_INTS({a.code})"
        if kind == "IL" and a.kind == "LIST" and all(i.kind == "I" for i in a.items):
            return f"EM_INTS({', '.join(i.code for i in a.items)})" if a.items else "(em_ints){NULL, 0}"
        if kind == "TL" and a.kind == "LIST" and a.items and all(i.kind == "T" for i in a.items):
            return f"((em_tensors){{(em_tensor *const[]){{{', '.join(i.code for i in a.items)}}}, {len(a.items)}}})"
        if kind == "D" and a.kind == "I":
            return f"(double){a.code}"
        if kind == "OI" and a.kind == "I":
            return f"em_some_int({a.code})"
        if kind == "OD" and a.kind in ("D", "I"):
            return f"em_some_double({a.code})"
        if kind == "OB" and a.kind == "B":
            return a.code
        return None

    def as_scalar(self, a):
        make = {"I": "em_scalar_int", "D": "em_scalar_double", "B": "em_scalar_bool"}
        if a.kind == "S":
            return a.code
        if a.kind not in make:
            self.fail(f"formula: '{a.code}' is not a number")
        return f"{make[a.kind]}({a.code})"

    def as_bool(self, v):
        if v.kind not in ("B", "I"):
            self.fail(f"formula: '{v.code}' is not a condition")
        return v.code

    def give(self, v, target):
        """Stores a new reference of v in `target`; moves temporaries."""
        if v.kind == "NONE":
            return
        if v.kind != "T":
            self.fail(f"formula: a gradient is a tensor, got {v.kind}")
        if v.temp:
            self.put(f"{target} = {v.temp};")
            self.put(f"{v.temp} = NULL;")
        else:
            self.put(f"{target} = em_tensor_retain({v.code});")

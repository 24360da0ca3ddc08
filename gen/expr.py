"""expr.py: the expression language of pointwise and reduction rows: text -> tree -> typed tree -> C or OpenCL C.

The language is Python's expression syntax over a row's arguments: + - * / // %, & | ^ ~ << >>, comparisons, `a if c else b`,
calls of the functions of ops/vocabulary.yaml and of FUNCTIONS below, number literals, pi, inf, nan, lowest, highest.
A tree is typed once for every loop dtype: each node then has a concrete type, each literal is a constant of that type
and each conversion is a Cast node, so that a printer has nothing left to decide and no stray C double can enter an f32
loop.

Types: f32 f64 i64 i32 (numbers), b8 (a bool loop's element), c64 c128 (complex, pairs of reals), flag (a truth value).
"""

import ast
import math
import os
import re
import struct
from dataclasses import dataclass

from schema import RowError

REAL_OF = {"c64": "f32", "c128": "f64"}
FLOATS = ("f32", "f64")
INTS = ("i64", "i32")
COMPLEX = ("c64", "c128")
C_TYPES = {
    "f32": "float",
    "f64": "double",
    "i64": "int64_t",
    "i32": "int32_t",
    "b8": "uint8_t",
    "flag": "uint8_t",
    "c64": "em_c64",
    "c128": "em_c128",
}
CL_TYPES = {"f32": "float", "f64": "double", "i64": "long", "i32": "int", "b8": "uchar", "flag": "uchar"}


# ---- the tree ------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Node:
    """op: name, const, cast, or an operation; args: children; value: literal or name; type: None until typed."""

    op: str
    args: tuple = ()
    value: object = None
    type: "str | None" = None


BINARY = {
    ast.Add: "add",
    ast.Sub: "sub",
    ast.Mult: "mul",
    ast.Div: "div",
    ast.FloorDiv: "floordiv",
    ast.Mod: "mod",
    ast.BitAnd: "and",
    ast.BitOr: "or",
    ast.BitXor: "xor",
    ast.LShift: "shl",
    ast.RShift: "shr",
}
COMPARE = {ast.Eq: "eq", ast.NotEq: "ne", ast.Lt: "lt", ast.LtE: "le", ast.Gt: "gt", ast.GtE: "ge"}
NAMED = {"pi": math.pi, "inf": math.inf, "nan": math.nan, "lowest": "lowest", "highest": "highest", "eps": "eps"}

# Functions of the language itself: name -> (number of arguments, operand rule, result). Operand rule: same: one common
# number type; result: same, flag, real. The vocabulary's functions are `same -> same`.
FUNCTIONS = {
    "maximum": (2, "same", "same"),
    "minimum": (2, "same", "same"),
    "fmax": (2, "same", "same"),
    "fmin": (2, "same", "same"),
    "isnan": (1, "same", "flag"),
    "isinf": (1, "same", "flag"),
    "isfinite": (1, "same", "flag"),
    "nonzero": (1, "same", "flag"),
    "truncdiv": (2, "same", "same"),
    "fmod": (2, "same", "same"),
    "real": (1, "same", "real"),
    "imag": (1, "same", "real"),
    "conj": (1, "same", "same"),
    "cabs": (1, "same", "real"),
    "where": (3, "where", "same"),
    "fma": (3, "same", "same"),
    "ipow": (2, "same", "same"),
    "gcd": (2, "same", "same"),
    "lcm": (2, "same", "same"),
    "shl": (2, "same", "same"),
    "shr": (2, "same", "same"),
    "signbit": (1, "same", "flag"),
}
INTEGER_ONLY = ("gcd", "lcm", "shl", "shr")


def parse_expression(text, names, vocabulary, where):
    """Untyped tree of `text`. names: argument names it may use. vocabulary: {function: number of arguments}."""

    def fail(message):
        raise RowError(f"{where}: in '{text}': {message}")

    def walk(n):
        if isinstance(n, ast.BinOp):
            if type(n.op) not in BINARY:
                fail(f"operator {type(n.op).__name__} is not in the language (use pow(a, b) for powers)")
            return Node(BINARY[type(n.op)], (walk(n.left), walk(n.right)))
        if isinstance(n, ast.UnaryOp):
            inner = walk(n.operand)
            if isinstance(n.op, ast.USub):
                if inner.op == "const" and not isinstance(inner.value, str):
                    return Node("const", value=-inner.value)
                return Node("neg", (inner,))
            if isinstance(n.op, ast.Invert):
                return Node("invert", (inner,))
            if isinstance(n.op, ast.Not):
                return Node("not", (inner,))
            fail("unary + is not in the language")
        if isinstance(n, ast.BoolOp):
            op = "both" if isinstance(n.op, ast.And) else "either"
            tree = walk(n.values[0])
            for v in n.values[1:]:
                tree = Node(op, (tree, walk(v)))
            return tree
        if isinstance(n, ast.Compare):
            if len(n.ops) != 1 or type(n.ops[0]) not in COMPARE:
                fail("one comparison at a time: write `a < b and b < c`")
            return Node(COMPARE[type(n.ops[0])], (walk(n.left), walk(n.comparators[0])))
        if isinstance(n, ast.IfExp):
            return Node("where", (walk(n.test), walk(n.body), walk(n.orelse)))
        if isinstance(n, ast.Call):
            if not isinstance(n.func, ast.Name) or n.keywords:
                fail("functions are called by name, without keywords")
            name = n.func.id
            arity = FUNCTIONS[name][0] if name in FUNCTIONS else vocabulary.get(name)
            if arity is None:
                fail(f"unknown function '{name}'")
            if arity != len(n.args):
                fail(f"{name} takes {arity} argument(s), got {len(n.args)}")
            return Node(name if name in FUNCTIONS else "call", tuple(walk(a) for a in n.args), value=name)
        if isinstance(n, ast.Name):
            if n.id in names:
                return Node("name", value=n.id)
            if n.id in NAMED:
                return Node("const", value=NAMED[n.id])
            fail(f"unknown name '{n.id}' (arguments: {', '.join(names)})")
        if isinstance(n, ast.Constant) and isinstance(n.value, (int, float)):
            return Node("const", value=n.value)
        fail(f"{type(n).__name__} is not in the language")

    try:
        return walk(ast.parse(text.strip(), mode="eval").body)
    except SyntaxError as e:
        fail(f"syntax error at column {e.offset}")


def used_names(tree):
    if tree.op == "name":
        return {tree.value}
    return set().union(*(used_names(a) for a in tree.args)) if tree.args else set()


# ---- typing --------------------------------------------------------------------------------------------------------


class Typer:
    """Gives every node of a tree a concrete type for one loop dtype."""

    def __init__(self, loop, types, where, text):
        self.loop, self.types, self.where, self.text = loop, types, where, text

    def fail(self, message):
        raise RowError(f"{self.where}: in '{self.text}', typed for {self.loop}: {message}")

    def const(self, value, to):
        if to in INTS + ("b8",) and isinstance(value, float) and (not math.isfinite(value) or value != int(value)):
            self.fail(f"literal {value} has no integer value")
        return Node("const", value=value, type=to)

    def cast(self, node, to):
        if node.type == to:
            return node
        if node.op == "const":
            return self.const(node.value, to)
        if to == "flag":
            return Node("nonzero", (node,), type="flag")
        if node.type in COMPLEX and to not in COMPLEX:
            self.fail(f"a {node.type} value does not become {to} by itself (real(), imag(), cabs())")
        return Node("cast", (node,), type=to)

    def number(self, tree):
        """A typed child that is a number: truth values become the loop's 0 and 1."""
        t = self.type(tree)
        return self.cast(t, self.loop) if t.type == "flag" else t

    def common(self, trees):
        nodes = [self.number(t) for t in trees]
        kinds = {n.type for n in nodes if n.op != "const"} or {self.loop}
        mixed = self.loop if any(k in COMPLEX for k in kinds) else REAL_OF.get(self.loop, self.loop)
        to = next(iter(kinds)) if len(kinds) == 1 else mixed
        return [self.cast(n, to) for n in nodes], to

    def flag(self, tree):
        return self.cast(self.type(tree), "flag")

    def type(self, tree):
        op = tree.op
        if op == "name":
            return Node("name", value=tree.value, type=self.types[tree.value])
        if op == "const":
            return self.const(tree.value, self.loop)
        if op in ("both", "either", "not"):
            return Node(op, tuple(self.flag(a) for a in tree.args), type="flag")
        if op == "where":
            rest, to = self.common(tree.args[1:])
            return Node("where", (self.flag(tree.args[0]), *rest), type=to)
        if op in ("and", "or", "xor"):
            typed = [self.type(a) for a in tree.args]
            if all(t.type == "flag" for t in typed):
                return Node(op, tuple(typed), type="flag")
        args, to = self.common(tree.args)
        return self.operation(tree, op, tuple(args), to)

    def operation(self, tree, op, args, to):
        if op in ("eq", "ne", "lt", "le", "gt", "ge"):
            if to in COMPLEX and op not in ("eq", "ne"):
                self.fail("complex numbers have no order")
            return Node(op, args, type="flag")
        if op in ("and", "or", "xor", "invert"):
            if to not in INTS + ("b8",):
                self.fail(f"bitwise operators need integers, got {to}")
            return Node(op, args, type=to)
        if op in INTEGER_ONLY and to not in INTS:
            self.fail(f"{op} needs integers, got {to}")
        if op in FUNCTIONS:
            result = FUNCTIONS[op][2]
            if op in ("real", "imag", "cabs", "conj") and to not in COMPLEX:
                self.fail(f"{op}() is for complex expressions")
            kind = {"flag": "flag", "real": REAL_OF.get(to), "same": to}[result]
            return Node(op, args, value=op, type=kind)
        if op == "call":
            if to in INTS + ("b8",):
                self.fail(f"{tree.value}() has no integer form")
            return Node("call", args, value=tree.value, type=to)
        if to == "b8" and op in ("neg", "div", "floordiv", "mod"):
            self.fail("bool loops have no arithmetic of this kind")
        if op == "div" and to in INTS:
            self.fail("use // or truncdiv() on integers")
        return Node(op, args, type=to)


def type_tree(tree, loop, types, result, where, text):
    """Typed tree whose root has type `result` ('flag', or a number type)."""
    t = Typer(loop, types, where, text)
    return t.cast(t.type(tree), result)


# ---- printers ------------------------------------------------------------------------------------------------------


def literal(value, t):
    """C constant of exactly this type."""
    if value in ("lowest", "highest"):
        if t in FLOATS:
            return f"{'-' if value == 'lowest' else ''}__builtin_inf{'f' if t == 'f32' else ''}()"
        return {
            "i64": {"lowest": "INT64_MIN", "highest": "INT64_MAX"},
            "i32": {"lowest": "INT32_MIN", "highest": "INT32_MAX"},
            "b8": {"lowest": "0", "highest": "1"},
        }[t][value]
    if value == "eps":
        return {"f32": "0x1p-23f", "f64": "0x1p-52"}[t]
    if t in COMPLEX:
        r = REAL_OF[t]
        return f"(({C_TYPES[t]}){{{literal(value, r)}, {literal(0, r)}}})"
    if t in FLOATS:
        suffix = "f" if t == "f32" else ""
        if math.isnan(value):
            return f'__builtin_nan{suffix}("")'
        if math.isinf(value):
            return f"{'-' if value < 0 else ''}__builtin_inf{suffix}()"
        if t == "f32":
            exact = struct.unpack("f", struct.pack("f", value))[0]
            text = next(
                s
                for s in (f"{exact:.{d}g}" for d in range(1, 18))
                if struct.unpack("f", struct.pack("f", float(s)))[0] == exact
            )
        else:
            text = repr(float(value))
        return (text if re.search(r"[.e]", text) else text + ".0") + suffix
    return f"{int(value)}" + ("" if t != "i64" or abs(int(value)) < 2**31 else "LL")


INFIX = {
    "add": "+",
    "sub": "-",
    "mul": "*",
    "div": "/",
    "and": "&",
    "or": "|",
    "xor": "^",
    "eq": "==",
    "ne": "!=",
    "lt": "<",
    "le": "<=",
    "gt": ">",
    "ge": ">=",
}


class CPrinter:
    """C for the CPU. Truth values are int expressions of value 0 or 1, combined without branches."""

    types = C_TYPES

    def __init__(self, vocabulary):
        self.vocabulary = vocabulary

    def print(self, n):
        a = [self.print(x) for x in n.args]
        if n.op == "name":
            return f"({n.value} != 0)" if n.type == "flag" else n.value
        if n.op == "const":
            return literal(n.value, n.type)
        if n.op == "cast":
            return self.cast(n, a[0])
        if n.op in ("both", "either"):
            return f"({a[0]} {'&' if n.op == 'both' else '|'} {a[1]})"
        if n.op == "not":
            return f"!{a[0]}" if a[0].startswith("(") else f"!({a[0]})"
        if n.op == "where":
            return f"({a[0]} ? {a[1]} : {a[2]})"
        if n.args and n.args[0].type in COMPLEX:
            return self.complex(n, a)
        if n.op in INFIX:
            return f"({a[0]} {INFIX[n.op]} {a[1]})"
        if n.op == "neg":
            return f"(-{a[0]})"
        if n.op == "invert":
            return f"(!{a[0]})" if n.type == "b8" else f"(~{a[0]})"
        if n.op == "nonzero":
            return f"({a[0]} != 0)"
        return self.function(n, a)

    def cast(self, n, text):
        if n.type in COMPLEX:
            return f"(({C_TYPES[n.type]}){{{self.real_cast(n.args[0].type, REAL_OF[n.type], text)}, 0}})"
        return self.real_cast(n.args[0].type, n.type, text)

    def real_cast(self, frm, to, text):
        return text if frm == to else f"({self.types[to]}){text}"

    def complex(self, n, a):
        return (
            f"em_c{n.op if n.op != 'call' else n.value}_{n.args[0].type}({', '.join(a)})"
            if n.op != "cabs"
            else f"em_cabs_{n.args[0].type}({a[0]})"
        )

    def function(self, n, a):
        t = n.args[0].type
        if n.op == "call":
            return self.vocabulary.c_call(n.value, t, a)
        sticky = ", sticky" if n.op in ("floordiv", "mod", "truncdiv", "fmod") and t in INTS else ""
        return f"em_{n.op}_{t}({', '.join(a)}{sticky})"


class CLPrinter(CPrinter):
    """OpenCL C. The tree is the same; only names of functions and constants differ."""

    types = CL_TYPES
    NAMES = {
        "maximum": "ember_maximum",
        "minimum": "ember_minimum",
        "fmax": "fmax",
        "fmin": "fmin",
        "isnan": "isnan",
        "isinf": "isinf",
        "isfinite": "isfinite",
        "floordiv": "ember_floordiv",
        "mod": "ember_mod",
        "truncdiv": "ember_truncdiv",
        "fmod": "fmod",
        "fma": "fma",
        "ipow": "ember_ipow",
        "gcd": "ember_gcd",
        "lcm": "ember_lcm",
        "shl": "ember_shl",
        "shr": "ember_shr",
        "signbit": "signbit",
    }

    def function(self, n, a):
        if n.op == "call":
            return self.vocabulary.cl_call(n.value, a)
        return f"{self.NAMES[n.op]}({', '.join(a)})"

    def complex(self, n, a):
        raise RowError("complex expressions have no OpenCL C form yet")


class Vocabulary:
    """ops/vocabulary.yaml: scalar functions and their names in each target language."""

    def __init__(self, ops_dir):
        from rows import load_yaml

        self.functions = {f["name"]: f for f in load_yaml(os.path.join(ops_dir, "vocabulary.yaml"))}

    @property
    def arity(self):
        return {n: int(f["arity"]) for n, f in self.functions.items()}

    def c_call(self, name, t, a):
        return f"{self.functions[name]['c']}_{t}({', '.join(a)})"

    def array_call(self, tree):
        """The routine that does a whole loop `o[i] = tree(a[i])`, or None: tree is one call on an operand."""
        one = tree.op == "call" and len(tree.args) == 1 and tree.args[0].op == "name"
        same = one and tree.type == tree.args[0].type and tree.type in ("f32", "f64")
        stem = self.functions[tree.value].get("array") if same else None
        return f"{stem}_{tree.type}" if stem else None

    def cl_call(self, name, a):
        form = self.functions[name]["opencl"]
        return form.format(*a) if "{" in form else f"{form}({', '.join(a)})"

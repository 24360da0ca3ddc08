"""Schemas of operators as objects: torch.ops.aten.add.Tensor._schema, torch._C.parse_schema(text). They print as PyTorch prints them."""

import functools
import re

from . import _C


# ---------------------------------------------------------------- types
class JitType:
    """A type of the schema language. `str` and `annotation_str` are its spelling, `kind()` the name of its class."""

    def __init__(self, text, *contained):
        self._text, self._contained = text, contained

    annotation_str = property(lambda self: self._text)

    def str(self):
        return self._text

    def kind(self):
        return type(self).__name__

    def containedTypes(self):
        return list(self._contained)

    def isSubtypeOf(self, other):
        return self == other or (isinstance(other, OptionalType) and self.isSubtypeOf(other.getElementType()))

    def __repr__(self):
        return self._text

    def __eq__(self, other):
        return type(self) is type(other) and self._text == other._text if isinstance(other, JitType) else NotImplemented

    def __hash__(self):
        return hash((type(self).__name__, self._text))


class _Of(JitType):
    def __init__(self, element):
        super().__init__(f"{self._head}[{element}]", element)

    def getElementType(self):
        return self._contained[0]


class ListType(_Of):
    _head = "List"

    @staticmethod
    def ofInts():
        return ListType(_simple("int"))

    @staticmethod
    def ofTensors():
        return ListType(_simple("Tensor"))


class OptionalType(_Of):
    _head = "Optional"

    @staticmethod
    def ofTensor():
        return OptionalType(_simple("Tensor"))


def _kind(name):
    return type(name, (JitType,), {"__doc__": f"{name.removesuffix('Type')}, as a schema has it.", "__module__": "ember._C",
                                   "get": staticmethod(lambda: _simple(_SPELLING[name]))})


_SPELLING = {"TensorType": "Tensor", "NumberType": "number", "IntType": "int", "FloatType": "float", "BoolType": "bool",
             "StringType": "str", "DeviceObjType": "Device", "ScalarTypeType": "ScalarType", "LayoutType": "Layout",
             "MemoryFormatType": "MemoryFormat", "_GeneratorType": "Generator", "SymIntType": "SymInt", "ComplexType": "complex"}
_KINDS = {name: _kind(name) for name in _SPELLING}
(TensorType, NumberType, IntType, FloatType, BoolType, StringType, DeviceObjType, _, _, _, _, SymIntType, ComplexType) = _KINDS.values()
_BY_TEXT = {text: _KINDS[name] for name, text in _SPELLING.items()}
_BASE = re.compile(r"(?P<base>\w+)(?:\((?P<alias>[^)]*)\))?(?P<rest>[][?\d]*)$")
# What a program hears of types that are numbers underneath.
_PLAIN = {"SymInt": "int", "ScalarType": "int", "Layout": "int", "MemoryFormat": "int", "Scalar": "number"}


@functools.cache
def _simple(text):
    return _BY_TEXT[text]("int" if text == "SymInt" else text)  # PyTorch prints both alike


class _AliasInfo:
    """Which memory an argument or result is: sets of letters, and whether it is written."""

    def __init__(self, text, inside):
        before, _, after = text.removesuffix("!").partition(" -> ")
        before = before.removesuffix("!")
        self.is_write = "!" in text
        letters = set() if inside else {before}
        self.before_set = letters
        self.after_set = letters if not after or inside else {after.removesuffix("!")}


class Argument:
    """One argument or result of a schema."""

    def __init__(self, declared, name, default, kwarg_only):
        m = _BASE.match(declared.replace(" -> ", "->"))
        if m is None or (m["base"] not in _BY_TEXT and m["base"] != "Scalar"):
            raise RuntimeError(f"unknown type specifier: {declared}")
        self.name, self.kwarg_only, self._default = name, kwarg_only, default
        self._base, self._alias, self._rest = m["base"], m["alias"] and m["alias"].replace("->", " -> "), m["rest"]
        size = re.search(r"\[(\d+)\]", self._rest)
        self.N = int(size[1]) if size else None
        self.type, self.real_type = self._typed(_PLAIN.get(self._base, self._base)), self._typed(self._base)
        inside = "[" in self._rest
        self.alias_info = None if self._alias is None else _AliasInfo(self._alias, inside)
        self.default_value = None if default is None else self._value(default)

    def _typed(self, base):
        kind = _simple("number" if base == "Scalar" else base)
        for mark in re.findall(r"\[\d*\]|\?", self._rest):
            kind = OptionalType(kind) if mark == "?" else ListType(kind)
        return kind

    def _value(self, text):
        items = [t.strip() for t in text[1:-1].split(",") if t.strip()] if text.startswith("[") else None
        if items is not None:
            return [self._element(t) for t in items]
        if text in ("None", "none"):
            return None
        one = self._element(text)
        return [one] * self.N if self.N is not None else one

    def _element(self, text):
        if text in ("True", "False"):
            return text == "True"
        if text[:1] in "\"'":
            return text[1:-1]
        named = {"Mean": 1, "Sum": 2, "long": 4, "float": 6, "bool": 11, "strided": 0, "contiguous_format": 0, "preserve_format": 1}
        if text in named:
            return named[text]
        return float(text) if self._base == "float" or not re.fullmatch(r"-?\d+", text) else int(text)

    @property
    def is_out(self):
        """Whether it is a tensor to be written, given by keyword."""
        return self.kwarg_only and self.is_write

    @property
    def is_write(self):
        return self.alias_info is not None and self.alias_info.is_write

    def has_default_value(self):
        return self._default is not None

    def _text(self):
        """As PyTorch prints it; results have a name or none."""
        rest = self._rest if self._rest[:1] != "?" or self._alias is None or "[" in self._rest else "?"
        text = self._base + (f"({self._alias})" if self._alias is not None else "") + rest
        text += f" {self.name}" if self.name else ""
        if self._default is None:
            return text
        value = self.default_value
        if isinstance(value, list) and not self._default.startswith("["):
            value = value[0]  # one number for all of int[2]: it is printed as it was declared
        return f"{text}={_shown(value)}"

    def _key(self):
        return self._text(), self.kwarg_only

    def __eq__(self, other):
        return self._key() == other._key() if isinstance(other, Argument) else NotImplemented

    def __hash__(self):
        return hash(self._key())


def _shown(value):
    if isinstance(value, list):
        return f"[{', '.join(map(_shown, value))}]"
    if isinstance(value, str):
        return f'"{value}"'
    if isinstance(value, float):
        text = f"{value:.17g}"
        return text if re.search(r"[.en]", text) else text + "."
    return str(value)


# ---------------------------------------------------------------- schemas
def _split(text):
    """At commas outside brackets and quotes."""
    parts, depth, start, quote = [], 0, 0, ""
    for i, c in enumerate(text):
        if quote:
            quote = "" if c == quote else quote
        elif c in "'\"":
            quote = c
        elif c in "([":
            depth += 1
        elif c in ")]":
            depth -= 1
        elif c == "," and depth == 0:
            parts.append(text[start:i].strip())
            start = i + 1
    return [part for part in [*parts, text[start:].strip()] if part]


class FunctionSchema:
    """What an operator takes and returns. str() is its line of the schema language."""

    def __init__(self, text, qualified=None):
        m = re.match(r"\s*([\w:]+)(?:\.(\w+))?\s*\((.*)\)\s*->\s*(.+?)\s*$", text, re.S)
        self.name, self.overload_name = m[1] if qualified is None else qualified, m[2] or ""
        self.arguments, kwarg_only = [], False
        for item in _split(m[3]):
            if item == "*":
                kwarg_only = True
                continue
            declared, name, default = re.match(r"(.+?)\s+(\w+)\s*(?:=\s*(.+))?$", item, re.S).groups()
            self.arguments.append(Argument(declared, name, default, kwarg_only))
        returns = m[4][1:-1] if m[4].startswith("(") and m[4].endswith(")") else m[4]
        self.returns = []
        for item in _split(returns):
            declared, name = re.match(r"((?:[^\s(]|\([^)]*\))+)(?:\s+(\w+))?$", item).groups()
            self.returns.append(Argument(declared, name or "", None, False))

    @property
    def is_mutable(self):
        """Whether an argument is written."""
        return any(a.is_write for a in self.arguments)

    def _is_view_op(self):
        return any(a.alias_info is not None and not a.is_write for a in self.arguments)

    def is_backward_compatible_with(self, old):
        """Whether calls that were written for `old` still work: its arguments in their places, new ones with defaults."""
        mine, theirs = self.arguments, old.arguments
        if self.name != old.name or self.overload_name != old.overload_name or self.returns != old.returns or len(mine) < len(theirs):
            return False
        by_name = {a.name: a for a in mine}
        kept = all(a.name in by_name and by_name[a.name].type == a.type
                   and (by_name[a.name].has_default_value() or not a.has_default_value()) for a in theirs)
        order = [a.name for a in mine if not a.kwarg_only][:sum(not a.kwarg_only for a in theirs)]
        old_names = {a.name for a in theirs}
        return kept and order == [a.name for a in theirs if not a.kwarg_only] and all(
            a.has_default_value() for a in mine if a.name not in old_names)

    def check_forward_compatible_with(self, old):
        """(whether old readers understand calls of this one, why not)."""
        if self.is_backward_compatible_with(old):
            return True, ""
        return False, f"{self} cannot be called as {old}"

    def __str__(self):
        parts, star = [], False
        for a in self.arguments:
            if a.kwarg_only and not star:
                parts.append("*")
                star = True
            parts.append(a._text())
        returns = ", ".join(r._text() for r in self.returns)
        if len(self.returns) != 1 or self.returns[0].name:
            returns = f"({returns})"
        name = self.name + (f".{self.overload_name}" if self.overload_name else "")
        return f"{name}({', '.join(parts)}) -> {returns}"

    __repr__ = __str__

    def __eq__(self, other):
        return str(self) == str(other) if isinstance(other, FunctionSchema) else NotImplemented

    def __hash__(self):
        return hash(str(self))

    def __reduce__(self):
        return FunctionSchema, (str(self),)


for _class in (FunctionSchema, Argument, ListType, OptionalType):
    _class.__module__ = "ember._C"


def parse_schema(schema, allow_typevars=False):
    """A FunctionSchema from a line of the schema language: "my::f(Tensor x, int n=1) -> Tensor". RuntimeError when it is none."""
    _C._parse_schema(schema)
    return FunctionSchema(schema)


@functools.cache
def schema_of(op):
    """The schema of an OpOverload."""
    return FunctionSchema(op._schema_text, op._qualified_op_name)


def _of_name(full):
    namespace, _, rest = full.partition("::")
    name, _, overload = rest.partition(".")
    return _C._get_operation(namespace, name, overload or "default")


def _get_schema(name, overload_name=""):
    """The schema of "aten::add" and an overload. RuntimeError when there is none."""
    op = _of_name(f"{name}.{overload_name}" if overload_name else name)
    if op is None:
        raise RuntimeError(f"Found no matching schema for {name}.{overload_name}")
    return schema_of(op)


def _jit_get_schemas_for_operator(name):
    """The schemas of every overload of "aten::add"."""
    namespace, _, base = name.partition("::")
    return [schema_of(_C._get_operation(namespace, base, overload)) for overload in _C._overloads(namespace, base)]


def _jit_get_all_schemas():
    """The schemas of every operator."""
    return [schema_of(_of_name(name)) for name in _C._dispatch_get_all_op_names()]

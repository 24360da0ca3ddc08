"""schema.py: PyTorch's schema language: `add.Tensor(Tensor self, Tensor other, *, Scalar alpha=1) -> Tensor`.

Parses to Schema objects and knows, for each schema type, its C type, its box tag and how to move between the two.
src/dispatch/schema.c reads the same language at run time; a test compares the two readings for every row.
"""
import re
from dataclasses import dataclass, field


class RowError(Exception):
    """A bad row: message with file and line."""


@dataclass
class Type:
    base: str              # Tensor, Scalar, int, float, bool, str, ScalarType, Device, Layout, MemoryFormat, Generator
    optional: bool = False
    is_list: bool = False
    size: int = 0          # int[2]: 2
    item_optional: bool = False  # Tensor?[]
    alias: str = ""        # a, a!, ...

    @property
    def mutated(self):
        return self.alias.endswith("!")

    def __str__(self):
        s = self.base + ("?" if self.item_optional else "")
        s += f"({self.alias})" if self.alias else ""
        if self.is_list:
            s += f"[{self.size or ''}]"
        return s + ("?" if self.optional else "")

    @property
    def key(self):
        """The C type's name in signatures: what decides which unbox adapter serves."""
        return c_type(self)


@dataclass
class Arg:
    name: str
    type: Type
    default: "str | None" = None
    kwarg_only: bool = False
    out: bool = False

    def __str__(self):
        return f"{self.type} {self.name}" + (f"={self.default}" if self.default is not None else "")


@dataclass
class Ret:
    type: Type
    name: str = ""

    def __str__(self):
        return f"{self.type}" + (f" {self.name}" if self.name else "")


@dataclass
class Schema:
    name: str
    overload: str
    args: list = field(default_factory=list)
    returns: list = field(default_factory=list)
    ns: str = "aten"

    @property
    def full(self):
        return f"{self.ns}::{self.name}" + (f".{self.overload}" if self.overload else "")

    @property
    def cname(self):
        return self.name + (f"_{self.overload}" if self.overload else "")

    def __str__(self):
        parts, star = [], False
        for a in self.args:
            if a.kwarg_only and not star:
                parts.append("*")
                star = True
            parts.append(str(a))
        rets = ", ".join(map(str, self.returns))
        if len(self.returns) != 1 or self.returns[0].name:
            rets = f"({rets})"
        head = self.name + (f".{self.overload}" if self.overload else "")
        return f"{head}({', '.join(parts)}) -> {rets}"


BASES = {
    "Tensor",
    "Scalar",
    "int",
    "SymInt",
    "float",
    "bool",
    "str",
    "ScalarType",
    "Device",
    "Layout",
    "MemoryFormat",
    "Generator",
     "number"}
TYPE = re.compile(
    r"^(?P<base>\w+)(?P<iopt>\?(?=\())?(?:\((?P<alias>[a-z*!|> -]+)\))?(?P<iopt2>\?(?=\[))?(?P<list>\[(?P<size>\d*)\])?(?P<opt>\?)?$")


def parse_type(text):
    m = TYPE.match(text)
    if not m or m["base"] not in BASES:
        raise RowError(f"unknown type '{text}'")
    return Type(
    m["base"], bool(
        m["opt"]), bool(
            m["list"]), int(
                m["size"] or 0), bool(
                    m["iopt"] or m["iopt2"]), m["alias"] or "")


def split_top(text):
    """Splits at commas outside brackets and quotes."""
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
    last = text[start:].strip()
    return parts + [last] if last or parts else parts


def parse_returns(text):
    text = text.strip()
    if text == "()":
        return []
    if text.startswith("(") and text.endswith(")"):
        items = split_top(text[1:-1])
    else:
        items = [text]
    rets = []
    for item in items:
        words = item.split()
        if len(words) not in (1, 2):
            raise RowError(f"cannot read return '{item}'")
        rets.append(Ret(parse_type(words[0]), words[1] if len(words) == 2 else ""))
    return rets


def parse(text):
    m = re.match(r"^(?:(?P<ns>\w+)::)?(?P<name>\w+)(?:\.(?P<over>\w+))?\((?P<args>.*)\)\s*->\s*(?P<rets>.+)$", text.strip())
    if not m:
        raise RowError(f"cannot read schema '{text}'")
    s = Schema(m["name"], m["over"] or "", ns=m["ns"] or "aten")
    kwarg = False
    for item in split_top(m["args"]):
        if item == "*":
            kwarg = True
            continue
        am = re.match(r"^(.+?)\s+(\w+)(?:=(.+))?$", item)
        if not am:
            raise RowError(f"cannot read argument '{item}'")
        if any(a.name == am[2] for a in s.args):
            raise RowError(f"argument '{am[2]}' is named twice")
        s.args.append(Arg(am[2], parse_type(am[1]), am[3], kwarg))
    s.returns = parse_returns(m["rets"])
    return s


# ---- C: types by value or borrowed, tags, boxing and unboxing --------------------------------------------------------

def c_type(t):
    if t.base == "Tensor":
        return "em_tensors" if t.is_list else "em_tensor *"
    if t.is_list:
        return {
    "int": "em_ints",
    "SymInt": "em_ints",
    "float": "em_doubles",
    "bool": "em_bools",
    "Scalar": "em_scalars"}[
        t.base]
    if t.base in ("int", "SymInt"):
        return "em_opt_int" if t.optional else "int64_t"
    if t.base == "float":
        return "em_opt_double" if t.optional else "double"
    if t.base == "bool":
        return "em_opt_bool" if t.optional else "bool"
    return {"Scalar": "em_scalar", "number": "em_scalar", "str": "const char *", "ScalarType": "int",
        "Device": "em_device", "Layout": "int", "MemoryFormat": "int", "Generator": "struct em_generator *"}[t.base]


def c_decl(t, name):
    c = c_type(t)
    return c + name if c.endswith("*") else f"{c} {name}"


def c_ret(t, name):
    if t.base == "Tensor":
        return f"em_tensor_list *{name}" if t.is_list else f"em_tensor **{name}"
    return {"int": "int64_t *", "SymInt": "int64_t *", "bool": "bool *",
        "Scalar": "em_scalar *", "float": "double *"}[t.base] + name


def type_enum(t):
    if t.base == "Tensor":
        return ("EM_TYPE_OPT_TENSOR_LIST" if t.item_optional else "EM_TYPE_TENSOR_LIST") if t.is_list else "EM_TYPE_TENSOR"
    if t.is_list:
        return {
    "int": "EM_TYPE_INT_LIST",
    "SymInt": "EM_TYPE_INT_LIST",
    "float": "EM_TYPE_DOUBLE_LIST",
    "bool": "EM_TYPE_BOOL_LIST",
    "Scalar": "EM_TYPE_SCALAR_LIST"}[
        t.base]
    return {
    "Scalar": "EM_TYPE_SCALAR",
    "number": "EM_TYPE_SCALAR",
    "int": "EM_TYPE_INT",
    "SymInt": "EM_TYPE_SYMINT",
    "float": "EM_TYPE_DOUBLE",
    "bool": "EM_TYPE_BOOL",
    "ScalarType": "EM_TYPE_DTYPE",
    "Layout": "EM_TYPE_LAYOUT",
    "Device": "EM_TYPE_DEVICE",
    "MemoryFormat": "EM_TYPE_MEMORY_FORMAT",
    "Generator": "EM_TYPE_GENERATOR",
    "str": "EM_TYPE_STRING"}[
        t.base]


ENUM_TAGS = {"ScalarType": "EM_TAG_DTYPE", "Layout": "EM_TAG_LAYOUT", "MemoryFormat": "EM_TAG_MEMORY_FORMAT"}


def box(t, name):
    """C expression: an em_value from a typed argument."""
    c = c_type(t)
    return {
    "em_tensor *": f"em_value_tensor({name})",
    "em_tensors": f"em_value_tensors({name})",
    "em_ints": f"em_value_ints({name})",
    "em_doubles": f"em_value_doubles({name})",
    "em_bools": f"em_value_bools({name})",
    "em_scalars": f"em_value_scalars({name})",
    "em_opt_int": f"em_value_opt_int({name})",
    "int64_t": f"em_value_int({name})",
    "em_opt_double": f"em_value_opt_double({name})",
    "double": f"em_value_double({name})",
    "em_opt_bool": f"em_value_opt_bool({name})",
    "bool": f"em_value_bool({name})",
    "em_scalar": f"em_value_scalar({name})",
    "const char *": f"em_value_string({name})",
    "em_device": f"em_value_device({name})",
    "struct em_generator *": f"em_value_generator({name})",
     "int": f"em_value_enum({ENUM_TAGS.get(t.base)}, {name})"}[c]


def unbox(t, v):
    """C expression: the typed argument from a const em_value *."""
    c = c_type(t)
    return {
    "em_tensor *": f"em_unbox_tensor({v})",
    "em_tensors": f"em_unbox_tensors({v})",
    "em_ints": f"em_unbox_ints({v})",
    "em_doubles": f"em_unbox_doubles({v})",
    "em_bools": f"em_unbox_bools({v})",
    "em_scalars": f"em_unbox_scalars({v})",
    "em_opt_int": f"em_unbox_opt_int({v})",
    "int64_t": f"em_unbox_int({v})",
    "em_opt_double": f"em_unbox_opt_double({v})",
    "double": f"em_unbox_double({v})",
    "em_opt_bool": f"em_unbox_opt_bool({v})",
    "bool": f"em_unbox_bool({v})",
    "em_scalar": f"em_unbox_scalar({v})",
    "const char *": f"em_unbox_string({v})",
    "em_device": f"em_unbox_device({v})",
    "struct em_generator *": f"em_unbox_generator({v})",
     "int": f"em_unbox_enum({v})"}[c]


def default_value(t, text):
    """C initialiser of an em_value for a schema default."""
    if text in ("None", "none"):
        return "{.tag = EM_TAG_NONE}"
    if t.is_list:
        m = re.match(r"^\[(.*)\]$", text)
        items = [x.strip() for x in m[1].split(",") if x.strip()] if m else [text] * (t.size or 1)
        tag, c = {"int": ("INTS", "int64_t"), "SymInt": ("INTS", "int64_t"), "float": (
            "DOUBLES", "double"), "bool": ("BOOLS", "uint8_t"), "Tensor": ("TENSORS", "em_tensor *")}[t.base]
        items = [{"True": "1", "False": "0"}.get(x, x) for x in items]
        arr = f"(const {c}[]){{{', '.join(items)}}}" if items else "NULL"
        return f"{{.list = {{.p = {arr}, .n = {len(items)}}}, .tag = EM_TAG_{tag}}}"
    if t.base in ("int", "SymInt"):
        named = {"Mean": "1", "Sum": "2"}
        return f"{{.i = {named.get(text, text)}, .tag = EM_TAG_INT}}"
    if t.base == "float":
        return f"{{.d = {float(text)!r}, .tag = EM_TAG_DOUBLE}}".replace("inf", "INFINITY")
    if t.base == "bool":
        return f"{{.i = {int(text == 'True')}, .tag = EM_TAG_BOOL}}"
    if t.base in ("Scalar", "number"):
        if text in ("True", "False"):
            return f"{{.scalar = {{.i = {int(text == 'True')}, .kind = EM_SCALAR_BOOL}}, .tag = EM_TAG_SCALAR}}"
        if re.match(r"^-?\d+$", text):
            return f"{{.scalar = {{.i = {text}, .kind = EM_SCALAR_INT}}, .tag = EM_TAG_SCALAR}}"
        return f"{{.scalar = {{.d = {float(text)!r}, .kind = EM_SCALAR_DOUBLE}}, .tag = EM_TAG_SCALAR}}"
    if t.base == "str":
        return '{.string = "%s", .tag = EM_TAG_STRING}' % text.strip("'\"")
    if t.base == "MemoryFormat":
        return "{.i = %s, .tag = EM_TAG_MEMORY_FORMAT}" % {
    "contiguous_format": "EM_FORMAT_CONTIGUOUS",
     "preserve_format": "EM_FORMAT_PRESERVE"}[text]
    if t.base == "ScalarType":
        return "{.i = %s, .tag = EM_TAG_DTYPE}" % {"long": "EM_I64", "float": "EM_F32", "bool": "EM_BOOL"}[text]
    raise RowError(f"default '{text}' of type {t} is not understood")

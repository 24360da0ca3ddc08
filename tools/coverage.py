"""Count PyTorch's public names: by namespace and tier, how many exist in Ember and how many a test uses.

The names stand in tests/api/names.tsv. A name exists when Ember resolves it. It is tested when a file under tests/, an
example or a page of the docs uses its last part as an attribute, a call, an import, a name in a list, or (operators) as an entry of
tests/ops/table*.py or a line of tests/parity. `--missing 1` lists what a tier lacks.
"""
import argparse
import ast
import glob
import importlib
import os
import re
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))


def names():
    """[(namespace, full name, tier)] in the file's order."""
    with open(os.path.join(ROOT, "tests", "api", "names.tsv"), encoding="utf-8") as file:
        rows = [line.rstrip("\n").split("\t") for line in file if not line.startswith("#")]
    return [(space, name, int(tier)) for space, name, _, tier in rows]


def exists(name):
    """Whether `torch.a.b` resolves with ember for torch; modules are imported on the way."""
    found, path = importlib.import_module("ember"), "ember"
    for part in name.split(".")[1:]:
        path += "." + part
        try:
            found = getattr(found, part)
        except AttributeError:
            try:
                found = importlib.import_module(path)
            except ImportError:
                return annotated(found, part)
    return True


def annotated(owner, attribute):
    """Attributes that instances get (Module.training) stand in the class's annotations or slots."""
    return isinstance(owner, type) and any(attribute in getattr(base, "__annotations__", {}) for base in owner.__mro__)


# What Python's operators and built-in functions call.
OPERATORS = {"Add": "add", "Sub": "sub", "Mult": "mul", "Div": "truediv", "FloorDiv": "floordiv", "Mod": "mod", "Pow": "pow",
             "MatMult": "matmul", "BitAnd": "and", "BitOr": "or", "BitXor": "xor", "LShift": "lshift", "RShift": "rshift",
             "USub": "neg", "UAdd": "pos", "Invert": "invert", "Eq": "eq", "NotEq": "ne", "Lt": "lt", "LtE": "le", "Gt": "gt",
             "GtE": "ge", "In": "contains", "NotIn": "contains"}
BUILT_IN = {"int": "int", "float": "float", "bool": "bool", "len": "len", "iter": "iter", "list": "iter", "repr": "repr",
            "hash": "hash", "abs": "abs", "format": "format", "deepcopy": "deepcopy", "dumps": "reduce_ex", "array": "array",
            "asarray": "array", "dir": "dir", "complex": "complex", "index": "index"}


def dunders(node):
    """The special methods that an operator, a call of a built-in function, a subscript or a format string uses."""
    if isinstance(node, ast.BinOp):
        name = OPERATORS[type(node.op).__name__]
        return {f"__{name}__", f"__r{name}__"} if isinstance(node.left, ast.Constant) else {f"__{name}__"}
    if isinstance(node, ast.AugAssign):
        return {f"__i{OPERATORS[type(node.op).__name__]}__"}
    if isinstance(node, ast.UnaryOp):
        return {f"__{OPERATORS.get(type(node.op).__name__, 'bool')}__"}
    if isinstance(node, ast.Compare):
        return {f"__{OPERATORS[type(op).__name__]}__" for op in node.ops if type(op).__name__ in OPERATORS}
    if isinstance(node, ast.Call):
        called = getattr(node.func, "id", getattr(node.func, "attr", None))
        return {"__call__"} | ({f"__{BUILT_IN[called]}__"} if called in BUILT_IN else set())
    if isinstance(node, ast.Subscript):
        return {"__setitem__" if isinstance(node.ctx, ast.Store) else "__getitem__"}
    return {"__format__"} if isinstance(node, ast.FormattedValue) else set()


def words_of_python(text):
    """Identifiers that a program uses as attribute, name or import, and the special methods behind its operators."""
    used = set()
    for node in ast.walk(ast.parse(text)):
        used |= dunders(node)
        if isinstance(node, ast.Attribute):
            used.add(node.attr)
        elif isinstance(node, ast.Name):
            used.add(node.id)
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and node.value.isidentifier() and len(node.value) > 3:
            used.add(node.value)  # a list of names that a test walks with getattr
        elif isinstance(node, (ast.Import, ast.ImportFrom)):
            used |= {part for alias in node.names for part in alias.name.split(".")}
    return used


def tested():
    """Every identifier that some test uses."""
    used = set()
    here = lambda *parts: sorted(glob.glob(os.path.join(ROOT, *parts), recursive=True))  # noqa: E731
    for path in here("tests", "**", "*.py") + here("examples", "python", "*.py"):
        with open(path, encoding="utf-8") as file:
            text = file.read()
        used |= words_of_python(text)
        if os.path.basename(path).startswith("table"):  # operators: E("add.Tensor", ...), or words in a list
            used |= {word for string in re.findall(r'"([\w. ]+)"', text) for word in re.split(r"[. ]", string)}
            used |= {name + "_" for name, forms in re.findall(r'E\("(\w+)[\w.]*".*?"([fio]{1,3})"', text) if "i" in forms}
    for path in here("tests", "parity", "*.txt"):
        with open(path, encoding="utf-8") as file:
            used |= set(re.findall(r"\w+", "\n".join(line for line in file if not line.lstrip().startswith("#"))))
    for path in here("docs", "*.md") + [os.path.join(ROOT, "README.md")]:
        with open(path, encoding="utf-8") as file:
            for block in re.findall(r"```python\n(.*?)```", file.read(), re.S):
                used |= words_of_python(block)
    return used


def survey():
    """[(namespace, name, tier, exists, tested)]"""
    used = tested()
    rows = []
    for space, name, tier in names():
        there = exists(name)
        rows.append((space, name, tier, there, there and name.rsplit(".", 1)[-1] in used))
    return rows


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--missing", type=int, choices=(1, 2, 3), help="list the names of this tier that do not exist")
    parser.add_argument("--untested", type=int, choices=(1, 2, 3), help="list the names of this tier that no test uses")
    options = parser.parse_args()
    rows = survey()
    for tier, column in ((options.missing, 3), (options.untested, 4)):
        if tier:
            for space in dict.fromkeys(row[0] for row in rows):
                found = [row[1] for row in rows if row[0] == space and row[2] == tier and not row[column]
                         and (column == 3 or row[3])]
                if found:
                    print(f"{space}: " + " ".join(found))
            return 0
    print(f"{'namespace':<44}" + "".join(f"{f'tier {tier}: exist, tested, of':>28}" for tier in (1, 2, 3)))
    for space in [*dict.fromkeys(row[0] for row in rows), "all"]:
        line = f"{space:<44}"
        for tier in (1, 2, 3):
            own = [row for row in rows if row[2] == tier and space in (row[0], "all")]
            line += f"{sum(r[3] for r in own):>16}{sum(r[4] for r in own):>6}{len(own):>6}" if own else " " * 28
        if space == "all" or any(row[3] for row in rows if row[0] == space):
            print(line.rstrip())
    absent = sorted({row[0] for row in rows} - {row[0] for row in rows if row[3]})
    print("nothing yet of: " + ", ".join(absent))
    return 0


if __name__ == "__main__":
    sys.exit(main())

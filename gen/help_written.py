"""help_written.py: docstrings of functions, methods and classes that the bridge has and no row describes, from gen/stubs.pyi."""
import ast
import os
import re

STUB = os.path.join(os.path.dirname(os.path.abspath(__file__)), "stubs.pyi")


def read():
    """{(name, where): text}: where is 1 for functions and classes, 2 for methods and attributes of Tensor."""
    with open(STUB, encoding="utf-8") as file:
        tree = ast.parse(file.read())
    found = {}
    for node in tree.body:
        if isinstance(node, ast.FunctionDef):
            note(found, node, 1)
        elif isinstance(node, ast.ClassDef):
            if ast.get_docstring(node):
                found[node.name, 1] = ast.get_docstring(node)
            for inner in node.body if node.name == "Tensor" else ():
                if isinstance(inner, ast.FunctionDef):
                    note(found, inner, 2)
    return found


def plain(node):
    """Source without the names by which a stub tells `int` from torch.int."""
    text = re.sub(r"\bbuiltins\.|\b_(?=int|float|bool|dtype|device|layout|memory_format)", "", ast.unparse(node))
    return re.sub(r"(\w): _Device\b", r"\1: device", text).replace("_Self", "Tensor")


def note(found, node, where):
    text = ast.get_docstring(node)
    if text is None:
        return
    arguments = plain(node.args).removeprefix("self, ").removeprefix("self")
    prefix = {1: "torch.", 2: "Tensor."}[where]
    result = plain(node.returns) if node.returns else "None"
    is_property = any(ast.unparse(d) == "property" for d in node.decorator_list)
    head = f"{prefix}{node.name}" + (f" -> {result}" if is_property else f"({arguments}) -> {result}")
    found[node.name, where] = f"{head}\n\n{text}"

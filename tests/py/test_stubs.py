"""What people and type checkers read: the stub (ember/__init__.pyi), help(), the reference of operators in docs/ops."""

import importlib.util
import os
import re
import subprocess
import sys

import pytest

import ember

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
PROGRAM = os.path.join(HERE, "typed", "program.py")
PACKAGE = os.path.dirname(os.path.abspath(ember.__file__))
needs_mypy = pytest.mark.skipif(importlib.util.find_spec("mypy") is None, reason="mypy is not installed (requirements-dev.txt)")


def mypy(path, cache):
    done = subprocess.run([sys.executable, "-m", "mypy", f"--cache-dir={cache}", "--follow-imports=silent", "--disallow-untyped-defs",
                           "--no-error-summary", str(path)], capture_output=True, text=True, timeout=600,
                          env={**os.environ, "MYPYPATH": os.path.dirname(PACKAGE)})
    return done.stdout


@pytest.fixture(scope="module")
def cache(tmp_path_factory):
    return tmp_path_factory.mktemp("mypy")


def test_the_program_runs():
    with open(PROGRAM, encoding="utf-8") as file:
        assert len(file.read().splitlines()) >= 100
    done = subprocess.run([sys.executable, PROGRAM], capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    assert float(re.fullmatch(r"accuracy (\d\.\d+)\n", done.stdout)[1]) > 0.6


@needs_mypy
@pytest.mark.slow
def test_mypy_accepts_the_program(cache):
    assert mypy(PROGRAM, cache) == ""


@needs_mypy
@pytest.mark.slow
def test_mypy_finds_what_is_wrong(cache, tmp_path):
    """The types are not all Any: wrong calls are found, right ones next to them are not."""
    lines = {
        "x.view('a')": "incompatible type", "x.view(2, 3)": None,
        "x.max(dim=0).nothing": "has no attribute \"nothing\"", "x.max(dim=0).values": None,
        "torch.zeros(2, 3, dtype='float32')": "No overload variant", "torch.zeros(2, 3, dtype=torch.float32)": None,
        "torch.cat(x, 'dim')": "incompatible type", "torch.cat([x, x], 1)": None,
        "n: int = x.sum()": "Incompatible types in assignment", "m: int = x.dim()": None,
        "torch.exp(3)": "incompatible type", "torch.exp(x) + 1": None,
        "x.dtype.itemsize + 'a'": "Unsupported operand", "x.dtype.itemsize + 1": None,
    }
    program = tmp_path / "wrong.py"
    program.write_text("import ember as torch\nx = torch.ones(2, 3)\n" + "\n".join(lines) + "\n")
    said = dict(re.findall(r"^.*wrong\.py:(\d+): error: (.*)$", mypy(program, cache), re.M))
    for number, (line, words) in enumerate(lines.items(), 3):
        assert words in said.get(str(number), "") if words else str(number) not in said, (line, said.get(str(number)))


def test_the_stub_names_what_there_is():
    """Every function and method of the stub exists."""
    with open(os.path.join(PACKAGE, "__init__.pyi"), encoding="utf-8") as file:
        text = file.read()
    functions = set(re.findall(r"^def (\w+)\(", text, re.M)) - {"__getattr__"}
    body = text[text.index("class Tensor("):]
    methods = set(re.findall(r"^    def (\w+)\(", body[:re.search(r"^def ", body, re.M).start()], re.M)) - {"__getattr__"}
    assert [name for name in functions if not hasattr(ember, name)] == []
    assert [name for name in methods if not hasattr(ember.Tensor, name)] == []
    assert len(functions) > 400 and len(methods) > 350
    assert os.path.exists(os.path.join(PACKAGE, "py.typed"))


def test_the_stub_of_the_layers_imports_what_the_layers_do():
    def imports(name):
        with open(os.path.join(PACKAGE, "nn", "modules", name), encoding="utf-8") as file:
            return re.findall(r"^from (\S+) import (\S+)", file.read(), re.M)
    assert imports("__init__.pyi") == imports("__init__.py")


def test_help_shows_signature_shapes_dtypes_and_errors():
    text = ember.add.__doc__
    assert text.startswith("add.Tensor(Tensor self, Tensor other, *, Scalar alpha=1) -> Tensor\n")
    for words in ("Shapes: operands broadcast", "Dtypes: bool, integers, floating point, complex.", "Errors: RuntimeError: ", "out=: "):
        assert words in text
    assert "Shapes: the result shares the bytes of its argument." in ember.Tensor.view.__doc__
    import io
    import pydoc
    out = io.StringIO()
    pydoc.Helper(output=out).help(ember.add)
    assert "Shapes: operands broadcast" in out.getvalue()


def test_every_function_has_words():
    names = [name for name in dir(ember._C._VariableFunctions) if not name.startswith("__")]
    short = [name for name in names if "Shapes: " not in (getattr(ember, name, ember.add).__doc__ or "Shapes: ")]
    assert [name for name in short if type(getattr(ember, name)).__name__ == "builtin_function_or_method"] == []


def test_the_reference_names_each_operator_once(tmp_path):
    subprocess.run([sys.executable, os.path.join(ROOT, "tools", "docs_ops.py"), "--out", tmp_path], check=True, timeout=120)
    pages = {path.name: path.read_text(encoding="utf-8") for path in tmp_path.iterdir()}
    names = [name for text in pages.values() for name in re.findall(r"^## (\S+)$", text, re.M)]
    assert len(names) == len(set(names)) > 400 and "add" in names and "conv2d" in names
    assert "row `native_" in pages["pointwise.md"] and "[pointwise](pointwise.md)" in pages["README.md"]

"""What type checkers read: the stub (ember/__init__.pyi) and its kin; programs of the usual kinds are accepted as they are. And the
reference of operators in docs/ops."""

import importlib.util
import os
import re
import subprocess
import sys

import pytest

import ember

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
PROGRAMS = {name: os.path.join(HERE, "typed", name + ".py")
            for name in ("program", "cnn", "transformer", "reinforce", "extending", "algebra")}
PACKAGE = os.path.dirname(os.path.abspath(ember.__file__))
needs_mypy = pytest.mark.skipif(importlib.util.find_spec("mypy") is None, reason="mypy is not installed (requirements-dev.txt)")


def mypy(cache, *paths):
    done = subprocess.run([sys.executable, "-m", "mypy", f"--cache-dir={cache}", "--follow-imports=silent", "--strict",
                           "--no-error-summary", *map(str, paths)], capture_output=True, text=True, timeout=600,
                          env={**os.environ, "MYPYPATH": os.path.dirname(PACKAGE)})
    return done.stdout


@pytest.fixture(scope="module")
def cache(tmp_path_factory):
    return tmp_path_factory.mktemp("mypy")


@pytest.mark.parametrize("name", PROGRAMS)
def test_the_program_runs(name):
    with open(PROGRAMS[name], encoding="utf-8") as file:
        assert len(file.read().splitlines()) >= 100
    done = subprocess.run([sys.executable, PROGRAMS[name]], capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    assert re.fullmatch(r"\w+ [\d. ->]+\n", done.stdout)


@needs_mypy
@pytest.mark.slow
def test_mypy_accepts_the_programs(cache):
    assert mypy(cache, *PROGRAMS.values()) == ""


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
    said = dict(re.findall(r"^.*wrong\.py:(\d+): error: (.*)$", mypy(cache, program), re.M))
    for number, (line, words) in enumerate(lines.items(), 3):
        assert words in said.get(str(number), "") if words else str(number) not in said, (line, said.get(str(number)))


def test_the_stub_names_what_there_is():
    """Every function and method of the stub exists."""
    with open(os.path.join(PACKAGE, "__init__.pyi"), encoding="utf-8") as file:
        text = file.read()
    functions = set(re.findall(r"^def (\w+)\(", text, re.M)) - {"__getattr__"}
    body = text[text.index("class Tensor("):]
    methods = set(re.findall(r"^    def (\w+)\(", body[:re.search(r"^(?:def|class no_grad)", body, re.M).start()], re.M)) - {"__getattr__"}
    assert [name for name in functions if not hasattr(ember, name)] == []
    assert [name for name in methods if not hasattr(ember.Tensor, name)] == []
    assert len(functions) > 400 and len(methods) > 350
    assert os.path.exists(os.path.join(PACKAGE, "py.typed"))


def test_the_stub_of_the_layers_imports_what_the_layers_do():
    def imports(name):
        with open(os.path.join(PACKAGE, "nn", "modules", name), encoding="utf-8") as file:
            return re.findall(r"^from (\S+) import (\S+)", file.read(), re.M)
    assert imports("__init__.pyi") == imports("__init__.py")


def test_the_reference_names_each_operator_once(tmp_path):
    subprocess.run([sys.executable, os.path.join(ROOT, "tools", "docs_ops.py"), "--out", tmp_path], check=True, timeout=120)
    pages = {path.name: path.read_text(encoding="utf-8") for path in tmp_path.iterdir()}
    names = [name for text in pages.values() for name in re.findall(r"^## (\S+)$", text, re.M)]
    assert len(names) == len(set(names)) > 650 and "add" in names and "conv2d" in names
    assert "[ops/native_pointwise.yaml](../../ops/native_pointwise.yaml#L" in pages["pointwise.md"]
    index = pages["README.md"]
    assert "| [pointwise](pointwise.md) |" in index and "[linalg_solve](linalg.md#linalg_solve)" in index
    assert {n for n in names if not n.startswith("_")} == set(re.findall(r"\[(\w+)\]\(\w+\.md#\1\)", index))


def test_the_reference_links_lead_somewhere(tmp_path):
    subprocess.run([sys.executable, os.path.join(ROOT, "tools", "docs_ops.py"), "--out", tmp_path], check=True, timeout=120)
    pages = {path.name: path.read_text(encoding="utf-8") for path in tmp_path.iterdir()}
    anchors = {name: set(re.findall(r"^## (\S+)$", text, re.M)) for name, text in pages.items()}
    broken, lines = [], {}
    for page, text in pages.items():
        for target, anchor in set(re.findall(r"\]\(([^)#]*)(?:#([^)]*))?\)", text)):
            if target.startswith("../../"):
                path = os.path.join(ROOT, target[6:])
                if path not in lines:
                    with open(path, encoding="utf-8") as file:
                        lines[path] = len(file.readlines())
                if anchor and int(anchor[1:]) > lines[path]:
                    broken.append((page, target, anchor))
            elif anchor and anchor not in anchors.get(target or page, ()):
                broken.append((page, target, anchor))
    assert broken == [] and len(lines) > 60

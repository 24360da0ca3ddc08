"""What the pages say exists, exists."""
import ast
import glob
import importlib.util
import os
import re

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))


def read(*path):
    with open(os.path.join(ROOT, *path), encoding="utf-8") as file:
        return file.read()


def test_list_of_seams_is_complete():
    """docs/seams.md names each test of tests/seams, and no other."""
    listed = re.findall(r"\| `(test_\w+)` \|$", read("docs", "seams.md"), re.M)
    there = set()
    for path in glob.glob(os.path.join(ROOT, "tests", "seams", "test_*.py")):
        with open(path, encoding="utf-8") as file:
            there |= {node.name for node in ast.parse(file.read()).body
                      if isinstance(node, ast.FunctionDef) and node.name.startswith("test_")}
    assert len(listed) == len(set(listed)) >= 28
    assert set(listed) - there == set(), "listed, but there is no such test"
    assert there - set(listed) == set(), "not in docs/seams.md"


def test_links_between_pages_lead_somewhere():
    broken = []
    for path in ["README.md", "ARCHITECTURE.md", "CONTRIBUTING.md", *glob.glob("docs/*.md", root_dir=ROOT)]:
        for target in re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", read(path)):
            if not os.path.exists(os.path.join(ROOT, os.path.dirname(path), target)):
                broken.append((path, target))
    assert broken == []


def test_architecture_names_exist():
    """The walk of `a + b` names functions and files: each is there, and there are enough of them to be a walk."""
    spec = importlib.util.spec_from_file_location("lint", os.path.join(ROOT, "tools", "lint.py"))
    lint = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(lint)
    checked, problems = lint.architecture_problems(ROOT)
    assert problems == []
    assert checked >= 30


def test_make_targets_in_the_pages_exist():
    makefile = read("Makefile")
    targets = set(re.findall(r"^([a-z-]+):", makefile, re.M))
    for path in ["README.md", "CONTRIBUTING.md", *glob.glob("docs/*.md", root_dir=ROOT)]:
        named = set(re.findall(r"(?:`|^    )make ([a-z-]+)", read(path), re.M))
        assert named <= targets, path

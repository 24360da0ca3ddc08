"""The house's own tools: each lint rule finds its fault, the test runner counts what happened."""
import importlib.util
import os
import re
import subprocess
import sys

import pytest

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))


def load(name):
    spec = importlib.util.spec_from_file_location(name, os.path.join(ROOT, "tools", name + ".py"))
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


lint = load("lint")
LONG_C = "int f(void)\n{\n" + "    ;\n" * 90 + "}\n"
LONG_PY = "def f():\n" + "    x = 1\n" * 90

# A file, its text, and the rule that must speak. Rules hold nothing against the file without the fault.
FAULTS = [
    ("src/core/a.c", '#include "dispatch/keys.h"\n', "arrow"),
    ("src/ops/a.c", '#include "autograd/node.h"\n', "arrow"),
    ("src/backend/cpu/a.c", '#include "ops/view.h"\n', "arrow"),
    ("src/dispatch/a.c", '#include "../ops/view.h"\n', "arrow"),
    ("src/ops/a.c", "void *f(struct s *t) { return t->data; }\n", "data"),
    ("src/ops/a.c", "void *f(struct s *t) { return em_tensor_data(t); }\n", "data"),
    ("src/core/a.c", "void f(void) { abort(); }\n", "call"),
    ("src/core/a.c", "void f(void) { longjmp(b, 1); }\n", "call"),
    ("src/core/a.c", "#pragma omp parallel for\n", "openmp"),
    ("src/core/a.c", LONG_C, "function-length"),
    ("src/core/a.c", "int x;\n" * 1300, "file-length"),
    ("src/core/a.c", "/* " + "x" * 140 + " */\n", "line-length"),
    ("src/core/a.c", "int x; \n", "whitespace"),
    ("src/core/a.c", "/* TO" + "DO: later */\n", "todo"),
    ("src/core/b.c", "int x;\n", "unlisted"),
    ("src/ops/README.md", "line\n" * 31, "readme"),
    ("meson.build", "x = ['-ffast-math']\n", "fast-math"),
    ("gen/a.py", LONG_PY, "function-length"),
    ("gen/a.py", "try:\n    f()\nexcept Exception:\n    pass\n", "swallowed"),
    ("include/ember/a.h", "size_t f(void);\n", "header"),
    ("include/ember/a.h", "#ifdef __cplusplus\n#error no\n#endif\n", "header"),
    ("ARCHITECTURE.md", "`src/core/nowhere.c`\n", "architecture"),
    ("ARCHITECTURE.md", "`em_nothing()`\n", "architecture"),
]


def tree(folder, path, text):
    """A small tree in good order, with one file more."""
    files = {"src/core/a.c": "int x;\n", "src/ops/a.c": "int x;\n", "src/backend/cpu/a.c": "int x;\n",
             "src/dispatch/a.c": "int x;\n", "src/dispatch/README.md": "dispatch\n",
             "src/core/README.md": "core\n", "src/ops/README.md": "ops\n", "src/backend/cpu/README.md": "cpu\n",
             "src/meson.build": "files('a.c')\n", "include/ember/ok.h": "int em_ok(void);\n", path: text}
    for name, content in files.items():
        full = folder / name
        full.parent.mkdir(parents=True, exist_ok=True)
        full.write_text(content)
    return str(folder)


@pytest.mark.parametrize("path, text, rule", FAULTS, ids=[f"{i}-{fault[2]}" for i, fault in enumerate(FAULTS)])
def test_lint_finds(tmp_path, path, text, rule):
    problems = lint.lint_tree(tree(tmp_path, path, text), "build")
    assert {line.split(": ")[1] for line in problems} == {rule}, problems


CLEAN = [
    ("src/backend/cpu/a.c", '#include "core/tensor.h"\nvoid *f(struct s *t) { return t->data; }\n'),
    ("src/dispatch/a.c", '#include "../core/value.h"\n#include "operator.h"\n#include "gen_ops.h"\n'),
    ("src/core/a.c", "/* t->data, abort(), exit() */\nchar *s = \"abort()\";\n"),
    ("src/core/a.c", "#pragma omp simd\n/* TO" + "DO(#12): later */\n"),
    ("src/core/a.c", "static const int t[] = {\n" + "    1,\n" * 90 + "};\n"),
    ("src/core/a.c", "/* lint: allow call, because this is the fault mode */\nvoid f(void) { abort(); }\n"),
    ("ARCHITECTURE.md", "`src/core/a.c` and `em_ok()` and `a + b`\n"),
]


@pytest.mark.parametrize("path, text", CLEAN, ids=range(len(CLEAN)))
def test_lint_allows(tmp_path, path, text):
    assert lint.lint_tree(tree(tmp_path, path, text), "build") == []


def test_doc_blocks_run_in_one_namespace_and_name_their_lines(tmp_path):
    page = tmp_path / "page.md"
    page.write_text("text\n```python\nx = 1\n```\n\n```python no-run needs a GPU\nboom\n```\n"
                    "```python\nassert x == 1\n```\n```python\nassert x == 2\n```\n")
    done = subprocess.run([sys.executable, os.path.join(ROOT, "tools/run_doc.py"), str(page)],
                          capture_output=True, text=True)
    assert done.returncode == 1
    assert done.stdout.splitlines()[-1] == "blocks: 2 passed, 1 failed"
    assert f"skipped {page}:7: needs a GPU" in done.stdout
    assert f'"{page}", line 13' in done.stdout


def test_runner_counts_failures_crashes_hangs_and_skips(tmp_path):
    tests = tmp_path / "tests" / "py"
    tests.mkdir(parents=True)
    (tests / "test_a.py").write_text(
        "import pytest\ndef test_1(): pass\ndef test_2(): assert False\n"
        "@pytest.mark.skip(reason='because')\ndef test_3(): pass\n")
    (tests / "test_b.py").write_text("import os\ndef test_1(): os.kill(os.getpid(), 11)\n")
    (tests / "test_c.py").write_text("import time\ndef test_1(): time.sleep(600)\n")
    (tmp_path / "tools").mkdir()
    (tmp_path / "tools" / "run_tests.py").write_text(
        open(os.path.join(ROOT, "tools/run_tests.py"), encoding="utf-8").read())
    done = subprocess.run([sys.executable, str(tmp_path / "tools/run_tests.py"), "--only", "py", "--limit", "5"],
                          capture_output=True, text=True)
    lines = done.stdout.splitlines()
    assert lines[-1] == "1 passed, 3 failed, 1 skipped", done.stdout + done.stderr
    assert done.returncode == 1
    assert any(re.search("skipped 1: because", line) for line in lines)
    assert any("time limit: 5 s" in line for line in lines)


def test_runner_fails_when_nothing_ran():
    done = subprocess.run([sys.executable, os.path.join(ROOT, "tools/run_tests.py"), "--only", "gen", "-k", "nosuchtest"],
                          capture_output=True, text=True)
    assert done.stdout.splitlines()[-1] == "0 passed, 0 failed, 0 skipped"
    assert done.returncode == 1

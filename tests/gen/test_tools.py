"""make new-op and make gen-diff, in a scratch copy of the rows and the generator."""
import os
import shutil
import subprocess
import sys

import pytest

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
SCHEMA = "hyp.Tensor(Tensor self, Tensor other, *, int n=1) -> Tensor"


@pytest.fixture
def tree(tmp_path):
    for folder in ("gen", "ops", "tools"):
        shutil.copytree(os.path.join(ROOT, folder), tmp_path / folder, ignore=shutil.ignore_patterns("__pycache__"))
    for folder in ("src/ops", "src/backend/cpu"):
        (tmp_path / folder).mkdir(parents=True)
        shutil.copy(os.path.join(ROOT, folder, "meson.build"), tmp_path / folder)
    (tmp_path / "src/autograd").mkdir()
    shutil.copy(os.path.join(ROOT, "src/autograd/formulas.h"), tmp_path / "src/autograd")
    for command in (["init", "-q"], ["add", "-A"], ["-c", "user.name=t", "-c", "user.email=t@t", "commit", "-qm", "t"]):
        subprocess.run(["git", *command], cwd=tmp_path, check=True)
    return tmp_path


def run(tree, *command):
    return subprocess.run([sys.executable, *command], cwd=tree, capture_output=True, text=True)


def generate(tree):
    return run(tree, "gen/ember_gen.py", "--ops", "ops", "--out", "out")


def edit(path, old, new):
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new))


def test_pointwise_skeleton_is_refused_until_written_and_is_two_rows(tree):
    done = run(tree, "tools/new_op.py", "pointwise", SCHEMA, "--write")
    assert done.returncode == 0, done.stderr
    status = subprocess.run(["git", "status", "--short", "-uall"], cwd=tree, capture_output=True, text=True).stdout
    assert {line.split()[1] for line in status.splitlines()} == {"ops/native_functions.yaml", "ops/derivatives.yaml"}
    refused = generate(tree)
    assert refused.returncode != 0
    assert "native_functions.yaml:" in refused.stderr
    edit(tree / "ops/native_functions.yaml", "EXPRESSION", "self * other + n")
    edit(tree / "ops/derivatives.yaml", "self: FORMULA", "self: grad * other")
    edit(tree / "ops/derivatives.yaml", "other: FORMULA", "other: grad * self")
    written = generate(tree)
    assert written.returncode == 0, written.stderr
    assert "em_call_hyp_Tensor(" in (tree / "out/gen_ops.h").read_text()


@pytest.mark.parametrize("kind, functions", [
    ("check", {"src/ops": ["check_hyp_Tensor("], "src/backend/cpu": ["k_cpu_hyp_Tensor("]}),
    ("view", {"src/ops": ["view_hyp_Tensor("]}),
    ("composite", {"src/ops": ["c_hyp_Tensor("]}),
    ("native", {"src/ops": ["n_meta_hyp_Tensor("], "src/backend/cpu": ["n_cpu_hyp_Tensor("]}),
])
def test_skeletons_of_c_functions_match_what_the_row_needs(tree, kind, functions):
    done = run(tree, "tools/new_op.py", kind, SCHEMA, "--write")
    assert done.returncode == 0, done.stderr
    for folder, names in functions.items():
        text = (tree / folder / "hyp_Tensor.c").read_text()
        for name in names:
            assert name in text
        assert "  'hyp_Tensor.c'," in (tree / folder / "meson.build").read_text()


def test_bad_schema_is_refused(tree):
    done = run(tree, "tools/new_op.py", "pointwise", "hyp(Tensor self", "--write")
    assert done.returncode != 0 and done.stderr.startswith("new-op: ")


def test_gen_diff_shows_what_a_row_changes(tree):
    same = run(tree, "tools/gen_diff.py", "--exit-code")
    assert same.returncode == 0 and "0 of" in same.stdout.splitlines()[-1]
    with open(tree / "ops/native_functions.yaml", "a", encoding="utf-8") as rows:
        rows.write("\n- func: hyp(Tensor self) -> Tensor\n  variants: function\n  composite: c_hyp\n")
    changed = run(tree, "tools/gen_diff.py", "--exit-code")
    assert changed.returncode == 1
    assert any(line.startswith("+") and "em_call_hyp(" in line for line in changed.stdout.splitlines())
    assert not changed.stdout.startswith("gen-diff: 0 of")


def test_bad_row_is_refused_with_file_and_line(tree):
    path = tree / "ops/native_functions.yaml"
    line = path.read_text().count("\n") + 2
    with open(path, "a", encoding="utf-8") as rows:
        rows.write("\n- func: hyp(Tensor self) -> Tensor\n  colour: red\n")
    done = generate(tree)
    assert done.returncode != 0
    assert f"native_functions.yaml:{line}: " in done.stderr and "colour" in done.stderr

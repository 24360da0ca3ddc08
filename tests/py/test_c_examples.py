"""The C examples: programs without Python, on what Python wrote and the other way round."""
import os
import re
import shutil
import subprocess
import sys

import pytest

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
BUILD = os.environ.get("EMBER_BUILD", os.path.join(ROOT, "build"))
DIGITS = os.path.join(ROOT, "examples", "python", "train_digits.py")


def example(name, *arguments, **options):
    program = os.path.join(BUILD, "examples", "c", "example_" + name)
    return subprocess.run([program, *arguments], capture_output=True, text=True, stdin=subprocess.DEVNULL, **options)


def percent(text):
    return re.search(r"accuracy ([\d.]+)%", text)[1]


@pytest.fixture(scope="module")
def out(tmp_path_factory):
    """The folder that a short demo left."""
    pytest.importorskip("sklearn", reason="the digits come with scikit-learn (requirements-demo.txt)")
    folder = tmp_path_factory.mktemp("demo")
    done = subprocess.run([sys.executable, "-m", "ember", DIGITS, "--epochs", "3", "--require", "0", "--out", str(folder)],
                          capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    (folder / "said").write_text(percent(done.stdout))
    return folder


def test_own_operator():
    done = example("custom_op")
    assert done.returncode == 0, done.stderr
    assert "float32 is refused: softsquare(): expected x of float64, got float32" in done.stdout


def test_weights_from_python_classify(out):
    done = example("infer", str(out / "digits.pt"), str(out / "digits.csv"), "2")
    assert done.returncode == 0, done.stderr
    assert percent(done.stdout) == (out / "said").read_text()
    assert done.stdout.count("with a chance of") == 2


def test_weights_from_c_load_in_python(out):
    weights = out / "c.safetensors"
    done = example("train_digits", "--data", str(out / "digits.csv"), "--out", str(weights), "--epochs", "3")
    assert done.returncode == 0, done.stderr
    assert float(percent(done.stdout)) > 90

    import ember
    from ember.safetensors import load_file
    sys.path.insert(0, os.path.dirname(DIGITS))
    try:
        from ember import as_torch
        as_torch()
        import train_digits
    finally:
        sys.path.pop(0)
    model = train_digits.Net()
    model.load_state_dict(load_file(str(weights)))
    model.eval()
    rows = ember.tensor([[float(v) for v in line.split(",")] for line in (out / "digits.csv").read_text().splitlines()[:359]])
    with ember.no_grad():
        right = (model(rows[:, :64].view(-1, 1, 8, 8) / 16).argmax(1) == rows[:, 64].long()).double().mean().item()
    assert f"{100 * right:.1f}" == percent(done.stdout)


def test_checkers_run_two_steps(out):
    done = example("train_digits", "--steps", "2", "--data", str(out / "digits.csv"), "--out", str(out / "two.safetensors"))
    assert done.returncode == 0, done.stderr


def test_a_recurrent_network_learns_a_verse(tmp_path):
    done = example("char_lstm", "--steps", "300", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("one for sorrow, two for joy, ")


def test_a_transformer_sorts(tmp_path):
    """It saves and loads itself half-way, its optimizers too: without them it would not get there."""
    done = example("transformer", "--steps", "250", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert float(re.search(r"([\d.]+)% of the digits", done.stdout)[1]) > 95
    assert os.listdir(tmp_path) == []


@pytest.mark.parametrize("name", ["char_lstm", "custom_op", "infer", "train_digits", "transformer"])
def test_valgrind_finds_nothing_lost(out, name):
    if shutil.which("valgrind") is None or os.path.basename(BUILD) != "build":
        pytest.skip("needs valgrind and an ordinary build")
    two = ["--steps", "2"]
    arguments = {"infer": [str(out / "digits.pt"), str(out / "digits.csv"), "1"], "custom_op": [],
                 "train_digits": [*two, "--data", str(out / "digits.csv"), "--out", str(out / "two.safetensors")]}
    program = os.path.join(BUILD, "examples", "c", "example_" + name)
    done = subprocess.run(["valgrind", "-q", "--leak-check=full", "--show-leak-kinds=definite", "--errors-for-leak-kinds=definite",
                           "--error-exitcode=9", program, *arguments.get(name, two)],
                          capture_output=True, text=True, cwd=out, env=dict(os.environ, EMBER_NUM_THREADS="1"))
    assert done.returncode == 0, done.stderr[-3000:]


def test_what_is_wrong_is_said(out, tmp_path):
    assert example("infer", str(tmp_path / "nothing.pt"), str(out / "digits.csv")).returncode == 1
    (tmp_path / "bad.pt").write_bytes((out / "digits.pt").read_bytes()[:1000])
    done = example("infer", str(tmp_path / "bad.pt"), str(out / "digits.csv"))
    assert done.returncode == 1 and "bad.pt" in done.stderr
    assert example("train_digits", "--nothing").returncode == 2
    assert example("train_digits", "--help").returncode == 0

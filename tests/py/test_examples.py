"""The examples give PyTorch's losses, step by step, from the same seed.

golden/test_examples.json holds what PyTorch 2.13 gave; `python test_examples.py`, run by a Python that has PyTorch,
writes it anew. `make same-run` compares whole runs with a live PyTorch.
"""
import json
import os
import sys

import pytest

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "..", "tools"))
import same_run  # noqa: E402

GOLDEN = os.path.join(HERE, "golden", "test_examples.json")
STEPS = {"train_digits": 22, "char_gpt": 12, "lstm": 20, "vae": 20, "reinforce": 12}


def test_every_example_is_compared():
    """An example that writes its losses has a place in the comparison."""
    folder = os.path.join(same_run.ROOT, "examples", "python")
    having = {name[:-3] for name in os.listdir(folder)
              if name.endswith(".py") and "--losses" in open(os.path.join(folder, name), encoding="utf-8").read()}
    assert having == set(same_run.EXAMPLES) == set(STEPS)


@pytest.mark.parametrize("name", list(STEPS))
def test_losses_are_pytorchs(name, tmp_path):
    if name in ("train_digits", "vae"):
        pytest.importorskip("sklearn", reason="the digits come with scikit-learn (requirements-demo.txt)")
    with open(GOLDEN, encoding="ascii") as file:
        theirs = json.load(file)[name]
    ours = same_run.losses([sys.executable, "-m", "ember"], name, STEPS[name], 0, str(tmp_path))
    assert same_run.difference(ours, theirs) <= 1e-4, (ours, theirs)


@pytest.mark.parametrize("name", ["char_gpt", "lstm", "vae", "reinforce"])
def test_examples_are_short(name):
    with open(os.path.join(same_run.ROOT, "examples", "python", name + ".py"), encoding="utf-8") as file:
        assert len(file.readlines()) < 120


if __name__ == "__main__":
    import tempfile
    with tempfile.TemporaryDirectory() as scratch, open(GOLDEN, "w", encoding="ascii") as out:
        json.dump({name: same_run.losses([sys.executable], name, steps, 0, scratch) for name, steps in STEPS.items()}, out)

"""EMBER_LOG: what the variable turns on, as a program's user sees it."""

import os
import re
import subprocess
import sys

PROGRAM = """
import ember
a = ember.ones(2, 3, requires_grad=True)
(a * 2).sum().backward()
try:
    ember.ones(2) + ember.ones(3)
except RuntimeError:
    pass
"""


def run(subjects, program=PROGRAM, flags=()):
    done = subprocess.run([sys.executable, *flags, "-c", program], capture_output=True, text=True, timeout=60,
                          env={**os.environ, "EMBER_LOG": subjects})
    return done.returncode, done.stderr


def test_nothing_is_said_unasked():
    assert run("") == (0, "")


def test_dispatch_names_keys_kernels_and_bytes():
    status, said = run("dispatch")
    assert status == 0
    assert re.search(r"^\[dispatch\] aten::mul\.Tensor  Autograd\(autograd_mul_Tensor\) > CPU\(em_cpu_mul_Tensor\)  "
                     r"24 bytes$", said, re.M), said
    assert re.search(r"^\[dispatch\] aten::sum  Autograd\(\w+\) > CPU\(\w+\)  4 bytes$", said, re.M), said
    assert re.search(r"^\[dispatch\] aten::add\.Tensor .*  FAILED$", said, re.M), said
    assert "[ops]" not in said


def test_ops_shows_the_operators_of_backward():
    status, said = run("ops")
    assert status == 0
    lines = said.splitlines()
    products = [i for i, line in enumerate(lines) if line.startswith("[ops] aten::mul.Tensor(float32[2, 3], ")]
    total = next(i for i, line in enumerate(lines) if line.startswith("[ops] aten::sum(float32[2, 3]"))
    assert len(products) == 2 and products[0] < total < products[1], said
    assert "[dispatch]" not in said


def test_kernels_say_how_they_chose():
    status, said = run("kernels", "import ember\nember.ones(3, 4) @ ember.ones(4, 5)\nember.ones(2, 3) + ember.ones(3)")
    assert status == 0
    lines = [line for line in said.splitlines() if not line.startswith(("[kernels] fill: ", "[kernels]   on "))]
    first, second = lines
    assert first == ("[kernels] Ember's blocks: (3 x 4)(4 x 5) in float32 (OpenBLAS refused: too small to be worth a library's call)")
    assert second.startswith("[kernels] iterator: 6 float32 elements ") and "(short path refused: an operand is broadcast)" in second
    assert len(said.splitlines()) == 12  # six calls, and how many threads each took


def test_subjects_combine_and_reach_later_threads():
    program = "import ember, threading\nt = threading.Thread(target=ember.zeros, args=(3,))\nt.start()\nt.join()"
    status, said = run("dispatch,ops", program)
    assert status == 0
    assert "[ops] aten::zeros([3]" in said and "[dispatch] aten::zeros  Capture(log) > CPU(" in said, said


def test_results_are_the_same_with_the_log_on():
    program = "import ember\nember.manual_seed(1)\nprint(ember.nn.Linear(3, 2)(ember.randn(4, 3)).tolist())"
    said = [subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=True,
                           env={**os.environ, "EMBER_LOG": subjects}).stdout for subjects in ("", "dispatch,ops")]
    assert said[0] == said[1] and said[0].startswith("[[")


def test_unknown_subject_warns_and_can_be_an_error():
    status, said = run("dispatsch", "import ember")
    assert status == 0
    assert "EMBER_LOG: unknown subject 'dispatsch' (known: dispatch, ops, kernels, libs)" in said
    status, said = run("dispatsch", "import ember", ("-W", "error"))
    assert status == 1 and "UserWarning: EMBER_LOG: unknown subject" in said

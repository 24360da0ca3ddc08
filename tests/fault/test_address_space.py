"""Under a limit of the process's address space: a huge tensor is refused, and small work goes on."""
import os
import subprocess
import sys

import pytest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "ops"))
from subject import IS_EMBER  # noqa: E402

pytestmark = pytest.mark.skipif(not IS_EMBER, reason="needs Ember's allocator")

START = """
import resource
import ember as torch
x = torch.arange(6.0).reshape(2, 3).requires_grad_()
keep = torch.ones(1000)
def used():
    with open("/proc/self/statm") as f:
        return int(f.read().split()[0]) * resource.getpagesize()
limit = used() + 300 * 2 ** 20
resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
def refused(call):
    try:
        call()
    except (RuntimeError, MemoryError) as error:
        assert "allocate memory" in str(error), error
        return
    raise SystemExit("a huge tensor was not refused")
"""
END = """
y = (x * 2).exp().sum()
y.backward()
assert x.grad is not None and keep.sum().item() == 1000.0
print("ended well")
"""


def run(text):
    done = subprocess.run([sys.executable, "-c", START + text + END], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0 and done.stdout.strip() == "ended well", done.stdout + done.stderr[-3000:]


@pytest.mark.parametrize("call",
    [ "torch.empty(2 ** 30)",
    "torch.zeros(2 ** 15, 2 ** 15)",
    "torch.arange(2 ** 30)",
    "torch.randn(2 ** 30)",
    "torch.eye(2 ** 15)",
    "keep.expand(2 ** 20, 1000) + 1",
    "keep.expand(2 ** 20, 1000).clone()",
    "keep.expand(2 ** 20, 1000).contiguous()",
    "torch.mm(torch.ones(20000, 1), torch.ones(1, 20000))",
    "keep.expand(2 ** 20, 1000).softmax(0)",
    "torch.cat([keep.expand(2 ** 20, 1000)] * 2)",
     "torch.ones(2 ** 12).outer(torch.ones(2 ** 17))"])
def test_huge_results_are_refused(call):
    run(f"refused(lambda: {call})\n")


def test_many_refusals():
    run("for _ in range(200):\n    refused(lambda: torch.empty(2 ** 34))\n")


def test_sizes_that_overflow():
    run("""
for size in ((2 ** 62,), (2 ** 40, 2 ** 40), (2 ** 31, 2 ** 31, 2 ** 10)):
    try:
        torch.empty(size)
    except (RuntimeError, MemoryError, OverflowError):
        continue
    raise SystemExit("an impossible size was accepted")
""")


def test_memory_comes_back_after_running_out():
    run("""
held = []
try:
    while True:
        held.append(torch.ones(2 ** 20))
except (RuntimeError, MemoryError):
    pass
assert len(held) > 5
held.clear()
for _ in range(20):
    torch.ones(2 ** 22).mul_(2)
""")


def test_large_backward_is_refused_and_the_graph_can_be_used_again():
    run("""
big = torch.ones(1, requires_grad=True)
def backward():
    (big.expand(2 ** 29) * 1.0).sum().backward()
refused(backward)
assert big.grad is None
""")

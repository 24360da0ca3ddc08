"""What every Python test shares. `pytest tests/py/test_x.py` works by itself, without make."""
import os
import signal
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))

# Programs that tests start need the same package as the tests have.
if "PYTHONPATH" not in os.environ:
    os.environ["PYTHONPATH"] = os.path.join(ROOT, "python")
    sys.path.insert(0, os.environ["PYTHONPATH"])

# A run that a shell started in the background ignores Ctrl-C, and so would the programs that tests interrupt.
if signal.getsignal(signal.SIGINT) == signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

# Helpers of the operator tests (subject, table, sampling), which pytest's importlib mode does not find by itself.
for folder in ("ops", "fault"):
    sys.path.insert(0, os.path.join(ROOT, "tests", folder))


def pytest_configure(config):
    config.addinivalue_line("markers", "slow: takes seconds; left out by --fast")

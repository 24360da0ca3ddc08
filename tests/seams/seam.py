"""What the seam tests share: the module under test (EMBER_TEST_MODULE=torch runs the PyTorch-visible ones on the oracle)."""
import importlib
import os
import subprocess
import sys

NAME = os.environ.get("EMBER_TEST_MODULE", "ember")
torch = importlib.import_module(NAME)
IS_EMBER = NAME == "ember"


def run_program(text, timeout=120, env=None):
    """A program of its own that prints; returns its output. A signal or a non-zero exit fails with what it wrote."""
    program = f"import sys, os\nimport {NAME} as torch\n" + text
    full = dict(os.environ, **(env or {}))
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=timeout, env=full)
    assert done.returncode == 0, f"exit {done.returncode}\n{done.stdout}\n{done.stderr}"
    return done.stdout

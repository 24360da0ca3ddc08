"""python -m ember FILE and as_torch: programs that say `import torch` get Ember."""

import os
import subprocess
import sys


def ember(*args, cwd=None, stdin=None):
    return subprocess.run([sys.executable, "-m", "ember", *args], capture_output=True, text=True, cwd=cwd,
                          input=stdin, timeout=60)


PROGRAM = """
import sys
import torch
import torch.nn as nn
import torch.nn.functional as F
from torch import optim
from torch.optim.lr_scheduler import StepLR
from torch.utils.checkpoint import checkpoint
import helper
import ember
assert torch is ember and nn is ember.nn and F is ember.nn.functional and optim is ember.optim
assert sys.modules["torch.nn.functional"] is sys.modules["ember.nn.functional"]
assert nn.__spec__.name == "ember.nn", nn.__spec__
try:
    import torch.no_such_thing
except ModuleNotFoundError as e:
    print(e)
print(__name__, sys.argv[1:], helper.NAME, sys.argv[0] == __file__)
class Mine(nn.Module):
    pass
print(Mine.__module__, Mine())
raise SystemExit(3)
"""


def test_runs_a_file(tmp_path):
    (tmp_path / "helper.py").write_text("NAME = 'beside the program'\n")
    (tmp_path / "program.py").write_text(PROGRAM)
    done = ember(str(tmp_path / "program.py"), "a", "--b")
    assert done.stdout == ("No module named 'torch.no_such_thing'\n__main__ ['a', '--b'] beside the program True\n"
                           "__main__ Mine()\n"), done.stderr
    assert done.returncode == 3


def test_other_ways_to_give_a_program(tmp_path):
    (tmp_path / "prog.py").write_text("import torch, sys; print(torch.__name__, sys.argv[1:])")
    assert ember("-m", "prog", "x", cwd=tmp_path).stdout == "ember ['x']\n"
    assert ember("-c", "import torch, sys; print(torch.__name__, sys.argv)", "y").stdout == "ember ['-c', 'y']\n"
    assert ember("-", "z", stdin="import torch, sys; print(torch.__name__, sys.argv)").stdout == "ember ['-', 'z']\n"


def test_errors_and_help():
    missing = ember("no_such_file.py")
    assert missing.returncode == 2
    assert missing.stderr == "ember: can't open file 'no_such_file.py': [Errno 2] No such file or directory\n"
    assert ember("--help").stdout.startswith("usage: python -m ember") and ember("--help").returncode == 0
    assert ember().returncode == 2 and ember().stderr.startswith("usage: ")
    assert ember("--nonsense").returncode == 2 and "unknown option --nonsense" in ember("--nonsense").stderr
    assert ember("-m").stderr == "ember: argument expected for the -m option\n"
    assert ember("--version").stdout.strip() != ""


def test_traceback_names_the_program(tmp_path):
    (tmp_path / "bad.py").write_text("import torch\n\ndef f():\n    raise KeyError('here')\n\nf()\n")
    done = ember(str(tmp_path / "bad.py"))
    assert done.returncode == 1 and "bad.py\", line 4, in f\n    raise KeyError('here')" in done.stderr


def test_as_torch_in_a_program():
    code = ("import ember\n"
            "assert ember.as_torch() is ember and ember.as_torch() is ember\n"
            "import torch.nn.functional as F\n"
            "import pickle, torch\n"
            "assert pickle.loads(b'ctorch.nn.modules.linear\\nLinear\\n.') is torch.nn.Linear\n"
            "print(torch is ember)")
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    assert done.stdout == "True\n", done.stderr


def test_as_torch_refuses_beside_another_torch(tmp_path):
    (tmp_path / "torch.py").write_text("")
    code = "import torch, ember\ntry:\n    ember.as_torch()\nexcept RuntimeError as e:\n    print(e)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60,
                          env={**os.environ, "PYTHONPATH": f"{tmp_path}{os.pathsep}"
                                                           f"{os.environ.get('PYTHONPATH', '')}"})
    assert done.stdout.startswith("as_torch(): another torch is already imported, from "), done.stderr

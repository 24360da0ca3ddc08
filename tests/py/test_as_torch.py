"""python -m ember FILE and as_torch: programs that say `import torch` get Ember."""

import os
import py_compile
import signal
import subprocess
import sys

import pytest


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
    assert ember("-m", "prog", "x", cwd=tmp_path).stdout == "torch ['x']\n"
    assert ember("-c", "import torch, sys; print(torch.__name__, sys.argv)", "y").stdout == "torch ['-c', 'y']\n"
    assert ember("-", "z", stdin="import torch, sys; print(torch.__name__, sys.argv)").stdout == "torch ['-', 'z']\n"


def test_errors_and_help():
    missing = ember("no_such_file.py")
    assert missing.returncode == 2
    assert missing.stderr == "ember: can't open file 'no_such_file.py': [Errno 2] No such file or directory\n"
    assert ember("--help").stdout.startswith("usage: python -m ember") and ember("--help").returncode == 0
    assert ember().returncode == 2 and ember().stderr.startswith("usage: ")
    assert ember("--nonsense").returncode == 2 and "unknown option --nonsense" in ember("--nonsense").stderr
    assert ember("-m").stderr == "ember: argument expected for the -m option\n"
    assert ember("--version").stdout.strip() != ""


# Programs without torch: python itself says what each must print, warn, and exit with.
LIKE_PYTHON = {
    "names": "import sys, os\n"
             "print(sorted(k for k in globals()), __name__, __doc__, __package__, __spec__ and __spec__.name)\n"
             "print(type(__loader__).__name__, __builtins__, sys.argv, globals().get('__file__'),\n"
             "      os.path.realpath(sys.path[0]), sys.modules['__main__'])\n",
    "uncaught": "def f():\n    raise KeyError('here')\n\nf()\n",
    "chained": "try:\n    1 / 0\nexcept ZeroDivisionError as e:\n    raise ValueError('then') from e\n",
    "syntax": "x = 1\nif x\n    pass\n",
    "not utf-8": b"# coding: latin-1\nprint(ascii('\xe9'))\n",
    "exit words": "raise SystemExit('no more')\n",
    "exit 3": "import atexit\natexit.register(print, 'last')\nraise SystemExit(3)\n",
    "interrupt": "import atexit, os, signal\natexit.register(print, 'last')\n"
                 "os.kill(os.getpid(), signal.SIGINT)\nfor i in range(10**9): pass\n",
    "own hook": "import sys, traceback\ndef hook(t, v, tb):\n    print('hook', t, len(traceback.extract_tb(tb)), "
                "len(traceback.extract_tb(v.__traceback__)))\nsys.excepthook = hook\n[][1]\n",
    "warnings": "import warnings\nfor level in (1, 2, 3, 4, 5, 6):\n"
                "    warnings.warn(f'level {level}', stacklevel=level)\n"
                "def f():\n    warnings.warn('caller', stacklevel=2)\nf()\nwith warnings.catch_warnings(record=True) as seen:\n"
                "    warnings.simplefilter('always')\n    warnings.warn('above', stacklevel=2)\nprint(seen[0].filename, seen[0].lineno)\n",
    "thread": "import threading\nt = threading.Thread(target=lambda: [][0], name='t')\nt.start()\nt.join()\nprint('on')\n",
    "thread at the end": "import threading, time\n"
                         "threading.Thread(target=lambda: (time.sleep(0.2), print('done'))).start()\nprint('main')\n",
    "pickle": "import pickle\nclass A:\n    x = 1\ndef f(): return 2\nprint(pickle.loads(pickle.dumps((A, f)))[1](), A.__module__)\n",
    "spawn": "import multiprocessing as m, sys\nclass A:\n    def __init__(self, x): self.x = x\ndef f(a): return a.x + 1, __name__, "
             "sys.argv[1:]\nif __name__ == '__main__':\n    with m.get_context('spawn').Pool(1) as p: print(p.map(f, [A(1), A(2)]))\n",
    "input": "print(input() if __name__ == '__main__' else 0)\n",
}


def both(args, cwd, more=(), **kwargs):
    """What python and python -m ember make of the same arguments: exit status, output, errors."""
    runs = [subprocess.run([sys.executable, *more, *how, *args], cwd=cwd, capture_output=True, timeout=60, **kwargs)
            for how in ([], ["-m", "ember"])]
    return [(run.returncode, run.stdout, run.stderr) for run in runs]


@pytest.mark.parametrize("form, name", [("file", name) for name in LIKE_PYTHON] + [
    (form, name) for form in ("module", "text", "stdin", "folder", "compiled")
    for name in ("names", "uncaught", "exit 3", "interrupt", "warnings")] + [
    ("module", "spawn"), ("module", "syntax"), ("folder", "syntax"), ("text", "own hook"), ("stdin", "chained")])
def test_as_python_does_it(tmp_path, form, name):
    program = LIKE_PYTHON[name]
    program = program if isinstance(program, bytes) else program.encode()
    stdin = program if form == "stdin" else b"line\n"
    (tmp_path / "prog.py").write_bytes(program)
    args = ["prog.py", "a", "--b"]
    if form == "module":
        args[:1] = ["-m", "prog"]
    elif form == "text":
        args[:1] = ["-c", program.decode()]
    elif form == "stdin":
        args[0] = "-"
    elif form == "folder":
        (tmp_path / "__main__.py").write_bytes(program)
        args[0] = str(tmp_path)
    elif form == "compiled":
        args[0] = py_compile.compile(str(tmp_path / "prog.py"), str(tmp_path / "prog.pyc"))
    python, got = both(args, tmp_path, input=stdin)
    assert got == python
    assert name != "interrupt" or got[0] == -signal.SIGINT


def test_flags_and_links_as_python_does_it(tmp_path):
    (tmp_path / "real").mkdir()
    (tmp_path / "real" / "prog.py").write_text("import sys\nprint(sys.path[0], __file__, sys.argv, sys.flags.optimize)\nassert 0\n")
    os.symlink(tmp_path / "real" / "prog.py", tmp_path / "link.py")
    os.symlink(tmp_path / "real" / "prog.py", tmp_path / "program")
    for args in (["link.py"], ["program"], ["real/prog.py", "x"], ["-m", "no_such_module"], ["-m", "real"]):
        for more in ([], ["-O"], ["-P"]) if sys.version_info >= (3, 11) else ([], ["-O"]):
            python, got = both(args, tmp_path, more)
            assert got == python, (args, more)


def test_names_are_torchs(tmp_path):
    """What a program that imports torch sees of names; and pickles that real PyTorch would read."""
    (tmp_path / "prog.py").write_text('''
import pickle, pickletools, sys
import torch
from torch import nn
from torch.optim import SGD
from torch.utils.data import DataLoader
print(type(torch.ones(1)), nn.Linear, nn.Parameter, SGD, DataLoader, torch.dtype, torch.device, torch.Size, torch.no_grad)
print(torch.__name__, nn.__name__, nn.functional.relu.__module__, torch.Generator, torch.finfo, torch.backends.cudnn.__name__)
for what in (lambda: torch.foo, lambda: nn.foo, lambda: torch.float32.foo, lambda: torch.linalg.foo, lambda: torch.backends.foo):
    try:
        what()
    except AttributeError as e:
        print(e)
value = [torch.ones(2), nn.Linear(1, 1), torch.float64, torch.device("cpu"), torch.Size([1]), SGD([torch.ones(1)], 0.1)]
data = pickle.dumps(value, 2)
names = {arg.split(" ")[0].split(".")[0] for op, arg, _ in pickletools.genops(data) if op.name == "GLOBAL"}
print(sorted(names - {"builtins", "__builtin__", "_codecs"}))
print([type(a) is type(b) for a, b in zip(value, pickle.loads(data))])
import ember.nn.functional, ember.backends.cudnn, ember.ops
print(all(sys.modules["torch" + k[5:]] is m for k, m in sys.modules.items() if k.startswith("ember.") and k not in
          ("ember._as_torch", "ember.__main__")), ember.nn is nn, ember.ops is torch.ops)
''')
    done = ember("prog.py", cwd=tmp_path)
    assert done.stderr == "" and done.stdout.splitlines() == [
        "<class 'torch.Tensor'> <class 'torch.nn.modules.linear.Linear'> <class 'torch.nn.parameter.Parameter'> "
        "<class 'torch.optim.sgd.SGD'> <class 'torch.utils.data.dataloader.DataLoader'> <class 'torch.dtype'> "
        "<class 'torch.device'> <class 'torch.Size'> <class 'torch.autograd.grad_mode.no_grad'>",
        "torch torch.nn torch.nn.functional <class 'torch._C.Generator'> <class 'torch.finfo'> torch.backends.cudnn",
        "module 'torch' has no attribute 'foo'", "module 'torch.nn' has no attribute 'foo'",
        "'torch.dtype' object has no attribute 'foo'", "module 'torch.linalg' has no attribute 'foo'",
        "module 'torch.backends' has no attribute 'foo'", "['collections', 'torch']", "[True, True, True, True, True, True]",
        "True True True"], done.stdout


def test_as_torch_in_a_program():
    code = ("import ember\n"
            "assert ember.as_torch() is ember and ember.as_torch() is ember\n"
            "import torch.nn.functional as F\n"
            "import pickle, torch\n"
            "assert pickle.loads(b'ctorch.nn.modules.linear\\nLinear\\n.') is torch.nn.Linear\n"
            "print(torch is ember)")
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    assert done.stdout == "True\n", done.stderr


def test_renaming_meets_nothing_but_ember():
    """Another package of a like name, a class that a program made, a type that is renamed twice."""
    code = ("import ember, sys, types\n"
            "class Mine(ember.nn.Module): pass\n"
            "other = sys.modules['emberlike'] = types.ModuleType('emberlike')\n"
            "assert ember.Tensor.__module__ == 'ember' and repr(ember.nn.Linear) == \"<class 'ember.nn.modules.linear.Linear'>\"\n"
            "ember.as_torch(); ember.as_torch()\n"
            "assert ember.Tensor.__module__ == 'torch' and repr(ember.nn.Linear) == \"<class 'torch.nn.modules.linear.Linear'>\"\n"
            "assert ember.float32.__module__ == 'torch' and type(ember.float32).__module__ == 'torch'\n"
            "assert Mine.__module__ == '__main__' and other.__name__ == 'emberlike'\n"
            "try:\n    ember._C._rename_type(Mine, 'x')\n"
            "except TypeError as e: print(e)")
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    assert done.stdout == "_rename_type: Mine has __module__\n", done.stderr


def test_as_torch_refuses_beside_another_torch(tmp_path):
    (tmp_path / "torch.py").write_text("")
    code = "import torch, ember\ntry:\n    ember.as_torch()\nexcept RuntimeError as e:\n    print(e)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60,
                          env={**os.environ, "PYTHONPATH": f"{tmp_path}{os.pathsep}"
                                                           f"{os.environ.get('PYTHONPATH', '')}"})
    assert done.stdout.startswith("as_torch(): another torch is already imported, from "), done.stderr

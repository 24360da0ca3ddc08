"""python -m ember FILE [ARGS...]: run a program that says `import torch` on Ember."""

import io
import sys
import types

import ember

_HELP = """\
usage: python -m ember [-h] [--version] FILE [ARGS...]
       python -m ember -m MODULE [ARGS...]
       python -m ember -c CODE [ARGS...]

Runs a Python program with `import torch` meaning Ember. The program sees ARGS in
sys.argv, as if python had run it; FILE may be - for standard input.

  -h, --help   show this text
  --version    show Ember's version

For C programs: cc program.c $(python -m ember --cflags --libs)

  --cflags --libs               flags for the compiler and the linker
  --includedir --libdir         folders of the headers and of libember.so
  --pkgconfigdir --cmakedir     folders of ember.pc and of emberConfig.cmake
"""
_FOR_C = ("--cflags", "--libs", "--includedir", "--libdir", "--pkgconfigdir", "--cmakedir")


def _main_module(path):
    """A fresh __main__ for the program."""
    module = types.ModuleType("__main__")
    module.__builtins__ = __builtins__
    if path is not None:
        module.__file__ = path
    sys.modules["__main__"] = module
    return module


def _run(source, path, argv):
    sys.argv[:] = argv
    code = compile(source, path, "exec")
    exec(code, _main_module(path if path[0] != "<" else None).__dict__)


def main(argv):
    """Run the command line argv (without the program's name). Returns the exit status."""
    if not argv or argv[0] in ("-h", "--help"):
        print(_HELP, end="", file=sys.stdout if argv else sys.stderr)
        return 0 if argv else 2
    if argv[0] == "--version":
        print(ember.__version__)
        return 0
    if argv[0] in _FOR_C and all(word in _FOR_C for word in argv):
        from ember.utils import cpp_extension
        print(cpp_extension.flags(argv))
        return 0
    first, rest = argv[0], argv[1:]
    if first in ("-m", "-c") and not rest:
        print(f"ember: argument expected for the {first} option", file=sys.stderr)
        return 2
    if first.startswith("-") and first not in ("-", "-m", "-c"):
        print(f"ember: unknown option {first}; see python -m ember --help", file=sys.stderr)
        return 2
    from ember import _as_torch
    _as_torch.as_torch()
    if first == "-m":
        import runpy
        sys.argv[:] = rest
        sys.path.insert(0, "")
        runpy.run_module(rest[0], run_name="__main__", alter_sys=True)
    elif first == "-c":
        sys.path.insert(0, "")
        _run(rest[0], "<string>", ["-c", *rest[1:]])
    elif first == "-":
        sys.path.insert(0, "")
        _run(sys.stdin.read(), "<stdin>", argv)
    else:
        try:
            with io.open_code(first) as f:
                source = f.read()
        except OSError as e:
            print(f"ember: can't open file {first!r}: [Errno {e.errno}] {e.strerror}", file=sys.stderr)
            return 2
        import os
        path = os.path.abspath(first)  # as python does: the program may change its folder
        sys.path.insert(0, os.path.dirname(path))
        _run(source, path, argv)
    return 0


if __name__ == "__main__":
    # Python put the current folder first for `-m ember`; the program's own folder belongs there.
    if not getattr(sys.flags, "safe_path", False):  # python -P; Python 3.11 has it
        del sys.path[0]
    sys.exit(main(sys.argv[1:]))

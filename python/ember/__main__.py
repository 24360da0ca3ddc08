"""python -m ember FILE [ARGS...]: run a program that says `import torch` on Ember."""

import functools
import importlib.machinery
import io
import os
import runpy
import sys
import types
import warnings

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


def _main_module(path=None):
    """A fresh __main__, as python makes one before it starts a program. path: its file, or <stdin>."""
    module = types.ModuleType("__main__")
    loader = importlib.machinery.BuiltinImporter if path in (None, "<stdin>") else _file_loader(path)
    module.__dict__.update(__builtins__=sys.modules["builtins"], __loader__=loader, __annotations__={})
    if path is not None:
        module.__file__, module.__cached__ = path, None
    sys.modules["__main__"] = module
    return module


def _read_stdin():
    return getattr(sys.stdin, "buffer", sys.stdin).read()


def _file_loader(path):
    compiled = path.endswith(".pyc")
    return (importlib.machinery.SourcelessFileLoader if compiled else importlib.machinery.SourceFileLoader)("__main__", path)


def _read_file(path):
    """Source, or code from a .pyc file."""
    if path.endswith(".pyc"):
        return _file_loader(path).get_code("__main__")
    with io.open_code(path) as f:
        return f.read()


def _program(kind, what):
    """Runs it. Whatever it raises passes through this frame, and what stands above in the traceback is not the program's."""
    if kind == "module":
        _main_module()
        runpy._run_module_as_main(what)
    elif kind == "folder":
        _main_module()
        runpy._run_module_as_main("__main__", alter_argv=False)
    else:
        path, source = what
        code = source if isinstance(source, types.CodeType) else compile(source, path, "exec", dont_inherit=True)
        exec(code, _main_module(None if path == "<string>" else path).__dict__)


def _show(hook, type_, value, traceback):
    """sys.excepthook for an exception that ended the program: as if python had run it."""
    entry = traceback
    while entry is not None and entry.tb_frame.f_code is not _program.__code__:
        entry = entry.tb_next
    if entry is not None:
        traceback = entry.tb_next
        value.__traceback__ = traceback
    hook(type_, value, traceback)


def _warn_like_python(show, kind):
    """A warning that is meant for a frame above the program's first is python's own: `sys:1`."""
    above = {_program.__code__.co_filename}
    if kind in ("file", "text"):  # with -m and folders, python itself stands on runpy
        above.add(runpy.run_module.__code__.co_filename)

    def _showwarnmsg(message):
        if message.filename in above:
            message.filename, message.lineno = "sys", 1
        show(message)

    return _showwarnmsg


def _run(kind, what, argv, folder):
    """Runs a program with its arguments, and with its folder first in sys.path."""
    sys.argv[:] = argv
    if not getattr(sys.flags, "safe_path", False):  # python -P; Python 3.11 has it
        sys.path[0] = folder  # python put the current folder there for `-m ember`
    from ember import _as_torch
    _as_torch.as_torch()
    warnings._showwarnmsg = _warn_like_python(warnings._showwarnmsg, kind)
    try:
        _program(kind, what)
    except BaseException:
        # Python reports it, and exits as the exception asks; the program may have put a hook of its own there.
        sys.excepthook = functools.partial(_show, sys.excepthook)
        raise


def _run_file(first, argv):
    """Runs a file, or a folder or archive with a __main__.py. Returns the exit status."""
    if os.path.isdir(first) or not first.endswith((".py", ".pyc")) and importlib.machinery.PathFinder.find_spec("__main__", [first]):
        _run("folder", None, argv, first)
        return 0
    path = os.path.abspath(first)  # as python does: the program may change its folder
    try:
        source = _read_file(path)
    except OSError as e:
        print(f"ember: can't open file {first!r}: [Errno {e.errno}] {e.strerror}", file=sys.stderr)
        return 2
    _run("file", (path, source), argv, os.path.dirname(os.path.realpath(path)))
    return 0


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
    if first == "-m":
        _run("module", rest[0], rest, os.getcwd())
    elif first == "-c":
        _run("text", ("<string>", rest[0]), ["-c", *rest[1:]], "")
    elif first == "-":
        _run("text", ("<stdin>", _read_stdin()), argv, "")
    else:
        return _run_file(first, argv)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

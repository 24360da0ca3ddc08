"""Proof 1: where the compiled part lives, how big it is, and what importing it brings in.

    python proofs/where_the_code_lives.py

Python sees a small bridge (`_C`); the machine is `libember.so` beside it; the math libraries of others are opened when a
product first needs them, and not before.
"""
import os

import ember
from ember.utils.cpp_extension import library_in_use


def mapped():
    """Shared libraries in this process: {path: bytes on disk}."""
    with open("/proc/self/maps", encoding="utf-8") as file:
        paths = {line.split(None, 5)[5].strip() for line in file if ".so" in line}
    return {path: os.path.getsize(path) for path in sorted(paths) if os.path.exists(path)}


def size(path):
    return f"{os.path.getsize(os.path.realpath(path)) / 2 ** 20:7.2f} MB  {os.path.basename(path)}"


def main():
    bridge = ember._C.__file__
    machine = library_in_use()
    print(f"ember {ember.__version__}")
    print(size(bridge), "(the bridge: Python objects, argument parser, errors)")
    print(size(machine), "(the machine: dispatcher, autograd, kernels; a C program needs this one alone)")
    print(f"ember.add is a {type(ember.add).__name__}: there is no Python body to step into")
    before = set(mapped())
    ember.randn(256, 256) @ ember.randn(256, 256)
    opened = sorted(set(mapped()) - before)
    print("opened by the first matrix product:", ", ".join(os.path.basename(path) for path in opened) or "nothing")
    assert os.path.exists(machine) and type(ember.add).__name__ == "builtin_function_or_method"


if __name__ == "__main__":
    main()

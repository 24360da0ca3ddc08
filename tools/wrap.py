"""Wrap lines of C that are longer than 140 columns, and leave every other line as it is.

clang-format does the work (pip install clang-format; not needed otherwise), told of the long lines only. What it can't
wrap (a long string, a table) is wrapped by hand.
"""
import glob
import os
import re
import shutil
import subprocess
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
PATTERNS = ["src/**/*.[ch]", "include/**/*.h", "python/csrc/*.[ch]", "tests/c/*.[ch]", "examples/c/*.[ch]"]
MAX_LINE = 140


def long_lines(path):
    with open(path, encoding="utf-8") as file:
        return [number for number, line in enumerate(file, 1) if len(line.rstrip("\n")) > MAX_LINE]


def lift_comments(path):
    """A comment at the end of a line that is too long goes on a line of its own above it."""
    with open(path, encoding="utf-8") as file:
        lines = file.read().split("\n")
    out = []
    for line in lines:
        found = re.match(r'^(\s*)([^\s"/][^"]*?[;{,}])\s+(//[^"]*)$', line) if len(line) > MAX_LINE else None
        if found and not (out and out[-1].endswith("\\")):
            out += [found[1] + found[3], found[1] + found[2]]
        else:
            out.append(line)
    with open(path, "w", encoding="utf-8") as file:
        file.write("\n".join(out))


def main(paths):
    tool = os.environ.get("CLANG_FORMAT") or shutil.which("clang-format")
    if not tool:
        sys.exit("wrap: no clang-format: pip install clang-format, or name one in CLANG_FORMAT")
    if not paths:
        paths = [path for pattern in PATTERNS for path in glob.glob(os.path.join(ROOT, pattern), recursive=True)]
    left = 0
    for path in sorted(paths):
        before = long_lines(path)
        if before:
            lift_comments(path)
            for_tool = [f"--lines={number}:{number}" for number in long_lines(path)]
            if for_tool:
                subprocess.run([tool, "-i", *for_tool, path], check=True)
            after = long_lines(path)
            print(f"{os.path.relpath(path)}: {len(before)} too long, {len(after)} left")
            left += len(after)
    return 1 if left else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

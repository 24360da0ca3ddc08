"""Which dtypes each operator of the table takes: those with which one of its samples runs. Measured, not declared.

    .venv/bin/python tests/ops/taken.py --write      after a change of what operators take: ops/taken.txt, which help() reads
"""
import os
import sys

from makers import Maker
from oracle_data import LETTERS
from subject import map_args, operator
from table import TABLE

PATH = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "ops", "taken.txt")
HEAD = "# Dtypes that operators take, a letter each (tests/ops/oracle_data.py). Made by tests/ops/taken.py, checked by test_taken.py.\n"


def takes(entry, dtype):
    try:
        samples = list(entry.samples(Maker(entry.name, dtype)))
    except TypeError:
        return False  # numpy itself cannot make them
    for args, kwargs in samples:
        made = [map_args(part, lambda arg: arg.tensor(dtype)) for part in (args, kwargs)]
        try:
            operator(entry.name)(*made[0], **made[1])
        except (RuntimeError, TypeError, ValueError, IndexError):
            continue  # a dtype, or a sample that makes no sense with it
        return True
    return False


def measure():
    """The text of ops/taken.txt."""
    lines = []
    for name, entry in sorted(TABLE.items()):
        if operator(name) is not None:
            lines.append(f"{name} {''.join(letter for letter, dtype in LETTERS.items() if takes(entry, dtype)) or '-'}\n")
    return HEAD + "".join(lines)


if __name__ == "__main__" and "--write" in sys.argv:
    with open(PATH, "w", encoding="utf-8") as file:
        file.write(measure())
    print(os.path.normpath(PATH))

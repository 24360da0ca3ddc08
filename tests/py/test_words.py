"""What a PyTorch user meets on the first day: values as they print, warnings, errors, word for word.

words/*.txt hold the cases, one a line (lines that begin with a space, or with `; `, go on with the one above). Each is run as a
small program; what it prints, the value of its last expression, its warnings and its exception must be what PyTorch's are.
PyTorch's answers are stored in golden/test_words.json: a Python that has PyTorch writes them with

    python tests/py/test_words.py --write [NAME...]     those that are missing; with NAMEs these files anew
    python tests/py/test_words.py --show [NAME...]      every difference, for people

words/differences lists where Ember differs, under headings that say why. A case that no longer differs must leave the list.
"""

import ast
import contextlib
import copy
import glob
import io
import json
import math
import os
import pickle
import re
import signal
import subprocess
import sys
import tempfile
import warnings

try:
    import pytest
except ImportError:  # the Python that has PyTorch need not have it
    from types import SimpleNamespace
    pytest = SimpleNamespace(mark=SimpleNamespace(parametrize=lambda *a: lambda f: f))

HERE = os.path.dirname(os.path.abspath(__file__))
GOLDEN = os.path.join(HERE, "golden", "test_words.json")


def cases(path):
    """The cases of a file, in order."""
    found = []
    with open(path) as f:
        for line in f.read().splitlines():
            if line.startswith("; "):
                found[-1] += "\n" + line[2:]
            elif line.startswith(" "):
                found[-1] += "\n" + line
            elif line:
                found.append(line)
    assert len(set(found)) == len(found), [c for c in found if found.count(c) > 1]
    return found


def files():
    return {os.path.basename(p)[:-4]: cases(p) for p in sorted(glob.glob(os.path.join(HERE, "words", "*.txt")))}


def run(case, torch):
    """The whole answer as text."""
    import numpy
    tree = ast.parse(case)
    last = tree.body.pop() if isinstance(tree.body[-1], ast.Expr) else None
    space = {"torch": torch, "nn": torch.nn, "F": torch.nn.functional, "np": numpy, "copy": copy, "io": io, "math": math,
             "os": os, "pickle": pickle, "__name__": "words"}
    out, error, before = io.StringIO(), None, os.getcwd()
    torch.manual_seed(0)
    with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        os.chdir(folder)
        try:
            with contextlib.redirect_stdout(out):
                exec(compile(tree, "<case>", "exec"), space)
                value = last and eval(compile(ast.Expression(last.value), "<case>", "eval"), space)
                if value is not None:
                    print(repr(value))
        except Exception as e:
            error = f"{type(e).__module__}.{type(e).__qualname__}: {e}".replace("builtins.", "")
        finally:
            os.chdir(before)
    text = out.getvalue()
    for w in seen:
        text += f"warning {w.category.__name__}: {w.message}\n"
    text += f"raises {error}\n" if error is not None else ""
    return plain(text.replace(folder, "FOLDER"))


def plain(text):
    """Without what differs from run to run or from build to build."""
    text = re.sub(r" \(Triggered internally at [^)]*\)", "", text)
    text = re.sub(r"\nException raised from [^\n]*(\nframe #[^\n]*|\n<omitting python frames>)*\n", "", text)
    text = re.sub(r"(is only available for these backends: ).*", r"\1...\n", text, flags=re.DOTALL)
    text = re.sub(r"This could be because the operator doesn't exist for this backend[^\n]*'aten", "'aten", text)
    text = re.sub(r'  File "[^\n]*\n(    [^\n]*\n)*', "", text)
    text = re.sub(r"0x[0-9a-f]{6,}", "0x", text)
    return re.sub(r"'?[^\s'\"]*/(ember|torch)/([\w/]+\.py)'?", r"PACKAGE/\2", text)


# What a case sets outlives it, or was warned of once for all.
LASTING = re.compile(r"set_|num_workers|storage|float\(|cfloat|detect_anomaly|add_safe|with torch.device")


def forked(case, torch, seconds=30):
    """run() in a child."""
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        signal.alarm(seconds)
        with open(os.devnull, "w") as null:
            os.dup2(null.fileno(), 2)
        try:
            answer = run(case, torch)
        except BaseException as e:
            answer = f"HARNESS {type(e).__name__}: {e}\n"
        with open(write, "w") as f:
            f.write(answer)
        os._exit(0)
    os.close(write)
    with open(read) as f:
        answer = f.read()
    status = os.waitpid(child, 0)[1]
    return answer if status == 0 else f"DIED {status}\n"


def golden():
    with open(GOLDEN) as f:
        return json.load(f)


def write(names):
    """Has PyTorch answer. Every case in a child: what PyTorch warns of once a process it then warns of again."""
    import torch
    import torch.distributions, torch.optim.swa_utils, torch.utils.data  # noqa: E401
    known = {} if not os.path.exists(GOLDEN) else golden()
    answers = {}
    for name, of in files().items():
        have = {} if name in names else known.get(name, {})
        answers[name] = {case: have[case] if case in have else forked(case, torch) for case in of}
    lines = (",\n".join(f"{json.dumps(k)}: {json.dumps(v)}" for k, v in of.items()) for of in answers.values())
    with open(GOLDEN, "w") as f:
        f.write("{\n" + ",\n".join(f"{json.dumps(name)}: {{\n{text}\n}}" for name, text in zip(answers, lines)) + "\n}\n")
    print(f"{GOLDEN}: {sum(map(len, answers.values()))} cases by PyTorch {torch.__version__}")


def answer(names):
    """Ember's answers, under the name torch."""
    import ember
    torch = ember.as_torch()
    of = files()
    return {name: {case: (forked if LASTING.search(case) else run)(case, torch) for case in of[name]} for name in names or of}


def asked(*names):
    """answer() of a process of its own: this one knows Ember by its own name."""
    done = subprocess.run([sys.executable, os.path.abspath(__file__), "--answer", *names], capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stderr[-2000:]
    return json.loads(done.stdout.splitlines()[-1])


def differing():
    """{case: why} of words/differences."""
    found, why = {}, None
    with open(os.path.join(HERE, "words", "differences")) as f:
        for line in f.read().splitlines():
            if line.startswith("# "):
                why = line[2:]
            elif line.startswith(("; ", " ")):
                last = list(found)[-1]
                found[last + "\n" + line.removeprefix("; ")] = found.pop(last)
            elif line:
                found[line] = why
    return found


@pytest.mark.parametrize("name", list(files()))
def test_words(name):
    want, got, known, wrong = golden()[name], asked(name)[name], differing(), []
    assert list(want) == list(got), "golden/test_words.json is of other cases: test_words.py --write"
    for case in want:
        if (got[case] == want[case]) == (case in known):
            wrong.append(f"{case}\n-- PyTorch\n{want[case]}-- Ember{' (listed as different)' * (case in known)}\n{got[case]}")
    assert not wrong, "\n\n".join(wrong)


def test_the_list_of_differences_is_of_cases():
    cases_ = {case for of in files().values() for case in of}
    assert set(differing()) <= cases_


def show(names):
    wants, wrong, count = golden(), 0, 0
    for name, of in asked(*names).items():
        for case, got in of.items():
            want, count = wants[name].get(case, "nothing stored"), count + 1
            if got != want:
                wrong += 1
                print(f"--- {name}: {case}\n  P  " + "\n     ".join(want.splitlines()) + "\n  E  " + "\n     ".join(got.splitlines()))
    print(f"{wrong} of {count} differ")


if __name__ == "__main__":
    todo, *rest = sys.argv[1:] or ["--write"]
    if todo == "--answer":
        print("\n" + json.dumps(answer(rest)))
    else:
        {"--write": write, "--show": show}[todo](rest)

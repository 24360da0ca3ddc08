"""The proofs run, and so do the scripts of the document that Ember implements, with Ember in place of torch."""
import os
import re
import subprocess
import sys

import pytest

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
MAP = os.path.join(os.path.dirname(ROOT), "shared", "THE_MAP.txt")


def run(*command, **options):
    return subprocess.run([sys.executable, *command], capture_output=True, text=True, stdin=subprocess.DEVNULL, **options)


@pytest.mark.parametrize("name, line", [
    ("where_the_code_lives", r"MB  libember\.so"), ("the_recorded_graph", r"10 records, 174,080 bytes saved"),
    ("the_two_clocks", r"There is one clock here|There are two clocks"),
    ("the_small_ideas", r"MulBackward0 -> AddBackward0 -> CopySlices"), ("the_fixed_cost", r"add, 4,194,304 elements")])
def test_proof(name, line, tmp_path):
    picture = tmp_path / "cost.png"
    arguments = ["--plot", str(picture)] if name == "the_fixed_cost" else []
    done = run(os.path.join(ROOT, "proofs", name + ".py"), *arguments)
    assert done.returncode == 0, done.stderr
    assert re.search(line, done.stdout), done.stdout
    if arguments and "no picture" not in done.stdout:
        assert picture.read_bytes()[1:4] == b"PNG"


def scripts():
    """The document's five programs by the line they start at: the longest run of lines that Python can read."""
    if not os.path.exists(MAP):
        return {}
    with open(MAP, encoding="utf-8") as file:
        lines = file.read().split("\n")
    found = {}
    for start, line in enumerate(lines):
        if re.match(r'"""(Micro-p|P)roof', line):
            for end in range(start + 80, start, -1):
                text = "\n".join(lines[start:end])
                try:
                    compile(text, "script", "exec")
                except SyntaxError:
                    continue
                found[start + 1] = text
                break
    return found


SCRIPTS = scripts()


@pytest.mark.slow
@pytest.mark.skipif(not SCRIPTS, reason="../shared/THE_MAP.txt is not beside this checkout")
@pytest.mark.parametrize("line", list(SCRIPTS))
def test_script_of_the_document(line):
    text = SCRIPTS[line]
    assert text.count("import torch\n") == 1
    done = run("-c", text.replace("import torch\n", "import ember as torch\n").replace("import torch.nn as nn", "from ember import nn"))
    if "torch.backends.mps" in text:  # written for Apple's GPU: it may stop at its own assert, and nowhere else
        assert done.returncode == 0 or "needs an Apple-silicon GPU" in done.stderr, done.stderr
    else:
        assert done.returncode == 0, done.stderr
        assert re.search("ops/sec|SumBackward0|CopySlices|MB|stub|AddBackward0", done.stdout), done.stdout


@pytest.mark.skipif(not SCRIPTS, reason="../shared/THE_MAP.txt is not beside this checkout")
def test_the_document_has_five_scripts():
    assert len(SCRIPTS) == 5

"""docs/c_api.md as programs; and a program, written from the headers, that gives every operator nothing."""
import os
import re
import shutil
import subprocess

import pytest

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
BUILD = os.environ.get("EMBER_BUILD", os.path.join(ROOT, "build"))
CC = os.environ.get("CC", "cc").split()
START = """#include <ember/ember.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
static void check(em_status st) {
  if (st == EM_OK) return;
  fprintf(stderr, "%s: %s\\n", em_status_exception(st), em_error_message());
  exit(1);
}
"""


CXX = shutil.which("g++") or shutil.which("clang++")


def build_and_run(source, folder, name, warnings=True, language="c"):
    path = folder / f"{name}.{language}"
    path.write_text(source)
    flags = ["-Wall", "-Wextra", "-Werror"] if warnings else ["-w"]
    compiler = CC if language == "c" else [CXX, "-std=c++11", "-Wpedantic"]
    command = [*compiler, "-O0", *flags, str(path), "-o", str(folder / name), "-I" + os.path.join(ROOT, "include"),
               "-I" + os.path.join(BUILD, "gen"), "-L" + BUILD, "-lember", "-lm", "-pthread", "-Wl,-rpath," + BUILD]
    built = subprocess.run(command, capture_output=True, text=True)
    assert built.returncode == 0, built.stderr[-4000:]
    return subprocess.run([str(folder / name)], capture_output=True, text=True, cwd=folder, timeout=120)


def blocks(language="c"):
    """(line, code, expected output or None) of each block of the language."""
    with open(os.path.join(ROOT, "docs", "c_api.md"), encoding="utf-8") as file:
        text = file.read()
    for found in re.finditer(rf"^```{language}\n(.*?)^```\n(?:```text\n(.*?)^```\n)?", text, re.M | re.S):
        yield text.count("\n", 0, found.start(1)) + 1, found[1], found[2]


def whole(code):
    return re.search(r"^int main\(", code, re.M) is not None


PROGRAMS = [(line, code, output) for line, code, output in blocks() if whole(code)]
PARTS = [(line, code) for line, code, _ in blocks() if not whole(code)]


@pytest.mark.parametrize("line, code, output", PROGRAMS, ids=[str(line) for line, _, _ in PROGRAMS])
def test_program(line, code, output, tmp_path):
    assert output is not None, "a program's output stands under it"
    done = build_and_run(code, tmp_path, "program")
    assert (done.returncode, done.stdout, done.stderr) == (0, output, "")


@pytest.mark.skipif(CXX is None, reason="no C++ compiler on this machine: the headers' C++ side is not tried")
def test_programs_in_cplusplus(tmp_path):
    found = list(blocks("cpp"))
    assert found
    for line, code, output in found:
        done = build_and_run(code, tmp_path, f"program{line}", language="cpp")
        assert (done.returncode, done.stdout, done.stderr) == (0, output, "")


def test_parts(tmp_path):
    """Each in a function of its own, all in one program."""
    assert len(PARTS) >= 9
    source, calls = START, ""
    for line, code in PARTS:
        source += f"static void part_{line}(em_tensor *x, em_tensor *w, em_tensor *b, em_tensor *labels) {{\n" \
                  f"(void)x, (void)w, (void)b, (void)labels;\n#line {line} \"c_api.md\"\n{code}}}\n"
        calls += f"""  {{
    em_scope *s = em_scope_begin();
    em_manual_seed(0);
    em_tensor *x = em_randn(EM_INTS(4, 3)), *w = em_randn(EM_INTS(2, 3)), *b = em_zeros(EM_INTS(2));
    em_tensor *labels = em_zeros_with(EM_INTS(4), EM_I64, -1, EM_DEVICE_NONE, -1);
    check(em_tensor_set_requires_grad(w, true));
    check(em_tensor_set_requires_grad(b, true));
    part_{line}(x, w, b, labels);
    if (em_scope_end(s) != EM_OK || em_live_tensors() != 0) {{
      fprintf(stderr, "c_api.md:{line}: %s, %lld tensors left\\n", em_error_message(), (long long)em_live_tensors());
      return 1;
    }}
  }}
"""
    done = build_and_run(f"{source}int main(void) {{\n{calls}  return 0;\n}}\n", tmp_path, "parts")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "RuntimeError in aten::mm: mat1 and mat2 shapes cannot be multiplied (4x3 and 4x3)" in done.stdout


def test_a_network_in_sixty_lines():
    assert any("em_adam_new" in code and len(code.splitlines()) <= 60 for _, code, _ in PROGRAMS)


def declarations():
    """(name, [C types of the arguments]) of every operator's explicit form."""
    with open(os.path.join(BUILD, "gen", "gen_api.h"), encoding="utf-8") as file:
        for name, arguments in re.findall(r"^EM_API em_status (em_call_\w+)\((.*)\);$", file.read(), re.M):
            kinds = [re.match(r"(.*?[ *])\w+$", part.strip())[1].strip() for part in arguments.split(",") if part != "void"]
            yield name, kinds


NOTHING = {"em_ints": "EM_INTS_NONE", "em_tensors": "(em_tensors){NULL, -1}", "em_scalar": "em_scalar_none()",
           "em_device": "EM_DEVICE_NONE", "em_opt_int": "em_no_int()", "em_opt_double": "em_no_double()",
           "em_doubles": "(em_doubles){NULL, -1}", "em_bools": "(em_bools){NULL, -1}", "em_scalars": "(em_scalars){NULL, -1}",
           "em_opt_bool": "-1"}


def test_every_operator_given_nothing(tmp_path):
    """NULL for each tensor, absent lists, numbers that are none: an error comes back, or the operator needs nothing."""
    source, count = START, 0
    body = ""
    for number, (name, kinds) in enumerate(declarations()):
        places, given = "", []
        for i, kind in enumerate(kinds):
            if kind.endswith("*") and kind.count("*") == 2 and "const" not in kind or kind in ("em_tensor_list *",) or (
                    kind.endswith("*") and kind.split()[0] in ("bool", "int64_t", "double", "em_scalar", "em_device")):
                places += f"    static {kind[:-1].strip()} r{i};\n"
                given.append(f"&r{i}")
            else:
                given.append(NOTHING.get(kind, "NULL" if kind.endswith("*") else "-1"))
        takes = any(kind in ("em_tensor *", "em_tensors") for kind in kinds)
        count += takes
        body += f"static void f{number}(void) {{\n{places}    em_status st = {name}({', '.join(given)});\n" \
                f"    if (st == EM_OK && {int(takes)}) printf(\"{name}\\n\");\n" \
                f"    if (st != EM_OK && em_error_message()[0] == 0) abort();\n}}\n"
    calls = "".join(f"  f{i}();\n" for i in range(number + 1))
    done = build_and_run(f"{source}{body}int main(void) {{\n{calls}  puts(\"end\");\n  return 0;\n}}\n", tmp_path, "nothing",
                         warnings=False)
    assert done.returncode == 0 and done.stdout.endswith("end\n"), done.stdout[-300:] + done.stderr[-1000:]
    assert count > 1500 and done.stdout == "end\n", "these took nothing for an argument: " + done.stdout

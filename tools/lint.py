"""The rules of the house that a program can check (CONTRIBUTING.md says why each is there).

A line, or the line before it, may say `lint: allow RULE, because ...`. Prints `path:line: rule: text` for each
problem; exit status 1 when there is one.
"""
import argparse
import ast
import glob
import os
import re
import shlex
import shutil
import subprocess
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))

# What a folder's files may include besides themselves: arrows point down.
ARROWS = {
    "src/core": {"core"},
    "src/dispatch": {"core", "dispatch"},
    "src/ops": {"core", "dispatch", "ops"},
    "src/autograd": {"core", "dispatch", "ops", "autograd"},
    "src/serialize": {"core", "dispatch", "ops", "serialize"},
    "src/debug": {"core", "dispatch", "debug"},
    "src/backend": {"core", "dispatch", "backend"},
    "src/api": {"core", "dispatch", "ops", "autograd", "backend", "serialize", "io", "api"},
    "python/csrc": {"core", "dispatch", "ops", "autograd", "serialize", "debug", "backend", "csrc"},
}
# Who may touch a tensor's bytes: backends, and the parts of core that make, describe and walk storage.
DATA_ALLOWED = re.compile(r"src/backend/|src/core/(iterator|copy|cast|shape|storage|tensor|alloc|rng)|src/dispatch/pointwise|"
                          r"src/serialize/|src/api/(tensor|text|gradcheck)|python/csrc/(numpy|dlpack|buffer|storage)")
MAX_FILE, MAX_FUNCTION, MAX_LINE, MAX_README = 1200, 80, 140, 30
HAND_WRITTEN = ["src/**/*.[ch]", "include/**/*.h", "python/**/*.[ch]", "python/**/*.py", "tests/**/*.[ch]",
                "tests/**/*.py", "gen/**/*.py", "tools/**/*.py", "bench/**/*.[ch]", "bench/**/*.py",
                "examples/**/*.[ch]", "examples/**/*.py"]
FORBIDDEN_CALLS = re.compile(r"(?<![\w.>])(abort|exit|_exit|sig(?:set|long)jmp|longjmp|setjmp)\(")


class Lint:
    def __init__(self, root):
        self.root, self.problems, self.lines = root, [], {}

    def files(self, *patterns):
        """Hand-written files that match, relative to the root; links into build folders are not hand-written."""
        found = set()
        for pattern in patterns:
            for path in glob.glob(os.path.join(self.root, pattern), recursive=True):
                if not os.path.islink(path) and "__pycache__" not in path:
                    found.add(os.path.relpath(path, self.root))
        return sorted(found)

    def read(self, path):
        if path not in self.lines:
            with open(os.path.join(self.root, path), encoding="utf-8") as file:
                self.lines[path] = file.read().split("\n")
        return self.lines[path]

    def problem(self, path, number, rule, text):
        lines = self.read(path) if os.path.isfile(os.path.join(self.root, path)) else []
        near = lines[max(number - 2, 0):number] if number else []
        if not any(f"lint: allow {rule}, " in line for line in near):
            self.problems.append(f"{path}:{number or 1}: {rule}: {text}")


def strip_c(lines):
    """The lines of a C file without comments and without what is inside strings, line numbers kept."""
    text = "\n".join(lines)
    pattern = re.compile(r'/\*.*?\*/|//[^\n]*|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])*\'', re.S)

    def blank(found):
        kept = '""' if found[0][0] == '"' else "0" if found[0][0] == "'" else ""
        return kept + "\n" * found[0].count("\n")
    return pattern.sub(blank, text).split("\n")


def check_text(lint, path):
    """Lengths of files and lines, and promises without an issue."""
    lines = lint.read(path)
    count = len(lines) - (lines[-1] == "")
    if count > MAX_FILE and not any("lint: table" in line for line in lines[:5]):
        lint.problem(path, 0, "file-length", f"{count} lines, at most {MAX_FILE}")
    for number, line in enumerate(lines, 1):
        if len(line) > MAX_LINE and "/golden/" not in path:
            lint.problem(path, number, "line-length", f"{len(line)} columns, at most {MAX_LINE}")
        if line != line.rstrip() or "\t" in line:
            lint.problem(path, number, "whitespace", "tab, or blank at the end of the line")
        promise = re.search(r"\b(TODO|FIXME|XXX|HACK)\b", line)
        if promise and not re.search(r"\(#\d+\)", line) and not path.startswith("tools/lint"):
            lint.problem(path, number, "todo", f"{promise[1]} without an issue: write {promise[1]}(#12)")


def check_c_functions(lint, path):
    """Functions open with a brace at the left edge or at the end of an unindented line, and close at the edge."""
    start = None
    for number, line in enumerate(strip_c(lint.read(path)), 1):
        if start is None:
            opens = line.rstrip() == "{" or (line[:1].isalpha() and line.rstrip().endswith("{") and "(" in line)
            if opens and "=" not in line.split("(")[0]:
                start = number
        elif line.startswith("}"):
            if number - start + 1 > MAX_FUNCTION:
                lint.problem(path, start, "function-length", f"{number - start + 1} lines, at most {MAX_FUNCTION}")
            start = None


def check_python(lint, path):
    """Function lengths and swallowed errors."""
    tree = ast.parse("\n".join(lint.read(path)), path)
    for node in ast.walk(tree):
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            length = node.end_lineno - node.lineno + 1
            if length > MAX_FUNCTION:
                lint.problem(path, node.lineno, "function-length", f"{length} lines, at most {MAX_FUNCTION}")
        if isinstance(node, ast.ExceptHandler):
            broad = node.type is None or getattr(node.type, "id", "") in ("Exception", "BaseException")
            if broad and all(isinstance(line, (ast.Pass, ast.Continue)) for line in node.body):
                lint.problem(path, node.lineno, "swallowed", "a broad except that hides the error")


def check_includes(lint, path):
    """The arrows."""
    folder = next((folder for folder in ARROWS if path.startswith(folder + "/")), None)
    if folder is None:
        return
    for number, line in enumerate(lint.read(path), 1):
        found = re.match(r'\s*#\s*include\s*"([^"]+)"', line)
        if not found or "/" not in found[1] or found[1].startswith("ember/"):
            continue
        beside = os.path.normpath(os.path.join(os.path.dirname(path), found[1]))
        place = beside if found[1].startswith(".") else os.path.join("src", found[1])
        layer = place.split("/")[1]
        if layer not in ARROWS[folder]:
            lint.problem(path, number, "arrow", f"{folder} may not include {found[1]}")


def check_c_calls(lint, path):
    """What C code of the machine may not do: touch bytes from outside, end the process, start threads of its own."""
    machine = path.startswith(("src/", "python/csrc/"))
    for number, line in enumerate(strip_c(lint.read(path)), 1):
        if machine and re.search(r"->\s*data\b(?!\s*\()|\bem_tensor_data\(", line) and not DATA_ALLOWED.match(path):
            lint.problem(path, number, "data", "bytes are for backends and the iterator: go through an operator")
        found = FORBIDDEN_CALLS.search(line) if machine else None
        if found:
            lint.problem(path, number, "call", f"{found[1]}() is not for a library")
        if re.match(r"\s*#\s*pragma\s+omp\b(?!\s+(simd|declare\s+simd))", line):
            lint.problem(path, number, "openmp", "only `omp simd`: threads come from src/core/threads.c")


def check_listed(lint):
    """Every C file is in a meson.build, so that none is forgotten; no flag that changes what numbers mean."""
    builds = {path: "\n".join(lint.read(path)) for path in lint.files("meson.build", "*/**/meson.build")
              if not path.startswith("build")}
    for path in lint.files("src/**/*.c", "python/csrc/**/*.c", "tests/c/test_*.c", "examples/c/*.c"):
        name = os.path.basename(path)
        words = [f"'{name}'", f"/{name}'"]
        if path.startswith(("tests/c/", "examples/c/")):
            words.append(f"'{name.removeprefix('test_')[:-len('.c')]}'")
        driven = path.startswith("tests/c/") and os.path.exists(path[:-2] + ".py")  # its pytest module compiles it
        if not driven and not any(word in text for text in builds.values() for word in words):
            lint.problem(path, 0, "unlisted", "no meson.build compiles this file")
    for path, text in builds.items():
        for number, line in enumerate(text.split("\n"), 1):
            if re.search(r"'-(ffast-math|Ofast|funsafe-math-optimizations)'", line):
                lint.problem(path, number, "fast-math", "switches denormals off for the whole process")


def check_readmes(lint):
    folders = {os.path.dirname(path) for path in lint.files("src/**/*.[ch]", "python/csrc/**/*.[ch]")}
    for folder in sorted(folders):
        readme = os.path.join(folder, "README.md")
        if not os.path.exists(os.path.join(lint.root, readme)):
            lint.problem(folder, 0, "readme", "the folder has no README.md")
        elif len(lint.read(readme)) - 1 > MAX_README:
            lint.problem(readme, 0, "readme", f"{len(lint.read(readme)) - 1} lines, at most {MAX_README}")


def check_headers(lint, build):
    """Each public header compiles alone, in C and in C++, without a warning."""
    headers = lint.files("include/ember/*.h")
    generated = [os.path.relpath(path, lint.root) for path in glob.glob(os.path.join(lint.root, build, "gen/ember*.h"))]
    cc = shlex.split(os.environ.get("CC", "gcc"))
    cxx = shutil.which("g++") or shutil.which("clang++")
    compilers = [(cc + ["-x", "c", "-std=c11"], "C")] + ([([cxx, "-x", "c++", "-std=c++11"], "C++")] if cxx else [])
    if not cxx:
        print("lint: note: no C++ compiler here, headers were compiled in C only")
    for path in headers + sorted(generated):
        for command, language in compilers:
            done = subprocess.run(command + ["-Wall", "-Wextra", "-Werror", "-Wno-pragma-once-outside-header",
                                             "-fsyntax-only", "-Iinclude", f"-I{build}/gen", path],
                                  cwd=lint.root, capture_output=True, text=True)
            if done.returncode:
                first = next((line for line in done.stderr.splitlines() if "error" in line), done.stderr.strip())
                lint.problem(path, 0, "header", f"does not compile alone in {language}: {first}")


def architecture_problems(root):
    """Names in ARCHITECTURE.md that do not exist: `path/file` must be a file, `name()` must be defined or generated.

    Returns (names checked, [problem]). Code spans count; a span with spaces or other signs is not a name.
    """
    with open(os.path.join(root, "ARCHITECTURE.md"), encoding="utf-8") as file:
        page = file.read()
    source = ""
    for pattern in ["src/**/*.[ch]", "include/**/*.h", "python/csrc/*.[ch]", "python/ember/**/*.py", "gen/*.py",
                    "build/gen/*.[ch]", "tools/*.py"]:
        for path in sorted(glob.glob(os.path.join(root, pattern), recursive=True)):
            if os.path.isfile(path):
                with open(path, encoding="utf-8") as file:
                    source += file.read() + "\n"
    checked, problems = 0, []
    for span in sorted(set(re.findall(r"(?<!`)`([^`\n]+)`(?!`)", page))):
        if re.fullmatch(r"[\w.-]+(/[\w.-]+)+/?", span) or re.fullmatch(r"[\w-]+\.(md|build|map|toml|py)", span):
            checked += 1
            if span.startswith("build/") and not os.path.isdir(os.path.join(root, "build")):
                continue  # generated files can only be looked for after a build
            if not os.path.exists(os.path.join(root, span)):
                problems.append(f"file {span} does not exist")
        elif re.fullmatch(r"\w+\(\)", span):
            checked += 1
            name = span[:-2]
            # Defined or declared at the left edge, `def`, `#define`, or made by a macro in capitals.
            defined = (rf"^[A-Za-z_][^;={{}}\n]*\b{name}\(|^{name}\(|^\s*def {name}\(|^#\s*define {name}\(|"
                       rf"^(?:.*\) )?[A-Z_]+\({name}\b")
            if not re.search(defined, source, re.M):
                problems.append(f"function {span} is not defined")
    return checked, problems


def lint_tree(root, build):
    """Every check on the tree at `root`; returns the problems."""
    lint = Lint(root)
    for path in lint.files(*HAND_WRITTEN):
        check_text(lint, path)
        if path.endswith(".py"):
            check_python(lint, path)
        else:
            check_c_functions(lint, path)
            check_includes(lint, path)
            check_c_calls(lint, path)
    check_listed(lint)
    check_readmes(lint)
    check_headers(lint, build)
    if os.path.exists(os.path.join(root, "ARCHITECTURE.md")):
        for text in architecture_problems(root)[1]:
            lint.problem("ARCHITECTURE.md", 0, "architecture", text)
    return lint.problems


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--root", default=ROOT)
    parser.add_argument("--build", default="build", help="where generated headers are, if it was built")
    args = parser.parse_args()
    problems = lint_tree(os.path.abspath(args.root), args.build)
    for line in problems:
        print(line)
    print(f"lint: {len(problems)} problems")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())

"""help_facts.py: what help texts know that no row says: which errors a C function reports and what it calls (src/), which dtypes
it was measured to take (ops/taken.txt), and derivatives (ops/derivatives*.yaml)."""
import ast
import functools
import glob
import os
import re

import emit_autograd

# A definition at the left margin: all on one line, or ended by a brace at the margin.
FUNCTION = re.compile(r"^(?=[a-z])[\w *]*?\b(\w+)\([^;{}]*?\)\s*\{(?:([^\n]*)\}\n|[^\n]*\n(.*?)^\})", re.M | re.S)
FAILS = re.compile(r'\b(?:em_fail|EM_FAIL)\(\s*EM_ERR_(\w+),\s*((?:"(?:[^"\\]|\\.)*"\s*)+)')
CLASSES = {"RUNTIME": "RuntimeError", "TYPE": "TypeError", "VALUE": "ValueError", "INDEX": "IndexError", "LINALG": "LinAlgError",
           "NOT_IMPLEMENTED": "NotImplementedError", "OVERFLOW": "OverflowError", "ZERO_DIVISION": "ZeroDivisionError"}
DEEP = 3  # calls between an operator's function and the words it fails with
FAR = 6   # and the operators it calls
ENTRY = ("check", "composite", "view", "views", "guard", "inplace_guard", "cpu")


def entry_functions(row):
    """C functions that a row names, the one that checks its arguments first."""
    names = [str(row.fields[k]).split("(")[0] for k in ENTRY if k in row.fields]
    native = row.fields.get("native")
    names += [v for k, v in native.items() if k != "__line__"] if isinstance(native, dict) else []
    return list(dict.fromkeys(names))


def plain(text):
    """A format string as a message: what is filled in becomes `...`."""
    words = "".join(ast.literal_eval(s) for s in re.findall(r'"(?:[^"\\]|\\.)*"', text))
    return re.sub(r"%[-+ #0]*[\d.*]*(?:hh|h|ll|l|z|j)?[a-zA-Z]", "...", words).replace("%%", "%").replace("\n", " ").strip()


MACRO = re.compile(r"^#define (\w+)\(([^)]*)\)((?:.*\\\n)*.*)$", re.M)
MADE = re.compile(r"\b(\w+)\([^;{}()]*\)\s*\{")


def expansions(text):
    """(line, name, body) of functions that a macro makes at the left margin, `##` done as the preprocessor does it."""
    macros = {m[1]: ([p.strip() for p in m[2].split(",")], m[3].replace("\\\n", "\n")) for m in MACRO.finditer(text)}
    for m in re.finditer(r"^([A-Z]\w*)\(((?:[^()]|\([^()]*\))*)\)", text, re.M):
        if m[1] not in macros:
            continue
        params, body = macros[m[1]]
        for param, value in zip(params, (a.strip() for a in m[2].split(","))):
            body = re.sub(rf"\b{re.escape(param)}\b", lambda _, v=value: v, body)
        body = re.sub(r"\s*##\s*", "", body)
        for made in MADE.finditer(body):
            yield text.count("\n", 0, m.start()) + 1, made[1], body


@functools.cache
def called(body):
    """Names of the functions that it calls, in order."""
    return list(dict.fromkeys(re.findall(r"\b([a-z]\w+)\(", body)))


@functools.cache
def named(body):
    """Every name in it: a function may be passed rather than called."""
    return list(dict.fromkeys(re.findall(r"\b[a-z]\w{3,}\b", body)))


class Sources:
    """The functions of src/: {name: [(path, line, body, whether it is static)]}."""

    def __init__(self, root):
        self.found, self.walked = {}, {}
        for path in sorted(glob.glob(os.path.join(root, "src", "**", "*.c"), recursive=True)):
            with open(path, encoding="utf-8") as file:
                text = file.read()
            path = os.path.relpath(path, root)
            for m in FUNCTION.finditer(text):
                line, body = text.count("\n", 0, m.start()) + 1, m[2] or m[3] or ""
                self.found.setdefault(m[1], []).append((path, line, body, m[0].startswith("static")))
            for line, name, body in expansions(text):
                self.found.setdefault(name, []).append((path, line, body, False))

    def get(self, name, path=None):
        """The function that code in `path` means by this name; its own static one first."""
        known = self.found.get(name, [])
        own = [k for k in known if k[0] == path] or [k for k in known if not k[3]]
        return own[0] if own else None

    def place(self, name):
        known = self.get(name)
        return known[:2] if known else None

    def walk(self, name, deep=DEEP):
        """[(depth, body)] of a function and of what it calls, nearest first: its own file, and the house's checks of dims."""
        if (name, deep) in self.walked:
            return self.walked[name, deep]
        todo, seen, bodies = [(0, name, None)], {name}, self.walked.setdefault((name, deep), [])
        while todo:
            depth, name, path = todo.pop(0)
            known = self.get(name, path)
            if known is None or (depth and known[0] != path and not re.search(r"wrap|check", name)):
                continue
            path, _, body, _ = known
            bodies.append((depth, body))
            for callee in called(body) + [n for n in named(body) if any(k[0] == path and k[3] for k in self.found.get(n, ()))]:
                if callee not in seen and depth < deep and not callee.startswith(("em_call_", "em_redispatch_")):
                    seen.add(callee)
                    todo.append((depth + 1, callee, path))
        return bodies

    def errors(self, names):
        """[(class, message)], nearest first, each once."""
        said = {}
        for name in names:
            for _, body in self.walk(name):
                for code, text in FAILS.findall(body):
                    message = plain(text)
                    if code in CLASSES and re.search("[a-z]{3}", message) and "not implemented for" not in message:
                        said.setdefault((CLASSES[code], message))
        return list(said)

    def calls(self, names):
        """C names of the operators that these functions call, in order."""
        return list(dict.fromkeys(c.removeprefix("em_call_") for name in names for _, body in self.walk(name, FAR)
                                  for c in called(body) if c.startswith("em_call_")))


def taken(ops_dir):
    """{operator: letters of the dtypes that it takes}, as tests/ops/taken.py measured them."""
    with open(os.path.join(ops_dir, "taken.txt"), encoding="utf-8") as file:
        lines = [line.split() for line in file if not line.startswith("#")]
    return {name: letters.replace("-", "") for name, letters in lines}


class Derivatives:
    """{operator's full name: its row of derivatives.yaml}, and who has none by declaration."""

    def __init__(self, rows, ops_dir):
        found, never = emit_autograd.read(rows, ops_dir, [])
        self.of = {form.full: d for d in found for form in d.forms}
        self.never = never

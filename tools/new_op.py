"""Skeletons for a new operator: its row, its derivative, and the C functions that rows of its kind name.

    make new-op ARGS='pointwise "softsign(Tensor self) -> Tensor"'
    make new-op ARGS='check "outer(Tensor self, Tensor vec2) -> Tensor" --write'

Prints them; with --write the rows are appended to ops/ and C files with their lines in meson.build are made. What is
left to write stands in capitals, and the generator or the first call refuses it until it is written.
"""
import argparse
import os
import re
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
sys.path.insert(0, os.path.join(ROOT, "gen"))
import emit_ops  # noqa: E402
import rows  # noqa: E402

# What a row of each kind says besides its schema; {c} is the operator's name in C.
KINDS = {
    "pointwise": ["pointwise: EXPRESSION"],
    "check": ["check: check_{c}", "cpu: k_cpu_{c}"],
    "view": ["view: view_{c}"],
    "composite": ["composite: c_{c}"],
    "native": ["native: {{CPU: n_cpu_{c}, Meta: n_meta_{c}}}"],
}


def row_text(kind, schema, name, method):
    lines = [f"- func: {schema}", "  doc: ONE SENTENCE.", f"  variants: function{', method' if method else ''}"]
    return "\n".join(lines + ["  " + line.format(c=name) for line in KINDS[kind]]) + "\n"


def derivative_text(parsed):
    """One formula for each argument that can have a gradient, to be written."""
    tensors = [arg.name for arg in parsed.args if arg.type.base == "Tensor"]
    full = parsed.name + (f".{parsed.overload}" if parsed.overload else "")
    return "\n".join([f"- op: {full}"] + [f"  {name}: FORMULA" for name in tensors]) + "\n"


def c_texts(kind, row_fields, name):
    """{path: text} of the functions that the row names: checks and views in src/ops, kernels in src/backend/cpu."""
    row = rows._row(dict(row_fields, __line__=1), "new")
    texts = {}
    for declaration in emit_ops.hand_written(row):
        folder = "src/backend/cpu" if re.search(r"\b(k|n)_cpu_", declaration) else "src/ops"
        path = f"{folder}/{name}.c"
        body = f'  return em_fail(EM_ERR_NOT_IMPLEMENTED, "{name}: WRITE THIS");'
        texts.setdefault(path, f'// {name}.c: WHAT IT IS, AND WHAT MUST STAY TRUE.\n#include "gen_ops.h"\n')
        texts[path] += f"\n{declaration.rstrip(';')} {{\n{body}\n}}\n"
    return texts


def fields_of(kind, schema, name):
    fields = {"func": schema, "variants": "function"}
    for line in KINDS[kind]:
        key, value = line.format(c=name).split(": ", 1)
        found = re.findall(r"(\w+): (\w+)", value)
        fields[key] = dict(found) if value.startswith("{") else value
    return fields


def append(path, text):
    with open(path, "a", encoding="utf-8") as file:
        file.write("\n" + text)
    print(f"{os.path.relpath(path, ROOT)}: row added at the end")


def add_c_file(path, text):
    """A new C file and its line in the folder's first list; an existing file is left alone."""
    full = os.path.join(ROOT, path)
    if os.path.exists(full):
        print(f"{path} exists: add to it\n\n{text}")
        return
    with open(full, "w", encoding="utf-8") as file:
        file.write(text)
    build = os.path.join(os.path.dirname(full), "meson.build")
    with open(build, encoding="utf-8") as file:
        lines = file.read().split("\n")
    first = lines.index("core_sources += files(") + 1
    last = lines.index(")", first)
    lines[first:last] = sorted(lines[first:last] + [f"  '{os.path.basename(path)}',"])
    with open(build, "w", encoding="utf-8") as file:
        file.write("\n".join(lines))
    print(f"{path}: written, and listed in {os.path.relpath(build, ROOT)}")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("kind", choices=sorted(KINDS))
    parser.add_argument("schema", help='as PyTorch writes it: "hypot(Tensor self, Tensor other) -> Tensor"')
    parser.add_argument("--write", action="store_true", help="into ops/ and src/, instead of printing")
    args = parser.parse_args()
    try:
        parsed = rows.parse(args.schema)
        name = parsed.cname
        texts = c_texts(args.kind, fields_of(args.kind, args.schema, name), name)
    except rows.RowError as error:
        sys.exit(f"new-op: {error}")
    method = bool(parsed.args) and parsed.args[0].name == "self"
    parts = {"ops/native_functions.yaml": row_text(args.kind, args.schema, name, method)}
    if args.kind != "composite":
        parts["ops/derivatives.yaml"] = derivative_text(parsed)
    for path, text in {**parts, **texts}.items():
        if not args.write:
            print(f"--- {path}\n{text}")
        elif path.startswith("ops/"):
            append(os.path.join(ROOT, path), text)
        else:
            add_c_file(path, text)


if __name__ == "__main__":
    main()

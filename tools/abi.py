"""The stable face of libember: what include/ember/*.h declare with EM_API, and the layout of what they let programs see.

    abi.py map --out FILE HEADER...     the linker's version script (meson calls it)
    abi.py list --build build           prints the list; with --write it goes to docs/abi.txt (`make abi`)

Names that the headers declare are in node EMBER_1: they stay, with the same arguments, for as long as there is an EMBER_1.
Every other em_ name is in EMBER_PRIVATE, for the bridge and the tests that were built with the library, and for nobody else.
"""
import argparse
import glob
import os
import re
import subprocess
import sys
import tempfile

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
LIST = os.path.join(ROOT, "docs", "abi.txt")
HEADING = """\
# The stable face of libember.so: `make abi` writes this list, tests/py/test_abi.py compares it with the library.
# Sizes, alignments and offsets in bytes, as on x86-64 and aarch64 with Linux. A line that disappears or changes breaks
# programs that are already compiled; operators that are not listed yet are new since the list was written.
"""
FUNCTION = re.compile(r"\bEM_API\s+([^;{}()]*?)\b(em_\w+)\s*(\([^;]*\))\s*;")
CALLBACK = re.compile(r"\btypedef\s+([^;{}()]*?)\(\s*\*\s*(em_\w+)\s*\)\s*(\([^;]*\))\s*;")
STRUCT = re.compile(r"\btypedef\s+struct\s+(em_\w+)\s*\{")
ENUM = re.compile(r"\benum(?:\s+em_\w+)?\s*\{([^{}]*)\}")


def plain(text):
    """C without comments and preprocessor lines."""
    text = re.sub(r"/\*.*?\*/|//[^\n]*", " ", text, flags=re.S)
    return re.sub(r"^[ \t]*#(?:[^\n]*\\\n)*[^\n]*$", "", text, flags=re.M)


def spaced(text):
    return re.sub(r"\s+", " ", text.replace("EM_MUST_CHECK", "")).strip()


def read(headers):
    return plain("\n".join(open(path, encoding="utf-8").read() for path in headers))


def functions(text):
    """{name: declaration} of the stable functions."""
    return {name: spaced(f"{result}{name}{args}") for result, name, args in FUNCTION.findall(text)}


def closing(text, at):
    """Where the brace that opens at `at` closes."""
    depth = 0
    for i in range(at, len(text)):
        depth += {"{": 1, "}": -1}.get(text[i], 0)
        if depth == 0:
            return i
    raise ValueError("a brace that never closes")


def members(body, prefix=""):
    """Paths of a struct's members: those of nameless inner structs and unions stand among the others."""
    found, at = [], 0
    while True:
        inner = re.compile(r"\s*(?:struct|union)\s*\{").match(body, at)
        if inner:
            end = closing(body, inner.end() - 1)
            name = re.compile(r"\s*(\w*)\s*;").match(body, end + 1)
            path = prefix + name[1] if name[1] else prefix.rstrip(".")
            found += ([path] if name[1] else []) + members(body[inner.end():end], path + "." if path else "")
            at = name.end()
            continue
        line = re.compile(r"\s*([^;]+);").match(body, at)
        if not line:
            return found
        for one in line[1].split(",") if "(" not in line[1] else [line[1]]:
            called = re.search(r"\(\s*\*\s*(\w+)\s*\)", one) or re.search(r"(\w+)\s*(?:\[[^\]]*\])?\s*$", one)
            found.append(prefix + called[1])
        at = line.end()


def structs(text):
    """{name: [member paths]} of the structs whose inside a program sees."""
    return {m[1]: members(text[m.end():closing(text, m.end() - 1)]) for m in STRUCT.finditer(text)}


def enumerators(text):
    """Names of the enumerators, without those that only count the others."""
    names = [re.split(r"\s*=", one.strip())[0] for body in ENUM.findall(text) for one in body.split(",") if one.strip()]
    return [name for name in names if name not in ("EM_STATUS_COUNT", "EM_DEVICE_TYPES", "EM_NUM_DTYPES")]


def measured(text, include, cc):
    """What the compiler says about structs and enumerators, a line each."""
    code = ["#include <ember/ember.h>", "#include <stdio.h>", "int main(void) {"]
    for name, paths in sorted(structs(text).items()):
        code.append(f'  printf("struct {name} size %zu align %zu\\n", sizeof({name}), _Alignof({name}));')
        code += [f'  printf("member {name}.{path} at %zu size %zu\\n", offsetof({name}, {path}), sizeof((({name} *)0)->{path}));'
                 for path in paths]
    code += [f'  printf("value {name} %d\\n", (int){name});' for name in enumerators(text)]
    with tempfile.TemporaryDirectory() as folder:
        source, program = os.path.join(folder, "layout.c"), os.path.join(folder, "layout")
        with open(source, "w", encoding="utf-8") as file:
            file.write("\n".join([*code, "  return 0;", "}", ""]))
        flags = [f"-I{path}" for path in include]
        subprocess.run([*cc, "-std=gnu11", *flags, source, "-o", program], check=True)
        return subprocess.run([program], check=True, capture_output=True, text=True).stdout.splitlines()


def public_headers(build):
    """The headers that are installed, from the checkout and from the generator."""
    with open(os.path.join(ROOT, "gen", "outputs.txt"), encoding="utf-8") as file:
        kinds = [line.split() for line in file if line.strip() and not line.startswith("#")]
    made = [os.path.join(build, "gen", name) for kind, name in kinds if kind == "public"]
    return sorted(glob.glob(os.path.join(ROOT, "include", "ember", "*.h"))) + made


def description(build, cc=("cc",)):
    """The whole list: layout, callbacks, functions; those of operators, which rows make, come last."""
    text = read(public_headers(build))
    declared = functions(text)
    rows = set(functions(read([os.path.join(build, "gen", "gen_api.h")])))
    lines = measured(text, [os.path.join(ROOT, "include"), os.path.join(build, "gen")], list(cc))
    lines += sorted(f"callback {name}: {spaced(result)}{args and spaced(args)}" for result, name, args in CALLBACK.findall(text))
    lines += [f"function {declared[name]}" for name in sorted(set(declared) - rows)]
    return lines + [f"operator {declared[name]}" for name in sorted(rows)]


def version_script(headers):
    names = "".join(f"    {name};\n" for name in sorted(functions(read(headers))))
    return f"/* Written by tools/abi.py. */\nEMBER_1 {{\n  global:\n{names}  local: *;\n}};\nEMBER_PRIVATE {{\n  global: em_*;\n}};\n"


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("what", choices=["map", "list"])
    parser.add_argument("headers", nargs="*")
    parser.add_argument("--out", help="map: the file to write")
    parser.add_argument("--build", default=os.path.join(ROOT, "build"))
    parser.add_argument("--write", action="store_true", help="list: write docs/abi.txt")
    args = parser.parse_args()
    if args.what == "map":
        with open(args.out, "w", encoding="utf-8") as file:
            file.write(version_script(args.headers))
        return 0
    text = HEADING + "\n".join(description(args.build)) + "\n"
    if not args.write:
        print(text, end="")
        return 0
    with open(LIST, "w", encoding="utf-8") as file:
        file.write(text)
    print(f"docs/abi.txt: {text.count(chr(10)) - HEADING.count(chr(10))} lines")
    return 0


if __name__ == "__main__":
    sys.exit(main())

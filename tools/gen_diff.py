"""What a change of rows or generator does to the generated code: a unified diff of the outputs, before and after.

Before is a commit (--base, HEAD unless given), after is the working tree. Prints nothing but a count when both agree.
"""
import argparse
import difflib
import io
import os
import subprocess
import sys
import tarfile
import tempfile

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))


def generate(tree, out):
    """Run the generator of `tree` on its own rows; returns {file name: lines}."""
    subprocess.run([sys.executable, os.path.join(tree, "gen", "ember_gen.py"), "--ops", os.path.join(tree, "ops"),
                    "--out", out], check=True)
    files = {}
    for name in sorted(os.listdir(out)):
        with open(os.path.join(out, name), encoding="utf-8") as file:
            files[name] = file.read().splitlines(keepends=True)
    return files


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--base", default="HEAD", help="the commit to compare with (default HEAD)")
    parser.add_argument("--stat", action="store_true", help="count changed lines, a line a file")
    parser.add_argument("--exit-code", action="store_true", help="exit with 1 when there are differences")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="ember-gen-") as scratch:
        base = os.path.join(scratch, "base")
        archive = subprocess.run(["git", "-C", ROOT, "archive", args.base, "gen", "ops", "src/autograd/formulas.h"], stdout=subprocess.PIPE,
                                 check=True)
        tarfile.open(fileobj=io.BytesIO(archive.stdout)).extractall(base)
        try:
            before = generate(base, os.path.join(scratch, "before"))
            after = generate(ROOT, os.path.join(scratch, "after"))
        except subprocess.CalledProcessError as error:
            return error.returncode  # the generator has said what is wrong
    changed = 0
    for name in sorted(set(before) | set(after)):
        lines = list(difflib.unified_diff(before.get(name, []), after.get(name, []),
                                          f"{args.base}/{name}", f"now/{name}"))
        changed += bool(lines)
        if args.stat and lines:
            added = sum(line.startswith("+") for line in lines) - 1
            print(f"{name}: {added} lines added, {sum(line.startswith('-') for line in lines) - 1} removed")
        elif lines:
            sys.stdout.writelines(lines)
    print(f"gen-diff: {changed} of {len(after)} generated files differ from {args.base}")
    return 1 if changed and args.exit_code else 0


if __name__ == "__main__":
    sys.exit(main())

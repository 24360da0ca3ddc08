"""Run the ```python blocks of one page, in order and in one namespace; tracebacks name the page and its lines.

A block that opens with ```python no-run REASON is skipped, and its reason is printed.
"""
import re
import sys
import traceback


def blocks(text):
    """Yield (line number of the first line of code, the info string after `python`, code)."""
    for found in re.finditer(r"^```python([^\n]*)\n(.*?)^```\s*$", text, re.M | re.S):
        yield text.count("\n", 0, found.start(2)) + 1, found[1].strip(), found[2]


def main(path):
    with open(path, encoding="utf-8") as file:
        text = file.read()
    namespace = {"__name__": "__main__"}
    passed = failed = 0
    for line, info, code in blocks(text):
        if info.startswith("no-run"):
            print(f"skipped {path}:{line}: {info[len('no-run'):].strip() or 'no reason given'}")
            continue
        try:
            exec(compile("\n" * (line - 1) + code, path, "exec"), namespace)
            passed += 1
        except Exception:  # a block may fail in any way; the traceback is the report
            traceback.print_exc(file=sys.stdout)
            failed += 1
    print(f"blocks: {passed} passed, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))

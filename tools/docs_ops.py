"""Writes the reference of operators (`make docs-ops`): docs/ops, a page for each yaml file of rows."""
import argparse
import os
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
sys.path.insert(0, os.path.join(ROOT, "gen"))
import emit_stubs  # noqa: E402
from emit_python import collect  # noqa: E402
from rows import load_rows  # noqa: E402


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", default=os.path.join(ROOT, "docs", "ops"))
    options = parser.parse_args()
    rows = load_rows(os.path.join(ROOT, "ops"))
    pages = emit_stubs.reference(rows, collect(rows))
    os.makedirs(options.out, exist_ok=True)
    for name, text in pages.items():
        with open(os.path.join(options.out, name), "w", encoding="utf-8") as file:
            file.write(text)
    print(f"{options.out}: {len(pages)} pages, {sum(map(len, pages.values())) / 1024:.0f} KB")


if __name__ == "__main__":
    main()

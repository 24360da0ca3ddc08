"""ember_gen.py: reads ops/*.yaml, writes the mechanical code of Ember. `python gen/ember_gen.py --ops ops --out build/gen`.

Each emitter returns text and the functions it wrote; this file puts them together and writes only what changed.
"""
import argparse
import importlib
import os
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import emit_ops  # noqa: E402
import emit_python  # noqa: E402
import emit_tables  # noqa: E402
from rows import RowError, load_rows  # noqa: E402

# Emitters with kernels or layers of their own: emit(rows, ops_dir) -> ({file name: text}, {(op.cname, key): function}).
PLUGINS = ("emit_pointwise", "emit_reduction", "emit_autograd", "emit_api", "emit_stubs")


def generate(ops_dir):
    """All generated files as {name: text}. Raises RowError."""
    rows = load_rows(ops_dir)
    ops = [op for row in rows for op in row.ops.values()]
    entries, kernels = emit_ops.emit_entries(rows)
    files = {"gen_entries.c": entries}
    files.update(emit_tables.emit(ops_dir))
    for name in PLUGINS:
        plugin = importlib.import_module(name)
        texts, functions = plugin.emit(rows, ops_dir)
        files.update(texts)
        kernels.update(functions)
    files["gen_ops.h"] = emit_ops.emit_header(ops)
    files["gen_calls.c"] = emit_ops.emit_calls(ops)
    files["gen_operators.c"] = emit_ops.emit_operators(ops, kernels)
    files.update(emit_python.emit(rows))
    return files


def expected(gen_dir):
    with open(os.path.join(gen_dir, "outputs.txt")) as f:
        return [line.split()[1] for line in f if line.strip() and not line.startswith("#")]


def write_if_changed(path, text):
    try:
        with open(path) as f:
            if f.read() == text:
                return False
    except FileNotFoundError:
        pass
    with open(path, "w") as f:
        f.write(text)
    return True


def main(argv=None):
    p = argparse.ArgumentParser(description="Write Ember's generated code from the rows in ops/.")
    p.add_argument("--ops", required=True, help="folder of the yaml files")
    p.add_argument("--out", required=True, help="folder to write into")
    p.add_argument("--list", action="store_true", help="print the operators, one schema a line, and write nothing")
    a = p.parse_args(argv)
    try:
        if a.list:
            for row in load_rows(a.ops):
                for op in row.ops.values():
                    print(f"{op.where}\t{op.schema}")
            return 0
        files = generate(a.ops)
    except RowError as e:
        print(f"ember_gen: {e}", file=sys.stderr)
        return 1
    want = expected(os.path.dirname(os.path.abspath(__file__)))
    if set(want) != set(files):
        print(f"ember_gen: gen/outputs.txt and the emitters disagree: only listed {sorted(set(want) - set(files))}, "
              f"only written {sorted(set(files) - set(want))}", file=sys.stderr)
        return 1
    os.makedirs(a.out, exist_ok=True)
    for name, text in files.items():
        write_if_changed(os.path.join(a.out, name), text)
    return 0


if __name__ == "__main__":
    sys.exit(main())

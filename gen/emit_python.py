"""emit_python.py: which operator names Python sees, and where; signatures for stubs and docs.

The bridge's table-driven parser works from em_operator's argument tables; this file gives it, for each Python name, the
overloads in PyTorch's order and the places (function, method, ember._C._nn, _linalg, _special, _fft).
"""
import zlib

import help_written
from emit_ops import head

WHERE = {"function": 1, "method": 2, "nn": 4, "linalg": 8, "special": 16, "fft": 32}
MODULES = ("nn", "linalg", "special", "fft")  # `python_module:` names, modules of ember._C


def visible(op):
    """Overloads that Python's parser never needs: a Scalar twin of a Tensor overload (numbers are accepted as Tensors there)."""
    return not op.row.fields.get("manual_python") is True


def collect(rows):
    names = {}
    for row in rows:
        v = [w.strip() for w in row.variants.split(",") if w.strip()]
        bits = 0
        for w in v:
            if w not in ("function", "method"):
                row.fail(f"unknown variant '{w}' (known: function, method)")
            bits |= WHERE[w]
        module = row.fields.get("python_module")
        if module not in (None, *MODULES):
            row.fail(f"unknown python_module '{module}' (known: {', '.join(MODULES)})")
        if module:
            bits = (bits & WHERE["method"]) | WHERE[module]
        for op in row.ops.values():
            if not visible(op):
                continue
            # out= overloads belong to the functional name; in-place ones are methods,
            # and functions when the row is one (relu_)
            where = bits & ~WHERE["method"] if op.variant == "out" else bits
            if op.variant == "inplace" and row.ops.get("functional"):
                where = bits
            for bit in WHERE.values():
                if where & bit:
                    names.setdefault((op.name, bit), []).append(op)
    return names


def help_key(names, written):
    """A number that the table and the file of help texts (emit_help.py) share: of the names, in the table's order."""
    return zlib.crc32("\n".join(f"{name} {where}" for name, where in sorted(names) + sorted(written)).encode())


def emit(rows):
    names, written = collect(rows), help_written.read()
    c = [head("emit_python.py"), '#include "gen_python.h"\n#include "gen_ops.h"\n']
    table = []
    for (name, bit), ops in sorted(names.items()):
        # Tensor overloads come before Scalar ones, out= forms directly after
        # their functional form (PyTorch's order of trial)
        c.append(
    f"static em_operator *const overloads_{name}_{bit}[] = {{" +
    ", ".join(
        f"&em_opr_{o.cname}" for o in ops) +
         "};")
        table.append(f'  {{"{name}", overloads_{name}_{bit}, {len(ops)}, {bit}}},')
    c.append("const em_py_function em_py_functions[] = {\n" + "\n".join(table) + "\n};")
    c.append(f"const size_t em_py_function_count = {len(table)};")
    c.append("const em_py_written_name em_py_written[] = {\n" + "\n".join(f'  {{"{n}", {w}}},' for n, w in sorted(written)) + "\n};")
    c.append(f"const size_t em_py_written_count = {len(written)};")
    c.append(f"const uint32_t em_py_help_key = {help_key(names, written)}u;\n")
    h = (head("emit_python.py") + "#ifndef EMBER_GEN_PYTHON_H\n#define EMBER_GEN_PYTHON_H\n"
         "#include <stddef.h>\n#include <stdint.h>\n#include \"dispatch/operator.h\"\n"
         "// One Python-visible name in one place: 1 function of the module, 2 method of Tensor,\n"
         "// 4, 8, 16, 32 function of _C._nn, _linalg, _special, _fft.\n"
         "typedef struct em_py_function {\n  const char *name;\n  em_operator *const *overloads;  // in the order in which they are tried\n"
         "  int n;\n  int where;\n} em_py_function;\n"
         "extern const em_py_function em_py_functions[];\n"
         "extern const size_t em_py_function_count;\n"
         "// Names that the bridge has without a row and gen/stubs.pyi describes: 1 function, 2 method or attribute of Tensor.\n"
         "typedef struct em_py_written_name {\n  const char *name;\n  int where;\n} em_py_written_name;\n"
         "extern const em_py_written_name em_py_written[];\nextern const size_t em_py_written_count;\n"
         "extern const uint32_t em_py_help_key;  // of the file of help texts that belongs to these tables\n#endif\n")
    return {"gen_python.c": "\n".join(c), "gen_python.h": h}

"""emit_help.py: what help(ember.add) says about an operator, and its page in docs/ops.

Prose stands in the rows (`doc:`, `shape:`, `args:`) and in ops/arguments.yaml; signatures, dtypes, gradients, errors, C names
and places are gathered (gen/help_facts.py). The texts lie in a file beside the package that the bridge maps into memory and
reads when somebody asks: `emit_help.py --root CHECKOUT --out FILE`.
"""
import argparse
import os
import re
import struct
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import emit_api  # noqa: E402
import help_facts  # noqa: E402
import help_written  # noqa: E402
from emit_python import WHERE, collect, help_key  # noqa: E402
from emit_stubs import _name  # noqa: E402
from rows import load_rows, load_yaml  # noqa: E402

SHOWN = 6        # errors that help() quotes; docs/ops quotes all
LONG = 120       # columns of a formula that help() still prints
PLACES = {1: "torch.", 2: "Tensor.", 4: "torch._C._nn.", 8: "torch.linalg.", 16: "torch.special.", 32: "torch.fft."}
PREFIX = {8: "linalg_", 16: "special_", 32: "fft_"}
KINDS = [("bool", "?"), ("integers", "Bbhil"), ("floating point", "egfd"), ("complex", "FD")]
LETTERS = {"B": "uint8", "b": "int8", "h": "int16", "i": "int32", "l": "int64", "e": "float16", "g": "bfloat16", "f": "float32",
           "d": "float64", "F": "complex64", "D": "complex128", "?": "bool"}
CLASSES = {"bool": "?", "int": "Bbhil", "float": "egfd", "complex": "FD"}
TYPES = {"Tensor": "Tensor", "Scalar": "number", "number": "number", "int": "int", "SymInt": "int", "float": "float", "bool": "bool",
         "str": "str", "ScalarType": "dtype", "Layout": "layout", "Device": "device", "MemoryFormat": "memory_format",
         "Generator": "Generator"}
WEIGHT = ("check", "native", "reduction", "composite", "pointwise", "alias", "views", "view")  # what a composite is made for, first
OUT = "where the result is written: of its shape or empty, and of a dtype that it can be cast to"
OUT_EXACT = "where the result is written: of its dtype, and of its shape or empty"


# ---------------------------------------------------------------- words about arguments
def python_default(arg):
    text = arg.default
    if text is None:
        return None
    items = [x.strip() for x in text[1:-1].split(",")] if text.startswith("[") else None
    if items is not None and arg.type.size and len(set(items)) == 1 and items[0]:
        return items[0]
    if items is not None:
        return f"({', '.join(items)}{',' if len(items) == 1 and items[0] else ''})"
    return {"none": "None", "long": "int64", "Mean": "1", "Sum": "2"}.get(text, text)


def python_type(arg):
    t, base = arg.type, TYPES[arg.type.base]
    if t.is_list and t.base == "Tensor":
        base = "sequence of Tensor" + (" or None" if t.item_optional else "")
    elif t.is_list:
        base = f"{base} or {t.size} {base}s" if t.size > 1 else f"{base} or sequence of {base}" if t.size else f"sequence of {base}"
    return base + (" or None" if t.optional else "")


FUNCTIONAL = set()  # names that torch.nn.functional takes over as they are


def read_functional(root):
    """Fills FUNCTIONAL: functional.py binds `pad = _C._nn.pad`, or defines a function of its own."""
    with open(os.path.join(root, "python", "ember", "nn", "functional.py"), encoding="utf-8") as file:
        text = file.read()
    FUNCTIONAL.update(n for n in re.findall(r"\b_C\._nn\.(\w+)", text) if re.search(rf"^(?:[\w, ]+, )?{n}\b[\w, ]* = ", text, re.M))


def shown_name(name, bit):
    if bit == WHERE["nn"] and name in FUNCTIONAL:
        return f"torch.nn.functional.{name}"
    return PLACES[bit] + name.removeprefix(PREFIX.get(bit, ""))


def signature(op, bit, out):
    """One line: what Python sees of an overload."""
    method = bit == WHERE["method"]
    parts, star = [], False
    for a in op.ins:
        if method and a.name == "self":
            continue
        if a.kwarg_only and not star:
            parts.append("*")
            star = True
        default = python_default(a)
        parts.append(_name(a, method) + (f"={default}" if default is not None else ""))
    if out and not method:
        parts += ([] if star else ["*"]) + ["out=None"]
    kinds = ["Tensors" if r.type.is_list else TYPES.get(r.type.base, "Tensor") for r in op.returns]
    named = all(r.name for r in op.returns) and len(kinds) > 1
    result = ", ".join(r.name for r in op.returns) if named else ", ".join(kinds)
    result = f"({result})" if len(kinds) != 1 else result
    return f"{shown_name(op.name, bit)}({', '.join(parts)}) -> {result or 'None'}"


class Help:
    """Everything that is known, and the texts made of it."""

    def __init__(self, root):
        ops_dir = os.path.join(root, "ops")
        read_functional(root)
        self.rows = load_rows(ops_dir)
        self.names = collect(self.rows)
        self.words = {k: v for k, v in load_yaml(os.path.join(ops_dir, "arguments.yaml")).items() if k != "__line__"}
        self.sources = help_facts.Sources(root)
        self.taken = help_facts.taken(ops_dir)
        self.derivatives = help_facts.Derivatives(self.rows, ops_dir)
        ops = [op for row in self.rows for op in row.ops.values()]
        self.short = {op.full: name for op, name in emit_api.short_names(ops)}
        self.by_full = {op.full.removeprefix("aten::"): op for op in ops}
        self.by_cname = {op.cname: op for op in ops}
        self.callers = {}  # name -> operators whose functions call it
        for row in self.rows:
            for c in self.sources.calls(help_facts.entry_functions(row)):
                if c in self.by_cname:
                    self.callers.setdefault(self.by_cname[c].name, set()).add(row.functional.name)
        self.places = {}  # name -> {bit: overloads}
        for (name, bit), found in self.names.items():
            self.places.setdefault(name, {})[bit] = found

    # ---- which rows speak for a name
    def ops(self, name):
        return list({op.full: op for found in self.places[name].values() for op in found}.values())

    def field(self, name, key):
        return next((op.row.fields[key] for op in self.ops(name) if key in op.row.fields and op.row.functional.name == name), None)

    def base(self, name):
        """(how, the name whose words serve this one) for names that have none of their own."""
        if self.field(name, "doc"):
            return None, None
        first = self.ops(name)[0]
        if name.endswith("_") and name[:-1] in self.places:
            return "inplace", name[:-1]
        if first.row.kind == "alias":
            return "alias", str(first.row.fields["alias"]).split(".")[0]
        if name.endswith("_backward") and name.removesuffix("_backward") in self.places:
            return "backward", name.removesuffix("_backward")
        if name.endswith("_copy") and name.removesuffix("_copy") in self.places:
            return "copy", name.removesuffix("_copy")
        if name.startswith("_"):
            return "private", name
        return None, None

    def public(self, name):
        bits = self.places.get(name)
        return f"`{shown_name(name, min(bits, key=lambda b: (b == 2, b)))}`" if bits else f"`{name}`"

    def sentence(self, name):
        how, base = self.base(name)
        if how == "inplace":
            return f"In place, what {self.public(base)} computes: {self.sentence(base)}"
        if how == "alias":
            return f"Another name of {self.public(base)}. {self.sentence(base)}"
        if how == "backward":
            return f"The gradient of {self.public(base)} with respect to its input, as its derivative formula calls it."
        if how == "copy":
            return f"What {self.public(base)} shows, as a copy with bytes of its own."
        if how == "private":
            called = sorted(self.callers.get(name, set()) - {name})
            return (f"`{name}`, a part of {', '.join(map(self.public, called[:3]))}; not for programs." if called
                    else f"The machine's own `{name}`, behind Python's functions of this package.")
        row = self.ops(name)[0].row
        said = f"`{row.fields['pointwise']}`, element by element." if row.kind == "pointwise" else f"The operator of row {row.where}."
        return self.field(name, "doc") or said

    # ---- sections
    def signatures(self, name):
        lines = []
        for bit, found in sorted(self.places[name].items()):
            out = any(op.variant == "out" for op in found)
            lines += [signature(op, bit, out) for op in found if op.variant != "out"]
        return list(dict.fromkeys(lines))

    def argument_words(self, name, arg):
        _, base = self.base(name)
        for source in (name, base):
            own = self.field(source, "args") if source in self.places else None
            shown = _name(arg, False)
            if own and (shown in own or arg.name in own):
                return own.get(shown) or own[arg.name]
        said = (self.words.get(arg.name + "[]") if arg.type.is_list else None) or self.words.get(arg.name)
        return f"{said}; () is kernel_size" if said and arg.name == "stride" and arg.default == "[]" else said

    def arguments(self, name):
        """[(name, types, default, words)] over all overloads, in order."""
        found, exact = {}, False
        for op in self.ops(name):
            exact = exact or bool(op.row.fields.get("out_exact"))
            for a in op.ins:
                shown = _name(a, False)
                kinds, defaults, words = found.setdefault(shown, ([], [], []))
                kind = python_type(a)
                kinds += [k for k in kind.split(" or ") if k not in kinds]
                default = python_default(a)
                defaults += [default] if default is not None and default not in defaults else []
                said = self.argument_words(name, a)
                words += [said] if said and said not in words else []
        lines = [(n, " or ".join(k for k in kinds if k != "None") + (" or None" if "None" in kinds else ""), defaults[:1],
                  words[0] if words else "") for n, (kinds, defaults, words) in found.items()]
        if any(op.variant == "out" for op in self.ops(name)):
            many = max(len(op.outs) for op in self.ops(name)) > 1
            lines.append(("out", "tuple of Tensor" if many else "Tensor", ["None"], OUT_EXACT if exact else OUT))
        return lines

    def result(self, name):
        shape = self.field(name, "shape")
        if shape:
            return shape
        how, base = self.base(name)
        op = self.ops(name)[0]
        if how == "inplace" or name.endswith("_") or op.variant == "inplace":
            return "the tensor itself, written"
        if how == "alias" and base in self.places:
            return self.result(base)
        if how == "backward":
            return "as the input"
        if how == "copy":
            return self.result(base)
        if op.row.kind == "pointwise":
            return "as input" if sum(a.type.base == "Tensor" for a in op.ins) == 1 else "what the tensors broadcast to"
        if op.row.kind == "reduction":
            return "input's shape without dim, or with 1 there when keepdim; a scalar when nothing says which dim"
        return "as input" if how != "private" else "as its callers want it"

    def letters(self, name):
        """Letters of the dtypes that some overload takes: as measured, else as rows say; None when neither does."""
        known = [self.taken.get(op.full.removeprefix("aten::")) for op in self.ops(name) if op.variant != "out"]
        if any(k is not None for k in known):
            return {c for text in known if text for c in text}
        for op in self.ops(name):
            given = op.row.fields.get("dtypes")
            given = [w.strip() for w in given.split(",")] if isinstance(given, str) else given
            if given is None and op.row.kind == "pointwise":
                given = ["int", "float"] + (["complex"] if op.row.fields.get("complex") else [])
            if given:
                by_name = {v: k for k, v in LETTERS.items()}
                return {c for w in given for c in CLASSES.get(w, by_name.get(w, ""))}
        how, base = self.base(name)
        return self.letters(base) if how in ("inplace", "alias", "copy", "backward") and base in self.places else None

    def dtypes(self, name):
        letters = self.letters(name)
        if letters is None:
            made = self.made_of(name)
            return f"those that {' and '.join(made[:3])} take{'' if len(made) > 1 else 's'}" if made else "any"
        if not letters:
            return "none of the CPU's"
        if letters >= set(LETTERS):
            words = "all"
        else:
            words = []
            for kind, all_of_them in KINDS:
                there = [c for c in all_of_them if c in letters]
                words += [kind] if len(there) == len(all_of_them) else [LETTERS[c] for c in there]
            words = ", ".join(words)
        row = self.ops(name)[0].row
        if row.kind == "alias" and str(row.fields["alias"]) in self.by_full:
            row = self.by_full[str(row.fields["alias"])].row
        notes = {"int_to_float": "integers become the default floating point dtype", "bool_out": "the result is bool",
                 "complex_to_real": "complex arguments give real results"}.get(row.fields.get("promotion"))
        tensors = sum(a.type.base == "Tensor" and not a.type.is_list for a in row.functional.ins)
        several = "tensors of several dtypes are promoted to their common one" if row.kind == "pointwise" and tensors > 1 else None
        return "; ".join([words] + [n for n in (notes, several) if n])

    def gradient(self, name, full):
        """(words, where the formula stands)."""
        ops = [op for op in self.ops(name) if op.variant != "out"]
        rows = [self.derivatives.of[op.full] for op in ops if op.full in self.derivatives.of]
        if rows and all(text.startswith("zeros_like(") for _, text in rows[0].formulas):
            return "none flows through it", rows[0].where
        if not rows and ops and all(op.full in self.derivatives.never for op in ops):
            return "none flows through it", None
        if rows:
            d = rows[0]
            lines = [f"{', '.join('input' if n == 'self' else n for n in names)}: {text}" for names, text in d.formulas]
            text = "; ".join(lines)
            if not full and (len(text) > LONG or "formula_" in text):
                text = "of " + ", ".join("input" if e == "self" else e for e in d.edges)
            return text, d.where
        how, base = self.base(name)
        if how in ("alias", "inplace", "copy") and base in self.places:
            return self.gradient(base, full)
        kinds = {op.row.kind for op in ops}
        if kinds & {"view", "views"}:
            return "put back where the view looks", None
        if "composite" in kinds:
            return "through the operators that it is made of", None
        return "none flows through it", None

    def made_of(self, name):
        """Public names of the operators that a composite calls."""
        calls = {c: self.by_cname[c] for op in self.ops(name) if op.row.kind == "composite"
                 for c in self.sources.calls(help_facts.entry_functions(op.row)) if c in self.by_cname}
        said = [op.name for op in sorted(calls.values(), key=lambda op: WEIGHT.index(op.row.kind))]
        return list(dict.fromkeys(self.public(n).strip("`") for n in said if n != name and n in self.places))

    def errors(self, name):
        names = [f for op in self.ops(name) for f in help_facts.entry_functions(op.row)]
        found = self.sources.errors(list(dict.fromkeys(names)))
        how, base = self.base(name)
        if not found and how in ("inplace", "alias") and base in self.places:
            return self.errors(base)
        kinds = {op.row.kind for op in self.ops(name)}
        row = self.ops(name)[0].row
        if "pointwise" in kinds and sum(a.type.base == "Tensor" for a in row.functional.ins) > 1:
            found.append(("RuntimeError", "The size of tensor a (...) must match the size of tensor b (...) "
                          "at non-singleton dimension ..."))
        if "reduction" in kinds and any(a.name == "dim" for a in row.functional.ins):
            found.append(("IndexError", "Dimension out of range (expected to be in range of [..., ...], but got ...)"))
        letters = self.letters(name)
        if letters and letters < set(LETTERS):
            found.append(("NotImplementedError or RuntimeError", "for a dtype that is not among those above"))
        return found

    def c_names(self, name):
        ops = [op for op in self.ops(name)]
        plain = next((op for op in ops if op.full in self.short), None)
        call = f"em_call_{ops[0].cname}()"
        return f"{self.short[plain.full]}(), {call}" if plain else call

    def where(self, name):
        """[(path, line)]: the row, and the functions that it names."""
        row = self.ops(name)[0].row
        found = [(f"ops/{row.file}", row.line)]
        for f in help_facts.entry_functions(row):
            place = self.sources.place(f)
            if place and place not in found:
                found.append(place)
        return found

    def text(self, name):
        """What help() prints."""
        lines = [*self.signatures(name), "", self.sentence(name), ""]
        arguments = self.arguments(name)
        if arguments:
            lines.append("Arguments:")
            for n, kinds, default, words in arguments:
                what = f"{kinds}, default {default[0]}" if default else kinds
                lines.append(f"  {n} ({what}){': ' + words if words else ''}")
        gradient, _ = self.gradient(name, False)
        lines += [f"Result: {self.result(name)}.", f"Dtypes: {self.dtypes(name)}.", f"Gradient: {gradient}."]
        errors = self.errors(name)
        lines.append("Raises:")
        lines += [f"  {kind}: {message}" for kind, message in errors[:SHOWN]]
        if len(errors) > SHOWN:
            lines.append(f"  and {len(errors) - SHOWN} more (docs/ops)")
        made = self.made_of(name)
        if made:
            lines.append(f"  what {', '.join(made[:4])}{' and others' if len(made) > 4 else ''} raise{'' if len(made) > 1 else 's'}")
        lines.append("  TypeError: arguments that fit none of the signatures")
        lines.append(f"C: {self.c_names(name)}. Where: {', '.join(path for path, _ in self.where(name))}.")
        if self.field(name, "example"):
            lines += ["", self.field(name, "example").rstrip()]
        return "\n".join(lines)


# ---------------------------------------------------------------- the file
def pack(help):
    """Header {magic, key, count, size}, `count` offsets, then texts that end in NUL; equal texts once."""
    written = help_written.read()
    order = sorted(help.names)
    texts = {name: help.text(name) for name in help.places}
    entries = [texts[name] for name, _ in order] + [written[k] for k in sorted(written)]
    at, blob, offsets = {}, b"", []
    start = 16 + 4 * len(entries)
    for text in entries:
        if text not in at:
            at[text] = start + len(blob)
            blob += text.encode() + b"\0"
        offsets.append(at[text])
    header = struct.pack("<4sIII", b"EMHP", help_key(order, written), len(entries), start + len(blob))
    return header + struct.pack(f"<{len(offsets)}I", *offsets) + blob


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--root", required=True)
    parser.add_argument("--out", required=True)
    options = parser.parse_args()
    with open(options.out, "wb") as file:
        file.write(pack(Help(options.root)))


if __name__ == "__main__":
    main()

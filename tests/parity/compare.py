"""Compares what was expected with what was got: compare(record, expected, got) -> [(kind, detail), ..], empty if equal.

Ints, bools, views and creation are compared bit for bit, floats as torch.testing.assert_close does (its tolerances by
dtype; NaN equals NaN). Kinds read form:what, for example "call:value", "inplace:shape", "out:strided:stride".
"""

import numpy as np

import codec

TOLERANCE = {
    "float16": (1e-3, 1e-5),
    "bfloat16": (1.6e-2, 1e-5),
    "float32": (1.3e-6, 1e-5),
    "float64": (1e-7, 1e-7),
    "complex64": (1.3e-6, 1e-5),
    "complex128": (1e-7, 1e-7),
}


def same_bits(a, b):
    return a.tobytes() == b.tobytes()


def parts(a):
    """A float array as an array of reals (complex numbers become pairs)."""
    return a.view(a.real.dtype) if a.dtype.kind == "c" else a


def bad_elements(dtype, x, y, flags):
    """Which elements of two flat arrays of one dtype differ more than they may."""
    if x.dtype.kind not in "fc":
        return x != y
    if "ulp4" in flags:
        xr, yr = parts(x), parts(y)
        real = "bfloat16" if dtype == "bfloat16" else str(xr.dtype)
        unit = np.abs(xr) * 2.0**-7 if real == "bfloat16" else np.spacing(np.abs(xr))
        with np.errstate(invalid="ignore"):
            ok = (xr == yr) | (np.abs(xr - yr) <= 4 * unit) | (np.isnan(xr) & np.isnan(yr))
    elif "exact" in flags:
        xr, yr = parts(x), parts(y)
        bits = f"u{xr.dtype.itemsize}"
        ok = (xr.view(bits) == yr.view(bits)) | (np.isnan(xr) & np.isnan(yr))
    else:
        rtol, atol = TOLERANCE[dtype]
        with np.errstate(invalid="ignore", over="ignore"):
            return ~np.isclose(y, x, rtol=rtol, atol=atol, equal_nan=True)
    return ~ok.reshape(-1, 2).all(1) if x.dtype.kind == "c" else ~ok


BITS = {"float16": 11, "bfloat16": 8, "float32": 24, "complex64": 24}  # of the significand


def farther(dtype, x, y, ref):
    """(which elements of y lie farther from ref than those of x and a unit in the last place; the largest error of y in
    units of the largest of x): x PyTorch's, y Ember's, ref in double precision; flat arrays, complex numbers as pairs."""
    x, y, ref = (parts(v).astype(np.float64) for v in (x, y, ref))
    with np.errstate(all="ignore"):
        unit = np.ldexp(1.0, np.maximum(np.frexp(np.where(np.isfinite(ref), ref, 0))[1], -120) - BITS[dtype])
        ex, ey = np.abs(x - ref), np.abs(y - ref)
        fair = np.where(np.isfinite(x), ex, 0) + unit  # where PyTorch has inf or nan Ember must be right
        ok = (ey <= fair) | (y == ref) | (np.isnan(y) & np.isnan(ref))
        both = np.isfinite(ex) & np.isfinite(ey)
        worst = ey[both].max() / (ex + unit)[both].max() if both.any() else np.inf
    if not (both | ok).all():
        worst = np.inf
    return (~ok.reshape(-1, 2).all(1) if dtype.startswith("complex") else ~ok), worst


def judge_values(a, b, flags, where, ref):
    x, y = (codec.array(t["dtype"], t["data"]) for t in (a, b))
    if a["dtype"] == "bool":  # one byte an element; true is 1 and nothing else
        x, y = x.view(np.uint8), y.view(np.uint8)
    bad, note = bad_elements(a["dtype"], x, y, flags), ""
    if bad.any() and a["dtype"] in BITS and ref and ref["shape"] == a["shape"] and not {"exact", "ulp4"} & set(flags):
        wide = codec.array(ref["dtype"], ref["data"])
        if wide.dtype.kind == x.dtype.kind:
            far, worst = farther(a["dtype"], x, y, wide)
            bad &= far
            note = f"; largest error {worst:.3g} times PyTorch's"
    if not bad.any():
        return []
    i = int(np.argmax(bad))
    at = tuple(int(k) for k in np.unravel_index(i, a["shape"])) if a["shape"] else ()
    return [("value", f"{where}element {at} expected {x[i]!r} got {y[i]!r} ({int(bad.sum())} of {len(x)}){note}")]


def compare_tensor(a, b, flags, where, look, ref=None):
    """a, b, ref: the dicts of encoded output tensors; look: which properties count."""
    out = []
    for what in ("dtype", "shape", "strides"):
        if what in look and a[what] != b[what]:
            out.append((what.replace("strides", "stride"), f"{where}{what} expected {a[what]} got {b[what]}"))
    if "alias" in look and a["alias"] != b["alias"]:
        out.append(
            ("alias", f"{where}(storage, byte offset) shared with an input: expected {a['alias']} got {b['alias']}")
        )
    if "same" in look and a["same"] != b["same"]:
        out.append(("identity", f"{where}is input number: expected {a['same']} got {b['same']}"))
    if "requires_grad" in look and a["requires_grad"] != b["requires_grad"]:
        out.append(("requires_grad", f"{where}requires_grad expected {a['requires_grad']} got {b['requires_grad']}"))
    if "uninit" not in flags and a["dtype"] == b["dtype"] and a["shape"] == b["shape"]:
        out += judge_values(a, b, flags, where, ref)
    return out


LOOK = ("dtype", "shape", "strides", "alias", "same", "requires_grad")


def compare_value(a, b, flags, where="", look=LOOK, ref=None):
    if a[0] == "out" and b[0] == "out":
        return compare_tensor(a[1], b[1], flags, where, look, ref[1] if ref and ref[0] == "out" else None)
    if a[0] != b[0]:
        return [("type", f"{where}expected {brief(a)} got {brief(b)}")]
    if a[0] in ("list", "tuple", "size"):
        if len(a[1]) != len(b[1]):
            return [("type", f"{where}expected {len(a[1])} results, got {len(b[1])}")]
        out = []
        if a[0] == "tuple" and not set(a[2]) <= set(b[2]):
            out.append(("type", f"{where}result has no field {sorted(set(a[2]) - set(b[2]))}"))
        for i, (x, y) in enumerate(zip(a[1], b[1])):
            twin = ref[1][i] if ref and ref[0] == a[0] and i < len(ref[1]) else None
            out += compare_value(x, y, flags, f"{where}[{i}] ", look, twin)
        return out
    if a[0] == "py":
        x, y = a[1], b[1]
        if type(x) is not type(y):
            return [("type", f"{where}expected {x!r} got {y!r}")]
        equal = x == y or (x != x and y != y)
        if not equal and isinstance(x, (float, complex)) and "exact" not in flags:
            equal = bool(np.isclose(y, x, rtol=1e-7, atol=1e-7, equal_nan=True))
        return [] if equal else [("value", f"{where}expected {x!r} got {y!r}")]
    return [] if a == b else [("value", f"{where}expected {brief(a)} got {brief(b)}")]


def brief(e):
    if e[0] == "out":
        return f"tensor {e[1]['dtype']} {e[1]['shape']}"
    return f"{e[0]} of {len(e[1])}" if e[0] in ("list", "tuple", "size") else str(e[1:])[:80]


def compare_form(form, a, b, flags, ref=None):
    """One form's outcomes: [(kind, detail)]."""
    if "err" in a:
        if "err" not in b:
            return [(f"{form}:no-error", f"expected {a['err'][0]}: {a['err'][1]}; got {brief(b['ok'])}")]
        if a["err"][0] != b["err"][0]:
            return [
                (f"{form}:error-class", f"expected {a['err'][0]}: {a['err'][1]}; got {b['err'][0]}: {b['err'][1]}")
            ]
        return []
    if "err" in b:
        return [(f"{form}:raises", f"{b['err'][0]}: {b['err'][1]}")]
    look = LOOK
    kind = form.split(":")[0]
    if kind in ("grad", "inplace_grad"):  # a gradient's layout is the engine's business, and it is never bit for bit
        look, flags = ("dtype", "shape"), [f for f in flags if f not in ("exact", "uninit", "ulp4")]
    elif kind in ("inplace", "out"):
        look = ("dtype", "shape", "strides", "alias")
    out = [(f"{form}:{k}", d) for k, d in compare_value(a["ok"], b["ok"], flags, "", look, ref and ref.get("ok"))]
    if a.get("modified") != b.get("modified"):
        out.append(
            (f"{form}:modified", f"inputs changed by the call: expected {a.get('modified')} got {b.get('modified')}")
        )
    return out


def compare(record, expected, got, reference=None):
    """reference: the forms' outcomes in double precision, where they were asked for."""
    if "setup" in got:
        return [("setup", f"{got['setup']['err'][0]}: {got['setup']['err'][1]}")]
    out = []
    for form in record["forms"]:
        want = expected[form]
        if "like" in want:
            want = expected[want["like"]]
        failures = compare_form(form, want, got[form], record["flags"], (reference or {}).get(form))
        if failures and form.startswith("out:") and as_called(expected["call"], got[form], record["flags"]):
            failures = [(k, d + "; equal to PyTorch's call without out=") for k, d in failures]
        out += failures
    return out


def as_called(call, got, flags):
    """Whether what was written into out= is what PyTorch's call without out= returns."""
    if "ok" not in call or "ok" not in got:
        return False
    pairs = list(zip(leaves(call["ok"]), leaves(got["ok"])))
    return bool(pairs) and not any(compare_tensor(a, b, flags, "", ("dtype", "shape")) for a, b in pairs)


def notes(record, expected, got):
    """What is counted but fails nothing: [(name, alike?)]: opening words of messages, names of gradient nodes."""
    out = []
    a, b = expected.get("call"), got.get("call")
    if not a or not b:
        return out
    if "err" in a and "err" in b:
        out.append(("message", a["err"][1][:24] == b["err"][1][:24]))
    if "ok" in a and "ok" in b:
        for x, y in zip(leaves(a["ok"]), leaves(b["ok"])):
            if x["node"]:
                out.append(("node", x["node"] == y["node"]))
    return out


def leaves(e):
    if e[0] == "out":
        return [e[1]]
    return [t for x in e[1] for t in leaves(x)] if e[0] in ("list", "tuple") else []

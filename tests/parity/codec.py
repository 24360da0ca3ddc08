"""Values as plain Python, for any module with PyTorch's names: how a sample travels from the oracle to Ember.

An encoded value is a tuple whose first item says what it is:
  ("py", v)  None, bool, int, float, complex, str        ("list", [..]) ("tuple", [..], field names) ("size", [..])
  ("dtype", name) ("layout", name) ("memory_format", name) ("device", name) ("slice", a, b, c) ("ellipsis",)
  ("dict", [(k, v), ..])
  ("in", storage, dtype, shape, strides, offset, requires_grad)          a tensor that goes in: a window over a storage
  ("out", {dtype, shape, strides, data, requires_grad, alias, same, node})  a tensor that came out, elements in C order
Storages are bytes; bfloat16 travels as its 16 bits. Nothing here imports torch or ember.
"""

import types

import numpy as np

NUMPY = {
    "bool": "?",
    "uint8": "u1",
    "int8": "i1",
    "int16": "i2",
    "int32": "i4",
    "int64": "i8",
    "float16": "f2",
    "float32": "f4",
    "float64": "f8",
    "complex64": "c8",
    "complex128": "c16",
    "bfloat16": "u2",
}
SHORT = {"f32": "float32", "f64": "float64", "i64": "int64", "bool": "bool", "bf16": "bfloat16", "c64": "complex64"}


class Unsupported(Exception):
    """The value cannot travel (a function, a generator, a tensor of another device or layout)."""


def dtype_name(d):
    return str(d).rsplit(".", 1)[-1]


def array(dtype, data):
    """Elements in C order as a flat numpy array; bfloat16 widened to float32 (exact)."""
    a = np.frombuffer(data, NUMPY[dtype])
    return (a.astype(np.uint32) << 16).view(np.float32) if dtype == "bfloat16" else a


def contiguous_strides(shape):
    out, n = [], 1
    for s in reversed(shape):
        out.append(n)
        n *= max(s, 1)
    return tuple(reversed(out))


# ---- in: from plain Python to a module's tensors
def from_bytes(T, dtype, data, shape):
    """A fresh tensor of the module with these elements; from_numpy, and for bfloat16 a view of int16."""
    if dtype == "bfloat16":
        return T.from_numpy(np.frombuffer(data, np.int16).copy().reshape(shape)).view(T.bfloat16)
    return T.from_numpy(np.frombuffer(data, NUMPY[dtype]).copy().reshape(shape))


class Inputs:
    """The tensors of one call, rebuilt with their exact layout; tensors that shared a storage share it again."""

    def __init__(self, T, storages, grad):
        self.T, self.storages, self.grad = T, storages, grad
        self.roots, self.tensors = {}, []

    def tensor(self, e):
        _, s, dtype, shape, strides, offset, requires_grad = e
        T, data = self.T, self.storages[s]
        n = int(np.prod(shape, dtype=np.int64))
        plain = offset == 0 and tuple(strides) == contiguous_strides(shape)
        if plain and n * np.dtype(NUMPY[dtype]).itemsize == len(data) and s not in self.roots:
            t = from_bytes(T, dtype, data, shape)
            self.roots[s] = t
        else:
            if s not in self.roots:
                self.roots[s] = from_bytes(T, dtype, data, (len(data) // np.dtype(NUMPY[dtype]).itemsize,))
            t = self.roots[s].detach().as_strided(shape, strides, offset).detach()
        if requires_grad and self.grad:
            t.requires_grad_()
        self.tensors.append((t, requires_grad))
        return t

    def value(self, e):
        kind, T = e[0], self.T
        if kind == "in":
            return self.tensor(e)
        if kind == "py":
            return e[1]
        if kind in ("list", "tuple", "size"):
            v = [self.value(x) for x in e[1]]
            return v if kind == "list" else T.Size(v) if kind == "size" else tuple(v)
        if kind == "dict":
            return {k: self.value(v) for k, v in e[1]}
        if kind == "slice":
            return slice(*(self.value(x) for x in e[1:]))
        if kind == "ellipsis":
            return Ellipsis
        if kind == "device":
            return T.device(e[1])
        return getattr(T, e[1])  # dtype, layout, memory_format

    def modified(self):
        """Storages whose bytes are no longer what was put in."""
        return sorted(s for s, r in self.roots.items() if elements(self.T, r) != self.storages[s])

    def spans(self):
        out = []
        for s, r in self.roots.items():
            if len(self.storages[s]):
                out.append((s, r.data_ptr(), len(self.storages[s])))
        return out


# ---- out: from a module's tensors to plain Python
def elements(T, t):
    """A tensor's elements as bytes, in C order."""
    t = t.detach()
    for flag, fix in (("is_conj", "resolve_conj"), ("is_neg", "resolve_neg")):
        if hasattr(t, flag) and getattr(t, flag)():
            t = getattr(t, fix)()
    if dtype_name(t.dtype) == "bfloat16":
        t = t.view(T.int16)
    return np.ascontiguousarray(t.numpy()).tobytes()


def describe_tensor(T, t, spans=(), inputs=()):
    alias = None
    if t.numel() and spans:
        p = t.data_ptr()
        alias = next(((s, p - a) for s, a, n in spans if a <= p < a + n), None)
    node = getattr(t, "grad_fn", None)
    return (
        "out",
        {
            "dtype": dtype_name(t.dtype),
            "shape": tuple(t.shape),
            "strides": tuple(t.stride()),
            "data": elements(T, t),
            "requires_grad": bool(t.requires_grad),
            "alias": alias,
            "same": next((i for i, x in enumerate(inputs) if x is t), None),
            "node": type(node).__name__ if node is not None else None,
        },
    )


def fields(t):
    if hasattr(t, "_fields"):
        return list(t._fields)
    return [k for k, v in vars(type(t)).items() if isinstance(v, types.MemberDescriptorType) and not k.startswith("_")]


def describe(T, v, spans=(), inputs=()):
    if isinstance(v, T.Tensor):
        return describe_tensor(T, v, spans, inputs)
    if v is None or isinstance(v, (bool, int, float, complex, str)):
        return ("py", v)
    if isinstance(v, T.Size):
        return ("size", [("py", int(x)) for x in v])
    if isinstance(v, list):
        return ("list", [describe(T, x, spans, inputs) for x in v])
    if isinstance(v, tuple):
        return ("tuple", [describe(T, x, spans, inputs) for x in v], fields(v))
    if isinstance(v, T.dtype):
        return ("dtype", dtype_name(v))
    if isinstance(v, np.ndarray):
        return ("tuple", [("py", str(v.dtype)), ("py", repr(v.shape)), ("py", repr(v.tolist()))], [])
    return ("py", f"<{type(v).__name__}>")


def tensors_in(T, v):
    if isinstance(v, T.Tensor):
        return [v]
    if isinstance(v, (list, tuple)):
        return [t for x in v for t in tensors_in(T, x)]
    return []


# ---- in, on the oracle's side: real torch values to plain Python
class Encoder:
    """Encodes the arguments of one sample; needs real torch (it reads storages)."""

    def __init__(self, torch):
        self.torch, self.storages, self.seen = torch, [], {}

    def tensor(self, t):
        torch = self.torch
        if t.layout is not torch.strided or t.device.type != "cpu" or dtype_name(t.dtype) not in NUMPY:
            raise Unsupported("not a plain CPU tensor")
        d = t.detach().resolve_conj().resolve_neg()
        st = d.untyped_storage()
        if st.nbytes() > 1 << 22:
            raise Unsupported("larger than 4 MB")
        key = (st.data_ptr(), st.nbytes()) if st.nbytes() else ("empty", len(self.storages))
        if key not in self.seen:
            self.seen[key] = len(self.storages)
            flat = torch.empty(0, dtype=torch.uint8).set_(st)
            n = flat.numel() // d.element_size() * d.element_size()
            self.storages.append(flat.numpy().tobytes()[:n])
        return (
            "in",
            self.seen[key],
            dtype_name(d.dtype),
            tuple(d.shape),
            tuple(d.stride()),
            d.storage_offset(),
            bool(t.requires_grad),
        )

    def value(self, v):
        torch = self.torch
        if isinstance(v, torch.Tensor):
            return self.tensor(v)
        if v is None or type(v) in (bool, int, float, complex, str):
            return ("py", v)
        if isinstance(v, torch.Size):
            return ("size", [("py", int(x)) for x in v])
        if isinstance(v, list):
            return ("list", [self.value(x) for x in v])
        if isinstance(v, tuple):
            return ("tuple", [self.value(x) for x in v], [])
        if isinstance(v, dict):
            return ("dict", [(k, self.value(x)) for k, x in v.items()])
        if isinstance(v, slice):
            return ("slice", self.value(v.start), self.value(v.stop), self.value(v.step))
        if v is Ellipsis:
            return ("ellipsis",)
        if isinstance(v, torch.device) and v.type == "cpu":
            return ("device", "cpu")
        for kind in ("dtype", "layout", "memory_format"):
            if isinstance(v, getattr(torch, kind)):
                return (kind, dtype_name(v))
        if isinstance(v, np.generic):
            return self.value(v.item())
        raise Unsupported(f"a {type(v).__name__}")


# ---- a line of Python that makes the value again
def show(e):
    kind = e[0]
    if kind == "py":
        v = e[1]
        return f"float('{v}')" if isinstance(v, float) and (v != v or v in (float("inf"), float("-inf"))) else repr(v)
    if kind in ("list", "tuple", "size"):
        inner = ", ".join(show(x) for x in e[1])
        return f"[{inner}]" if kind == "list" else f"({inner}{',' if len(e[1]) == 1 else ''})"
    if kind == "dict":
        return "{" + ", ".join(f"{k!r}: {show(v)}" for k, v in e[1]) + "}"
    if kind == "slice":
        return "slice(" + ", ".join(show(x) for x in e[1:]) + ")"
    if kind == "ellipsis":
        return "..."
    if kind == "device":
        return f"T.device({e[1]!r})"
    return f"T.{e[1]}"


def show_input(e, storages):
    """A tensor that goes in, as an expression over module T."""
    _, s, dtype, shape, strides, offset, requires_grad = e
    flat = array(dtype, storages[s])
    text = (
        np.array2string(flat, threshold=64, separator=", ", max_line_width=10**6, floatmode="unique")
        .replace("nan", "float('nan')")
        .replace("inf", "float('inf')")
    )
    if len(flat) > 64:
        text = f"[...{len(flat)} elements...]"
    out = f"T.tensor({text}, dtype=T.{dtype}).as_strided({tuple(shape)}, {tuple(strides)}, {offset})"
    return out + ".requires_grad_()" if requires_grad else out


def show_args(e, storages):
    if e[0] == "in":
        return show_input(e, storages)
    if e[0] in ("list", "tuple"):
        inner = ", ".join(show_args(x, storages) for x in e[1])
        return f"[{inner}]" if e[0] == "list" else f"({inner}{',' if len(e[1]) == 1 else ''})"
    return show(e)

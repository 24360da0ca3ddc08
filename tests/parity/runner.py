"""Runs one sample in a module and says what happened: the same code for the oracle and for Ember.

observe(T, record) returns {form: outcome}. A form is a way to call the operator:
  call                the function itself               grad        first gradient of call for recorded cotangents
  method:N operator:N alias:P    other spellings         inplace:N   x.N(...), x afterwards
  inplace_grad:N      gradient through x.clone().N(...)  out:KIND    out= given as same, empty, strided, dtype, grad
An outcome is {"ok": encoded value, ...} or {"err": (class name, first line of the message)}.
"""

import warnings
import zlib

import numpy as np

import codec
from calls import resolve

warnings.filterwarnings("ignore")


def error(e):
    return {"err": (type(e).__name__, (str(e).strip().split("\n") or [""])[0][:300])}


def attempt(fn):
    """fn's outcome; only the module's own exceptions become results, never an interrupt."""
    try:
        return fn()
    except Exception as e:  # any class may be the right answer: the comparer judges it
        return error(e)


class Sample:
    def __init__(self, T, record):
        self.T, self.record = T, record

    def build(self, grad=False):
        inputs = codec.Inputs(self.T, self.record["storages"], grad)
        args = [inputs.value(a) for a in self.record["args"]]
        kwargs = {k: inputs.value(v) for k, v in self.record["kwargs"]}
        return inputs, args, kwargs

    def seed(self):
        if "seed" in self.record["flags"]:
            self.T.manual_seed(self.record["seed"])

    def result(self, r, inputs):
        spans = inputs.spans()
        return {"ok": codec.describe(self.T, r, spans, [t for t, _ in inputs.tensors]), "modified": inputs.modified()}

    def call(self, path, grad=True):
        fn = resolve(self.T, path)
        inputs, args, kwargs = self.build(grad)
        self.seed()
        return self.result(fn(*args, **kwargs), inputs)

    def cotangents(self, outs, key):
        """Recorded cotangents, made now when the oracle runs (the record has none yet)."""
        made = self.record.setdefault("cotangents", {})
        if key not in made:
            rng = np.random.RandomState(zlib.crc32(repr((self.record["op"], self.record["i"], key)).encode()))
            made[key] = [
                (codec.dtype_name(o.dtype), tuple(o.shape), draw(rng, codec.dtype_name(o.dtype), o.shape))
                for o in outs
            ]
        return [codec.from_bytes(self.T, d, b, s) for d, s, b in made[key]]

    def gradient(self, r, inputs, key):
        outs = [t for t in codec.tensors_in(self.T, r) if t.requires_grad]
        ins = [t for t, g in inputs.tensors if g]
        got = self.T.autograd.grad(outs, ins, self.cotangents(outs, key), allow_unused=True)
        return {"ok": codec.describe(self.T, list(got))}

    def grad(self):
        inputs, args, kwargs = self.build(True)
        self.seed()
        return self.gradient(resolve(self.T, self.record["call"])(*args, **kwargs), inputs, "grad")

    def inplace(self, name):
        inputs, args, kwargs = self.build()
        self.seed()
        r = getattr(args[0], name)(*args[1:], **kwargs)
        return {"ok": codec.describe(self.T, [r is args[0], args[0]], inputs.spans())}

    def inplace_grad(self, name):
        inputs, args, kwargs = self.build(True)
        y = args[0].clone()
        self.seed()
        getattr(y, name)(*args[1:], **kwargs)
        return self.gradient(y, inputs, "inplace")

    def out(self, kind):
        inputs, args, kwargs = self.build(kind == "grad")
        outs = [self.out_tensor(kind, *m) for m in self.record["out_meta"]]
        given = outs[0] if not self.record["out_tuple"] else tuple(outs)
        self.seed()
        resolve(self.T, self.record["call"])(*args, **kwargs, out=given)
        return {"ok": codec.describe(self.T, outs)}

    def out_tensor(self, kind, dtype, shape, strides):
        T = self.T
        if kind == "empty":
            shape = strides = (0,)
            strides = (1,)
        elif kind == "strided":  # twice as far apart, so never contiguous
            strides = tuple(2 * s for s in strides)
        elif kind == "dtype":
            dtype = "bool" if dtype != "bool" else "int64"
        span = 1 + sum((n - 1) * s for n, s in zip(shape, strides)) if 0 not in shape else 0
        size = np.dtype(codec.NUMPY[dtype]).itemsize
        t = codec.from_bytes(T, dtype, bytes(span * size), (span,))
        return t if tuple(shape) == (span,) and tuple(strides) == (1,) else t.as_strided(shape, strides, 0)

    def code(self):
        """Own samples are programs over T; what they leave in r is compared, and how it lies over x."""
        names = {"T": self.T, "np": np, "mk": make}
        exec(compile(self.record["code"], "<sample>", "exec"), names)
        x = names.get("x")
        spans = ()
        if isinstance(x, self.T.Tensor) and x.numel():
            spans = [(0, x.data_ptr(), x.numel() * x.element_size())]
        return {"ok": codec.describe(self.T, names["r"], spans)}

    def run(self, form):
        kind, _, name = form.partition(":")
        if kind == "call":
            return self.code() if "code" in self.record else self.call(self.record["call"])
        if kind in ("grad",):
            return self.grad()
        if kind == "inplace":
            return self.inplace(name)
        if kind == "inplace_grad":
            return self.inplace_grad(name)
        if kind == "out":
            return self.out(name)
        path = {"method": "Tensor.", "operator": "operator.", "alias": ""}[kind] + name
        return self.call(path)


def make(T, dtype, kind, n=3):
    """An operand of the promotion table: a tensor, a 0-dim tensor, or a Python number (kind "number")."""
    values = {"bool": [True, False, True], "uint8": [1, 2, 3]}.get(dtype, [-1, 2, 3])
    if kind == "number":
        return {"bool": True, "int64": 2, "float64": 1.5, "complex128": 1 + 2j}[dtype]
    t = T.tensor(values, dtype=getattr(T, dtype))
    return t[1] if kind == "0-dim" else t


def draw(rng, dtype, shape):
    a = rng.uniform(-1, 1, tuple(shape))
    if dtype.startswith("complex"):
        a = a + 1j * rng.uniform(-1, 1, tuple(shape))
    if dtype == "bfloat16":
        return (np.asarray(a, np.float32).view(np.uint32) >> 16).astype(np.uint16).tobytes()
    return np.asarray(a).astype(codec.NUMPY[dtype]).tobytes()


def observe(T, record, forms=None):
    """Every form's outcome; a sample whose inputs cannot be made fails as "setup"."""
    s = Sample(T, record)
    out = {}
    if "code" not in record:
        built = attempt(lambda: s.build() and None)
        if built:
            return {"setup": built}
    for form in forms or record["forms"]:
        out[form] = attempt(lambda: s.run(form))
    return out

"""How tensors print."""

import os
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from golden_util import Cases

cases = Cases(__file__)

NAN, INF = float("nan"), float("inf")


def options(T, tensors, **kwargs):
    """The tensors' reprs under some print options."""
    T.set_printoptions(**kwargs)
    try:
        return [repr(t) for t in tensors]
    finally:
        T.set_printoptions(profile="default")


@cases.add()
def numbers(T):
    values = [[1.0, 2.0], [1.5, -2.25], [1e-5, 1.0], [1e9, 1.0], [12345678.0, 0.5], [1e-3, 999.0], [1e-3, 1001.0],
              [0.0, -0.0], [NAN, 1.0, INF], [-INF, 2.5], [NAN], [1e-45], [3e38, 1.0], [1.0, 1e8], [2.0, 100000001.0],
              [0.1, 0.25, 100.125]]
    return [repr(T.tensor(v)) for v in values] + [repr(T.tensor(v, dtype=T.float64)) for v in values]


@cases.add()
def scalars(T):
    values = [1.0, -0.0, 0.1, 1e-7, 1e10, NAN, INF, -INF, 3, -7, True, False, 2.5e-4, 1234.5678]
    return [repr(T.tensor(v)) for v in values] + [str(T.tensor(1.5)), f"{T.tensor(1.5)}", f"{T.tensor(2.0):.3f}"]


@cases.add()
def dtypes(T):
    out = []
    for name in ("float16", "bfloat16", "float32", "float64", "int8", "int16", "int32", "int64", "uint8", "bool"):
        dtype = getattr(T, name)
        out.append([repr(T.tensor([[0, 1, 2], [3, 4, 100]]).to(dtype)), repr(T.tensor(3).to(dtype)),
                    repr(T.empty(0, dtype=dtype)), repr(T.empty(2, 0, dtype=dtype))])
    return out


@cases.add()
def complex_numbers(T):
    values = [[1 + 2j, -1.5 - 0.25j], [1e-5 + 1e5j, 0j], [complex(NAN, 1), complex(1, -INF)], [1 + 1j]]
    return [repr(T.tensor(v)) for v in values] + [repr(T.tensor(2 - 3j)),
                                                  repr(T.tensor([1j], dtype=T.complex128))]


@cases.add()
def shapes(T):
    def grid(*shape):
        n = 1
        for s in shape:
            n *= s
        return T.arange(float(n)).reshape(shape)

    made = [grid(1), grid(30), grid(2, 3), grid(2, 2, 2), grid(1, 1, 1, 1), grid(2, 1, 2, 3), grid(1001), grid(40, 40),
            grid(1002, 1), grid(7, 200), grid(11, 10, 10), grid(2, 3).t(), grid(3, 1).expand(3, 2),
            grid(3)[::2], T.arange(1500), T.arange(6).reshape(2, 3) * 1000, T.empty(0), T.empty(0, 3), T.empty(2, 0)]
    return [repr(t) for t in made]


@cases.add()
def printing_options(T):
    ts = [T.linspace(-1, 1, 9).reshape(3, 3), T.linspace(0, 1e6, 20), T.arange(12), T.tensor(0.123456789),
          T.tensor([1 + 2j, 3.25 - 1j]), T.tensor([1.0, 2.0]), T.linspace(0, 1, 64).reshape(4, 4, 4)]
    return [options(T, ts, **o) for o in ({"precision": 2}, {"precision": 8}, {"sci_mode": True}, {"sci_mode": False},
                                          {"linewidth": 30}, {"threshold": 5}, {"threshold": 5, "edgeitems": 1},
                                          {"profile": "short"}, {"profile": "full"},
                                          {"threshold": 0, "edgeitems": 0}, {"profile": "full", "precision": 1})]


@cases.add()
def gradients(T):
    x = T.ones(2, requires_grad=True)
    long = T.ones(11, requires_grad=True)
    parameter = T.nn.Parameter(T.ones(2, 2))
    return [repr(x), repr(x + 1), repr((x * 2).sum()), repr(x.detach()), repr(long), repr(long * 1.5),
            repr(parameter), repr(parameter.double()), repr(T.nn.Parameter(T.ones(1), requires_grad=False)),
            repr(x.view(1, 2)), repr(T.mm(parameter, parameter)), repr(x.double())]


@cases.add()
def devices(T):
    return [repr(T.empty(2, 3, device="meta")), repr(T.empty(2, device="meta", dtype=T.int32)),
            repr(T.empty(2, device="meta", requires_grad=True)), repr(T.empty((), device="meta"))]


@cases.add()
def subclasses(T):
    class Tagged(T.Tensor):
        pass

    t = T.ones(2).as_subclass(Tagged)
    return [repr(t), repr(t.reshape(1, 2) + 1), repr(T.ones(25).as_subclass(Tagged))]


@cases.add()
def default_dtype(T):
    T.set_default_dtype(T.float64)
    try:
        return [repr(T.ones(2)), repr(T.ones(2, dtype=T.float32)), repr(T.tensor([1j])),
                repr(T.tensor([1j], dtype=T.complex64)), repr(T.empty(0))]
    finally:
        T.set_default_dtype(T.float32)


test_golden = cases.test()

if __name__ == "__main__":
    cases.write()

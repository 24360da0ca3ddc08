"""Sample makers: what goes into an operator, for every dtype from the same few lines.

Values are small multiples of 1/32, which every floating dtype holds exactly, so that a reference computed in double
precision sees the same inputs; they are distinct, so that maxima have no ties, and no multiples of 1/4, where functions
have their kinks and steps.
"""
import zlib

import numpy as np
from subject import Arg, kind


class Maker:
    """`m(2, 3)` is a tensor argument of that shape in the dtype under test; the same numbers in every run."""

    def __init__(self, name, dtype):
        self.random = np.random.RandomState(zlib.crc32(name.encode()))
        self.dtype, self.kind = dtype, kind(dtype)

    def reals(self, shape, low, high):
        choices = np.arange(int(np.ceil(low * 32)), int(high * 32) + 1) / 32.0
        choices = choices[choices % 0.25 != 0]
        n = int(np.prod(shape))
        picked = self.random.choice(choices, n, replace=n > len(choices))
        return picked.reshape(shape)

    def __call__(self, *shape, low=-3.0, high=3.0, diff=True):
        if self.kind == "bool":
            return Arg(self.random.randint(0, 2, shape).astype(np.bool_), diff=diff)
        if self.kind == "int":
            least = max(low, 0 if self.dtype == "uint8" else low)
            values = self.random.randint(int(np.floor(least * 3)), int(high * 3) + 1, shape)
            return Arg(np.where(values == 0, 1, values) if low != 0 else values, diff=diff)
        if self.kind == "complex":
            return Arg(self.reals(shape, low, high) + 1j * self.reals(shape, -2, 2), diff=diff)
        return Arg(self.reals(shape, low, high), diff=diff)

    def positive(self, *shape, low=0.25, high=3.0, diff=True):
        return self(*shape, low=low if self.kind not in ("int", "bool") else 0.34, high=high, diff=diff)

    def index(self, *shape, high, low=0, dtype="int64"):
        return Arg(self.random.randint(low, high, shape), dtype)

    def mask(self, *shape):
        return Arg(self.random.randint(0, 2, shape).astype(np.bool_), "bool")

    def number(self, value=2, real=0.5):
        """A Python number that the dtype's arithmetic takes without promotion."""
        return {"bool": True, "int": value, "float": real, "complex": real + 0.25j}[self.kind]


# ---- shapes that most operators of a kind are tried on. Each yields (args, kwargs).

def unary(m):
    yield (m(3, 4),), {}
    yield (m(),), {}
    yield (m(2, 0),), {}


def unary_positive(m):
    yield (m.positive(3, 4),), {}
    yield (m.positive(),), {}


def unary_unit(m):
    yield (m(3, 4, low=-0.9, high=0.9),), {}


def binary(m):
    yield (m(3, 4), m(3, 4)), {}
    yield (m(3, 1), m(4)), {}
    yield (m(2, 3), m()), {}
    yield (m(0, 3), m(3)), {}


def binary_alpha(m):
    yield from binary(m)
    if m.kind != "bool":
        yield (m(3, 4), m(1, 4)), {"alpha": m.number(3)}


def binary_nonzero(m):
    yield (m(3, 4), m.positive(3, 4)), {}
    yield (m(3, 1), m.positive(4)), {}
    yield (m(2, 3), m.positive()), {}


def with_number(m):
    yield (m(3, 4), m.number()), {}
    yield (m(), m.number()), {}


def with_number_alpha(m):
    yield from with_number(m)
    if m.kind != "bool":
        yield (m(3, 4), m.number(), m.number(3, 0.25)), {}


def ternary(m):
    yield (m(3, 4), m(3, 4), m.positive(3, 4)), {}
    yield (m(3, 4), m(4), m.positive(3, 1)), {}
    if m.kind != "bool":
        yield (m(3, 4), m(3, 4), m.positive(4)), {"value": m.number(3)}


def compare(m):
    a = m(3, 4)
    yield (a, Arg(np.where(m.random.rand(3, 4) < 0.5, a.values, m(3, 4).values))), {}
    yield (m(3, 1), m(4)), {}


def whole(m):
    yield (m(3, 4),), {}
    yield (m(),), {}
    yield (m(2, 3, 5),), {}


def over_dim(m):
    for dim, keep in ((0, False), (1, True), (-1, False)):
        yield (m(2, 3, 4), dim, keep), {}
    yield (m(), 0), {}


def over_dims(m):
    for dim, keep in (([0], False), ([1, 2], True), ([-1, 0], False)):
        yield (m(2, 3, 4), dim, keep), {}
    yield (m(), [0]), {}


def over_dims_or_all(m):
    yield from over_dims(m)
    yield (m(3, 4), None), {}


def corrected(m):
    yield (m(2, 3, 4), [1]), {"correction": 1}
    yield (m(3, 4), None), {"correction": 0}
    yield (m(3, 4), [0, 1]), {"keepdim": True}
    yield (m(4, 5),), {}


def activations(*numbers):
    def samples(m):
        yield (m(3, 4), *numbers), {}
        yield (m(), *numbers), {}
    return samples


def gradient_of(*numbers, unit=False):
    """grad_output and a second tensor, then numbers."""
    def samples(m):
        second = m(3, 4, low=-0.9, high=0.9) if unit else m(3, 4)
        yield (m(3, 4), second, *numbers), {}
    return samples


def calls(*rows):
    """rows: functions of the maker that return args, or (args, kwargs) with kwargs a dict."""
    def samples(m):
        for row in rows:
            made = row(m)
            yield made if len(made) == 2 and isinstance(made[1], dict) and isinstance(made[0], tuple) else (made, {})
    return samples

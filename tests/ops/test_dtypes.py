"""Which dtype comes out of two: PyTorch's promotion, for all pairs, with 0-dim tensors and Python numbers."""
import pytest
from oracle_data import LETTERS, PROMOTION
from subject import DTYPES, dtype_of, name_of, torch

NUMBERS = [True, 1, 1.5, 1j]
MAKE = {"tensor with tensor": (lambda d: torch.ones(2, dtype=d), lambda d: torch.ones(2, dtype=d)),
        "tensor with 0-dim tensor": (lambda d: torch.ones(2, dtype=d), lambda d: torch.ones((), dtype=d))}
PAIRS = [(title, a, b) for title in MAKE for a in DTYPES for b in DTYPES]
WITH_NUMBERS = [(title, a, n) for title in ("tensor with number", "0-dim tensor with number") for a in DTYPES
                for n in range(len(NUMBERS))]


def answer(title, row, column):
    return LETTERS.get(PROMOTION[title][DTYPES.index(row)][column])  # None: a dtype that Ember has not (complex32)


@pytest.mark.parametrize("title, a, b", PAIRS)
def test_pairs(title, a, b):
    want = answer(title, a, DTYPES.index(b))
    x, y = MAKE[title][0](dtype_of(a)), MAKE[title][1](dtype_of(b))
    if want is None:
        return
    assert name_of(torch.result_type(x, y)) == want and name_of(torch.result_type(y, x)) == want
    assert name_of((x + y).dtype) == want and name_of((y * x).dtype) == want
    if title == "tensor with tensor":
        assert name_of(torch.promote_types(dtype_of(a), dtype_of(b))) == want
    assert name_of(torch.where(torch.tensor([True, False]), x, y).dtype) == want
    assert (x == y).dtype == torch.bool


@pytest.mark.parametrize("title, a, number", WITH_NUMBERS)
def test_numbers(title, a, number):
    want, number = answer(title, a, number), NUMBERS[number]
    x = torch.ones(2 if title == "tensor with number" else (), dtype=dtype_of(a))
    if want is None:
        return
    assert name_of(torch.result_type(x, number)) == want
    assert name_of((x + number).dtype) == want and name_of((number * x).dtype) == want


@pytest.mark.parametrize("a", DTYPES)
@pytest.mark.parametrize("b", DTYPES)
def test_can_cast_follows_categories(a, b):
    order = {"bool": 0, "uint8": 1, "int8": 1, "int16": 1, "int32": 1, "int64": 1, "complex64": 3, "complex128": 3}
    want = order.get(a, 2) <= order.get(b, 2)
    assert torch.can_cast(dtype_of(a), dtype_of(b)) == want
    target = torch.ones(2, dtype=dtype_of(b))
    if want:
        assert target.add_(torch.ones(2, dtype=dtype_of(a))).dtype == dtype_of(b)
    else:
        with pytest.raises(RuntimeError, match="result type .* can't be cast to the desired output type"):
            target.add_(torch.ones(2, dtype=dtype_of(a)))
        assert target.tolist() == [1, 1]


def test_numbers_are_not_rounded_before_computing():
    x = torch.tensor([1.0], dtype=torch.float32)
    assert (x * 16777217).item() == 16777216.0  # computed in float32, whose neighbour this is
    assert (torch.tensor([2 ** 53], dtype=torch.int64) + 1).item() == 2 ** 53 + 1
    assert (torch.tensor([1.0], dtype=torch.float64) * 0.1).item() == 0.1
    assert (torch.tensor([True]) + 1).tolist() == [2]


def test_int_tensors_become_the_default_dtype():
    x = torch.tensor([1, 2])
    assert (x / 2).dtype == torch.float32 and x.exp().dtype == torch.float32 and (x * 1.5).dtype == torch.float32
    before = torch.get_default_dtype()
    torch.set_default_dtype(torch.float64)
    try:
        assert (x / 2).dtype == torch.float64 and x.exp().dtype == torch.float64 and (x * 1.5).dtype == torch.float64
        assert torch.ones(2).dtype == torch.float64 and torch.tensor(1.5).dtype == torch.float64
    finally:
        torch.set_default_dtype(before)


@pytest.mark.parametrize("source", DTYPES)
@pytest.mark.parametrize("target", DTYPES)
def test_conversion(source, target):
    values = [0, 1, 3, 100]
    x = torch.tensor(values).to(dtype_of(source))
    held = [bool(v) for v in values] if source == "bool" else values
    want = [bool(v) for v in held] if target == "bool" else held
    assert x.to(dtype_of(target)).tolist() == want
    assert torch.zeros(4, dtype=dtype_of(target)).copy_(x).tolist() == want

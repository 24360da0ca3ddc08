"""Values, dtypes and shapes of every operator in every dtype, against plain numpy in double precision."""
import numpy as np
import pytest
from sampling import arrays, cases, samples, tensors
from subject import FLOATS, check_close, flat, name_of, numpy_of, operator, torch
from table import TABLE


@pytest.mark.parametrize("name, dtype", cases())
def test_value(name, dtype):
    entry, call = TABLE[name], operator(name)
    for number, sample in enumerate(samples(name, dtype)):
        args, kwargs = tensors(sample, dtype)
        results = flat(call(*args, **kwargs))
        ref_args, ref_kwargs = arrays(sample)
        with np.errstate(all="ignore"):
            wanted = flat(entry.ref(*ref_args, **ref_kwargs))
        what = f"{name} {dtype} sample {number}"
        assert len(results) == len(wanted), what
        expected = entry.results(dtype, len(wanted))
        if entry.random is not None:
            for got, want, result_dtype in zip(results, wanted, expected):
                assert name_of(got.dtype) == result_dtype and tuple(got.shape) == np.shape(want), what
            entry.random([numpy_of(got) for got in results], *sample)
            continue
        for got, want, result_dtype in zip(results, wanted, expected):
            if not isinstance(got, torch.Tensor):
                assert got == want, what
                continue
            check_close(got, want, result_dtype, what, entry.scale)


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("name, want", [
    ("maximum", [np.nan, np.nan, np.inf, 0.0]), ("fmax", [1.0, 2.0, np.inf, 0.0]),
    ("minimum", [np.nan, np.nan, 1.0, 0.0]), ("fmin", [1.0, 2.0, 1.0, 0.0])])
def test_nan_in_extremes(name, want, dtype):
    if operator(name) is None:
        pytest.skip(f"{name} is not in this build")
    a = torch.tensor([1.0, float("nan"), float("inf"), 0.0], dtype=getattr(torch, dtype))
    b = torch.tensor([float("nan"), 2.0, 1.0, 0.0], dtype=getattr(torch, dtype))
    assert np.array_equal(numpy_of(operator(name)(a, b)), np.array(want), equal_nan=True)


def test_nan_wins_reductions():
    x = torch.tensor([[1.0, float("nan"), 3.0], [4.0, 5.0, 6.0]])
    assert torch.isnan(x.amax(1)).tolist() == [True, False]
    values, indices = x.max(1)
    assert indices.tolist() == [1, 2] and torch.isnan(values).tolist() == [True, False]
    assert x.argmin(1).tolist() == [1, 0]
    assert torch.isnan(x.sum()).item() and torch.isnan(x.max()).item()


def test_ties_go_to_the_first():
    x = torch.tensor([[2, 7, 7, 1], [3, 3, 3, 3]])
    assert x.max(1).indices.tolist() == [1, 0]
    assert x.argmax().item() == 1 and x.min(1).indices.tolist() == [3, 0]


@pytest.mark.parametrize("dtype", ["uint8", "int8", "int16", "int32", "int64"])
def test_integers_wrap(dtype):
    info = np.iinfo(dtype)
    top = torch.tensor([info.max], dtype=getattr(torch, dtype))
    assert (top + 1).item() == info.min
    assert (torch.tensor([info.min], dtype=getattr(torch, dtype)) - 1).item() == info.max
    assert (top * 2).item() == int(np.array([info.max * 2], dtype=object).item() % (info.max - info.min + 1)
                                   if info.min == 0 else -2)


def test_empty_reductions():
    empty = torch.ones(0, 3)
    assert empty.sum().item() == 0.0 and empty.sum(0).tolist() == [0.0, 0.0, 0.0] and empty.prod().item() == 1.0
    assert torch.isnan(empty.mean()).item() and torch.isnan(empty.mean(0)).tolist() == [True] * 3
    assert empty.any().item() is False and empty.all().item() is True
    assert empty.amax(1).shape == (0,) and empty.max(1).values.shape == (0,)
    for call in (lambda: empty.amax(0), lambda: empty.max(), lambda: empty.argmax(), lambda: empty.max(0)):
        with pytest.raises((RuntimeError, IndexError)):
            call()


def test_special_values_of_functions():
    inf, nan = float("inf"), float("nan")
    x = torch.tensor([0.0, -0.0, inf, -inf, nan], dtype=torch.float64)
    expected = {"exp": [1, 1, inf, 0, nan], "tanh": [0, -0.0, 1, -1, nan], "sigmoid": [.5, .5, 1, 0, nan],
                "sqrt": [0, -0.0, inf, nan, nan], "log": [-inf, -inf, inf, nan, nan], "erf": [0, -0.0, 1, -1, nan],
                "reciprocal": [inf, -inf, 0, -0.0, nan], "relu": [0, 0, inf, 0, nan], "abs": [0, 0, inf, inf, nan]}
    for name, want in expected.items():
        for dtype in (torch.float64, torch.float32):
            got = numpy_of(getattr(torch, name)(x.to(dtype)))
            assert np.array_equal(got, np.array(want, dtype=float), equal_nan=True), (name, dtype, got)
            signs = [i for i in range(5) if not np.isnan(got[i]) and not (name == "relu" and i == 1)]
            assert [np.signbit(got[i]) for i in signs] == [np.signbit(want[i]) for i in signs], (name, dtype, got)


def test_long_sums_keep_their_digits():
    x = torch.full((1_000_000,), 0.1)
    assert abs(x.sum().item() - 1e6 * np.float64(np.float32(0.1))) < 0.05
    assert abs(torch.full((300_000,), 1.0, dtype=torch.bfloat16).sum().item() - 300_000) <= 1024

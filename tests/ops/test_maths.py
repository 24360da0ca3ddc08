"""Seams of native_maths.yaml, native_special.yaml and native_linalg.yaml: borders, exact steps, errors. Values are PyTorch 2.13's."""
import math

import numpy as np
import pytest
from subject import FLOATS, numpy_of, torch

inf, nan = math.inf, math.nan


@pytest.mark.parametrize("dtype, ulp", [("float16", 2 ** -10), ("bfloat16", 2 ** -7), ("float32", 2 ** -23), ("float64", 2 ** -52)])
def test_nextafter_steps_in_the_operands_own_format(dtype, ulp):
    t = lambda *v: torch.tensor(v, dtype=getattr(torch, dtype))  # noqa: E731
    got = numpy_of(torch.nextafter(t(1.0, 1.0, -1.0, 2.0, 1.0, nan), t(2.0, -2.0, -2.0, 2.0, nan, 1.0)))
    assert np.array_equal(got, [1 + ulp, 1 - ulp / 2, -1 - ulp, 2.0, nan, nan], equal_nan=True)
    tiny = torch.nextafter(t(0.0), t(1.0))
    assert tiny.item() > 0 and (tiny / 2).item() == 0 and torch.nextafter(t(0.0), t(-1.0)).item() == -tiny.item()


def test_borders_of_special_functions():
    t = lambda *v: torch.tensor(v, dtype=torch.float64)  # noqa: E731
    for got, want in ((torch.erfinv(t(1.0, -1.0, 0.0, 1.5)), [inf, -inf, 0, nan]), (torch.digamma(t(0.0, -0.0, -1.0)), [-inf, inf, nan]),
                      (torch.lgamma(t(0.0, -1.0, inf)), [inf, inf, inf]), (torch.special.ndtri(t(0.0, 1.0, 0.5, 2.0)), [-inf, inf, 0, nan]),
                      (torch.special.log_ndtr(t(-inf, inf)), [-inf, 0]), (torch.xlogy(t(0.0, 0.0, 2.0), t(0.0, nan, 0.0)), [0, nan, -inf]),
                      (torch.logaddexp(t(-inf, inf, 1.0), t(-inf, inf, -inf)), [-inf, inf, 1]),
                      (torch.special.zeta(t(1.0, 0.5, 2.0), t(2.0, 2.0, 0.0)), [inf, nan, inf]),
                      (torch.special.bessel_y0(t(0.0, -1.0)), [-inf, nan]), (torch.special.entr(t(0.0, -1.0)), [0, -inf]),
                      (torch.logit(t(0.0, 1.0, 2.0)), [-inf, inf, nan]), (torch.igamma(t(0.0, 1.0, -1.0), t(1.0, 0.0, 1.0)), [1, 0, nan])):
        assert np.array_equal(numpy_of(got), np.array(want, float), equal_nan=True), (got, want)
    huge = torch.tensor([1e300, -1e300], dtype=torch.float64)  # nothing loops for as long as an argument is large
    for f in (torch.i0, torch.digamma, torch.special.erfcx, torch.special.airy_ai, torch.special.modified_bessel_k0):
        f(huge)
    torch.igamma(huge.abs(), huge.abs()), torch.special.zeta(t(3.0, 3.0), huge), torch.special.laguerre_polynomial_l(t(.5, .5), huge)
    torch.special.chebyshev_polynomial_u(t(1 + 1e-15, -3.0), huge.abs())


@pytest.mark.parametrize("dtype, largest", [("float16", 65504.0), ("bfloat16", 3.3895313892515355e38), ("float32", 3.4028234663852886e38)])
def test_nan_to_num_knows_each_dtypes_largest(dtype, largest):
    x = torch.tensor([nan, inf, -inf, 1.0], dtype=getattr(torch, dtype))
    assert torch.nan_to_num(x).tolist() == [0.0, largest, -largest, 1.0]
    assert torch.nan_to_num(x, nan=2.0, posinf=3.0, neginf=4.0).tolist() == [2.0, 3.0, 4.0, 1.0]


def test_shifts_by_too_much():
    x = torch.tensor([1, -1, 5], dtype=torch.int8)
    for by in (8, 70, -1):
        assert (x << by).tolist() == [0, 0, 0] and (x >> by).tolist() == [0, -1, 0]
    assert (torch.tensor([True]) << 1).tolist() == [2]


def test_complex_parts():
    assert torch.complex(torch.tensor([1.0, 2.0]), torch.tensor(3.0)).tolist() == [1 + 3j, 2 + 3j]
    assert torch.angle(torch.tensor([-1.0, nan, -0.0])).tolist()[0] == pytest.approx(math.pi)
    mantissa, exponent = torch.frexp(torch.tensor([1.5, 0.0, -3e-40]))
    assert exponent.tolist() == [1, 0, -131] and exponent.dtype == torch.int32 and mantissa[0].item() == 0.75
    x = torch.ones(2, 3).t()
    assert torch.complex(x, x).stride() == (1, 3)


@pytest.mark.parametrize("dtype", FLOATS)
def test_scans_of_nan_and_infinity(dtype):
    x = torch.tensor([1.0, nan, 2.0, nan], dtype=getattr(torch, dtype))
    values, at = torch.cummax(x, 0)
    assert at.tolist() == [0, 1, 1, 3] and np.isnan(numpy_of(values)[1:]).all()
    assert torch.cummin(torch.tensor([2.0, 2.0, 3.0], dtype=x.dtype), 0).indices.tolist() == [0, 1, 1]
    low = torch.tensor([-inf, -inf, 0.0], dtype=x.dtype)
    assert torch.logcumsumexp(low, 0).tolist() == [-inf, -inf, 0.0]


def test_scans_carry_enough_digits():
    assert torch.full((4096,), 0.1, dtype=torch.bfloat16).cumsum(0)[-1].item() == pytest.approx(410, abs=2)
    x = torch.full((100_000,), 0.1)
    assert x.cumsum(0)[-1].item() == pytest.approx(1e5 * float(x[0]), rel=1e-7)
    assert torch.tensor([100, 100], dtype=torch.int8).cumsum(0).tolist() == [100, 200]
    assert torch.tensor([100, 100], dtype=torch.int8).cumsum_(0).tolist() == [100, -56]


@pytest.mark.parametrize("zeros", [[], [1], [1, 3]])
def test_gradient_of_cumprod_with_zeros(zeros):
    x = torch.tensor([1.5, -2.0, 0.5, 3.0, 1.25], dtype=torch.float64)
    x[zeros] = 0
    x.requires_grad_()
    assert torch.autograd.gradcheck(lambda t: t.cumprod(0), x) and torch.autograd.gradgradcheck(lambda t: t.cumprod(0), x)


def test_median_mode_and_nan():
    x = torch.tensor([[3.0, nan, 1.0], [4.0, 2.0, 9.0]])
    assert math.isnan(x.median().item()) and x.nanmedian().item() == 3.0
    values, at = x.median(1)
    assert math.isnan(values[0].item()) and values[1].item() == 4.0 and at.tolist() == [1, 0]
    assert x.nanmedian(1).values.tolist() == [1.0, 4.0] and math.isnan(torch.empty(0).median().item())
    assert torch.mode(torch.tensor([2, 1, 2, 1, 3])) == (torch.tensor(1), torch.tensor(3))
    big = torch.arange(100_001).flip(0) if hasattr(torch.Tensor, "flip") else torch.arange(100_001)
    assert big.median().item() == 50_000 and big.reshape(1, -1).median(1).values.item() == 50_000


def test_norm_into_given_tensors():
    x = torch.tensor([[3.0, 4.0], [6.0, 8.0]])
    out = torch.empty(2, dtype=torch.float64)
    torch._C._VariableFunctions.norm(x, 2, [1], False, dtype=torch.float64, out=out)
    assert out.tolist() == [5.0, 10.0]


def test_einsum_forms():
    a, b = torch.arange(6.0).reshape(2, 3), torch.arange(12.0).reshape(3, 4)
    assert torch.equal(torch.einsum("ij,jk", a, b), a @ b)
    assert torch.equal(torch.einsum("...j,jk->...k", a, b), a @ b) and torch.equal(torch.einsum(a, [0, 1], b, [1, 2], [0, 2]), a @ b)
    assert torch.einsum("ii", torch.eye(3)).item() == 3 and torch.einsum("ij->", a).item() == 15
    c = torch.ones(5, 2, 3)
    assert torch.equal(torch.einsum("...ij,jk->...ik", c, b), c @ b)
    assert torch.equal(torch.einsum("i...,i...->...", a, a), (a * a).sum(0))


@pytest.mark.parametrize("call, error, words", [
    (lambda: torch.einsum("ij,jk->il", torch.ones(2, 3), torch.ones(3, 4)), RuntimeError, "einsum(): output subscript l does not appear"),
    (lambda: torch.einsum("ij", torch.ones(2)), RuntimeError, "einsum(): the number of subscripts in the equation (2) does not match"),
    (lambda: torch.einsum("i,i", torch.ones(2)), RuntimeError, "einsum(): fewer operands were provided"),
    (lambda: torch.einsum("i", torch.ones(2), torch.ones(2)), RuntimeError, "einsum(): more operands were provided"),
    (lambda: torch.einsum("i,i", torch.ones(2), torch.ones(3)), RuntimeError, "einsum(): subscript i has size 3 for operand 1"),
    (lambda: torch.einsum("i.j", torch.ones(2, 2)), RuntimeError, "einsum(): found '.' for operand 0"),
    (lambda: torch.einsum("i1", torch.ones(2, 2)), RuntimeError, "einsum(): invalid subscript given at index 1"),
    (lambda: torch.einsum("ii->ii", torch.ones(2, 2)), RuntimeError, "einsum(): output subscript i appears more than once"),
    (lambda: torch.polygamma(-1, torch.ones(1)), RuntimeError, "polygamma(n, x) does not support negative n."),
    (lambda: torch.mvlgamma(torch.ones(1), 0), RuntimeError, "p has to be greater than or equal to 1"),
    (lambda: torch.complex(torch.ones(1), torch.ones(1, dtype=torch.float64)), RuntimeError,
     "Expected object of scalar type Float but got"),
    (lambda: torch.frexp(torch.tensor([1])), RuntimeError, "torch.frexp() only supports floating-point dtypes"),
    (lambda: torch.heaviside(torch.ones(1), torch.tensor([1])), RuntimeError,
     "heaviside is not yet implemented for tensors with different"),
    (lambda: torch.ones(1).float_power_(2), RuntimeError, "the base given to float_power_ has dtype Float but the operation's result"),
    (lambda: +torch.tensor([True]), RuntimeError, "The `+` operator, on a bool tensor is not supported."),
    (lambda: torch.ones(2).cumsum(1), IndexError, "Dimension out of range"),
    (lambda: torch.logcumsumexp(torch.tensor([1]), 0), NotImplementedError, '"logcumsumexp_out_cpu" not implemented for'),
    (lambda: torch.diff(torch.ones(3), n=-1), RuntimeError, "order must be non-negative but got -1"),
    (lambda: torch.trapezoid(torch.ones(3, 4), torch.ones(3)), RuntimeError, "trapezoid: There must be one `x` value"),
    (lambda: torch.ones(0, 2).median(0), IndexError, "median(): Expected reduction dim 0 to have non-zero size."),
    (lambda: torch.ones(3).renorm(2, 0, 1.0), RuntimeError, "renorm: input needs at least 2 dimensions"),
    (lambda: torch.cov(torch.ones(2, 3, 4)), RuntimeError, "cov(): expected input to have two or fewer dimensions"),
    (lambda: torch.linalg.cross(torch.ones(2, 2), torch.ones(2, 2)), RuntimeError, "linalg.cross: inputs dimension -1 must have length 3."),
    (lambda: torch.tensordot(torch.ones(2, 3), torch.ones(4), dims=1), RuntimeError, "contracted dimensions need to match"),
    (lambda: torch.linalg.multi_dot([torch.ones(2, 2)]), RuntimeError, "multi_dot(): expected at least 2 tensors but got 1"),
    (lambda: torch.trace(torch.ones(2)), RuntimeError, "trace: expected a matrix"),
    (lambda: torch.ones(0).aminmax(), RuntimeError, "aminmax(): cannot compute aminmax over an empty dimension"),
])
def test_refusals(call, error, words):
    with pytest.raises(error) as caught:
        call()
    assert str(caught.value).startswith(words), str(caught.value)


def test_no_derivative():
    x = torch.tensor([1.5, 2.5], requires_grad=True)
    with pytest.raises(RuntimeError, match="derivative for aten::floor_divide is not implemented"):
        torch.floor_divide(x, 2.0).sum().backward()
    with pytest.raises(NotImplementedError, match="the derivative for 'igamma: input' is not implemented."):
        torch.igamma(x, torch.ones(2)).sum().backward()


def test_gradient_of_logaddexp_at_infinity_and_in_bfloat16():
    for fn in (torch.logaddexp, torch.logaddexp2):
        x = torch.tensor([inf, 0.0, -inf, 1000.0], requires_grad=True)
        y = torch.tensor([0.0, inf, 0.0, 0.0], requires_grad=True)
        fn(x, y).sum().backward()
        assert x.grad.tolist() == [1, 0, 0, 1] and y.grad.tolist() == [0, 1, 1, 0]
    x = torch.tensor([100.25], dtype=torch.bfloat16, requires_grad=True)  # the result rounds to 101: exp(x - result) would be 0.47
    torch.logaddexp(x, x.detach()).backward()
    assert x.grad.item() == 0.5

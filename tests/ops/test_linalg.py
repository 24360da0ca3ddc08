"""Factorisations: what their factors give back, gradients that do not depend on the factors' signs, and refusals."""
import pytest
from subject import torch

L = torch.linalg
DTYPES = [torch.float32, torch.float64, torch.complex64, torch.complex128]


def make(*shape, dtype=torch.float64):
    torch.manual_seed(len(shape) + shape[-1])
    return torch.randn(*shape, dtype=dtype)


def close(a, b):
    tol = 1e-4 if a.dtype in (torch.float32, torch.complex64) else 1e-10
    return (a - b).abs().max().item() < tol if a.numel() else a.shape == b.shape


def adjoint(t):
    return t.transpose(-2, -1).conj()


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", [(4, 3), (3, 4), (2, 3, 3), (0, 3, 2), (3, 0)])
def test_factors_give_the_matrix_back(dtype, shape):
    a = make(*shape, dtype=dtype)
    q, r = L.qr(a)
    assert close(q @ r, a) and close(adjoint(q) @ q, torch.eye(q.shape[-1], dtype=dtype).expand(*a.shape[:-2], -1, -1))
    assert L.qr(a, mode="complete")[0].shape == (*shape[:-1], shape[-2]) and L.qr(a, mode="r")[0].shape == (0,)
    u, s, vh = L.svd(a, full_matrices=False)
    assert close(u @ (s.unsqueeze(-1).to(dtype) * vh), a) and close(L.svdvals(a), s)
    full = L.svd(a)
    assert full[0].shape[-1] == shape[-2] and full[2].shape[-1] == shape[-1]
    u, s, v = torch.svd(a)
    assert close(u @ (s.unsqueeze(-1).to(dtype) * adjoint(v)), a)


@pytest.mark.parametrize("dtype", DTYPES)
def test_eigenvectors(dtype):
    a = make(2, 4, 4, dtype=dtype)
    a = a + adjoint(a)
    w, v = L.eigh(a)
    assert close(v @ (w.unsqueeze(-1).to(dtype) * adjoint(v)), a) and close(L.eigvalsh(a, UPLO="U"), w)
    assert w.stride() == (4, 1) and v.stride() == (16, 1, 4)


def test_layouts_are_pytorchs():
    a, b = make(2, 3, 3) + 3 * torch.eye(3, dtype=torch.float64), make(2, 3, 2)
    assert L.solve(a, b).stride() == (6, 1, 3) and L.inv(a).stride() == (9, 1, 3) and L.solve(a, b.mT, left=False).stride() == (6, 3, 1)
    lu, pivots = L.lu_factor(a)
    assert lu.stride() == (9, 1, 3) and pivots.dtype == torch.int32 and pivots.shape == (2, 3)


@pytest.mark.parametrize("name, function", [
    ("qr", lambda a: (lambda q, r: (q.abs() ** 2, r.abs() ** 2))(*L.qr(a))),
    ("svd", lambda a: (lambda u, s, vh: (u.abs() ** 2, s, vh.abs() ** 2))(*L.svd(a, full_matrices=False))),
    ("svdvals", L.svdvals), ("det", lambda a: L.det(a[:3])), ("slogdet", lambda a: L.slogdet(a[:3])[1]),
    ("eigh", lambda a: (lambda h: (lambda w, v: (w, v.abs() ** 2))(*L.eigh(h)))(a[:3] + adjoint(a[:3]))),
    ("cholesky", lambda a: L.cholesky(a[:3] @ adjoint(a[:3]) + torch.eye(3, dtype=a.dtype)).abs()),
    ("upper", lambda a: L.cholesky(a[:3] @ adjoint(a[:3]) + torch.eye(3, dtype=a.dtype), upper=True).abs()),
    ("solve", lambda a: L.solve(a[:3] + 3 * torch.eye(3, dtype=a.dtype), a[1:4])),
    ("triangular", lambda a: L.solve_triangular(a[:3].tril() + 3 * torch.eye(3, dtype=a.dtype), a[1:4], upper=False)),
    ("inv", lambda a: L.inv(a[:3] + 3 * torch.eye(3, dtype=a.dtype))), ("nuc", lambda a: L.matrix_norm(a, "nuc")),
    ("power", lambda a: L.matrix_power(a[:3] + 3 * torch.eye(3, dtype=a.dtype), -2))])
@pytest.mark.parametrize("dtype", [torch.float64, torch.complex128])
def test_gradients(name, function, dtype):
    a = make(4, 3, dtype=dtype).requires_grad_()
    assert torch.autograd.gradcheck(function, (a,), check_batched_grad=False)


@pytest.mark.parametrize("call, words", [
    (lambda: L.solve(torch.zeros(3, 3), torch.ones(3)), "torch.linalg.solve: The solver failed because the input matrix is singular."),
    (lambda: L.solve(torch.zeros(1, 3, 3), torch.ones(1, 3)), "torch.linalg.solve: (Batch element 0): The solver failed because"),
    (lambda: L.inv(torch.zeros(3, 3)), "linalg.inv: The diagonal element 1 is zero, the inversion could not be completed"),
    (lambda: L.cholesky(-torch.eye(3)),
     "linalg.cholesky: The factorization could not be completed because the input is not positive-definite "
                                        "(the leading minor of order 1 is not positive-definite)."),
    (lambda: L.matrix_power(torch.zeros(2, 2), -1), "linalg.inv: The diagonal element 1 is zero"),
])
def test_singular(call, words):
    with pytest.raises(L.LinAlgError) as caught:
        call()
    assert str(caught.value).startswith(words) and isinstance(caught.value, RuntimeError)


@pytest.mark.parametrize("call, words", [
    (lambda: L.solve(torch.ones(2, 3), torch.ones(4)), "linalg.solve: A must be batches of square matrices, but they are 2 by 3 matrices"),
    (lambda: L.solve(torch.eye(3), torch.ones(4)), "linalg.solve: Incompatible shapes of A and B for the equation AX = B (3x3 and 4x1)"),
    (lambda: L.inv(torch.ones(3)), "linalg.inv: The input tensor A must have at least 2 dimensions."),
    (lambda: L.inv(torch.ones(2, 2, dtype=torch.int32)), "linalg.inv: Expected a floating point or complex tensor as input. Got Int"),
    (lambda: L.solve(torch.ones(2, 2).half(), torch.ones(2).half()), '"lu_cpu" not implemented for \'Half\''),
    (lambda: L.qr(torch.ones(2, 2), mode="x"), "qr received unrecognized mode 'x'"),
    (lambda: L.eigh(torch.eye(2), UPLO="x"), "Expected UPLO argument to be 'L' or 'U', but got x"),
    (lambda: L.matrix_norm(torch.ones(2, 2), 3), "linalg.matrix_norm: Order 3 not supported."),
    (lambda: L.norm(torch.ones(2, 2, 2), 2), "linalg.norm: If dim is not specified but ord is, the input must be 1D or 2D. Got 3D."),
    (lambda: torch.cdist(torch.ones(2, 3), torch.ones(2, 4)), "X1 and X2 must have the same number of columns. X1: 3 X2: 4"),
    (lambda: torch.quantile(torch.ones(3), 1.5), "quantile() q must be in the range [0, 1] but got 1.5"),
    (lambda: torch.quantile(torch.ones(3), 0.5, interpolation="x"), "quantile() interpolation must be one of linear"),
])
def test_refusals(call, words):
    with pytest.raises(RuntimeError) as caught:
        call()
    assert str(caught.value).startswith(words), str(caught.value)


def test_quantiles_of_nan():
    x = torch.tensor([[1.0, float("nan"), 3.0], [4.0, 2.0, 9.0]])
    got = torch.quantile(x, torch.tensor([0.5, 1.0]), dim=1)
    assert torch.isnan(got[:, 0]).all().item() and got[:, 1].tolist() == [4.0, 9.0] and got.stride() == (1, 2)
    assert torch.nanquantile(x, 0.5, dim=1).tolist() == [2.0, 4.0] and torch.quantile(x, torch.tensor([0.1]), keepdim=True).shape == (1,
        1, 1)


def test_results_given_in_out_keep_their_layout():
    a = make(2, 3, 3)
    spd = a @ adjoint(a) + torch.eye(3, dtype=a.dtype)
    b = make(2, 3, 2)
    for fn, args in ((L.inv_ex, (a,)), (L.cholesky_ex, (spd,)), (L.lu_factor, (a,)), (L.lu_factor_ex, (a,)), (L.solve_ex, (a, b)),
                     (L.eigh, (spd,)), (torch.svd, (a,)), (L.qr, (a,)), (L.svd, (a,))):
        want = fn(*args)
        outs = tuple(torch.empty(0, dtype=t.dtype) for t in want)
        fn(*args, out=outs)
        for t, o in zip(want, outs):
            assert torch.equal(t, o) and t.stride() == o.stride(), fn
    for fn, args in ((L.inv, (a,)), (L.cholesky, (spd,)), (L.solve, (a, b))):
        o = torch.empty(0, dtype=a.dtype)
        assert fn(*args, out=o) is o and torch.equal(o, fn(*args)) and o.stride()[-2:] == (1, 3)
    o = torch.empty((), dtype=a.dtype)
    torch.norm(a[0], "nuc", out=o)
    assert close(o, L.svdvals(a[0]).sum())


def test_solutions_lie_by_columns():
    a = make(2, 3, 3)
    assert L.solve(a, make(2, 3)).stride() == (1, 2) and L.solve(a, make(2, 3, 1)).stride() == (3, 1, 3)
    up = torch.triu(a) + 3 * torch.eye(3, dtype=a.dtype)
    x = L.solve_triangular(up, make(4, 3), upper=True, left=False)
    assert x.stride() == (12, 1, 4) and close(x @ up, make(4, 3).expand(2, 4, 3))


def test_the_zeroth_power_has_a_gradient_of_zero():
    a = make(3, 3).requires_grad_()
    p = torch.matrix_power(a, 0)
    assert torch.equal(p, torch.eye(3, dtype=a.dtype)) and p.requires_grad
    p.sum().backward()
    assert not a.grad.any()


def test_lu_factor_refuses_with_a_plain_error():
    with pytest.raises(RuntimeError, match=r"torch.linalg.lu_factor: U\[1,1\] is zero") as e:
        L.lu_factor(torch.zeros(2, 2))
    assert type(e.value) is RuntimeError
    with pytest.raises(RuntimeError, match=r"torch.linalg.lu_factor_ex: \(Batch element 1\): U\[2,2\] is zero"):
        L.lu_factor_ex(torch.stack([torch.eye(2), torch.ones(2, 2)]), check_errors=True)


def test_singular_values_that_are_equal_have_a_gradient():
    a = torch.eye(3, dtype=torch.float64, requires_grad=True)
    L.svdvals(a).sum().backward()
    assert close(a.grad, torch.eye(3, dtype=torch.float64))
    b = torch.ones(2, 3, dtype=torch.float64, requires_grad=True)  # one singular value is 0
    L.svdvals(b)[0].backward()
    assert close(b.grad, torch.full((2, 3), 6 ** -0.5, dtype=torch.float64))


@pytest.mark.parametrize("shape", [(3, 3), (4, 2), (1, 1)])
def test_gradient_of_complex_qr_is_the_slope(shape):
    torch.manual_seed(7)
    a, d = (torch.randn(*shape, dtype=torch.complex128) for _ in range(2))
    q, r = (torch.randn_like(t) for t in L.qr(a))

    def loss(t):
        Q, R = L.qr(t)
        return torch.view_as_real(Q * q).select(-1, 0).sum() + torch.view_as_real(R * r).select(-1, 0).sum()

    x = a.clone().requires_grad_()
    loss(x).backward()
    slope = (loss(a + 1e-6 * d) - loss(a - 1e-6 * d)).item() / 2e-6
    assert abs(torch.view_as_real(x.grad.conj() * d).select(-1, 0).sum().item() - slope) < 1e-6 * (1 + abs(slope))

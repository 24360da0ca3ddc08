"""Matrix products: every dtype, layout and size against numpy; with and without libraries; the same bits for every thread count."""
import os
import subprocess
import sys

import numpy as np
import pytest
from subject import numpy_of, torch

INTS = ["uint8", "int8", "int16", "int32", "int64"]
DTYPES = INTS + ["float16", "bfloat16", "float32", "float64", "complex64", "complex128"]
EPS = {"float16": 1e-3, "bfloat16": 8e-3, "float32": 1e-6, "complex64": 1e-6, "float64": 1e-14, "complex128": 1e-14}
SIZES = [(1, 1, 1), (2, 3, 4), (5, 7, 3), (1, 40, 9), (40, 1, 300), (1, 1, 1500), (33, 31, 40), (130, 140, 150), (5, 5, 0), (0, 3, 2),
         (3, 0, 2), (0, 0, 0)]


def values(rng, shape, dtype):
    """numpy values that the dtype holds exactly enough, as float64, int64 or complex128."""
    if dtype in INTS:
        return rng.integers(0 if dtype == "uint8" else -4, 5, shape)
    x = rng.standard_normal(shape)
    return x + 1j * rng.standard_normal(shape) if dtype.startswith("complex") else x


def make(x, dtype, layout="plain"):
    """A tensor with x's values: plain, transposed in memory, or with gaps."""
    t = torch.tensor(x.tolist(), dtype=getattr(torch, dtype)).reshape(x.shape)
    if layout == "turned":
        return t.transpose(-1, -2).contiguous().transpose(-1, -2)
    if layout == "gaps":
        return torch.stack([t, t], -1)[..., 0]
    return t


def as_double(t):
    return t.to(torch.complex128 if t.is_complex() else torch.float64 if t.is_floating_point() else torch.int64).numpy()


def check(got, want, magnitude, dtype):
    if dtype in INTS:
        np.testing.assert_array_equal(as_double(got), want.astype(dtype).astype("int64"))
    else:
        error = np.abs(as_double(got) - want)
        assert np.all(error <= 4 * EPS[dtype] * (magnitude + np.abs(want))), error.max()


@pytest.mark.parametrize("layout", ["plain", "turned", "gaps"])
@pytest.mark.parametrize("dtype", DTYPES)
def test_mm_and_addmm(dtype, layout):
    rng = np.random.default_rng(1)
    for m, n, k in SIZES:
        a, b = make(values(rng, (m, k), dtype), dtype, layout), make(values(rng, (k, n), dtype), dtype, layout)
        s = make(values(rng, (n,), dtype), dtype)
        da, db, ds = as_double(a), as_double(b), as_double(s)
        size = np.abs(da) @ np.abs(db) * (1 + k ** 0.5 / 8)
        check(torch.mm(a, b), da @ db, size, dtype)
        check(torch.addmm(s, a, b, beta=2, alpha=3), 3 * (da @ db) + 2 * ds, 3 * size + 2 * np.abs(ds), dtype)


@pytest.mark.parametrize("dtype", DTYPES)
def test_batches_and_vectors(dtype):
    rng = np.random.default_rng(2)
    a, b = make(values(rng, (3, 4, 5), dtype), dtype), make(values(rng, (3, 5, 6), dtype), dtype, "turned")
    s, v = make(values(rng, (4, 6), dtype), dtype), make(values(rng, (5,), dtype), dtype, "plain")
    da, db, ds, dv = map(as_double, (a, b, s, v))
    check(torch.bmm(a, b), da @ db, 20, dtype)
    check(torch.baddbmm(s, a, b, beta=2), da @ db + 2 * ds, 20, dtype)
    check(torch.mv(a[0], v), da[0] @ dv, 20, dtype)
    check(torch.addmv(v[:4], a[1], v, alpha=2), 2 * (da[1] @ dv) + dv[:4], 20, dtype)
    check(torch.dot(v, b[0, :, 0]), np.asarray(dv @ db[0, :, 0]), 20, dtype)
    check(torch.vdot(v, b[0, :, 0]), np.asarray(np.vdot(dv, db[0, :, 0])), 20, dtype)
    check(torch.outer(v, s[0]), np.outer(dv, ds[0]), 5, dtype)
    check(torch.addr(s, v[:4], s[0]), np.outer(dv[:4], ds[0]) + ds, 20, dtype)


def test_beta_zero_does_not_look_at_self():
    nan = torch.full((2, 2), float("nan"))
    assert torch.addmm(nan, torch.ones(2, 3), torch.ones(3, 2), beta=0).tolist() == [[3.0, 3.0], [3.0, 3.0]]


def test_expanded_operand():
    a = torch.ones(1, 1).expand(70, 80)
    assert torch.mm(a, a.t()).eq(80).all()


@pytest.mark.parametrize("call, error, words", [
    (lambda r: torch.mm(r(2, 3), r(4, 5)), RuntimeError, "mat1 and mat2 shapes cannot be multiplied (2x3 and 4x5)"),
    (lambda r: torch.mm(r(2), r(4, 5)), RuntimeError, "self must be a matrix"),
    (lambda r: torch.mm(r(2, 3), r(3, 2).double()), RuntimeError, "expected m1 and m2 to have the same dtype, but got: float != double"),
    (lambda r: torch.mm(r(2, 3).bool(), r(3, 2).bool()), NotImplementedError, "\"addmm_impl_cpu_\" not implemented for 'Bool'"),
    (lambda r: torch.bmm(r(2, 3), r(4, 5)), RuntimeError, "batch1 must be a 3D tensor"),
    (lambda r: torch.bmm(r(2, 3, 4), r(2, 5, 6)), RuntimeError,
     "Expected size for first two dimensions of batch2 tensor to be: [2, 4] but got: [2, 5]."),
    (lambda r: torch.addmm(r(2), r(2, 3), r(3, 4)), RuntimeError,
     "The expanded size of the tensor (4) must match the existing size (2) at non-singleton dimension 1."),
    (lambda r: torch.mv(r(2, 3), r(4)), RuntimeError, "size mismatch, got input (2), mat (2x3), vec (4)"),
    (lambda r: torch.dot(r(2, 3), r(3)), RuntimeError, "1D tensors expected, but got 2D and 1D tensors"),
    (lambda r: torch.dot(r(3), r(4)), RuntimeError,
     "inconsistent tensor size, expected tensor [3] and src [4] to have the same number of elements"),
    (lambda r: torch.outer(r(2, 3), r(3)), RuntimeError, "outer: Expected 1-D argument self, but got 2-D"),
    (lambda r: torch.matmul(r(()), r(3)), RuntimeError, "both arguments to matmul need to be at least 1D, but they are 0D and 1D"),
])
def test_messages(call, error, words):
    with pytest.raises(error) as info:
        call(lambda *s: torch.ones(*s))
    assert words in str(info.value)


def nodes(fn):
    """Names along the first edges of a result's graph."""
    names = []
    while fn is not None and fn.name() != "torch::autograd::AccumulateGrad":
        names.append(fn.name())
        fn = fn.next_functions[0][0]
    return names


@pytest.mark.parametrize("sizes, bias, want, strides", [
    ([(3,), (3,)], None, ["DotBackward0"], ()),
    ([(4, 3), (3,)], None, ["MvBackward0"], (1,)),
    ([(4, 3), (3, 4)], None, ["MmBackward0"], (4, 1)),
    ([(2, 4, 3), (3, 4)], None, ["UnsafeViewBackward0", "MmBackward0", "ViewBackward0"], (16, 4, 1)),
    ([(2, 4, 3), (2, 3, 4)], None, ["UnsafeViewBackward0", "BmmBackward0", "ViewBackward0", "ExpandBackward0"], (16, 4, 1)),
    ([(4, 3), (2, 3, 4)], None, ["CloneBackward0", "TransposeBackward0", "UnsafeViewBackward0", "MmBackward0", "UnsafeViewBackward0",
                                 "CloneBackward0", "TransposeBackward0"], (16, 4, 1)),
])
def test_matmul_graph(sizes, bias, want, strides):
    a, b = (torch.ones(*s).requires_grad_() for s in sizes)
    result = torch.matmul(a, b)
    assert nodes(result.grad_fn) == want and result.stride() == strides
    assert result.eq(3).all()


@pytest.mark.parametrize("shape, turned, want", [
    ((2, 3), False, "AddmmBackward0"), ((5, 2, 3), False, "ViewBackward0"), ((5, 3, 2), True, "AddBackward0")])
def test_linear_graph(shape, turned, want):
    x = torch.ones(*shape).requires_grad_()
    w, b = torch.ones(4, 3).requires_grad_(), torch.ones(4).requires_grad_()
    result = torch.nn.functional.linear(x.transpose(-1, -2) if turned else x, w, b)
    assert result.grad_fn.name() == want and result.eq(4).all()


@pytest.mark.parametrize("dtype", ["float64", "complex128"])
@pytest.mark.parametrize("name, shapes", [("vdot", [(3,), (3,)]), ("addr", [(3, 2), (3,), (2,)]), ("outer", [(3,), (2,)]),
                                          ("addmv", [(3,), (3, 2), (2,)]), ("baddbmm", [(4,), (2, 3, 5), (2, 5, 4)])])
def test_gradients(name, shapes, dtype):
    rng = np.random.default_rng(3)
    args = [make(values(rng, s, dtype), dtype).requires_grad_() for s in shapes]
    assert torch.autograd.gradcheck(getattr(torch, name), args)


PROGRAM = """
import hashlib, sys, ember as torch
torch.set_num_threads(int(sys.argv[1]))
h = hashlib.sha256()
for dtype in (torch.float32, torch.float64, torch.bfloat16, torch.complex64):
    for m, n, k in ((300, 257, 129), (128, 128, 128), (1, 700, 900), (700, 1, 900)):
        torch.manual_seed(0)
        a, b = torch.randn(m, k).to(dtype), torch.randn(k, n).to(dtype)
        real = torch.view_as_real(a @ b) if dtype == torch.complex64 else (a @ b).double()
        h.update(real.numpy().tobytes())
print(h.hexdigest())
"""


def digest(threads, **variables):
    run = subprocess.run([sys.executable, "-c", PROGRAM, str(threads)], env={**os.environ, **variables}, text=True,
                         stdout=subprocess.PIPE, stderr=subprocess.PIPE, check=True)
    return run.stdout.strip(), run.stderr


@pytest.mark.parametrize("libraries", ["yes", "none"])
def test_same_bits_for_every_thread_count(libraries):
    off = {} if libraries == "yes" else {"EMBER_OPENBLAS": "none", "EMBER_ONEDNN": "none"}
    assert digest(1, **off)[0] == digest(2, **off)[0]


def test_log_names_libraries():
    said = digest(1, EMBER_LOG="libs", EMBER_OPENBLAS="none", EMBER_ONEDNN="/nonexistent/libdnnl.so")[1]
    assert "[libs] OpenBLAS: switched off by EMBER_OPENBLAS=none" in said
    refused = [line for line in said.splitlines() if line.startswith("[libs] oneDNN: refused /nonexistent/libdnnl.so")]
    assert len(refused) <= 1 and said.count("plain C kernels") == 1 + len(refused)


def test_import_loads_no_library():
    code = "import ember; m = open('/proc/self/maps').read(); assert 'openblas' not in m and 'dnnl' not in m"
    subprocess.run([sys.executable, "-c", code], check=True)

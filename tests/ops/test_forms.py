"""In-place = out= = functional, for every operator that has the forms; and what out= and in-place must refuse."""

import warnings

import numpy as np
import pytest
from forms import inplace_of, out_of, outs
from sampling import PRESENT, cases, samples, tensors
from subject import FULL, IS_EMBER, agree, dtype_of, flat, name_of, operator, same_bits, torch
from table import TABLE

DTYPES = (
    ["bool", "uint8", "int64", "bfloat16", "float32", "float64", "complex64"]
    if FULL
    else ["bool", "int64", "bfloat16", "float32", "complex64"]
)
INPLACE = [name for name in PRESENT if "i" in TABLE[name].forms]
OUT = [name for name in PRESENT if "o" in TABLE[name].forms]
SOUND_OUT = [name for name in OUT if TABLE[name].random is None and out_of(name)]  # test_forms_exist tells of others
FACTORIES = (
    "logspace",
    "zeros",
    "ones",
    "full",
    "arange",
    "linspace",
    "eye",
    "rand",
    "randn",
    "randint",
    "randperm",
    "normal.float",
)


@pytest.mark.parametrize("name", PRESENT)
def test_forms_exist(name):
    assert "i" not in TABLE[name].forms or inplace_of(name), "no in-place form"
    assert "o" not in TABLE[name].forms or out_of(name), "no out= form"


def castable(source, target):
    return torch.can_cast(source, target)


@pytest.mark.parametrize("name, dtype", cases(INPLACE, DTYPES))
def test_inplace(name, dtype):
    call, inplace = operator(name), operator(inplace_of(name))
    for sample in samples(name, dtype):
        args, kwargs = tensors(sample, dtype)
        want = call(*args, **kwargs)
        target = args[0].clone()
        before = (target.data_ptr(), target._version)
        if want.shape != target.shape:
            with pytest.raises(RuntimeError):
                inplace(target, *args[1:], **kwargs)
        elif not castable(want.dtype, target.dtype) or (name in ("abs", "absolute") and target.is_complex()):
            with pytest.raises(RuntimeError):
                inplace(target, *args[1:], **kwargs)
            assert same_bits(target, args[0]), "a refused call wrote"
        else:
            result = inplace(target, *args[1:], **kwargs)
            assert result is target and target.data_ptr() == before[0]
            assert target._version > before[1]
            assert agree(target, want.to(target.dtype))


def call_out(name, args, kwargs, targets):
    out = out_of(name)
    given = {k: v for k, v in kwargs.items() if k not in ("dtype",) or not name.startswith(FACTORIES)}
    return operator(out)(*args, **given, **dict(zip(outs(out), targets)))


def spread(tensor):
    """An empty tensor of the same shape with gaps between its elements and its dimensions turned around."""
    shape = list(tensor.shape)[::-1]
    holder = torch.zeros(shape + [2], dtype=tensor.dtype).select(-1, 1)
    return holder.permute(list(range(tensor.dim()))[::-1])


@pytest.mark.parametrize("name, dtype", cases(SOUND_OUT, DTYPES))
def test_out(name, dtype):
    for sample in samples(name, dtype):
        args, kwargs = tensors(sample, dtype)
        want = flat(operator(name)(*args, **kwargs))
        fresh = [torch.empty(0, dtype=w.dtype) for w in want]
        strange = [spread(w) for w in want]
        strides = [s.stride() for s in strange]
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            got = flat(call_out(name, args, kwargs, fresh))
            call_out(name, args, kwargs, strange)
        assert all(g is f for g, f in zip(got, fresh))
        assert [s.stride() for s in strange] == strides
        for w, f, s in zip(want, fresh, strange):
            assert agree(w, f) and agree(w, s)


def wrong(shape):
    return [n + 1 for n in shape] if shape else [3]


@pytest.mark.parametrize("name", SOUND_OUT)
def test_out_of_wrong_shape_is_resized_with_a_warning(name):
    dtype = next(d for d in ("float32", "int64", "bool", "complex64") if cases([name], [d]))
    sample = samples(name, dtype)[0]
    args, kwargs = tensors(sample, dtype)
    want = flat(operator(name)(*args, **kwargs))
    targets = [torch.zeros(wrong(w.shape), dtype=w.dtype) for w in want]
    # Factories and nonzero resize silently. PyTorch's torch.ops writes its warning to standard error instead.
    if name.startswith(FACTORIES) or name == "nonzero" or not IS_EMBER:
        call_out(name, args, kwargs, targets)
    else:
        with pytest.warns(UserWarning, match="An output with one or more elements was resized since it had shape"):
            call_out(name, args, kwargs, targets)
    assert all(agree(w, t) for w, t in zip(want, targets))


def test_resizing_warns_from_python_functions():
    a, out = torch.ones(2, 3), torch.zeros(4)
    with pytest.warns(
        UserWarning,
        match=r"An output with one or more elements was resized since it had shape \[4\], "
        r"which does not match the required output shape \[2, 3\]",
    ):
        torch.add(a, a, out=out)
    assert out.tolist() == [[2.0] * 3] * 2


# Reductions compute in the dtype of out=, as PyTorch's sum.IntList_out does.
IN_OUTS_DTYPE = {n for n in SOUND_OUT if n.split(".")[0] in ("sum", "prod", "mean", "var", "std", "var_mean", "std_mean", "nansum",
                                                               "cumsum", "cumprod")}


@pytest.mark.parametrize("name", [n for n in SOUND_OUT if not n.startswith(FACTORIES) and n not in IN_OUTS_DTYPE])
def test_out_of_another_dtype(name):
    """It is cast when PyTorch's categories allow it and the operator casts at all; otherwise nothing is written."""
    dtype = next(d for d in ("float32", "int64", "bool", "complex64") if cases([name], [d]))
    args, kwargs = tensors(samples(name, dtype)[0], dtype)
    want = flat(operator(name)(*args, **kwargs))
    for other in ("int32", "float64", "complex128"):
        if any(name_of(w.dtype) == other for w in want):
            continue
        targets = [torch.full(tuple(w.shape), 7, dtype=dtype_of(other)) for w in want]
        try:
            call_out(name, args, kwargs, targets)
        except (RuntimeError, TypeError) as error:  # TypeError: cat and stack
            assert "type" in str(error) or "bool" in str(error), error
            assert all((t == 7).all().item() for t in targets), "a refused call wrote"
            continue
        assert all(castable(w.dtype, t.dtype) for w, t in zip(want, targets))
        assert all(agree(w.to(t.dtype), t) for w, t in zip(want, targets))


def test_a_sum_is_computed_in_the_dtype_of_out():
    x = torch.tensor([1.5, 2.5, -3.25])
    out = torch.zeros((), dtype=torch.float64)
    assert torch.sum(torch.full((3,), 0.1), [0], out=out).item() == 3 * float(np.float32(0.1))
    assert torch.sum(x, [0], out=torch.zeros((), dtype=torch.int32)).item() == 0


@pytest.mark.parametrize("name", ["add.Tensor", "mul.Tensor", "exp", "sum", "mm", "cat", "gather", "max.dim"])
def test_out_refuses_what_requires_grad(name):
    if operator(name) is None:
        pytest.skip(f"{name} is not in this build")
    args, kwargs = tensors(
        samples(name, "float32")[0], "float32", lambda t: t.requires_grad_() if t.is_floating_point() else t
    )
    want = flat(operator(name)(*args, **kwargs))
    targets = [torch.zeros(tuple(w.shape), dtype=w.dtype) for w in want]
    with pytest.raises(RuntimeError, match="functions with out=.* arguments don't support automatic differentiation"):
        call_out(name, args, kwargs, targets)
    with torch.no_grad():
        call_out(name, args, kwargs, targets)
    assert same_bits(want[0].detach(), targets[0])


def test_methods_and_functions_are_the_same_operators():
    a, b = torch.tensor([[1.0, -2.0], [3.0, 0.5]]), torch.tensor([2.0, 4.0])
    for name, args in (
        ("add", (b,)),
        ("sub", (b,)),
        ("mul", (b,)),
        ("div", (b,)),
        ("pow", (2,)),
        ("sum", (1,)),
        ("mean", ()),
        ("amax", (0,)),
        ("exp", ()),
        ("sigmoid", ()),
        ("softmax", (1,)),
        ("transpose", (0, 1)),
        ("maximum", (b,)),
        ("clamp", (-1, 1)),
        ("matmul", (b,)),
    ):
        assert same_bits(getattr(torch, name)(a, *args), getattr(a, name)(*args)), name
    assert same_bits(a + b, a.add(b)) and same_bits(2 - a, torch.rsub(a, 2)) and same_bits(a @ b, a.matmul(b))
    assert same_bits(a / 2, a.div(2)) and same_bits(2**a, torch.pow(2, a)) and same_bits(-a, a.neg())

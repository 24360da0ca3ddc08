"""Subclasses, __torch_function__, __torch_dispatch__, operators as objects. Runs the same under PyTorch."""
import copy
import gc
import weakref

import pytest

import ember as torch


class Tagged(torch.Tensor):
    pass


def test_results_take_the_subclass():
    x = torch.ones(2).as_subclass(Tagged)
    assert type(x + 1) is Tagged and type(1 + x) is Tagged and type(x.sum()) is Tagged and type(torch.exp(x)) is Tagged
    assert type(x[0]) is Tagged and type(torch.stack([x, x])) is Tagged and isinstance(x.shape, torch.Size)
    assert type(x.max(0).values) is Tagged and type(Tagged([1.0, 2.0])) is Tagged
    with torch._C.DisableTorchFunctionSubclass():
        assert type(x + 1) is torch.Tensor


def test_attributes_survive_in_the_graph():
    w = torch.ones(2).as_subclass(Tagged).requires_grad_()
    w.note = "kept"
    y = (w * 2).sum()
    r = weakref.ref(w)
    del w
    gc.collect()
    assert r() is not None and r().note == "kept"
    del y
    gc.collect()
    assert r() is None


def test_parameter_is_a_plain_tensor_to_functions():
    p = torch.nn.Parameter(torch.ones(2))
    assert type(p + 1) is torch.Tensor and p.requires_grad and p.is_leaf and isinstance(p, torch.nn.Parameter)
    assert type(copy.deepcopy(p)) is torch.nn.Parameter
    assert torch._C._disabled_torch_function_impl is torch.nn.Parameter.__torch_function__


def test_torch_function_sees_the_call():
    calls = []

    class Logging(torch.Tensor):
        @classmethod
        def __torch_function__(cls, func, types, args=(), kwargs=None):
            calls.append((func, types, len(args), kwargs))
            return super().__torch_function__(func, types, args, kwargs or {})

    x = torch.ones(2).as_subclass(Logging)
    torch.add(x, 1, alpha=2)
    assert calls[0][0] is torch.add and calls[0][1] == (Logging,) and calls[0][2:] == (2, {"alpha": 2})
    calls.clear()
    x.sum()
    assert calls[0][0] is torch.Tensor.sum
    calls.clear()
    x.shape
    assert calls[0][0] == torch.Tensor.shape.__get__
    calls.clear()
    torch.cat([torch.ones(1), x])
    assert calls[0][0] is torch.cat
    calls.clear()
    x[0] = 3
    assert calls[0][0] == torch.Tensor.__setitem__


def test_anything_may_override():
    class Duck:
        @classmethod
        def __torch_function__(cls, func, types, args=(), kwargs=None):
            return func.__name__

    assert torch.exp(Duck()) == "exp" and torch.add(torch.ones(1), Duck()) == "add"

    class Mute:
        @classmethod
        def __torch_function__(cls, *args):
            return NotImplemented

    with pytest.raises(TypeError, match="all __torch_function__ handlers returned NotImplemented"):
        torch.exp(Mute())


def test_an_override_added_later_counts():
    class Late(torch.Tensor):
        pass

    x = torch.ones(1).as_subclass(Late)
    Late.__torch_function__ = classmethod(lambda cls, func, types, args=(), kwargs=None: "seen")
    assert torch.exp(x) == "seen"


def test_slots_and_dict_of_subclasses():
    class Slotted(torch.Tensor):
        __slots__ = ("a",)

    x = torch.ones(2).as_subclass(Slotted)
    x.a = [x]
    x.b = 3
    r = weakref.ref(x)
    del x
    gc.collect()
    assert r() is None


def test_make_wrapper_subclass_and_torch_dispatch():
    seen = []

    class Wrapper(torch.Tensor):
        @staticmethod
        def __new__(cls, inner):
            return torch.Tensor._make_wrapper_subclass(cls, inner.shape, dtype=inner.dtype)

        def __init__(self, inner):
            self.inner = inner

        @classmethod
        def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
            seen.append(str(func))
            out = func(*(a.inner if isinstance(a, Wrapper) else a for a in args), **(kwargs or {}))
            return Wrapper(out)

        __torch_function__ = torch._C._disabled_torch_function_impl

    w = Wrapper(torch.tensor([1.0, 2.0]))
    assert w.shape == (2,)
    r = w + w
    assert type(r) is Wrapper and r.inner.tolist() == [2, 4] and seen == ["aten.add.Tensor"]
    with pytest.raises(TypeError, match="must define __torch_dispatch__"):
        torch.Tensor._make_wrapper_subclass(Tagged, (2,))


def test_operators_are_objects():
    op = torch.ops.aten.add.Tensor
    assert str(op) == "aten.add.Tensor" and op is torch.ops.aten.add.Tensor and op.namespace == "aten"
    assert op(torch.ones(2), torch.ones(2), alpha=3).tolist() == [4, 4]
    assert "Tensor" in torch.ops.aten.add.overloads() and torch.ops.aten.add(torch.ones(1), 1).item() == 2
    assert repr(op) == "<OpOverload(op='aten.add', overload='Tensor')>"
    with pytest.raises(AttributeError):
        torch.ops.aten.no_such_operator
    with pytest.raises(AttributeError):
        torch.ops.aten.add.no_such_overload


def test_custom_op():
    @torch.library.custom_op("ember_test::scale", mutates_args=())
    def scale(x: torch.Tensor, k: float) -> torch.Tensor:
        return x * k

    @scale.register_fake
    def _(x, k):
        return torch.empty_like(x)

    def setup(ctx, inputs, output):
        ctx.k = inputs[1]

    scale.register_autograd(lambda ctx, g: (g * ctx.k, None), setup_context=setup)
    x = torch.ones(2, requires_grad=True)
    y = scale(x, 3.0)
    assert y.tolist() == [3, 3] and y.requires_grad
    y.sum().backward()
    assert x.grad.tolist() == [3, 3]
    assert torch.ops.ember_test.scale(torch.ones(2, device="meta"), 1.0).shape == (2,)
    with torch.no_grad():
        assert not scale(x, 2.0).requires_grad


def test_a_python_kernel_for_a_built_in_operator():
    lib = torch.library.Library("aten", "IMPL")
    calls = []

    def neg(x):
        calls.append(x.shape)
        return x * -1

    before = torch.neg(torch.ones(2)).tolist()
    lib.impl("neg", neg, "CPU")
    try:
        assert torch.neg(torch.ones(2)).tolist() == before and calls == [(2,)]
        assert (-torch.ones(3)).tolist() == [-1, -1, -1] and len(calls) == 2
    finally:
        lib._destroy()
    assert torch.neg(torch.ones(2)).tolist() == before and len(calls) == 2

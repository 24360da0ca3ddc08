"""Seams of the dispatcher: kernels from Python, fallbacks, operators of the user's own, failing allocations."""

import os
import sys

import pytest
from seam import IS_EMBER, torch

for folder in ("ops", "fault"):  # the operator table and the failing allocations
    sys.path.append(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", folder))

needs_ember = pytest.mark.skipif(not IS_EMBER, reason="looks into Ember's own machine")


def test_python_kernel_for_builtin_operator():
    lib = torch.library.Library("aten", "IMPL")
    seen = []

    def my_expm1(x):
        seen.append(tuple(x.shape))
        return torch.full_like(x, 7.0)

    lib.impl("expm1", my_expm1, "CPU", **({} if IS_EMBER else {"allow_override": True}))
    x = torch.zeros(3, requires_grad=True)
    try:
        y = torch.expm1(x)
        assert y.tolist() == [7.0, 7.0, 7.0] and seen == [(3,)]
        assert type(y.grad_fn).__name__ == "Expm1Backward0"  # autograd lies above and still records
        y.sum().backward()
        assert x.grad.tolist() == [8.0, 8.0, 8.0]  # result + 1, of the result that the kernel gave
    finally:
        lib._destroy()
    if IS_EMBER:
        assert torch.expm1(x).tolist() == [0.0, 0.0, 0.0]


def operators():
    """Every built-in operator object, as (name without aten::, object)."""
    for full in torch._C._dispatch_get_all_op_names():
        name, _, overload = full.partition("::")[2].partition(".")
        if full.startswith("aten::"):
            yield full[6:], torch._C._get_operation("aten", name, overload or "default")


@needs_ember
def test_boxed_fallback_sees_every_row():
    """A fallback registered from Python at PythonDispatch stands in the mask of every operator that is not composite,
    and a run over the whole operator table passes through it."""
    from ember.utils._python_dispatch import TorchDispatchMode

    seen = set()

    class Recorder(TorchDispatchMode):
        def __torch_dispatch__(self, func, types, args=(), kwargs=None):
            seen.add(func._full.partition("::")[2])
            return func(*args, **(kwargs or {}))

    blind = [
        name for name, op in operators() if not op._is_composite and "PythonDispatch" not in torch._C._dispatch_keys(op)
    ]
    assert not blind, f"operators that a fallback would not see: {blind}"
    from sampling import PRESENT, dtypes_of, samples, tensors
    from subject import operator

    without = set()
    for name in PRESENT:
        dtype = next((d for d in ("float32", "int64", "complex64", "bool") if d in dtypes_of(name)), None)
        if dtype is None:  # PyTorch has no CPU kernel for it, so the oracle names no dtype
            without.add(name)
            continue
        args, kwargs = tensors(samples(name, dtype)[0], dtype)
        with Recorder():
            operator(name)(*args, **kwargs)
    composite = {name for name, op in operators() if op._is_composite}
    unseen = set(PRESENT) - composite - seen - without
    assert not unseen, f"called, and not seen by the mode: {sorted(unseen)}"
    assert len(seen) > 150 and not seen & composite


@needs_ember
def test_fallback_from_python_replaces_and_goes():
    calls = []

    def fallback(op, *args, **kwargs):
        calls.append(op._full)
        return op.redispatch(torch._C._dispatch_key_bits("Tracer"), *args, **kwargs)

    x = torch.ones(2)
    torch._C._fallback("Tracer", fallback)
    was = torch._C._dispatch_tls_set("include", "Tracer", True)
    try:
        assert (x + x).mul(3).tolist() == [6.0, 6.0]
    finally:
        torch._C._dispatch_tls_set("include", "Tracer", was)
        torch._C._fallback("Tracer", None)
    assert calls[:2] == ["aten::add.Tensor", "aten::mul.Tensor"]
    count = len(calls)
    assert (x + x).tolist() == [2.0, 2.0] and len(calls) == count


KINDS = {
    "pointwise": lambda x: x + x,
    "reduction": lambda x: x.sum(0),
    "structured": lambda x: torch.mm(x, x),
    "view": lambda x: x.select(0, 1),
    "composite": lambda x: torch.nn.functional.linear(x, x),
    "factory": lambda x: torch.zeros(3, 4),
    "in-place": lambda x: x.clone().mul_(2),
    "list": lambda x: x.split(1),
    "out": lambda x: torch.exp(x, out=torch.empty(0)),
    "index": lambda x: x[x > 0],
    "copy": lambda x: x.to(torch.float64),
    "backward": lambda x: torch.autograd.grad((x * x).exp().sum(), x) if x.requires_grad else None,
    "view backward": lambda x: torch.autograd.grad((x[0] * x.t()).sum(), x) if x.requires_grad else None,
    "in-place backward": lambda x: torch.autograd.grad((x * 1)[0].mul_(3).sum(), x) if x.requires_grad else None,
    "second order": lambda x: (
        torch.autograd.grad(torch.autograd.grad((x**3).sum(), x, create_graph=True)[0].sum(), x)
        if x.requires_grad
        else None
    ),
}


@needs_ember
@pytest.mark.parametrize("kind", KINDS)
def test_each_allocation_fails(kind):
    """One operator of each kind: its n-th allocation fails for every n. An exception, the process lives, inputs are
    intact, and the counts of live objects return to where they were. tests/fault does it for every operator."""
    from faults import fail_each

    recorded = "backward" in kind or kind == "second order"
    x = torch.tensor([[1.0, 2.0], [3.0, 4.0]], requires_grad=recorded)
    assert fail_each(lambda: KINDS[kind](x), [x]) > 0


def test_user_operator_under_no_grad_meta_autograd():
    lib = torch.library.Library("seam_test", "DEF")
    lib.define("twice_plus(Tensor x, float k=1.0) -> Tensor")
    lib.impl("twice_plus", lambda x, k=1.0: x.detach() * 2 + k, "CPU")
    lib.impl("twice_plus", lambda x, k=1.0: torch.empty_like(x), "Meta")
    op = torch.ops.seam_test.twice_plus
    assert op(torch.ones(2)).tolist() == [3.0, 3.0]
    m = op(torch.ones(2, 3, device="meta"), 5.0)
    assert m.device.type == "meta" and m.shape == (2, 3)

    torch.library.register_autograd("seam_test::twice_plus", lambda ctx, g: (g * 2, None), lib=lib)
    x = torch.ones(2, requires_grad=True)
    y = op(x, 0.5)
    assert y.tolist() == [2.5, 2.5] and y.requires_grad
    y.sum().backward()
    assert x.grad.tolist() == [2.0, 2.0]
    with torch.no_grad():
        assert not op(x).requires_grad
    with pytest.raises(Exception):
        op("not a tensor")

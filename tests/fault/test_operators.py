"""Each allocation of every operator fails once, forward and backward: an exception comes, nothing is left behind."""

import pytest
from faults import fail_each
from sampling import PRESENT, dtypes_of, gradients_of, samples, tensors, writes_first
from subject import IS_EMBER, flat, map_args, operator, torch

pytestmark = pytest.mark.skipif(not IS_EMBER, reason="needs Ember's allocator")


# They give their argument back.
NO_MEMORY = ("contiguous", "type_as", "equal", "conj", "resolve_conj", "real", "positive")
# PyTorch refuses their derivative too, where the differentiable argument of the table stands.
NO_DERIVATIVE = ("floor_divide", "floor_divide.Scalar", "_embedding_bag_backward", "special_zeta")


def first_dtype(name):
    found = next((d for d in ("float32", "int64", "complex64", "bool") if d in dtypes_of(name)), None)
    if found is None:
        pytest.skip(f"PyTorch's CPU has no dtype for {name}")
    return found


def tensors_in(args):
    return [t for a in args for t in (a if isinstance(a, (list, tuple)) else [a]) if isinstance(t, torch.Tensor)]


@pytest.mark.parametrize("name", PRESENT)
def test_forward(name):
    dtype = first_dtype(name)
    args, kwargs = tensors(samples(name, dtype)[0], dtype)
    call, writes = operator(name), writes_first(name)

    def run():
        given = (args[0].clone(), *args[1:]) if writes else args
        call(*given, **kwargs)

    failed = fail_each(run, tensors_in(args))
    assert failed > 0 or name in NO_MEMORY, "nothing was allocated"


@pytest.mark.parametrize("name", [n for n in PRESENT if "float64" in gradients_of(n)])
def test_backward(name):
    if name in NO_DERIVATIVE:
        pytest.skip("PyTorch has no derivative of it")
    make = lambda arg: arg.tensor("float64").requires_grad_(arg.diff)  # noqa: E731
    args, kwargs = (map_args(part, make) for part in samples(name, "float64")[0])
    call, writes = operator(name), writes_first(name)
    leaves = [t for t in tensors_in(args) if t.requires_grad]

    def run():
        given = (args[0].clone(), *args[1:]) if writes else args
        results = [r for r in flat(call(*given, **kwargs)) if r.requires_grad]
        torch.autograd.grad(results, leaves, [torch.ones_like(r) for r in results], allow_unused=True)

    assert fail_each(run, leaves) > 0  # a forward that succeeds moves running statistics


@pytest.mark.parametrize("call", ["add_", "mul_", "exp_", "clamp_"])
def test_a_refused_inplace_call_writes_nothing(call):
    x = torch.tensor([0.5, 2.0, 3.0])
    args = {"add_": (torch.ones(3),), "mul_": (torch.full((3,), 2.0),), "exp_": (), "clamp_": (1, 2)}[call]
    fresh = x.clone()

    def run():
        target = x.clone()
        try:
            getattr(target, call)(*args)
        except Exception:
            assert target.tolist() == fresh.tolist()
            raise

    fail_each(run, [x])


def test_training_step():
    """Forward, loss, backward and optimizer step of a small network."""
    torch.manual_seed(0)
    net = torch.nn.Sequential(torch.nn.Linear(4, 3), torch.nn.Tanh(), torch.nn.Linear(3, 2))
    x, y = torch.ones(5, 4), torch.tensor([0, 1, 0, 1, 1])
    parameters = list(net.parameters())

    def run():
        loss = torch.nn.functional.cross_entropy(net(x), y)
        torch.autograd.grad(loss, parameters)

    assert fail_each(run, [x, y, *[p.detach() for p in parameters]]) > 20


def test_python_faces_of_tensors():
    x = torch.arange(12.0).reshape(3, 4)
    for run in (
        lambda: x[1:, ::2],
        lambda: x[torch.tensor([0, 2])],
        lambda: x[x > 3],
        lambda: x.tolist(),
        lambda: repr(x),
        lambda: torch.tensor([[1, 2], [3, 4]]),
        lambda: x.numpy(),
        lambda: x.to(torch.float64),
        lambda: (x + 1) * 2 - x / 3,
        lambda: x.detach().requires_grad_(),
        lambda: x.view(torch.int32),
    ):
        fail_each(run, [x])

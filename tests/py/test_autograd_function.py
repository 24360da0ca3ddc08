"""autograd.Function, nodes and hooks as Python sees them. Runs the same under PyTorch."""
import gc
import weakref

import pytest

import ember as torch
from ember.autograd import Function


class Exp(Function):
    @staticmethod
    def forward(ctx, i):
        result = i.exp()
        ctx.save_for_backward(result)
        return result

    @staticmethod
    def backward(ctx, grad_output):
        result, = ctx.saved_tensors
        return grad_output * result


def test_forward_and_backward():
    x = torch.tensor([0.0, 1.0], requires_grad=True)
    y = Exp.apply(x)
    assert type(y.grad_fn).__name__ == y.grad_fn.name() == "ExpBackward" and not y.is_leaf
    y.sum().backward()
    assert x.grad.tolist() == pytest.approx([1.0, 2.7182817])
    with pytest.raises(RuntimeError, match="Trying to backward through the graph a second time"):
        y.sum().backward()


def test_double_backward():
    x = torch.tensor(2.0, requires_grad=True)
    g, = torch.autograd.grad(Exp.apply(x), x, create_graph=True)
    gg, = torch.autograd.grad(g, x)
    assert gg.item() == pytest.approx(7.389056)


def test_setup_context_and_non_tensor_arguments():
    class Scale(Function):
        @staticmethod
        def forward(x, k):
            return x * k

        @staticmethod
        def setup_context(ctx, inputs, output):
            ctx.k = inputs[1]
            assert ctx.needs_input_grad == (True, False)

        @staticmethod
        def backward(ctx, g):
            return g * ctx.k, None

    x = torch.ones(2, requires_grad=True)
    Scale.apply(x, 3).sum().backward()
    assert x.grad.tolist() == [3, 3]


def test_several_outputs_and_materialized_zeros():
    seen = []

    class Two(Function):
        @staticmethod
        def forward(ctx, x):
            return x * 1, x * 2, 5

        @staticmethod
        def backward(ctx, a, b, c):
            seen.append((a.tolist(), b.tolist(), c))
            return a + b * 2

    x = torch.ones(2, requires_grad=True)
    a, b, five = Two.apply(x)
    assert five == 5
    b.sum().backward()
    assert seen == [([0, 0], [1, 1], None)] and x.grad.tolist() == [2, 2]


def test_set_materialize_grads():
    seen = []

    class Two(Function):
        @staticmethod
        def forward(ctx, x):
            ctx.set_materialize_grads(False)
            return x * 1, x * 2

        @staticmethod
        def backward(ctx, a, b):
            seen.append(a)
            return b * 2

    x = torch.ones(2, requires_grad=True)
    Two.apply(x)[1].sum().backward()
    assert seen == [None] and x.grad.tolist() == [2, 2]


def test_mark_non_differentiable_and_dirty():
    class Sort(Function):
        @staticmethod
        def forward(ctx, x):
            i = (x > 0)
            ctx.mark_non_differentiable(i)
            return x * 2, i

        @staticmethod
        def backward(ctx, g, gi):
            return g * 2

    x = torch.ones(2, requires_grad=True)
    y, i = Sort.apply(x)
    assert y.requires_grad and not i.requires_grad

    class Inc(Function):
        @staticmethod
        def forward(ctx, t):
            ctx.mark_dirty(t)
            return t.add_(1)

        @staticmethod
        def backward(ctx, g):
            return g * 10

    z = x * 1
    w = Inc.apply(z)
    assert w is z and z.grad_fn.name() == "IncBackward"
    z.sum().backward()
    assert x.grad.tolist() == [10, 10]
    with pytest.raises(RuntimeError, match="a leaf Variable that requires grad"):
        Inc.apply(x)


def test_an_input_returned_as_it_is():
    class Same(Function):
        @staticmethod
        def forward(ctx, x):
            return x

        @staticmethod
        def backward(ctx, g):
            return g * 7

    x = torch.ones(2, requires_grad=True)
    y = Same.apply(x)
    assert y is not x and y.grad_fn.name() == "SameBackward"
    y.sum().backward()
    assert x.grad.tolist() == [7, 7]


@pytest.mark.parametrize("result, text", [
    (lambda g: (g, g), "function BadBackward returned an incorrect number of gradients (expected 1, got 2)"),
    (lambda g: 3, "expected Variable or None (got int)"),
])
def test_backward_is_checked(result, text):
    class Bad(Function):
        @staticmethod
        def forward(ctx, x):
            return x * 1

        @staticmethod
        def backward(ctx, g):
            return result(g)

    with pytest.raises((RuntimeError, TypeError)) as raised:
        Bad.apply(torch.ones(2, requires_grad=True)).sum().backward()
    assert text in str(raised.value)


def test_exceptions_pass_through():
    class Boom(Function):
        @staticmethod
        def forward(ctx, x):
            return x * 1

        @staticmethod
        def backward(ctx, g):
            raise KeyError("boom")

    x = torch.ones(2, requires_grad=True)
    with pytest.raises(KeyError, match="boom"):
        Boom.apply(x).sum().backward()
    y = (x * 2).sum()
    x.register_hook(lambda g: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        y.backward()


def test_ctx_is_freed_without_the_collector():
    x = torch.ones(2, requires_grad=True)
    y = Exp.apply(x)
    r = weakref.ref(y.grad_fn)
    del y
    assert r() is None


def test_ctx_holding_its_output_is_collected():
    class Holds(Function):
        @staticmethod
        def forward(ctx, x):
            ctx.out = x * 1
            return ctx.out

        @staticmethod
        def backward(ctx, g):
            return g

    y = Holds.apply(torch.ones(2, requires_grad=True))
    r = weakref.ref(y.grad_fn)
    del y
    gc.collect()
    assert r() is None


def test_once_differentiable():
    class Once(Function):
        @staticmethod
        def forward(ctx, x):
            return x * 2

        @staticmethod
        @torch.autograd.function.once_differentiable
        def backward(ctx, g):
            return g * 2

    x = torch.ones(2, requires_grad=True)
    g, = torch.autograd.grad(Once.apply(x).sum(), x, create_graph=True)
    assert g.tolist() == [2, 2]


def test_nodes():
    x = torch.ones(2, requires_grad=True)
    y = x * 2 + 1
    f = y.grad_fn
    assert f is y.grad_fn and f.name() == type(f).__name__ == "AddBackward0"
    assert repr(f).startswith("<AddBackward0 object at ")
    mul = f.next_functions[0][0]
    assert mul.name() == "MulBackward0"
    acc = mul.next_functions[0][0]
    assert acc.name() == "torch::autograd::AccumulateGrad" and type(acc).__name__ == "AccumulateGrad"
    assert acc.variable is x and mul.next_functions[1] == (None, 0)
    assert mul._saved_other.item() == 2 or mul._saved_other is None
    f.metadata["k"] = 1
    assert f.metadata == {"k": 1}
    seen = []
    h = mul.register_hook(lambda gi, go: seen.append(("post", go[0].tolist())))
    mul.register_prehook(lambda go: seen.append(("pre", go[0].tolist())))
    y.sum().backward(retain_graph=True)
    assert seen == [("pre", [1, 1]), ("post", [1, 1])]
    h.remove()
    y.sum().backward()
    assert [s[0] for s in seen] == ["pre", "post", "pre"]


def test_tensor_hooks():
    x = torch.ones(2, requires_grad=True)
    h = x.register_hook(lambda g: g * 2)
    (x * 3).sum().backward()
    assert x.grad.tolist() == [6, 6]
    h.remove()
    x.grad = None
    (x * 3).sum().backward()
    assert x.grad.tolist() == [3, 3]
    seen = []
    x.register_post_accumulate_grad_hook(lambda t: seen.append(t.grad.tolist()))
    (x * 1).sum().backward()
    assert seen == [[4, 4]]
    y = x * 2
    y.retain_grad()
    y.sum().backward()
    assert y.grad.tolist() == [1, 1] and y.retains_grad
    with pytest.raises(RuntimeError, match="cannot register a hook on a tensor that doesn't require gradient"):
        torch.ones(1).register_hook(print)


def test_grad_arguments():
    x = torch.ones(2, requires_grad=True)
    y = torch.ones(2, requires_grad=True)
    with pytest.raises(RuntimeError, match="appears to not have been used in the graph"):
        torch.autograd.grad((x * 2).sum(), [x, y])
    g = torch.autograd.grad((x * 2).sum(), [x, y], allow_unused=True)
    assert g[0].tolist() == [2, 2] and g[1] is None
    g = torch.autograd.grad((x * 2).sum(), [x, y], materialize_grads=True)
    assert g[1].tolist() == [0, 0]
    with pytest.raises(RuntimeError, match="grad can be implicitly created only for scalar outputs"):
        (x * 2).backward()
    with pytest.raises(RuntimeError, match="element 0 of tensors does not require grad and does not have a grad_fn"):
        torch.ones(1).backward()
    (x * y).sum().backward(inputs=[x])
    assert x.grad.tolist() == [1, 1] and y.grad is None
    (x * 2).backward(torch.tensor([1.0, 2.0]))
    assert x.grad.tolist() == [3, 5]


def test_saved_tensors_hooks():
    x = torch.tensor([2.0, 3.0], requires_grad=True)
    packed = []

    def pack(t):
        packed.append(t.tolist())
        return t.tolist()

    with torch.autograd.graph.saved_tensors_hooks(pack, lambda v: torch.tensor(v) * 10):
        y = x * x
    y.sum().backward()
    assert packed == [[2, 3], [2, 3]] and x.grad.tolist() == [40, 60]


def test_modes():
    x = torch.ones(2, requires_grad=True)
    with torch.no_grad():
        assert not (x * 2).requires_grad and not torch.is_grad_enabled()
    with torch.inference_mode():
        y = x * 2
        assert y.is_inference() and torch.is_inference_mode_enabled()
    assert not y.requires_grad and torch.is_grad_enabled()
    with pytest.raises(RuntimeError, match="Inplace update to inference tensor outside InferenceMode is not allowed"):
        y.add_(1)

"""Seams inside autograd: versions, views, in-place writes, reentrancy, depth."""
import threading

import pytest
from seam import IS_EMBER, torch


def test_data_written_between_forward_and_backward():
    x = torch.tensor([1., 2.], requires_grad=True)
    y = x * x
    x.data.mul_(10)  # its own version counter: the write is not seen, and backward uses the new bytes
    y.sum().backward()
    assert x.grad.tolist() == [20., 40.]
    z = torch.tensor([3.], requires_grad=True)
    w = z.exp()
    w.detach().mul_(2)  # shares the counter: the write is seen
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        w.sum().backward()


def test_no_grad_view_then_inplace():
    base = torch.ones(3, requires_grad=True).clone()
    with torch.no_grad():
        v = base[0]
    with pytest.raises(RuntimeError, match="no_grad"):
        v.mul_(2)
    with torch.no_grad():
        v.mul_(2)
    assert base.tolist() == [2., 1., 1.]


def test_sibling_views():
    x = torch.tensor([1., 2., 3., 4.], requires_grad=True)
    base = x * 1
    a, b = base[:2], base[1:]
    a.mul_(10)
    assert b.tolist() == [20., 3., 4.]
    assert type(b.grad_fn).__name__ == "AsStridedBackward0"
    b.sum().backward()
    assert x.grad.tolist() == [0., 10., 1., 1.]


def test_inplace_on_inference_tensor():
    with torch.inference_mode():
        t = torch.ones(2)
        t.add_(1)
    assert t.is_inference()
    with pytest.raises(RuntimeError, match="Inplace update to inference tensor outside InferenceMode"):
        t.add_(1)
    with torch.inference_mode():
        t.add_(1)
    assert t.tolist() == ([3., 3.] if IS_EMBER else [4., 4.])  # PyTorch writes before it refuses
    p = torch.ones(2, requires_grad=True)
    with pytest.raises(RuntimeError, match="Inference tensors cannot be saved for backward"):
        p * t


def test_view_dtype_inplace():
    x = torch.tensor([1., 2.], requires_grad=True)
    base = x * 1
    v = base.view(torch.int32)
    assert not v.requires_grad
    v.fill_(0x3f800000)
    assert base.tolist() == [1., 1.]
    c = torch.zeros(2, dtype=torch.complex64, requires_grad=True)
    z = c * 1
    r = torch.view_as_real(z)
    r.mul_(2)
    assert type(z.grad_fn).__name__ == "CopySlices"
    torch.view_as_real(z).sum().backward()
    assert c.grad.tolist() == [2 + 2j, 2 + 2j]


def test_as_strided_inplace():
    x = torch.arange(6.).requires_grad_()
    base = x * 1
    s = base.as_strided((2, 2), (3, 1), 1)
    s.mul_(5)
    assert base.tolist() == [0., 5., 10., 3., 20., 25.]
    base.sum().backward()
    assert x.grad.tolist() == [1., 5., 5., 1., 5., 5.]


def test_reentrant_backward_on_shared_leaf():
    w = torch.tensor([2.], requires_grad=True)

    class Inner(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return x.detach() ** 2

        @staticmethod
        def backward(ctx, g):
            (x,) = ctx.saved_tensors
            with torch.enable_grad():
                y = x.detach().requires_grad_()
                ((y ** 2) * w).sum().backward()  # adds y**2 = 9 to the shared leaf
            return g * y.grad / w.detach()

    x = torch.tensor([3.], requires_grad=True)
    (Inner.apply(x) * w).sum().backward()  # d/dw is x**2 = 9
    assert w.grad.item() == 18.
    assert x.grad.item() == 12.


def test_two_threads_backward():
    leaf = torch.zeros(8, requires_grad=True)
    errors = []

    def work():
        try:
            for _ in range(200):
                y = leaf
                for _ in range(4):
                    y = y + leaf
                y.sum().backward()
        except BaseException as e:
            errors.append(e)
    threads = [threading.Thread(target=work) for _ in range(2)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert not errors, errors
    assert leaf.grad.tolist() == [2 * 200 * 5.] * 8
    # one graph, walked by two threads at once
    leaf.grad = None
    y = (leaf * 2).sum()
    go = threading.Barrier(2)

    def walk():
        go.wait()
        for _ in range(100):
            y.backward(retain_graph=True)
    threads = [threading.Thread(target=walk) for _ in range(2)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert leaf.grad.tolist() == [400.] * 8


def test_long_chain_runs_and_is_freed():
    x = torch.ones(1, requires_grad=True)
    y = x
    for _ in range(100_000):
        y = y * 1
    y.backward()
    assert x.grad.item() == 1.
    y = x
    for _ in range(100_000):
        y = y * 1
    del y  # freed without backward: no recursion either


def test_ctx_holding_its_own_output():
    import gc
    import weakref
    dead = []

    class Probe:
        pass

    class F(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            y = x.exp()
            ctx.save_for_backward(y)
            ctx.probe = Probe()
            weakref.finalize(ctx.probe, dead.append, 1)
            return y

        @staticmethod
        def backward(ctx, g):
            return g * ctx.saved_tensors[0]
    x = torch.zeros(2, requires_grad=True)
    gc.disable()
    try:
        y = F.apply(x)
        y.sum().backward()
        assert x.grad.tolist() == [1., 1.]
        del y
        assert dead == [1], "save_for_backward of an output made a cycle"
    finally:
        gc.enable()

    class G(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.out = x.exp()  # a cycle of the user's making: only the collector can end it
            ctx.probe = Probe()
            weakref.finalize(ctx.probe, dead.append, 2)
            return ctx.out

        @staticmethod
        def backward(ctx, g):
            return g * ctx.out
    y = G.apply(x)
    del y
    gc.collect()
    assert dead == [1, 2]


def test_exception_through_hook_with_python_cleanup():
    log = []

    class Cleanup:
        def __del__(self):
            t = torch.ones(2)  # Python that runs operators while the error is in flight
            log.append((t + t).sum().item())

    def hook(g):
        guard = Cleanup()  # noqa: F841  (dies while the exception passes)
        raise KeyError("from the hook")
    x = torch.ones(2, requires_grad=True)
    y = x * 2
    y.register_hook(hook)
    try:
        (y * 3).sum().backward()
    except KeyError as e:
        assert "from the hook" in str(e)
        e.__traceback__ = None
    else:
        raise AssertionError("the exception was swallowed")
    import gc
    gc.collect()
    assert log == [4.]
    assert x.grad is None
    (x * 2).sum().backward()
    assert x.grad.tolist() == [2., 2.]


def test_views_of_a_dtype_view():
    """A view with the same dtype above a view that changed it: replayed in two steps, also from a base with an offset."""
    c = torch.tensor([0j, 1 + 2j, 3 + 4j], requires_grad=True)
    z = (c * 1)[1:]
    torch.view_as_real(z)[:, 1].mul_(10)
    assert z.tolist() == [1 + 20j, 3 + 40j]
    parts = torch.view_as_real(z).unbind(1)
    assert parts[1].tolist() == [20., 40.]
    z.imag.add_(1)
    torch.view_as_real(z).sum().backward()
    assert c.grad.tolist() == [0j, 1 + 10j, 1 + 10j]

"""autocast from Python: what is cast, for how long, and that gradients come back in float32."""

import threading

import pytest

import ember as torch


def product_dtype():
    return (torch.ones(2, 2) @ torch.ones(2, 2)).dtype


def test_products_inside_only():
    with torch.autocast("cpu"):
        assert torch.is_autocast_enabled("cpu") and product_dtype() == torch.bfloat16
        assert (torch.ones(2) + 1).dtype == torch.float32
        with torch.autocast("cpu", enabled=False):
            assert product_dtype() == torch.float32
        with torch.autocast("cpu", dtype=torch.float16):
            assert product_dtype() == torch.float16 and torch.get_autocast_dtype("cpu") == torch.float16
        assert product_dtype() == torch.bfloat16
    assert product_dtype() == torch.float32 and not torch.is_autocast_enabled("cpu")
    assert torch.get_autocast_dtype("cpu") == torch.bfloat16


def test_state_comes_back_after_an_exception():
    with pytest.raises(ZeroDivisionError), torch.autocast("cpu"):
        1 / 0
    assert product_dtype() == torch.float32


def test_losses_are_float32_and_so_are_gradients():
    model = torch.nn.Sequential(torch.nn.Linear(2, 4), torch.nn.ReLU(), torch.nn.Linear(4, 3))
    with torch.autocast("cpu"):
        out = model(torch.ones(2, 2))
        loss = torch.nn.functional.mse_loss(out, torch.zeros(2, 3))
    assert out.dtype == torch.bfloat16 and loss.dtype == torch.float32
    loss.backward()
    assert all(p.grad.dtype == torch.float32 and bool(p.grad.isfinite().all()) for p in model.parameters())


def test_decorator():
    @torch.autocast("cpu")
    def product(a):
        return a @ a

    assert product(torch.ones(2, 2)).dtype == torch.bfloat16 and product_dtype() == torch.float32


def test_other_threads_are_not_cast():
    seen = []
    with torch.autocast("cpu"):
        thread = threading.Thread(target=lambda: seen.append(product_dtype()))
        thread.start()
        thread.join()
    assert seen == [torch.float32]


def test_what_cannot_be_is_said():
    with pytest.warns(UserWarning, match="target dtype is not supported"):
        off = torch.autocast("cpu", dtype=torch.float32)
    with off:
        assert product_dtype() == torch.float32
    with pytest.warns(UserWarning, match="CUDA is not available"):
        torch.autocast("cuda")
    with pytest.raises(ValueError, match="Expected `device_type` of type `str`"):
        torch.autocast(1)
    with pytest.raises(RuntimeError, match="at start of device string: foo"):
        torch.autocast("foo")

"""Normalisation beyond the table: running statistics, mixed dtypes, memory formats, messages."""
import pytest
from subject import IS_EMBER, torch

F = __import__("ember.nn.functional" if IS_EMBER else "torch.nn.functional", fromlist=["x"])
nn = __import__("ember.nn" if IS_EMBER else "torch.nn", fromlist=["x"])


def close(a, b, tolerance=1e-5):
    assert a.shape == b.shape and ((a - b).abs() <= tolerance * (1 + b.abs())).all().item(), (a, b)


def test_running_statistics_move_by_momentum_and_keep_their_version():
    x = torch.arange(24.0).reshape(2, 3, 4)
    mean, var = torch.zeros(3), torch.ones(3)
    F.batch_norm(x, mean, var, training=True, momentum=0.5)
    close(mean, 0.5 * x.mean((0, 2)))
    close(var, 0.5 + 0.5 * x.transpose(0, 1).reshape(3, -1).var(1))
    assert mean._version == 0 and var._version == 0
    before = mean.clone()
    F.batch_norm(x, mean, var, training=False)
    assert torch.equal(mean, before)


def test_one_value_a_channel_has_no_unbiased_variance():
    mean, var = torch.zeros(3), torch.ones(3)
    torch.batch_norm(torch.ones(1, 3, 1), None, None, mean, var, True, 0.1, 1e-5, False)
    assert torch.isnan(var).all() and not torch.isnan(mean).any()
    with pytest.raises(ValueError, match="Expected more than 1 value per channel when training"):
        F.batch_norm(torch.ones(1, 3), mean, var, training=True)


def test_momentum_none_is_the_plain_average():
    layer = nn.BatchNorm1d(2, momentum=None)
    batches = [torch.randn(8, 2) for _ in range(3)]
    for x in batches:
        layer(x)
    close(layer.running_mean, torch.stack([x.mean(0) for x in batches]).mean(0))
    assert layer.num_batches_tracked.item() == 3


@pytest.mark.parametrize("half", ["float16", "bfloat16"])
def test_half_input_with_float_weights(half):
    x = torch.randn(4, 6, 5).to(getattr(torch, half))
    w, b = torch.rand(5), torch.rand(5)
    y, mean, rstd = torch.native_layer_norm(x, [5], w, b, 1e-5)
    assert y.dtype == x.dtype and mean.dtype == rstd.dtype == torch.float32
    close(y.float(), F.layer_norm(x.float(), [5], w, b), 1e-2)
    y, mean, _ = torch.native_batch_norm(x, torch.rand(6), torch.rand(6), None, None, True, 0.1, 1e-5)
    assert y.dtype == x.dtype and mean.dtype == torch.float32
    with pytest.raises(RuntimeError, match="mixed dtype \\(CPU\\): expect parameter to have scalar type of Float"):
        F.layer_norm(x, [5], w, b.to(x.dtype))


@pytest.mark.parametrize("shape, format", [((2, 6, 4, 5), "channels_last"), ((2, 6, 3, 4, 5), "channels_last_3d")])
def test_channels_last_stays_and_changes_nothing(shape, format):
    plain = torch.randn(*shape, dtype=torch.float64)
    last = plain.contiguous(memory_format=getattr(torch, format))
    w, b = torch.rand(6, dtype=torch.float64), torch.rand(6, dtype=torch.float64)
    for call in (lambda x: F.batch_norm(x, None, None, w, b, True), lambda x: F.group_norm(x, 3, w, b),
                 lambda x: F.batch_norm(x, w, b, w, b)):
        grads = []
        for x in (plain, last):
            x = x.detach().requires_grad_()
            y = call(x)
            grads.append((y.detach(), *torch.autograd.grad(y, x, plain)))
            assert y.stride() == x.stride() and grads[-1][1].stride() == x.stride()
        for a, c in zip(*grads):
            close(a, c, 1e-10)


def test_many_rows_and_long_rows():
    for shape in ((3000, 40), (3, 9000), (1, 70000)):
        x = torch.randn(*shape, dtype=torch.float64).requires_grad_()
        w = torch.rand(shape[1], dtype=torch.float64).requires_grad_()
        y = F.layer_norm(x, shape[1:], w)
        xhat = (x - x.mean(1, True)) / (x.var(1, keepdim=True, correction=0) + 1e-5).sqrt()
        g = torch.randn(*shape, dtype=torch.float64)
        for a, b in zip(torch.autograd.grad(y, [x, w], g), torch.autograd.grad(xhat * w, [x, w], g)):
            close(a, b, 1e-9)


def test_many_columns_and_parts():
    for shape in ((1500, 300), (5000, 7), (40, 9, 50, 3)):
        x = torch.randn(*shape, dtype=torch.float64).requires_grad_()
        axes = [d for d in range(len(shape)) if d != 1]
        y = F.batch_norm(x, None, None, training=True)
        want = (x - x.mean(axes, True)) / (x.var(axes, keepdim=True, correction=0) + 1e-5).sqrt()
        close(y, want, 1e-10)
        g = torch.randn(*shape, dtype=torch.float64)
        close(torch.autograd.grad(y, x, g)[0], torch.autograd.grad(want, x, g)[0], 1e-8)


def test_large_means_do_not_cancel():
    x = torch.randn(4, 1000) + 4096
    y = F.layer_norm(x, [1000])
    close(y.std(1, correction=0), torch.ones(4), 1e-3)


@pytest.mark.skipif(not IS_EMBER, reason="PyTorch has the fused backward on other devices only")
def test_rms_backward_operator():
    x, g, w = (torch.randn(3, 4, dtype=torch.float64) for _ in range(3))
    w = w[0]
    _, rstd = torch._fused_rms_norm(x, [4], w, 1e-3)
    dx, dw = torch.ops.aten._fused_rms_norm_backward(g, x, [4], rstd, w, [True, True])
    x.requires_grad_(), w.requires_grad_()
    want = torch.autograd.grad(x / (x.pow(2).mean(1, True) + 1e-3).sqrt() * w, [x, w], g)
    close(dx, want[0], 1e-10)
    close(dw, want[1], 1e-10)
    assert torch.ops.aten._fused_rms_norm_backward(g, x.detach(), [4], rstd, None, [True, False])[1] is None


def test_empty_batches_keep_the_graph():
    x, w, b = torch.ones(0, 3, 4, requires_grad=True), torch.ones(3, requires_grad=True), torch.ones(3, requires_grad=True)
    y = torch.batch_norm(x, w, b, None, None, True, 0.1, 1e-5, False)
    assert y.shape == (0, 3, 4)
    assert [g.shape for g in torch.autograd.grad(y.sum(), [x, w, b])] == [(0, 3, 4), (3,), (3,)]
    assert F.layer_norm(torch.ones(0, 5), [5]).shape == (0, 5) and F.layer_norm(torch.ones(3, 0), [0]).shape == (3, 0)
    assert torch.group_norm(torch.ones(2, 6, 0), 2).shape == (2, 6, 0)


BAD = [
    (lambda x: F.layer_norm(x, (4,)), RuntimeError, "Given normalized_shape=[4], expected input with shape [*, 4], but got"),
    (lambda x: F.layer_norm(x, ()), RuntimeError, "Expected normalized_shape to be at least 1-dimensional"),
    (lambda x: F.layer_norm(x, (5,), torch.ones(4)), RuntimeError, "Expected weight to be of same shape as normalized_shape"),
    (lambda x: F.layer_norm(x.int(), (5,)), NotImplementedError, "\"LayerNormKernelImpl\" not implemented for 'Int'"),
    (lambda x: F.layer_norm(x.double(), (5,), torch.ones(5)), RuntimeError, "mixed dtype (CPU): all inputs must share"),
    (lambda x: F.batch_norm(x, None, None), RuntimeError, "running_mean must be defined in evaluation mode"),
    (lambda x: F.batch_norm(x, torch.ones(6), None, training=True), ValueError, "running_mean and running_var must either"),
    (lambda x: F.batch_norm(x, None, None, torch.ones(2), training=True), RuntimeError, "weight should contain 6 elements not 2"),
    (lambda x: F.batch_norm(x, None, None, training=True, eps=0.0), ValueError, "batch_norm eps must be positive"),
    (lambda x: torch.batch_norm(x[0, 0], None, None, None, None, True, 0.1, 1e-5, False), IndexError, "Dimension out of range"),
    (lambda x: F.group_norm(x, 4), RuntimeError, "Expected number of channels in input to be divisible by num_groups"),
    (lambda x: F.group_norm(x, -1), RuntimeError, "Expected num groups to be greater than 0, got -1"),
    (lambda x: F.group_norm(x[0, 0], 1), RuntimeError, "Expected at least 2 dimensions for input tensor but received 1"),
    (lambda x: F.group_norm(x, 3, torch.ones(3)), RuntimeError, "Expected weight to be a vector of size equal to the number"),
    (lambda x: F.instance_norm(x[:, :, :1]), ValueError, "Expected more than 1 spatial element when training"),
    (lambda x: F.instance_norm(x, use_input_stats=False), RuntimeError, "Expected running_mean and running_var to be defined"),
    (lambda x: F.rms_norm(x, (4,)), RuntimeError, "Given normalized_shape=[4], expected input with shape [*4]"),
    (lambda x: F.rms_norm(x.int(), (5,)), NotImplementedError, "\"rms_norm\" not implemented for 'Int'"),
    (lambda x: F.local_response_norm(x[0], 2), ValueError, "Expected 3D or higher dimensionality"),
    (lambda x: nn.BatchNorm2d(6)(x), ValueError, "expected 4D input (got 3D input)"),
    (lambda x: nn.InstanceNorm1d(5, affine=True)(x), ValueError, "expected input's size at dim=1 to match num_features (5)"),
    (lambda x: nn.GroupNorm(4, 6), ValueError, "num_channels (6) must be divisible by num_groups (4)"),
]


@pytest.mark.parametrize("number", range(len(BAD)))
def test_bad_input(number):
    call, error, words = BAD[number]
    with pytest.raises(error) as caught:
        call(torch.randn(4, 6, 5))
    assert str(caught.value).startswith(words)


def test_cross_map_keeps_its_first_channel():
    x = torch.arange(1.0, 7.0).reshape(1, 6, 1, 1)
    window = torch.tensor([5.0, 14, 30, 51, 78, 62])  # of squares, three wide; the first one stays
    close(nn.CrossMapLRN2d(4, alpha=1.0)(x).flatten(), x.flatten() * (window / 4 + 1).pow(-0.75))


def test_sync_batch_norm_takes_over():
    net = nn.Sequential(nn.Linear(3, 3), nn.Sequential(nn.BatchNorm1d(3)))
    made = nn.SyncBatchNorm.convert_sync_batchnorm(net)
    assert isinstance(made[1][0], nn.SyncBatchNorm) and list(made.state_dict()) == list(net.state_dict())

"""Convolutions beyond the table: shapes that take other ways through the kernels, numbers that are none, layouts, errors, modules."""
import os
import subprocess
import sys
import warnings

import numpy as np
import pytest
from subject import IS_EMBER, torch
from table_conv import image_gradient, plain, spread, weight_gradient

F, nn = torch.nn.functional, torch.nn

# sizes, kernel, stride, padding, dilation, groups: large pictures cut in all dims, many small ones, long kernels, strides beyond the
# kernel, channels in blocks, one channel a group
SHAPES = {
    "long row": ((1, 2, 5000), (3, 2, 5), 1, 2, 1, 1), "long kernel": ((2, 3, 300), (2, 3, 201), 1, 100, 1, 1),
    "wide dilation": ((1, 2, 400), (2, 2, 3), 1, 150, 150, 1), "small pictures": ((65, 3, 4, 4), (5, 3, 3, 3), 1, 1, 1, 1),
    "one pixel": ((9, 64, 1, 1), (40, 64, 1, 1), 1, 0, 1, 1), "whole picture": ((5, 8, 6, 6), (33, 8, 6, 6), 1, 0, 1, 1),
    "patches": ((2, 3, 32, 32), (48, 3, 8, 8), 8, 0, 1, 1), "stride beyond kernel": ((2, 2, 20, 21), (3, 2, 2, 2), 5, 1, 1, 1),
    "channel blocks": ((1, 150, 9, 9), (70, 150, 3, 3), 1, 1, 1, 1), "a channel a group": ((2, 19, 12, 13), (38, 1, 3, 3), 1, 1, 1, 19),
    "mixed": ((3, 6, 17, 19), (9, 2, 3, 4), (2, 3), (1, 2), (2, 1), 3), "large": ((1, 2, 80, 90), (3, 2, 3, 3), 1, 1, 1, 1),
    "depth": ((1, 2, 9, 20, 21), (3, 2, 3, 3, 3), (1, 2, 1), 1, 1, 1), "gap": ((1, 1, 40, 40), (1, 1, 2, 2), 1, 0, 30, 1),
}
LIMITS = {"float64": 1e-12, "float32": 2e-6, "bfloat16": 2e-2, "float16": 4e-3}


def tensors(name, dtype):
    sizes, kernel, stride, padding, dilation, groups = SHAPES[name]
    n, random = len(kernel) - 2, np.random.RandomState(len(name))
    settings = [spread(v, n) for v in (stride, padding, dilation)] + [groups]
    make = lambda shape: torch.tensor(random.randn(*shape)).to(getattr(torch, dtype))  # noqa: E731
    return make, make(sizes), make(kernel), settings


def near(got, want, dtype):
    got = got.detach().double().numpy()
    assert got.shape == want.shape
    assert np.abs(got - want).max() <= LIMITS[dtype] * max(1.0, np.abs(want).max())


@pytest.mark.parametrize("dtype", list(LIMITS))
@pytest.mark.parametrize("name", list(SHAPES))
def test_shapes(name, dtype):
    make, x, w, settings = tensors(name, dtype)
    a, b = x.double().numpy(), w.double().numpy()
    want = plain(a, b, *settings)
    x.requires_grad_()
    w.requires_grad_()
    y = getattr(F, f"conv{w.dim() - 2}d")(x, w, None, *settings)
    near(y, want, dtype)
    g = make(want.shape)
    gx, gw = torch.autograd.grad(y, (x, w), g)
    c = g.double().numpy()
    near(gx, image_gradient(c, b, a.shape[2:], *settings), dtype)
    near(gw, weight_gradient(a, c, b.shape[2:], *settings), dtype)


@pytest.mark.parametrize("name", ["small pictures", "mixed", "large", "channel blocks"])
def test_same_bits_for_any_number_of_threads(name):
    make, x, w, settings = tensors(name, "float32")
    x.requires_grad_()
    w.requires_grad_()

    def run(threads):
        before = torch.get_num_threads()
        torch.set_num_threads(threads)
        y = F.conv2d(x, w, None, *settings)
        made = [y, *torch.autograd.grad(y.sin().sum(), (x, w))]
        torch.set_num_threads(before)
        return [t.detach().numpy().tobytes() for t in made]

    assert run(1) == run(2)


def test_an_infinity_stays_where_it_is():
    x = torch.zeros(2, 1, 5, 5)
    x[0, 0, 0, 4] = float("inf")
    y = F.conv2d(x, torch.ones(1, 1, 3, 3))
    assert torch.isinf(y).sum().item() == 1 and not torch.isnan(y).any()
    w = torch.zeros(1, 1, 3, 3, requires_grad=True)
    F.conv2d(x, w).sum().backward()  # only the kernel's corner ever meets it
    assert torch.isinf(w.grad).flatten().tolist() == [False, False, True] + [False] * 6 and not torch.isnan(w.grad).any()


@pytest.mark.parametrize("format, dims", [("channels_last", 2), ("channels_last_3d", 3)])
def test_channels_last_goes_in_and_comes_out(format, dims):
    x, w = torch.randn(2, 3, *[5] * dims), torch.randn(4, 3, *[3] * dims)
    conv, last = getattr(F, f"conv{dims}d"), getattr(torch, format)
    want = conv(x, w)
    for a, b in ((x.to(memory_format=last), w), (x, w.to(memory_format=last))):
        got = conv(a, b)
        assert got.is_contiguous(memory_format=last) and torch.allclose(got, want, atol=1e-5)
    assert conv(x.permute(0, 1, *range(dims + 1, 1, -1)), w).is_contiguous()


def test_expanded_sliced_and_turned_inputs():
    base = torch.randn(3, 8, 9, 10)
    w = torch.randn(4, 4, 3, 3)
    for x in (base[:1, :4].expand(5, 4, 9, 10), base[:, ::2], base[:, :4, :, 1::2], base[:, :4].transpose(2, 3),
              base[:, :1].expand(3, 4, 9, 10)):
        assert torch.equal(F.conv2d(x, w), F.conv2d(x.contiguous(), w))
    v = torch.randn(3, 3, 4, 4).permute(3, 2, 1, 0)
    assert torch.equal(F.conv2d(base[:, :4], v[:, :, :, :3]), F.conv2d(base[:, :4], v[:, :, :, :3].contiguous()))


def test_second_order_reaches_every_operand():
    x, w, b = (torch.randn(*s, dtype=torch.float64, requires_grad=True) for s in ((2, 4, 5), (4, 2, 3), (4,)))
    plain_, turned = (lambda x, w, b: F.conv1d(x, w, b, 2, 1, 1, 2)), (lambda x, w, b: F.conv_transpose1d(x, w, b, 2, 1, 1, 1))
    assert torch.autograd.gradgradcheck(plain_, (x, w, b))
    assert torch.autograd.gradgradcheck(turned, (x, w, torch.randn(2, dtype=torch.float64, requires_grad=True)))


def test_only_what_is_wanted_is_made():
    g, x, w = torch.randn(1, 2, 3), torch.randn(1, 2, 5), torch.randn(2, 2, 3)
    backward = torch.ops.aten.convolution_backward
    for mask in ([True, False, False], [False, True, False], [False, False, True], [False, False, False]):
        made = backward(g, x, w, [2], [1], [0], [1], False, [0], 1, mask)
        assert [t is not None for t in made] == mask


def test_autocast_runs_in_the_lower_precision():
    x, w = torch.randn(1, 2, 5, 5), torch.randn(3, 2, 3, 3)
    with torch.autocast("cpu"):
        assert F.conv2d(x, w).dtype == torch.bfloat16 and F.conv_transpose2d(x, torch.randn(2, 3, 3, 3)).dtype == torch.bfloat16


def test_meta_agrees():
    x, w = torch.randn(2, 4, 9, 8), torch.randn(6, 2, 3, 3)
    y = F.conv2d(x, w, stride=2, padding=1, groups=2)
    m = F.conv2d(x.to("meta"), w.to("meta"), stride=2, padding=1, groups=2)
    assert m.shape == y.shape and m.stride() == y.stride() and m.is_meta


X, W = torch.randn(2, 4, 6, 6), torch.randn(4, 4, 3, 3)
HUGE = 1 << 62
BAD = [
    (lambda: F.conv2d(torch.randn(3), W),
     "Expected 3D (unbatched) or 4D (batched) input to conv2d, but got input of size: [3]"),
    (lambda: F.conv_transpose3d(torch.randn(3), W),
     "Expected 4D (unbatched) or 5D (batched) input to conv_transpose3d"),
    (lambda: F.conv2d(X[:, :3], W),
     "Given groups=1, weight of size [4, 4, 3, 3], expected input[2, 3, 6, 6] to have 4 channels, but got 3 channels"),
    (lambda: F.conv2d(X, torch.randn(3, 2, 3, 3), groups=2),
     "Given groups=2, expected weight to be divisible by 2 at dimension 0, but got"),
    (lambda: F.conv2d(X, W, groups=9), "Given groups=9, expected weight to be at least 9 at dimension 0"),
    (lambda: F.conv2d(X, W, groups=0), "non-positive groups is not supported"),
    (lambda: F.conv2d(X, W, stride=0), "non-positive stride is not supported"),
    (lambda: F.conv2d(X, W, padding=-1), "negative padding is not supported"),
    (lambda: F.conv2d(X, W, dilation=0), "non-positive dilation is not supported"),
    (lambda: F.conv2d(X, W, dilation=-1), "dilation should be greater than zero"),
    (lambda: F.conv2d(X, torch.randn(4, 4, 9, 9), padding=1),
     "Calculated padded input size per channel: (8 x 8). Kernel size: (9 x 9). Kernel"),
    (lambda: F.conv2d(X, W, torch.randn(5)),
     "Given weight of size [4, 4, 3, 3], expected bias to be 1-dimensional with 4 elements, but got"),
    (lambda: F.conv2d(X, W, stride=(1, 1, 1)),
     "expected stride to be a single integer value or a list of 2 values to match the convolution"),
    (lambda: F.conv2d(X, torch.randn(4, 4, 3)), "expected stride to be a single integer value or a list of 1 values"),
    (lambda: F.conv2d(X[:, :, :0], W, padding=2),
     "Only zero batch or zero channel inputs are supported, but got input shape: [2, 4, 0, 6]"),
    (lambda: F.conv2d(X, W.double()),
     "Input type (torch.FloatTensor) and weight type (torch.DoubleTensor) should be the same"),
    (lambda: F.conv2d(X, W, torch.zeros(4).double()), "Input type (float) and bias type (double) should be the same"),
    (lambda: F.conv2d(X, W, padding="same", stride=2), "padding='same' is not supported for strided convolutions"),
    (lambda: F.conv2d(X, W, padding="some"), "Invalid padding string: 'some'"),
    (lambda: F.conv2d(X, torch.randn(4, 4, 0, 3)),
     "could not create a primitive descriptor for the convolution forward propagation primitive"),
    (lambda: F.conv_transpose2d(X, W, stride=2, output_padding=2),
     "output padding must be smaller than either stride or dilation, but got output_padding_height: 2"),
    (lambda: F.conv_transpose2d(X, W, output_padding=-1), "negative output_padding is not supported"),
    (lambda: F.conv_transpose2d(X[:, :3], W),
     "Given transposed=1, weight of size [4, 4, 3, 3], expected input[2, 3, 6, 6] to have 4 channels"),
]


@pytest.mark.parametrize("number", range(len(BAD)))
def test_bad_input(number):
    call, words = BAD[number]
    with pytest.raises(RuntimeError) as raised:
        call()
    assert str(raised.value).startswith(words)


@pytest.mark.parametrize("transposed, name", [(t, n) for t in (False, True) for n in ("padding", "stride", "dilation", "groups")]
                         + [(True, "output_padding")])
def test_huge_numbers_raise_or_compute(transposed, name):
    for value in (1 << 31, 1 << 40, HUGE, (1 << 63) - 1):
        try:
            y = (F.conv_transpose2d if transposed else F.conv2d)(X.to("meta"), W.to("meta"), **{name: value})
            assert y.shape[0] == 2
        except (RuntimeError, TypeError):
            pass  # too large for memory or 64 bits: an error, not a crash
    assert F.conv2d(X, W, stride=HUGE).shape == (2, 4, 1, 1)


# ---- modules ---------------------------------------------------------------------------------------------------

def test_modules_text_and_parameters():
    assert repr(nn.Conv2d(4, 6, (3, 5), stride=(2, 1), padding=(4, 2), dilation=(3, 1), groups=2, bias=False, padding_mode="reflect")) == (
        "Conv2d(4, 6, kernel_size=(3, 5), stride=(2, 1), padding=(4, 2), dilation=(3, 1), groups=2, bias=False, padding_mode=reflect)")
    assert repr(nn.ConvTranspose1d(4, 6, 3, stride=2, output_padding=1)) == (
        "ConvTranspose1d(4, 6, kernel_size=(3,), stride=(2,), output_padding=(1,))")
    assert nn.Conv2d(4, 6, 3, groups=2).weight.shape == (6, 2, 3, 3)
    assert nn.ConvTranspose3d(4, 6, 3, groups=2).weight.shape == (4, 3, 3, 3, 3)


def test_initial_weights_are_the_seeds():
    torch.manual_seed(0)  # numbers from PyTorch 2.13
    m = nn.Conv1d(4, 6, 3)
    assert round(m.weight.detach().double().sum().item(), 6) == -0.770883
    assert round(m.bias.detach().double().sum().item(), 6) == 0.664979


@pytest.mark.parametrize("make, words", [
    (lambda: nn.Conv2d(3, 4, 3, groups=0), "groups must be a positive integer"),
    (lambda: nn.Conv2d(3, 4, 3, groups=2), "in_channels must be divisible by groups"),
    (lambda: nn.Conv2d(4, 3, 3, groups=2), "out_channels must be divisible by groups"),
    (lambda: nn.Conv2d(3, 4, 3, padding="some"), "Invalid padding string 'some', should be one of"),
    (lambda: nn.Conv2d(3, 4, 3, padding="same", stride=2),
     "padding='same' is not supported for strided convolutions"),
    (lambda: nn.Conv2d(3, 4, 3, padding_mode="some"), "padding_mode must be one of"),
    (lambda: nn.ConvTranspose2d(3, 4, 3, padding_mode="reflect"), 'Only "zeros" padding mode is supported for ConvTranspose2d'),
    (lambda: nn.ConvTranspose2d(4, 6, 3, stride=2)(X, output_size=(17, 13)),
     "requested an output size of (17, 13), but valid sizes range from [13, 13] to [14, 14]"),
    (lambda: nn.ConvTranspose2d(4, 6, 3)(X, output_size=(8,)),
     "ConvTranspose2D: for 4D input, output_size must have 2 or 4 elements (got 1)"),
])
def test_modules_refuse(make, words):
    with pytest.raises(ValueError) as raised:
        make()
    assert str(raised.value).startswith(words)


@pytest.mark.parametrize("mode", ["reflect", "replicate", "circular"])
def test_padding_modes(mode):
    m = nn.Conv2d(4, 2, 3, padding=(1, 2), padding_mode=mode)
    assert torch.allclose(m(X), F.conv2d(F.pad(X, (2, 2, 1, 1), mode=mode), m.weight, m.bias), atol=1e-6)
    same = nn.Conv1d(4, 2, 4, padding="same", padding_mode=mode)
    assert same(torch.randn(2, 4, 6)).shape == (2, 2, 6)


def test_output_size_picks_the_output_padding():
    m = nn.ConvTranspose2d(4, 6, 3, stride=2)
    assert m(X, output_size=(14, 13)).shape == (2, 6, 14, 13)
    assert m(X, output_size=[2, 6, 13, 14]).shape == (2, 6, 13, 14)


LAZY = [("Conv1d", (6, 3), (2, 4, 9)), ("Conv2d", (6, 3), (2, 4, 9, 9)), ("Conv3d", (6, 3), (4, 5, 5, 5)),
        ("ConvTranspose1d", (6, 3), (2, 4, 9)), ("ConvTranspose2d", (6, 3), (2, 4, 9, 9)),
        ("ConvTranspose3d", (6, 3), (2, 4, 3, 3, 3)), ("Linear", (5,), (2, 3, 4))]


@pytest.mark.parametrize("name, args, sizes", LAZY)
def test_lazy_modules(name, args, sizes):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        lazy, other, third = (getattr(nn, "Lazy" + name)(*args) for _ in range(3))
    plain_ = getattr(nn, name)
    assert lazy.has_uninitialized_params() and repr(lazy.weight) == "<UninitializedParameter>"
    with pytest.raises(RuntimeError, match="Can't access the shape of an uninitialized parameter"):
        _ = lazy.weight.shape
    with pytest.raises(ValueError, match="Attempted to use an uninitialized parameter"):
        _ = lazy.weight + 1
    x = torch.randn(*sizes)
    torch.manual_seed(1)
    lazy(x)
    torch.manual_seed(1)
    known = plain_(4, *args)
    assert type(lazy) is plain_ and type(lazy.weight) is nn.Parameter
    for key, value in known.state_dict().items():
        assert torch.equal(value, lazy.state_dict()[key])
    other.load_state_dict(lazy.state_dict())
    assert torch.equal(other(x), lazy(x)) and type(other) is plain_
    assert "UninitializedParameter" in repr(third.state_dict()["weight"])
    with pytest.raises(RuntimeError, match="Can't access the shape"):
        lazy.load_state_dict(third.state_dict())


def test_lazy_modules_check():
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # PyTorch 2.13 no longer calls them new
        m = nn.LazyConv2d(6, 3, groups=3)
    with pytest.raises(RuntimeError, match="Expected 3D .* input to LazyConv2d"):
        m(torch.randn(3))
    with pytest.raises(ValueError, match="in_channels must be divisible by groups"):
        m(X)


@pytest.mark.skipif(not IS_EMBER, reason="PyTorch has builds of its own")
def test_same_bits_with_fused_instructions_of_either_width():
    program = (
        "import ember as T, hashlib\nT.manual_seed(0)\n"
        "for xs, ws, s, p in (((3, 64, 14, 14), (70, 64, 3, 3), 1, 1), ((2, 3, 40, 40), (8, 3, 5, 5), 2, 2),\n"
        "                     ((2, 200, 7, 7), (90, 200, 3, 3), 1, 1)):\n"
        "    x, w = T.randn(*xs, requires_grad=True), T.randn(*ws, requires_grad=True)\n"
        "    y = T.nn.functional.conv2d(x, w, None, s, p)\n"
        "    for t in (y, *T.autograd.grad(y, (x, w), T.randn(*y.shape))):\n"
        "        print(hashlib.md5(t.detach().numpy().tobytes()).hexdigest())\n")
    with open("/proc/cpuinfo", encoding="utf-8") as file:
        if "avx512dq" not in file.read():
            pytest.skip("this processor has no AVX-512")
    run = lambda build: subprocess.run([sys.executable, "-c", program], env=dict(os.environ, EMBER_ISA=build),  # noqa: E731
                                       capture_output=True, text=True, check=True).stdout
    made = [run(build) for build in ("avx2", "avx512")]
    assert made[0] == made[1] and len(made[0].split()) == 9


@pytest.mark.parametrize("dims", [1, 2, 3])
def test_gradients_as_functions(dims):
    x = torch.randn(2, 4, *[7] * dims, requires_grad=True)
    w = torch.randn(6, 2, *[3] * dims, requires_grad=True)
    settings = (2, 1, 1, 2)
    y = getattr(F, f"conv{dims}d")(x, w, None, *settings)
    g = torch.randn(*y.shape)
    gx, gw = torch.autograd.grad(y, (x, w), g)
    assert torch.allclose(getattr(nn.grad, f"conv{dims}d_input")(x.shape, w, g, *settings), gx, atol=1e-5)
    assert torch.allclose(getattr(nn.grad, f"conv{dims}d_weight")(x, w.shape, g, *settings), gw, atol=1e-5)

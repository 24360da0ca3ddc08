"""Layers of pooling, padding, upsampling and folding: repr, shape, and one number each of values and gradients, from PyTorch 2.13.

The numbers are sums weighted by cosines, so that every element counts and none cancels another."""
# lint: table
import math

import pytest

import ember as torch
from ember import nn
from ember.nn import functional as F

LAYERS = [
    ('MaxPool1d(3, 2, 1)', 'x1',
     'MaxPool1d(kernel_size=3, stride=2, padding=1, dilation=1, ceil_mode=False)', (2, 4, 5), -2.95801, -2.06846),
    ('MaxPool2d(3, stride=2, padding=1, ceil_mode=True)', 'x',
     'MaxPool2d(kernel_size=3, stride=2, padding=1, dilation=1, ceil_mode=True)', (2, 4, 4, 5), -1.59314, 3.96971),
    ('MaxPool3d(2, dilation=(1, 2, 1))', 'x3',
     'MaxPool3d(kernel_size=2, stride=2, padding=0, dilation=(1, 2, 1), ceil_mode=False)', (2, 2, 2, 1, 3), -2.35918, 0.61295),
    ('AvgPool1d(3, 2, 1, ceil_mode=True)', 'x1',
     'AvgPool1d(kernel_size=(3,), stride=(2,), padding=(1,))', (2, 4, 5), -1.11502, -0.6982),
    ('AvgPool2d((2, 3), padding=(0, 1), count_include_pad=False)', 'x',
     'AvgPool2d(kernel_size=(2, 3), stride=(2, 3), padding=(0, 1))', (2, 4, 3, 3), 0.31816, 9.8888),
    ('AvgPool3d(2, divisor_override=3)', 'x3',
     'AvgPool3d(kernel_size=2, stride=2, padding=0)', (2, 2, 2, 2, 3), -0.92295, 0.00471),
    ('LPPool1d(2, 3)', 'x1.abs()',
     'LPPool1d(norm_type=2, kernel_size=3, stride=None, ceil_mode=False)', (2, 4, 3), -7.27555, -0.21231),
    ('LPPool2d(3, 2, stride=1)', 'x.abs()',
     'LPPool2d(norm_type=3, kernel_size=2, stride=1, ceil_mode=False)', (2, 4, 5, 7), 3.74438, 15.55425),
    ('LPPool3d(2, 2)', 'x3.abs()',
     'LPPool3d(norm_type=2, kernel_size=2, stride=None, ceil_mode=False)', (2, 2, 2, 2, 3), -11.88023, 0.88461),
    ('AdaptiveMaxPool1d(4)', 'x1',
     'AdaptiveMaxPool1d(output_size=4)', (2, 4, 4), -0.8919, -1.54106),
    ('AdaptiveMaxPool2d((3, None))', 'x',
     'AdaptiveMaxPool2d(output_size=(3, None))', (2, 4, 3, 8), -6.81317, 1.95019),
    ('AdaptiveMaxPool3d(2)', 'x3',
     'AdaptiveMaxPool3d(output_size=2)', (2, 2, 2, 2, 2), 0.00116, -3.5809),
    ('AdaptiveAvgPool1d(4)', 'x1',
     'AdaptiveAvgPool1d(output_size=4)', (2, 4, 4), 0.34749, 0.09679),
    ('AdaptiveAvgPool2d((None, 3))', 'x',
     'AdaptiveAvgPool2d(output_size=(None, 3))', (2, 4, 6, 3), 9.18003, 0.41496),
    ('AdaptiveAvgPool3d((1, 2, 3))', 'x3',
     'AdaptiveAvgPool3d(output_size=(1, 2, 3))', (2, 2, 1, 2, 3), 0.03444, 0.01678),
    ('AdaptiveAvgPool2d(1)', 'x',
     'AdaptiveAvgPool2d(output_size=1)', (2, 4, 1, 1), 0.47219, 0.01104),
    ('ZeroPad1d(2)', 'x1',
     'ZeroPad1d((2, 2))', (2, 4, 13), -2.82789, -1.78622),
    ('ZeroPad2d((1, 2, 0, 1))', 'x',
     'ZeroPad2d((1, 2, 0, 1))', (2, 4, 7, 11), -1.86799, 2.20885),
    ('ZeroPad3d(1)', 'x3',
     'ZeroPad3d((1, 1, 1, 1, 1, 1))', (2, 2, 6, 6, 8), -52.81181, 1.20845),
    ('ConstantPad1d((1, 2), 3.5)', 'x1',
     'ConstantPad1d(padding=(1, 2), value=3.5)', (2, 4, 12), -6.51769, -0.98301),
    ('ConstantPad2d((-1, 2, 0, 1), 3.5)', 'x',
     'ConstantPad2d(padding=(-1, 2, 0, 1), value=3.5)', (2, 4, 7, 9), -4.02953, 3.00165),
    ('ConstantPad3d(1, -2.0)', 'x3',
     'ConstantPad3d(padding=(1, 1, 1, 1, 1, 1), value=-2.0)', (2, 2, 6, 6, 8), -62.47589, 1.20845),
    ('ReflectionPad1d((3, 1))', 'x1',
     'ReflectionPad1d((3, 1))', (2, 4, 13), 0.15817, -3.81875),
    ('ReflectionPad2d((1, 2, 3, 0))', 'x',
     'ReflectionPad2d((1, 2, 3, 0))', (2, 4, 9, 11), -34.98886, 6.83182),
    ('ReflectionPad3d(1)', 'x3',
     'ReflectionPad3d((1, 1, 1, 1, 1, 1))', (2, 2, 6, 6, 8), -241.08459, 0.33974),
    ('ReplicationPad1d((3, 1))', 'x1',
     'ReplicationPad1d((3, 1))', (2, 4, 13), -1.14408, -3.80238),
    ('ReplicationPad2d((1, 2, 3, 0))', 'x',
     'ReplicationPad2d((1, 2, 3, 0))', (2, 4, 9, 11), -31.89786, -1.3433),
    ('ReplicationPad3d((1, 0, 2, 1, 0, 3))', 'x3',
     'ReplicationPad3d((1, 0, 2, 1, 0, 3))', (2, 2, 7, 7, 7), -182.4783, 0.61631),
    ('CircularPad1d((3, 1))', 'x1',
     'CircularPad1d((3, 1))', (2, 4, 13), -6.35818, -5.04087),
    ('CircularPad2d((1, 2, 3, 0))', 'x',
     'CircularPad2d((1, 2, 3, 0))', (2, 4, 9, 11), -26.64641, 2.14378),
    ('CircularPad3d(1)', 'x3',
     'CircularPad3d((1, 1, 1, 1, 1, 1))', (2, 2, 6, 6, 8), -46.95919, 0.54787),
    ('Upsample(scale_factor=1.5)', 'x',
     "Upsample(scale_factor=1.5, mode='nearest')", (2, 4, 9, 12), -46.01814, 0.97506),
    ("Upsample(size=(5, 7), mode='bilinear', align_corners=True)", 'x',
     "Upsample(size=(5, 7), mode='bilinear')", (2, 4, 5, 7), 0.5959, -5.78588),
    ("Upsample(scale_factor=(2, 1.25), mode='bicubic')", 'x',
     "Upsample(scale_factor=(2.0, 1.25), mode='bicubic')", (2, 4, 12, 10), -4.76056, 0.84153),
    ("Upsample(12, mode='linear')", 'x1',
     "Upsample(size=12, mode='linear')", (2, 4, 12), -2.29595, -1.53721),
    ("Upsample(scale_factor=2, mode='trilinear')", 'x3',
     "Upsample(scale_factor=2.0, mode='trilinear')", (2, 2, 8, 8, 12), -7.54591, -0.0729),
    ('UpsamplingNearest2d(size=(4, 9))', 'x',
     "UpsamplingNearest2d(size=(4, 9), mode='nearest')", (2, 4, 4, 9), -0.40679, -52.37828),
    ('UpsamplingBilinear2d(scale_factor=2)', 'x',
     "UpsamplingBilinear2d(scale_factor=2.0, mode='bilinear')", (2, 4, 12, 16), -0.94061, -3.07303),
    ('Unfold((2, 3), dilation=2, padding=1, stride=(1, 2))', 'x',
     'Unfold(kernel_size=(2, 3), dilation=2, padding=1, stride=(1, 2))', (2, 24, 18), -3.73329, 6.34031),
    ('Fold((4, 6), 2, stride=2)', 'x.reshape(2, 4, 48)[:, :, :6].repeat(1, 4, 1)[:, :16]',
     'Fold(output_size=(4, 6), kernel_size=2, dilation=1, padding=0, stride=2)', (2, 4, 4, 6), -1.60229, -0.13112),
    ('PixelShuffle(2)', 'x',
     'PixelShuffle(upscale_factor=2)', (2, 1, 12, 16), 5.30111, -0.93245),
    ('PixelUnshuffle(2)', 'x',
     'PixelUnshuffle(downscale_factor=2)', (2, 16, 3, 4), -5.26468, 0.01565),
    ('ChannelShuffle(2)', 'x',
     'ChannelShuffle(groups=2)', (2, 4, 6, 8), -17.29933, 0.1331),
    ('FractionalMaxPool2d(2, output_size=(3, 5))', 'x',
     'FractionalMaxPool2d()', (2, 4, 3, 5), 0.16086, 0.32619),
    ('FractionalMaxPool3d((2, 2, 1), output_ratio=0.6)', 'x3',
     'FractionalMaxPool3d()', (2, 2, 2, 2, 3), -0.49253, -0.66575),
]


def inputs():
    x = (torch.arange(2 * 4 * 6 * 8.).mul(0.37).sin() * 3).reshape(2, 4, 6, 8)
    return {"x": x, "x1": x.reshape(2, 4, 48)[:, :, :9], "x3": x.reshape(2, 2, 4, 4, 6)}


def weighted(t, step):
    return (t.double() * torch.arange(t.numel(), dtype=torch.float32).mul(step).cos().reshape(t.shape)).sum().item()


@pytest.mark.parametrize("layer, given, text, shape, value, slope", LAYERS, ids=[row[0] for row in LAYERS])
def test_layer(layer, given, text, shape, value, slope):
    torch.manual_seed(5)
    module, x = eval("nn." + layer), eval(given, inputs()).clone().requires_grad_()
    assert repr(module) == text and not module.state_dict()
    y = module(x)
    assert tuple(y.shape) == shape
    assert math.isclose(weighted(y.detach(), 0.71), value, rel_tol=1e-5, abs_tol=2e-4)
    (y * torch.arange(y.numel(), dtype=torch.float32).mul(0.71).cos().reshape(y.shape)).sum().backward()
    assert math.isclose(weighted(x.grad, 0.53), slope, rel_tol=1e-5, abs_tol=2e-4)


def test_indices_bring_maxima_back():
    x = inputs()["x"]
    pooled, indices = nn.MaxPool2d(2, return_indices=True)(x)
    assert indices.dtype == torch.int64 and torch.equal(x.flatten(2).gather(2, indices.flatten(2)), pooled.flatten(2))
    back = nn.MaxUnpool2d(2)(pooled, indices)
    assert back.shape == x.shape and torch.equal(nn.MaxPool2d(2)(back.clamp_min(0)), pooled.clamp_min(0))
    assert (back != 0).sum().item() == pooled.numel()
    one, at = F.max_pool1d(inputs()["x1"], 2, return_indices=True)
    assert F.max_unpool1d(one, at, 2, output_size=(9,)).shape == (2, 4, 9)
    three, at = F.max_pool3d(inputs()["x3"], 2, return_indices=True)
    assert torch.equal(nn.MaxUnpool3d(2)(three, at).amax((2, 3, 4)), three.amax((2, 3, 4)).clamp_min(0))


def test_nan_is_the_largest_and_ties_go_to_the_first():
    nan, inf = float("nan"), float("inf")
    x = torch.tensor([[[1.0, nan, 2.0, 2.0], [-inf, -inf, -inf, -inf]]])
    value, index = F.max_pool1d(x, 2, return_indices=True)
    assert str(value.tolist()) == "[[[nan, 2.0], [-inf, -inf]]]" and index.tolist() == [[[1, 2], [0, 2]]]
    value, index = F.max_pool2d(torch.tensor([[[[nan, 5.0], [nan, 7.0]]]]), 2, return_indices=True)
    assert math.isnan(value.item()) and index.item() == 2  # the last NaN
    value, index = F.adaptive_max_pool2d(torch.full((1, 1, 4, 4), -inf), 2, return_indices=True)
    assert index.flatten().tolist() == [0, 2, 8, 10]


@pytest.mark.parametrize("call", [lambda x: F.max_pool2d(x, 3, 2, 1), lambda x: F.avg_pool2d(x, 2), lambda x: F.pad(x, (1, 1)),
                                  lambda x: F.adaptive_avg_pool2d(x, 3), lambda x: F.adaptive_avg_pool2d(x, 1),
                                  lambda x: F.pad(x, (1, 2, 1, 2), "reflect"), lambda x: F.interpolate(x, scale_factor=2),
                                  lambda x: F.interpolate(x, (5, 5), mode="bilinear"), lambda x: F.pixel_shuffle(x, 2)])
def test_channels_last_stays(call):
    x = inputs()["x"]
    last = x.contiguous(memory_format=torch.channels_last).requires_grad_()
    y = call(last)
    assert y.is_contiguous(memory_format=torch.channels_last) and torch.allclose(y, call(x))
    y.sum().backward()
    plain = x.clone().requires_grad_()
    call(plain).sum().backward()
    assert torch.allclose(last.grad, plain.grad)


def test_one_row_and_many_threads_agree():
    x = torch.arange(3 * 300 * 301.).mul(0.37).sin().reshape(1, 3, 300, 301)
    before = torch.get_num_threads()
    def results():
        return [*F.max_pool2d(x, 3, 2, 1, return_indices=True), F.avg_pool2d(x, 3, 1, 1), F.pad(x, (3, 4, 5, 6), value=2.0),
                F.pad(x, (3, 4, 5, 6), "reflect"), F.interpolate(x, (500, 211), mode="bicubic"),
                F.unfold(x, 3, stride=2), F.adaptive_max_pool2d(x, (17, 19))]
    try:
        torch.set_num_threads(1)
        one = results()
        torch.set_num_threads(2)
        assert all(torch.equal(a, b) for a, b in zip(one, results()))
    finally:
        torch.set_num_threads(before)


BYTES = [
    ('nearest', False, None, 1212690),
    ('nearest-exact', False, None, 1170178),
    ('bilinear', False, False, 1211667),
    ('bilinear', False, True, 1189589),
    ('bicubic', False, False, 1209883),
    ('bilinear', True, False, 1218855),
    ('bicubic', True, True, 1208487),
]


@pytest.mark.parametrize("mode, antialias, align, total", BYTES)
def test_bytes_are_rounded_dim_by_dim(mode, antialias, align, total):
    """PyTorch's very numbers: weights of 16 bits, a byte between the dims."""
    x = (torch.arange(2 * 3 * 5 * 6) * 37 % 256).to(torch.uint8).reshape(2, 3, 5, 6)
    y = F.interpolate(x, (8, 4), mode=mode, antialias=antialias, align_corners=align)
    assert y.dtype == torch.uint8 and (y.long().flatten() * (torch.arange(y.numel()) % 97)).sum().item() == total


def test_antialias_of_a_picture_smaller_than_the_filter():
    """Outputs see one or two of the two inputs: 1, 1, 0.8, 0.6 ... of the first, from the triangle around each."""
    x = torch.tensor([[[[1.0, 0.0]]]], dtype=torch.float64)
    y = F.interpolate(x, (1, 10), mode="bilinear", antialias=True)
    want = [1, 1, 1, 0.8, 0.6, 0.4, 0.2, 0, 0, 0]
    assert torch.allclose(y.flatten(), torch.tensor(want, dtype=torch.float64))


def test_grid_sample_of_the_identity_is_the_picture():
    x = inputs()["x"].double()
    theta = torch.tensor([[[1.0, 0, 0], [0, 1, 0]]], dtype=torch.float64).repeat(2, 1, 1)
    for align in (False, True):
        grid = F.affine_grid(theta, x.shape, align)
        for mode in ("bilinear", "nearest", "bicubic"):
            assert torch.allclose(F.grid_sample(x, grid, mode=mode, align_corners=align), x)


def test_large_planes_keep_their_positions():
    x = torch.zeros(1, 1, 1, 70000)
    x[..., 69999] = 1
    assert F.max_pool2d(x, (1, 70000), return_indices=True)[1].item() == 69999

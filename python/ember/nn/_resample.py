"""Interpolation, grids, folding and shuffling of torch.nn.functional, which re-exports what stands here."""

from typing import Any

import warnings

import ember
from ember import _C
from ember.overrides import handle_torch_function, has_torch_function_unary, has_torch_function_variadic

from ._pooling import _ints, adaptive_avg_pool1d, adaptive_avg_pool2d, adaptive_avg_pool3d

_nn = _C._nn
pixel_shuffle = ember.pixel_shuffle
pixel_unshuffle = ember.pixel_unshuffle
channel_shuffle = ember.channel_shuffle
native_channel_shuffle = ember.native_channel_shuffle

__all__ = ["interpolate", "upsample", "upsample_nearest", "upsample_bilinear", "grid_sample", "affine_grid", "unfold",
           "fold", "pixel_shuffle", "pixel_unshuffle", "channel_shuffle", "native_channel_shuffle"]

_MODES = "nearest | linear | bilinear | bicubic | trilinear | lanczos | area | nearest-exact"
# What each mode calls, by the number of dims of its input.
_NEAREST = {3: "upsample_nearest1d", 4: "upsample_nearest2d", 5: "upsample_nearest3d"}
_EXACT = {3: "_upsample_nearest_exact1d", 4: "_upsample_nearest_exact2d", 5: "_upsample_nearest_exact3d"}
_SMOOTH = {("linear", 3): "upsample_linear1d", ("bilinear", 4): "upsample_bilinear2d",
           ("trilinear", 5): "upsample_trilinear3d", ("bicubic", 4): "upsample_bicubic2d"}
_ANTIALIASED = {"bilinear": "_upsample_bilinear2d_aa", "bicubic": "_upsample_bicubic2d_aa",
                "lanczos": "_upsample_lanczos2d_aa"}
_RANK = {"linear": 3, "bilinear": 4, "trilinear": 5}


def _is_int(value):
    return isinstance(value, int) or isinstance(value, ember.Tensor)


def _target(input, size, scale_factor):
    """(output sizes, scale factors), one of which is None."""
    dim = input.dim() - 2
    if size is not None and scale_factor is not None:
        raise ValueError("only one of size or scale_factor should be defined")
    spatial = list(input.shape[2:])
    if size is not None:
        if isinstance(size, (list, tuple)):
            if len(size) != dim:
                raise ValueError("Input and output must have the same number of spatial dimensions, but got input with "
                                 f"spatial dimensions of {spatial} and output size of {size}. Please provide input "
                                 "tensor in (N, C, d1, d2, ...,dK) format and output size in (o1, o2, ...,oK) format.")
            if not all(_is_int(x) for x in size):
                raise TypeError("expected size to be one of int or Tuple[int] or Tuple[int, int] or Tuple[int, int, "
                                f"int], but got size with types {[type(x) for x in size]}")
            return size, None
        return [size for _ in range(dim)], None
    if scale_factor is None:
        raise ValueError("either size or scale_factor should be defined")
    if isinstance(scale_factor, (list, tuple)):
        if len(scale_factor) != dim:
            raise ValueError("Input and scale_factor must have the same number of spatial dimensions, but got input with "
                             f"spatial dimensions of {spatial} and scale_factor of shape {scale_factor}. Please provide "
                             "input tensor in (N, C, d1, d2, ...,dK) format and scale_factor in (s1, s2, ...,sK) format.")
        return None, scale_factor
    return None, [scale_factor for _ in range(dim)]


def interpolate(input, size=None, scale_factor=None, mode="nearest", align_corners=None, recompute_scale_factor=None,
                antialias=False) -> "ember.Tensor":
    """input (N, C, ...) with one to three dimensions of space, resampled to `size`, or to floor(size * scale_factor); exactly
    one of both is given, ValueError otherwise.

    mode: "nearest", "nearest-exact", "linear" (3-d input), "bilinear", "bicubic", "lanczos" (4-d), "trilinear" (5-d),
    "area" (means). align_corners: whether the corner elements of both grids lie on each other; for the linear and cubic
    modes alone, ValueError otherwise. recompute_scale_factor: take the factor from the rounded size. antialias: widen the
    filter when shrinking, for bilinear, bicubic and lanczos. floating point; nearest takes uint8 too. Differentiable in
    input.

    >>> F.interpolate(torch.tensor([[[1.0, 3.0]]]), size=4, mode="linear", align_corners=True)
    tensor([[[1.0000, 1.6667, 2.3333, 3.0000]]])
    """
    if has_torch_function_unary(input):
        return handle_torch_function(interpolate, (input,), input, size=size, scale_factor=scale_factor, mode=mode,
                                     align_corners=align_corners, recompute_scale_factor=recompute_scale_factor,
                                     antialias=antialias)
    if mode in ("nearest", "area", "nearest-exact"):
        if align_corners is not None:
            raise ValueError("align_corners option can only be set with the interpolating modes: linear | bilinear | "
                             "bicubic | trilinear")
    elif align_corners is None:
        align_corners = False
    output_size, factors = _target(input, size, scale_factor)
    if recompute_scale_factor and size is not None:
        raise ValueError("recompute_scale_factor is not meaningful with an explicit size.")
    if factors is not None and (recompute_scale_factor or mode == "area"):
        output_size = [int(float(n) * factor // 1) for n, factor in zip(input.shape[2:], factors)]
        factors = None
    rank = input.dim()
    if antialias and not (mode in _ANTIALIASED and rank == 4):
        raise ValueError("Anti-alias option is restricted to bilinear, bicubic, and lanczos modes and requires a 4-D "
                         "tensor as input")
    if mode == "lanczos" and not antialias:
        raise ValueError("Lanczos mode requires antialias=True")
    if antialias:
        return getattr(_nn, _ANTIALIASED[mode])(input, output_size, align_corners, factors)
    if mode in ("nearest", "nearest-exact") and rank in _NEAREST:
        return getattr(_nn, (_NEAREST if mode == "nearest" else _EXACT)[rank])(input, output_size, factors)
    if mode == "area" and rank in _NEAREST:
        return (adaptive_avg_pool1d, adaptive_avg_pool2d, adaptive_avg_pool3d)[rank - 3](input, output_size)
    if (mode, rank) in _SMOOTH:
        return getattr(_nn, _SMOOTH[mode, rank])(input, output_size, align_corners, factors)
    if mode in _RANK and rank in _NEAREST:
        raise NotImplementedError(f"Got {rank}D input, but {mode} mode needs {_RANK[mode]}D input")
    raise NotImplementedError(f"Input Error: Only 3D, 4D and 5D input Tensors supported (got {rank}D) for the modes: "
                              f"{_MODES} (got {mode})")


def upsample(input, size=None, scale_factor=None, mode="nearest", align_corners=None) -> "ember.Tensor":
    """Deprecated in favour of interpolate."""
    warnings.warn("`nn.functional.upsample` is deprecated. Use `nn.functional.interpolate` instead.", stacklevel=2)
    return interpolate(input, size, scale_factor, mode, align_corners)


def upsample_nearest(input, size=None, scale_factor=None) -> "ember.Tensor":
    """Deprecated in favour of interpolate."""
    warnings.warn("`nn.functional.upsample_nearest` is deprecated. Use `nn.functional.interpolate` instead.",
                  stacklevel=2)
    return interpolate(input, size, scale_factor, mode="nearest")


def upsample_bilinear(input, size=None, scale_factor=None) -> "ember.Tensor":
    """Deprecated in favour of interpolate with align_corners=True."""
    warnings.warn("`nn.functional.upsample_bilinear` is deprecated. Use `nn.functional.interpolate` instead.",
                  stacklevel=2)
    return interpolate(input, size, scale_factor, mode="bilinear", align_corners=True)


# ---- grids ---------------------------------------------------------------------------------------------------

_GRID_MODES = {"bilinear": 0, "nearest": 1, "bicubic": 2}
_GRID_PADDING = {"zeros": 0, "border": 1, "reflection": 2}
_CHANGED = ("Default grid_sample and affine_grid behavior has changed to align_corners=False since 1.3.0. Please specify "
            "align_corners=True if the old behavior is desired. See the documentation of grid_sample for details.")


def grid_sample(input, grid, mode="bilinear", padding_mode="zeros", align_corners=None) -> "ember.Tensor":
    """input (N, C, H, W) at the points of grid (N, h, w, 2), x before y, -1 to 1; volumes alike."""
    if has_torch_function_variadic(input, grid):
        return handle_torch_function(grid_sample, (input, grid), input, grid, mode=mode, padding_mode=padding_mode,
                                     align_corners=align_corners)
    if mode not in _GRID_MODES:
        raise ValueError("nn.functional.grid_sample(): expected mode to be 'bilinear', 'nearest' or 'bicubic', but got: "
                         f"'{mode}'")
    if padding_mode not in _GRID_PADDING:
        raise ValueError("nn.functional.grid_sample(): expected padding_mode to be 'zeros', 'border', or 'reflection', "
                         f"but got: '{padding_mode}'")
    if align_corners is None:
        warnings.warn(_CHANGED, stacklevel=2)
        align_corners = False
    return ember.grid_sampler(input, grid, _GRID_MODES[mode], _GRID_PADDING[padding_mode], align_corners)


def affine_grid(theta, size, align_corners=None) -> "ember.Tensor":
    """The grid for grid_sample that a batch of affine matrices theta, (N, 2, 3) or (N, 3, 4), makes of size."""
    if has_torch_function_unary(theta):
        return handle_torch_function(affine_grid, (theta,), theta, size, align_corners=align_corners)
    if align_corners is None:
        warnings.warn(_CHANGED, stacklevel=2)
        align_corners = False
    if not theta.is_floating_point():
        raise ValueError(f"Expected theta to have floating point type, but got {theta.dtype}")
    if len(size) not in (4, 5):
        raise NotImplementedError("affine_grid only supports 4D and 5D sizes, for 2D and 3D affine transforms, "
                                  f"respectively. Got size {size}.")
    dims = len(size) - 2
    if theta.dim() != 3 or theta.shape[-2] != dims or theta.shape[-1] != dims + 1:
        raise ValueError(f"Expected a batch of {dims}D affine matrices of shape Nx{dims}x{dims + 1} for size {size}. "
                         f"Got {theta.shape}.")
    if align_corners and min(size[-dims:]) == 1:
        warnings.warn("Since version 1.3.0, affine_grid behavior has changed for unit-size grids when align_corners=True. "
                      "This is not an intended use case of affine_grid. See the documentation of affine_grid for "
                      "details.", stacklevel=2)
    elif min(size) <= 0:
        raise ValueError(f"Expected non-zero, positive output size. Got {size}")
    return ember.affine_grid_generator(theta, size, align_corners)


# ---- folding -------------------------------------------------------------------------------------------------


def unfold(input, kernel_size, dilation: Any = 1, padding: Any = 0, stride: Any = 1) -> "ember.Tensor":
    """Blocks of (N, C, H, W) as columns (N, C * kernel area, blocks)."""
    if has_torch_function_unary(input):
        return handle_torch_function(unfold, (input,), input, kernel_size, dilation=dilation, padding=padding,
                                     stride=stride)
    return _nn.im2col(input, _ints(kernel_size, 2), _ints(dilation, 2), _ints(padding, 2), _ints(stride, 2))


def fold(input, output_size, kernel_size, dilation: Any = 1, padding: Any = 0, stride: Any = 1) -> "ember.Tensor":
    """Columns back to blocks of (N, C, *output_size), added up where blocks overlap."""
    if has_torch_function_unary(input):
        return handle_torch_function(fold, (input,), input, output_size, kernel_size, dilation=dilation,
                                     padding=padding, stride=stride)
    return _nn.col2im(input, _ints(output_size, 2), _ints(kernel_size, 2), _ints(dilation, 2), _ints(padding, 2),
                      _ints(stride, 2))

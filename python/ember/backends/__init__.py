"""Which libraries stand behind the operators."""

import contextlib
import sys
import types

from ember import _C


def _module(name, **values):
    """A module that programs may import by its name: `import torch.backends.cudnn as cudnn` heads many of them."""
    m = types.ModuleType(f"{__name__}.{name}")
    m.__dict__.update(values)
    sys.modules[m.__name__] = sys.modules[f"{__spec__.name}.{name}"] = m
    return m


def _no():
    """Whether this backend is here: this build does not have it, so no."""
    return False


def _yes():
    """Whether this backend is here: it is part of every build, so yes."""
    return True


def _sdp_switch(bit):
    """(enable, enabled) of one implementation of scaled_dot_product_attention: see ember.nn.attention."""

    def enable(enabled):
        _C._sdp_enable(1 << bit, bool(enabled))

    return enable, lambda: bool(_C._sdp_enabled() & 1 << bit)


_enable_math, _math_on = _sdp_switch(0)
_enable_flash, _flash_on = _sdp_switch(1)
_enable_mem_efficient, _mem_efficient_on = _sdp_switch(2)
_enable_cudnn, _cudnn_on = _sdp_switch(3)


@contextlib.contextmanager
def _sdp_kernel(enable_flash=True, enable_math=True, enable_mem_efficient=True, enable_cudnn=True):
    """The old form of ember.nn.attention.sdpa_kernel."""
    before = _C._sdp_enabled()
    for bit, on in enumerate((enable_math, enable_flash, enable_mem_efficient, enable_cudnn)):
        _C._sdp_enable(1 << bit, on)
    try:
        yield {}
    finally:
        for bit in range(4):
            _C._sdp_enable(1 << bit, bool(before & 1 << bit))


cuda = _module("cuda", is_built=_no, matmul=_module("cuda.matmul", allow_tf32=False), enable_math_sdp=_enable_math,
               math_sdp_enabled=_math_on, enable_flash_sdp=_enable_flash, flash_sdp_enabled=_flash_on,
               enable_mem_efficient_sdp=_enable_mem_efficient, mem_efficient_sdp_enabled=_mem_efficient_on,
               enable_cudnn_sdp=_enable_cudnn, cudnn_sdp_enabled=_cudnn_on, sdp_kernel=_sdp_kernel)
cudnn = _module("cudnn", is_available=_no, version=lambda: None, enabled=False, benchmark=False, deterministic=False,
                allow_tf32=False)
mps = _module("mps", is_available=_no, is_built=_no)
mkl = _module("mkl", is_available=_no)
openmp = _module("openmp", is_available=_yes)
mkldnn = _module("mkldnn", is_available=_no, enabled=False)

"""Which implementation scaled_dot_product_attention takes."""

import contextlib
from enum import IntEnum
from typing import Any

from ember import _C

__all__ = ["SDPBackend", "sdpa_kernel", "WARN_FOR_UNFUSED_KERNELS"]

WARN_FOR_UNFUSED_KERNELS = False


class SDPBackend(IntEnum):
    """MATH: made of operators. FLASH_ATTENTION: the fused kernel. The others are accepted; no CPU kernel stands behind them."""

    ERROR = -1
    MATH = 0
    FLASH_ATTENTION = 1
    EFFICIENT_ATTENTION = 2
    CUDNN_ATTENTION = 3
    OVERRIDEABLE = 4

    def __repr__(self) -> str:
        return f"<SDPBackend.{self.name}: {self.value}>"

    def __str__(self) -> str:
        return f"SDPBackend.{self.name}"


_ALL = [b for b in SDPBackend if b >= 0]


def _enabled():
    bits = _C._sdp_enabled()
    return [b for b in _ALL if bits & 1 << b]


def _enable(backends):
    for b in _ALL:
        _C._sdp_enable(1 << b, b in backends)


def _cur_sdpa_kernel_backends(with_priority=False):
    return _enabled()


@contextlib.contextmanager
def sdpa_kernel(backends, set_priority=False) -> Any:
    """Within the `with` block scaled_dot_product_attention chooses among these backends only: an SDPBackend, or a list of
    them.
    """
    if not isinstance(backends, (list, SDPBackend)):
        raise AssertionError(
            f"Backend must be an instance of SDPBackend or a list of SDPBackend instances, got {type(backends).__name__}"
        )
    if isinstance(backends, SDPBackend):
        backends = [backends]
    before = _enabled()
    _enable(backends)
    try:
        yield {}
    finally:
        _enable(before)

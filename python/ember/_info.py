"""finfo and iinfo: limits of element types."""

from . import _C

_FLOATS = {  # bits, eps, max, tiny (smallest normal), smallest subnormal, decimal digits
    _C.float16: (16, 2.0**-10, 65504.0, 2.0**-14, 2.0**-24, 1e-3),
    _C.bfloat16: (16, 2.0**-7, (2 - 2.0**-7) * 2.0**127, 2.0**-126, 2.0**-133, 1e-2),
    _C.float32: (32, 2.0**-23, (2 - 2.0**-23) * 2.0**127, 2.0**-126, 2.0**-149, 1e-6),
    _C.float64: (64, 2.0**-52, (2 - 2.0**-52) * 2.0**1023, 2.0**-1022, 2.0**-1074, 1e-15),
}
_INTS = {_C.uint8: (8, 0, 255), _C.int8: (8, -128, 127), _C.int16: (16, -2**15, 2**15 - 1),
         _C.int32: (32, -2**31, 2**31 - 1), _C.int64: (64, -2**63, 2**63 - 1)}


class finfo:
    """Limits of a floating-point dtype (of the parts of a complex one)."""

    def __init__(self, type=None):
        dtype = _C.get_default_dtype() if type is None else type
        real = dtype.to_real() if dtype.is_complex else dtype
        if real not in _FLOATS:
            raise TypeError(f"torch.finfo() requires a floating point input type. Use torch.iinfo to handle '{dtype}'")
        self.bits, self.eps, self.max, self.tiny, self.smallest_subnormal, self.resolution = _FLOATS[real]
        self.min, self.smallest_normal, self.dtype = -self.max, self.tiny, real.__name__

    def __repr__(self):
        return (f"finfo(resolution={self.resolution:g}, min={self.min:g}, max={self.max:g}, eps={self.eps:g}, "
                f"smallest_normal={self.smallest_normal:g}, tiny={self.tiny:g}, dtype={self.dtype})")

    def __eq__(self, other):
        return isinstance(other, finfo) and self.dtype == other.dtype

    def __hash__(self):
        return hash(self.dtype)


class iinfo:
    """Limits of an integer dtype: min, max, bits, dtype. TypeError for a dtype that is not one.

    >>> torch.iinfo(torch.int8).max
    127
    """

    def __init__(self, type):
        if type is _C.bool:
            raise TypeError("torch.bool is not supported by torch.iinfo")
        if type not in _INTS:
            raise TypeError(f"torch.iinfo() requires an integer input type. Use torch.finfo to handle '{type}'")
        self.bits, self.min, self.max = _INTS[type]
        self.dtype = type.__name__

    def __repr__(self):
        return f"iinfo(min={self.min:g}, max={self.max:g}, dtype={self.dtype})"

    def __eq__(self, other):
        return isinstance(other, iinfo) and self.dtype == other.dtype

    def __hash__(self):
        return hash(self.dtype)


finfo.__module__ = iinfo.__module__ = __package__  # as in PyTorch, whose classes these files only define

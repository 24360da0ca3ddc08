"""assert_close: two things, or containers of them, are equal within tolerances; if not, how much they differ and where."""

import cmath
import collections.abc
import warnings

import ember as torch

_TOLERANCES = {torch.float16: (1e-3, 1e-5), torch.bfloat16: (1.6e-2, 1e-5), torch.float32: (1.3e-6, 1e-5), torch.float64: (1e-7, 1e-7),
               torch.complex64: (1.3e-6, 1e-5), torch.complex128: (1e-7, 1e-7)}
_NUMBER_DTYPES = {bool: torch.bool, int: torch.int64, float: torch.float64, complex: torch.complex128}


class _Mismatch(Exception):
    """What differs, and the path to it."""

    def __init__(self, text, path=(), kind=AssertionError):
        super().__init__(text)
        self.text, self.path, self.kind = text, path, kind

    def error(self, msg):
        text = self.text
        if self.path:
            text += "\n\nThe failure occurred for item " + "".join(f"[{part!r}]" for part in self.path)
        if self.kind is AssertionError and msg is not None:
            text = msg(text) if callable(msg) else msg
        return self.kind(text)


class _Unsupported(Exception):
    """This kind of pair is for other things."""


def _tolerances(dtypes, rtol, atol):
    if (rtol is None) != (atol is None):
        given, missing = ("rtol", "atol") if atol is None else ("atol", "rtol")
        raise _Mismatch(f"Both 'rtol' and 'atol' must be either specified or omitted, but got no {missing}.", kind=ValueError)
    if rtol is not None:
        return rtol, atol
    pairs = [_TOLERANCES.get(dtype, (0.0, 0.0)) for dtype in dtypes]
    return max(pair[0] for pair in pairs), max(pair[1] for pair in pairs)


def _lines(what, rtol, atol, absolute, relative, place=None):
    """The text of both differences. place: "at index ..." for each."""
    equal = rtol == 0 and atol == 0
    name = ("Absolute difference", "Relative difference") if place is None else ("Greatest absolute difference",
                                                                                  "Greatest relative difference")
    text = ""
    for i, (value, allowed) in enumerate(((absolute, atol), (relative, rtol))):
        text += f"\n{name[i]}: {value}" + ("" if place is None else f" at index {place[i]}")
        text += "" if equal else f" (up to {allowed} allowed)"
    return f"{what} are not {'equal' if equal else 'close'}!\n", text


def _scalar_text(actual, expected, rtol, atol):
    absolute = abs(actual - expected)
    relative = float("inf") if expected == 0 else absolute / abs(expected)
    first, rest = _lines("Scalars", rtol, atol, absolute, relative)
    return f"{first}\nExpected {expected} but got {actual}.{rest}"


class _NonePair:
    def __init__(self, actual, expected, path, options):
        if actual is not None and expected is not None:
            raise _Unsupported
        self.actual, self.expected, self.path = actual, expected, path

    def compare(self):
        if not (self.actual is None and self.expected is None):
            raise _Mismatch(f"None mismatch: {self.actual} is not {self.expected}", self.path)


def _is_numpy(value, kind):
    return type(value).__module__ == "numpy" and hasattr(value, "item") and not hasattr(value, "__len__") and \
        isinstance(value.item(), kind)


class _BooleanPair:
    def __init__(self, actual, expected, path, options):
        if not all(isinstance(x, bool) or _is_numpy(x, bool) for x in (actual, expected)):
            raise _Unsupported
        self.actual, self.expected, self.path = bool(actual), bool(expected), path

    def compare(self):
        if self.actual is not self.expected:
            raise _Mismatch(f"Booleans mismatch: {self.actual} is not {self.expected}", self.path)


class _NumberPair:
    def __init__(self, actual, expected, path, options):
        kinds = (int, float, complex)
        if not all(isinstance(x, kinds) or _is_numpy(x, kinds) for x in (actual, expected)):
            raise _Unsupported
        self.actual, self.expected = (x.item() if hasattr(x, "item") else x for x in (actual, expected))
        self.path, self.options = path, options
        self.rtol, self.atol = _tolerances([_NUMBER_DTYPES[type(x)] for x in (self.actual, self.expected)], options["rtol"],
                                           options["atol"])

    def compare(self):
        a, e = self.actual, self.expected
        if self.options["check_dtype"] and type(a) is not type(e):
            raise _Mismatch(f"The (d)types do not match: {type(a)} != {type(e)}.", self.path)
        if a == e or self.options["equal_nan"] and cmath.isnan(a) and cmath.isnan(e):
            return
        difference = abs(a - e)
        if not (cmath.isfinite(difference) and difference <= self.atol + self.rtol * abs(e)):
            raise _Mismatch(_scalar_text(a, e, self.rtol, self.atol), self.path)


class _TensorPair:
    def __init__(self, actual, expected, path, options):
        related = isinstance(actual, type(expected)) or isinstance(expected, type(actual))
        if not related or not options["allow_subclasses"] and type(actual) is not type(expected):
            raise _Unsupported
        self.actual, self.expected = self.tensor(actual), self.tensor(expected)
        self.path, self.options = path, options
        self.rtol, self.atol = _tolerances([self.actual.dtype, self.expected.dtype], options["rtol"], options["atol"])

    @staticmethod
    def tensor(value):
        if isinstance(value, torch.Tensor):
            return value
        try:
            return torch.as_tensor(value)
        except Exception:
            raise _Unsupported from None

    def __repr__(self):
        values = {"id": self.path, "actual": self.actual, "expected": self.expected, "rtol": self.rtol, "atol": self.atol}
        for name in ("equal_nan", "check_device", "check_dtype", "check_layout", "check_stride"):
            values[name] = self.options[name]
        return "TensorLikePair(\n" + "".join(f"    {name}={value!s},\n" for name, value in values.items()) + ")"

    def attributes(self):
        a, e, options = self.actual, self.expected, self.options
        checks = [("shape", True, a.shape, e.shape), ("layout", options["check_layout"], a.layout, e.layout),
                  ("device", options["check_device"], a.device, e.device), ("dtype", options["check_dtype"], a.dtype, e.dtype)]
        if options["check_stride"]:
            checks.append(("stride()", True, a.stride(), e.stride()))
        for name, wanted, x, y in checks:
            if wanted and x != y:
                raise _Mismatch(f"The values for attribute '{name}' do not match: {x} != {y}.", self.path)

    def compare(self):
        self.attributes()
        a, e = self.actual.detach(), self.expected.detach()
        if a.is_meta or e.is_meta:
            return
        if a.dtype is not e.dtype:
            dtype = torch.promote_types(a.dtype, e.dtype)
            a, e = a.to(dtype), e.to(dtype)
        matches = torch.isclose(a, e, rtol=self.rtol, atol=self.atol, equal_nan=self.options["equal_nan"])
        if bool(torch.all(matches)):
            return
        if a.dim() == 0:
            raise _Mismatch(_scalar_text(a.item(), e.item(), self.rtol, self.atol), self.path)
        raise _Mismatch(self.text(a, e, matches), self.path)

    def text(self, a, e, matches):
        shape, matches = matches.shape, matches.flatten()
        a, e = a.flatten(), e.flatten()
        if not (a.dtype.is_floating_point or a.dtype.is_complex):
            a, e = a.to(torch.int64), e.to(torch.int64)
        difference = abs(a - e)
        difference[matches] = 0
        relative = difference / abs(e)
        relative[matches] = 0
        places = [int(torch.argmax(x)) for x in (difference, relative)]
        first, rest = _lines("Tensor-likes", self.rtol, self.atol, difference[places[0]].item(), relative[places[1]].item(),
                             [_unravel(place, shape) for place in places])
        wrong = int(torch.sum(~matches))
        return f"{first}\nMismatched elements: {wrong} / {matches.numel()} ({wrong / matches.numel():.1%}){rest}"


def _unravel(place, shape):
    index = []
    for size in reversed(shape):
        index.append(place % size)
        place //= size
    return tuple(reversed(index))


def _pairs(actual, expected, path, options):
    """All pairs of a container, in order; or the mismatch of two containers."""
    sequence = collections.abc.Sequence
    if isinstance(actual, sequence) and not isinstance(actual, str) and isinstance(expected, sequence) and \
            not isinstance(expected, str):
        if len(actual) != len(expected):
            raise _Mismatch(f"The length of the sequences mismatch: {len(actual)} != {len(expected)}", path)
        return [pair for i in range(len(actual)) for pair in _pairs(actual[i], expected[i], (*path, i), options)]
    if isinstance(actual, collections.abc.Mapping) and isinstance(expected, collections.abc.Mapping):
        if set(actual) != set(expected):
            missing, extra = set(expected) - set(actual), set(actual) - set(expected)
            raise _Mismatch(f"The keys of the mappings do not match:\nMissing keys in the actual mapping: {sorted(missing)}\n"
                            f"Additional keys in the actual mapping: {sorted(extra)}", path)
        keys = list(actual)
        try:
            keys = sorted(keys)
        except TypeError:
            keys = list(actual)
        return [pair for key in keys for pair in _pairs(actual[key], expected[key], (*path, key), options)]
    for kind in (_NonePair, _BooleanPair, _NumberPair, _TensorPair):
        try:
            return [kind(actual, expected, path, options)]
        except _Unsupported:
            continue
    raise _Mismatch("No comparison pair was able to handle inputs of type "
                    f"{_shown(type(actual))} and {_shown(type(expected))}.", path, TypeError)


def _shown(cls):
    return str(cls).replace("<class 'ember.", "<class 'torch.")


def assert_close(actual, expected, *, allow_subclasses=True, rtol=None, atol=None, equal_nan=False, check_device=True,
                 check_dtype=True, check_layout=True, check_stride=False, msg=None):
    """AssertionError unless |actual - expected| <= atol + rtol * |expected| everywhere, and the attributes agree.

    Tensors, what as_tensor takes, numbers, None, and sequences and mappings of them. Tolerances go by dtype unless both are
    given. msg: the text of the error, or a function of the usual text.
    """
    options = {"allow_subclasses": allow_subclasses, "rtol": rtol, "atol": atol, "equal_nan": equal_nan,
               "check_device": check_device, "check_dtype": check_dtype, "check_layout": check_layout,
               "check_stride": check_stride}
    failure = None
    try:
        for pair in _pairs(actual, expected, (), options):
            try:
                pair.compare()
            except _Mismatch:
                raise
            except Exception as error:
                raise RuntimeError(
                    f"Comparing\n\n{pair}\n\nresulted in the unexpected exception above. If you are a user and see this message "
                    "during normal operation please file an issue at https://github.com/pytorch/pytorch/issues. If you are a "
                    "developer and working on the comparison functions, please except the previous error and raise an expressive "
                    "`ErrorMeta` instead.") from error
    except _Mismatch as mismatch:
        failure = mismatch.error(msg)
    if failure is not None:
        raise failure


def assert_allclose(actual, expected, rtol=None, atol=None, equal_nan=True, msg=""):
    """The old name: dtypes, devices and strides need not agree."""
    warnings.warn("`torch.testing.assert_allclose()` is deprecated since 1.12 and will be removed in a future release. Please use "
                  "`torch.testing.assert_close()` instead. You can find detailed upgrade instructions in "
                  "https://github.com/pytorch/pytorch/issues/61844.", FutureWarning, stacklevel=2)
    if not isinstance(actual, torch.Tensor):
        actual = torch.tensor(actual)
    if not isinstance(expected, torch.Tensor):
        expected = torch.tensor(expected, dtype=actual.dtype)
    if rtol is None and atol is None:
        rtol, atol = _tolerances([actual.dtype, expected.dtype], None, None)
    assert_close(actual, expected, rtol=rtol, atol=atol, equal_nan=equal_nan, check_device=True, check_dtype=False,
                 check_stride=False, msg=msg or None)

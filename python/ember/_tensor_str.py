"""How a tensor prints.

The elements to print are fetched as Python numbers once (only the edges of a large tensor); everything after is plain
text work. One formatter looks at all of them first and picks one width and one style: integers with a dot, fixed
point, or scientific.
"""

import math

import ember
from ember import _C

__all__ = ["set_printoptions", "printoptions", "get_printoptions"]


class __PrinterOptions:
    precision = 4
    threshold = 1000
    edgeitems = 3
    linewidth = 80
    sci_mode = None


PRINT_OPTS = __PrinterOptions()

_PROFILES = {
    "default": (4, 1000, 3, 80),
    "short": (2, 1000, 2, 80),
    "full": (4, math.inf, 3, 80),
}

_GAP = object()  # Stands for the elements left out of a summary.


def set_printoptions(precision=None, threshold=None, edgeitems=None, linewidth=None, profile=None, sci_mode=None):
    """Set how tensors print. profile: "default", "short" or "full"; the other arguments go over it.

    precision: digits after the point. threshold: number of elements from which a summary with edgeitems at each end
    of each dimension is printed. sci_mode: True, False, or None to decide by the values.
    """
    if profile in _PROFILES:  # PyTorch takes no notice of others
        (PRINT_OPTS.precision, PRINT_OPTS.threshold, PRINT_OPTS.edgeitems,
         PRINT_OPTS.linewidth) = _PROFILES[profile]
    for name, value in (("precision", precision), ("threshold", threshold), ("edgeitems", edgeitems),
                        ("linewidth", linewidth)):
        if value is not None:
            setattr(PRINT_OPTS, name, value)
    PRINT_OPTS.sci_mode = sci_mode


def get_printoptions():
    """The current options, as a dict."""
    return {name: getattr(PRINT_OPTS, name) for name in ("precision", "threshold", "edgeitems", "linewidth",
                                                         "sci_mode")}


class printoptions:
    """Context manager: set_printoptions inside, the former options after."""

    def __init__(self, **kwargs):
        self.kwargs = kwargs

    def __enter__(self):
        self.saved = get_printoptions()
        set_printoptions(**self.kwargs)

    def __exit__(self, exc_type, exc_value, traceback):
        set_printoptions(**self.saved)


class _Formatter:
    """One style and width for all of `values` (Python numbers)."""

    def __init__(self, values, floating):
        self.floating = floating
        self.int_mode = True
        self.sci_mode = False
        self.max_width = 1
        if not floating:
            self.max_width = max((len(f"{v}") for v in values), default=1)
            return
        values = [v for v in values if math.isfinite(v) and v != 0]
        if not values:
            return
        sizes = [abs(v) for v in values]
        low, high = min(sizes), max(sizes)
        self.int_mode = all(v == math.floor(v) for v in values)
        if PRINT_OPTS.sci_mode is None:
            self.sci_mode = high / low > 1000.0 or high > 1.0e8 or (not self.int_mode and low < 1.0e-4)
        else:
            self.sci_mode = PRINT_OPTS.sci_mode
        if self.sci_mode:
            widths = (len(f"{v:.{PRINT_OPTS.precision}e}") for v in values)
        elif self.int_mode:
            widths = (len(f"{v:.0f}") + 1 for v in values)
        else:
            widths = (len(f"{v:.{PRINT_OPTS.precision}f}") for v in values)
        self.max_width = max(self.max_width, *widths)

    def format(self, value):
        if not self.floating:
            text = f"{value}"
        elif self.sci_mode:
            text = f"{value:{self.max_width}.{PRINT_OPTS.precision}e}"
        elif self.int_mode:
            text = f"{value:.0f}"
            if math.isfinite(value):
                text += "."
        else:
            text = f"{value:.{PRINT_OPTS.precision}f}"
        return text.rjust(self.max_width)


class _Complex:
    """Two formatters: real parts and imaginary parts."""

    def __init__(self, values):
        self.real = _Formatter([v.real for v in values], True)
        self.imag = _Formatter([v.imag for v in values], True)
        self.max_width = self.real.max_width + self.imag.max_width + 1

    def format(self, value):
        real = self.real.format(value.real)
        imag = (self.imag.format(value.imag) + "j").lstrip()
        return real + imag if imag[0] in "+-" else real + "+" + imag


def _fetch(t, summarize):
    """The elements of t as nested lists; _GAP where a summary leaves some out."""
    if not summarize or t.dim() == 0:
        return t.tolist()
    n, edge = t.shape[0], PRINT_OPTS.edgeitems
    if edge and n <= 2 * edge:
        return t.tolist() if t.dim() == 1 else [_fetch(t[i], True) for i in range(n)]
    if t.dim() == 1:
        return [*t[:edge].tolist(), _GAP, *t[n - edge:].tolist()]
    return [*(_fetch(t[i], True) for i in range(edge)), _GAP, *(_fetch(t[i], True) for i in range(n - edge, n))]


def _leaves(data, out):
    for item in data:
        if isinstance(item, list):
            _leaves(item, out)
        elif item is not _GAP:
            out.append(item)
    return out


def _vector_str(data, indent, formatter):
    per_line = max(1, int((PRINT_OPTS.linewidth - indent) // (formatter.max_width + 2)))
    gap = " ..." if PRINT_OPTS.edgeitems else "..."
    items = [gap if v is _GAP else formatter.format(v) for v in data]
    lines = [", ".join(items[i:i + per_line]) for i in range(0, len(items), per_line)]
    return "[" + (",\n" + " " * (indent + 1)).join(lines) + "]"


def _nested_str(data, dim, indent, formatter):
    if dim == 0:
        return formatter.format(data)
    if dim == 1:
        return _vector_str(data, indent, formatter)
    parts = ["..." if item is _GAP else _nested_str(item, dim - 1, indent + 1, formatter) for item in data]
    return "[" + ("," + "\n" * (dim - 1) + " " * (indent + 1)).join(parts) + "]"


def _tensor_str(t, indent):
    data = _fetch(t, t.numel() > PRINT_OPTS.threshold)
    values = _leaves(data, []) if isinstance(data, list) else [data]
    formatter = _Complex(values) if t.dtype.is_complex else _Formatter(values, t.dtype.is_floating_point)
    return _nested_str(data, t.dim(), indent, formatter)


def _add_suffixes(text, suffixes, indent):
    """text, then the suffixes, each on the same line if it fits."""
    line = len(text) - text.rfind("\n") + 1
    for suffix in suffixes:
        if line + len(suffix) + 2 > PRINT_OPTS.linewidth:
            text += ",\n" + " " * indent + suffix
            line = indent + len(suffix)
        else:
            text += ", " + suffix
            line += len(suffix) + 2
    return text + ")"


def _grad_suffix(t):
    try:
        grad_fn = t.grad_fn
    except RuntimeError:
        # A view made under no_grad whose base changed in place: asking for its grad_fn is an error.
        return "grad_fn=<Invalid>"
    if grad_fn is not None:
        name = type(grad_fn).__name__
        return f"grad_fn=<{grad_fn.name().rsplit('::', 1)[-1] if name == 'CppFunction' else name}>"
    return "requires_grad=True" if t.requires_grad else None


def _str_intern(t, tensor_contents):
    plain = type(t) is ember.Tensor or type(t) is ember.nn.Parameter
    prefix = "tensor(" if plain else f"{type(t).__name__}("
    indent = len(prefix)
    suffixes = []
    default = ember.get_default_dtype()
    default_complex = ember.complex128 if default == ember.float64 else ember.complex64
    if t.device.type != "cpu":
        suffixes.append(f"device='{t.device}'")
    if t.is_meta:
        suffixes.append(f"size={tuple(t.shape)}")
        if t.dtype != default:
            suffixes.append(f"dtype={t.dtype}")
        text = "..."
    elif t.numel() == 0:
        # A shape other than (0,) and a dtype cannot be read off "[]".
        if t.dim() != 1:
            suffixes.append(f"size={tuple(t.shape)}")
        if t.dtype != default:
            suffixes.append(f"dtype={t.dtype}")
        text = "[]"
    else:
        if not PRINT_OPTS.edgeitems:
            suffixes.append(f"size={tuple(t.shape)}")
        if t.dtype not in (default, default_complex, ember.int64, ember.bool):
            suffixes.append(f"dtype={t.dtype}")
        text = _tensor_str(t, indent) if tensor_contents is None else None
    if tensor_contents is not None:
        text = tensor_contents
    grad = _grad_suffix(t)
    if grad is not None:
        suffixes.append(grad)
    text = _add_suffixes(prefix + text, suffixes, indent)
    return f"Parameter({text})" if not plain and isinstance(t, ember.nn.Parameter) else text


def _str(self, *, tensor_contents=None):
    """repr() of a tensor. tensor_contents: text to show in place of the elements."""
    with ember.no_grad(), _C.DisableTorchFunctionSubclass():
        return _str_intern(self, tensor_contents)

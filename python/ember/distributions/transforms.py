"""Invertible maps between regions, with the logarithm of how they stretch volume."""

import functools
import math
import numbers
import operator
import weakref
from typing import Any

import ember
import ember.nn.functional as F
from . import constraints
from .utils import (broadcast_all, lazy_property, sum_rightmost, tril_matrix_to_vec, vec_to_tril_matrix)

__all__ = ["AbsTransform", "AffineTransform", "CatTransform", "ComposeTransform", "CorrCholeskyTransform",
           "CumulativeDistributionTransform", "ExpTransform", "IndependentTransform", "LowerCholeskyTransform",
           "PositiveDefiniteTransform", "PowerTransform", "ReshapeTransform", "SigmoidTransform", "SoftplusTransform",
           "TanhTransform", "SoftmaxTransform", "StackTransform", "StickBreakingTransform", "Transform", "identity_transform"]


class Transform:
    """A map of domain to codomain. Subclasses give _call, _inverse and log_abs_det_jacobian; sign says how it is monotonous.

    With cache_size 1 the last pair of argument and result is kept, so that the inverse of a result is its very argument.
    """

    bijective = False

    def __init__(self, cache_size=0) -> None:
        if cache_size not in (0, 1):
            raise ValueError("cache_size must be 0 or 1")
        self._cache_size = cache_size
        self._inv = None
        if cache_size:
            self._cached_x_y = None, None
        super().__init__()

    def __getstate__(self) -> Any:
        return {**self.__dict__, "_inv": None}

    @property
    def event_dim(self) -> Any:
        if self.domain.event_dim == self.codomain.event_dim:
            return self.domain.event_dim
        raise ValueError("Please use either .domain.event_dim or .codomain.event_dim")

    @property
    def inv(self) -> Any:
        """The inverse, whose inverse is this."""
        inverse = None if self._inv is None else self._inv()
        if inverse is None:
            inverse = _InverseTransform(self)
            self._inv = weakref.ref(inverse)
        return inverse

    @property
    def sign(self) -> Any:
        raise NotImplementedError

    def with_cache(self, cache_size=1) -> Any:
        if self._cache_size == cache_size:
            return self
        if type(self).__init__ is Transform.__init__:
            return type(self)(cache_size=cache_size)
        raise NotImplementedError(f"{type(self)}.with_cache is not implemented")

    def __eq__(self, other) -> bool:
        return self is other

    __hash__ = None

    def __ne__(self, other) -> bool:
        return not self == other

    def __call__(self, x) -> Any:
        if self._cache_size == 0:
            return self._call(x)
        kept_x, kept_y = self._cached_x_y
        if x is kept_x:
            return kept_y
        y = self._call(x)
        self._cached_x_y = x, y
        return y

    def _inv_call(self, y):
        if self._cache_size == 0:
            return self._inverse(y)
        kept_x, kept_y = self._cached_x_y
        if y is kept_y:
            return kept_x
        x = self._inverse(y)
        self._cached_x_y = x, y
        return x

    def _call(self, x):
        raise NotImplementedError

    def _inverse(self, y):
        raise NotImplementedError

    def log_abs_det_jacobian(self, x, y) -> Any:
        raise NotImplementedError

    def __repr__(self) -> str:
        return self.__class__.__name__ + "()"

    def forward_shape(self, shape) -> Any:
        return shape

    def inverse_shape(self, shape) -> Any:
        return shape


class _InverseTransform(Transform):
    """What a transform's `inv` is; the transform keeps it by a weak reference alone."""

    def __init__(self, transform) -> None:
        super().__init__(cache_size=transform._cache_size)
        self._inv = transform

    def __getstate__(self) -> Any:
        return dict(self.__dict__)

    inv = property(lambda self: self._inv)
    bijective = property(lambda self: self._inv.bijective)
    sign = property(lambda self: self._inv.sign)

    @constraints.dependent_property(is_discrete=False)
    def domain(self) -> Any:
        return self._inv.codomain

    @constraints.dependent_property(is_discrete=False)
    def codomain(self) -> Any:
        return self._inv.domain

    def with_cache(self, cache_size=1) -> Any:
        return self.inv.with_cache(cache_size).inv

    def __eq__(self, other) -> Any:
        return isinstance(other, _InverseTransform) and self._inv == other._inv

    __hash__ = None

    def __repr__(self) -> str:
        return f"{self.__class__.__name__}({self._inv!r})"

    def __call__(self, x) -> Any:
        return self._inv._inv_call(x)

    def log_abs_det_jacobian(self, x, y) -> Any:
        return -self._inv.log_abs_det_jacobian(y, x)

    def forward_shape(self, shape) -> Any:
        return self._inv.inverse_shape(shape)

    def inverse_shape(self, shape) -> Any:
        return self._inv.forward_shape(shape)


class ComposeTransform(Transform):
    """One after the other, the first part first."""

    def __init__(self, parts, cache_size=0) -> None:
        self.parts = [part.with_cache(cache_size) for part in parts] if cache_size else parts
        super().__init__(cache_size=cache_size)

    def __eq__(self, other) -> Any:
        return isinstance(other, ComposeTransform) and self.parts == other.parts

    __hash__ = None

    @staticmethod
    def _raised(constraint, gap):
        return constraints.independent(constraint, gap) if gap > 0 else constraint

    @constraints.dependent_property(is_discrete=False)
    def domain(self) -> Any:
        if not self.parts:
            return constraints.real
        event_dim = self.parts[-1].codomain.event_dim
        for part in reversed(self.parts):
            event_dim = max(event_dim + part.domain.event_dim - part.codomain.event_dim, part.domain.event_dim)
        return self._raised(self.parts[0].domain, event_dim - self.parts[0].domain.event_dim)

    @constraints.dependent_property(is_discrete=False)
    def codomain(self) -> Any:
        if not self.parts:
            return constraints.real
        event_dim = self.parts[0].domain.event_dim
        for part in self.parts:
            event_dim = max(event_dim + part.codomain.event_dim - part.domain.event_dim, part.codomain.event_dim)
        return self._raised(self.parts[-1].codomain, event_dim - self.parts[-1].codomain.event_dim)

    @lazy_property
    def bijective(self) -> bool:
        return all(part.bijective for part in self.parts)

    @lazy_property
    def sign(self) -> Any:
        sign = 1
        for part in self.parts:
            sign = sign * part.sign
        return sign

    @property
    def inv(self) -> Any:
        inverse = None if self._inv is None else self._inv()
        if inverse is None:
            inverse = ComposeTransform([part.inv for part in reversed(self.parts)])
            self._inv = weakref.ref(inverse)
            inverse._inv = weakref.ref(self)
        return inverse

    def with_cache(self, cache_size=1) -> Any:
        return self if self._cache_size == cache_size else ComposeTransform(self.parts, cache_size=cache_size)

    def __call__(self, x) -> Any:
        for part in self.parts:
            x = part(x)
        return x

    def log_abs_det_jacobian(self, x, y) -> Any:
        if not self.parts:
            return ember.zeros_like(x)
        steps = [x]
        for part in self.parts[:-1]:
            steps.append(part(steps[-1]))
        steps.append(y)
        terms, event_dim = [], self.domain.event_dim
        for part, before, after in zip(self.parts, steps[:-1], steps[1:]):
            terms.append(sum_rightmost(part.log_abs_det_jacobian(before, after), event_dim - part.domain.event_dim))
            event_dim += part.codomain.event_dim - part.domain.event_dim
        return functools.reduce(operator.add, terms)

    def forward_shape(self, shape) -> Any:
        for part in self.parts:
            shape = part.forward_shape(shape)
        return shape

    def inverse_shape(self, shape) -> Any:
        for part in reversed(self.parts):
            shape = part.inverse_shape(shape)
        return shape

    def __repr__(self) -> str:
        return self.__class__.__name__ + "(\n    " + ",\n    ".join(repr(part) for part in self.parts) + "\n)"


identity_transform = ComposeTransform([])


class IndependentTransform(Transform):
    """base_transform over reinterpreted_batch_ndims more dimensions, whose logarithms are added."""

    def __init__(self, base_transform, reinterpreted_batch_ndims, cache_size=0) -> None:
        super().__init__(cache_size=cache_size)
        self.base_transform = base_transform.with_cache(cache_size)
        self.reinterpreted_batch_ndims = reinterpreted_batch_ndims

    def with_cache(self, cache_size=1) -> Any:
        if self._cache_size == cache_size:
            return self
        return IndependentTransform(self.base_transform, self.reinterpreted_batch_ndims, cache_size=cache_size)

    @constraints.dependent_property(is_discrete=False)
    def domain(self) -> Any:
        return constraints.independent(self.base_transform.domain, self.reinterpreted_batch_ndims)

    @constraints.dependent_property(is_discrete=False)
    def codomain(self) -> Any:
        return constraints.independent(self.base_transform.codomain, self.reinterpreted_batch_ndims)

    bijective = property(lambda self: self.base_transform.bijective)
    sign = property(lambda self: self.base_transform.sign)

    def _call(self, x):
        if x.dim() < self.domain.event_dim:
            raise ValueError("Too few dimensions on input")
        return self.base_transform(x)

    def _inverse(self, y):
        if y.dim() < self.codomain.event_dim:
            raise ValueError("Too few dimensions on input")
        return self.base_transform.inv(y)

    def log_abs_det_jacobian(self, x, y) -> Any:
        return sum_rightmost(self.base_transform.log_abs_det_jacobian(x, y), self.reinterpreted_batch_ndims)

    def __repr__(self) -> str:
        return f"{self.__class__.__name__}({self.base_transform!r}, {self.reinterpreted_batch_ndims})"

    def forward_shape(self, shape) -> Any:
        return self.base_transform.forward_shape(shape)

    def inverse_shape(self, shape) -> Any:
        return self.base_transform.inverse_shape(shape)


class ReshapeTransform(Transform):
    """Events of the shape in_shape, as events of the shape out_shape."""

    bijective = True

    def __init__(self, in_shape, out_shape, cache_size=0) -> None:
        self.in_shape, self.out_shape = ember.Size(in_shape), ember.Size(out_shape)
        if self.in_shape.numel() != self.out_shape.numel():
            raise ValueError("in_shape, out_shape have different numbers of elements")
        super().__init__(cache_size=cache_size)

    @constraints.dependent_property
    def domain(self) -> Any:
        return constraints.independent(constraints.real, len(self.in_shape))

    @constraints.dependent_property
    def codomain(self) -> Any:
        return constraints.independent(constraints.real, len(self.out_shape))

    def with_cache(self, cache_size=1) -> Any:
        if self._cache_size == cache_size:
            return self
        return ReshapeTransform(self.in_shape, self.out_shape, cache_size=cache_size)

    def _call(self, x):
        return x.reshape(x.shape[:x.dim() - len(self.in_shape)] + self.out_shape)

    def _inverse(self, y):
        return y.reshape(y.shape[:y.dim() - len(self.out_shape)] + self.in_shape)

    def log_abs_det_jacobian(self, x, y) -> Any:
        return x.new_zeros(x.size()[:x.dim() - len(self.in_shape)])

    @staticmethod
    def _exchanged(shape, old, new):
        if len(shape) < len(old):
            raise ValueError("Too few dimensions on input")
        cut = len(shape) - len(old)
        if shape[cut:] != old:
            raise ValueError(f"Shape mismatch: expected {shape[cut:]} but got {old}")
        return shape[:cut] + new

    def forward_shape(self, shape) -> Any:
        return self._exchanged(shape, self.in_shape, self.out_shape)

    def inverse_shape(self, shape) -> Any:
        return self._exchanged(shape, self.out_shape, self.in_shape)


class ExpTransform(Transform):
    """y = exp(x)"""

    domain, codomain = constraints.real, constraints.positive
    bijective = True
    sign = +1

    def __eq__(self, other) -> bool:
        return isinstance(other, ExpTransform)

    __hash__ = None

    def _call(self, x):
        return x.exp()

    def _inverse(self, y):
        return y.log()

    def log_abs_det_jacobian(self, x, y) -> Any:
        return x


class PowerTransform(Transform):
    """y = x ** exponent"""

    domain = codomain = constraints.positive
    bijective = True

    def __init__(self, exponent, cache_size=0) -> None:
        super().__init__(cache_size=cache_size)
        (self.exponent,) = broadcast_all(exponent)

    def with_cache(self, cache_size=1) -> Any:
        return self if self._cache_size == cache_size else PowerTransform(self.exponent, cache_size=cache_size)

    @lazy_property
    def sign(self) -> Any:
        return self.exponent.sign()

    def __eq__(self, other) -> Any:
        return isinstance(other, PowerTransform) and bool(self.exponent.eq(other.exponent).all())

    __hash__ = None

    def _call(self, x):
        return x.pow(self.exponent)

    def _inverse(self, y):
        return y.pow(1 / self.exponent)

    def log_abs_det_jacobian(self, x, y) -> Any:
        return (self.exponent * y / x).abs().log()

    def forward_shape(self, shape) -> Any:
        return ember.broadcast_shapes(shape, self.exponent.shape)

    inverse_shape = forward_shape


class SigmoidTransform(Transform):
    """y = 1 / (1 + exp(-x))"""

    domain, codomain = constraints.real, constraints.unit_interval
    bijective = True
    sign = +1

    def __eq__(self, other) -> bool:
        return isinstance(other, SigmoidTransform)

    __hash__ = None

    def _call(self, x):
        finfo = ember.finfo(x.dtype)
        return ember.clamp(ember.sigmoid(x), min=finfo.tiny, max=1.0 - finfo.eps)

    def _inverse(self, y):
        finfo = ember.finfo(y.dtype)
        y = y.clamp(min=finfo.tiny, max=1.0 - finfo.eps)
        return y.log() - (-y).log1p()

    def log_abs_det_jacobian(self, x, y) -> Any:
        return -F.softplus(-x) - F.softplus(x)


class SoftplusTransform(Transform):
    """y = log(1 + exp(x))"""

    domain, codomain = constraints.real, constraints.positive
    bijective = True
    sign = +1

    def __eq__(self, other) -> bool:
        return isinstance(other, SoftplusTransform)

    __hash__ = None

    def _call(self, x):
        return F.softplus(x)

    def _inverse(self, y):
        return (-y).expm1().neg().log() + y

    def log_abs_det_jacobian(self, x, y) -> Any:
        return -F.softplus(-x)


class TanhTransform(Transform):
    """y = tanh(x)"""

    domain, codomain = constraints.real, constraints.interval(-1.0, 1.0)
    bijective = True
    sign = +1

    def __eq__(self, other) -> bool:
        return isinstance(other, TanhTransform)

    __hash__ = None

    def _call(self, x):
        return x.tanh()

    def _inverse(self, y):
        return ember.atanh(y)

    def log_abs_det_jacobian(self, x, y) -> Any:
        return 2.0 * (math.log(2.0) - x - F.softplus(-2.0 * x))  # log(1 - tanh(x) ** 2), without cancellation


class AbsTransform(Transform):
    """y = |x|; of y, the inverse is y itself."""

    domain, codomain = constraints.real, constraints.positive

    def __eq__(self, other) -> bool:
        return isinstance(other, AbsTransform)

    __hash__ = None

    def _call(self, x):
        return x.abs()

    def _inverse(self, y):
        return y


class AffineTransform(Transform):
    """y = loc + scale * x"""

    bijective = True

    def __init__(self, loc, scale, event_dim=0, cache_size=0) -> None:
        super().__init__(cache_size=cache_size)
        self.loc, self.scale, self._event_dim = loc, scale, event_dim

    event_dim = property(lambda self: self._event_dim)

    def _region(self):
        return constraints.independent(constraints.real, self.event_dim) if self.event_dim else constraints.real

    domain = constraints.dependent_property(_region, is_discrete=False)
    codomain = constraints.dependent_property(_region, is_discrete=False)

    def with_cache(self, cache_size=1) -> Any:
        if self._cache_size == cache_size:
            return self
        return AffineTransform(self.loc, self.scale, self.event_dim, cache_size=cache_size)

    @staticmethod
    def _same(a, b):
        return a == b if isinstance(a, numbers.Number) and isinstance(b, numbers.Number) else bool(ember.as_tensor(a == b).all())

    def __eq__(self, other) -> Any:
        return isinstance(other, AffineTransform) and self._same(self.loc, other.loc) and self._same(self.scale, other.scale)

    __hash__ = None

    @property
    def sign(self) -> Any:
        if isinstance(self.scale, numbers.Real):
            return 1 if float(self.scale) > 0 else -1 if float(self.scale) < 0 else 0
        return self.scale.sign()

    def _call(self, x):
        return self.loc + self.scale * x

    def _inverse(self, y):
        return (y - self.loc) / self.scale

    def log_abs_det_jacobian(self, x, y) -> Any:
        shape, scale = x.shape, self.scale
        stretch = ember.full_like(x, math.log(abs(scale))) if isinstance(scale, numbers.Real) else ember.abs(scale).log()
        if self.event_dim:
            stretch = stretch.view(stretch.size()[:-self.event_dim] + (-1,)).sum(-1)
            shape = shape[:-self.event_dim]
        return stretch.expand(shape)

    def forward_shape(self, shape) -> Any:
        return ember.broadcast_shapes(shape, getattr(self.loc, "shape", ()), getattr(self.scale, "shape", ()))

    inverse_shape = forward_shape


class SoftmaxTransform(Transform):
    """y = exp(x) / sum(exp(x)): not one to one; the inverse is log."""

    domain, codomain = constraints.real_vector, constraints.simplex

    def __eq__(self, other) -> bool:
        return isinstance(other, SoftmaxTransform)

    __hash__ = None

    def _call(self, x):
        powers = (x - x.max(-1, True)[0]).exp()
        return powers / powers.sum(-1, True)

    def _inverse(self, y):
        return y.log()

    def forward_shape(self, shape) -> Any:
        if len(shape) < 1:
            raise ValueError("Too few dimensions on input")
        return shape

    inverse_shape = forward_shape


class StickBreakingTransform(Transform):
    """n - 1 real numbers to n shares of a whole: each says how much of what is left its share takes."""

    domain, codomain = constraints.real_vector, constraints.simplex
    bijective = True

    def __eq__(self, other) -> bool:
        return isinstance(other, StickBreakingTransform)

    __hash__ = None

    @staticmethod
    def _offset(x):
        """log of how many shares are still to come."""
        n = x.shape[-1]
        return (n + 1 - x.new_ones(n).cumsum(-1)).log()

    def _call(self, x):
        z = SigmoidTransform()(x - self._offset(x))
        left = (1 - z).cumprod(-1)
        return F.pad(z, [0, 1], value=1) * F.pad(left, [1, 0], value=1)

    def _inverse(self, y):
        head = y[..., :-1]
        left = ember.clamp(1 - head.cumsum(-1), min=ember.finfo(y.dtype).tiny)
        return head.log() - left.log() + self._offset(head)

    def log_abs_det_jacobian(self, x, y) -> Any:
        x = x - self._offset(x)
        return (-x + F.logsigmoid(x) + y[..., :-1].log()).sum(-1)

    @staticmethod
    def _longer(shape, by):
        if len(shape) < 1:
            raise ValueError("Too few dimensions on input")
        return shape[:-1] + (shape[-1] + by,)

    def forward_shape(self, shape) -> Any:
        return self._longer(shape, 1)

    def inverse_shape(self, shape) -> Any:
        return self._longer(shape, -1)


class LowerCholeskyTransform(Transform):
    """Matrices to lower triangular ones with a positive diagonal, by exp of the diagonal."""

    domain, codomain = constraints.independent(constraints.real, 2), constraints.lower_cholesky

    def __eq__(self, other) -> bool:
        return isinstance(other, LowerCholeskyTransform)

    __hash__ = None

    def _call(self, x):
        return x.tril(-1) + x.diagonal(dim1=-2, dim2=-1).exp().diag_embed()

    def _inverse(self, y):
        return y.tril(-1) + y.diagonal(dim1=-2, dim2=-1).log().diag_embed()


class PositiveDefiniteTransform(Transform):
    """Matrices to positive definite ones."""

    domain, codomain = constraints.independent(constraints.real, 2), constraints.positive_definite

    def __eq__(self, other) -> bool:
        return isinstance(other, PositiveDefiniteTransform)

    __hash__ = None

    def _call(self, x):
        x = LowerCholeskyTransform()(x)
        return x @ x.mT

    def _inverse(self, y):
        return LowerCholeskyTransform().inv(ember.linalg.cholesky(y))


class CorrCholeskyTransform(Transform):
    """n (n - 1) / 2 real numbers to the Cholesky factor of a matrix of correlations."""

    domain, codomain = constraints.real_vector, constraints.corr_cholesky
    bijective = True

    def _call(self, x):
        eps = ember.finfo(x.dtype).eps
        r = vec_to_tril_matrix(ember.tanh(x).clamp(min=-1 + eps, max=1 - eps), diag=-1)
        left = (1 - r ** 2).sqrt().cumprod(-1)  # what each row's earlier numbers leave of its length 1
        r = r + ember.eye(r.shape[-1], dtype=r.dtype, device=r.device)
        return r * F.pad(left[..., :-1], [1, 0], value=1)

    def _inverse(self, y):
        left = 1 - ember.cumsum(y * y, dim=-1)
        vector = tril_matrix_to_vec(y, diag=-1)
        t = vector / tril_matrix_to_vec(F.pad(left[..., :-1], [1, 0], value=1), diag=-1).sqrt()
        return (t.log1p() - t.neg().log1p()) / 2  # atanh

    def log_abs_det_jacobian(self, x, y, intermediates=None) -> Any:
        left = tril_matrix_to_vec(1 - (y * y).cumsum(dim=-1), diag=-2)
        return 0.5 * left.log().sum(-1) - 2 * (x + F.softplus(-2 * x) - math.log(2.0)).sum(dim=-1)

    def forward_shape(self, shape) -> Any:
        if len(shape) < 1:
            raise ValueError("Too few dimensions on input")
        n = shape[-1]
        d = round((0.25 + 2 * n) ** 0.5 + 0.5)
        if d * (d - 1) // 2 != n:
            raise ValueError("Input is not a flattened lower-diagonal number")
        return shape[:-1] + (d, d)

    def inverse_shape(self, shape) -> Any:
        if len(shape) < 2:
            raise ValueError("Too few dimensions on input")
        if shape[-2] != shape[-1]:
            raise ValueError("Input is not square")
        return shape[:-2] + (shape[-1] * (shape[-1] - 1) // 2,)


class _PartsTransform(Transform):
    """Several transforms, each for its part of a tensor along dim."""

    def _parts(self, tensor):
        if not -tensor.dim() <= self.dim < tensor.dim():
            raise AssertionError(f"dim {self.dim} out of range for tensor with {tensor.dim()} dimensions")
        return self._pieces(tensor)

    def _each(self, name, *tensors):
        pieces = zip(*[self._parts(tensor) for tensor in tensors])
        return [getattr(trans, name)(*piece) for trans, piece in zip(self.transforms, pieces)]

    @property
    def bijective(self) -> bool:
        return all(t.bijective for t in self.transforms)


class CatTransform(_PartsTransform):
    """Applies each transform to its slice of dim, of the given lengths, and joins the results."""

    def __init__(self, tseq, dim=0, lengths=None, cache_size=0) -> None:
        if not all(isinstance(t, Transform) for t in tseq):
            raise AssertionError("All elements of tseq must be Transform instances")
        super().__init__(cache_size=cache_size)
        self.transforms = [t.with_cache(cache_size) for t in tseq] if cache_size else list(tseq)
        self.lengths = [1] * len(self.transforms) if lengths is None else list(lengths)
        if len(self.lengths) != len(self.transforms):
            raise AssertionError(f"lengths ({len(self.lengths)}) must match transforms ({len(self.transforms)})")
        self.dim = dim

    @lazy_property
    def event_dim(self) -> Any:
        return max(t.event_dim for t in self.transforms)

    @lazy_property
    def length(self) -> Any:
        return sum(self.lengths)

    def with_cache(self, cache_size=1) -> Any:
        return self if self._cache_size == cache_size else CatTransform(self.transforms, self.dim, self.lengths, cache_size)

    def _pieces(self, x):
        if x.size(self.dim) != self.length:
            raise AssertionError(f"x.size({self.dim}) = {x.size(self.dim)} must equal length {self.length}")
        return x.split(self.lengths, self.dim)

    def _call(self, x):
        return ember.cat(self._each("__call__", x), dim=self.dim)

    def _inverse(self, y):
        return ember.cat([t.inv(piece) for t, piece in zip(self.transforms, self._parts(y))], dim=self.dim)

    def log_abs_det_jacobian(self, x, y) -> Any:
        logs = self._each("log_abs_det_jacobian", x, y)
        logs = [sum_rightmost(log, self.event_dim - t.event_dim) if t.event_dim < self.event_dim else log
                for t, log in zip(self.transforms, logs)]
        dim = (self.dim - x.dim() if self.dim >= 0 else self.dim) + self.event_dim
        return ember.cat(logs, dim=dim) if dim < 0 else sum(logs)

    @constraints.dependent_property
    def domain(self) -> Any:
        return constraints.cat([t.domain for t in self.transforms], self.dim, self.lengths)

    @constraints.dependent_property
    def codomain(self) -> Any:
        return constraints.cat([t.codomain for t in self.transforms], self.dim, self.lengths)


class StackTransform(_PartsTransform):
    """Applies each transform to its place of dim, and stacks the results."""

    def __init__(self, tseq, dim=0, cache_size=0) -> None:
        if not all(isinstance(t, Transform) for t in tseq):
            raise AssertionError("All elements of tseq must be Transform instances")
        super().__init__(cache_size=cache_size)
        self.transforms = [t.with_cache(cache_size) for t in tseq] if cache_size else list(tseq)
        self.dim = dim

    def with_cache(self, cache_size=1) -> Any:
        return self if self._cache_size == cache_size else StackTransform(self.transforms, self.dim, cache_size)

    def _pieces(self, x):
        if x.size(self.dim) != len(self.transforms):
            raise AssertionError(f"x.size({self.dim}) = {x.size(self.dim)} must equal len(transforms) {len(self.transforms)}")
        return x.unbind(self.dim)

    def _call(self, x):
        return ember.stack(self._each("__call__", x), dim=self.dim)

    def _inverse(self, y):
        return ember.stack([t.inv(piece) for t, piece in zip(self.transforms, self._parts(y))], dim=self.dim)

    def log_abs_det_jacobian(self, x, y) -> Any:
        return ember.stack(self._each("log_abs_det_jacobian", x, y), dim=self.dim)

    @constraints.dependent_property
    def domain(self) -> Any:
        return constraints.stack([t.domain for t in self.transforms], self.dim)

    @constraints.dependent_property
    def codomain(self) -> Any:
        return constraints.stack([t.codomain for t in self.transforms], self.dim)


class CumulativeDistributionTransform(Transform):
    """y = the distribution's cdf of x"""

    bijective = True
    codomain = constraints.unit_interval
    sign = +1

    def __init__(self, distribution, cache_size=0) -> None:
        super().__init__(cache_size=cache_size)
        self.distribution = distribution

    domain = property(lambda self: self.distribution.support)

    def _call(self, x):
        return self.distribution.cdf(x)

    def _inverse(self, y):
        return self.distribution.icdf(y)

    def log_abs_det_jacobian(self, x, y) -> Any:
        return self.distribution.log_prob(x)

    def with_cache(self, cache_size=1) -> Any:
        return self if self._cache_size == cache_size else CumulativeDistributionTransform(self.distribution, cache_size)

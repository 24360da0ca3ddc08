"""What all distributions share: shapes, validation of parameters and values, printing."""

import warnings
from typing import Any

import ember
from . import constraints
from .utils import lazy_property

__all__ = ["Distribution"]


class Distribution:
    """batch_shape: independent distributions side by side; event_shape: one draw of one of them."""

    has_rsample = False
    has_enumerate_support = False
    _validate_args = __debug__

    @staticmethod
    def set_default_validate_args(value) -> None:
        if value not in (True, False):
            raise ValueError
        Distribution._validate_args = value

    def __init__(self, batch_shape=ember.Size(), event_shape=ember.Size(), validate_args=None) -> None:
        self._batch_shape = batch_shape
        self._event_shape = event_shape
        if validate_args is not None:
            self._validate_args = validate_args
        if self._validate_args:
            self._check_parameters()
        super().__init__()

    def _check_parameters(self):
        try:
            limits = self.arg_constraints
        except NotImplementedError:
            limits = {}
            warnings.warn(f"{self.__class__} does not define `arg_constraints`. Please set `arg_constraints = {{}}` or "
                          "initialize the distribution with `validate_args=False` to turn off validation.", stacklevel=3)
        for param, limit in limits.items():
            if constraints.is_dependent(limit) or (
                    param not in self.__dict__ and isinstance(getattr(type(self), param, None), lazy_property)):
                continue  # not checkable by itself, or made from another parameter
            value = getattr(self, param)
            if not limit.check(value).all():
                raise ValueError(f"Expected parameter {param} ({type(value).__name__} of shape {tuple(value.shape)}) of "
                                 f"distribution {self!r} to satisfy the constraint {limit!r}, but found invalid "
                                 f"values:\n{value}")

    def expand(self, batch_shape, _instance=None) -> Any:
        raise NotImplementedError

    @property
    def batch_shape(self) -> Any:
        return self._batch_shape

    @property
    def event_shape(self) -> Any:
        return self._event_shape

    @property
    def arg_constraints(self) -> Any:
        raise NotImplementedError

    @property
    def support(self) -> Any:
        raise NotImplementedError

    @property
    def mean(self) -> Any:
        raise NotImplementedError

    @property
    def mode(self) -> Any:
        raise NotImplementedError(f"{self.__class__} does not implement mode")

    @property
    def variance(self) -> Any:
        raise NotImplementedError

    @property
    def stddev(self) -> Any:
        return self.variance.sqrt()

    def sample(self, sample_shape: Any = ember.Size()) -> Any:
        """A draw without a gradient."""
        with ember.no_grad():
            return self.rsample(sample_shape)

    def rsample(self, sample_shape: Any = ember.Size()) -> Any:
        """A draw that is a differentiable function of the parameters."""
        raise NotImplementedError

    def sample_n(self, n) -> Any:
        warnings.warn("sample_n will be deprecated. Use .sample((n,)) instead", UserWarning, stacklevel=2)
        return self.sample(ember.Size((n,)))

    def log_prob(self, value) -> Any:
        """The logarithm of the density, or of the probability, at value."""
        raise NotImplementedError

    def cdf(self, value) -> Any:
        """The probability of being at most value."""
        raise NotImplementedError

    def icdf(self, value) -> Any:
        """The value below which the distribution has this probability: the inverse of cdf."""
        raise NotImplementedError

    def enumerate_support(self, expand=True) -> Any:
        raise NotImplementedError

    def entropy(self) -> Any:
        """The expected value of -log_prob: how uncertain a draw is."""
        raise NotImplementedError

    def perplexity(self) -> Any:
        return ember.exp(self.entropy())

    def _extended_shape(self, sample_shape=ember.Size()):
        return ember.Size(tuple(sample_shape) + tuple(self._batch_shape) + tuple(self._event_shape))

    def _validate_sample(self, value):
        if not isinstance(value, ember.Tensor):
            raise ValueError("The value argument to log_prob must be a Tensor")
        first = value.dim() - len(self._event_shape)
        if value.size()[max(first, 0):] != self._event_shape:
            raise ValueError("The right-most size of value must match event_shape: "
                             f"{value.size()} vs {self._event_shape}.")
        actual, expected = value.size(), self._batch_shape + self._event_shape
        for i, j in zip(reversed(actual), reversed(expected)):
            if i != 1 and j != 1 and i != j:
                raise ValueError(f"Value is not broadcastable with batch_shape+event_shape: {actual} vs {expected}.")
        try:
            support = self.support
        except NotImplementedError:
            warnings.warn(f"{self.__class__} does not define `support` to enable sample validation. Please initialize the "
                          "distribution with `validate_args=False` to turn off validation.", stacklevel=3)
            return
        if not support.check(value).all():
            raise ValueError(f"Expected value argument ({type(value).__name__} of shape {tuple(value.shape)}) to be within "
                             f"the support ({support!r}) of the distribution {self!r}, but found invalid values:\n{value}")

    def _get_checked_instance(self, cls, _instance=None):
        if _instance is None and type(self).__init__ != cls.__init__:
            raise NotImplementedError(f"Subclass {self.__class__.__name__} of {cls.__name__} that defines a custom __init__ "
                                      "method must also define a custom .expand() method.")
        return self.__new__(type(self)) if _instance is None else _instance

    def _expanded(self, cls, batch_shape, _instance, *names):
        """An instance of cls with these parameters expanded: what `expand` of most distributions is."""
        new = self._get_checked_instance(cls, _instance)
        shape = ember.Size(batch_shape)
        for name in names:
            if name in self.__dict__:
                setattr(new, name, getattr(self, name).expand(shape))
        Distribution.__init__(new, shape, self._event_shape, validate_args=False)
        new._validate_args = self._validate_args
        return new

    def __repr__(self) -> str:
        names = [k for k in self.arg_constraints if k in self.__dict__]
        shown = [f"{p}: {getattr(self, p) if getattr(self, p).numel() == 1 else getattr(self, p).size()}" for p in names]
        return self.__class__.__name__ + "(" + ", ".join(shown) + ")"

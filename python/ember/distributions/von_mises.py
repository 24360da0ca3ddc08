"""Directions."""

import math
from typing import Any

import ember
from . import constraints
from .distribution import Distribution
from .utils import broadcast_all, lazy_property

__all__ = ["VonMises"]


class VonMises(Distribution):
    """Angles around loc, the closer the larger concentration is: the bell curve of the circle."""

    arg_constraints = {"loc": constraints.real, "concentration": constraints.positive}
    support = constraints.real
    has_rsample = False

    def __init__(self, loc, concentration, validate_args=None) -> None:
        self.loc, self.concentration = broadcast_all(loc, concentration)
        super().__init__(self.loc.shape, ember.Size(), validate_args)

    def expand(self, batch_shape, _instance=None) -> Any:
        return type(self)(self.loc.expand(batch_shape), self.concentration.expand(batch_shape),
                          validate_args=self.__dict__.get("_validate_args"))

    def log_prob(self, value) -> Any:
        if self._validate_args:
            self._validate_sample(value)
        k = self.concentration
        return k * ember.cos(value - self.loc) - math.log(2 * math.pi) - (k + ember.special.i0e(k).log())

    @lazy_property
    def _double_loc(self):
        return self.loc.to(ember.double)

    @lazy_property
    def _double_concentration(self):
        return self.concentration.to(ember.double)

    @lazy_property
    def _proposal_r(self):
        """The wrapped Cauchy distribution's parameter, by which draws are proposed."""
        k = self._double_concentration
        tau = 1 + (1 + 4 * k ** 2).sqrt()
        rho = (tau - (2 * tau).sqrt()) / (2 * k)
        return ember.where(k < 1e-5, 1 / k + k, (1 + rho ** 2) / (2 * rho))

    @ember.no_grad()
    def sample(self, sample_shape=ember.Size()) -> Any:
        """D. J. Best, N. I. Fisher, "Efficient simulation of the von Mises distribution", Applied Statistics 28, 1979."""
        shape = self._extended_shape(sample_shape)
        x = ember.empty(shape, dtype=self._double_loc.dtype, device=self.loc.device)
        k, r = self._double_concentration.expand(shape), self._proposal_r.expand(shape)
        done = ember.zeros(shape, dtype=ember.bool, device=self.loc.device)
        while not done.all():
            u1, u2, u3 = ember.rand((3,) + shape, dtype=x.dtype, device=x.device).unbind()
            z = ember.cos(math.pi * u1)
            f = (1 + r * z) / (r + z)
            c = k * (r - f)
            accepted = ((c * (2 - c) - u2) > 0) | ((c / u2).log() + 1 - c >= 0)
            x = ember.where(accepted, (u3 - 0.5).sign() * f.acos(), x)
            done = done | accepted
        return ((x + math.pi + self._double_loc) % (2 * math.pi) - math.pi).to(self.loc.dtype)

    mean = mode = property(lambda self: self.loc)

    @lazy_property
    def variance(self) -> Any:
        """One minus the mean resultant length."""
        return 1 - ember.special.i1e(self.concentration) / ember.special.i0e(self.concentration)

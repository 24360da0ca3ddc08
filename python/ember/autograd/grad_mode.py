"""Switches of recording: no_grad, enable_grad, set_grad_enabled, inference_mode.

Each is a context manager and a decorator. On a generator function the switch holds while the generator's body runs,
and the caller's state is back whenever the generator is suspended.
"""

import ember
from ember import _C
from ember.utils._contextlib import ContextDecorator, NoArgContextDecorator

__all__ = ["no_grad", "enable_grad", "set_grad_enabled", "inference_mode", "set_multithreading_enabled"]


class no_grad(NoArgContextDecorator):
    """Records nothing inside: results do not require grad. `with torch.no_grad():`, or a decorator.

    >>> x = torch.ones(2, requires_grad=True)
    >>> with torch.no_grad(): y = x * 2
    >>> y.requires_grad
    False
    """

    def __init__(self):
        self.prev = False

    def __enter__(self):
        self.prev = ember.is_grad_enabled()
        _C._set_grad_enabled(False)

    def __exit__(self, exc_type, exc_value, traceback):
        _C._set_grad_enabled(self.prev)


class enable_grad(NoArgContextDecorator):
    """Records inside, also within no_grad. `with torch.enable_grad():`, or a decorator."""

    def __enter__(self):
        self.prev = ember.is_grad_enabled()
        _C._set_grad_enabled(True)

    def __exit__(self, exc_type, exc_value, traceback):
        _C._set_grad_enabled(self.prev)


class set_grad_enabled(ContextDecorator):
    """Sets recording at once, as a plain call; as a context manager also restores it."""

    def __init__(self, mode):
        if not isinstance(mode, bool):
            raise TypeError(f"set_grad_enabled(): argument 'enabled' (position 1) must be bool, not {type(mode).__name__}")
        self.prev = ember.is_grad_enabled()
        self.mode = mode
        _C._set_grad_enabled(mode)

    def __call__(self, orig_func):
        # As a decorator it must leave the surrounding state as it was.
        _C._set_grad_enabled(self.prev)
        return super().__call__(orig_func)

    def __enter__(self):
        _C._set_grad_enabled(self.mode)

    def __exit__(self, exc_type, exc_value, traceback):
        _C._set_grad_enabled(self.prev)

    def __str__(self):
        return f"{type(self).__module__}.{type(self).__qualname__}(mode={self.mode})"

    __repr__ = __str__

    def clone(self):
        return type(self)(self.mode)


class inference_mode(ContextDecorator):
    """no_grad, and results that have no version counter and can never be recorded later (mode=False: leave it)."""

    def __init__(self, mode=True):
        self.mode = mode

    def __new__(cls, mode=True):
        if isinstance(mode, bool):
            return super().__new__(cls)
        # `@inference_mode` without parentheses.
        return cls()(mode)

    def __enter__(self):
        self._guard = _C._InferenceMode(self.mode)
        self._guard.__enter__()

    def __exit__(self, exc_type, exc_value, traceback):
        self._guard.__exit__(exc_type, exc_value, traceback)

    def clone(self):
        return type(self)(self.mode)


class set_multithreading_enabled(ContextDecorator):
    """Sets whether backward may use several threads."""

    def __init__(self, mode):
        self.prev = _C._is_multithreading_enabled()
        _C._set_multithreading_enabled(mode)
        self.mode = mode

    def __enter__(self):
        pass

    def __exit__(self, exc_type, exc_value, traceback):
        _C._set_multithreading_enabled(self.prev)

    def clone(self):
        return type(self)(self.mode)

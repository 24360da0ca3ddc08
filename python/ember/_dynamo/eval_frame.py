"""torch.compile() without a compiler: arguments are checked, wrappers look as PyTorch's, calls run what was given."""

import functools

import ember

_MODES = ("default", "lite", "reduce-overhead", "max-autotune-no-cudagraphs", "max-autotune")
# Names that PyTorch knows without further packages. They all mean the same here.
_BACKENDS = {"inductor", "cudagraphs", "openxla", "tvm"}
_DEBUG_BACKENDS = {"eager", "eager_noexcept", "aot_eager", "aot_eager_decomp_partition", "pre_dispatch_eager",
                   "eager_debug", "aot_ts", "ts"}


class InvalidBackend(RuntimeError):
    def __init__(self, name):
        super().__init__(f"Invalid backend: {name!r}, see `torch._dynamo.list_backends()` for available backends.")


def list_backends(exclude_tags=("debug", "experimental")):
    """Names of backends that compile() takes."""
    return sorted(_BACKENDS if exclude_tags and "debug" in exclude_tags else _BACKENDS | _DEBUG_BACKENDS)


def is_compiling():
    return False


def reset():
    """Forgets compiled functions. There are none: Ember runs programs as they are."""


class OptimizedModule(ember.nn.Module):
    """A compiled module: runs `_orig_mod`, and passes every attribute through to it."""

    _own = {"_orig_mod", "dynamo_ctx", "_torchdynamo_orig_callable"}

    def __init__(self, mod, dynamo_ctx=None):
        super().__init__()
        self._orig_mod = mod
        self.dynamo_ctx = dynamo_ctx

    def forward(self, *args, **kwargs):
        return self._orig_mod(*args, **kwargs)

    def __call__(self, *args, **kwargs):
        if self.dynamo_ctx is not None:
            self.dynamo_ctx()
        return self._orig_mod(*args, **kwargs)

    def __reduce__(self):
        return type(self), (self._orig_mod, self.dynamo_ctx)

    @property
    def training(self):
        return self._orig_mod.training

    @training.setter
    def training(self, value):
        # Module.__init__ sets it before there is a module
        if "_orig_mod" in self.__dict__.get("_modules", {}):
            self._orig_mod.training = value

    def __getattr__(self, name):
        if name == "_orig_mod":
            return self.__dict__["_modules"]["_orig_mod"]
        return getattr(self._orig_mod, name)

    def __setattr__(self, name, value):
        if name in self._own or name in dir(type(self)) or "_orig_mod" not in self.__dict__.get("_modules", {}):
            return super().__setattr__(name, value)
        return setattr(self._orig_mod, name, value)

    def __delattr__(self, name):
        if name in self._own:
            return super().__delattr__(name)
        return delattr(self._orig_mod, name)

    def __dir__(self):
        return sorted(set(object.__dir__(self)) | set(dir(self._orig_mod)))


def check(backend, mode, options, dynamic, fullgraph):
    """What compile() raises at once."""
    if mode is not None and options is not None:
        raise RuntimeError("Either mode or options can be specified, but both can't be specified at the same time.")
    if not isinstance(dynamic, (bool, type(None))):
        raise AssertionError(f"Expected enable to be a bool, got {type(dynamic)}")
    if mode is not None and backend == "inductor" and mode not in _MODES:
        raise RuntimeError(f"Unrecognized mode={mode}, should be one of: {', '.join(_MODES)}")
    if options is not None and (not isinstance(options, dict) or not all(isinstance(key, str) for key in options)):
        raise TypeError("options should be a dict of names to values")


    if not callable(backend) and backend not in _BACKENDS | _DEBUG_BACKENDS:
        raise InvalidBackend(backend)


def _check_backend(backend):
    """What PyTorch finds out at the first call."""
    if callable(backend):
        raise NotImplementedError("torch.compile: a backend that is a function wants a graph of the program, which this "
                                  "build does not make; use one by name")


def compile(model=None, *, fullgraph=False, dynamic=None, backend=None, mode=None, options=None, name=None, disable=False,
            recompile_limit=None, isolate_recompiles=False, shapes_spec=None):
    """A function or module that gives what `model` gives. Ember has no compiler yet, so it runs as it is.

    Arguments are checked as PyTorch checks them. Modules come back as OptimizedModule, whose `_orig_mod` they are. Without
    `model`: a decorator.
    """
    if model is None and not disable:
        return functools.partial(_decorate, fullgraph=fullgraph, dynamic=dynamic, backend=backend, mode=mode, options=options,
                                 name=name, shapes_spec=shapes_spec)
    backend = "inductor" if backend is None else backend
    check(backend, mode, options, dynamic, fullgraph)
    if disable:
        return model if model is not None else lambda fn: fn
    if not callable(model):
        raise AssertionError(f"A callable function is expected, but {type(model)} is provided.")
    if isinstance(model, ember.nn.Module):
        return OptimizedModule(model, dynamo_ctx=functools.partial(_check_backend, backend))
    if isinstance(model, type):
        return model

    @functools.wraps(model)
    def run(*args, **kwargs):
        _check_backend(backend)
        return model(*args, **kwargs)

    run._torchdynamo_orig_callable = model
    return run


def _decorate(model, **kwargs):
    if model is None:
        raise RuntimeError("Model can't be None")
    return compile(model, **kwargs)


def optimize(backend="inductor", *, nopython=False, dynamic=None, disable=False, **kwargs):
    """compile() in its older form: a decorator."""
    return lambda fn: compile(fn, backend=backend, fullgraph=nopython, dynamic=dynamic, disable=disable)


def disable(fn=None, recursive=True, *, reason=None, wrapping=True):
    """The function without compilation, which it never had; a decorator if fn is not given."""
    if fn is None:
        return lambda fn: disable(fn, recursive, reason=reason, wrapping=wrapping)
    if not callable(fn):
        raise AssertionError(f"A callable function is expected, but {type(fn)} is provided.")
    fn = getattr(fn, "_torchdynamo_orig_callable", fn)
    if isinstance(fn, (type, ember.nn.Module)) or not wrapping:
        return fn

    @functools.wraps(fn)
    def run(*args, **kwargs):
        return fn(*args, **kwargs)

    run._torchdynamo_disable = True
    run._torchdynamo_orig_callable = fn
    return run

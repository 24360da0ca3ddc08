"""Context managers that are decorators too, of functions and of generator functions."""

import warnings

_CO_GENERATOR = 0x20  # code flag of a generator function, from the language reference


def _wraps(wrapper, func):
    for name in ("__module__", "__name__", "__qualname__", "__doc__", "__annotations__"):
        if hasattr(func, name):
            setattr(wrapper, name, getattr(func, name))
    wrapper.__dict__.update(getattr(func, "__dict__", {}))
    wrapper.__wrapped__ = func
    return wrapper


def _is_generator_function(func):
    func = getattr(func, "__func__", func)
    while hasattr(func, "func") and not hasattr(func, "__code__"):
        func = func.func  # functools.partial
    return bool(getattr(getattr(func, "__code__", None), "co_flags", 0) & _CO_GENERATOR)


def _wrap_generator(make_context, func):
    def generator_context(*args, **kwargs):
        gen = func(*args, **kwargs)
        # The context is entered anew for each stretch between two yields.
        try:
            with make_context():
                response = gen.send(None)
            while True:
                try:
                    request = yield response
                except GeneratorExit:
                    with make_context():
                        gen.close()
                    raise
                except BaseException as e:
                    with make_context():
                        response = gen.throw(e)
                else:
                    with make_context():
                        response = gen.send(request)
        except StopIteration as e:
            return e.value

    return _wraps(generator_context, func)


def context_decorator(ctx, func):
    """func, run inside a fresh context from ctx(), or from ctx.clone() if ctx is itself a context manager."""
    make_context = ctx.clone if hasattr(ctx, "clone") and not isinstance(ctx, type) else ctx
    if isinstance(func, type):
        warnings.warn("Decorating classes is deprecated and will be disabled in future versions. You should only "
                      "decorate functions or methods. To preserve the current behavior of class decoration, you can "
                      "directly decorate the `__init__` method and nothing else.", FutureWarning, stacklevel=3)
        func.__init__ = context_decorator(ctx, func.__init__)
        return func
    if _is_generator_function(func):
        return _wrap_generator(make_context, func)

    def decorate_context(*args, **kwargs):
        with make_context():
            return func(*args, **kwargs)

    return _wraps(decorate_context, func)


class ContextDecorator:
    """Base of context managers with clone(): as decorators they enter a clone at each call."""

    def __enter__(self):
        raise NotImplementedError

    def __exit__(self, exc_type, exc_value, traceback):
        raise NotImplementedError

    def __call__(self, orig_func):
        return context_decorator(self.clone, orig_func)

    def clone(self):
        return type(self)()


class NoArgContextDecorator(ContextDecorator):
    """One that also decorates without parentheses: @no_grad."""

    def __new__(cls, orig_func=None):
        if orig_func is None:
            return super().__new__(cls)
        return cls()(orig_func)

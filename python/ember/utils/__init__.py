"""Helpers around tensors and modules: hook handles, activation checkpointing."""

_LAZY = ("_pytree", "checkpoint", "cpp_extension", "data", "hooks")


def __getattr__(name):
    if name in _LAZY:
        import importlib
        return importlib.import_module("." + name, __name__)
    if name == "cmake_prefix_path":  # for CMAKE_PREFIX_PATH
        from ember.utils import cpp_extension
        return ";".join(cpp_extension.cmake_paths())
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


_POISON = ("Trying to execute AccumulateGrad node that was poisoned by swap_tensors this can happen when you try to run backward on "
           "a tensor that was swapped. For a module m with `torch.__future__.set_swap_module_params_on_conversion(True)` you should "
           "not change the device or dtype of the module (e.g. `m.cpu()` or `m.half()`) between running forward and backward. To "
           "resolve this, please only change the device/dtype before running forward (or after both forward and backward).")


def _poisoned(grads):
    raise RuntimeError(_POISON)


def _check_swappable(t, name):
    import weakref
    if weakref.getweakrefs(t):
        raise RuntimeError(f"Cannot swap {name} because it has weakref associated with it")
    count = t._use_count()
    if count == 2 and t.is_leaf and t.requires_grad:  # its AccumulateGrad node may be the other user
        from ember.autograd.graph import get_gradient_edge
        node = get_gradient_edge(t).node
        if t._use_count() == 2:
            node.register_prehook(_poisoned)
            return
    if count > 1:
        raise RuntimeError(f"Expected use_count of {name} to be 1 or 2 with an AccumulateGrad node but got {count} make sure you are "
                           "not holding references to the tensor in other places.")


def swap_tensors(t1, t2):
    """Two tensor objects become each other: class, attributes, storage, gradient. All who hold them see it."""
    import copyreg
    if t1 is t2:
        return
    _check_swappable(t1, "t1")
    _check_swappable(t2, "t2")
    slots = copyreg._slotnames(type(t1))
    if set(slots) != set(copyreg._slotnames(type(t2))):
        raise RuntimeError("Cannot swap t1 and t2 if they have different slots")
    if type(t1) is not type(t2):
        t1.__class__, t2.__class__ = type(t2), type(t1)
    if t1.__dict__ or t2.__dict__:
        one, two = dict(t1.__dict__), dict(t2.__dict__)
        for t, own in ((t1, two), (t2, one)):
            t.__dict__.clear()
            t.__dict__.update(own)
    for name in slots:
        one, two = getattr(t1, name, None), getattr(t2, name, None)
        setattr(t1, name, two)
        setattr(t2, name, one)
    t1._swap_impl(t2)


def __dir__():
    return sorted([*globals(), *_LAZY])

"""Modules as functions of their parameters."""

import contextlib

import ember
from ember.nn import Module, ModuleList


def _places(module):
    """{full name: (owner, dict that holds it, key)} of parameters and buffers, shared ones under every name."""
    found = {}
    for prefix, owner in module.named_modules(remove_duplicate=False):
        for held in (owner._parameters, owner._buffers):
            for key, value in held.items():
                if value is not None:
                    found[f"{prefix}.{key}" if prefix else key] = owner, held, key
    return found


def _one_dict(given):
    if isinstance(given, dict):
        return given
    if not isinstance(given, (list, tuple)):
        raise ValueError(
            f"Expected parameter_and_buffer_dicts to be a dict, or a list/tuple of dicts, but got {type(given)}"
        )
    if not all(isinstance(d, dict) for d in given):
        raise ValueError("Expected all elements of parameter_and_buffer_dicts to be dictionaries")
    keys = [k for d in given for k in d]
    repeated = [k for i, k in enumerate(keys) if k in keys[:i]]
    if repeated:
        raise ValueError(f"{repeated} appeared in multiple dictionaries; behavior of functional call is ambiguous")
    return {k: v for d in given for k, v in d.items()}


def _with_tied(values, places):
    """values also under the names that share a parameter with a given one."""
    groups = {}
    for name, (_, held, key) in places.items():
        groups.setdefault(id(held[key]), []).append(name)
    full = dict(values)
    for names in groups.values():
        given = [n for n in names if n in values]
        if any(values[n] is not values[given[0]] for n in given):
            raise ValueError(
                f"functional_call got multiple values for keys {sorted(given)}, which are tied. Consider using "
                "tie_weights=False"
            )
        if given:
            full.update((n, values[given[0]]) for n in names)
    return full


@contextlib.contextmanager
def _holding(module, values, tie_weights, strict):
    """Within: the module holds these tensors instead of its own."""
    places = _places(module)
    full = _with_tied(values, places) if tie_weights else dict(values)
    unexpected, missing = sorted(set(full) - set(places)), sorted(set(places) - set(full))
    if strict and (unexpected or missing):
        lines = [
            f"\n\t{title} key(s): {', '.join(map(repr, names))}."
            for title, names in (("Unexpected", unexpected), ("Missing", missing))
            if names
        ]
        raise RuntimeError(f"Error(s) in reparametrizing for {module._get_name()}:{''.join(lines)}")
    for value in full.values():
        if not isinstance(value, ember.Tensor):
            raise TypeError(f"{value} is not an instance of torch.Tensor")
    before = [(held, key, held[key], full[name]) for name, (_, held, key) in places.items() if name in full]
    lists = [owner for owner in module.modules() if hasattr(owner, "_init_flat_weights")]
    try:
        for held, key, _, value in before:
            held[key] = value
        for owner in lists:
            owner._init_flat_weights()
        yield
    finally:
        for held, key, value, _ in before:
            held[key] = value
        for owner in lists:
            owner._init_flat_weights()


def functional_call(module, parameter_and_buffer_dicts, args=None, kwargs=None, *, tie_weights=True, strict=False):
    """module(*args, **kwargs) with the given tensors in the place of its parameters and buffers, by name."""
    values = _one_dict(parameter_and_buffer_dicts)
    args = () if args is None else args if isinstance(args, tuple) else (args,)
    if not isinstance(module, Module):
        module.named_parameters  # its own complaint
    with _holding(module, values, tie_weights, strict):
        return module(*args, **({} if kwargs is None else kwargs))


def _stack(tensors, name, trainable):
    if not trainable:
        return ember.stack([t.detach() for t in tensors])
    if any(t.requires_grad != tensors[0].requires_grad for t in tensors):
        raise RuntimeError(f"Expected {name} from each model to have the same .requires_grad")
    return ember.stack([t.detach() for t in tensors]).requires_grad_(tensors[0].requires_grad)


def stack_module_state(models):
    """({name: all models' parameters stacked}, {name: buffers stacked}), for vmap over functional_call."""
    models = list(models) if isinstance(models, ModuleList) else models
    if len(models) == 0:
        raise RuntimeError("stack_module_state: Expected at least one model, got 0.")
    if any(m.training != models[0].training for m in models):
        raise RuntimeError("stack_module_state: Expected all models to have the same training/eval mode.")
    if any(type(m) is not type(models[0]) for m in models):
        raise RuntimeError("stack_module_state: Expected all models to be of the same class.")
    params = [dict(m.named_parameters()) for m in models]
    buffers = [dict(m.named_buffers()) for m in models]
    return (
        {k: _stack([p[k] for p in params], k, True) for k in params[0]},
        {k: _stack([b[k] for b in buffers], k, False) for k in buffers[0]},
    )

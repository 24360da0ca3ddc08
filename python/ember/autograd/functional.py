"""Derivatives of functions of tensors: Jacobians, Hessians and their products with vectors. torch.autograd.functional's interface."""

from typing import Any

import ember

Tensor = ember.Tensor
__all__ = ["vjp", "jvp", "jacobian", "hessian", "hvp", "vhp"]
_OUTPUTS = "outputs of the user-provided function"


def _as_tuple(value, what, name):
    """(was it a tuple, the tensors as one)."""
    given = value if isinstance(value, tuple) else (value,)
    for i, t in enumerate(given):
        if not isinstance(t, Tensor):
            where = f"value at index {i}" if isinstance(value, tuple) else f"given {what}"
            raise TypeError(
                f"The {what} given to {name} must be either a Tensor or a tuple of Tensors but the {where} has type "
                f"{type(t)}."
            )
    return isinstance(value, tuple), given


def _inputs(values, create_graph, needs=True):
    """Tensors to differentiate by: connected to the caller's graph with create_graph, else leaves of our own."""
    return tuple(t.view_as(t) if create_graph and t.requires_grad else t.detach().requires_grad_(needs) for t in values)


def _results(values, create_graph):
    if isinstance(values, tuple):
        return tuple(_results(v, create_graph) for v in values)
    return values if create_graph else values.detach()


def _one(values, many):
    return values if many else values[0]


def _need_grad(outputs, strict):
    for i, t in enumerate(outputs):
        if strict and not t.requires_grad:
            raise RuntimeError(
                f"Output {i} of the user-provided function does not require gradients. The outputs must be computed in "
                "a differentiable manner from the input when running in strict mode."
            )


def _vector(v, like, many, alone):
    """v checked against tensors that it belongs to."""
    if v is None:
        if len(like) != 1 or like[0].numel() != 1:
            raise RuntimeError(f"The vector v can only be None if {alone}")
        return (ember.ones_like(like[0]),)
    _, v = _as_tuple(v, "v", "vjp")
    if len(v) != len(like):
        if many:
            raise RuntimeError(f"v is a tuple of invalid length: should be {len(like)} but got {len(v)}.")
        raise RuntimeError("The given v should contain a single Tensor.")
    for i, (a, b) in enumerate(zip(v, like)):
        if a.size() != b.size():
            entry = f"Entry {i} in v" if many else "v"
            raise RuntimeError(f"{entry} has invalid size: should be {b.size()} but got {a.size()}.")
    return v


def _grad(outputs, inputs, vectors=None, create_graph=False):
    """Gradients of the outputs that have any; None where nothing depends."""
    vectors = [None] * len(outputs) if vectors is None else vectors
    pairs = [(o, v) for o, v in zip(outputs, vectors) if o is not None and o.requires_grad]
    if not pairs:
        return (None,) * len(inputs)
    return ember.autograd.grad(
        [o for o, _ in pairs],
        inputs,
        [v for _, v in pairs],
        retain_graph=True,
        create_graph=create_graph,
        allow_unused=True,
    )


def _filled(grads, like, strict, stage):
    """Zeros for None, which strict refuses; stage: what the message says, with the number of the input or output."""
    for i, g in enumerate(grads):
        if g is None and strict:
            raise RuntimeError(stage.format(i))
    return tuple(ember.zeros_like(t) if g is None else g for g, t in zip(grads, like))


_INDEPENDENT = (
    "The output of the user-provided function is independent of input {}. This is not allowed in strict mode."
)


def vjp(func, inputs, v=None, create_graph=False, strict=False) -> Any:
    """(func(inputs), the product of v with the Jacobian)."""
    with ember.enable_grad():
        many, inputs = _as_tuple(inputs, "inputs", "vjp")
        inputs = _inputs(inputs, create_graph)
        several, outputs = _as_tuple(func(*inputs), _OUTPUTS, "vjp")
        _need_grad(outputs, strict)
        v = _vector(v, outputs, several, "the user-provided function returns a single Tensor with a single element.")
    with ember.set_grad_enabled(create_graph or ember.is_grad_enabled()):
        found = _filled(_grad(outputs, inputs, v, create_graph), inputs, strict, _INDEPENDENT)
    return _one(_results(outputs, create_graph), several), _one(_results(found, create_graph), many)


def _pushed(outputs, inputs, v, create_graph, strict):
    """The Jacobian times v: the derivative, by u, of u times the Jacobian."""
    u = tuple(ember.zeros_like(o).requires_grad_() for o in outputs)
    back = _grad(outputs, inputs, u, True)
    _filled(back, inputs, strict, _INDEPENDENT)
    found = _grad(back, u, v, create_graph)
    return _filled(
        found,
        outputs,
        strict,
        "Output {} of the user-provided function is independent of the inputs. This is not allowed in " "strict mode.",
    )


def jvp(func, inputs, v=None, create_graph=False, strict=False) -> Any:
    """(func(inputs), the product of the Jacobian with v), by walking backward twice."""
    with ember.enable_grad():
        many, inputs = _as_tuple(inputs, "inputs", "jvp")
        inputs = _inputs(inputs, create_graph)
        v = _vector(
            v, inputs, many, "the input to the user-provided function is a single Tensor with a single element."
        )
        several, outputs = _as_tuple(func(*inputs), _OUTPUTS, "jvp")
        _need_grad(outputs, strict)
        found = _pushed(outputs, inputs, v, create_graph, strict)
    return _one(_results(outputs, create_graph), several), _one(_results(found, create_graph), several)


def _jacobian_of(index, output, inputs, create_graph, strict):
    """Blocks of one output, one an input."""
    rows = [[] for _ in inputs]
    for element in output.reshape(-1) if output.numel() else ():
        found = _grad((element,), inputs, None, create_graph)
        for i, (g, x) in enumerate(zip(found, inputs)):
            if g is None and strict:
                raise RuntimeError(
                    f"Output {index} of the user-provided function is independent of input {i}. This is not allowed in strict "
                    "mode."
                )
            if strict and create_graph and not g.requires_grad:
                raise RuntimeError(
                    f"The jacobian of the user-provided function is independent of input {i}. This is not allowed in strict "
                    "mode when create_graph=True."
                )
            rows[i].append(ember.zeros_like(x) if g is None else g)
    return tuple(
        ember.stack(r).view(output.size() + x.size()) if r else x.new_zeros(output.size() + x.size())
        for r, x in zip(rows, inputs)
    )


def jacobian(func, inputs, create_graph=False, strict=False, vectorize=False, strategy="reverse-mode") -> Any:
    """The Jacobian: a tensor, a tuple over inputs or outputs, or a tuple of tuples. vectorize and strategy do not change it."""
    assert strategy in ("forward-mode", "reverse-mode"), (
        'Expected strategy to be either "forward-mode" or "reverse-mode". Hint: If your function has more outputs than inputs, '
        '"forward-mode" tends to be more performant. Otherwise, prefer to use "reverse-mode".'
    )
    if strategy == "forward-mode":
        if create_graph:
            raise NotImplementedError(
                'torch.autograd.functional.jacobian: `create_graph=True` and `strategy="forward-mode"` are not '
                'supported together (yet). Please either set `create_graph=False` or `strategy="reverse-mode"`.'
            )
        if not vectorize:
            raise NotImplementedError(
                "Computing Jacobian using forward-AD or forward-over-reverse Hessian isonly implemented for "
                "`vectorize=True`."
            )
    if vectorize and strict:
        raise RuntimeError(
            "torch.autograd.functional.jacobian: `strict=True` and `vectorized=True` are not supported together. "
            "Please either set `strict=False` or `vectorize=False`."
        )
    with ember.enable_grad():
        many, inputs = _as_tuple(inputs, "inputs", "jacobian")
        inputs = _inputs(inputs, create_graph)
        several, outputs = _as_tuple(func(*inputs), _OUTPUTS, "jacobian")
        _need_grad(outputs, strict)
        blocks = tuple(_jacobian_of(i, o, inputs, create_graph, strict) for i, o in enumerate(outputs))
    blocks = _results(blocks, create_graph)
    return _one(tuple(_one(b, many) for b in blocks), several)


def _single(output, name):
    several, output = _as_tuple(output, _OUTPUTS, name)
    if several or not isinstance(output[0], Tensor):
        raise RuntimeError(f"The function given to {name} should return a single Tensor")
    if output[0].numel() != 1:
        raise RuntimeError(f"The Tensor returned by the function given to {name} should contain a single element")
    return output[0]


_FLAT = (
    "While computing the hessian, found that the jacobian of the user-provided function with respect to input {} is independent of the "
    "input. This is not allowed in strict mode. You should ensure that your function is twice differentiable and that the jacobian "
    "depends on the inputs (this would be violated by a linear function for example)."
)


def hessian(func, inputs, create_graph=False, strict=False, vectorize=False, outer_jacobian_strategy="reverse-mode") -> Any:
    """Second derivatives of a function with one element: a tensor, or a tuple of tuples."""
    assert outer_jacobian_strategy in (
        "forward-mode",
        "reverse-mode",
    ), 'Expected strategy to be either "forward-mode" or "reverse-mode".'
    many, inputs = _as_tuple(inputs, "inputs", "hessian")

    def first(*given):
        def one(*tracked):
            output = _single(func(*tracked), "hessian")
            return output.squeeze() if output.dim() else output

        if outer_jacobian_strategy == "forward-mode":
            given = tuple(t.requires_grad_(True) for t in given)
        found = jacobian(one, given, create_graph=True)
        for i, g in enumerate(found):
            if strict and not g.requires_grad:
                raise RuntimeError(_FLAT.format(i))
        return found

    blocks = jacobian(
        first, inputs, create_graph=create_graph, strict=strict, vectorize=vectorize, strategy=outer_jacobian_strategy
    )
    return _one(tuple(_one(b, many) for b in blocks), many)


def _first_order(func, inputs, name, create_graph, strict):
    """(output, gradients that can be differentiated, inputs)."""
    output = _single(func(*inputs), name)
    _need_grad((output,), strict)
    found = _filled(_grad((output,), inputs, None, True), inputs, strict, _INDEPENDENT)
    return output, found


_LINEAR = "The jacobian of the user-provided function is independent of input {}. This is not allowed in strict mode."


def vhp(func, inputs, v=None, create_graph=False, strict=False) -> Any:
    """(func(inputs), v times the Hessian)."""
    with ember.enable_grad():
        many, inputs = _as_tuple(inputs, "inputs", "vhp")
        inputs = _inputs(inputs, create_graph)
        v = _vector(
            v, inputs, many, "the input to the user-provided function is a single Tensor with a single element."
        )
        output, first = _first_order(func, inputs, "vhp", create_graph, strict)
        found = _filled(_grad(first, inputs, v, create_graph), inputs, strict, _LINEAR)
    return _results(output, create_graph), _one(_results(found, create_graph), many)


def hvp(func, inputs, v=None, create_graph=False, strict=False) -> Any:
    """(func(inputs), the Hessian times v)."""
    with ember.enable_grad():
        many, inputs = _as_tuple(inputs, "inputs", "hvp")
        inputs = _inputs(inputs, create_graph)
        v = _vector(
            v, inputs, many, "the input to the user-provided function is a single Tensor with a single element."
        )
        output, first = _first_order(func, inputs, "hvp", create_graph, strict)
        found = _pushed(first, inputs, v, create_graph, strict)
    return _results(output, create_graph), _one(_results(found, create_graph), many)

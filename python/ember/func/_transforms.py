"""grad, vjp, jvp, Jacobians: transforms of functions, over the recorded graph."""

import functools

import ember
from ember.utils._pytree import tree_flatten, tree_map, tree_unflatten

Tensor = ember.Tensor


def _track(tree, outer):
    """(tree of tensors to differentiate by, its leaves, those of them that are this transform's own).

    A tensor that an outer transform or the caller differentiates by stays connected to it.
    """
    leaves, spec = tree_flatten(tree)
    tracked, own = [], []
    for t in leaves:
        if not isinstance(t, Tensor):
            raise ValueError(f"Thing passed to transform API must be Tensor, got {type(t)}")
        if outer and t.requires_grad:
            tracked.append(t.view_as(t))
            continue
        if not (t.is_floating_point() or t.is_complex()):
            raise RuntimeError("only Tensors of floating point dtype can require gradients")
        tracked.append(t.detach().requires_grad_())
        own.append(tracked[-1])
    return tree_unflatten(tracked, spec), tracked, own


def _tensors(*trees):
    return [t for tree in trees for t in tree_flatten(tree)[0] if isinstance(t, Tensor)]


def _reaches_outside(tensors, own):
    """Whether a result depends on something that wants a gradient and is not this transform's own."""
    mine = {id(t) for t in own}
    todo = []
    for t in tensors:
        if t.grad_fn is not None:
            todo.append(t.grad_fn)
        elif t.requires_grad and id(t) not in mine:
            return True
    seen = set()
    while todo:
        node = todo.pop()
        if node in seen:
            continue
        seen.add(node)
        variable = getattr(node, "variable", None)
        if variable is not None and id(variable) not in mine:
            return True
        todo.extend(following for following, _ in node.next_functions if following is not None)
    return False


def _released(tree, outside):
    """Results as the caller gets them: without this transform's graph, unless something outside is in it."""
    return tree if outside else tree_map(lambda t: t.detach() if isinstance(t, Tensor) else t, tree)


def _grads(outputs, inputs, cotangents, create_graph):
    """Gradients, zeros where nothing depends."""
    pairs = [(o, c) for o, c in zip(outputs, cotangents) if o.requires_grad]
    if not pairs:
        return [ember.zeros_like(t) for t in inputs]
    found = ember.autograd.grad(
        [o for o, _ in pairs],
        inputs,
        [c for _, c in pairs],
        retain_graph=True,
        create_graph=create_graph,
        allow_unused=True,
    )
    return [ember.zeros_like(t) if g is None else g for g, t in zip(found, inputs)]


def _argnums(argnums, count):
    if not isinstance(argnums, int) and not (isinstance(argnums, tuple) and all(isinstance(i, int) for i in argnums)):
        raise RuntimeError(f"argnums must be int or Tuple[int, ...], got: {type(argnums)}")
    for i in (argnums,) if isinstance(argnums, int) else argnums:
        if not -count <= i < count:
            raise RuntimeError(f"Got argnum={i}, but only {count} positional inputs")


def _chosen(argnums, args):
    return args[argnums] if isinstance(argnums, int) else tuple(args[i] for i in argnums)


def _with_chosen(argnums, args, chosen):
    args = list(args)
    for i, value in [(argnums, chosen)] if isinstance(argnums, int) else zip(argnums, chosen):
        args[i] = value
    return args


def grad_and_value(func, argnums=0, has_aux=False):
    """A function that returns (gradient, value) of func, a scalar; (gradient, (value, aux)) with has_aux."""

    @functools.wraps(func)
    def wrapper(*args, **kwargs):
        _argnums(argnums, len(args))
        outer = ember.is_grad_enabled()
        with ember.enable_grad():
            chosen, inputs, own = _track(_chosen(argnums, args), outer)
            output, aux = func(*_with_chosen(argnums, args, chosen), **kwargs), None
            if has_aux:
                if not (isinstance(output, tuple) and len(output) == 2):
                    raise RuntimeError(
                        "grad_and_value(f)(*args): output of function f should be a tuple: "
                        "(output, aux) if has_aux is True"
                    )
                output, aux = output
            if not isinstance(output, Tensor):
                raise RuntimeError(
                    f"grad_and_value(f)(*args): Expected f(*args) to return a Tensor, got {type(output)}"
                )
            if output.dim() != 0:
                raise RuntimeError(
                    "grad_and_value(f)(*args): Expected f(*args) to return a scalar Tensor, got tensor with "
                    f"{output.dim()} dims. Maybe you wanted to use the vjp or jacrev APIs instead?"
                )
            outside = outer and _reaches_outside(_tensors(output, aux), own)
            grads = _grads([output], inputs, [ember.ones_like(output)], outside)
        grads = tree_unflatten(grads, tree_flatten(chosen)[1])
        output, aux, grads = _released((output, aux, grads), outside)
        return grads, ((output, aux) if has_aux else output)

    return wrapper


def grad(func, argnums=0, has_aux=False):
    """A function that returns the gradient of func, a scalar; (gradient, aux) with has_aux."""
    both = grad_and_value(func, argnums, has_aux)

    @functools.wraps(func)
    def wrapper(*args, **kwargs):
        grads, value = both(*args, **kwargs)
        return (grads, value[1]) if has_aux else grads

    return wrapper


def _run(name, func, primals, has_aux, outer):
    """func recorded: (output, aux, its leaves, tracked primals' leaves, whether something outside is in it)."""
    tracked, inputs, own = _track(primals, outer)
    output, aux = func(*tracked), None
    if has_aux:
        if not (isinstance(output, tuple) and len(output) == 2):
            raise RuntimeError(f"{name}: output of function f should be a tuple: (output, aux) if has_aux is True")
        output, aux = output
    outputs = tree_flatten(output)[0]
    for t in outputs:
        if not isinstance(t, Tensor):
            raise RuntimeError(f"{name}: expected f(*primals) to return only tensors, got unsupported type {type(t)}")
    return output, aux, outputs, inputs, outer and _reaches_outside(_tensors(output, aux), own)


def vjp(func, *primals, has_aux=False):
    """(output, a function from cotangents of the output to a tuple of those of the primals); with has_aux also aux."""
    outer = ember.is_grad_enabled()
    with ember.enable_grad():
        output, aux, outputs, inputs, outside = _run("vjp(f, *primals)", func, primals, has_aux, outer)
    spec, primal_spec = tree_flatten(output)[1], tree_flatten(primals)[1]

    def vjp_fn(cotangents, retain_graph=True, create_graph=None):
        given, got = tree_flatten(cotangents)
        if got != spec:
            raise RuntimeError(
                "Expected pytree structure of cotangents to be the same as pytree structure of outputs to "
                f"the function. cotangents: {_text(got)}, primal output: {_text(spec)}"
            )
        keep = ember.is_grad_enabled() and (outside or any(t.requires_grad for t in given))
        keep = keep if create_graph is None else create_graph
        for i, (c, o) in enumerate(zip(given, outputs)):
            if c.shape != o.shape:
                raise RuntimeError(
                    f"Mismatch in shape: grad_output[{i}] has a shape of {c.shape} and output[{i}] has a shape of "
                    f"{o.shape}."
                )
        return tree_unflatten(_grads(outputs, inputs, given, keep), primal_spec)

    result = _released((output, aux), outside)
    return (result[0], vjp_fn, result[1]) if has_aux else (result[0], vjp_fn)


def _text(spec):
    """A structure in short: * a leaf, (*, *) a tuple."""
    children = (
        spec.children()
        if hasattr(spec, "children") and callable(spec.children)
        else getattr(spec, "children_specs", [])
    )
    if spec.type is None or not children and spec.num_leaves == 1:
        return "*"
    inner = ", ".join(map(_text, children))
    return (
        f"({inner}{',' if len(children) == 1 else ''})"
        if spec.type is tuple
        else f"[{inner}]" if spec.type is list else str(spec)
    )


def _push(outputs, inputs, tangents, create_graph):
    """Tangents of the outputs: the gradient with respect to cotangents of a product that is linear in them."""
    cotangents = [ember.zeros_like(o).requires_grad_() for o in outputs]
    back = _grads(outputs, inputs, cotangents, True)
    pairs = [(b, t) for b, t in zip(back, tangents) if b.requires_grad]
    if not pairs:
        return [ember.zeros_like(o) for o in outputs]
    found = ember.autograd.grad(
        [b for b, _ in pairs],
        cotangents,
        [t for _, t in pairs],
        retain_graph=True,
        create_graph=create_graph,
        allow_unused=True,
    )
    return [ember.zeros_like(o) if f is None else f for f, o in zip(found, outputs)]


def jvp(func, primals, tangents, *, strict=False, has_aux=False):
    """(output, its tangent) for tangents of the primals, both tuples; with has_aux also aux."""
    name = "jvp(f, primals, tangents)"
    if not isinstance(primals, tuple):
        raise RuntimeError(f"{name}: Expected primals to be a tuple. E.g. it should be valid to call f(*primals).")
    (flat, spec), (given, got) = tree_flatten(primals), tree_flatten(tangents)
    if spec != got:
        raise RuntimeError(
            f"{name}: Expected primals and tangents to have the same python structure. For example, if primals is "
            "a tuple of 3 tensors, tangents also must be. Got primals with structure "
            f"{spec} and tangents with structure {got}"
        )
    if not flat:
        raise RuntimeError(f"{name}: Expected primals to contain at least one Tensor.")
    for p, t in zip(flat, given):
        if isinstance(p, Tensor) and isinstance(t, Tensor) and p.shape != t.shape:
            raise RuntimeError(
                "Trying to set a forward gradient that has a different size than that of the original Tensor, this "
                f"is not supported. Tensor is of size {list(p.shape)} while the given forward gradient is of size "
                f"{list(t.shape)}."
            )
    outer = ember.is_grad_enabled()
    with ember.enable_grad():
        output, aux, outputs, inputs, outside = _run(name, func, primals, has_aux, outer)
        if strict and not all(o.requires_grad for o in outputs):
            raise RuntimeError(
                "jvp(f, primals, tangents, strict=True): The output of f is independent of the inputs. This is not "
                "allowed with strict=True."
            )
        outside = outside or outer and any(t.requires_grad for t in given)
        pushed = tree_unflatten(_push(outputs, inputs, given, outside), tree_flatten(output)[1])
    output, aux, pushed = _released((output, aux, pushed), outside)
    return (output, pushed, aux) if has_aux else (output, pushed)


def linearize(func, *primals):
    """(output, a function from tangents to the output's tangent at these primals)."""
    output = func(*primals)

    def push(*tangents):
        return jvp(func, primals, tangents)[1]

    return output, push


def jacrev(func, argnums=0, *, has_aux=False, chunk_size=None, _preallocate_and_copy=False):
    """A function that returns the Jacobian: for each output, for each chosen argument, a tensor of the shapes' sum."""
    if not (chunk_size is None or chunk_size > 0):
        raise ValueError("jacrev: `chunk_size` should be greater than 0.")

    @functools.wraps(func)
    def wrapper(*args, **kwargs):
        _argnums(argnums, len(args))
        chosen = _chosen(argnums, args)
        part = lambda value: func(*_with_chosen(argnums, args, value), **kwargs)  # noqa: E731
        made = vjp(part, chosen, has_aux=has_aux)
        output, back = made[0], made[1]
        leaves, spec = tree_flatten(output)
        rows = []
        for i, leaf in enumerate(leaves):
            unit = [ember.zeros_like(t) for t in leaves]
            found = []
            for k in range(leaf.numel()):
                flat = ember.zeros(leaf.numel(), dtype=leaf.dtype, device=leaf.device)
                flat[k] = 1
                unit[i] = flat.view(leaf.shape)
                found.append(tree_flatten(back(tree_unflatten(unit, spec))[0])[0])
            rows.append(_rows(found, leaf, chosen))
        result = tree_unflatten(rows, spec)
        return (result, made[2]) if has_aux else result

    return wrapper


def _rows(found, leaf, chosen):
    """Gradients of one output's elements, one list each, as Jacobians in the argument's structure."""
    inputs, spec = tree_flatten(chosen)
    blocks = []
    for j, t in enumerate(inputs):
        shape = (*leaf.shape, *t.shape)
        blocks.append(ember.stack([g[j] for g in found]).view(shape) if found else t.new_zeros(shape))
    return tree_unflatten(blocks, spec)


def jacfwd(func, argnums=0, has_aux=False, *, randomness="error"):
    """The Jacobian, as jacrev gives it."""
    return jacrev(func, argnums, has_aux=has_aux)


def hessian(func, argnums=0):
    """A function that returns the second derivatives: the Jacobian of the Jacobian."""
    return jacfwd(jacrev(func, argnums), argnums)

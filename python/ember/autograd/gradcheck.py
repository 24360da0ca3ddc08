"""Gradients from backward against gradients from differences.

Slow mode compares whole Jacobians, one column an element. Fast mode compares one number a pair of input and output:
the Jacobian between two random vectors.
"""

import warnings
from itertools import product
from typing import Any

import ember

__all__ = ["gradcheck", "gradgradcheck", "GradcheckError"]


class GradcheckError(RuntimeError):
    """Raised by gradcheck and gradgradcheck when a gradient is wrong."""


_NONDET_MSG = ("\n\nNOTE: If your op relies on non-deterministic operations i.e., it is listed here:\n"
               "https://pytorch.org/docs/stable/generated/torch.use_deterministic_algorithms.html\n"
               "this failure might be expected. Pass a nondet_tol > 0 to allow for it.")


def _as_tuple(x):
    if isinstance(x, tuple):
        return x
    return tuple(x) if isinstance(x, list) else (x,)


def _differentiable(x):
    """The tensors in x that require grad."""
    return tuple(t for t in _as_tuple(x) if isinstance(t, ember.Tensor) and t.requires_grad)


def _is_real_or_complex(t):
    return t.is_floating_point() or t.is_complex()


def _checked_inputs(inputs):
    """The inputs that require grad, with their positions. Raises, or warns about single precision."""
    found = []
    for idx, inp in enumerate(inputs):
        if not (isinstance(inp, ember.Tensor) and inp.requires_grad):
            continue
        if inp.dtype not in (ember.float64, ember.complex128):
            warnings.warn(f"Input #{idx} requires gradient and is not a double precision floating point or complex. "
                          "This check will likely fail if all the inputs are not of double precision floating point "
                          "or complex. ", stacklevel=4)
        if any(stride == 0 and size > 1 for stride, size in zip(inp.stride(), inp.size())):
            raise RuntimeError(f"The {idx}th input has a dimension with stride 0. gradcheck only supports inputs that "
                               "are non-overlapping to be able to compute the numerical gradients correctly. You "
                               "should call .contiguous on the input before passing it to gradcheck.")
        inp.retain_grad()
        found.append((idx, inp))
    if not found:
        raise ValueError("gradcheck expects at least one input tensor to require gradient, but none of them have "
                         "requires_grad=True.")
    return found


class _Case:
    """One function with its inputs: what both modes need to evaluate it."""

    def __init__(self, func, inputs, part=None) -> None:
        self.func = func
        self.inputs = inputs
        self.part = part  # None, ember.real or ember.imag: the part of complex outputs under test

    def outputs(self) -> Any:
        """Differentiable outputs, real ones where part is set."""
        outs = _differentiable(self.func(*self.inputs))
        return outs if self.part is None else tuple(self.part(o) if o.is_complex() else o for o in outs)

    def values(self) -> Any:
        """Copies of all floating outputs that outputs() would hold, recorded or not."""
        outs = [o for o in _as_tuple(self.func(*self.inputs)) if isinstance(o, ember.Tensor)]
        if any(o.requires_grad for o in outs):
            outs = [o for o in outs if o.requires_grad]
        if self.part is not None:
            outs = [self.part(o) if o.is_complex() else o for o in outs]
        return [o.detach().clone() for o in outs]

    def difference(self, set_input, eps, where) -> Any:
        """Central differences of all outputs: set_input(-eps), set_input(eps), each output's (b - a) / (2 * eps)."""
        set_input(-eps)
        low = self.values()
        set_input(eps)
        high = self.values()
        set_input(0)
        for a, b in zip(low, high):
            if a.shape != b.shape:
                raise AssertionError("Expected `func` to return outputs with the same shape when inputs are perturbed "
                                     f"{where}by {eps}, but got: shapes {a.shape} and {b.shape}.")
            if a.dtype != b.dtype:
                raise AssertionError("Expected `func` to return outputs with the same dtype when inputs are perturbed "
                                     f"{where}by {eps}, but got: dtypes {a.dtype} and {b.dtype}.")
        return [(b - a) / (2 * eps) for a, b in zip(low, high)]


def _numerical_jacobians(case, inp, eps):
    """For each output: (elements of inp, elements of output), from differences. Complex: d/dx + i d/dy."""
    columns = []
    data = inp.data  # Writes to .data leave the recorded version alone.
    for index in product(*(range(n) for n in inp.shape)):
        origin = data[index].item()

        def set_input(step):
            data[index] = origin + step

        where = f"on index {index} "
        rows = case.difference(set_input, eps, where)
        if inp.is_complex():
            def set_input(step):
                data[index] = origin + step * 1j

            rows = [re + 1j * im for re, im in zip(rows, case.difference(set_input, eps, where))]
        columns.append([row.reshape(-1) for row in rows])
    if not columns:
        return [ember.zeros(0, v.numel(), dtype=v.dtype) for v in case.values()]
    return [ember.stack([row[j] for row in columns]) for j in range(len(columns[0]))]


def _grads(output, inputs, grad_output, **kwargs):
    return ember.autograd.grad(output, inputs, grad_output, retain_graph=True, allow_unused=True, **kwargs)


def _checked_grad(grad, inp, check_grad_dtypes):
    """grad, flattened, or zeros for None; the right size and dtype."""
    if grad is None:
        return ember.zeros_like(inp).reshape(-1).detach()
    if grad.shape != inp.shape:
        raise GradcheckError("Analytical gradient has incorrect size")
    if check_grad_dtypes and grad.dtype != inp.dtype:
        raise GradcheckError("Gradient has dtype mismatch")
    return grad.detach().reshape(-1)


def _analytical_jacobians(output, inputs, check_grad_dtypes):
    """For each input: (elements of input, elements of output), by one backward an output element."""
    one = ember.zeros_like(output, memory_format=ember.contiguous_format)
    flat = one.view(-1)
    columns = []
    for k in range(output.numel()):
        flat[k] = 1
        grads = _grads(output, inputs, one)
        # Cloned before the reset: a gradient may be a view of grad_output.
        columns.append([_checked_grad(g, i, check_grad_dtypes).clone() for g, i in zip(grads, inputs)])
        flat[k] = 0
    return [ember.stack([column[i] for column in columns], 1) if columns else
            ember.zeros(inp.numel(), 0, dtype=inp.dtype) for i, inp in enumerate(inputs)]


def _close(a, n, rtol, atol):
    """allclose after promotion to a common dtype."""
    dtype = ember.promote_types(a.dtype, n.dtype)
    a, n = a.to(dtype), n.to(dtype)
    excess = (a - n).abs() - (atol + rtol * n.abs())
    return bool(ember.where(a == n, ember.zeros_like(excess), excess).le(0).all().item())


def _mismatch(analytical, numerical, out_idx, in_idx, part):
    prefix = ""
    if part is not None:
        name = "imaginary" if part is ember.imag else "real"
        prefix = f"While considering the {name} part of complex outputs only, "
    return (f"{prefix}Jacobian mismatch for output {out_idx:d} with respect to input {in_idx:d},\n"
            f"numerical:{numerical}\nanalytical:{analytical}\n")


def _check_reentrant(first, second, nondet_tol):
    for a, b in zip(first, second):
        if a.numel() and (a - b).abs().max().item() > nondet_tol:
            raise GradcheckError("Backward is not reentrant, i.e., running backward with same input and grad_output "
                                 "multiple times gives different values, although analytical gradient matches "
                                 f"numerical gradient.The tolerance for nondeterminism was {nondet_tol}."
                                 + _NONDET_MSG)


def _slow(case, inputs, eps, atol, rtol, nondet_tol, check_grad_dtypes):
    """inputs: (position, tensor) pairs."""
    tensors = [t for _, t in inputs]
    numerical = [_numerical_jacobians(case, t, eps) for t in tensors]
    for j, output in enumerate(case.outputs()):
        analytical = _analytical_jacobians(output, tensors, check_grad_dtypes)
        again = _analytical_jacobians(output, tensors, check_grad_dtypes)
        for i, a in enumerate(analytical):
            n = numerical[i][j]
            if not _close(a, n.to(a.device), rtol, atol):
                raise GradcheckError(_mismatch(a, n, j, i, case.part))
        _check_reentrant(analytical, again, nondet_tol)


def _random_unit(t, generator):
    """A random real vector of length one, one element for each of t."""
    v = ember.rand(t.numel(), generator=generator, dtype=ember.float64)
    return v / (v * v).sum().sqrt() if t.numel() else v


def _directional(case, inp, direction, eps):
    """Change of all outputs when inp moves along direction (shaped as inp)."""
    data = inp.data
    origin = data.clone()

    def set_input(step):
        data.copy_(origin + direction * step if step else origin)

    return [row.reshape(-1) for row in case.difference(set_input, eps, "")]


def _fast(case, inputs, eps, atol, rtol, nondet_tol, check_grad_dtypes):
    generator = ember.Generator()  # Its own, so that the check does not disturb the default one.
    tensors = [t for _, t in inputs]
    us = [_random_unit(t, generator) for t in tensors]
    outputs = case.outputs()
    for i, (u, inp) in enumerate(zip(us, tensors)):
        real = u.reshape(inp.shape).to(inp.dtype)
        moved = _directional(case, inp, real, eps)
        if inp.is_complex():
            moved = [re + 1j * im for re, im in zip(moved, _directional(case, inp, real * 1j, eps))]
        for j, output in enumerate(outputs):
            v = _random_unit(output, generator)
            grad_output = v.reshape(output.shape).to(output.dtype)
            runs = [_checked_grad(_grads(output, [inp], grad_output)[0], inp, check_grad_dtypes) for _ in range(2)]
            a = (runs[0] * u.to(runs[0].dtype)).sum()
            n = (moved[j] * v.to(moved[j].dtype)).sum()
            scaled_atol = atol * float(u.sum()) * float(v.sum())
            if not _close(a, n, rtol, scaled_atol):
                raise GradcheckError(_mismatch(a, n, j, i, case.part)
                                     + _slow_details(case, inp, output, j, eps, check_grad_dtypes))
            _check_reentrant(runs[:1], runs[1:], nondet_tol)


def _slow_details(case, inp, output, j, eps, check_grad_dtypes):
    """Both Jacobians in full, for the message of a failure in fast mode."""
    a = _analytical_jacobians(output, [inp], check_grad_dtypes)[0]
    n = _numerical_jacobians(case, inp, eps)[j]
    worst = (a - n).abs().max().item()
    return ("\nThe above quantities relating the numerical and analytical jacobians are computed \nin fast mode. "
            "The jacobians in slow mode:\n\n"
            f"Numerical:\n {n}\nAnalytical:\n{a}\n\nThe max per-element difference (slow mode) is: {worst}.\n")


def _check_not_differentiable(case, inputs, eps):
    """No output requires grad: then none may depend on the inputs."""
    for _, inp in inputs:
        for jacobian in _numerical_jacobians(case, inp, eps):
            if not jacobian.is_complex() and not jacobian.is_floating_point():
                continue
            if jacobian.ne(0).any().item():
                raise GradcheckError("Numerical gradient for function expected to be zero")


def _check_zero_grad_output(outputs, inputs):
    """Backward must be linear in grad_output: zeros in, zeros of the right kind out."""
    tensors = [t for _, t in inputs]
    zeros = [ember.zeros_like(o, memory_format=ember.contiguous_format) for o in outputs]
    for grad, inp in zip(_grads(outputs, tensors, zeros), tensors):
        if grad is None:
            continue
        if not grad.eq(0).all().item():
            raise GradcheckError("backward not multiplied by grad_output")
        if grad.dtype != inp.dtype:
            raise GradcheckError("grad is incorrect type")
        if grad.device != inp.device:
            raise GradcheckError("grad is incorrect device")
        if grad.size() != inp.size():
            raise GradcheckError("grad is incorrect size")


_drop = None


def _undefined(t):
    """t, through a node whose backward answers None."""
    global _drop
    if _drop is None:
        class UndefinedGrad(ember.autograd.Function):
            @staticmethod
            def forward(ctx, x):
                return x.view_as(x)

            @staticmethod
            def backward(ctx, grad):
                return None

        _drop = UndefinedGrad
    return _drop.apply(t)


def _check_undefined_grads(func, inputs, tupled):
    """Backward must accept undefined gradients of all outputs, and of each alone, and take them for zeros."""
    tensors = [t for _, t in inputs]
    outputs = _differentiable(func(*tupled))
    variants = [range(len(outputs))]
    if len(outputs) > 1:
        variants += [[k] for k in range(len(outputs))]
    for chosen in variants:
        outs = _differentiable(func(*tupled))
        outs = [_undefined(o) if k in chosen else o for k, o in enumerate(outs)]
        zeros = [ember.zeros_like(o, memory_format=ember.contiguous_format) for o in outs]
        where = ('Please look at "Notes about undefined output gradients" in "tools/autograd/derivatives.yaml"')
        try:
            grads = _grads(outs, tensors, zeros)
        except RuntimeError as e:
            raise GradcheckError(f"Expected backward function to handle undefined output grads. {where}") from e
        if any(g is not None and not g.eq(0).all().item() for g in grads):
            raise GradcheckError("Expected all input grads to be undefined or zero when all output grads are "
                                 f"undefined or zero. {where}")


def _gradcheck(func, tupled, eps, atol, rtol, nondet_tol, check_undefined_grad, check_grad_dtypes, fast_mode):
    inputs = _checked_inputs(tupled)
    result = func(*tupled)
    outputs = _differentiable(result)
    if not outputs:
        _check_not_differentiable(_Case(func, tupled), inputs, eps)
        return True
    check = _fast if fast_mode else _slow
    parts = (None,)
    if any(o.is_complex() for o in outputs):
        parts = (ember.imag, ember.real)
    for part in parts:
        check(_Case(func, tupled, part), inputs, eps, atol, rtol, nondet_tol, check_grad_dtypes)
    _check_zero_grad_output(outputs, inputs)
    if check_undefined_grad:
        _check_undefined_grads(func, inputs, tupled)
    return True


def _refuse(**options):
    for name, wanted in options.items():
        if wanted:
            raise NotImplementedError(f"gradcheck: {name}=True needs forward-mode derivatives or vmap, which Ember "
                                      "does not have yet")


def gradcheck(func, inputs, *, eps=1e-6, atol=1e-5, rtol=1e-3, raise_exception=True, nondet_tol=0.0,
              check_undefined_grad=True, check_grad_dtypes=False, check_batched_grad=False,
              check_batched_forward_grad=False, check_forward_ad=False, check_backward_ad=True, fast_mode=False,
              masked=None) -> Any:
    """Compare backward's gradients of func(*inputs) with central differences of step eps. True if they agree.

    func: takes tensors, returns a tensor or a tuple of them. Inputs that require grad should be float64 or
    complex128. Raises GradcheckError on a mismatch, or returns False if not raise_exception.
    """
    if not (check_forward_ad or check_backward_ad):
        raise AssertionError("Expected at least one of check_forward_ad or check_backward_ad to be True")
    if check_batched_grad and not check_backward_ad:
        raise AssertionError("Setting check_batched_grad=True requires check_backward_ad to be True")
    if check_batched_forward_grad and not check_forward_ad:
        raise AssertionError("Setting check_batched_forward_grad=True requires check_forward_ad to be True")
    _refuse(check_forward_ad=check_forward_ad, check_batched_grad=check_batched_grad,
            check_batched_forward_grad=check_batched_forward_grad)
    try:
        return _gradcheck(func, _as_tuple(inputs), eps, atol, rtol, nondet_tol, check_undefined_grad,
                          check_grad_dtypes, fast_mode)
    except GradcheckError:
        if raise_exception:
            raise
        return False


def _random_grad_outputs(outputs, noncontiguous):
    """Random gradients in [-1, 1) for outputs, themselves requiring grad."""
    result = []
    for o in outputs:
        dtype = o.dtype if _is_real_or_complex(o) else ember.float64
        shape = (*o.shape, 2) if noncontiguous else tuple(o.shape)
        g = ember.rand(shape, dtype=dtype, device=o.device) * 2 - 1
        result.append((g[..., 0] if noncontiguous else g).detach().requires_grad_())
    return tuple(result)


def gradgradcheck(func, inputs, grad_outputs=None, *, eps=1e-6, atol=1e-5, rtol=1e-3,
                  gen_non_contig_grad_outputs=False, raise_exception=True, nondet_tol=0.0, check_undefined_grad=True,
                  check_grad_dtypes=False, check_batched_grad=False, check_fwd_over_rev=False,
                  check_rev_over_rev=True, fast_mode=False, masked=False) -> Any:
    """gradcheck of the gradients of func: checks second derivatives, by inputs and by grad_outputs.

    grad_outputs: where the gradients are taken; random by default. Otherwise as gradcheck.
    """
    if not (check_fwd_over_rev or check_rev_over_rev):
        raise AssertionError("Expected at least one of check_fwd_over_rev or check_rev_over_rev to be True")
    if check_undefined_grad and not check_rev_over_rev:
        raise AssertionError("Setting check_undefined_grad=True requires check_rev_over_rev to be True")
    if check_batched_grad and not check_rev_over_rev:
        raise AssertionError("Setting check_batched_grad=True requires check_rev_over_rev to be True")
    _refuse(check_fwd_over_rev=check_fwd_over_rev, check_batched_grad=check_batched_grad)
    inputs = _as_tuple(inputs)
    if grad_outputs is None:
        grad_outputs = _random_grad_outputs(_differentiable(func(*inputs)), gen_non_contig_grad_outputs)
    else:
        grad_outputs = _as_tuple(grad_outputs)
    count = len(grad_outputs)

    def gradients(*args):
        own, given = args[:len(args) - count], args[len(args) - count:]
        grads = ember.autograd.grad(_differentiable(func(*own)), _differentiable(own), given, create_graph=True,
                                    allow_unused=True)
        return tuple(g for g in grads if g is not None)

    return gradcheck(gradients, inputs + grad_outputs, eps=eps, atol=atol, rtol=rtol,
                     raise_exception=raise_exception, nondet_tol=nondet_tol,
                     check_undefined_grad=check_undefined_grad, check_grad_dtypes=check_grad_dtypes,
                     fast_mode=fast_mode)

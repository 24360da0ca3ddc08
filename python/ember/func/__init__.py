"""Functions of functions: gradients, Jacobians and mapped calls, which nest. Names and behaviour of torch.func.

Two things are done differently underneath. vmap runs its function once for each slice and stacks the results, so the function may also
use .item() and branch on values; it saves writing, not time. Derivatives forward in direction (jvp, jacfwd) are computed by walking
backward twice.
"""

from ._module import functional_call, stack_module_state
from ._transforms import grad, grad_and_value, hessian, jacfwd, jacrev, jvp, linearize, vjp
from ._vmap import vmap

__all__ = [
    "grad",
    "grad_and_value",
    "vmap",
    "hessian",
    "jacfwd",
    "jacrev",
    "jvp",
    "linearize",
    "vjp",
    "functional_call",
    "stack_module_state",
]

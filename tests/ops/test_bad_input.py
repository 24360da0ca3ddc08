"""Bad input: PyTorch's exception class and opening words; in Ember the message also names the operator."""

import re

import pytest
from sampling import PRESENT, dtypes_of, samples, tensors
from subject import DTYPES, FULL, IS_EMBER, flat, operator, torch
from table import GROUPS, TABLE


def f(*shape, dtype=torch.float32):
    return torch.ones(shape, dtype=dtype)


LONG = torch.int64
# what is called, exception class, how its message opens (a regular expression), a word that Ember's message also has
CASES = {
    "broadcast": (
        lambda: f(5) + f(4),
        RuntimeError,
        r"The size of tensor a \(5\) must match the size of tensor b \(4\) at non-singleton dimension 0",
        "add",
    ),
    "broadcast of an inner dimension": (
        lambda: torch.mul(f(2, 3), f(2, 4)),
        RuntimeError,
        r"The size of tensor a \(3\) must match the size of tensor b \(4\) at non-singleton dimension 1",
        "mul",
    ),
    "mm shapes": (
        lambda: torch.mm(f(2, 3), f(2, 3)),
        RuntimeError,
        r"mat1 and mat2 shapes cannot be multiplied \(2x3 and 2x3\)",
        "mm",
    ),
    "mm of a vector": (
        lambda: torch.mm(f(3), f(3, 2)),
        RuntimeError,
        "self must be a matrix|mat1 must be a matrix",
        "mm",
    ),
    "mm dtypes": (
        lambda: torch.mm(f(2, 3), f(3, 2, dtype=torch.float64)),
        RuntimeError,
        "expected m1 and m2 to have the same dtype, but got: float != double",
        "mm",
    ),
    "bmm of matrices": (lambda: torch.bmm(f(2, 3), f(3, 2)), RuntimeError, "batch1 must be a 3D tensor", "bmm"),
    "matmul of 0-dim": (
        lambda: torch.matmul(f(), f(3)),
        RuntimeError,
        "both arguments to matmul need to be at least 1D, but they are 0D and 1D",
        "matmul",
    ),
    "dot of a matrix": (lambda: torch.dot(f(2, 2), f(2)), RuntimeError, "1D tensors expected", "dot"),
    "dim out of range": (
        lambda: f(2, 3).sum(2),
        IndexError,
        r"Dimension out of range \(expected to be in range of \[-2, 1\], but got 2\)",
        "sum",
    ),
    "negative dim out of range": (
        lambda: f(2, 3).softmax(-3),
        IndexError,
        r"Dimension out of range \(expected to be in range of \[-2, 1\], but got -3\)",
        "softmax",
    ),
    "dim given twice": (
        lambda: f(2, 3).sum((0, 0)),
        RuntimeError,
        "dim 0 appears multiple times in the list of dims",
        "sum",
    ),
    "permute of too few": (
        lambda: f(2, 3).permute(0),
        RuntimeError,
        r"permute\(sparse_coo\): number of dimensions in the tensor input does not match|permute",
        "permute",
    ),
    "transpose out of range": (lambda: f(2, 3).transpose(0, 5), IndexError, "Dimension out of range", "transpose"),
    "view of another size": (
        lambda: f(2, 3).view(4),
        RuntimeError,
        r"shape '\[4\]' is invalid for input of size 6",
        "view",
    ),
    "reshape of another size": (
        lambda: f(2, 3).reshape(4, -1),
        RuntimeError,
        r"shape '\[4, -1\]' is invalid for input of size 6",
        "reshape",
    ),
    "view of what is not contiguous": (
        lambda: f(2, 3).t().view(6),
        RuntimeError,
        "view size is not compatible with input tensor's size and stride",
        "view",
    ),
    "two inferred sizes": (lambda: f(2, 3).view(-1, -1), RuntimeError, "only one dimension can be inferred", "view"),
    "expand to another size": (
        lambda: f(2, 3).expand(2, 4),
        RuntimeError,
        r"The expanded size of the tensor \(4\) must match the existing size \(3\) at non-singleton dimension 1",
        "expand",
    ),
    "select out of range": (
        lambda: f(2, 3).select(0, 2),
        IndexError,
        r"select\(\): index 2 out of range for tensor of size \[2, 3\]",
        "select",
    ),
    "index out of range": (
        lambda: f(2, 3)[2],
        IndexError,
        "index 2 is out of bounds for dimension 0 with size 2",
        None,
    ),
    "too many indices": (lambda: f(2, 3)[0, 0, 0], IndexError, "too many indices for tensor of dimension 2", None),
    "index of 0-dim": (lambda: f()[0], IndexError, "invalid index of a 0-dim tensor", None),
    "tensor index out of range": (
        lambda: f(2, 3)[torch.tensor([5])],
        IndexError,
        "index 5 is out of bounds for dimension 0 with size 2",
        None,
    ),
    "mask of another shape": (
        lambda: f(2, 3)[torch.tensor([True, False, True])],
        IndexError,
        r"The shape of the mask \[3\] at index 0 does not match the shape of the indexed tensor \[2, 3\] at index 0",
        None,
    ),
    "float index": (
        lambda: f(2, 3)[f(2)],
        IndexError,
        "tensors used as indices must be long, int, byte or bool tensors",
        None,
    ),
    "cat of nothing": (
        lambda: torch.cat([]),
        (RuntimeError, ValueError),
        r"torch.cat\(\): expected a non-empty list of Tensors",
        "cat",
    ),
    "cat of other sizes": (
        lambda: torch.cat([f(2, 3), f(2, 4)]),
        RuntimeError,
        "Sizes of tensors must match except in dimension 0. Expected (size )?3 but got (size )?4 for tensor number 1",
        "cat",
    ),
    "stack of other sizes": (
        lambda: torch.stack([f(2), f(3)]),
        RuntimeError,
        r"stack expects each tensor to be equal size, but got \[2\] at entry 0 and \[3\] at entry 1",
        "stack",
    ),
    "split by nothing": (
        lambda: f(4).split(0),
        RuntimeError,
        "split expects split_size be non-negative|split_size can only be 0",
        "split",
    ),
    "split sizes": (
        lambda: f(4).split([1, 2]),
        RuntimeError,
        "split_with_sizes expects split_sizes to sum exactly to 4",
        "split",
    ),
    "gather of other dims": (
        lambda: torch.gather(f(2, 3), 0, torch.zeros(2, dtype=LONG)),
        RuntimeError,
        "Index tensor must have the same number of dimensions as input tensor",
        "gather",
    ),
    "gather out of range": (
        lambda: torch.gather(f(2, 3), 0, torch.full((1, 3), 9)),
        (RuntimeError, IndexError),
        "index 9 is out of bounds for dimension 0 with size 2",
        "gather",
    ),
    "gather by floats": (
        lambda: torch.gather(f(2, 3), 0, f(2, 3)),
        RuntimeError,
        r"gather\(\): Expected dtype int32/int64 for index|gather\(\): Expected dtype int64 for index",
        "gather",
    ),
    "scatter dtypes": (
        lambda: torch.scatter(f(2, 3), 0, torch.zeros(1, 3, dtype=LONG), f(1, 3, dtype=LONG)),
        RuntimeError,
        r"scatter\(\): Expected self.dtype to be equal to src.dtype",
        "scatter",
    ),
    "index_select out of range": (
        lambda: f(2, 3).index_select(0, torch.tensor([4])),
        (IndexError, RuntimeError),
        "index out of range in self",
        "index_select",
    ),
    "embedding out of range": (
        lambda: torch.nn.functional.embedding(torch.tensor([7]), f(3, 2)),
        IndexError,
        "index out of range in self",
        "embedding",
    ),
    "embedding by floats": (
        lambda: torch.embedding(f(3, 2), f(2)),
        RuntimeError,
        "Expected tensor for argument #1 'indices' to have one of the following scalar types: Long, Int",
        "embedding",
    ),
    "masked_fill by ints": (
        lambda: f(2).masked_fill(torch.tensor([1, 0]), 1),
        RuntimeError,
        "masked_fill_? only supports boolean masks|expected mask dtype to be Bool",
        "masked_fill",
    ),
    "bool subtraction": (
        lambda: f(2, dtype=torch.bool) - f(2, dtype=torch.bool),
        RuntimeError,
        r"Subtraction, the `-` operator, with two bool tensors is not supported",
        "sub",
    ),
    "negative of bool": (
        lambda: -f(2, dtype=torch.bool),
        RuntimeError,
        r"Negation, the `-` operator, on a bool tensor is not supported",
        "neg",
    ),
    "float alpha on ints": (
        lambda: torch.add(f(2, dtype=LONG), f(2, dtype=LONG), alpha=1.5),
        RuntimeError,
        "For integral input tensors, argument alpha must not be a floating point number",
        "add",
    ),
    "mean of ints": (
        lambda: f(2, dtype=LONG).mean(),
        RuntimeError,
        r"mean\(\): could not infer output dtype. Input dtype must be either a floating point or complex dtype.",
        "mean",
    ),
    "order of complex": (
        lambda: f(2, dtype=torch.complex64) < f(2),
        RuntimeError,
        '"lt_cpu" not implemented for',
        "lt",
    ),
    "max of complex": (lambda: f(2, dtype=torch.complex64).max(), RuntimeError, ".*not implemented for|max", "max"),
    "integer to a negative power": (
        lambda: f(2, dtype=LONG) ** -1,
        RuntimeError,
        "Integers to negative integer powers are not allowed",
        "pow",
    ),
    "integer division by zero": (lambda: f(2, dtype=LONG) // 0, RuntimeError, "ZeroDivisionError", "floor_divide"),
    "in-place result of another dtype": (
        lambda: f(2, dtype=LONG).mul_(1.5),
        RuntimeError,
        "result type Float can't be cast to the desired output type Long",
        "mul_",
    ),
    "in-place result of another shape": (
        lambda: f(2).add_(f(3, 2)),
        RuntimeError,
        r"output with shape \[2\] doesn't match the broadcast shape \[3, 2\]",
        "add_",
    ),
    "writing an expanded tensor": (
        lambda: f(1).expand(3).add_(1),
        RuntimeError,
        "unsupported operation: more than one element of the written-to tensor refers to a single memory location",
        "add_",
    ),
    "writing a leaf": (
        lambda: f(2).requires_grad_().add_(1),
        RuntimeError,
        "a leaf Variable that requires grad is being used in an in-place operation",
        None,
    ),
    "item of several": (
        lambda: f(2).item(),
        RuntimeError,
        "a Tensor with 2 elements cannot be converted to Scalar",
        None,
    ),
    "truth of several": (
        lambda: bool(f(2)),
        RuntimeError,
        "Boolean value of Tensor with more than one value is ambiguous",
        None,
    ),
    "gradient of ints": (
        lambda: f(2, dtype=LONG).requires_grad_(),
        RuntimeError,
        "only Tensors of floating point( and complex)? dtype can require gradients",
        None,
    ),
    "backward of several": (
        lambda: (f(2).requires_grad_() * 2).backward(),
        RuntimeError,
        "grad can be implicitly created only for scalar outputs",
        None,
    ),
    "backward of nothing": (
        lambda: f().backward(),
        RuntimeError,
        "element 0 of tensors does not require grad and does not have a grad_fn",
        None,
    ),
    "numpy of what requires grad": (
        lambda: f(2).requires_grad_().numpy(),
        RuntimeError,
        r"Can't call numpy\(\) on Tensor that requires grad",
        None,
    ),
    "negative size": (
        lambda: torch.empty(-1),
        RuntimeError,
        "Trying to create tensor with negative dimension -1",
        "empty",
    ),
    "arange with a wrong step": (
        lambda: torch.arange(0, 5, -1),
        RuntimeError,
        "upper bound and (larger bound|lower bound) inconsistent with step sign",
        "arange",
    ),
    "arange with no step": (lambda: torch.arange(0, 5, 0), RuntimeError, "step must be nonzero", "arange"),
    "randperm of a negative": (
        lambda: torch.randperm(-1),
        RuntimeError,
        "(n must be non-negative, got-? ?-1|Trying to create tensor with negative dimension -1)",
        "randperm",
    ),
    "randint of an empty range": (
        lambda: torch.randint(5, 5, (2,)),
        RuntimeError,
        "random_ expects 'from' to be less than 'to', but got from=5 >= to=5",
        None,
    ),
    "uniform of an empty range": (
        lambda: f(2).uniform_(1, 0),
        RuntimeError,
        "uniform_ expects to return a \\[from, to\\) range",
        "uniform_",
    ),
    "normal with a negative width": (
        lambda: f(2).normal_(0, -1),
        RuntimeError,
        "normal expects std >= 0.0, but found std -1",
        "normal",
    ),
    "dropout probability": (
        lambda: torch.dropout(f(2), 2.0, True),
        RuntimeError,
        "dropout probability has to be between 0 and 1, but got 2",
        "dropout",
    ),
    "ragged list": (
        lambda: torch.tensor([[1, 2], [3]]),
        ValueError,
        "expected sequence of length 2 at dim 1 \\(got 1\\)",
        None,
    ),
    "a string": (lambda: torch.tensor("x"), TypeError, "new\\(\\): invalid data type 'str'", None),
    "target out of range": (
        lambda: torch.nn.functional.nll_loss(f(2, 3), torch.tensor([0, 5])),
        IndexError,
        "Target 5 is out of bounds.",
        "nll_loss",
    ),
    "target of another size": (
        lambda: torch.nn.functional.nll_loss(f(2, 3), torch.tensor([0])),
        ValueError,
        r"Expected input batch_size \(2\) to match target batch_size \(1\).",
        None,
    ),
    "gelu's approximate": (
        lambda: torch.nn.functional.gelu(f(2), approximate="x"),
        RuntimeError,
        "approximate argument must be either none or tanh",
        "gelu",
    ),
    "unknown argument": (
        lambda: torch.sum(f(2), colour=1),
        TypeError,
        r"sum\(\) received an invalid combination of arguments",
        "sum",
    ),
    "missing argument": (
        lambda: torch.exp(),
        TypeError,
        r"exp\(\) missing 1 required positional arguments?: \"input\"",
        "exp",
    ),
    "too many arguments": (
        lambda: torch.exp(f(2), f(2)),
        TypeError,
        r"exp\(\) takes 1 positional argument but 2 were given",
        "exp",
    ),
    "wrong type": (
        lambda: torch.exp("x"),
        TypeError,
        r"exp\(\): argument 'input' \(position 1\) must be Tensor, not str",
        "exp",
    ),
    "wrong type in an overloaded operator": (
        lambda: torch.add(f(2), "x"),
        TypeError,
        r"add\(\)(: argument 'other' \(position 2\) must be Tensor, not str| received an invalid "
        "combination of arguments)",
        "add",
    ),
    "method's wrong type": (
        lambda: f(2).transpose("x", 1),
        TypeError,
        r"transpose\(\)( received an invalid combination of arguments|: argument)",
        "transpose",
    ),
    "unknown device": (
        lambda: torch.empty(2, device="toaster"),
        RuntimeError,
        "Expected one of cpu, .* device type at start of device string: toaster",
        None,
    ),
    "cuda": (lambda: torch.empty(2, device="cuda"), (RuntimeError, AssertionError), ".*(CUDA|cuda)", None),
    "values of meta": (
        lambda: torch.empty(2, device="meta").tolist(),
        (NotImplementedError, RuntimeError),
        "Cannot copy out of meta tensor; no data!|.*meta",
        None,
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_bad_input(case):
    call, error, opening, word = CASES[case]
    with pytest.raises(error) as caught:
        call()
    text = str(caught.value)
    assert re.match(opening, text), text
    if IS_EMBER and word is not None:  # the operator is a note, so that the message is PyTorch's
        told = "\n".join([text, *getattr(caught.value, "__notes__", ())])
        assert word in told, f"neither message nor note names {word}: {told}"


REFUSED = [
    (name, dtype)
    for name in PRESENT
    for dtype in (DTYPES if FULL else ("bool", "int64", "float32", "complex64"))
    if dtype not in dtypes_of(name)
]
# Wider than PyTorch: Ember's kernels compute these, where PyTorch has left the dtype out of a kernel's list.
ACCEPTED = {
    ("norm.ScalarOpt_dtype", "complex64"), ("norm.ScalarOpt_dim_dtype", "complex64"), ("mse_loss", "complex64"),
    ("binary_cross_entropy_backward", "int64"), ("binary_cross_entropy_with_logits", "int64"),
    ("bernoulli_.Tensor", "complex64"), ("normal.float_Tensor", "complex64"), ("normal.Tensor_Tensor", "complex64"),
    ("native_dropout", "bool"), ("native_dropout", "int64")}


@pytest.mark.parametrize(
    "name, dtype", [case for case in REFUSED if set(TABLE[case[0]].kinds) >= {"bool", "int", "float"}]
)
def test_dtype_is_refused(name, dtype):
    """What PyTorch refuses Ember refuses, as the same kind of error; nothing else breaks."""
    if name in {e.name for e in GROUPS["creation"]}:
        return
    try:
        for sample in samples(name, dtype):
            args, kwargs = tensors(sample, dtype)
            flat(operator(name)(*args, **kwargs))
    except (RuntimeError, TypeError):
        return
    assert (name, dtype) in ACCEPTED, "accepted, and not listed in ACCEPTED"

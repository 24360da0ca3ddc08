"""The argument parser: overloads, names, numbers, and PyTorch's words when nothing fits. The same under PyTorch."""
import pytest

import ember as torch

x = torch.ones(3)


@pytest.mark.parametrize("call, text", [
    (lambda: torch.add(x, "a"), "add(): argument 'other' (position 2) must be Tensor, not str"),
    (lambda: x.sum("a"), "sum() received an invalid combination of arguments - got (str), but expected one of:\n"
                         " * (*, torch.dtype dtype = None)\n"),
    (lambda: torch.sum("a"), "sum(): argument 'input' (position 1) must be Tensor, not str"),
    (lambda: torch.zeros("a"), "zeros(): argument 'size' (position 1) must be tuple of ints, not str"),
    (lambda: torch.zeros(2, 3, foo=2), "zeros() got an unexpected keyword argument 'foo'"),
    (lambda: torch.zeros(2, 2.5), "zeros(): argument 'size' failed to unpack the object at pos 2 with error \"type "
                                  "must be tuple of ints,but got float\""),
    (lambda: x.view(2, "a"), "view(): argument 'size' failed to unpack the object at pos 2"),
    (lambda: torch.cat([x, 3]), "expected Tensor as element 1 in argument 0, but got int"),
    (lambda: torch.cat(x), "cat(): argument 'tensors' (position 1) must be tuple of Tensors, not Tensor"),
    (lambda: torch.relu(3), "relu(): argument 'input' (position 1) must be Tensor, not int"),
    (lambda: torch.relu(x, x), "relu() takes 1 positional argument but 2 were given"),
    (lambda: torch.relu(), 'relu() missing 1 required positional arguments: "input"'),
    (lambda: torch.sum(x, dim=0, keepdim=3), "sum(): argument 'keepdim' must be bool, not int"),
    (lambda: torch.empty(2, dtype=3), "empty(): argument 'dtype' must be torch.dtype, not int"),
    (lambda: torch.ones(2, out=3), "ones(): argument 'out' must be Tensor, not int"),
    (lambda: torch.max(x, "a"), "max() received an invalid combination of arguments - got (Tensor, str), but expected "
                                "one of:\n"
                                " * (Tensor input, *, Tensor out = None)\n"),
    (lambda: torch.add(x, other=x, other2=3), "add() got an unexpected keyword argument 'other2'"),
    (lambda: torch.add(x, x, input=x), "add() got multiple values for argument 'input'"),
    (lambda: x.permute(1.5), "permute(): argument 'dims' (position 1) must be tuple of ints, not float"),
    (lambda: x.add(), "add() received an invalid combination of arguments - got (), but expected"),
])
def test_words(call, text):
    with pytest.raises(TypeError) as raised:
        call()
    assert text in str(raised.value)


def test_names_and_aliases():
    m = torch.arange(6.0).view(2, 3)
    assert torch.sum(m, axis=0, keepdims=True).tolist() == [[3, 5, 7]]
    assert torch.sum(input=m).item() == torch.sum(x=m).item() == 15
    assert torch.add(m, 1, alpha=2)[0, 0] == 2
    assert m.sum(0).tolist() == m.sum((0,)).tolist() == m.sum(dim=[0]).tolist() == [3, 5, 7]
    assert m.view(3, 2).shape == m.view((3, 2)).shape == m.view(size=(3, 2)).shape == (3, 2)
    assert m.permute(1, 0).shape == torch.permute(m, (1, 0)).shape == (3, 2)


def test_out():
    out = torch.empty(3)
    r = torch.add(x, x, out=out)
    assert r is out and out.tolist() == [2, 2, 2]
    assert torch.add(x, x, out=None).tolist() == [2, 2, 2]
    values, indices = torch.empty(2), torch.empty(2, dtype=torch.int64)
    r = torch.max(torch.tensor([[1.0, 2.0], [4.0, 3.0]]), 1, out=(values, indices))
    assert values.tolist() == [2, 4] and indices.tolist() == [1, 0] and r[0] is values


def test_named_results():
    r = torch.tensor([[1.0, 2.0], [4.0, 3.0]]).max(1)
    assert r.values.tolist() == [2, 4] and r.indices.tolist() == r[1].tolist() == [1, 0]
    values, indices = r
    assert type(r).__name__ == "max" and repr(r).startswith("torch.return_types.max(\nvalues=")


def test_kinds_of_callables():
    assert type(torch.randn).__name__ == "builtin_function_or_method"
    assert type(torch.Tensor.add).__name__ == "method_descriptor"
    assert repr(torch.Tensor.relu).startswith("<method 'relu' of '")


def test_numbers_stand_for_tensors_only_where_they_may():
    assert torch.add(x, 1).tolist() == [2, 2, 2] and torch.mul(x, 2.0).dtype is torch.float32
    assert torch.add(torch.tensor([1]), 1.5).dtype is torch.float32
    with pytest.raises(TypeError):
        torch.maximum(x, 1)


def test_the_operator_is_a_note():
    """str(e) is PyTorch's, and a traceback still says which operator it was."""
    import traceback
    with pytest.raises(RuntimeError) as raised:
        torch.ones(2) + torch.ones(3)
    error, note = raised.value, "[in operator aten::add.Tensor]"
    words = "The size of tensor a (2) must match the size of tensor b (3) at non-singleton dimension 0"
    assert str(error) == words and error.args == (words,) and error.__notes__ == [note]
    assert "".join(traceback.format_exception_only(type(error), error)) in (
        f"RuntimeError: {words}\n{note}\n", f"RuntimeError: {words}\n")  # the second: before Python 3.11
    with pytest.raises(RuntimeError) as raised:
        torch.ones(2).view(3)
    assert str(raised.value) == "shape '[3]' is invalid for input of size 2"

"""out= beyond one tensor of the right size: lists of tensors, and the layout of an out= that grows."""
import pytest
from subject import torch


def test_copies_into_a_list_of_tensors():
    x = torch.arange(6.0).reshape(2, 3)
    outs = [torch.empty(3), torch.empty(0)]
    assert torch.unbind_copy(x, out=outs) is None
    assert [t.tolist() for t in outs] == [[0, 1, 2], [3, 4, 5]]
    pair = (torch.empty(2, 1), torch.empty(2, 2))
    assert torch.split_with_sizes_copy(x, [1, 2], 1, out=pair) is None
    assert [t.tolist() for t in pair] == [[[0], [3]], [[1, 2], [4, 5]]]
    with pytest.raises(RuntimeError, match="unbind_copy_int_out expected an out= argument of size 2, got size 1"):
        torch.unbind_copy(x, out=outs[:1])
    with pytest.raises(RuntimeError, match="split_with_sizes_copy_out expected an out= argument of size 2, got size 3"):
        torch.split_with_sizes_copy(x, [1, 2], 1, out=[*pair, x])
    with pytest.raises(RuntimeError, match="Expected out tensor to have dtype float, but got bool instead"):
        torch.unbind_copy(x, out=[torch.empty(3), torch.empty(3, dtype=torch.bool)])
    with pytest.raises(TypeError, match=r"unbind_copy\(\): argument 'out' must be tuple of Tensors, not Tensor"):
        torch.unbind_copy(x, out=torch.empty(3))


def test_nonzero_lies_by_columns_also_in_out():
    o = torch.empty(0, dtype=torch.int64)
    torch.nonzero(torch.ones(2, 3), out=o)
    assert o.shape == (6, 2) and o.stride() == (1, 6) and torch.nonzero(torch.ones(2, 3)).stride() == (1, 6)
    same = torch.empty(6, 2, dtype=torch.int64)
    torch.nonzero(torch.ones(2, 3), out=same)
    assert same.stride() == (2, 1) and torch.equal(same, o)

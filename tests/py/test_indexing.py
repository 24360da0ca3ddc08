"""x[...] and x[...] = v against what PyTorch gives. Runs the same under PyTorch."""
import numpy as np
import pytest

import ember as torch


def grid():
    return torch.arange(24).view(2, 3, 4)


@pytest.mark.parametrize("index, shape, first", [
    (0, (3, 4), 0), (-1, (3, 4), 12), ((1, 2), (4,), 20), ((1, 2, 3), (), 23), (slice(1, None), (1, 3, 4), 12),
    ((slice(None), 1), (2, 4), 4), ((Ellipsis, 0), (2, 3), 0), (None, (1, 2, 3, 4), 0), ((0, None, 1), (1, 4), 4),
    ((slice(None), slice(0, 3, 2), slice(1, -1)), (2, 2, 2), 1), (Ellipsis, (2, 3, 4), 0), ((), (2, 3, 4), 0),
    (torch.tensor([1, 0]), (2, 3, 4), 12), ([1, 0], (2, 3, 4), 12), ((slice(None), [2, 0]), (2, 2, 4), 8),
    (([0, 1], [1, 2]), (2, 4), 4), ((0, [0, 2]), (2, 4), 0), (([0, 1], slice(None), [1, 2]), (2, 3), 1),
    (torch.tensor([True, False]), (1, 3, 4), 0), (torch.tensor(1), (3, 4), 12), (True, (1, 2, 3, 4), 0),
    (np.array([1]), (1, 3, 4), 12), (np.int64(1), (3, 4), 12), (torch.tensor([[0, 1]]), (1, 2, 3, 4), 0),
    (slice(torch.tensor(1), None), (1, 3, 4), 12),
])
def test_get(index, shape, first):
    got = grid()[index]
    assert got.shape == shape
    assert got.reshape(-1)[0].item() == first


def test_masks():
    x = grid()
    assert x[x > 20].tolist() == [21, 22, 23]
    assert x[torch.tensor([True, False]), torch.tensor([0])].shape == (1, 4)
    assert x[False].shape == (0, 2, 3, 4)


def test_basic_indexing_gives_views():
    x = grid()
    assert x[0]._base is x._base and x[...].data_ptr() == x.data_ptr() and x[1:, None, ..., 2]._is_view()
    assert not x[[0]]._is_view()


@pytest.mark.parametrize("index, error, text", [
    (5, IndexError, "index 5 is out of bounds for dimension 0 with size 2"),
    ((0, -4), IndexError, "index -4 is out of bounds for dimension 1 with size 3"),
    ((0, 0, 0, 0), IndexError, "too many indices for tensor of dimension 3"),
    (slice(None, None, -1), ValueError, "step must be greater than zero"),
    (1.5, IndexError,
     "only integers, slices (`:`), ellipsis (`...`), None and long or byte Variables are valid indices (got float)"),
    (torch.tensor([5]), IndexError, "index 5 is out of bounds for dimension 0 with size 2"),
    (torch.tensor([True, False, True]), IndexError,
     "The shape of the mask [3] at index 0 does not match the shape of the indexed tensor [2, 3, 4] "
     "at index 0"),
])
def test_get_refuses(index, error, text):
    with pytest.raises(error) as raised:
        grid()[index]
    assert text in str(raised.value)


def test_zero_dim_refuses():
    with pytest.raises(IndexError, match="invalid index of a 0-dim tensor"):
        torch.tensor(1)[0]
    with pytest.raises(IndexError, match=r"slice\(\) cannot be applied to a 0-dim tensor"):
        torch.tensor(1)[:]


def test_set():
    x = torch.zeros(2, 3)
    x[0] = 1
    x[1, 1:] = torch.tensor([5.0, 6.0])
    assert x.tolist() == [[1, 1, 1], [0, 5, 6]]
    x[:, 0] = torch.tensor([[[7.0, 8.0]]])  # leading ones of the value are dropped
    assert x[:, 0].tolist() == [7, 8]
    x[x > 5] = -1
    assert x.tolist() == [[-1, 1, 1], [-1, 5, -1]]
    x[[0, 1], [2, 1]] = torch.tensor([3.0, 4.0])
    assert x[0, 2] == 3 and x[1, 1] == 4
    x[...] = 2.5
    assert x.tolist() == [[2.5] * 3] * 2
    assert x[[slice(None), 1]].tolist() == [2.5, 2.5]  # a list with a slice in it reads as a tuple
    with pytest.raises(TypeError, match="can't assign a list to a torch.FloatTensor"):
        x[0] = [1, 2, 3]
    y = torch.zeros(2, dtype=torch.int64)
    y[0] = 3.7
    assert y.tolist() == [3, 0]
    with pytest.raises(RuntimeError, match="expand"):
        x[0] = torch.ones(2)
    with pytest.raises(TypeError, match="can't assign a object to a torch.FloatTensor"):
        x[0] = object()
    with pytest.raises(TypeError):
        del x[0]


def test_set_records():
    x = torch.zeros(3)
    w = torch.tensor([1.0, 2.0], requires_grad=True)
    x[1:] = w * 2
    (x * torch.tensor([1.0, 10.0, 100.0])).sum().backward()
    assert w.grad.tolist() == [20, 200]
    y = torch.arange(3.0, requires_grad=True)
    (y[1:] * 3 + y[[0, 0]]).sum().backward()
    assert y.grad.tolist() == [2, 3, 3]

"""The Tensor type: construction, attributes, conversions, identity, copies and pickles. Runs the same under PyTorch."""
import copy
import gc
import pickle
import weakref

import numpy as np
import pytest

import ember as torch


# ---------------------------------------------------------------- construction
def test_tensor_infers_dtypes():
    assert torch.tensor([1, 2]).dtype is torch.int64
    assert torch.tensor([1, 2.5]).dtype is torch.float32
    assert torch.tensor([True, 2]).dtype is torch.int64
    assert torch.tensor([True]).dtype is torch.bool
    assert torch.tensor([1j, 2]).dtype is torch.complex64
    assert torch.tensor([]).dtype is torch.float32
    assert torch.tensor([[], []]).shape == (2, 0)
    assert torch.tensor([torch.tensor(1), 2]).tolist() == [1, 2]
    assert torch.tensor(np.float64(2)).dtype is torch.float64
    assert torch.tensor([np.float32(2)]).dtype is torch.float32
    assert torch.tensor(np.int16(2)).dtype is torch.int16


def test_tensor_casts_to_the_dtype_asked_for():
    assert torch.tensor([1.9, -1.9], dtype=torch.int64).tolist() == [1, -1]
    assert torch.tensor([0, 3], dtype=torch.bool).tolist() == [False, True]
    assert torch.tensor([2**70], dtype=torch.float64).tolist() == [2.0**70]
    assert torch.tensor([1, 2], dtype=float).dtype is torch.float64


@pytest.mark.parametrize("data, error, text", [
    ([[1, 2], [3]], ValueError, "expected sequence of length 2 at dim 1 (got 1)"),
    ([[1, 2], 3], TypeError, "not a sequence"),
    ([1, "a"], TypeError, "new(): invalid data type 'str'"),
    ("a", TypeError, "new(): invalid data type 'str'"),
    ([object()], RuntimeError, "Could not infer dtype of object"),
    ([2**70], ValueError, "Overflow when unpacking long long"),
])
def test_tensor_refuses(data, error, text):
    with pytest.raises(error) as raised:
        torch.tensor(data)
    assert text in str(raised.value)


def test_tensor_refuses_values_that_do_not_fit():
    with pytest.raises(RuntimeError, match="value cannot be converted to type uint8"):
        torch.tensor([300], dtype=torch.uint8)
    with pytest.raises(TypeError, match='missing 1 required positional arguments: "data"'):
        torch.tensor()


def test_legacy_constructor():
    assert torch.Tensor(2, 3).shape == (2, 3)
    assert torch.Tensor([1, 2]).tolist() == [1.0, 2.0]
    assert torch.Tensor().shape == (0,)
    assert torch.Tensor(torch.Size([4])).shape == (4,)
    assert torch.LongTensor([1, 2]).dtype is torch.int64
    assert isinstance(torch.tensor([1.0]), torch.FloatTensor)
    assert not isinstance(torch.tensor([1]), torch.FloatTensor)


def test_requires_grad_at_birth():
    assert torch.tensor([1.0], requires_grad=True).requires_grad
    assert torch.zeros(2, requires_grad=True).is_leaf
    with pytest.raises(RuntimeError, match="Only Tensors of floating point and complex dtype can require gradients"):
        torch.tensor([1], requires_grad=True)


# ---------------------------------------------------------------- attributes
def test_metadata():
    x = torch.zeros(2, 3, dtype=torch.float64)
    assert x.shape == x.size() == torch.Size([2, 3]) and x.size(-1) == 3
    assert x.stride() == (3, 1) and x.stride(0) == 3 and x.storage_offset() == 0
    assert x.ndim == x.dim() == x.ndimension() == 2
    assert x.numel() == x.nelement() == 6 and x.itemsize == x.element_size() == 8 and x.nbytes == 48
    assert str(x.device) == "cpu" and str(x.dtype) == "torch.float64" and str(x.layout) == "torch.strided"
    assert x.is_leaf and x.grad is None and x.grad_fn is None and x._base is None
    assert x.T.shape == x.mT.shape == (3, 2) and x.T._base is x
    assert x.is_floating_point() and not x.is_complex() and x.is_contiguous() and not x.T.is_contiguous()
    assert x.type() == "torch.DoubleTensor" and x[1].storage_offset() == 3
    with pytest.raises(IndexError, match=r"Dimension out of range \(expected to be in range of \[-2, 1\], but got 3\)"):
        x.size(3)


def test_size_is_a_tuple_that_knows_its_product():
    s = torch.Size([2, 3])
    assert repr(s) == "torch.Size([2, 3])" and s.numel() == 6 and s == (2, 3) and isinstance(s[0:1], torch.Size)
    assert isinstance(s + (4,), torch.Size)
    assert pickle.loads(pickle.dumps(s)) == s
    with pytest.raises(TypeError, match=r"torch.Size\(\) takes an iterable of 'int' \(item 1 is 'str'\)"):
        torch.Size([2, "a"])


def test_dtypes_and_devices():
    assert pickle.loads(pickle.dumps(torch.float32)) is torch.float32 and copy.deepcopy(torch.int8) is torch.int8
    assert torch.float32 is torch.float and torch.long is torch.int64
    assert torch.bfloat16.itemsize == 2 and torch.complex64.to_real() is torch.float32 and not torch.uint8.is_signed
    assert repr(torch.device("cuda", 1)) == "device(type='cuda', index=1)"
    assert torch.device("cuda:1") == torch.device("cuda", 1) != torch.device("cpu")
    assert hash(torch.device("cpu")) == hash(torch.device("cpu"))
    assert pickle.loads(pickle.dumps(torch.device("cuda:1"))).index == 1
    with pytest.raises(RuntimeError, match="device type at start of device string: foo"):
        torch.device("foo")
    assert torch.finfo(torch.float32).eps == 2.0**-23 and torch.iinfo(torch.int8).min == -128
    assert torch.promote_types(torch.int32, torch.float16) is torch.float16


def test_default_dtype_and_device():
    torch.set_default_dtype(torch.float64)
    try:
        assert torch.tensor([1.0]).dtype is torch.zeros(1).dtype is torch.float64
    finally:
        torch.set_default_dtype(torch.float32)
    with torch.device("meta"):
        assert torch.zeros(2).is_meta and torch.zeros(2, device="cpu").device.type == "cpu"
    assert torch.zeros(2).device.type == "cpu"


# ---------------------------------------------------------------- numbers out
def test_conversions():
    assert torch.tensor(2.5).item() == 2.5 and type(torch.tensor([3]).item()) is int
    assert int(torch.tensor(2.9)) == 2 and float(torch.tensor(2)) == 2.0 and complex(torch.tensor(1 + 2j)) == 1 + 2j
    assert bool(torch.tensor([0.5])) and not torch.tensor(False)
    assert [10, 20, 30][torch.tensor(1)] == 20
    assert torch.tensor([[1, 2], [3, 4]]).t().tolist() == [[1, 3], [2, 4]]
    assert torch.tensor(True).tolist() is True


@pytest.mark.parametrize("call, error, text", [
    (lambda: bool(torch.ones(2)), RuntimeError, "Boolean value of Tensor with more than one value is ambiguous"),
    (lambda: bool(torch.ones(0)), RuntimeError, "Boolean value of Tensor with no values is ambiguous"),
    (lambda: torch.ones(2).item(), RuntimeError, "a Tensor with 2 elements cannot be converted to Scalar"),
    (lambda: int(torch.ones(2)), ValueError, "only one element tensors can be converted to Python scalars"),
    (lambda: len(torch.tensor(1)), TypeError, "len() of a 0-d tensor"),
    (lambda: iter(torch.tensor(1)), TypeError, "iteration over a 0-d tensor"),
    (lambda: [1][torch.tensor(0.0)], TypeError,
     "only integer tensors of a single element can be converted to an index"),
    (lambda: "a" in torch.ones(1), RuntimeError,
     "Tensor.__contains__ only supports Tensor or scalar, but you passed in a "),
])
def test_conversions_refuse(call, error, text):
    with pytest.raises(error) as raised:
        call()
    assert text in str(raised.value)


def test_to():
    x = torch.tensor([1.5])
    assert x.to(torch.float32) is x and x.to("cpu") is x and x.to(torch.float32, copy=True) is not x
    assert x.to(torch.int64).tolist() == [1] and x.double().dtype is x.type(torch.float64).dtype is torch.float64
    assert x.to(torch.tensor([1])).dtype is torch.int64 and x.type_as(torch.tensor([True])).dtype is torch.bool
    assert x.to("cpu", torch.float16).dtype is x.half().dtype and x.type("torch.IntTensor").dtype is torch.int32
    assert x.contiguous() is x and x.cpu() is x


# ---------------------------------------------------------------- operators
def test_operators_and_their_reflections():
    x = torch.tensor([2.0, 4.0])
    assert (x + 1).tolist() == (1 + x).tolist() == [3, 5]
    assert (x - 1).tolist() == [1, 3] and (1 - x).tolist() == [-1, -3]
    assert (x * 2).tolist() == (2 * x).tolist() == [4, 8]
    assert (x / 2).tolist() == [1, 2] and (8 / x).tolist() == [4, 2]
    assert (x ** 2).tolist() == [4, 16] and (2 ** x).tolist() == [4, 16]
    assert (x // 3).tolist() == [0, 1] and (x % 3).tolist() == [2, 1]
    assert (-x).tolist() == [-2, -4] and abs(-x).tolist() == [2, 4] and (+x).tolist() == [2, 4]
    assert (x > 2).tolist() == [False, True] and (3 > x).tolist() == [True, False] and (x == x).all()
    assert (torch.tensor([1, 2]) & 1).tolist() == [1, 0] and (~torch.tensor([True])).tolist() == [False]
    assert (torch.tensor([1, 2]) + True).dtype is torch.int64 and (torch.tensor([1]) + 1.0).dtype is torch.float32
    y = x
    y += 1
    assert y is x and x.tolist() == [3, 5]
    assert (x == None) is False and (x != "a") is True  # noqa: E711
    assert 3.0 in x and 4.0 not in x
    with pytest.raises(TypeError, match=r"unsupported operand type\(s\) for \+: 'Tensor' and 'str'"):
        x + "a"
    with pytest.raises(TypeError, match="unsupported operand type"):
        x @ 3


# ---------------------------------------------------------------- identity and life
def test_one_python_object_a_tensor():
    x = torch.ones(2, requires_grad=True)
    y = x * 2
    y.sum().backward()
    assert x.grad is x.grad
    g = id(x.grad)
    x.grad.note = "kept"
    gc.collect()
    assert x.grad.note == "kept" and id(x.grad) == g
    r = weakref.ref(x.grad)
    assert r() is x.grad
    x.grad = None
    assert r() is None


def test_a_cycle_through_attributes_is_collected():
    x = torch.zeros(3)
    x.me = x
    r = weakref.ref(x)
    del x
    gc.collect()
    assert r() is None


def test_a_cycle_through_a_hook_is_collected():
    x = torch.zeros(3, requires_grad=True)
    x.register_hook(lambda g: x.sum() + g)
    r = weakref.ref(x)
    del x
    gc.collect()
    assert r() is None


def test_finalizers_see_a_live_tensor():
    seen = []

    class Watched(torch.Tensor):
        def __del__(self):
            seen.append(self.shape)

    x = torch.ones(2, requires_grad=True)
    x.grad = torch.ones(2).as_subclass(Watched)
    gc.collect()
    assert seen == []
    x.grad = None
    assert seen == [torch.Size([2])]


def test_data_and_set_data():
    x = torch.ones(2, requires_grad=True)
    v = x._version
    x.data.fill_(5)
    assert x.tolist() == [5, 5] and x._version == v and not x.data.requires_grad
    x.data = torch.zeros(3)
    assert x.shape == (3,) and x.requires_grad


# ---------------------------------------------------------------- copies and files
def test_deepcopy_keeps_shared_bytes():
    x = torch.arange(4.0)
    a, b = copy.deepcopy([x, x[1:]])
    a[1] = 9
    assert b[0].item() == 9 and x[1].item() == 1
    y = torch.ones(2, requires_grad=True)
    y.grad = torch.ones(2)
    z = copy.deepcopy(y)
    assert z.requires_grad and z.grad.tolist() == [1, 1] and z.grad is not y.grad
    with pytest.raises(RuntimeError, match="Only Tensors created explicitly by the user"):
        copy.deepcopy(y * 2)


def test_pickle_keeps_geometry():
    x = torch.arange(6).view(2, 3).t()
    y = pickle.loads(pickle.dumps(x))
    assert y.tolist() == x.tolist() and y.stride() == (1, 3) and y.dtype is torch.int64
    p = pickle.loads(pickle.dumps(torch.ones(2, requires_grad=True)))
    assert p.requires_grad


def test_numpy_shares():
    a = np.arange(6, dtype=np.float32).reshape(2, 3)
    x = torch.from_numpy(a)
    x[0, 0] = 7
    assert a[0, 0] == 7 and x.numpy()[0, 0] == 7 and x.numpy().flags.writeable
    b = x.t().numpy()
    assert b.strides == (4, 12)
    b[1, 0] = 8
    assert x[0, 1].item() == 8
    assert np.asarray(x).dtype == np.float32 and np.array(x, dtype=np.float64).dtype == np.float64
    assert torch.as_tensor(a).data_ptr() == x.data_ptr() and torch.tensor(a).data_ptr() != x.data_ptr()
    assert torch.frombuffer(bytearray(b"\1\0\2\0"), dtype=torch.int16).tolist() == [1, 2]
    assert torch.from_dlpack(x).data_ptr() == x.data_ptr() and np.from_dlpack(x)[0, 0] == 7
    assert torch.from_numpy(np.zeros((0, 2))).shape == (0, 2)


@pytest.mark.parametrize("call, error, text", [
    (lambda: torch.from_numpy([1]), TypeError, "expected np.ndarray (got list)"),
    (lambda: torch.from_numpy(np.arange(3)[::-1]), ValueError,
     "At least one stride in the given numpy array is negative"),
    (lambda: torch.from_numpy(np.array([object()])), TypeError, "can't convert np.ndarray of type numpy.object_"),
    (lambda: torch.ones(1, requires_grad=True).numpy(), RuntimeError,
     "Can't call numpy() on Tensor that requires grad"),
    (lambda: torch.ones(1, dtype=torch.bfloat16).numpy(), TypeError, "Got unsupported ScalarType BFloat16"),
])
def test_numpy_refuses(call, error, text):
    with pytest.raises(error) as raised:
        call()
    assert text in str(raised.value)


def test_storages():
    x = torch.arange(4, dtype=torch.int16)
    s = x.untyped_storage()
    assert s.nbytes() == 8 and s.data_ptr() == x.data_ptr() and x[2:].untyped_storage().data_ptr() == s.data_ptr()
    assert list(s)[:4] == [0, 0, 1, 0]
    s[0] = 5
    assert x[0].item() == 5
    assert x.storage().size() == 4 and x.storage()[3] == 3
    y = torch.empty(0, dtype=torch.int16).set_(x.untyped_storage(), 1, (3,), (1,))
    assert y.tolist() == [1, 2, 3]
    y = torch.empty(0, dtype=torch.int16).set_(torch.UntypedStorage(2), 0, (100,), (1,))
    assert y.untyped_storage().nbytes() == 200  # grows, as PyTorch's does


def test_equality_with_an_array_is_by_element():
    np = pytest.importorskip("numpy", reason="compares with numpy's arrays")
    y, p = torch.tensor([1, 0, 2]), np.array([1, 0, 1])
    for same in (y == p, p == y):
        assert isinstance(same, torch.Tensor) and same.tolist() == [True, True, False]
    assert (torch.tensor([1.5]) == np.array([1.5, 2.0])).tolist() == [True, False]
    assert (y == object()) is False

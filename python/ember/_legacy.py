"""FloatTensor and its kin: constructors of one dtype, and types that isinstance understands."""

import ember
from ember import _C


class _TypeMeta(type):
    def __instancecheck__(cls, obj):
        return isinstance(obj, ember.Tensor) and obj.dtype is cls.dtype

    def __call__(cls, *args, **kwargs):
        return _C._legacy_new(cls.dtype, *args, **kwargs)


def _make(dtype):
    name = dtype._storage_name
    doc = (f"{name}(*sizes), {name}(data): the old constructor of {str(dtype).partition('.')[2]} tensors, with no values in them or "
           f"with those of data. isinstance(x, torch.{name}) asks for the dtype. torch.tensor and torch.empty are the newer functions.")
    return _TypeMeta(name, (), {"dtype": dtype, "is_cuda": False, "is_sparse": False, "__module__": "torch", "__doc__": doc})


for _dtype in (ember.float32, ember.float64, ember.float16, ember.bfloat16, ember.int32, ember.int64, ember.int16,
               ember.int8, ember.uint8, ember.bool):
    globals()[_dtype._storage_name] = _make(_dtype)

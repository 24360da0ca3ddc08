"""Names for annotations. (`torch.types`)"""

from typing import List, Sequence, Tuple, Union

import ember
from ember._C import Size, Tensor
from ember._C import bool as _bool_dtype  # noqa: F401
from ember._C import device as _device
from ember._C import dtype as _dtype  # noqa: F401
from ember._C import layout as _layout  # noqa: F401

__all__ = ["Number", "Device", "FileLike", "Storage"]

_TensorOrTensors = Union[Tensor, Sequence[Tensor]]
_int, _float, _bool = int, float, bool
_size = Union[Size, List[int], Tuple[int, ...]]
Number = Union[int, float, bool]
Device = Union[_device, str, int, None]
FileLike = Union[str, "os.PathLike[str]", "IO[bytes]"]  # noqa: F821
Storage = ember.UntypedStorage

# mypy: disable-error-code="overload-cannot-match, overload-overlap, no-redef, misc, override"
# What ember/__init__.pyi begins with: the parts of the face that no row describes. gen/emit_stubs.py adds the rest at the two marks.
# Names that are missing here are Any: Ember's modules are plain Python, which checkers read themselves.
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, ClassVar, NamedTuple, TypeVar, overload
import builtins

from . import accelerator as accelerator, amp as amp, autograd as autograd, backends as backends, cuda as cuda, debug as debug
from . import fft as fft, func as func, jit as jit, library as library, linalg as linalg, memory as memory
from . import multiprocessing as multiprocessing, nn as nn, ops as ops, optim as optim, overrides as overrides
from . import profiler as profiler, random as random, serialization as serialization, special as special, testing as testing
from . import types as types, utils as utils, version as version
from ._info import finfo as finfo, iinfo as iinfo
from .amp import autocast as autocast
from .debug import Fall, Graph

_int = builtins.int
_float = builtins.float
_bool = builtins.bool
Number = builtins.int | builtins.float | builtins.complex | builtins.bool
_Self = TypeVar("_Self", bound="Tensor")
_F = TypeVar("_F", bound=Callable[..., Any])

__version__: builtins.str
e: _float
pi: _float
inf: _float
nan: _float
newaxis: None

class dtype:
    """What the elements of a tensor are: torch.float32, torch.int64, torch.bool, ...

    is_floating_point, is_complex, is_signed, itemsize (bytes); to_real() and to_complex().
    """
    is_floating_point: _bool
    is_complex: _bool
    is_signed: _bool
    itemsize: _int
    def to_real(self) -> dtype: ...
    def to_complex(self) -> dtype: ...

class layout:
    """How a tensor lies in memory: torch.strided, always."""
class memory_format:
    """The order of strides: torch.contiguous_format, torch.channels_last, torch.channels_last_3d, torch.preserve_format."""

class device:
    """Where tensors live: device("cpu"), device("meta"), device("cuda", 0). RuntimeError for a type that is not known.

    Around a `with` block: where factories put what they make. Attributes: type, index.

    >>> torch.device("cpu").type
    'cpu'
    """
    type: builtins.str
    index: _int | None
    @overload
    def __init__(self, device: builtins.str | device | _int) -> None: ...
    @overload
    def __init__(self, type: builtins.str, index: _int) -> None: ...
    def __enter__(self) -> device: ...
    def __exit__(self, *args: Any) -> None: ...

class Size(tuple[_int, ...]):
    """Sizes of a tensor's dimensions: a tuple of ints with numel(), their product.

    >>> torch.zeros(2, 3).shape.numel()
    6
    """
    def numel(self) -> _int: ...

class Generator:
    """A source of random numbers: the same seed gives the same draws as PyTorch's.

    manual_seed(n), seed(), initial_seed(), get_state(), set_state(state); functions that draw take it as generator=.

    >>> g = torch.Generator().manual_seed(0)
    >>> torch.equal(torch.rand(2, generator=g), torch.rand(2, generator=g.manual_seed(0)))
    True
    """
    device: device
    def __init__(self, device: _Device = None) -> None: ...
    def manual_seed(self, seed: _int) -> Generator: ...
    def seed(self) -> _int: ...
    def initial_seed(self) -> _int: ...
    def get_state(self) -> Tensor: ...
    def set_state(self, state: Tensor) -> Generator: ...

float16: dtype
half: dtype
bfloat16: dtype
float32: dtype
float: dtype
float64: dtype
double: dtype
complex64: dtype
cfloat: dtype
complex128: dtype
cdouble: dtype
uint8: dtype
int8: dtype
int16: dtype
short: dtype
int32: dtype
int: dtype
int64: dtype
long: dtype
bool: dtype
strided: layout
contiguous_format: memory_format
preserve_format: memory_format
channels_last: memory_format
channels_last_3d: memory_format

_dtype = dtype
_device = device
_layout = layout
_memory_format = memory_format
_Device = device | builtins.str | builtins.int | None

class _TensorMeta(type): ...

# -- results with names

class Tensor(metaclass=_TensorMeta):
    """An array of elements of one dtype, with sizes and strides over a storage that views share; it may record how it was made.

    Made by torch.tensor(data), torch.zeros(sizes) and their kind. requires_grad: whether operations on it are recorded;
    backward() then fills .grad of the leaves.

    >>> x = torch.tensor([1.0, 2.0], requires_grad=True)
    >>> (x * x).sum().backward()
    >>> x.grad
    tensor([2., 4.])
    """
    requires_grad: _bool
    grad: Tensor | None
    data: Tensor
    names: Any
    @property
    def shape(self) -> Size:
        """Sizes of the dimensions, as a torch.Size."""
    @property
    def dtype(self) -> _dtype:
        """What each element is: torch.float32, torch.int64, ..."""
    @property
    def device(self) -> _device:
        """Where the elements lie."""
    @property
    def layout(self) -> _layout:
        """torch.strided."""
    @property
    def ndim(self) -> _int:
        """The number of dimensions; dim() as an attribute."""
    @property
    def itemsize(self) -> _int:
        """Bytes of one element."""
    @property
    def nbytes(self) -> _int:
        """Bytes of all elements: numel() * itemsize."""
    @property
    def grad_fn(self) -> Any:
        """The node of the graph that made the tensor; None for leaves and where nothing is recorded."""
    @property
    def is_leaf(self) -> _bool:
        """Whether the tensor was made by the program rather than by recorded operations: its gradient ends in .grad."""
    @property
    def retains_grad(self) -> _bool:
        """Whether retain_grad() was called on a tensor that is no leaf."""
    @property
    def output_nr(self) -> _int:
        """Which result of grad_fn the tensor is."""
    @property
    def is_cuda(self) -> _bool:
        """Whether the tensor is on an NVIDIA device."""
    @property
    def is_meta(self) -> _bool:
        """Whether the tensor has sizes and a dtype but no elements."""
    @property
    def is_sparse(self) -> _bool:
        """False: every tensor is strided."""
    @property
    def T(self) -> Tensor:
        """The tensor with its dimensions in reverse order, as a view; meant for matrices."""
    @property
    def mT(self) -> Tensor:
        """Each matrix (the last two dimensions) transposed, as a view."""
    @property
    def H(self) -> Tensor:
        """The matrix transposed and conjugated, as a view."""
    @property
    def mH(self) -> Tensor:
        """Each matrix transposed and conjugated, as a view."""
    @property
    def real(self) -> Tensor:
        """The real parts, as a view; of real tensors, the tensor."""
    @property
    def imag(self) -> Tensor:
        """The imaginary parts of a complex tensor, as a view. RuntimeError for real ones."""
    def __init__(self, *args: Any, **kwargs: Any) -> None: ...
    def __len__(self) -> _int:
        """The size of the first dimension. TypeError for a tensor without dimensions."""
    def __iter__(self) -> Iterator[Tensor]:
        """The slices along the first dimension, one after the other. TypeError for a tensor without dimensions."""
    def __getitem__(self, index: Any) -> Tensor:
        """Indexing as numpy's: integers, slices, None and ... give views, tensors and lists of integers or bools give copies.
        IndexError for an index out of range.
        """
    def __setitem__(self, index: Any, value: Tensor | Number) -> None:
        """Writes a number, or a tensor that broadcasts, to the elements that the index selects."""
    def __contains__(self, value: Any) -> _bool:
        """Whether some element equals the value."""
    def __bool__(self) -> _bool:
        """The truth of the only element. RuntimeError for more or none."""
    def __int__(self) -> _int:
        """The only element as an int. RuntimeError for more or none."""
    def __float__(self) -> _float:
        """The only element as a float. RuntimeError for more or none."""
    def __complex__(self) -> builtins.complex:
        """The only element as a complex. RuntimeError for more or none."""
    def __index__(self) -> _int:
        """The only element of an integer tensor as an int. TypeError for other tensors."""
    def __hash__(self) -> _int:
        """The identity of the object: tensors are keys by identity, whatever == says."""
    def __array__(self, dtype: Any = None, copy: Any = None) -> Any:
        """A numpy array over the tensor's bytes; a copy for another dtype."""
    def __deepcopy__(self, memo: Any) -> Tensor:
        """A copy with bytes of its own, and of .grad; leaves alone can be copied."""
    def __eq__(self, other: Any) -> Tensor:  # type: ignore[override]
        """Whether both are equal, element by element."""
    def __ne__(self, other: Any) -> Tensor:  # type: ignore[override]
        """Whether both differ, element by element."""
    # -- operators
    @overload
    def size(self) -> Size: ...
    @overload
    def size(self, dim: _int) -> _int:
        """All sizes as a torch.Size, or that of one dimension. IndexError for a dim out of range."""
    @overload
    def stride(self) -> tuple[_int, ...]: ...
    @overload
    def stride(self, dim: _int) -> _int:
        """How many elements lie between neighbours: for each dimension a number in a tuple, or that of one dimension."""
    def dim(self) -> _int:
        """The number of dimensions."""
    def ndimension(self) -> _int:
        """The number of dimensions; an older name of dim()."""
    def numel(self) -> _int:
        """The number of elements: the product of the sizes."""
    def nelement(self) -> _int:
        """The number of elements; an older name of numel()."""
    def element_size(self) -> _int:
        """Bytes of one element."""
    def data_ptr(self) -> _int:
        """The address of the first element; 0 when there is none."""
    def storage_offset(self) -> _int:
        """Which element of the storage is the tensor's first."""
    def untyped_storage(self) -> Any:
        """The bytes that the tensor looks at, and shares with its views."""
    def item(self) -> _int | _float | _bool:
        """The only element as a Python number. RuntimeError for more or none."""
    def tolist(self) -> Any:
        """The elements as nested lists of Python numbers; a number for a tensor without dimensions."""
    def numpy(self, *, force: _bool = False) -> Any:
        """A numpy array over the same bytes. RuntimeError for a tensor that requires grad, unless force, which detaches and copies as
        needed. TypeError for bfloat16.
        """
    def to(self, *args: Any, **kwargs: Any) -> Tensor:
        """The tensor with another dtype, on another device, or like another tensor: to(dtype), to(device), to(device, dtype),
        to(other), each with non_blocking=False, copy=False, memory_format=torch.preserve_format. The tensor itself when nothing
        changes and copy is False. Gradients flow back through it.
        """
    def type(self, dtype: Any = None, non_blocking: _bool = False) -> Any:
        """The tensor cast to a dtype (also by its type's name, 'torch.DoubleTensor'); without one, the type's name."""
    def cpu(self, memory_format: _memory_format = ...) -> Tensor:
        """The tensor on the CPU: itself when it is there."""
    def cuda(self, device: Any = None, non_blocking: _bool = False) -> Tensor:
        """The tensor on an NVIDIA device. RuntimeError where there is none."""
    def float(self) -> Tensor:
        """The tensor as float32; itself when it is."""
    def double(self) -> Tensor:
        """The tensor as float64; itself when it is."""
    def half(self) -> Tensor:
        """The tensor as float16; itself when it is."""
    def bfloat16(self) -> Tensor:
        """The tensor as bfloat16; itself when it is."""
    def int(self) -> Tensor:
        """The tensor as int32; itself when it is. Floating point numbers are rounded towards 0."""
    def long(self) -> Tensor:
        """The tensor as int64; itself when it is. Floating point numbers are rounded towards 0."""
    def short(self) -> Tensor:
        """The tensor as int16; itself when it is."""
    def char(self) -> Tensor:
        """The tensor as int8; itself when it is."""
    def byte(self) -> Tensor:
        """The tensor as uint8; itself when it is."""
    def bool(self) -> Tensor:
        """The tensor as bool: whether each element is nonzero."""
    def detach(self) -> Tensor:
        """A view that no gradient flows through: same bytes, requires_grad False."""
    def detach_(self) -> Tensor:
        """Cuts the tensor itself out of the graph: it becomes a leaf. RuntimeError for views."""
    def backward(self, gradient: Tensor | None = None, retain_graph: _bool | None = None, create_graph: _bool = False,
                 inputs: Any = None) -> None:
        """Adds the derivative of this tensor to .grad of the leaves that it was made from.

        gradient: the derivative of what is wanted with respect to this tensor, of its shape; 1 for a scalar. retain_graph: keep
        what was saved, for another run. create_graph: record the derivative too. inputs: add to these alone. RuntimeError without
        a graph, for one that was freed, and for a tensor of several elements without gradient.
        """
    def requires_grad_(self: _Self, requires_grad: _bool = True) -> _Self:
        """Says whether operations on the tensor are recorded, and returns it. RuntimeError for a dtype that is neither floating point
        nor complex.
        """
    def retain_grad(self) -> None:
        """Keeps .grad of a tensor that is no leaf, in backward()."""
    def register_hook(self, hook: Callable[[Tensor], Tensor | None]) -> Any:
        """Calls hook(grad) when the tensor's gradient is known; what it returns, if anything, takes the gradient's place.

        Returns a handle with remove(). RuntimeError for a tensor that does not require grad.
        """
    def get_device(self) -> _int:
        """The index of the tensor's device: -1 on the CPU."""
    def is_pinned(self, device: Any = None) -> _bool:
        """Whether the bytes lie in memory that a device can read by itself: never in this build."""
    def new(self, *args: Any, **kwargs: Any) -> Tensor:
        """An old constructor: a tensor of this one's dtype, of the sizes or with the data given. new_tensor and new_empty are newer."""
    def register_post_accumulate_grad_hook(self, hook: Callable[[Tensor], None]) -> Any:
        """Calls hook(tensor) after a gradient was added to a leaf's .grad. RuntimeError for tensors that are no leaves.

        Returns a handle with remove().
        """
    def is_contiguous(self, memory_format: _memory_format = ...) -> _bool:
        """Whether the elements lie one after the other in the order of memory_format."""
    def is_floating_point(self) -> _bool:
        """Whether the dtype is float16, bfloat16, float32 or float64."""
    def is_complex(self) -> _bool:
        """Whether the dtype is complex64 or complex128."""
    def share_memory_(self) -> Tensor:
        """Moves the bytes to memory that other processes can map, and returns the tensor."""
    def split(self, split_size: _int | Sequence[_int], dim: _int = 0) -> tuple[Tensor, ...]:
        """Views of the tensor cut along dim into pieces of split_size, or of the sizes listed."""
    def new_tensor(self, data: Any, *, dtype: _dtype | None = None, device: _Device = None, requires_grad: _bool = False) -> Tensor:
        """A new tensor of data, of this one's dtype and device unless they are given."""
    # -- methods of the rows
    def __getattr__(self, name: builtins.str) -> Any: ...

class no_grad:
    """Nothing inside is recorded: `with torch.no_grad():`, or a decorator."""
    def __init__(self) -> None: ...
    def __enter__(self) -> None: ...
    def __exit__(self, *args: Any) -> None: ...
    def __call__(self, func: _F) -> _F: ...

class enable_grad(no_grad): ...

class set_grad_enabled(no_grad):
    def __init__(self, mode: _bool) -> None: ...

class inference_mode(no_grad):
    def __init__(self, mode: _bool = True) -> None: ...

def tensor(data: Any, *, dtype: _dtype | None = None, device: _Device = None, requires_grad: _bool = False,
           pin_memory: _bool = False) -> Tensor:
    """A tensor with a copy of data: a number, nested lists of numbers, a numpy array, a tensor.

    The dtype is float32 for Python floats, int64 for ints, bool, complex64 for complex, and that of arrays and tensors. ValueError
    for lists of unequal lengths.

    >>> torch.tensor([[1, 2], [3, 4]]).shape
    torch.Size([2, 2])
    """
def as_tensor(data: Any, dtype: _dtype | None = None, device: _Device = None) -> Tensor:
    """data as a tensor, sharing its bytes where dtype and device allow: arrays and tensors are not copied."""
def from_numpy(array: Any) -> Tensor:
    """A tensor over the bytes of a numpy array: writing one writes the other. TypeError for what is no array, or a dtype that tensors
    lack.
    """
def frombuffer(buffer: Any, *, dtype: _dtype, count: _int = -1, offset: _int = 0, requires_grad: _bool = False) -> Tensor:
    """A vector over the bytes of an object with the buffer protocol. ValueError for a buffer too short, or a count or offset outside it."""
def is_tensor(obj: Any) -> _bool: ...
def is_grad_enabled() -> _bool:
    """Whether operations are recorded on this thread: no_grad() and its kind say so."""
def manual_seed(seed: _int) -> Generator: ...
def seed() -> _int: ...
def initial_seed() -> _int: ...
def get_rng_state() -> Tensor: ...
def set_rng_state(new_state: Tensor) -> None: ...
def get_num_threads() -> _int:
    """How many threads one operator may use."""
def set_num_threads(num: _int) -> None:
    """How many threads one operator may use, from 1 to 4096. Results do not depend on it. RuntimeError for others."""
def get_default_dtype() -> _dtype:
    """The dtype of floating point tensors made without one: float32 unless set_default_dtype said another."""
def set_default_dtype(d: _dtype) -> None: ...
def set_printoptions(precision: Any = None, threshold: Any = None, edgeitems: Any = None, linewidth: Any = None, profile: Any = None,
                     sci_mode: Any = None) -> None: ...
def save(obj: Any, f: Any, pickle_module: Any = ..., pickle_protocol: _int = 2, _use_new_zipfile_serialization: _bool = True) -> None: ...
def load(f: Any, map_location: Any = None, pickle_module: Any = None, *, weights_only: _bool | None = None, mmap: _bool | None = None,
         **pickle_load_args: Any) -> Any: ...
def einsum(equation: Any, *operands: Any) -> Tensor: ...
def split(tensor: Tensor, split_size_or_sections: _int | Sequence[_int], dim: _int = 0) -> tuple[Tensor, ...]: ...
def meshgrid(*tensors: Tensor | Sequence[Tensor], indexing: builtins.str | None = None) -> tuple[Tensor, ...]: ...
def broadcast_tensors(*tensors: Tensor) -> tuple[Tensor, ...]: ...
def broadcast_shapes(*shapes: _int | Sequence[_int]) -> Size: ...
def nonzero(input: Tensor, *, out: Tensor | None = None, as_tuple: _bool = False) -> Any: ...
def tensordot(a: Tensor, b: Tensor, dims: Any = 2, out: Tensor | None = None) -> Tensor: ...
def cdist(x1: Tensor, x2: Tensor, p: _float = 2.0, compute_mode: builtins.str = ...) -> Tensor: ...
def cartesian_prod(*tensors: Tensor) -> Tensor: ...
def block_diag(*tensors: Any) -> Tensor: ...
def norm(input: Tensor, p: Any = "fro", dim: Any = None, keepdim: _bool = False, out: Tensor | None = None,
         dtype: _dtype | None = None) -> Tensor: ...
def unique(input: Tensor, sorted: _bool = True, return_inverse: _bool = False, return_counts: _bool = False,
           dim: _int | None = None) -> Any: ...
def unique_consecutive(input: Tensor, return_inverse: _bool = False, return_counts: _bool = False, dim: _int | None = None) -> Any: ...
def chain_matmul(*matrices: Tensor, out: Tensor | None = None) -> Tensor: ...
def set_default_device(device: _Device) -> None: ...
def get_default_device() -> _device: ...
def compile(model: Any = None, **options: Any) -> Any: ...
def vmap(func: Callable[..., Any], in_dims: Any = 0, out_dims: Any = 0, randomness: builtins.str = "error", *,
         chunk_size: _int | None = None) -> Callable[..., Any]: ...
def fall(fn: Callable[..., Any], *args: Any, html: Any = None, **kwargs: Any) -> Fall: ...
def graph(outputs: Tensor | Sequence[Tensor], names: Any = None) -> Graph: ...
# -- functions of the rows
def __getattr__(name: builtins.str) -> Any: ...

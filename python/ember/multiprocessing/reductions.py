"""How storages and tensors are pickled on their way to another process: by reference to shared memory.

Strategies: `file_descriptor` (an anonymous file in memory, whose descriptor travels; nothing can be left behind) and
`file_system` (a file in /dev/shm that counts its users; no descriptor stays open, so their number is no limit).
"""

import itertools
import os
from multiprocessing import reduction, util
from multiprocessing.reduction import ForkingPickler

import ember
from ember import _C
from ember._C import UntypedStorage

_strategies = {"file_descriptor", "file_system"}
_strategy = "file_descriptor"


def set_sharing_strategy(new_strategy):
    """Choose how CPU tensors are shared from now on: one of get_all_sharing_strategies()."""
    global _strategy
    if new_strategy not in _strategies:
        raise AssertionError(f"invalid sharing strategy {new_strategy!r}, expected one of {_strategies}")
    _strategy = new_strategy


def get_sharing_strategy():
    """How CPU tensors are shared now."""
    return _strategy


def get_all_sharing_strategies():
    """The names that set_sharing_strategy() takes."""
    return _strategies


# ---------------------------------------------------------------- names of files in /dev/shm
_numbers = itertools.count()
_named_by = None  # the process that has prepared for named files


def _prefix(pid):
    # Process ids are unique within their namespace only, and /dev/shm may be shared with others.
    return f"ember_{os.stat('/proc/self/ns/pid').st_ino}_{pid}_"


def _new_name():
    """A name in /dev/shm. The first call of a process removes what dead processes have left."""
    global _named_by
    pid = os.getpid()
    if _named_by != pid:
        _named_by = pid
        util.Finalize(None, _C._shared_leave, exitpriority=-100)
        _sweep()
    return f"{_prefix(pid)}{next(_numbers)}"


def _sweep():
    """Remove files whose makers were killed before they could. Who has such a file mapped keeps its bytes."""
    start = _prefix("")[:-1]
    for name in os.listdir("/dev/shm"):
        maker = name[len(start):].split("_")[0] if name.startswith(start) else ""
        if maker.isdigit() and not os.path.exists(f"/proc/{maker}"):
            try:
                os.unlink(f"/dev/shm/{name}")
            except FileNotFoundError:
                continue  # somebody else sweeps too


def _name_or_none():
    return _new_name() if _strategy == "file_system" else None


# ---------------------------------------------------------------- storages
def share(storage):
    """Move the bytes of `storage` to shared memory, if they are not there. Returns it."""
    if not storage.is_shared():
        _C._shared_move(storage, _name_or_none())
    return storage


def new_shared(nbytes):
    """A storage of zeros in shared memory."""
    return _C._shared_new(nbytes, _name_or_none())


def rebuild_storage_fd(df, offset, nbytes):
    fd = df.detach()
    try:
        return _C._shared_open(fd, offset, nbytes)
    finally:
        os.close(fd)


def rebuild_storage_filename(name, nbytes):
    return _C._shared_open_named(name, nbytes)


def reduce_storage(storage):
    if storage.device.type == "meta":
        raise RuntimeError("Cannot pickle meta storage; try pickling a meta tensor instead")
    nbytes = storage.nbytes()
    if nbytes == 0:
        return UntypedStorage, (0,)
    fd, name, offset = _C._shared_find(share(storage))
    if name is not None:
        _C._shared_count(storage)
        return rebuild_storage_filename, (name, nbytes)
    if fd < 0:  # it came from a worker and its descriptor has been given up: the bytes travel again
        copy = share(storage.clone())
        fd, _, offset = _C._shared_find(copy)
    return rebuild_storage_fd, (reduction.DupFd(fd), offset, nbytes)


# ---------------------------------------------------------------- tensors
def reduce_tensor(tensor):
    if tensor.requires_grad and not tensor.is_leaf:
        raise RuntimeError("Cowardly refusing to serialize non-leaf tensor which requires_grad, since autograd does not "
                           "support crossing process boundaries.  If you just want to transfer the data, call detach() on "
                           "the tensor before serializing (e.g., putting it on the queue).")
    return tensor.__reduce_ex__(2)


def init_reductions():
    """Register with multiprocessing's pickler. Once is enough, again does no harm."""
    ForkingPickler.register(UntypedStorage, reduce_storage)
    ForkingPickler.register(ember.Tensor, reduce_tensor)

"""Messages between a DataLoader and a worker: a socket pair that keeps messages apart and passes descriptors.

The bytes of all tensors of a message (and of large numpy arrays, and of a large pickle) lie in one anonymous file, which
the receiver maps: a batch costs one descriptor, however many tensors it has. Storages that are shared already travel by
their own descriptor. There are no threads, no names and no locks: whoever dies, nothing is left behind, and the other side
sees the end of the stream.
"""

import io
import os
import pickle
import socket
import struct
from multiprocessing.reduction import ForkingPickler

import ember
from ember import _C
from ember._C import UntypedStorage
from ember.multiprocessing import reductions

_HEADER = struct.Struct("<qqqi")  # task, length of the pickle, its place in the file (-1: here), further descriptors
_INLINE = 16 << 10  # a longer pickle goes to the file: messages stay small enough never to fill the socket alone
_LARGE = 256 << 10
_MAX_FDS = 200  # the kernel passes at most 253 at once
_ALIGN = 64
_AT_ONCE = 500  # pieces a system call: with the gaps between them at most 1,000 buffers
_GAP = memoryview(bytes(_ALIGN))


def pair():
    """Two connected sockets."""
    return socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)


class _Pickler(pickle.Pickler):
    """multiprocessing's pickler, which collects storages and buffers beside the pickle."""

    def __init__(self, out):
        super().__init__(out, 5, buffer_callback=self._buffer)
        self.dispatch_table = {**ForkingPickler(out).dispatch_table, UntypedStorage: self._storage,
                               ember.Tensor: self._tensor}
        self.pieces = []  # (offset, buffer) in the file
        self.size = 0
        self.buffers = []  # (offset, length) of those that pickle hands over
        self.shared = []  # storages whose descriptors travel

    def place(self, buffer, nbytes):
        offset = -(-self.size // _ALIGN) * _ALIGN
        self.pieces.append((offset, buffer))
        self.size = offset + nbytes
        return offset

    def _tensor(self, tensor):
        # A part of something large, of the dataset's own table say: that moves to shared memory, once, and only its
        # descriptor travels from then on.
        storage = tensor.untyped_storage()
        if storage.nbytes() > _LARGE and tensor.numel() * tensor.itemsize < storage.nbytes() // 2 and not tensor.is_meta:
            reductions.share(storage)
        if tensor.is_meta or not tensor.is_leaf or tensor.__dict__:
            return reductions.reduce_tensor(tensor)
        return _window, (storage, tensor.dtype, tensor.storage_offset(), tuple(tensor.size()), tensor.stride(),
                         tensor.requires_grad)

    def _storage(self, storage):
        nbytes = storage.nbytes()
        if nbytes == 0 or storage.device.type != "cpu":
            return reductions.reduce_storage(storage)
        shared = _C._shared_find(storage)
        if shared is not None and shared[1] is not None:
            return reductions.reduce_storage(storage)
        if shared is not None and shared[0] >= 0 and len(self.shared) < _MAX_FDS:
            self.shared.append(storage)
            return _arrived, (len(self.shared), shared[2], nbytes)
        return _arrived, (0, self.place(memoryview(storage), nbytes), nbytes)

    def _buffer(self, buffer):
        raw = buffer.raw()
        if raw.nbytes < _INLINE:
            return True  # stays in the pickle
        self.buffers.append((self.place(raw, raw.nbytes), raw.nbytes))
        return False


class Message:
    """A pickled object with its descriptors, ready to be sent; closes them when it goes."""

    def __init__(self, task, obj):
        out = io.BytesIO()
        pickler = _Pickler(out)
        pickler.dump(obj)
        self._storages = pickler.shared  # alive until sent
        body = out.getbuffer()
        head = struct.pack(f"<{1 + 2 * len(pickler.buffers)}q", len(pickler.buffers),
                           *(n for piece in pickler.buffers for n in piece))
        length, place = len(head) + body.nbytes, -1
        parts = [head, body]
        if length > _INLINE:
            joined = b"".join(parts)
            place, parts = pickler.place(joined, length), []
        self.fds = [_C._shared_find(s)[0] for s in pickler.shared]
        self._own = _write_file(pickler.pieces, pickler.size) if pickler.pieces else -1
        self.data = b"".join([_HEADER.pack(task, length, place, len(self.fds)), *parts])
        if self._own >= 0:
            self.fds.insert(0, self._own)

    def send(self, sock, wait=True):
        """False if that would block and should not."""
        extra = [(socket.SOL_SOCKET, socket.SCM_RIGHTS, struct.pack(f"{len(self.fds)}i", *self.fds))] if self.fds else []
        try:
            sock.sendmsg([self.data], extra, 0 if wait else socket.MSG_DONTWAIT)
        except BlockingIOError:
            return False
        return True

    def __del__(self):
        if getattr(self, "_own", -1) >= 0:
            os.close(self._own)


def _write_pieces(fd, pieces):
    """A run of pieces with the gaps between them, in one call if the system takes all of it."""
    begin = end = pieces[0][0]
    run = []
    for offset, piece in pieces:
        if offset > end:
            run.append(_GAP[:offset - end])
        run.append(memoryview(piece).cast("B"))
        end = offset + run[-1].nbytes
    while begin < end:
        n = os.pwritev(fd, run, begin)
        begin += n
        while run and n >= run[0].nbytes:
            n -= run.pop(0).nbytes
        if run:
            run[0] = run[0][n:]


def _write_file(pieces, size):
    """An anonymous file with these pieces. Written, not mapped: no page is cleared and faulted in for nothing."""
    fd = os.memfd_create("ember-batch", os.MFD_CLOEXEC)
    try:
        os.ftruncate(fd, size)
        for i in range(0, len(pieces), _AT_ONCE):
            _write_pieces(fd, pieces[i:i + _AT_ONCE])
    except BaseException:
        os.close(fd)
        raise
    return fd


_arriving = []  # descriptors of the message that is being unpickled; [0] is the file, or None


def _arrived(which, offset, nbytes):
    return _C._shared_open(_arriving[-1][which], offset, nbytes, which == 0)


def _window(storage, dtype, offset, size, stride, requires_grad):
    tensor = _C._window(storage, dtype, offset, size, stride)
    if requires_grad:
        tensor.requires_grad = True
    return tensor


def receive(sock):
    """(task, function that gives the object) of the next message. EOFError when the other side has gone."""
    try:
        data, extra, flags, _ = sock.recvmsg(_INLINE + 4096, socket.CMSG_SPACE((_MAX_FDS + 1) * 4))
    except ConnectionError:
        raise EOFError from None
    fds = [fd for _, _, packed in extra for (fd,) in struct.iter_unpack("i", packed[:len(packed) // 4 * 4])]
    if not data:
        raise EOFError
    if flags & socket.MSG_CTRUNC:
        for fd in fds:
            os.close(fd)
        raise RuntimeError("Too many open files. Communication with the workers is no longer possible. Please increase the "
                           "limit using `ulimit -n` in the shell or change the sharing strategy by calling "
                           "`torch.multiprocessing.set_sharing_strategy('file_system')` at the beginning of your code")
    task, length, place, shared = _HEADER.unpack_from(data)
    if len(fds) == shared:
        fds.insert(0, None)
    return task, _Received(data[_HEADER.size:], fds, length, place)


class _Received:
    """A message whose object has not been made yet."""

    def __init__(self, body, fds, length, place):
        self.body, self.fds, self.length, self.place = body, fds, length, place

    def load(self):
        body = memoryview(self.body if self.place < 0 else
                          _C._shared_open(self.fds[0], self.place, self.length, True))
        (count,) = struct.unpack_from("<q", body)
        places = struct.unpack_from(f"<{2 * count}q", body, 8)
        _arriving.append(self.fds)
        try:
            buffers = [memoryview(_arrived(0, places[2 * i], places[2 * i + 1])) for i in range(count)]
            return pickle.loads(body[8 + 16 * count:], buffers=buffers)
        finally:
            _arriving.pop()
            self.close()

    def close(self):
        fds, self.fds = self.fds, []
        for fd in fds:
            if fd is not None:
                os.close(fd)

    __del__ = close

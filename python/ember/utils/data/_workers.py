"""DataLoader's side of its workers: hands out tasks, puts results in order, notices deaths, cleans up."""

import atexit
import collections
import os
import select
import signal
import time
import weakref
from typing import Any

from ember._utils import ExceptionWrapper

from ._utils import channel
from ._utils.worker import CHECK_INTERVAL, _IterableDatasetStopIteration, _ResumeIteration, _worker_loop
from .dataloader import _BaseDataLoaderIter

_ends = weakref.WeakSet()  # the loaders' ends of all channels: a forked worker closes its copies
_iterators = weakref.WeakSet()


@atexit.register
def _shut_all_down():
    for iterator in list(_iterators):
        iterator._shutdown_workers()


def _run_worker(*args):
    for end in list(_ends):
        end.close()
    _worker_loop(*args)


class _Worker:
    """A process, the loader's end of its channel, and what waits to be sent."""

    def __init__(self, context, number, make_args) -> None:
        self.number = number
        self.sock, theirs = channel.pair()
        _ends.add(self.sock)
        self.process = context.Process(target=_run_worker, args=make_args(theirs), daemon=True)
        self.available = True  # False when its stream has ended
        self.tasks = 0  # handed out, not yet yielded
        self.waiting = collections.deque()
        try:
            self.process.start()
        except BaseException:
            self.sock.close()
            raise
        finally:
            theirs.close()

    def send(self, task, obj) -> Any:
        self.waiting.append(channel.Message(task, obj))
        return self.flush()

    def flush(self) -> None:
        """Send what waits, as far as it goes without blocking."""
        try:
            while self.waiting and self.waiting[0].send(self.sock, wait=False):
                self.waiting.popleft()
        except (ConnectionError, OSError):
            self.waiting.clear()  # it has died; whoever waits for its answer finds out

    def close(self) -> None:
        """Tell it to end: it sees the end of the stream, even if another process holds a copy of this socket."""
        self.waiting.clear()
        try:
            self.sock.shutdown(channel.socket.SHUT_RDWR)
        except OSError:
            pass  # it has gone already
        self.sock.close()


class _Broken:
    """A batch that could not be unpickled here."""

    def __init__(self, error) -> None:
        self.error = error


class _MultiProcessingDataLoaderIter(_BaseDataLoaderIter):
    """Iterator over batches that workers load ahead of time."""

    _shutdown = True  # until workers run
    _workers = ()

    def __init__(self, loader) -> None:
        super().__init__(loader)
        if self._num_workers <= 0:
            raise AssertionError("num_workers must be greater than 0 for MultiProcessingDataLoaderIter")
        if loader.prefetch_factor <= 0:
            raise AssertionError("prefetch_factor must be greater than 0 for MultiProcessingDataLoaderIter")
        self._prefetch_factor = loader.prefetch_factor
        self._in_order = loader.in_order
        self._worker_init_fn = loader.worker_init_fn
        self._owner = os.getpid()
        self._epoch = 0
        context = loader.multiprocessing_context
        if context is None:
            import ember.multiprocessing
            context = ember.multiprocessing.get_context()
        self._poll = select.poll()
        self._channels = {}  # fileno: worker
        self._start(context)
        self._reset(loader, first_iter=True)

    def _start(self, context):
        def args_of(number):
            return lambda sock: (self._dataset_kind, self._dataset, sock, self._auto_collation, self._collate_fn,
                                 self._drop_last, self._base_seed, self._worker_init_fn, number, self._num_workers)

        self._workers = []
        self._shutdown = False
        _iterators.add(self)
        try:
            for number in range(self._num_workers):
                worker = _Worker(context, number, args_of(number))
                self._workers.append(worker)
                self._poll.register(worker.sock, select.POLLIN)
                self._poll.register(worker.process.sentinel, select.POLLIN)
                self._channels[worker.sock.fileno()] = worker
        except BaseException:
            self._shutdown_workers()
            raise

    def _reset(self, loader, first_iter=False):
        super()._reset(loader, first_iter)
        if not first_iter:
            self._resume()
        self._tasks = {}  # number: worker, for those handed out
        self._results = {}  # number: batch, for those that came before their turn
        self._send_idx = 0
        self._rcvd_idx = 0
        self._turn = 0
        for worker in self._workers:
            worker.available = True
            worker.tasks = 0
        for _ in range(self._prefetch_factor * self._num_workers):
            self._try_put_index()

    def _resume(self):
        """Workers begin a new epoch; what they still send of the old one is dropped."""
        self._epoch += 1
        for worker in self._workers:
            worker.send(-1, _ResumeIteration(self._epoch))
        left = set(self._workers)
        while left:
            worker, task, message = self._receive(None)
            if task == -1 and message.load().epoch == self._epoch:
                left.discard(worker)
            else:
                message.close()

    # ---------------------------------------------------------------- tasks
    def _next_worker(self):
        """Workers in turn; without order one that has not got its share yet."""
        available = [w for w in self._workers if w.available]
        share = self._prefetch_factor * self._num_workers // max(1, len(available))
        for _ in range(self._num_workers):
            worker = self._workers[self._turn % self._num_workers]
            self._turn += 1
            if worker.available and (self._in_order or worker.tasks < share):
                return worker
        return None

    def _try_put_index(self):
        """Hand out the next task, if there is one."""
        if all(not w.available for w in self._workers):
            return
        try:
            index = self._next_index()
        except StopIteration:
            return
        worker = self._next_worker()
        if worker is None:
            return
        self._tasks[self._send_idx] = worker
        worker.tasks += 1
        worker.send(self._send_idx, index)
        self._send_idx += 1

    def _skip_ended(self):
        """Past tasks that will bring nothing. False when there is nothing more to come."""
        while self._rcvd_idx < self._send_idx:
            number = self._rcvd_idx
            if number in self._results or (number in self._tasks and self._tasks[number].available):
                return True
            self._tasks.pop(number, None)  # its worker's stream ended, or it was yielded before its turn
            self._rcvd_idx += 1
        return False

    def _next_data(self):
        while not self._shutdown and self._skip_ended():
            if self._rcvd_idx in self._results:
                number = self._rcvd_idx
                self._rcvd_idx += 1
                return self._process(number, self._results.pop(number))
            number, data = self._get_result()
            if isinstance(data, _IterableDatasetStopIteration):
                self._tasks.pop(number).available = False
                self._try_put_index()
            elif self._in_order:
                self._results[number] = data
            else:
                return self._process(number, data)
        if not self._persistent_workers:
            self._shutdown_workers()
        raise StopIteration

    def _get_result(self):
        """The next batch that arrives, and its number."""
        worker, number, message = self._receive(self._timeout if self._timeout > 0 else None)
        try:
            return number, message.load()
        except Exception as e:
            return number, _Broken(e)

    def _process(self, number, data):
        self._tasks.pop(number).tasks -= 1
        self._try_put_index()
        if isinstance(data, _Broken):
            raise data.error
        if isinstance(data, ExceptionWrapper):
            data.reraise()
        return data

    # ---------------------------------------------------------------- arrivals and deaths
    def _receive(self, timeout):
        """(worker, task, message) of the next message. RuntimeError when a worker has died, or after `timeout`."""
        deadline = None if timeout is None else time.monotonic() + timeout
        while True:
            for worker in self._workers:
                if worker.waiting:
                    worker.flush()
            # What could not be sent is tried again soon: the worker is busy, so there is no hurry.
            pause = 0.05 if any(w.waiting for w in self._workers) else CHECK_INTERVAL
            if deadline is not None:
                pause = min(pause, max(0, deadline - time.monotonic()))
            events = self._poll.poll(pause * 1000)
            for fileno, _ in events:
                worker = self._channels.get(fileno)
                if worker is not None:
                    try:
                        return (worker, *channel.receive(worker.sock))
                    except EOFError:
                        self._die([worker])
            dead = [w for w in self._workers if not w.process.is_alive()]
            if dead:
                self._die(dead)
            if not events and deadline is not None and time.monotonic() >= deadline:
                raise RuntimeError(f"DataLoader timed out after {self._timeout} seconds")

    def _die(self, dead):
        for worker in dead:
            worker.process.join(CHECK_INTERVAL)  # its socket closed a moment before it ended
        pids = ", ".join(str(w.process.pid) for w in dead)
        causes = [_cause(w.process) for w in dead]
        self._shutdown_workers()
        raise RuntimeError(f"DataLoader worker (pid(s) {pids}) exited unexpectedly") from causes[0]

    def _shutdown_workers(self):
        """End all workers: those that do not see the end of the stream within seconds are killed."""
        if self._shutdown:
            return
        self._shutdown = True
        if os.getpid() != self._owner:  # a copy in a forked child: the workers are the parent's
            for worker in self._workers:
                worker.sock.close()
            return
        for worker in self._workers:
            worker.close()
        deadline = time.monotonic() + CHECK_INTERVAL
        for step in ("terminate", "kill"):
            for worker in self._workers:
                worker.process.join(max(0, deadline - time.monotonic()))
            late = [w.process for w in self._workers if w.process.is_alive()]
            for process in late:
                getattr(process, step)()
            deadline = time.monotonic() + 2
        for worker in self._workers:
            worker.process.join()
            worker.process.close()
        self._workers = []
        self._channels = {}

    def __del__(self) -> None:
        self._shutdown_workers()


def _cause(process):
    """Why a process ended, as an exception."""
    code = process.exitcode
    if code is not None and code < 0:
        try:
            name = signal.strsignal(-code)
        except ValueError:
            name = f"Unknown signal {-code}"
        return RuntimeError(f"DataLoader worker (pid {process.pid}) is killed by signal: {name}. ")
    return RuntimeError(f"DataLoader worker (pid {process.pid}) exited unexpectedly with exit code {code}. ")

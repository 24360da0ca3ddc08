"""What runs in a worker process."""

import os
import random
import select
import sys
from dataclasses import dataclass
from typing import Any

CHECK_INTERVAL = 5.0  # seconds between two looks at whether the other side lives


@dataclass(frozen=True)
class WorkerInfo:
    """What a worker knows of itself: get_worker_info()."""

    id: int
    num_workers: int
    seed: int
    dataset: Any
    rng: Any = None
    worker_method: str = "multiprocessing"


_worker_info = None


def get_worker_info():
    """In a worker: id, num_workers, seed, and its copy of the dataset. In the main process: None."""
    return _worker_info


@dataclass(frozen=True)
class _IterableDatasetStopIteration:
    """Instead of a batch: this worker's stream has ended."""

    worker_id: int


@dataclass(frozen=True)
class _ResumeIteration:
    """To a persistent worker: a new epoch begins. It answers with the same."""

    epoch: int


def _seed_numpy(numpy, base_seed, worker_id):
    words = [worker_id, base_seed & 0xFFFFFFFF, base_seed >> 32, 0]
    numpy.random.seed(numpy.random.SeedSequence(words).generate_state(4))


class _SeedWhenImported:
    """Finds numpy for the import system, and seeds it as soon as it is there."""

    def __init__(self, *seed):
        self.seed = seed

    def find_spec(self, name, path=None, target=None):
        if name != "numpy":
            return None
        import importlib.util
        sys.meta_path.remove(self)
        spec = importlib.util.find_spec(name)
        if spec is not None:
            run = spec.loader.exec_module

            def exec_module(module):
                run(module)
                _seed_numpy(module, *self.seed)

            spec.loader.exec_module = exec_module
        return spec


def _seed_all(base_seed, worker_id):
    """This worker's streams: Ember's, random's and numpy's (now, or when the dataset imports it)."""
    import ember
    random.seed(base_seed + worker_id)
    ember.manual_seed(base_seed + worker_id)
    if "numpy" in sys.modules:
        _seed_numpy(sys.modules["numpy"], base_seed, worker_id)
    else:
        sys.meta_path.insert(0, _SeedWhenImported(base_seed, worker_id))


class _Worker:
    def __init__(self, sock, make_fetcher, worker_id):
        self.sock = sock
        self.make_fetcher = make_fetcher
        self.id = worker_id
        self.parent = os.getppid()
        self.poll = select.poll()
        self.poll.register(sock, select.POLLIN)
        self.failure = None  # of the start: told instead of the first batch
        self.fetcher = None
        self.ended = False

    def start(self, init_fn):
        from ember._utils import ExceptionWrapper
        try:
            if init_fn is not None:
                init_fn(self.id)
            self.fetcher = self.make_fetcher()
        except Exception:
            self.failure = ExceptionWrapper(where=f"in DataLoader worker process {self.id}")

    def receive(self):
        """The next message. EOFError when there will be none: the loader has closed its end, or its process has died."""
        from . import channel
        while not self.poll.poll(CHECK_INTERVAL * 1000):
            if os.getppid() != self.parent:
                raise EOFError
        task, message = channel.receive(self.sock)
        return task, message.load()

    def fetch(self, index, stream):
        from ember._utils import ExceptionWrapper
        if self.failure is not None:
            failure, self.failure = self.failure, None
            return failure
        try:
            return self.fetcher.fetch(index)
        except Exception as e:
            if stream and isinstance(e, StopIteration):
                self.ended = True
                return _IterableDatasetStopIteration(self.id)
            return ExceptionWrapper(where=f"in DataLoader worker process {self.id}")

    def send(self, task, data):
        from ember._utils import ExceptionWrapper

        from . import channel
        try:
            message = channel.Message(task, data)
        except Exception:
            if isinstance(data, ExceptionWrapper):  # its class does not go through a pickle
                data.exc_type = RuntimeError
            else:
                data = ExceptionWrapper(where=f"in DataLoader worker process {self.id}")
            message = channel.Message(task, data)
        try:
            message.send(self.sock)
        except ConnectionError:
            raise EOFError from None


def _worker_loop(kind, dataset, sock, auto_collation, collate_fn, drop_last, base_seed, init_fn, worker_id, num_workers):
    """Fetches what the loader asks for, until its end of the socket closes."""
    global _worker_info
    import ember
    from ember.utils.data.dataloader import _DatasetKind
    ember.set_num_threads(1)
    _seed_all(base_seed, worker_id)
    _worker_info = WorkerInfo(id=worker_id, num_workers=num_workers, seed=base_seed + worker_id, dataset=dataset)
    worker = _Worker(sock, lambda: _DatasetKind.create_fetcher(kind, dataset, auto_collation, collate_fn, drop_last),
                     worker_id)
    try:
        worker.start(init_fn)
        init_fn = None
        while True:
            task, index = worker.receive()
            if isinstance(index, _ResumeIteration):
                worker.ended = False
                worker.start(None)
                worker.send(task, index)
            elif not worker.ended:
                data = worker.fetch(index, kind == _DatasetKind.Iterable)
                worker.send(task, data)
                del data, index  # shared memory goes as soon as the loader drops it
    except (EOFError, KeyboardInterrupt):
        pass  # the loader has gone, or says itself that it was interrupted
    sock.close()

"""DataLoader with workers: the same batches and seeds, every way of failing, and nothing left behind."""

import gc
import json
import os
import random
import signal
import subprocess
import sys
import time

import pytest

import ember as torch
from ember.utils import data as D

# What PyTorch's workers draw from torch, random and numpy after torch.manual_seed(11): two epochs, two workers.
SEEDS = os.path.join(os.path.dirname(os.path.abspath(__file__)), "golden", "worker_seeds.json")


class Streams(D.Dataset):
    def __len__(self):
        return 4

    def __getitem__(self, i):
        import numpy as np
        return [torch.randint(2 ** 40, (1,)).item(), random.getrandbits(40), int(np.random.randint(2 ** 40))]


class Ranges(D.IterableDataset):
    """Each worker streams its share of range(n)."""

    def __init__(self, n):
        self.n = n

    def __iter__(self):
        info = D.get_worker_info()
        return iter(range(info.id, self.n, info.num_workers)) if info else iter(range(self.n))


class Fails(D.Dataset):
    """Raises, or worse, at item 3."""

    def __init__(self, how):
        self.how = how

    def __len__(self):
        return 8

    def __getitem__(self, i):
        if i == 3:
            self.how()
        return i


class Fancy(Exception):
    def __init__(self, code, why):
        super().__init__(f"code {code} because {why}")


def throw(error):
    def how():
        raise error
    return how


def double(batch):
    return torch.tensor(batch) * 2


def open_files():
    return len(os.listdir("/proc/self/fd"))


def children():
    """Processes that this one has started and not collected."""
    path = f"/proc/self/task/{os.getpid()}/children"
    with open(path) as f:
        return f.read().split()


@pytest.fixture(autouse=True)
def nothing_left():
    """No test leaves a descriptor, a process or a name in shared memory."""
    gc.collect()
    torch.multiprocessing  # its own helpers, if it starts any, are not a leak of the test
    list(D.DataLoader(range(2), num_workers=1))
    before = open_files(), children(), sorted(os.listdir("/dev/shm"))
    yield
    gc.collect()
    assert (open_files(), children(), sorted(os.listdir("/dev/shm"))) == before


def run(program, **kw):
    return subprocess.run([sys.executable, "-c", "import ember as torch, os, sys, time, signal\nD = torch.utils.data\n" + program],
                          capture_output=True, text=True, timeout=60, **kw)


# ---------------------------------------------------------------- batches
@pytest.mark.parametrize("workers", [1, 2])
def test_same_batches_as_without(workers):
    ds = D.TensorDataset(torch.arange(103), torch.randn(103, 7))

    def batches(**kw):
        torch.manual_seed(4)
        return list(D.DataLoader(ds, 10, shuffle=True, **kw))

    alone, helped = batches(), batches(num_workers=workers)
    assert len(alone) == len(helped) == 11
    for a, b in zip(alone, helped):
        assert torch.equal(a[0], b[0]) and torch.equal(a[1], b[1])
        assert b[1].is_shared() and not a[1].is_shared()


def test_seeds_are_pytorchs():
    with open(SEEDS) as f:
        want = json.load(f)
    torch.manual_seed(11)
    loader = D.DataLoader(Streams(), batch_size=None, num_workers=2)
    assert [list(loader), list(loader)] == want


def test_numpy_is_seeded_when_it_comes_late():
    with open(SEEDS) as f:
        want = json.load(f)
    done = run("""
import random
class Streams(D.Dataset):
    def __len__(self):
        return 4
    def __getitem__(self, i):
        a = [torch.randint(2 ** 40, (1,)).item(), random.getrandbits(40)]
        import numpy as np
        return a + [int(np.random.randint(2 ** 40))]
torch.manual_seed(11)
print(list(D.DataLoader(Streams(), batch_size=None, num_workers=2)))
assert 'numpy' not in sys.modules
""")
    assert done.stdout and json.loads(done.stdout) == want[0], done.stderr


def test_values_of_all_kinds_arrive():
    numpy = pytest.importorskip("numpy")
    shared = torch.ones(3).share_memory_()
    base = torch.arange(6.0)
    items = [torch.nn.Parameter(torch.ones(2)), base[1:], base[::2], torch.empty(0), torch.tensor(3), {"a": [None, "x" * 50000]},
             torch.ones(2, 3).t(), torch.randn(5).to(torch.bfloat16), shared, numpy.arange(100000), torch.ones(2, device="meta"),
             [torch.tensor([i]) for i in range(600)], torch.tensor(2.0, requires_grad=True)]
    got = list(D.DataLoader(items, batch_size=None, num_workers=1))
    assert type(got[0]) is torch.nn.Parameter and got[0].requires_grad
    assert got[1].tolist() == base[1:].tolist() and got[2].stride() == (2,) and got[3].shape == (0,)
    assert got[5] == items[5] and got[6].stride() == (1, 3) and torch.equal(got[7], items[7])
    assert (got[9].numpy() == numpy.arange(100000)).all() and got[10].is_meta and got[12].requires_grad
    assert [t.item() for t in got[11]] == list(range(600))
    got[8].fill_(7)  # it was shared before: the same memory here
    assert shared.tolist() == [7, 7, 7]
    got[9][0] = 5  # writable


def test_storages_stay_shared_within_a_batch():
    base = torch.zeros(4)
    first, second = D.DataLoader([(base[:2], base[2:])], batch_size=None, num_workers=1, collate_fn=tuple).__iter__().__next__()
    assert first.untyped_storage() == second.untyped_storage()


def test_rows_of_a_large_table_do_not_carry_it_along():
    table = torch.randn(4000, 100)
    loader = D.DataLoader(D.TensorDataset(table), 50, num_workers=1, collate_fn=list)
    size = 0
    for batch in loader:
        assert len({row.untyped_storage().data_ptr() for row, in batch}) == 1 and batch[0][0].is_shared()
        size += sum(row.numel() for row, in batch)
    assert size == table.numel() and torch.equal(torch.stack([row for row, in batch]), table[-50:])
    with open("/proc/self/maps") as f:
        assert sum("memfd:ember" in line for line in f) == 1  # one mapping, of the table


def test_streams():
    assert sorted(torch.cat(list(D.DataLoader(Ranges(23), 4, num_workers=2))).tolist()) == list(range(23))
    assert [b.tolist() for b in D.DataLoader(Ranges(10), 2, num_workers=2, drop_last=True)] == [[0, 2], [1, 3], [4, 6], [5, 7]]
    loader = D.DataLoader(Ranges(7), None, num_workers=2, persistent_workers=True)
    assert list(loader) == list(loader) == [0, 1, 2, 3, 4, 5, 6]


def test_out_of_order():
    class Slow(D.Dataset):
        def __len__(self):
            return 6

        def __getitem__(self, i):
            time.sleep(0.3 if i == 0 else 0)
            return i

    loader = D.DataLoader(Slow(), None, num_workers=2, in_order=False)
    order = list(loader)
    assert sorted(order) == list(range(6)) and order[0] != 0


def test_persistent_workers_live_on():
    class Pid(D.Dataset):
        def __len__(self):
            return 4

        def __getitem__(self, i):
            return os.getpid()

    loader = D.DataLoader(Pid(), None, num_workers=2, persistent_workers=True)
    first = set(loader)
    assert len(first) == 2 and set(loader) == first
    for _ in loader:
        break  # the rest of this epoch is dropped
    assert [len(list(loader)) for _ in range(3)] == [4, 4, 4]


def test_one_thread_and_worker_info():
    class Info(D.Dataset):
        def __len__(self):
            return 2

        def __getitem__(self, i):
            info = D.get_worker_info()
            return info.id, info.num_workers, torch.get_num_threads(), info.dataset is self, info.seed == torch.initial_seed()

    assert list(D.DataLoader(Info(), None, num_workers=2, collate_fn=tuple)) == [(0, 2, 1, True, True), (1, 2, 1, True, True)]
    assert D.get_worker_info() is None


@pytest.mark.parametrize("method", ["spawn", "forkserver"])
def test_start_methods(method):
    if method == "forkserver":  # its server process stays: run in a process of its own
        done = run("if __name__ == '__main__':\n"
                   "    loader = D.DataLoader(D.TensorDataset(torch.arange(9)), 4, num_workers=2, multiprocessing_context='forkserver')\n"
                   "    print([b[0].tolist() for b in loader])")
        assert done.stdout == "[[0, 1, 2, 3], [4, 5, 6, 7], [8]]\n", done.stderr
        return
    done = run("if __name__ == '__main__':\n"
               "    loader = D.DataLoader(D.TensorDataset(torch.arange(9)), 4, num_workers=2, multiprocessing_context='spawn')\n"
               "    print([b[0].tolist() for b in loader])")
    assert done.stdout == "[[0, 1, 2, 3], [4, 5, 6, 7], [8]]\n", done.stderr


def test_spawned_workers_of_a_program_that_says_torch(tmp_path):
    program = tmp_path / "program.py"
    program.write_text("""
import torch
class Squares(torch.utils.data.Dataset):
    def __len__(self):
        return 4
    def __getitem__(self, i):
        return torch.tensor(i * i)
if __name__ == '__main__':
    print(torch.cat(list(torch.utils.data.DataLoader(Squares(), 2, num_workers=2, multiprocessing_context='spawn'))).tolist())
""")
    done = subprocess.run([sys.executable, "-m", "ember", str(program)], capture_output=True, text=True, timeout=60)
    assert done.stdout == "[0, 1, 4, 9]\n", done.stderr


# ---------------------------------------------------------------- failures
@pytest.mark.parametrize("error", [ValueError("disk on fire"), KeyError("disk on fire"), Fancy(42, "disk on fire"),
                                   OSError(5, "disk on fire")])
def test_exception_in_the_dataset(error):
    kind = RuntimeError if isinstance(error, Fancy) else type(error)
    with pytest.raises(kind) as seen:
        list(D.DataLoader(Fails(throw(error)), 2, num_workers=2))
    text = str(seen.value)
    assert text.startswith(f"Caught {type(error).__name__} in DataLoader worker process 1.\nOriginal Traceback")
    assert "disk on fire" in text and "in __getitem__" in text


def test_iteration_goes_on_after_an_exception():
    it = iter(D.DataLoader(Fails(throw(ValueError("no"))), 2, num_workers=2))
    assert next(it).tolist() == [0, 1]
    with pytest.raises(ValueError):
        next(it)
    assert [b.tolist() for b in it] == [[4, 5], [6, 7]]


def test_exceptions_elsewhere():
    def bad_init(worker):
        raise LookupError(f"init of {worker}")

    def bad_iter(self):
        raise LookupError("no stream")

    stream = type("Stream", (D.IterableDataset,), {"__iter__": bad_iter})()
    for loader, text in ((D.DataLoader(range(4), 2, num_workers=1, worker_init_fn=bad_init), "init of 0"),
                         (D.DataLoader(stream, 2, num_workers=1), "no stream"),
                         (D.DataLoader(range(4), 2, num_workers=1, collate_fn=lambda b: {}["key"]), "key")):
        with pytest.raises(LookupError, match=text):
            list(loader)
    local = type("Local", (Exception,), {})
    with pytest.raises(RuntimeError, match="disk on fire"):  # its class does not go through a pickle
        list(D.DataLoader(Fails(throw(local("disk on fire"))), 2, num_workers=1))
    with pytest.raises(Exception, match="pickle"):
        list(D.DataLoader([lambda: 1], None, num_workers=1))
    with pytest.raises(RuntimeError, match="Cowardly refusing to serialize non-leaf tensor which requires_grad"):
        list(D.DataLoader([torch.ones(2, requires_grad=True) * 2], None, num_workers=1))


def test_what_spawn_cannot_pickle():
    done = run("if __name__ == '__main__':\n"
               "    before = len(os.listdir('/proc/self/fd'))\n"
               "    try:\n"
               "        list(D.DataLoader([1], num_workers=1, collate_fn=lambda b: b, multiprocessing_context='spawn'))\n"
               "    except Exception as e:\n"
               "        print(type(e).__name__)\n"
               "    print(len(os.listdir('/proc/self/fd')) - before)")  # the resource tracker's pipe stays
    assert done.stdout == "PicklingError\n1\n", done.stdout + done.stderr


def test_killed_worker():
    loader = D.DataLoader(Fails(lambda: os.kill(os.getpid(), signal.SIGKILL)), 2, num_workers=2)
    start = time.monotonic()
    with pytest.raises(RuntimeError, match=r"DataLoader worker \(pid\(s\) \d+\) exited unexpectedly") as seen:
        list(loader)
    assert "is killed by signal: Killed" in str(seen.value.__cause__)
    assert time.monotonic() - start < 5
    with pytest.raises(RuntimeError, match="exited unexpectedly"):
        list(D.DataLoader(Fails(lambda: os._exit(3)), 2, num_workers=2, persistent_workers=True))
    assert len(list(D.DataLoader(Fails(int), 2, num_workers=2))) == 4


def test_dead_persistent_workers_are_replaced():
    loader = D.DataLoader(range(6), 2, num_workers=2, persistent_workers=True)
    assert len(list(loader)) == 3
    os.kill(loader._iterator._workers[0].process.pid, signal.SIGKILL)
    with pytest.raises(RuntimeError, match="exited unexpectedly"):
        list(loader)
    assert [b.tolist() for b in loader] == [[0, 1], [2, 3], [4, 5]]


def test_timeout():
    loader = D.DataLoader(Fails(lambda: time.sleep(2)), 2, num_workers=1, timeout=0.3)
    with pytest.raises(RuntimeError, match="DataLoader timed out after 0.3 seconds"):
        list(loader)


def test_a_worker_that_does_not_end_is_ended():
    def stubborn():
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        time.sleep(100)

    it = iter(D.DataLoader(Fails(stubborn), 1, num_workers=1, prefetch_factor=4))
    assert next(it).tolist() == [0]
    import ember.utils.data._workers as module
    saved, module.CHECK_INTERVAL = module.CHECK_INTERVAL, 0.2
    try:
        time.sleep(0.3)
        it._shutdown_workers()
    finally:
        module.CHECK_INTERVAL = saved


def test_abandoned_iterators():
    loader = D.DataLoader(D.TensorDataset(torch.randn(500, 100)), 5, num_workers=2, prefetch_factor=8)
    for _ in range(3):
        for batch in loader:
            break
    kept = [batch for batch, _ in zip(loader, range(20))]
    del loader, batch
    gc.collect()
    assert not children() and len(kept) == 20  # batches live on without their workers


def test_more_tasks_than_a_socket_holds():
    wide = list(range(3000))
    loader = D.DataLoader(range(3000), batch_sampler=[wide] * 300, num_workers=1, prefetch_factor=300, collate_fn=list)
    assert all(batch == wide for batch in loader)


def test_batches_beyond_the_descriptor_limit():
    done = run("""
import resource
resource.setrlimit(resource.RLIMIT_NOFILE, (64, 64))
kept = list(D.DataLoader(D.TensorDataset(torch.arange(900)), 3, num_workers=2))
assert torch.cat([b[0] for b in kept]).tolist() == list(range(900))
again = list(D.DataLoader(kept, None, num_workers=1))  # batches that gave their descriptor up travel once more
print(len(again), torch.equal(again[299][0], kept[299][0]))
""")
    assert done.stdout == "300 True\n", done.stderr


# ---------------------------------------------------------------- interruption, exit
FOREVER = """
class Forever(D.Dataset):
    def __len__(self):
        return 1000
    def __getitem__(self, i):
        time.sleep(0.02)
        return torch.ones(1000)
loader = D.DataLoader(Forever(), 2, num_workers=2)
it = iter(loader)
print([w.process.pid for w in it._workers], flush=True)
"""


def gone(pids, seconds=10):
    deadline = time.monotonic() + seconds
    while any(os.path.exists(f"/proc/{p}") for p in pids) and time.monotonic() < deadline:
        time.sleep(0.05)
    return not any(os.path.exists(f"/proc/{p}") for p in pids)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_parent_is_stopped(number):
    code = "import ember as torch, time\nD = torch.utils.data\n" + FOREVER + "for batch in it: pass\n"
    p = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                         start_new_session=True)
    with p:
        pids = json.loads(p.stdout.readline())
        time.sleep(0.3)
        if number == signal.SIGINT:
            os.killpg(p.pid, number)  # Ctrl-C reaches the workers too
        else:
            p.send_signal(number)
        errors = p.communicate(timeout=20)[1]
    assert gone(pids)
    if number == signal.SIGINT:
        assert errors.count("Traceback") == 1 and "KeyboardInterrupt" in errors


def test_exit_with_a_live_iterator():
    done = run(FOREVER + "next(it)\n")
    assert done.returncode == 0 and not done.stderr
    assert gone(json.loads(done.stdout), 5)


def test_fork_beside_workers():
    loader = D.DataLoader(range(100), 2, num_workers=2)
    it = iter(loader)
    next(it)
    pid = os.fork()
    if pid == 0:
        it._shutdown_workers()  # a copy: the workers are the parent's
        os._exit(0)
    assert os.waitpid(pid, 0)[1] == 0
    assert len(list(it)) == 49


def test_memory_is_given_back():
    ds = D.TensorDataset(torch.randn(64, 50000))

    def mapped():
        with open("/proc/self/maps") as f:
            return sum("ember" in line and "memfd" in line for line in f)

    loader = D.DataLoader(ds, 8, num_workers=2, persistent_workers=True)
    for epoch in range(6):
        for batch in loader:
            assert mapped() <= 4
    del batch, loader
    gc.collect()
    assert mapped() == 0

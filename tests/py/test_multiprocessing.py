"""ember.multiprocessing: tensors between processes, share_memory_, strategies, spawn()."""

import gc
import os
import signal
import subprocess
import sys

import pytest

import ember as torch
import ember.multiprocessing as mp


@pytest.fixture(autouse=True)
def nothing_left():
    """No name stays in shared memory."""
    before = sorted(os.listdir("/dev/shm"))
    yield
    gc.collect()
    assert sorted(os.listdir("/dev/shm")) == before


@pytest.fixture(params=["file_descriptor", "file_system"])
def strategy(request):
    mp.set_sharing_strategy(request.param)
    yield request.param
    mp.set_sharing_strategy("file_descriptor")


def program(code, **kw):
    text = "import ember as torch, os, sys, time, signal\nimport ember.multiprocessing as mp\n" + code
    return subprocess.run([sys.executable, "-c", text], capture_output=True, text=True, timeout=60, **kw)


def in_child(fn, *args):
    process = mp.get_context("fork").Process(target=fn, args=args)
    process.start()
    process.join(20)
    assert process.exitcode == 0


def test_share_memory_keeps_values_and_views(strategy):
    for t in (torch.arange(10.0), torch.randn(300, 300), torch.tensor(3), torch.empty(0), torch.ones(4)[1:3]):
        before, base = t.tolist(), t.untyped_storage()
        assert not t.is_shared()
        assert t.share_memory_() is t and t.is_shared() and t.tolist() == before and t.untyped_storage() == base
    base = torch.zeros(4)
    view = base[2:]
    view.share_memory_()
    base.fill_(1)
    assert base.is_shared() and view.tolist() == [1, 1]
    with pytest.raises(RuntimeError, match="Trying to resize storage that is not resizable"):
        base.resize_(100)
    assert torch.nn.Linear(2, 2).share_memory().weight.is_shared()
    assert not torch.ones(2, device="meta").share_memory_().is_shared()
    storage = torch.UntypedStorage._new_shared(8)
    assert storage.is_shared() and storage.tolist() == [0] * 8
    assert torch.ones(2).untyped_storage().share_memory_().is_shared()


def test_grown_and_borrowed_storages_can_be_shared():
    numpy = pytest.importorskip("numpy")
    grown = torch.ones(2)
    grown.resize_(5000).fill_(2)
    array = numpy.ones(3)
    borrowed = torch.from_numpy(array).share_memory_()
    seen = torch.ones(3)
    view = seen.numpy()
    seen.share_memory_().fill_(5)
    assert grown.share_memory_().sum() == 10000 and borrowed.tolist() == [1, 1, 1]
    borrowed.fill_(9)
    assert array.tolist() == [1, 1, 1] and view.tolist() == [1, 1, 1]  # they keep the bytes from before


def test_children_see_and_write(strategy):
    shared, private = torch.zeros(1000).share_memory_(), torch.zeros(1000)

    def write():
        shared.fill_(3)
        private.fill_(3)

    in_child(write)
    assert shared.sum() == 3000 and private.sum() == 0


def test_queue_both_ways(strategy):
    context = mp.get_context("fork")
    there, back = context.SimpleQueue(), context.SimpleQueue()

    def work():
        a, b, net = there.get()
        a.fill_(7)
        assert a.untyped_storage() == b.untyped_storage()
        back.put((a.sum(), net))
        back.put(torch.full((5,), 4, dtype=torch.int16))
        assert there.get() is None  # stays until its tensors have been taken

    process = context.Process(target=work)
    process.start()
    base = torch.zeros(6)
    net = torch.nn.Linear(3, 2)
    there.put((base, base[2:], net))
    total, net2 = back.get()
    assert total == 42 and base.tolist() == [7] * 6 and base.is_shared()  # putting it moved it
    assert torch.equal(net.weight, net2.weight) and net2.weight.is_shared() and net2.weight.requires_grad
    assert back.get().tolist() == [4] * 5
    there.put(None)
    process.join(20)
    assert process.exitcode == 0


def test_pool():
    with mp.get_context("fork").Pool(2) as pool:
        got = pool.map(torch.neg, [torch.full((3,), float(i)) for i in range(6)])
        assert [t.tolist() for t in got] == [[-float(i)] * 3 for i in range(6)]


def test_refusals():
    import io
    from multiprocessing.reduction import ForkingPickler

    def send(t):
        ForkingPickler(io.BytesIO(), 5).dump(t)

    with pytest.raises(RuntimeError, match="Cowardly refusing to serialize non-leaf tensor which requires_grad"):
        send(torch.ones(2, requires_grad=True) * 2)
    with pytest.raises(RuntimeError, match="Cannot pickle meta storage"):
        send(torch.ones(2, device="meta").untyped_storage())
    with pytest.raises(AssertionError, match="invalid sharing strategy 'x', expected one of"):
        mp.set_sharing_strategy("x")
    assert mp.get_all_sharing_strategies() == {"file_descriptor", "file_system"}
    with pytest.raises(RuntimeError, match="must not be negative"):
        torch.UntypedStorage._new_shared(-1)
    with pytest.raises(RuntimeError, match="shared memory object <anonymous>"):
        torch.UntypedStorage._new_shared(1 << 62)


def test_hostile_places():
    """Descriptors and names that do not fit what a message says of them."""
    fd = os.memfd_create("test")
    os.ftruncate(fd, 100)
    for offset, nbytes in ((0, 101), (101, 0), (50, 51), (1 << 62, 1 << 62)):
        with pytest.raises(RuntimeError, match="cannot hold bytes"):
            torch._C._shared_open(fd, offset, nbytes)
    os.ftruncate(fd, 0)
    with pytest.raises(RuntimeError, match="unable to mmap"):
        torch._C._shared_open(fd, 0, 1)
    os.close(fd)
    with pytest.raises(RuntimeError, match="Bad file descriptor"):
        torch._C._shared_open(fd, 0, 1)
    for name in ("", "a/b", "..", "x" * 300):
        with pytest.raises(ValueError, match="is not a name for shared memory"):
            torch._C._shared_open_named(name, 1)
    with pytest.raises(RuntimeError, match="No such file"):
        torch._C._shared_open_named("ember_not_there", 1)
    with open("/dev/shm/ember_test_short", "w") as f:
        f.write("x")
    try:
        with pytest.raises(RuntimeError, match="was not made by Ember"):
            torch._C._shared_open_named("ember_test_short", 1)
    finally:
        os.unlink("/dev/shm/ember_test_short")


def test_live_storages_are_counted():
    gc.collect()
    before = torch._C._live_objects()
    shared = [torch.ones(n).share_memory_() for n in (0, 3, 3000)]
    views = [torch._C._shared_open(torch._C._shared_find(t.untyped_storage())[0], 0, 4) for t in shared[1:]]
    del shared, views
    gc.collect()
    assert torch._C._live_objects() == before


def test_failing_allocations():
    """Each allocation fails once: an exception, and nothing stays behind."""
    fd = os.memfd_create("test")
    os.ftruncate(fd, 100)

    def move():
        storage = torch.ones(10).untyped_storage()
        torch._C._shared_move(storage)
        return storage

    def state():
        gc.collect()
        return torch._C._live_objects(), len(os.listdir("/proc/self/fd")), sorted(os.listdir("/dev/shm"))

    for make in (lambda: torch._C._shared_new(100), lambda: torch._C._shared_new(100, "ember_test_fault"),
                 lambda: torch._C._shared_open(fd, 0, 100), move):
        before, failed = state(), 0
        for n in range(1, 20):
            torch._C._fault_countdown(n)
            try:
                made = make()
            except (RuntimeError, MemoryError):
                made = None
                failed += 1
            finally:
                torch._C._fault_countdown(0)
            arrived = made is not None
            del made
            assert state() == before
            if arrived:
                break
        assert arrived and failed >= 2
    os.close(fd)


# ---------------------------------------------------------------- named files
def test_named_files_go_with_their_process():
    done = program("mp.set_sharing_strategy('file_system')\n"
                   "t = torch.ones(5).share_memory_()\n"
                   "print([n for n in os.listdir('/dev/shm') if f'_{os.getpid()}_' in n] != [])")
    assert done.stdout == "True\n", done.stderr


def test_named_files_of_the_killed_are_swept():
    done = program("mp.set_sharing_strategy('file_system')\n"
                   "t = torch.ones(5).share_memory_()\n"
                   "os.kill(os.getpid(), signal.SIGKILL)")
    assert done.returncode == -signal.SIGKILL
    assert [n for n in os.listdir("/dev/shm") if n.startswith("ember_")]
    done = program("mp.set_sharing_strategy('file_system')\ntorch.ones(5).share_memory_()\n"
                   "print([n for n in os.listdir('/dev/shm') if n.startswith('ember_')])")
    assert done.stdout == "[]\n", done.stderr


# ---------------------------------------------------------------- spawn()
def test_spawn(tmp_path):
    path = tmp_path / "main.py"
    path.write_text("""
import os, signal, sys, time
import torch
import torch.multiprocessing as mp

def add(i, total):
    total[i] += i + 1

def fail(i):
    if i == 1:
        raise ValueError("disk on fire")
    time.sleep(60)

def leave(i, how):
    os.kill(os.getpid(), signal.SIGKILL) if how == 'kill' else sys.exit(how)

if __name__ == '__main__':
    total = torch.zeros(3).share_memory_()
    mp.spawn(add, (total,), nprocs=3)
    print(total.tolist())
    for fn, args in ((fail, ()), (leave, ('kill',)), (leave, (4,))):
        try:
            mp.spawn(fn, args, nprocs=2 if fn is fail else 1)
        except Exception as e:
            print(type(e).__name__, e.error_index, getattr(e, 'exit_code', ''), getattr(e, 'signal_name', ''))
            print(str(e).strip().split('\\n')[0], '|', str(e).strip().split('\\n')[-1])
    context = mp.start_processes(add, (total,), nprocs=2, join=False, start_method='fork')
    while not context.join():
        pass
    print(len(context.pids()), total.tolist())
""")
    done = subprocess.run([sys.executable, "-m", "ember", str(path)], capture_output=True, text=True, timeout=90)
    assert done.stdout.split("\n") == [
        "[1.0, 2.0, 3.0]",
        "ProcessRaisedException 1  ", "-- Process 1 terminated with the following error: | ValueError: disk on fire",
        "ProcessExitedException 0 -9 SIGKILL",
        "process 0 terminated with signal SIGKILL | process 0 terminated with signal SIGKILL",
        "ProcessExitedException 0 4 None", "process 0 terminated with exit code 4 | process 0 terminated with exit code 4",
        "2 [2.0, 4.0, 3.0]", ""], done.stderr


# ---------------------------------------------------------------- fork
def test_a_forked_child_computes():
    """After the pool has run here: the child runs on one thread, and its allocator works."""
    torch.set_num_threads(2)
    a = torch.randn(300, 300)
    want = (a @ a).sum() + torch.ones(400000).add(1).sum()

    def work():
        assert torch.equal((a @ a).sum() + torch.ones(400000).add(1).sum(), want)
        net = torch.nn.Linear(300, 3)
        net(a).sum().backward()
        torch.set_num_threads(1)

    for _ in range(3):
        in_child(work)

"""Input that lies, changes while it is read, or points nowhere: an exception, never the end of the process."""
import gc
import signal
import subprocess
import sys
import threading
import time

import ember as torch
import pytest

META = dict(dtype=torch.int64, device="meta")


class Runs:
    """An index that runs a function when it is read."""

    def __init__(self, function, value=1):
        self.function, self.value = function, value

    def __index__(self):
        self.function()
        return self.value

    def __float__(self):
        return float(self.__index__())


# ---------------------------------------------------------------- lists that change while they are read
@pytest.mark.parametrize("call", [
    torch.tensor, torch.as_tensor, torch.zeros, torch.Size,
    lambda l: torch.ones(3).view(l), lambda l: torch.ones(1).expand(l),
    lambda l: torch.ones(6).split(l), lambda l: torch.ones(3)[l], lambda l: torch.tensor([l, l]),
    lambda l: torch.ones(3, 3, 3).permute(l), lambda l: torch.UntypedStorage(l),
    lambda l: torch.ones(6).as_strided(l, l)])
def test_a_list_that_empties_itself(call):
    data = []

    def clear():
        data.clear()
        gc.collect()
    data[:] = [1, Runs(clear)] + [[i] * 100 for i in range(50)]
    with pytest.raises((RuntimeError, TypeError, ValueError, IndexError)):
        call(data)


@pytest.mark.parametrize("join", [torch.cat, torch.stack])
def test_tensors_of_a_list_outlive_it(join):
    """Long kernels let other threads run, and one of them replaces what the list holds."""
    tensors, done = [torch.full((200000,), 1.0) for _ in range(8)], threading.Event()

    def replace():
        value = 2.0
        while not done.is_set():
            tensors[:] = [torch.full((200000,), value) for _ in range(8)]
            value += 1
    thread = threading.Thread(target=replace)
    thread.start()
    try:
        for _ in range(100):
            result = join(tensors)
            assert result.min().item() == result.max().item()
    finally:
        done.set()
        thread.join()


def test_set_while_its_source_goes():
    x, y = torch.ones(1000), torch.ones(3)
    y.set_(x, Runs(lambda: x.set_(torch.zeros(3))), (2,), (1,))
    assert y.tolist() == [1, 1] and x.tolist() == [0, 0, 0]
    x.set_(torch.ones(10), Runs(lambda: x.set_(torch.zeros(3))), (2,), (1,))
    assert x.tolist() == [1, 1]


def test_set_checks_strides_and_device():
    with pytest.raises(RuntimeError, match="unequal size length"):
        torch.ones(3).set_(torch.ones(3), 0, (2, 2), (1,))
    with pytest.raises(RuntimeError, match="storage on different device"):
        torch.ones(3).set_(torch.ones(3, device="meta").untyped_storage())


# ---------------------------------------------------------------- what has no bytes
@pytest.mark.parametrize("call", [
    lambda x, i: x[i], lambda x, i: x[i[0]], lambda x, i: x[i, i], lambda x, i: x.take(i),
    lambda x, i: x.__setitem__(i, 1.0),
    lambda x, i: x.index_put_((i,), torch.ones(3)), lambda x, i: x[torch.ones(3, 3, **META) > 0],
    lambda x, i: x.index_put_((torch.tensor([0]),), torch.ones(3, device="meta"))])
def test_indices_without_bytes(call):
    with pytest.raises(RuntimeError, match="same device|meta tensors"):
        call(torch.ones(3, 3), torch.zeros(2, **META))


def test_storages_without_bytes():
    storage = torch.ones(2, device="meta").untyped_storage()
    for call in (storage.tolist, lambda: list(storage), lambda: torch.ones(2).untyped_storage().copy_(storage)):
        with pytest.raises(NotImplementedError):
            call()
    assert torch.UntypedStorage([1, 2], device="meta").nbytes() == 2


def test_a_storage_that_dlpack_points_into_keeps_its_place():
    x = torch.ones(10000)
    x.resize_(20000)
    capsule = x.__dlpack__()
    with pytest.raises(RuntimeError, match="not resizable"):
        x.untyped_storage().resize_(1 << 22)
    torch.from_dlpack(capsule).fill_(3)


# ---------------------------------------------------------------- custom functions
@pytest.mark.parametrize("field", ["to_save", "dirty_tensors", "non_differentiable"])
@pytest.mark.parametrize("value", [3.5, "x", [1], object()])
def test_fields_of_ctx_are_tuples(field, value):
    class Writes(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            setattr(ctx, field, value)
            return x * 2

        @staticmethod
        def backward(ctx, g):
            return g
    with pytest.raises(TypeError, match="tuple"):
        Writes.apply(torch.ones(2, requires_grad=True))


def test_to_save_holds_tensors():
    class Writes(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.to_save = (x, "x")
            return x * 2
    with pytest.raises(TypeError, match="can only save variables, but argument 1"):
        Writes.apply(torch.ones(2, requires_grad=True))


def test_a_tuple_that_was_saved_stays_as_it_was():
    """An output that requires grad but must not is replaced by an alias, in what ctx saves too; not in our tuple."""
    kept = []

    class Saves(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            y = torch.ones(2, requires_grad=True)
            kept.append((y, y))
            ctx.save_for_backward(*kept[0])
            ctx.mark_non_differentiable(*kept[0])
            return y

        @staticmethod
        def backward(ctx, g):
            return None
    result = Saves.apply(torch.ones(2, requires_grad=True))
    assert kept[0][0] is kept[0][1] and kept[0][0].requires_grad and not result.requires_grad


def test_an_unpack_hook_that_runs_the_same_backward():
    box = []

    class Saves(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x, x, x)
            return x * 2

        @staticmethod
        def backward(ctx, g):
            return g * ctx.saved_tensors[0]

    def unpack(t):
        if box:
            box.pop().backward()
        return t
    with torch.autograd.graph.saved_tensors_hooks(lambda t: t, unpack):
        y = Saves.apply(torch.ones(3, requires_grad=True)).sum()
    box.append(y)
    with pytest.raises(RuntimeError, match="a second time"):
        y.backward()


# ---------------------------------------------------------------- graphs
def test_a_million_nodes():
    x = torch.ones(1, requires_grad=True)
    y = x
    for _ in range(1000000):
        y = y + 1
    assert "AddBackward0" in repr(y)
    y.backward()
    assert x.grad.item() == 1
    del y


def test_hooks_that_remove_each_other():
    x = torch.ones(3, requires_grad=True)
    handles = []

    def hook(g):
        for h in handles:
            h.remove()
        handles.append(x.register_hook(hook))
        return g * 2
    handles += [x.register_hook(hook) for _ in range(5)]
    (x * 2).sum().backward()
    assert x.grad[0].item() >= 4


def test_the_graph_is_dropped_by_its_own_hook():
    held = {}
    x = torch.ones(3, requires_grad=True)
    held["y"] = x.exp()
    held["z"] = held["y"].sum()

    def hook(g):
        held.clear()
        gc.collect()
    held["y"].register_hook(hook)
    held["z"].backward()
    assert x.grad is not None and not held


def test_self_containing_and_deep_lists():
    loop = []
    loop.append(loop)
    deep = [1.0]
    for _ in range(100000):
        deep = [deep]
    for call in (torch.tensor, torch.zeros, torch.cat, lambda l: torch.ones(3)[l], lambda l: torch.tensor([[1], l])):
        for data in (loop, deep):
            with pytest.raises((TypeError, ValueError, RecursionError, IndexError)):
                call(data)


# ---------------------------------------------------------------- threads, signals, the end
def test_long_kernels_let_other_threads_run():
    """While another thread holds no more than it must, 2000 x 2000 products leave room for its turns."""
    turns, stop = [0], threading.Event()

    def count():
        while not stop.is_set():
            turns[0] += 1
            time.sleep(0)  # gives the lock away, so that the product always gets it back
    a = torch.ones(2000, 2000)
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1000)  # nobody is made to give way: only what releases the lock lets the counter run
    thread = threading.Thread(target=count)
    try:
        thread.start()
        before = turns[0]
        a @ a
        during = turns[0] - before
    finally:
        stop.set()
        sys.setswitchinterval(interval)
        thread.join()
    assert during > 50, during


def test_no_grad_is_a_threads_own():
    inside, looked, seen = threading.Event(), threading.Event(), []

    def work():
        with torch.no_grad():
            inside.set()
            looked.wait(10)
            seen.append(torch.is_grad_enabled())
    thread = threading.Thread(target=work)
    thread.start()
    inside.wait(10)
    assert (torch.ones(1, requires_grad=True) * 2).requires_grad
    looked.set()
    thread.join()
    assert seen == [False]


def test_threads_accumulate_into_one_leaf():
    leaf, interval = torch.zeros(5, requires_grad=True), sys.getswitchinterval()

    def work():
        for _ in range(300):
            (leaf * 1.0).sum().backward()
    threads = [threading.Thread(target=work) for _ in range(4)]
    sys.setswitchinterval(1e-6)
    try:
        for t in threads:
            t.start()
        for t in threads:
            t.join()
    finally:
        sys.setswitchinterval(interval)
    assert leaf.grad.tolist() == [1200.0] * 5


def test_interrupts_at_any_moment_leave_nothing():
    def interrupt(*_):
        raise KeyboardInterrupt
    before, old, n = dict(torch._C._live_objects()), signal.signal(signal.SIGALRM, interrupt), 0
    try:
        for k in range(100):
            try:
                signal.setitimer(signal.ITIMER_REAL, 0.0005 + k * 1e-5)
                y = torch.ones(50, requires_grad=True)
                for _ in range(3000):
                    y = (y * 2).exp().log()
                y.sum().backward()
                time.sleep(1)
            except KeyboardInterrupt:
                n += 1
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, old)
    del y
    gc.collect()
    assert n == 100 and dict(torch._C._live_objects()) == before


def test_the_interpreter_ends_with_graphs_and_threads_alive():
    program = """
import atexit, sys, threading
import ember as torch
x = torch.ones(3, requires_grad=True)
y = (x * 2).exp()
y.register_hook(lambda g: g)
class Late:
    def __del__(self):
        y.sum().backward(retain_graph=True)
sys.late, y.late, y.me = Late(), Late(), y
def work():
    while True:
        (torch.ones(200, 200) @ torch.ones(200, 200)).exp()
threading.Thread(target=work, daemon=True).start()
atexit.register(lambda: y.sum().backward(retain_graph=True))
"""
    for _ in range(4):
        done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60)
        assert done.returncode == 0, (done.returncode, done.stderr)

"""Making allocations fail, one after another, and looking at what is left behind."""
import gc
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "ops"))
from subject import numpy_of, torch  # noqa: E402

C = torch._C
# What an exhausted allocator may raise. RuntimeError only with the allocator's own words.
WORDS = ("can't allocate memory", "out of memory", "MemoryError")


def live(expected=None):
    """Live core objects by kind; unless they are as expected at once, after Python's garbage is gone."""
    counts = dict(C._live_objects())
    if counts != expected:
        gc.collect()
        counts = dict(C._live_objects())
    return counts


def is_memory_error(error):
    return isinstance(error, (MemoryError, torch.OutOfMemoryError)) or any(word in str(error) for word in WORDS)


def with_failure(n, run):
    """run() while its n-th allocation fails. Returns the exception, or None when there were fewer than n."""
    C._fault_countdown(n)
    try:
        run()
    except Exception as error:
        C._fault_countdown(0)
        if not is_memory_error(error):
            raise AssertionError(f"failing allocation {n} gave {type(error).__name__}: {error}") from error
        error.__traceback__ = None  # its frames hold tensors
        return error
    finally:
        C._fault_countdown(0)
    return None


def fail_each(run, inputs, limit=2000):
    """Fails each allocation of run() once. After each: the process lives, inputs hold their values (running statistics
    too, which a call that succeeds moves), nothing is left.

    Returns how many allocations failed.
    """
    run()  # what is made once for ever is made now: node types, caches, interned names
    values = [numpy_of(t) for t in inputs]
    before = live()
    for n in range(1, limit):
        error = with_failure(n, run)
        for t, value in zip(inputs, values):
            t.grad = None
            now = numpy_of(t)
            assert error is None or ((now == value) | (now != now)).all(), f"failing allocation {n} changed an input"
        after = live(before)
        assert after == before, f"failing allocation {n} left behind {differences(before, after)}"
        if error is None:
            return n - 1
    raise AssertionError(f"more than {limit} allocations")


def differences(before, after):
    return {kind: after[kind] - before[kind] for kind in after if after[kind] != before[kind]}

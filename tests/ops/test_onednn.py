"""bfloat16 products that oneDNN computes: more shapes than are kept, threads that end, a forked child."""
import os
import threading

import numpy as np
import pytest
from subject import IS_EMBER, torch

pytestmark = pytest.mark.skipif(not IS_EMBER, reason="about Ember's own cache of primitives")


def check(m, n, k):
    a, b = (torch.tensor(np.random.RandomState(m + n + k).randn(*s)).to(torch.bfloat16) for s in ((m, k), (k, n)))
    want = a.double().numpy() @ b.double().numpy()
    for left, right in ((a, b), (a.t().contiguous().t(), b), (a, b.t().contiguous().t())):
        got = torch.mm(left, right).double().numpy()
        assert np.abs(got - want).max() <= 1e-2 * np.abs(want).max()


def test_more_shapes_than_are_kept():
    for _ in range(2):
        for i in range(24):
            check(48 + i, 64, 32 + i)


def test_threads_that_end():
    failed = []

    def work(i):
        try:
            for n in (64, 80, 64):
                check(64 + i, n, 64)
        except Exception as error:  # shown by the assertion below
            failed.append(error)

    for _ in range(3):
        threads = [threading.Thread(target=work, args=(i,)) for i in range(4)]
        for t in threads:
            t.start()
        for t in threads:
            t.join()
    assert not failed


def test_a_forked_child():
    check(64, 64, 64)
    child = os.fork()
    if child == 0:
        try:
            check(64, 64, 64)
            check(72, 64, 64)
        except BaseException:
            os._exit(1)
        os._exit(0)
    assert os.waitpid(child, 0)[1] == 0

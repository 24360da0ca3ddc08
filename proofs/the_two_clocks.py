"""Proof 4: one clock or two? Requesting work and waiting for it, timed apart.

    python proofs/the_two_clocks.py

On a device with a queue of its own, the line that asks returns before the work is done. On the CPU it does not, and this
proof says so: there is one clock. It measures whatever device Ember offers.
"""
import time

import ember


def device():
    """The device to ask, and what waits for it."""
    if ember.cuda.is_available():
        return ember.device("cuda"), ember.cuda.synchronize
    return ember.device("cpu"), lambda: None


def timed(reads, count, a, b, wait):
    """(seconds until the last request returned, seconds until the work was done), reading results as `reads` says."""
    wait()
    start = time.perf_counter()
    for _ in range(count):
        c = a @ b
        if reads == "every":
            c[0, 0].item()
    requested = time.perf_counter() - start
    if reads == "once":
        c[0, 0].item()
    wait()
    return requested, time.perf_counter() - start


def main():
    where, wait = device()
    a, b = (ember.randn(768, 768, device=where) for _ in range(2))
    for _ in range(3):
        a @ b
    print(f"50 products of 768 x 768 matrices on {where}:")
    for reads in ("never", "once", "every"):
        requested, done = timed(reads, 50, a, b, wait)
        print(f"  result read {reads:>5}: requested after {requested * 1e3:8.2f} ms, done after {done * 1e3:8.2f} ms, "
              f"Python was free for {(done - requested) / done:.0%} of it")
    requested, done = timed("never", 50, a, b, wait)
    if where.type == "cpu":
        print("There is one clock here: a line on the CPU returns when its work is done, so asking takes as long as "
              "the work, and reading a result costs nothing more.")
        assert (done - requested) / done < 0.05
    else:
        print("There are two clocks: Python asked and went on, the device worked through its queue.")


if __name__ == "__main__":
    main()

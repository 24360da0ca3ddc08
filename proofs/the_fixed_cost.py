"""Proof 3: the fixed cost of an operator, at twelve sizes.

    python proofs/the_fixed_cost.py [--plot FILE]

The same `a + b`, from one element to four million in powers of four. Small sums cost what calling costs; large ones what
moving bytes costs. Beside them: an empty call of Python's own, the floor that no library can go under.
"""
import argparse
import timeit

import ember


def microseconds(statement, names, rounds=5, least=0.02):
    """The best of some rounds, each long enough for the clock."""
    timer = timeit.Timer(statement, globals=names)
    number, spent = 1, timer.timeit(1)
    while spent < least:
        number = max(number + 1, int(number * min(10, 1.2 * least / max(spent, 1e-9))))
        spent = timer.timeit(number)
    return min(timer.timeit(number) / number for _ in range(rounds)) * 1e6


def draw(path, sizes, times, floor):
    try:
        from matplotlib.figure import Figure
    except ImportError:
        print("no picture: it needs matplotlib (pip install -r requirements-demo.txt)")
        return
    figure = Figure(figsize=(7, 4), layout="constrained")
    axes = figure.subplots()
    axes.loglog(sizes, times, "o-", label="a + b")
    axes.axhline(floor, color="gray", linestyle="--", label="Python's own float + float")
    axes.set(xlabel="elements", ylabel="microseconds a call", title="the fixed cost, and why size hides it")
    axes.legend()
    figure.savefig(path, dpi=110)
    print("drawn:", path)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--plot", metavar="FILE", help="draw the curve into this file (PNG)")
    options = parser.parse_args()
    floor = microseconds("a + b", {"a": 1.5, "b": 2.5})
    print(f"{'float + float':>22} : {floor:9.4f} us")
    sizes, times = [4 ** k for k in range(12)], []
    for n in sizes:
        times.append(microseconds("a + b", {"a": ember.ones(n), "b": ember.ones(n)}))
        print(f"{f'add, {n:,} elements':>22} : {times[-1]:9.4f} us   {times[-1] * 1e3 / n:10.4f} ns an element")
    print(f"a second holds {1e6 / times[0]:,.0f} of the smallest; from one element to {sizes[-1]:,} the time grew "
          f"{times[-1] / times[0]:,.0f} times, the work {sizes[-1]:,} times")
    recorded = {"a": ember.ones(1, requires_grad=True), "b": ember.ones(1, requires_grad=True)}
    print(f"{'recorded by autograd':>22} : {microseconds('a + b', recorded):9.4f} us")
    print(f"{'and walked backward':>22} : {microseconds('(a + b).backward()', recorded):9.4f} us")
    if options.plot:
        draw(options.plot, sizes, times, floor)


if __name__ == "__main__":
    main()

"""Random programs of views, in-place operators and arithmetic, run by Ember and by a plain interpreter over numpy.

    make fuzz ARGS="--seconds 60 --seed 7"

The interpreter keeps one flat numpy array a storage and, for every tensor, the list of its elements' places in it, so
that views and what writes through them need no library. Compared after every step: values of every tensor alive, and
which tensors share memory. At the end gradients, against differences in double precision. A failure prints the program.
"""
import argparse
import os
import random
import sys
import time
import traceback

import numpy as np

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "ops"))
from subject import NAME, numpy_of, torch  # noqa: E402


class Plain:
    """A tensor of the interpreter: `places` are positions in `store`, in the tensor's shape."""

    def __init__(self, store, places):
        self.store, self.places = store, places

    @classmethod
    def of(cls, values):
        values = np.array(values, np.float64)
        return cls(values.reshape(-1).copy(), np.arange(values.size).reshape(values.shape))

    def read(self):
        return self.store[self.places]

    def write(self, values):
        self.store[self.places] = values

    def view(self, function):
        return Plain(self.store, function(self.places))


# ---- steps: each makes one line of program text, which both sides evaluate. What autograd saves is a clone of its own,
# so that no later write may make a backward refuse.

def pick_dim(rng, shape):
    return rng.randrange(-len(shape), len(shape))


def view_step(rng, name, shape):
    """A view expression on a tensor of this shape, and what it does to the places."""
    choices = ["unsqueeze"]
    if shape:
        choices += ["select", "slice", "transpose", "flatten", "permute", "expand", "diagonal"]
    kind = rng.choice(choices)
    if kind == "unsqueeze":
        d = rng.randrange(0, len(shape) + 1)
        return f"{name}.unsqueeze({d})", lambda p: np.expand_dims(p, d)
    if kind == "transpose":
        a, b = pick_dim(rng, shape), pick_dim(rng, shape)
        return f"{name}.transpose({a}, {b})", lambda p: np.swapaxes(p, a, b)
    if kind == "permute":
        order = list(range(len(shape)))
        rng.shuffle(order)
        return f"{name}.permute({order})", lambda p: p.transpose(order)
    if kind == "expand" or 0 in shape:
        return f"{name}.expand(2, *{list(shape)})", lambda p: np.broadcast_to(p, (2, *p.shape))
    if kind == "diagonal" and len(shape) >= 2:
        return f"{name}.diagonal()", lambda p: np.diagonal(p)
    d = rng.randrange(len(shape))
    if kind == "slice":
        lo, step = rng.randrange(shape[d]), rng.choice([1, 1, 2])
        cut = (slice(None),) * d + (slice(lo, None, step),)
        return f"{name}[{', '.join([':'] * d + [f'{lo}::{step}'])}]", lambda p: p[cut]
    i = rng.randrange(-shape[d], shape[d])
    return f"{name}.select({d}, {i})", lambda p: np.take(p, i, d)


BINARY = {"+": np.add, "-": np.subtract, "*": np.multiply}
UNARY = {"sin": np.sin, "tanh": np.tanh, "neg": np.negative, "sigmoid": lambda x: 1 / (1 + np.exp(-x)),
         "clone": np.copy, "abs": np.abs}
INPLACE = {"add_": np.add, "mul_": np.multiply, "sub_": np.subtract}
INPLACE_UNARY = {"sin_": np.sin, "zero_": np.zeros_like, "neg_": np.negative}


def broadcastable(a, b):
    return all(x == y or x == 1 or y == 1 for x, y in zip(a[::-1], b[::-1]))


def fits(source, target):
    """source broadcasts to exactly target."""
    return broadcastable(source, target) and np.broadcast_shapes(source, target) == tuple(target)


class Program:
    """Lines of text, and both sides' tensors by name."""

    def __init__(self, seed, leaf_values=None, only=None):
        self.rng, self.lines, self.real, self.plain = random.Random(seed), [], {}, {}
        self.leaf_values, self.leaves, self.only = leaf_values, {}, only

    def start(self, grad):
        for i in range(2):
            shape = [self.rng.randrange(1, 4) for _ in range(self.rng.randrange(0, 4))]
            values = [self.rng.uniform(-2, 2) for _ in range(int(np.prod(shape)))]
            name = f"x{i}"
            if self.leaf_values is not None:
                values = self.leaf_values[name]
            values = np.array(values, np.float64).reshape(shape)
            self.leaves[name] = values
            self.lines.append(
                f"{name} = torch.tensor({values.tolist()}, dtype=torch.float64){'.requires_grad_()' if grad else ''}")
            self.lines.append(f"v{i} = {name} * 1")
            if self.only != "plain":
                for line in self.lines[-2:]:
                    exec(line, {"torch": torch}, self.real)
            self.plain[f"v{i}"] = Plain.of(values)

    def evaluate(self, name, line):
        self.lines.append(line)
        if self.only != "plain":
            exec(line, {"torch": torch}, self.real)

    def step(self, number):
        rng, names = self.rng, list(self.plain)
        a = rng.choice(names)
        x, shape = self.plain[a], self.plain[a].places.shape
        new, roll = f"v{number}", rng.random()
        if roll < 0.35:
            text, places = view_step(rng, a, shape)
            self.plain[new] = x.view(places)
            self.evaluate(new, f"{new} = {text}")
        elif roll < 0.55:
            partner = rng.choice([n for n in names if broadcastable(shape, self.plain[n].places.shape)])
            op = rng.choice(sorted(BINARY))
            self.plain[new] = Plain.of(BINARY[op](x.read(), self.plain[partner].read()))
            self.evaluate(new, f"{new} = {a}.clone() {op} {partner}.clone()")
        elif roll < 0.68:
            op = rng.choice(sorted(UNARY))
            self.plain[new] = Plain.of(UNARY[op](x.read()))
            self.evaluate(new, f"{new} = {a}.clone().{op}() * 1")
        elif roll < 0.74 and shape:
            d, keep = pick_dim(rng, shape), rng.random() < 0.5
            self.plain[new] = Plain.of(x.read().sum(axis=d, keepdims=keep))
            self.evaluate(new, f"{new} = {a}.sum({d}, {keep})")
        else:
            self.write(a, names)

    def write(self, a, names):
        """An in-place operator on `a`, if its elements are all distinct and no operand overlaps it in part."""
        rng, x = self.rng, self.plain[a]
        if x.places.size != len(np.unique(x.places)):
            return
        roll = rng.random()
        if roll < 0.4:
            number, op = rng.choice([2.0, 0.5, -1.0]), rng.choice(sorted(INPLACE))
            x.write(INPLACE[op](x.read(), number))
            self.evaluate(a, f"{a}.{op}({number})")
        elif roll < 0.6:
            op = rng.choice(sorted(INPLACE_UNARY))
            x.write(INPLACE_UNARY[op](x.read()))
            self.evaluate(a, f"{a}.{op}()")
        else:
            apart = [n for n in names if self.plain[n].store is not x.store and
                     fits(self.plain[n].places.shape, x.places.shape)]
            if not apart:
                return
            b, op = rng.choice(apart), rng.choice(["copy_", *sorted(INPLACE)])
            other = self.plain[b].read()
            x.write(np.broadcast_to(other, x.places.shape) if op == "copy_" else INPLACE[op](x.read(), other))
            self.evaluate(a, f"{a}.{op}({b}.clone())")

    def compare(self):
        for name, plain in self.plain.items():
            real = self.real[name]
            want, got = plain.read(), numpy_of(real)
            assert got.shape == want.shape, f"{name}: shape {got.shape}, expected {want.shape}"
            assert np.allclose(got, want, rtol=1e-9, atol=1e-9, equal_nan=True), f"{name}:\n{got}\nexpected\n{want}"
        for a, x in self.plain.items():
            for b, y in self.plain.items():
                if a < b and x.places.size and y.places.size:
                    shared = self.real[a].untyped_storage().data_ptr() == self.real[b].untyped_storage().data_ptr()
                    assert shared == (x.store is y.store), f"{a} and {b} " + \
                                      ("share" if shared else "do not share") + " memory"

    def total(self):
        """The loss of the plain side: a weighted sum of everything alive."""
        return sum(weight * float(np.sum(self.plain[name].read())) for weight, name in self.weighted())

    def weighted(self):
        return [(1.0 + i / 7, name) for i, name in enumerate(sorted(self.plain))]


def play(seed, steps, grad, leaf_values=None, only=None):
    program = Program(seed, leaf_values, only)
    program.start(grad)
    for number in range(2, steps + 2):
        program.step(number)
        if only is None:
            program.compare()
    return program


def check_gradients(program, seed, steps):
    """d(weighted sum of everything)/d(leaf element), against central differences of the interpreter."""
    loss = sum((weight * program.real[name].sum()
               for weight, name in program.weighted()), torch.zeros((), dtype=torch.float64))
    program.lines.append("loss = the weighted sum of all; loss.backward()")
    loss.backward()
    for name, values in program.leaves.items():
        grad = numpy_of(program.real[name].grad) if program.real[name].grad is not None else np.zeros(values.shape)
        for at in np.ndindex(values.shape):
            totals = []
            for move in (1e-5, -1e-5):
                moved = {n: v.copy() for n, v in program.leaves.items()}
                moved[name][at] += move
                totals.append(play(seed, steps, False, moved, "plain").total())
            slope = (totals[0] - totals[1]) / 2e-5
            assert np.isclose(grad[at], slope, rtol=1e-4,
                              atol=1e-4), f"d/d{name}{list(at)}: {grad[at]}, by differences {slope}"


def one(seed, steps):
    """One program; returns None or what went wrong, with the program."""
    grad = random.Random(seed).random() < 0.6
    program = Program(seed)
    try:
        program.start(grad)
        for number in range(2, steps + 2):
            program.step(number)
            program.compare()
        if grad:
            check_gradients(program, seed, steps)
    except Exception:
        return f"seed {seed}, {steps} steps\n{traceback.format_exc(limit=-2)}\nimport {NAME} as torch\n" + "\n".join(
            program.lines)
    return None


def shortest(seed, steps):
    """The fewest steps of this seed that still fail."""
    for fewer in range(1, steps):
        failure = one(seed, fewer)
        if failure is not None:
            return failure
    return one(seed, steps)


def run(seconds, seed, steps=14):
    """Programs until the time is over; returns (how many, the first failure or None)."""
    end, count = time.monotonic() + seconds, 0
    while time.monotonic() < end:
        failure = one(seed + count, steps)
        count += 1
        if failure is not None:
            return count, shortest(seed + count - 1, steps) or failure
    return count, None


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seconds", type=float, default=float("inf"), help="how long (default: until stopped)")
    parser.add_argument("--seed", type=int, default=None, help="of the first program; the next have seed + 1, ...")
    parser.add_argument("--steps", type=int, default=14, help="steps a program")
    parser.add_argument("--operators", nargs="*", metavar="NAME", default=None,
                        help="hostile calls of every operator instead (operators.py), or of those with NAME in their names")
    parser.add_argument("--files", action="store_true", help="damaged files through the readers instead (files.py)")
    args = parser.parse_args()
    seed = args.seed if args.seed is not None else int(time.time())
    print(f"first seed {seed}", flush=True)
    try:
        if args.operators is not None:
            import operators
            count, findings = operators.run(args.seconds, seed, args.operators)
            print("\n".join(findings) or f"{count} calls, each refused in words or done")
            return 1 if findings else 0
        if args.files:
            import files
            count, failure = files.run(args.seconds, seed)
            print(failure or f"{count} damaged files, each refused in words or read")
            return 1 if failure else 0
        count, failure = run(args.seconds, seed, args.steps)
    except KeyboardInterrupt:
        return 0
    print(failure or f"{count} programs, no difference")
    return 1 if failure else 0


if __name__ == "__main__":
    sys.exit(main())

"""Hostile calls of every operator: arguments made from its schema alone, and samples of the table with pieces changed.

    make fuzz ARGS="--operators --seconds 60 --seed 7"       make fuzz-asan ARGS="--seconds 3600": under the sanitizers

A call may refuse: with an exception that a user of PyTorch expects, in words. It may not crash, hang, take memory that its
arguments do not ask for, hand out a tensor that reaches outside of its storage, or leave objects behind. What it accepts is
run backward too. Each call runs in a child, whose death is a finding like any other; a finding is reported with the seed
that repeats it.
"""
import gc
import os
import random
import re
import resource
import subprocess
import sys
import time
import traceback
import warnings

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "ops"))
from subject import DTYPES, flat, torch  # noqa: E402

C = torch._C
HUGE = [-1, -2, 5, 7, 63, 64, 65, 1000, 2**31 - 1, 2**31, -2**31, 2**32, 2**62, 2**63 - 1, -2**63, -2**63 + 1]
REALS = [0.0, -0.0, 0.5, 1.0, -1.5, 2.0, 1e-45, 1e38, 1e308, -1e308, float("inf"), float("-inf"), float("nan")]
WORDS = ["", "mean", "none", "sum", "linear", "bilinear", "nearest", "reflect", "constant", "circular", "replicate", "floor",
         "trunc", "forward", "backward", "ortho", "tanh", "L", "U", "N", "C", "V", "reduced", "complete", "r", "amax", "amin",
         "prod", "max", "ij", "xy", "fro", "nuc", "ij,jk->ik", "i,i", "...i->...", "ii->i", "a" * 300, "\0", "é", "%s%n", "->", ",,",
         "i->ii", "lower", "higher", "midpoint", "same", "valid", "gelsd", "reverse"]
EXPECTED = (RuntimeError, IndexError, ValueError, TypeError, NotImplementedError, MemoryError, AssertionError, OverflowError)
# Their work is as long as a number in their arguments says, or what they give is not memory of theirs.
LEFT_OUT = {"aten::from_file"}
SECONDS = 30  # without an end of a call: a finding
ALLOWED_MIB = 256


class Call:
    """Random arguments for one operator; `rng` alone decides."""

    def __init__(self, rng):
        self.rng, self.tensors = rng, []
        self.base = [rng.choice([0, 1, 1, 2, 2, 3, 3, 4, 5, 8]) for _ in range(rng.choice([0, 1, 1, 2, 2, 2, 3, 3, 4, 4, 5, 6]))]
        self.dtype = rng.choice(["float32"] * 6 + ["float64"] * 4 + DTYPES)

    def shape(self):
        rng, shape = self.rng, list(self.base)
        kind = rng.randrange(12)
        if kind == 0:
            return [rng.choice([0, 1, 2, 3, 7, 17]) for _ in range(rng.randrange(6))]
        if kind == 1 and shape:
            shape[rng.randrange(len(shape))] = rng.choice([0, 1, 1, 2, 6])
        elif kind == 2:
            shape = shape[rng.randrange(len(shape) + 1):]
        elif kind == 3 and shape:
            del shape[rng.randrange(len(shape))]
        elif kind == 4:
            shape.insert(rng.randrange(len(shape) + 1), rng.choice([0, 1, 2, 3]))
        elif kind == 5:
            rng.shuffle(shape)
        return shape

    def values(self, shape, dtype):
        rng, wide = self.rng, rng_kind(dtype)
        generator = torch.Generator()
        generator.manual_seed(rng.randrange(2**32))
        if wide == "int":
            low, high = rng.choice([(0, 2), (0, 4), (-3, 4), (0, 100)])
            made = torch.randint(max(low, 0) if dtype == "uint8" else low, high, shape, generator=generator)
            made = made.to(getattr(torch, dtype))
            extreme = rng.choice(HUGE)
        else:
            made = torch.randn(shape, generator=generator).to(getattr(torch, dtype))
            extreme = rng.choice(REALS)
        if made.numel() and rng.random() < 0.2 and dtype != "bool":
            flat_ = made.reshape(-1)
            place = rng.randrange(made.numel())
            try:
                flat_[place] = extreme
            except (RuntimeError, OverflowError):
                flat_[place] = 0
        return made

    def layout(self, made):
        rng, kind = self.rng, self.rng.randrange(14)
        if kind == 0 and made.dim() >= 2:
            return made.transpose(rng.randrange(made.dim()), rng.randrange(made.dim()))
        if kind == 1 and made.dim():
            return made[::2]
        if kind == 2:
            return made.unsqueeze(0).expand(rng.choice([0, 1, 3]), *made.shape)
        if kind == 3 and made.numel() >= 4:
            size = rng.randrange(1, 4)
            return made.contiguous().as_strided((size, 2), (rng.choice([0, 1]), rng.choice([0, 1])), rng.randrange(0, 1))
        if kind == 4 and made.dim() == 4:
            return made.contiguous(memory_format=torch.channels_last)
        if kind == 5 and made.dim():
            return made.narrow(-1, made.shape[-1] // 2, made.shape[-1] - made.shape[-1] // 2)
        return made

    def tensor(self):
        rng = self.rng
        if self.tensors and rng.random() < 0.12:  # twice the same, or a part of it
            made = rng.choice(self.tensors)
            return made if rng.random() < 0.5 or not made.dim() else made[rng.randrange(2):]
        dtype = self.dtype if rng.random() < 0.8 else rng.choice(DTYPES + ["int64"] * 8)
        made = self.layout(self.values(self.shape(), dtype))
        if made.is_floating_point() or made.is_complex():
            if rng.random() < 0.4:
                made = made.detach().requires_grad_(True)
                made = made if rng.random() < 0.3 else made.view_as(made)  # a leaf, or not one
        if rng.random() < 0.02:
            made = made.to("meta")
        self.tensors.append(made)
        return made

    def whole(self):
        rng = self.rng
        if rng.random() < 0.12:
            return rng.choice(HUGE)
        return rng.choice([0, 0, 1, 1, 1, 2, 2, 3, 4, -1, -1, -2, len(self.base), *self.base])

    def number(self):
        rng = self.rng
        return rng.choice([self.whole, lambda: rng.choice(REALS), lambda: True, lambda: complex(rng.choice(REALS), 1)])()

    def of_type(self, kind):
        """A value for an argument of this schema type."""
        rng = self.rng
        if kind.endswith("?"):
            return None if rng.random() < 0.5 else self.of_type(kind[:-1])
        listed = re.fullmatch(r"(.*)\[(\d*)\]", kind)
        if listed:
            length = int(listed[2]) if listed[2] and rng.random() < 0.8 else rng.randrange(6)
            if listed[1] in ("SymInt", "int") and rng.random() < 0.2:
                return self.shape()
            return [self.of_type(listed[1]) for _ in range(length)]
        if kind.startswith("Tensor"):
            return self.tensor()
        return {"SymInt": self.whole, "int": self.whole, "Scalar": self.number, "bool": lambda: rng.random() < 0.5,
                "float": lambda: float(rng.choice(REALS)), "str": lambda: rng.choice(WORDS),
                "ScalarType": lambda: getattr(torch, rng.choice(DTYPES)), "Layout": lambda: torch.strided,
                "Device": lambda: rng.choice(["cpu", "cpu", "cpu", "meta", "cuda"]),
                "Generator": lambda: torch.Generator().manual_seed(3),
                "MemoryFormat": lambda: rng.choice([torch.contiguous_format, torch.preserve_format, torch.channels_last]),
                }[kind]()

    def from_schema(self, arguments):
        args, kwargs = [], {}
        skipping = self.rng.random() < 0.5  # defaults of the rest
        for kind, name, default, keyword in arguments:
            if default and skipping and self.rng.random() < 0.7:
                continue
            if keyword or kwargs or default and skipping:
                kwargs[name] = self.of_type(kind)
            else:
                args.append(self.of_type(kind))
        return args, kwargs

    def change_tensor(self, t):
        rng, kind = self.rng, self.rng.randrange(7)
        if kind == 0:
            return self.tensor()
        if kind == 1:
            return t.to(getattr(torch, rng.choice(DTYPES)))
        if kind == 2 and t.dim():
            return t.narrow(rng.randrange(t.dim()), 0, 0)
        if kind == 3:
            return t.unsqueeze(rng.randrange(t.dim() + 1))
        if kind == 4 and t.dim():
            return t.select(rng.randrange(t.dim()), 0) if t.numel() else t.sum()
        if kind == 5 and t.dim():
            return torch.cat([t, t], rng.randrange(t.dim()))
        return self.layout(t)

    def change(self, args, kwargs, arguments):
        """One or two arguments of a good call made strange."""
        rng, args, kwargs = self.rng, list(args), dict(kwargs)
        for _ in range(rng.choice([1, 1, 1, 2, 2, 3])):
            if not arguments:
                break
            number = rng.randrange(len(arguments))
            kind, name, _, keyword = arguments[number]
            if number < len(args):
                old = args[number]
                args[number] = self.change_tensor(old) if isinstance(old, torch.Tensor) and rng.random() < 0.8 else self.of_type(kind)
            elif len(args) == number and not keyword and not kwargs:
                args.append(self.of_type(kind))
            else:
                old = kwargs.get(name)
                kwargs[name] = self.change_tensor(old) if isinstance(old, torch.Tensor) and rng.random() < 0.8 else self.of_type(kind)
        return args, kwargs


def rng_kind(dtype):
    return "int" if "int" in dtype or dtype == "bool" else "real"


def parse(schema):
    """[(type, name, has a default, keyword only)] of a schema string."""
    inner, found, keyword = schema[schema.index("(") + 1:schema.rindex(") ->")], [], False
    inner = re.sub(r"\([a-z](!| -> \*|)\)", "", inner)  # alias marks
    for part in re.split(r", (?![^\[]*\])", inner):
        if part == "*":
            keyword = True
        elif part:
            kind, _, name = part.partition(" ")
            found.append((kind, name.partition("=")[0], "=" in name, keyword))
    return found


def operators():
    """[(full name, callable, arguments, entry of the table or None)]"""
    from sampling import TABLE
    found = []
    for full in sorted(C._dispatch_get_all_op_names()):
        namespace, name = full.split("::")
        base, _, overload = name.partition(".")
        function = C._get_operation(namespace, base, overload or "default")
        if function is not None and full not in LEFT_OUT:
            found.append((full, function, parse(str(function._schema)), name if name in TABLE else None))
    return found


def make(rng, operation):
    """(args, kwargs) of one call."""
    from sampling import dtypes_of, samples, tensors
    _, _, arguments, entry = operation
    call = Call(rng)
    if entry is not None and rng.random() < 0.75:
        try:
            dtypes = dtypes_of(entry)
        except KeyError:
            dtypes = []
        if dtypes:
            dtype = "float32" if "float32" in dtypes and rng.random() < 0.5 else rng.choice(dtypes)
            found = samples(entry, dtype)
            grad = rng.random() < 0.6 and dtype in ("float32", "float64", "complex64", "complex128", "bfloat16")
            args, kwargs = tensors(rng.choice(found), dtype)
            if grad:
                want = lambda t: t.requires_grad_() if t.is_floating_point() or t.is_complex() else t  # noqa: E731
                args, kwargs = (map_tensors(part, want) for part in (args, kwargs))
            args, kwargs = call.change(args, kwargs, arguments)
            return args, kwargs
    return call.from_schema(arguments)


def map_tensors(value, change):
    if isinstance(value, torch.Tensor):
        return change(value)
    if isinstance(value, (list, tuple)):
        return type(value)(map_tensors(v, change) for v in value)
    if isinstance(value, dict):
        return {k: map_tensors(v, change) for k, v in value.items()}
    return value


def check_bounds(t):
    """A tensor stays inside of its storage, and its bytes can be read."""
    if t.is_meta or t.numel() == 0:
        return
    last = t.storage_offset() + sum((size - 1) * stride for size, stride in zip(t.shape, t.stride()))
    room = t.untyped_storage().nbytes() // t.element_size()
    assert t.storage_offset() >= 0 and last < room, f"reaches element {last} of a storage of {room}: {t.shape} {t.stride()}"
    if t.numel() < 1 << 20:
        t.detach().clone()


def perform(operation, args, kwargs):
    """The call, and its backward. Raises what is not expected of it."""
    try:
        results = [r for r in flat(operation[1](*args, **kwargs)) if isinstance(r, torch.Tensor)]
        for r in results:
            check_bounds(r)
        wanted = [r for r in results if r.requires_grad and r.numel() < 1 << 16 and not r.is_meta]
        if wanted:
            leaves = [t for t in flat((args, list(kwargs.values()))) if isinstance(t, torch.Tensor) and t.requires_grad]
            for grad in torch.autograd.grad(wanted, leaves, [torch.ones_like(r) for r in wanted], allow_unused=True):
                if grad is not None:
                    check_bounds(grad)
    except AssertionError as error:
        if "reaches element" in str(error):
            raise
        expect(error)
    except EXPECTED as error:
        expect(error)


def expect(error):
    text = str(error)
    if len(text) < 8 and not isinstance(error, MemoryError):
        raise SystemError(f"{type(error).__name__} without words: {text!r}") from error
    if "INTERNAL ASSERT" in text or "not reached" in text:
        raise SystemError(text) from error


def live():
    gc.collect()
    return {kind: count for kind, count in C._live_objects().items() if kind in ("tensors", "storages", "nodes")}


def one(operation, seed):
    """One call of this seed; None or words of a finding."""
    try:
        args, kwargs = make(random.Random(seed), operation)
    except EXPECTED:
        return None  # the change that was drawn does not fit this sample
    try:
        perform(operation, args, kwargs)
    except Exception:
        return traceback.format_exc(limit=-5)
    return None


def text_of(value):
    if isinstance(value, torch.Tensor):
        grad = ", requires_grad" if value.requires_grad else ""
        return f"<{str(value.dtype)[6:]} {list(value.shape)} strides {list(value.stride())}{grad}{'' if not value.is_meta else ' meta'}>"
    if isinstance(value, (list, tuple)):
        return "[" + ", ".join(map(text_of, value)) + "]"
    return repr(value)


def describe(operation, seed):
    args, kwargs = make(random.Random(seed), operation)
    parts = [text_of(a) for a in args] + [f"{k}={text_of(v)}" for k, v in kwargs.items()]
    return f"{operation[0]}({', '.join(parts)})"


def leaks(operation, seed):
    """Words, when the same call leaves more objects behind each time."""
    counts = []
    for _ in range(4):
        one(operation, seed)
        counts.append(live())
    if all(counts[1][kind] < counts[2][kind] < counts[3][kind] for kind in counts[0] if counts[3][kind] != counts[1][kind]) and \
            counts[3] != counts[1]:
        return f"objects left behind: {counts[1]} -> {counts[2]} -> {counts[3]}"
    return None


def child(first, count, place, names):
    """Calls number first, first + 1, ... ; the number of the one that runs stands in the file `place`."""
    warnings.simplefilter("ignore")
    if "asan" not in os.environ.get("LD_PRELOAD", ""):
        resource.setrlimit(resource.RLIMIT_AS, (6 << 30, 6 << 30))
    torch.set_num_threads(1)
    found = [operation for operation in operators() if not names or any(name in operation[0] for name in names)]
    progress = os.open(place, os.O_WRONLY | os.O_CREAT)
    before = None
    for seed in range(first, first + count):
        os.pwrite(progress, f"{seed:20}".encode(), 0)
        operation = found[seed % len(found)]
        failure = one(operation, seed)
        if failure is None and seed % 16 == 0:
            now = live()
            if before is not None and now != before:
                failure = next((f"{found[s % len(found)][0]} {text}" for s in range(seed - 15, seed + 1)
                                for text in [leaks(found[s % len(found)], s)] if text), None)
                now = live()
            before = now
        if failure is not None:
            print(f"finding {seed}: {describe(operation, seed)}\n{failure}", flush=True)
    os.pwrite(progress, f"{'done':20}".encode(), 0)


def environment():
    env = dict(os.environ, PYTHONFAULTHANDLER="1")
    if "asan" in env.get("LD_PRELOAD", ""):
        del env["PYTHONFAULTHANDLER"]  # it would take the signal before the sanitizer sees it
        env["ASAN_OPTIONS"] = (f"{env.get('ASAN_OPTIONS', '')}:max_allocation_size_mb={ALLOWED_MIB}:allocator_may_return_null=1"
                               ":detect_leaks=0")
        env["UBSAN_OPTIONS"] = "halt_on_error=1:print_stacktrace=1"
    return env


def watch(process, place, end):
    """Waits for a child; returns "ended", "hung" or "time"."""
    seen, since = None, time.monotonic()
    while process.poll() is None:
        time.sleep(0.05)
        try:
            with open(place, "rb") as file:
                now = file.read()
        except FileNotFoundError:
            now = b""
        if now != seen:
            seen, since = now, time.monotonic()
        if time.monotonic() > end or time.monotonic() - since > SECONDS:
            hung = time.monotonic() - since > SECONDS
            process.kill()
            process.wait()
            return "hung" if hung else "time"
    return "ended"


def run(seconds, seed, names=(), stop=True, batch=20_000):
    """Calls until the time is over; returns (how many, words of findings)."""
    import tempfile
    end, first, findings = time.monotonic() + seconds, seed, []
    with tempfile.TemporaryDirectory() as folder:
        place, log = os.path.join(folder, "place"), os.path.join(folder, "log")
        while time.monotonic() < end and not (stop and findings):
            with open(log, "wb") as out:
                process = subprocess.Popen([sys.executable, os.path.abspath(__file__), str(first), str(batch), place, *names],
                                           stdout=out, stderr=subprocess.STDOUT, env=environment())
                how = watch(process, place, end)
            with open(place, encoding="ascii") as file:
                reached = file.read().strip()
            with open(log, encoding="utf-8", errors="replace") as file:
                told = file.read()
            findings += [part for part in re.split(r"^(?=finding \d+: )", told, flags=re.M) if part.startswith("finding")]
            if how == "ended" and reached == "done":
                first += batch
                continue
            if how != "time":
                words = "no end" if how == "hung" else f"the process died with status {process.returncode}"
                findings.append(f"seed {reached}: {words}\n{told[-6000:]}")
            first = int(reached) + 1
            if not stop and findings:
                print(findings[-1], flush=True)
    return first - seed, findings


if __name__ == "__main__":
    if sys.argv[1] == "describe":
        every = [o for o in operators() if not sys.argv[3:] or any(name in o[0] for name in sys.argv[3:])]
        print(describe(every[int(sys.argv[2]) % len(every)], int(sys.argv[2])))
    else:
        child(int(sys.argv[1]), int(sys.argv[2]), sys.argv[3], sys.argv[4:])

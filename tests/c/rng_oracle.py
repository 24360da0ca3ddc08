"""Compares Ember's random streams with a live torch. Run by test_rng.py under the oracle's interpreter:
    python rng_oracle.py LIBRARY [--large]
LIBRARY is a shared object with src/core/rng.c and rng_fill.c. Each case is run in both from the same seed; values must
be equal bit for bit unless the case says how many ulp it may differ, and the generators' saved states must be equal
afterwards (so the position in the stream and the cached normal are). Prints one line a failure and a count."""
import ctypes
import sys

import numpy as np
import torch

CODES = {torch.uint8: 0, torch.int8: 1, torch.int16: 2, torch.int32: 3, torch.int64: 4, torch.float16: 5,
         torch.float32: 6, torch.float64: 7, torch.bool: 11, torch.bfloat16: 15, torch.uint16: 27, torch.uint32: 28,
         torch.uint64: 29}
FLOATS = [torch.float32, torch.float64, torch.float16, torch.bfloat16]
INTS = [torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64]
SEEDS = [0, 1, 42, 2**40 + 7, -1]
SIZES = [1, 2, 15, 16, 17, 31, 255, 256, 257, 1000, 5003]

lib = ctypes.CDLL(sys.argv[1])
lib.em_generator_new.restype = ctypes.c_void_p
lib.em_generator_clone.restype = ctypes.c_void_p
lib.em_default_generator.restype = ctypes.c_void_p
lib.em_rng_initial_seed.restype = ctypes.c_uint64
gen = ctypes.c_void_p(lib.em_generator_new())
i64, u64, f64 = ctypes.c_int64, ctypes.c_uint64, ctypes.c_double
passed = failed = 0


def ember_state():
    out = ctypes.create_string_buffer(5056)
    lib.em_rng_get_state(gen, out)
    return out.raw


def torch_state():
    return torch.get_rng_state().numpy().tobytes()


def check(name, ok):
    global passed, failed
    if ok:
        passed += 1
    else:
        failed += 1
        print('FAILED', name)


def bits(t):
    if t.element_size() == 1:
        return t.view(torch.uint8).to(torch.int64)
    return t.view({2: torch.int16, 4: torch.int32, 8: torch.int64}[t.element_size()]).to(torch.int64)


def compare(name, dtype, n, theirs, fill, *params, step=1, whole=False, ulp=0, seed=42):
    """theirs(tensor) fills a torch tensor of n elements, `step` apart; fill names Ember's function."""
    a = torch.zeros(n * step, dtype=dtype)
    b = torch.zeros(n * step, dtype=dtype)
    torch.manual_seed(seed)
    lib.em_rng_seed(gen, u64(seed % 2**64))
    a[::step] = theirs(a[::step]) if step == 1 else theirs(a[::step]).clone()
    args = [gen, CODES[dtype], ctypes.c_void_p(b.data_ptr())]
    args += [i64(n)] if whole else [i64(step * b.element_size()), i64(n)]
    getattr(lib, 'em_rng_fill_' + fill)(*args, *params)
    name = f'{name} {dtype} n={n} step={step} seed={seed}'
    off = (bits(a) - bits(b)).abs()
    worst = int(off.max()) if n else 0
    check(f'{name}: values, off by {worst} units at {int(off.argmax()) if n else 0}', worst <= ulp)
    check(f'{name}: state', torch_state() == ember_state())


def floats():
    for dtype in FLOATS:
        for seed in SEEDS:
            for n in SIZES:
                for step in (1, 3):
                    for lo, hi in ((0, 1), (-1.7, 2.3), (0.1, 0.7), (2, 2)):
                        compare('uniform', dtype, n, lambda t: t.uniform_(lo, hi), 'uniform', f64(lo), f64(hi),
                                step=step, seed=seed)
                for mean, std in ((0, 1), (0.3, 1.7), (1, 0)):
                    compare('normal', dtype, n, lambda t: t.normal_(mean, std), 'normal', f64(mean), f64(std),
                            whole=True, seed=seed)
                    compare('normal', dtype, n, lambda t: t.normal_(mean, std), 'normal_serial', f64(mean), f64(std),
                            step=2, seed=seed)
        for n in (1, 17, 3000):
            for step in (1, 2):
                compare('exponential', dtype, n, lambda t: t.exponential_(1.7), 'exponential', f64(1.7), step=step)
                compare('cauchy', dtype, n, lambda t: t.cauchy_(0.3, 1.7), 'cauchy', f64(0.3), f64(1.7), step=step)
                compare('log_normal', dtype, n, lambda t: t.log_normal_(0.3, 1.2), 'log_normal', f64(0.3), f64(1.2),
                        step=step)


def integers():
    for dtype in FLOATS + INTS + [torch.bool, torch.uint16, torch.uint32, torch.uint64]:
        for n in (1, 17, 3000):
            for step in (1, 2):
                for p in (0.0, 0.3, 1.0, 1e-9, 0.5):
                    if dtype in (torch.uint16, torch.uint32, torch.uint64):
                        break
                    compare(f'bernoulli {p}', dtype, n, lambda t: t.bernoulli_(p), 'bernoulli', f64(p), step=step)
                for lo, hi in ((0, 2), (0, 10), (3, 100), (-100, 27), (-5, 2**28 - 6), (-5, 2**28 - 5), (0, 2**31),
                               (0, 2**32), (-7, 2**40), (-2**62, 2**62), (0, 2**63 - 1), (0, 65504), (60000, 65504)):
                    lo2, hi2 = i64(lo), i64(hi)
                    lib.em_rng_adjust_bounds(CODES[dtype], ctypes.byref(lo2), ctypes.byref(hi2))
                    try:
                        torch.zeros(1, dtype=dtype).random_(lo, hi)
                    except RuntimeError:
                        continue
                    compare(f'randint {lo} {hi}', dtype, n, lambda t: t.random_(lo, hi), 'randint', lo2,
                            u64((hi2.value - lo2.value) % 2**64), step=step)
                if dtype not in (torch.uint16, torch.uint32, torch.uint64):
                    compare('random', dtype, n, lambda t: t.random_(), 'random', step=step)
                if dtype in (torch.int64, torch.float64, torch.float32, torch.bfloat16):
                    compare('random64', dtype, n, lambda t: t.random_(-2**63, None), 'random64', step=step)
                if dtype in FLOATS + INTS:
                    compare('geometric', dtype, n, lambda t: t.geometric_(0.3), 'geometric', f64(0.3), step=step)
                    for p_type in FLOATS:
                        for p_step in (0, 1, 2):
                            p = torch.rand(max(1, n * p_step), dtype=p_type)
                            view = p.expand(n) if p_step == 0 else p[::p_step]
                            compare(f'bernoulli P {p_type} {p_step}', dtype, n, lambda t: t.bernoulli_(view),
                                    'bernoulli_tensor', CODES[p_type], ctypes.c_void_p(p.data_ptr()),
                                    i64(p_step * p.element_size()), step=step)
        if dtype in FLOATS + INTS:
            for n in (0, 1, 2, 100, 2000, 70000):
                try:
                    torch.randperm(n, dtype=dtype)
                except RuntimeError:
                    continue
                compare('randperm', dtype, n, lambda t: torch.randperm(n, dtype=dtype), 'randperm', whole=True)


def states():
    for k, odd in ((0, 0), (1, 0), (623, 1), (624, 1), (625, 3), (5000, 1)):
        torch.manual_seed(3)
        torch.rand(k)
        for _ in range(odd):
            torch.empty(1).normal_()
        saved = torch_state()
        taken = lib.em_rng_set_state(gen, saved, 5056) == 0
        check(f'set_state takes torch state {k}', taken and ember_state() == saved)
        out = np.zeros(3, dtype=np.float64)
        lib.em_rng_fill_normal(gen, 7, out.ctypes.data_as(ctypes.c_void_p), i64(3), f64(0), f64(1))
        check(f'continues a torch state {k}', (torch.empty(3, dtype=torch.float64).normal_().numpy() == out).all())
        mine = ember_state()
        torch.manual_seed(99)
        torch.set_rng_state(torch.frombuffer(bytearray(mine), dtype=torch.uint8))
        check(f'torch takes Ember state {k}', torch_state() == mine)
        compare_next = torch.rand(1000)
        lib.em_rng_fill_uniform(gen, 6, (ctypes.c_float * 1000).from_buffer(buf := bytearray(4000)), i64(4), i64(1000),
                                f64(0), f64(1))
        check(f'torch continues Ember state {k}', compare_next.numpy().tobytes() == bytes(buf))
    torch.manual_seed(3)
    good = bytearray(torch_state())
    for name, at, value in (('float normal', 5048, b'\0\0\xc0\x3f\1'), ('left 0', 8, b'\0\0\0\0'),
                            ('left 625', 8, b'\x71\2\0\0'), ('left -1', 8, b'\xff' * 4), ('unseeded', 12, b'\0\0\0\0'),
                            ('next 625', 16, b'\x71\2\0\0'), ('high half of next', 20, b'\1'),
                            ('high half of a word', 28, b'\1'), ('rubbish in unused', 5016, b'\1\2\3')):
        s = bytearray(good)
        s[at:at + len(value)] = value
        try:
            torch.set_rng_state(torch.frombuffer(s, dtype=torch.uint8))
            theirs = torch_state()
        except RuntimeError:
            theirs = None
        mine = ember_state() if lib.em_rng_set_state(gen, bytes(s), 5056) == 0 else None
        check(f'state with {name}', mine == theirs)
    for size in (0, 5047, 5048, 5055, 5057):
        check(f'state of {size} bytes', lib.em_rng_set_state(gen, bytes(good + b'\0'), ctypes.c_size_t(size)) != 0)


def orders():
    """What an operator over strides must know: which order torch writes in."""
    torch.manual_seed(1)
    flat = torch.rand(24)
    torch.manual_seed(1)
    check('a transposed tensor is written in memory order',
          torch.equal(torch.empty(4, 6).t().uniform_().t().reshape(-1), flat))
    torch.manual_seed(1)
    serial = torch.empty(64)[::2].normal_()
    torch.manual_seed(1)
    check('a transposed tensor takes the serial normals',
          torch.equal(torch.empty(8, 4).t().normal_().t().reshape(-1), serial))


def large():
    for n in (214748363, 214748364):
        compare('randperm', torch.int32, n, lambda t: torch.randperm(n, dtype=torch.int32), 'randperm', whole=True)


floats()
integers()
states()
orders()
if '--large' in sys.argv:
    large()
print(f'{passed} passed, {failed} failed against torch {torch.__version__}')
sys.exit(failed != 0)

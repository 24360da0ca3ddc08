"""Writes tests/c/rng_golden.h from a real torch: run it under the oracle's interpreter, from the repository's root.

    python tools/make_rng_golden.py

Each row is one fill from a fresh seed: six sampled values as bit patterns, a hash of all values where they do not
depend on libm, a hash of the generator's state afterwards and whether it caches a normal."""
import textwrap

import torch

F = {'F32': torch.float32, 'F64': torch.float64, 'F16': torch.float16, 'BF16': torch.bfloat16}
I = {'U8': torch.uint8, 'I8': torch.int8, 'I16': torch.int16, 'I32': torch.int32, 'I64': torch.int64}
DTYPES = {**F, **I, 'BOOL': torch.bool}
VIEWS = {1: torch.uint8, 2: torch.int16, 4: torch.int32, 8: torch.int64}

# name in the table: how torch does it. x is contiguous, except that *_serial needs a view that is not.
FILLS = {
    'UNIFORM': lambda x, a, b: x.uniform_(a, b),
    'NORMAL': lambda x, a, b: x.normal_(a, b),
    'NORMAL_SERIAL': lambda x, a, b: x.normal_(a, b),
    'RANDINT': lambda x, a, b: x.random_(int(a), int(b)),
    'RANDOM': lambda x, a, b: x.random_(),
    'RANDOM64': lambda x, a, b: x.random_(-2**63, None),
    'BERNOULLI': lambda x, a, b: x.bernoulli_(a),
    'BERNOULLI_F32': lambda x, a, b: x.bernoulli_(torch.full(x.shape, a, dtype=torch.float32)),
    'EXPONENTIAL': lambda x, a, b: x.exponential_(a),
    'GEOMETRIC': lambda x, a, b: x.geometric_(a),
    'CAUCHY': lambda x, a, b: x.cauchy_(a, b),
    'LOG_NORMAL': lambda x, a, b: x.log_normal_(a, b),
    'RANDPERM': lambda x, a, b: x.copy_(torch.randperm(len(x), dtype=x.dtype)),
}
USES_LIBM = {'NORMAL_SERIAL', 'EXPONENTIAL', 'CAUCHY', 'LOG_NORMAL'}


def fnv(data):
    h = 0xcbf29ce484222325
    for byte in data:
        h = (h ^ byte) * 0x100000001b3 % 2**64
    return h


def row(fill, dtype, seed, n, a=0.0, b=0.0):
    x = torch.empty(n, 2, dtype=DTYPES[dtype])[:, 0] if fill == 'NORMAL_SERIAL' else torch.empty(n, dtype=DTYPES[dtype])
    torch.manual_seed(seed)
    FILLS[fill](x, a, b)
    raw = x.contiguous().view(VIEWS[x.element_size()]).tolist()
    size = x.element_size()
    data = b''.join((v % 256**size).to_bytes(size, 'little') for v in raw)
    at = [0, min(1, n - 1), min(8, n - 1), n // 2, max(n - 9, 0), n - 1]
    samples = ', '.join(hex(raw[i] % 256**size) for i in at)
    head = f'{{{fill}, EM_RNG_{dtype}, {seed % 2**64:#x}, {n}, {a!r}, {b!r}, {{{samples}}},'
    state = torch.get_rng_state().numpy().tobytes()
    libm = fill in USES_LIBM or (fill == 'NORMAL' and (n < 16 or dtype == 'F64'))
    row = f'{head} {0 if libm else fnv(data):#x}, {fnv(state[:5016]):#x}, {state[5040]}}},'
    return textwrap.fill(row, 118, initial_indent='    ', subsequent_indent='     ') + '\n'


def rows():
    for seed in (0, 1, 42, 2**40 + 7, -1):
        for n in (1, 15, 16, 17, 1000):
            for dtype in ('F32', 'F64'):
                yield row('UNIFORM', dtype, seed, n, 0.0, 1.0)
                yield row('NORMAL', dtype, seed, n, 0.0, 1.0)
    for n in (15, 17, 1000):
        for dtype in F:
            yield row('UNIFORM', dtype, 42, n, 0.1, 0.7)
            yield row('NORMAL', dtype, 42, n, 0.3, 1.7)
            yield row('NORMAL_SERIAL', dtype, 42, n, 0.3, 1.7)
            for fill in ('EXPONENTIAL', 'CAUCHY', 'LOG_NORMAL'):
                yield row(fill, dtype, 42, n, 0.7, 1.3)
    for dtype in DTYPES:
        yield row('BERNOULLI', dtype, 42, 1000, 0.3)
        yield row('BERNOULLI_F32', dtype, 42, 1000, 0.3)
        yield row('RANDOM', dtype, 42, 1000)
        yield row('RANDINT', dtype, 42, 1000, 0.0, 2.0)
        if dtype != 'BOOL':
            yield row('GEOMETRIC', dtype, 42, 1000, 0.3)
            yield row('RANDPERM', dtype, 42, 100)
    for lo, hi in ((-5, 2**28 - 6), (-5, 2**28 - 5), (-7, 2**40), (-2**61, 2**62)):
        yield row('RANDINT', 'I64', 42, 1000, float(lo), float(hi))
    for dtype in ('I64', 'F64', 'F32', 'BF16'):
        yield row('RANDOM64', dtype, 42, 1000)
    yield row('RANDPERM', 'I64', 42, 70000)


if __name__ == '__main__':
    body = ''.join(rows())
    with open('tests/c/rng_golden.h', 'w') as out:
        out.write(f'// lint: table. Written by tools/make_rng_golden.py from torch {torch.__version__}; do not edit.\n')
        out.write('// fill, type, seed, n, parameters, values at 0, 1, 8, n/2, n-9, n-1 (kept inside), hash of all\n')
        out.write('// values (0: libm decides the last bits), hash of the state up to the cached normal, has it one\n')
        out.write('static const golden_row golden[] = {\n' + body + '};\n')

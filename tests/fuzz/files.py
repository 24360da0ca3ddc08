"""Damaged files through every reader of Python's face, from the files in tests/data.

    make fuzz ARGS="--files --seconds 60 --seed 7"

A reader may refuse: with an exception of its own kind, in words that name the file. It may not crash, hang, take memory
that the file has no bytes for, run code, or hand out a tensor that reaches outside of its storage. Pickles are changed
within their archives, with check sums made right again. tests/fuzz/fuzz_files.c does the same for the readers of C, much
faster.
"""
import glob
import io
import os
import pickle
import random
import resource
import time
import traceback
import warnings
import zipfile

HERE = os.path.dirname(os.path.abspath(__file__))
OPCODES = b"(.012FIJKLMNQRSTUVXabcd}eghijl]opqrst)uGBC\x80\x81\x85\x86\x87\x88\x89\x8a\x8c\x8f\x90\x91\x92\x93\x94\x95"
NUMBERS = [0, 1, 0x7f, 0x80, 0xff, 0x7fff, 0xffff, 2**31 - 1, 2**31, 2**32 - 1, 2**63 - 1, 2**64 - 1]


def corpus():
    """[(name, kind, bytes)]: whole files, and the pickles of archives as (name, "pickle", their archive's other records)."""
    found = []
    for path in sorted(glob.glob(os.path.join(HERE, "..", "data", "*.*"))):
        with open(path, "rb") as file:
            data = file.read()
        name = os.path.basename(path)
        if name.endswith(".py"):
            continue
        found.append((name, "file", data))
        if data[:2] == b"PK" and "nocrc" not in name:
            found.append((name, "pickle", data))
    for value in ("{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }", "{'descr': '>i2', 'fortran_order': True, 'shape': (2,)}"):
        header = value.encode().ljust(117) + b"\n"
        found.append(("made.npy", "file", b"\x93NUMPY\1\0" + len(header).to_bytes(2, "little") + header + b"\1" * 24))
    return found


def change(rng, data, others):
    """data with one piece changed."""
    if not data:
        return data
    at, length = rng.randrange(len(data)), rng.randrange(1, 9)
    kind = rng.randrange(9)
    if kind == 0:
        return data[:at] + bytes([data[at] ^ 1 << rng.randrange(8)]) + data[at + 1:]
    if kind == 1:
        return data[:at] + bytes([rng.randrange(256)]) + data[at + 1:]
    if kind == 2:
        return data[:at] + bytes([rng.choice(OPCODES)]) + data[at + 1:]
    if kind == 3:
        number = rng.choice(NUMBERS).to_bytes(8, "little")[:length]
        return data[:at] + number + data[at + length:]
    if kind == 4:
        return data[:at]
    if kind == 5:
        return data[:at] + data[at + length:]
    if kind == 6:
        return data[:at + length] + data[at:]
    if kind == 7:
        other = rng.choice(others)[2]
        start = rng.randrange(len(other))
        return data[:at] + other[start:start + length * 4] + data[at:]
    digits = [i for i in range(at, min(at + 200, len(data))) if 48 <= data[i] < 58]
    return data if not digits else data[:digits[0]] + bytes([rng.randrange(48, 58)]) + data[digits[0] + 1:]


def with_pickle(archive, change_pickle):
    """The archive with its pickle changed and all check sums right."""
    out = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(archive)) as old, zipfile.ZipFile(out, "w") as new:
        for info in old.infolist():
            record = old.read(info)
            new.writestr(info.filename, change_pickle(record) if info.filename.endswith("data.pkl") else record)
    return out.getvalue()


def check(torch, value, depth=0):
    """Every tensor that came out lies within its storage."""
    if isinstance(value, torch.Tensor):
        if value.is_meta or value.numel() == 0:
            return
        last = value.storage_offset() + sum((n - 1) * s for n, s in zip(value.shape, value.stride()))
        assert 0 <= value.storage_offset() and (last + 1) * value.element_size() <= value.untyped_storage().nbytes(), "outside"
        if value.numel() < 10_000:
            value.tolist()
    elif depth < 20 and isinstance(value, dict):
        for part in value.values():
            check(torch, part, depth + 1)
    elif depth < 20 and isinstance(value, (list, tuple, set, frozenset)):
        for part in value:
            check(torch, part, depth + 1)


def readers(torch, name):
    from ember import io as ember_io
    from ember import safetensors
    if name.endswith(".npy"):
        return [ember_io.load_npy]
    if name.endswith(".safetensors"):
        return [lambda f: safetensors.load(f.getvalue())]
    return [torch.load, lambda f: torch.load(f, map_location="meta"), ember_io.load_npz]


def one(torch, rng, item, others):
    """Reads one damaged file with each reader; returns what went wrong, or None."""
    from ember.safetensors import SafetensorError
    refusals = (RuntimeError, ValueError, EOFError, pickle.UnpicklingError, NotImplementedError, SafetensorError)
    name, kind, data = item
    changes = rng.randrange(1, 6)

    def damage(piece):
        for _ in range(changes):
            piece = change(rng, piece, others)
        return piece
    data = with_pickle(data, damage) if kind == "pickle" else damage(data)
    for reader in readers(torch, name):
        start = time.monotonic()
        try:
            check(torch, reader(io.BytesIO(data)))
        except refusals as error:
            if len(str(error)) < 8:
                return f"{type(error).__name__} without words: {error}", data
        except Exception:
            return traceback.format_exc(limit=-6), data
        if time.monotonic() - start > 5:
            return f"took {time.monotonic() - start:.1f} s", data
    return None, data


def run(seconds, seed):
    """Damaged files until the time is over; returns (how many, the first failure or None)."""
    import ember as torch
    items, end, count = corpus(), time.monotonic() + seconds, 0
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        while time.monotonic() < end:
            rng = random.Random(seed + count)
            item = rng.choice(items)
            failure, data = one(torch, rng, item, items)
            grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
            if failure is None and grown > 300_000:
                failure = f"memory grew by {grown} KiB"
            if failure is not None:
                with open("fuzz-finding.bin", "wb") as file:
                    file.write(data)
                return count, f"seed {seed + count}, {item[0]} ({item[1]}); kept in fuzz-finding.bin\n{failure}"
            count += 1
    return count, None

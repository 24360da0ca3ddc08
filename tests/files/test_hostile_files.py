"""Files that lie: nothing in them runs, nothing is allocated that they have no bytes for, and errors say where and why."""
import collections
import gc
import io
import os
import pickle
import resource
import struct
import subprocess
import sys
import time
import zipfile

import ember as torch
import pytest
from ember import serialization
from same import DATA


def read(name):
    with open(DATA + name, "rb") as file:
        return file.read()


def checkpoint(pickle_bytes, records=None):
    """An archive around a pickle."""
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as archive:
        archive.writestr("a/data.pkl", pickle_bytes)
        archive.writestr("a/version", "3")
        for name, data in (records or {}).items():
            archive.writestr("a/data/" + name, data)
    out.seek(0)
    return out


class Call:
    """Pickles as a call."""

    def __init__(self, function, *args):
        self.function, self.args = function, args

    def __reduce__(self):
        return self.function, self.args


# ---------------------------------------------------------------- code
@pytest.mark.parametrize("function, args", [
    (eval, ("__import__('os').environ.__setitem__('EMBER_PWNED', '1')",)),
    (os.system, ("echo pwned > /tmp/ember-pwned",)), (getattr, ("", "join")), (print, ("pwned",)),
    (subprocess.run, (["true"],)), (pickle.loads, (b"N.",)), (torch.load, ("/etc/passwd",)), (torch.zeros, (3,)),
    (__import__, ("antigravity",))])
def test_calls_are_refused(function, args, monkeypatch, capsys):
    monkeypatch.delenv("EMBER_PWNED", raising=False)
    f = io.BytesIO()
    torch.save({"w": torch.ones(1), "x": Call(function, *args)}, f)
    for data in (f.getvalue(),):
        with pytest.raises(pickle.UnpicklingError, match="Weights only load failed"):
            torch.load(io.BytesIO(data))
    assert "EMBER_PWNED" not in os.environ and not os.path.exists("/tmp/ember-pwned")
    assert capsys.readouterr().out == "" and "antigravity" not in sys.modules


def test_words_of_refusals():
    f = io.BytesIO()
    torch.save(Call(eval, "1"), f)
    f.seek(0)
    with pytest.raises(pickle.UnpicklingError) as error:
        torch.load(f)
    text = str(error.value)
    assert text.startswith("Weights only load failed. This file can still be loaded, to do so you have two options, "
                           "\033[1mdo those steps only if you trust the source of the checkpoint\033[0m. \n\t(1) In PyTorch 2.6, we "
                           "changed the default value of the `weights_only` argument in `torch.load` from `False` to `True`. "
                           "Re-running `torch.load` with `weights_only` set to `False` will likely succeed, but it can result in "
                           "arbitrary code execution. Do it only if you got the file from a trusted source.\n\t(2) Alternatively")
    assert ("WeightsUnpickler error: Unsupported global: GLOBAL eval was not an allowed global by default. Please use "
            "`torch.serialization.add_safe_globals([eval])` or the `torch.serialization.safe_globals([eval])` context manager to "
            "allowlist this global if you trust this class/function.\n\nCheck the documentation of torch.load") in text
    with pytest.raises(pickle.UnpicklingError, match="Trying to load unsupported GLOBAL posix.system whose module posix is blocked"):
        torch.load(checkpoint(b"\x80\x02cposix\nsystem\nX\x02\0\0\0ls\x85R."))


@pytest.mark.parametrize("ops", [b"i__builtin__\neval\n", b"(c__builtin__\neval\no", b"\x82\1", b"P1\n", b"I1\n"])
def test_other_ways_to_run_code_are_unknown_operations(ops):
    with pytest.raises(pickle.UnpicklingError, match="Unsupported"):
        torch.load(checkpoint(b"\x80\x02(" + ops + b"."))


def test_dotted_names_and_attributes_lead_nowhere():
    for module, name in (("torch", "os.system"), ("torch._utils", "_C"), ("torch.serialization", "os.system"), ("torch", "load"),
                         ("collections", "OrderedDict.fromkeys"), ("ember", "load"), ("torch.nn.modules.linear", "Linear")):
        with pytest.raises(pickle.UnpicklingError):
            torch.load(checkpoint(f"\x80\x02c{module}\n{name}\n)R.".encode("latin1")))
        text = b"".join(b"\x8c" + bytes([len(s)]) + s.encode() for s in (module, name))
        with pytest.raises(pickle.UnpicklingError):
            torch.load(checkpoint(b"\x80\x04" + text + b"\x93)R."))


def test_objects_cannot_be_changed_behind_ones_back():
    with pytest.raises(pickle.UnpicklingError, match="Can only build Tensor, Parameter, OrderedDict"):
        torch.load(checkpoint(b"\x80\x02]}X\1\0\0\0aK\1sb."))
    with pytest.raises(pickle.UnpicklingError, match="Can only create new object for nn.Parameter"):
        torch.load(checkpoint(b"\x80\x02ctorch\nSize\n)\x81."))
    with pytest.raises(pickle.UnpicklingError, match="Can only append to lists"):
        torch.load(checkpoint(b"\x80\x02}K\1a."))
    with pytest.raises(pickle.UnpicklingError, match="Can only SETITEM"):
        torch.load(checkpoint(b"\x80\x02]K\1K\1s."))


class Mine:
    def __init__(self):
        self.x = 1

    def __eq__(self, other):
        return type(other) is Mine and other.x == self.x


def make_mine():
    return Mine()


def test_safe_globals():
    f = io.BytesIO()
    torch.save({"m": Mine()}, f)

    def load():
        f.seek(0)
        return torch.load(f)
    with pytest.raises(pickle.UnpicklingError, match="Mine was not an allowed global"):
        load()
    f.seek(0)
    assert serialization.get_unsafe_globals_in_checkpoint(f) == [f"{Mine.__module__}.Mine"]
    with serialization.safe_globals([Mine]):
        assert load() == {"m": Mine()} and serialization.get_safe_globals() == [Mine]
    with pytest.raises(pickle.UnpicklingError):
        load()
    serialization.add_safe_globals([(Mine, f"{Mine.__module__}.Mine")])
    try:
        assert load() == {"m": Mine()}
        serialization.clear_safe_globals()
        assert serialization.get_safe_globals() == []
        serialization.add_safe_globals([torch.nn.Linear, torch.nn.Sequential, torch.nn.ReLU])
        assert isinstance(torch.load(DATA + "module.pt"), torch.nn.Sequential)
    finally:
        serialization.clear_safe_globals()
    with pytest.raises(TypeError):
        serialization.add_safe_globals(Mine)


def test_environment_forces_weights_only(monkeypatch):
    monkeypatch.setenv("TORCH_FORCE_NO_WEIGHTS_ONLY_LOAD", "1")
    assert isinstance(torch.load(DATA + "module.pt"), torch.nn.Module)
    monkeypatch.setenv("TORCH_FORCE_WEIGHTS_ONLY_LOAD", "1")
    with pytest.raises(RuntimeError, match="Only one of"):
        torch.load(DATA + "module.pt")


# ---------------------------------------------------------------- memory and time
LARGE = {
    "string": b"\x80\x02X\xff\xff\xff\x7fabc.", "bytes": b"\x80\x04\x8e\xff\xff\xff\xff\xff\xff\xff\x7fabc.",
    "integer": b"\x80\x02\x8b\xff\xff\xff\x7f\1.", "memo": b"\x80\x02Nr\xff\xff\xff\xff.",
    "bytearray": b"\x80\x02c__builtin__\nbytearray\n\x8a\5\0\0\0\0\x40\x85R.",
    "storage class": b"\x80\x02ctorch\nFloatStorage\n\x8a\5\0\0\0\0\x40\x85R.",
    "tensor class": b"\x80\x02ctorch\nFloatTensor\n\x8a\5\0\0\0\0\x40\x85R.",
    "storage": b"\x80\x02(X\7\0\0\0storagectorch\nFloatStorage\nX\1\0\0\0000X\3\0\0\0cpu\x8a\5\0\0\0\0\x40tQ.",
    "negative storage": b"\x80\x02(X\7\0\0\0storagectorch\nFloatStorage\nX\1\0\0\0000X\3\0\0\0cpuJ\xff\xff\xff\xfftQ.",
    "copies": b"\x80\x02c__builtin__\nbytearray\nq\0B\0\0\1\0" + b"a" * 65536 + b"q\1(" + b"h\0h\1\x85R" * 3000 + b"t.",
}


@pytest.mark.parametrize("name", LARGE)
def test_no_memory_that_the_file_has_no_bytes_for(name):
    def peak():
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    before = peak()
    for data in (checkpoint(LARGE[name], {"0": b"1234"}), io.BytesIO(LARGE[name])):
        with pytest.raises((pickle.UnpicklingError, RuntimeError)):
            torch.load(data)
    assert peak() - before < 100_000  # KiB


def test_old_format_does_not_believe_sizes():
    f = io.BytesIO()
    torch.save(torch.ones(3), f, _use_new_zipfile_serialization=False)
    data = f.getvalue()
    at = data.index(b"cpuq")
    at = data.index(b"K\3", at)
    for number in (b"\x8a\5\0\0\0\0\x40", b"M\xff\xff", b"K\4"):
        with pytest.raises(RuntimeError, match="storage has wrong size"):
            torch.load(io.BytesIO(data[:at] + number + data[at + 2:]))


def test_deep_keys_neither_crash_nor_hang():
    deep = b"N" + b"\x85" * 200_000
    wide = b"N" + b"q\0h\0\x86" * 60
    for key in (deep, wide):
        for body in (b"}" + key + b"Ns", b"\x8f(" + key + b"\x90", b"c__builtin__\nset\n]" + key + b"a\x85R", b"(" + key + b"\x91"):
            with pytest.raises(pickle.UnpicklingError):
                torch.load(checkpoint(b"\x80\x04" + body + b"."))
    assert torch.load(checkpoint(b"\x80\x02" + deep + b"."))  # as a value it is only long


def test_colliding_keys_do_not_hang():
    def integer(n):
        data = n.to_bytes(12, "little")
        return b"\x8a\x0c" + data
    many = b"".join(integer(i * (2**61 - 1)) for i in range(5, 60_000))
    start = time.monotonic()
    for body in (b"\x8f(" + many + b"\x90", b"c__builtin__\nset\n](" + many + b"e\x85R", b"(" + many + b"\x91"):
        with pytest.raises(pickle.UnpicklingError, match="more than 1000 keys"):
            torch.load(checkpoint(b"\x80\x04" + body + b"."))
    assert time.monotonic() - start < 5
    f = io.BytesIO()
    torch.save({2**70 + i: i for i in range(500)}, f)
    f.seek(0)
    assert len(torch.load(f)) == 500


def test_deep_nesting_is_read_without_recursion():
    nested = torch.load(checkpoint(b"\x80\x02" + b"]" * 100_000 + b"a" * 99_999 + b"."))
    depth = 0
    while nested:
        nested, depth = nested[0], depth + 1
    assert depth == 99_999


@pytest.mark.parametrize("size, stride, offset", [((4,), (1,), -1), ((-1,), (1,), 0), ((4,), (-1,), 3), ((5,), (1,), 0), ((2**62, 4),
(1, 1), 0),
                                                  ((2,), (2**63 - 1,), 0), ((1,) * 65, (1,) * 65, 0), ((4,), (1,), 2**62)])
def test_tensors_stay_within_their_storage(size, stride, offset):
    f = io.BytesIO()
    torch.save(Call(torch._utils._rebuild_tensor_v2, torch.ones(4).storage(), offset, size, stride, False, collections.OrderedDict()), f)
    for weights_only in (True, False):
        f.seek(0)
        with pytest.raises((RuntimeError, pickle.UnpicklingError)):
            torch.load(f, weights_only=weights_only)


@pytest.mark.parametrize("args", [(), (1,), (None, 0, (1,), (1,), False, {}), ([1.0], 0, (1,), (1,), False, {}),
(1, 2, 3, 4, 5, 6, 7, 8, 9)])
def test_wrong_arguments_of_allowed_calls(args):
    for function in (torch._utils._rebuild_tensor_v2, torch._utils._rebuild_tensor_v3, torch._utils._rebuild_parameter, torch.Size,
                     torch.device, torch._utils._rebuild_meta_tensor_no_storage, torch._tensor._rebuild_from_type_v2, set, complex):
        f = io.BytesIO()
        torch.save(Call(function, *args), f)
        f.seek(0)
        if function in (torch.Size, set, torch.device, complex) and len(args) < 2:
            continue
        with pytest.raises((pickle.UnpicklingError, RuntimeError)):
            torch.load(f)


# ---------------------------------------------------------------- damage
@pytest.mark.parametrize("data, words", [
    (b"", "is empty; was the save or the download interrupted"),
    (b"version https://git-lfs.github.com/spec/v1\noid sha256:00\nsize 12\n", "Git LFS pointer"),
    (b"<!DOCTYPE html><html>404</html>", "web page"), (b"<html>", "web page"), (b"\x1f\x8b\x08\0", "gzip"), (b"\x89HDF\r\n", "HDF5"),
    (b"\0" * 5000, "begins with zeros"), (b"hello world, no checkpoint", "not a checkpoint"),
    (b"\x93NUMPY\1\0", "numpy .npy file"), (struct.pack("<Q", 20) + b'{"a":1}', "safetensors")])
def test_what_is_no_checkpoint_is_named(data, words, tmp_path):
    path = tmp_path / "weights.pt"
    path.write_bytes(data)
    with pytest.raises((RuntimeError, pickle.UnpicklingError, EOFError), match=words) as error:
        torch.load(path)
    assert "weights.pt" in str(error.value)


def test_oldest_format_is_refused_in_words(tmp_path):
    import tarfile
    path = tmp_path / "x.pt"
    with tarfile.open(path, "w") as tar:
        tar.add(DATA + "views.pt", "storages")
    with pytest.raises(RuntimeError, match="oldest format, a tar archive"):
        torch.load(path)


@pytest.mark.parametrize("name", ["views.pt", "views_stream.pt", "optimizer.pt"])
def test_truncated_anywhere(name, tmp_path):
    data, path = read(name), tmp_path / name
    for end in [*range(0, 64), *range(64, len(data), 37)]:
        path.write_bytes(data[:end])
        with pytest.raises((RuntimeError, pickle.UnpicklingError, EOFError)) as error:
            torch.load(path)
        text = str(error.value)
        assert str(path) in text, text
        if end > 20 and name != "views_stream.pt":
            assert "is truncated: the zip's end record is missing" in text and f"byte {end})" in text
            assert text.startswith("PytorchStreamReader failed reading zip archive: failed finding central directory.")


def test_flipped_bits_are_noticed(tmp_path):
    """Every byte of a record is under a check sum."""
    data = bytearray(read("views.pt"))
    at = zipfile.ZipFile(DATA + "views.pt").getinfo("views/data/0").header_offset
    start = data.index(struct.pack("<f", 1.0), at)
    data[start] ^= 4
    with pytest.raises(RuntimeError, match="the check sum of record 'views/data/0' .* is wrong: its bytes were changed"):
        torch.load(io.BytesIO(bytes(data)))


def zip_with(**fields):
    """views.pt with numbers of its end records changed."""
    data = bytearray(read("views.pt"))
    end64, locator, end = len(data) - 98, len(data) - 42, len(data) - 22
    for place, (offset, value, size) in fields.items():
        base = {"end64": end64, "locator": locator, "end": end, "central": data.index(b"PK\1\2")}[place]
        data[base + offset:base + offset + size] = value.to_bytes(size, "little")
    return io.BytesIO(bytes(data))


@pytest.mark.parametrize("fields, words", [
    ({"end64": (32, 2**40, 8)}, "does not fit"), ({"end64": (40, 2**62, 8)}, "does not fit"), ({"end64": (48, 2**63, 8)}, "does not fit"),
    ({"locator": (8, 2**63, 8)}, "outside of the file"), ({"locator": (8, 5, 8)}, "no zip64 end record"),
    ({"central": (0, 0, 4)}, "central directory is damaged"), ({"central": (20, 2**31, 4)}, "does not fit"),
    ({"central": (42, 2**31, 4)}, "does not fit"), ({"central": (28, 65535, 2)}, "ends within a record"),
    ({"central": (42, 60, 4)}, "no record header"), ({"end64": (32, 3, 8)}, "."), ({"central": (10, 99, 2)}, "compressed by method 99"),
    ({"central": (8, 1, 2)}, "encrypted")])
def test_zip_numbers_are_checked(fields, words):
    with pytest.raises(RuntimeError, match=words):
        torch.load(zip_with(**fields))


def test_records_cannot_overlap_or_repeat():
    out = io.BytesIO()
    with pytest.warns(UserWarning), zipfile.ZipFile(out, "w") as archive:
        archive.writestr("a/data.pkl", b"\x80\x02N.")
        archive.writestr("a/data.pkl", b"\x80\x02K\1.")
    out.seek(0)
    with pytest.raises(RuntimeError, match="two records have the name 'a/data.pkl'"):
        torch.load(out)
    with pytest.raises(RuntimeError, match="is a zip archive, but not a checkpoint"):
        other = io.BytesIO()
        with zipfile.ZipFile(other, "w") as archive:
            archive.writestr("x/y", b"")
        other.seek(0)
        torch.load(other)


def test_a_bad_byteorder_record():
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as archive:
        archive.writestr("a/data.pkl", b"\x80\x02N.")
        archive.writestr("a/byteorder", b"middle")
    out.seek(0)
    with pytest.raises(ValueError, match="Unknown endianness type: middle"):
        torch.load(out)


def test_failing_loads_leave_nothing():
    gc.collect()  # what the tests before left to the collector
    before = torch._C._live_objects()
    for name in ("views.pt", "optimizer.pt", "grads_stream.pt"):
        data = read(name)
        for end in range(0, len(data), 101):
            for weights_only in (True, False):
                with pytest.raises(Exception):
                    torch.load(io.BytesIO(data[:end]), weights_only=weights_only)
    after = torch._C._live_objects()
    assert {kind: n - before[kind] for kind, n in after.items() if n > before[kind]} == {}

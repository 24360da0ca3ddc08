"""safetensors: files of huggingface's library are read, written ones are equal byte for byte, hostile headers are refused."""
import io
import json
import os
import struct
import subprocess

import ember as torch
import make_golden
import pytest
from ember import safetensors
from same import DATA

from ember.safetensors import SafetensorError, load, load_file, safe_open, save, save_file

ORACLE = os.environ.get("EMBER_ORACLE", "")
TENSORS = make_golden.safe_tensors(torch)


def raw(header, data=b"", length=None):
    if not isinstance(header, bytes):
        header = json.dumps(header).encode()
    return struct.pack("<Q", len(header) if length is None else length) + header + data


def entry(dtype="F32", shape=(1,), offsets=(0, 4)):
    return {"dtype": dtype, "shape": list(shape), "data_offsets": list(offsets)}


def same(got, want):
    assert set(got) == set(want)
    for name, t in want.items():
        assert got[name].dtype is t.dtype and got[name].shape == t.shape and torch.equal(got[name], t), name


def test_reads_what_the_library_wrote():
    same(load_file(DATA + "all.safetensors"), TENSORS)
    with open(DATA + "all.safetensors", "rb") as file:
        same(load(file.read()), TENSORS)


def test_writes_the_bytes_that_the_library_writes(tmp_path):
    path = tmp_path / "x.safetensors"
    save_file(TENSORS, path, {"note": "made by \"them\""})
    with open(DATA + "all.safetensors", "rb") as file:
        golden = file.read()
    assert path.read_bytes() == golden
    assert save(TENSORS, {"note": "made by \"them\""}) == golden
    assert save({}) == raw(b"{}      ") and load(save({})) == {}


def test_tensors_are_windows_of_the_file(tmp_path):
    path = tmp_path / "x.safetensors"
    save_file({"a": torch.arange(5.)}, path)
    before = path.read_bytes()
    a = load_file(path)["a"]
    os.unlink(path)
    a.mul_(2)
    assert a.tolist() == [0, 2, 4, 6, 8] and not a.untyped_storage().resizable()
    path.write_bytes(before)
    assert load_file(path)["a"].tolist() == [0, 1, 2, 3, 4]


def test_headers_that_are_not_aligned():
    assert load_file(DATA + "unaligned.safetensors")["x"].tolist() == [1, 2]


def test_safe_open():
    with safe_open(DATA + "all.safetensors", framework="pt", device="cpu") as f:
        assert f.keys() == sorted(TENSORS) and set(f.offset_keys()) == set(TENSORS)
        assert f.metadata() == {"note": "made by \"them\""}
        assert torch.equal(f.get_tensor("float32.b"), TENSORS["float32.b"])
        part = f.get_slice("int64.a")
        assert part.get_shape() == [2, 1] and part.get_dtype() == "I64" and part[1:].tolist() == [[0]]
        assert part[:, 0].tolist() == [1, 0] and part[...].tolist() == [[1], [0]]
        with pytest.raises(IndexError):
            part[5]
        with pytest.raises(SafetensorError, match="File does not contain tensor zz"):
            f.get_tensor("zz")
        same(f.get_tensors(), TENSORS)
    with pytest.raises(SafetensorError, match="File is closed"):
        f.get_tensor("float32.b")
    with safe_open(DATA + "all.safetensors", "np") as f:
        assert type(f.get_tensor("float64.b")).__name__ == "ndarray"
    assert load_file(DATA + "all.safetensors", device="meta")["scalar"].is_meta
    with pytest.raises(SafetensorError, match="framework xx is invalid"):
        safe_open(DATA + "all.safetensors", "xx")
    with pytest.raises(SafetensorError, match="device bogus is invalid"):
        safe_open(DATA + "all.safetensors", "pt", device="bogus")
    with pytest.raises(FileNotFoundError, match="No such file or directory: /nonexist"):
        safe_open("/nonexist", "pt")


def test_dtypes_that_ember_lacks():
    with safe_open(DATA + "lacks.safetensors", "pt") as f:
        assert f.keys() == ["u"] and f.get_slice("u").get_dtype() == "U16"
        with pytest.raises(NotImplementedError, match="tensor `u` of .* has dtype U16, which Ember does not have"):
            f.get_tensor("u")


GOOD = raw({"a": entry()}, b"1234")
BAD = {
    "empty": (b"", "header too small"), "short": (b"\1\2", "header too small"), "large": (raw({}, length=2**60), "header too large"),
    "longer than the file": (raw({}, length=100), "invalid header length"), "no object": (raw(b"[]"),
    "invalid JSON in header: expected `{`"),
    "not utf-8": (raw(b'{"\xff":1}'), "invalid UTF-8 in header of .*, at byte 10"), "overlong utf-8": (raw(b'{"\xc0\xaf":1}'),
    "invalid UTF-8"),
    "surrogates": (raw(b'{"\xed\xa0\x80":1}'), "invalid UTF-8"), "cut": (raw(b'{"a"'), "invalid JSON in header"),
    "twice": (raw(b'{"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]},"a":{"dtype":"F32","shape":[1],'
                  b'"data_offsets":[4,8]}}', b"12345678"),
              "two tensors named `a`"),
    "twice, escaped": (raw(b'{"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]},"\\u0061":{"dtype":"F32","shape":[1],'
                           b'"data_offsets":[4,8]}}', b"12345678"), "two tensors named `a`"),
    "hole at the start": (raw({"a": entry(offsets=(4, 8))}, b"12345678"), "invalid offset for tensor `a`"),
    "hole": (raw({"a": entry(), "b": entry(offsets=(8, 12))}, b"1" * 12), "invalid offset for tensor `b`"),
    "overlap": (raw({"a": entry(), "b": entry(offsets=(2, 6))}, b"1" * 6), "invalid offset for tensor `b`"),
    "same bytes": (raw({"a": entry(), "b": entry()}, b"1234"), "invalid offset for tensor `b`"),
    "backwards": (raw({"a": entry(offsets=(4, 0))}, b"1234"), "invalid offset for tensor `a`"),
    "more data": (raw({"a": entry()}, b"12345"), "incomplete metadata, file not fully covered"),
    "less data": (raw({"a": entry()}, b"123"), "incomplete metadata, file not fully covered.*was the download interrupted"),
    "shape": (raw({"a": entry(shape=(2,))}, b"1234"), "invalid shape, data type, or offset for tensor `a`"),
    "dtype size": (raw({"a": entry("F64")}, b"1234"), "invalid shape, data type, or offset for tensor `a`"),
    "half a byte": (raw({"a": entry("F4", offsets=(0, 1))}, b"1"), "invalid shape, data type, or offset"),
    "negative": (raw({"a": entry(shape=(-1,))}, b"1234"), "expected usize"), "float": (raw({"a": entry(shape=(1.0,))}, b"1234"),
    "floating point"),
    "product": (raw({"a": entry(shape=(2**62, 2**62))}, b"1234"), "overflow computing buffer size"),
    "one size": (raw({"a": entry(shape=(2**63,))}, b"1234"), "overflow"), "number": (raw({"a": entry(shape=(2**64,))}, b"1234"),
    "number too large"),
    "offsets": (raw({"a": entry(offsets=(0, 2**64 - 1))}, b"1234"), "invalid shape, data type, or offset"),
    "dimensions": (raw({"a": entry(shape=(1,) * 65)}, b"1234"), "more than 64 dimensions"),
    "dtype": (raw({"a": entry("F31")}, b"1234"), "unknown variant"), "no offsets": (raw({"a": {"dtype": "F32", "shape": [1]}}, b"1234"),
    "missing field"),
    "metadata": (raw({"__metadata__": {"a": 1}}), "expected a string"), "metadata list": (raw({"__metadata__": []}), "expected `{`"),
    "metadata twice": (raw(b'{"__metadata__":{},"__metadata__":{}}'), "duplicate field"), "deep": (raw(b"[" * 100000), "expected `{`"),
    "deep field": (raw(b'{"a":{"x":' + b"[" * 100000), "recursion limit"), "trailing": (raw(b"{} {}"), "trailing characters"),
    "zero byte": (raw(b'{"\\u0000":1}'), "zero byte"), "control": (raw(b'{"\n":1}'), "control character"),
    "lone surrogate": (raw(b'{"\\ud800x":1}'), "surrogate"), "escape": (raw(b'{"\\q":1}'), "invalid escape"),
}


@pytest.mark.parametrize("name", BAD)
def test_hostile_headers(name, tmp_path):
    data, words = BAD[name]
    path = tmp_path / "bad.safetensors"
    path.write_bytes(data)
    for read in (lambda: load(data), lambda: load_file(path)):
        with pytest.raises(SafetensorError, match=words) as error:
            read()
        assert str(error.value).startswith("Error while deserializing: ")


def test_what_the_format_allows():
    assert load(GOOD)["a"].shape == (1,)
    assert load(raw(b"{}    ")) == {} and load(raw(b' { "__metadata__" : { "a" : "b" } } ')) == {}
    assert load(raw({"a": dict(entry(), more=[1, {"x": None}], other="t")}, b"1234"))["a"].shape == (1,)
    two = load(raw({"a": entry(shape=(0,), offsets=(0, 0)), "b": entry(shape=(0,), offsets=(0, 0))}))
    assert sorted(two) == ["a", "b"]
    assert load(raw({"a": entry(shape=(2**62, 0, 4), offsets=(0, 0))}))["a"].shape == (2**62, 0, 4)
    assert list(load(raw(b'{"\\u00e9\\ud83d\\udd25":{"dtype":"U8","shape":[],"data_offsets":[0,1]}}', b"1"))) == ["\u00e9\U0001f525"]


def test_what_cannot_be_saved():
    a = torch.ones(4)
    with pytest.raises(ValueError, match="You are trying to save a non contiguous tensor: `a` which is not allowed"):
        save({"a": torch.ones(2, 3).t()})
    with pytest.raises(RuntimeError, match="Some tensors share memory, this will lead to duplicate memory on disk"):
        save({"a": a, "b": a[2:]})
    assert sorted(load(save({"a": a[:2], "b": a[2:]}))) == ["a", "b"]  # of one storage, but no byte in common
    with pytest.raises(ValueError, match="Key `a` is invalid, expected torch.Tensor but received <class 'int'>"):
        save({"a": 5})
    with pytest.raises(ValueError, match=r"Expected a dict of \[str, torch.Tensor\] but received <class 'list'>"):
        save([torch.ones(1)])
    with pytest.raises(TypeError, match="argument 'metadata': 'int' object is not an instance of 'str'"):
        save({"a": a}, {"a": 5})
    with pytest.raises(TypeError, match="argument 'tensor_dict': 'int' object is not an instance of 'str'"):
        save({5: a})
    with pytest.raises(NotImplementedError, match="Cannot copy out of meta tensor; no data!"):
        save({"a": torch.ones(2, device="meta")})
    with pytest.raises(ValueError, match="no dtype for `a`"):
        save({"a": torch.ones(2, dtype=torch.complex128)})
    with pytest.raises(SafetensorError, match="I/O error"):
        save_file({"a": a}, "/nonexistent/x")


class Tied(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.a, self.b = torch.nn.Linear(2, 2), torch.nn.Linear(2, 2)
        self.b.weight = self.a.weight


def test_whole_modules_with_tied_weights(tmp_path):
    path, one, two = tmp_path / "m.safetensors", Tied(), Tied()
    safetensors.save_model(one, path)
    assert sorted(load_file(path)) == ["a.bias", "a.weight", "b.bias"]
    with safe_open(path, "pt") as f:
        assert f.metadata() == {"b.weight": "a.weight"}
    assert safetensors.load_model(two, path) == (set(), [])
    assert torch.equal(two.b.weight, one.a.weight) and two.b.weight is two.a.weight
    save_file({"a.bias": torch.ones(2)}, path)
    with pytest.raises(RuntimeError, match=r"Error\(s\) in loading state_dict for Tied:\n    Missing key\(s\) in state_dict"):
        safetensors.load_model(Tied(), path)


def test_deserialize():
    assert safetensors.deserialize(GOOD) == [("a", {"shape": [1], "dtype": "F32", "data": bytearray(b"1234")})]


@pytest.mark.skipif(not ORACLE, reason="EMBER_ORACLE (a Python with PyTorch and safetensors) is not set; tests/data stands in")
def test_the_library_reads_what_ember_writes(tmp_path):
    path = tmp_path / "x.safetensors"
    save_file(TENSORS, path)
    code = ("import sys; sys.path.insert(0, sys.argv[1]); import torch, safetensors.torch as s, make_golden\n"
            "got, want = s.load_file(sys.argv[2]), make_golden.safe_tensors(torch)\n"
            "assert all(torch.equal(got[n], t) and got[n].dtype == t.dtype for n, t in want.items()) and len(got) == len(want)")
    env = {key: value for key, value in os.environ.items() if key not in ("PYTHONPATH", "LD_PRELOAD")}
    done = subprocess.run([ORACLE, "-c", code, DATA, str(path)], env=env, cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[-2000:]


def test_sources_are_closed(tmp_path):
    before = len(os.listdir("/proc/self/fd"))
    for _ in range(50):
        load_file(DATA + "all.safetensors")
        torch.load(DATA + "views.pt")
        torch.load(io.BytesIO(GOOD[:0] + open(DATA + "views.pt", "rb").read()))
    assert len(os.listdir("/proc/self/fd")) == before

""".npy and .npz: numpy reads what Ember writes, and the other way round; what lies is refused."""
import io

import ember as torch
import numpy as np
import pytest
from ember.io import load_npy, load_npz, save_npy, save_npz
from same import DATA  # noqa: F401

DTYPES = ["u1", "i1", "i2", "i4", "i8", "f2", "f4", "f8", "c8", "c16", "?"]
SHAPES = [(), (0,), (3,), (1,), (2, 3), (2, 0, 3), (2, 3, 4, 1)]


def array(dtype, shape, order="C"):
    return np.asarray(np.arange(int(np.prod(shape))).reshape(shape) % 5 - 1).astype(dtype, order=order)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", SHAPES)
def test_both_ways(dtype, shape, tmp_path):
    want, path = array(dtype, shape), tmp_path / "x.npy"
    np.save(path, want)
    for mmap in (False, True):
        got = load_npy(path, mmap=mmap)
        assert got.numpy().dtype == want.dtype and got.shape == shape and np.array_equal(got.numpy(), want)
    golden = path.read_bytes()
    save_npy(path, torch.from_numpy(want.copy()))
    assert path.read_bytes() == golden
    f = io.BytesIO()
    save_npy(f, torch.from_numpy(want.copy()))
    assert f.getvalue() == golden
    f.seek(0)
    assert np.array_equal(load_npy(f).numpy(), want)


@pytest.mark.parametrize("dtype", ["f4", "i2", "c8", "f8"])
def test_other_orders(dtype):
    want = array(dtype, (2, 3, 4))
    for changed in (want.astype(">" + dtype), np.asfortranarray(want), np.asfortranarray(want.astype(">" + dtype))):
        f = io.BytesIO()
        np.save(f, changed)
        f.seek(0)
        assert np.array_equal(load_npy(f).numpy(), want)
    f = io.BytesIO()
    np.save(f, np.asfortranarray(want))
    f.seek(0)
    assert load_npy(f).stride() == (1, 2, 6)


def test_versions_and_views():
    for version in ((1, 0), (2, 0), (3, 0)):
        f = io.BytesIO()
        np.lib.format.write_array(f, array("f4", (3, 2)), version=version)
        f.seek(0)
        assert load_npy(f).shape == (3, 2)
    f = io.BytesIO()
    save_npy(f, torch.arange(6.).reshape(2, 3).t())
    f.seek(0)
    assert np.load(f).tolist() == [[0, 3], [1, 4], [2, 5]]
    f = io.BytesIO()
    save_npy(f, torch.ones(2, requires_grad=True))
    assert f.tell() == 136


def test_npz_both_ways(tmp_path):
    path = tmp_path / "x.npz"
    for write in (np.savez, np.savez_compressed):
        write(path, array("f4", (3, 4)), b=array("i8", (500,)))
        got = load_npz(path)
        assert sorted(got) == ["arr_0", "b"] and np.array_equal(got["b"].numpy(), array("i8", (500,)))
    save_npz(path, torch.ones(2), w=torch.arange(3))
    with np.load(path) as got:
        assert sorted(got) == ["arr_0", "w"] and got["w"].tolist() == [0, 1, 2]
    with pytest.raises(ValueError, match="Cannot use un-named variables and keyword arr_0"):
        save_npz(path, torch.ones(1), arr_0=torch.ones(1))


def npy(header, data=b"", version=b"\1\0"):
    return io.BytesIO(b"\x93NUMPY" + version + len(header).to_bytes(2 if version == b"\1\0" else 4, "little") + header + data)


@pytest.mark.parametrize("file, words", [
    (io.BytesIO(b"no"), "not a .npy file"), (io.BytesIO(b"\x93NUMPY\7\0" + b"\0" * 20), "not a .npy file"),
    (io.BytesIO(b"\x93NUMPY\1\0\xff\xff"), "header .* would end at byte 65545"),
    (npy(b"{'descr': '|O', 'fortran_order': False, 'shape': (1,), }", b"x" * 8), "Python objects, which are never loaded"),
    (npy(b"{'descr': [('a', '<f4')], 'fortran_order': False, 'shape': (1,), }", b"x" * 8), "records"),
    (npy(b"{'descr': '<U5', 'fortran_order': False, 'shape': (1,), }", b"x" * 20), "does not have this dtype: <U5"),
    (npy(b"{'descr': '<f4', 'fortran_order': False, 'shape': (3,), }", b"x" * 8), "truncated or damaged.*3 elements of 4 bytes"),
    (npy(b"{'descr': '<f4', 'fortran_order': False, 'shape': (4611686018427387904, 4), }", b"x" * 8), "truncated or damaged"),
    (npy(b"{'descr': '<f4', 'fortran_order': False, 'shape': (99999999999999999999,), }"), "too large"),
    (npy(b"{'descr': '<f4', 'fortran_order': False, 'shape': (-1,), }"), "expected a size"),
    (npy(b"{'descr': '<f4', 'fortran_order': False}"), "is missing"), (npy(b"{'descr': '<f4', 'x': 1}"), "unknown or repeated key"),
    (npy(b"__import__('os').system('true')"), "expected a dict"), (npy(b"{'descr': '<f4"), "does not end"),
    (npy(b"{'descr': '<f4', 'fortran_order': 0, 'shape': ()}"), "expected True or False"),
    (npy(b"{'descr': '<f4', 'fortran_order': False, 'shape': (" + b"1," * 70 + b")}"), "more than 64 dimensions")])
def test_damaged_files(file, words):
    with pytest.raises((ValueError, RuntimeError), match=words):
        load_npy(file)


def test_what_numpy_does_not_have():
    with pytest.raises(TypeError, match="Got unsupported ScalarType BFloat16"):
        save_npy(io.BytesIO(), torch.ones(2, dtype=torch.bfloat16))
    with pytest.raises(NotImplementedError, match="no data"):
        save_npy(io.BytesIO(), torch.ones(2, device="meta"))
    with pytest.raises(FileNotFoundError):
        load_npy("/nonexistent.npy")

"""torch.save's files: PyTorch's are read (tests/data has files of PyTorch 2.13), and what Ember writes is the same."""
import io
import os
import pickle
import subprocess
import sys
import warnings
import zipfile

import ember as torch
import make_golden
import pytest
from ember import serialization
from same import DATA, described

OBJECTS, UNSAFE = make_golden.objects(torch), make_golden.unsafe_objects(torch)
ORACLE = os.environ.get("EMBER_ORACLE", "")


def read(name):
    with open(DATA + name, "rb") as file:
        return file.read()


@pytest.mark.parametrize("name", OBJECTS)
@pytest.mark.parametrize("weights_only", [True, False])
def test_reads_what_pytorch_wrote(name, weights_only):
    got = torch.load(DATA + name + ".pt", weights_only=weights_only)
    assert described(torch, got) == described(torch, OBJECTS[name])


@pytest.mark.parametrize("name", UNSAFE)
def test_reads_modules_and_generators_of_pytorch(name):
    assert described(torch, torch.load(DATA + name + ".pt", weights_only=False)) == described(torch, UNSAFE[name])
    with pytest.raises(pickle.UnpicklingError, match="Weights only load failed"):
        torch.load(DATA + name + ".pt")


@pytest.mark.parametrize("name", {**OBJECTS, **UNSAFE})
def test_writes_the_bytes_that_pytorch_writes(name, tmp_path):
    """All records and their places are equal; only the two numbers of the last record are Ember's own."""
    path = tmp_path / (name + ".pt")
    torch.save({**OBJECTS, **UNSAFE}[name], path)
    mine, theirs = path.read_bytes(), read(name + ".pt")
    with zipfile.ZipFile(path) as a, zipfile.ZipFile(DATA + name + ".pt") as b:
        assert a.testzip() is None
        assert a.namelist() == b.namelist()
        for record in a.namelist():
            if not record.endswith("serialization_id"):
                assert a.read(record) == b.read(record), record
        last = a.getinfo(a.namelist()[-1])
    assert last.filename == name + "/.data/serialization_id" and last.file_size == 40
    assert mine[:last.header_offset] == theirs[:last.header_offset]
    assert len(mine) == len(theirs)
    again = tmp_path / "again" / (name + ".pt")
    again.parent.mkdir()
    torch.save({**OBJECTS, **UNSAFE}[name], again)
    assert again.read_bytes() == mine


@pytest.mark.parametrize("name", ["views", "dtypes", "grads"])
@pytest.mark.parametrize("weights_only", [True, False])
def test_old_stream_format(name, weights_only):
    got = torch.load(DATA + name + "_stream.pt", weights_only=weights_only)
    assert described(torch, got) == described(torch, OBJECTS[name])
    f = io.BytesIO(b"before")
    f.seek(6)
    for _ in range(2):  # several in one file, one after the other
        torch.save(OBJECTS[name], f, _use_new_zipfile_serialization=False)
    f.seek(6)
    for _ in range(2):
        assert described(torch, torch.load(f, weights_only=weights_only)) == described(torch, OBJECTS[name])
    assert f.read() == b""


@pytest.mark.parametrize("file, name", [("views_protocol4", "views"), ("containers_protocol5", "containers"),
                                        ("views_nocrc", "views"), ("views_deflated", "views")])
@pytest.mark.parametrize("weights_only", [True, False])
def test_other_ways_of_writing(file, name, weights_only):
    got = torch.load(DATA + file + ".pt", weights_only=weights_only)
    assert described(torch, got) == described(torch, OBJECTS[name])


@pytest.mark.parametrize("protocol", [2, 3, 4, 5])
@pytest.mark.parametrize("name", OBJECTS)
def test_every_protocol_names_pytorch(name, protocol):
    f = io.BytesIO()
    torch.save(OBJECTS[name], f, pickle_protocol=protocol)
    f.seek(0)
    assert b"ember" not in f.getvalue()
    assert described(torch, torch.load(f)) == described(torch, OBJECTS[name])


def test_strings_that_name_ember_stay():
    value = {"ember": "ember.nn", "e": "ember._utils", "k": torch.float32}
    for protocol in (2, 4):
        f = io.BytesIO()
        torch.save(value, f, pickle_protocol=protocol)
        f.seek(0)
        assert torch.load(f) == value


def test_big_endian_files():
    got = torch.load(DATA + "big_endian.pt")
    for name, t in got.items():
        assert torch.equal(t, torch.tensor([1, 2, 3]).to(t.dtype)), name


def test_default_endianness_of_files_without_a_record():
    f = io.BytesIO()
    torch.save(torch.tensor([1, 256], dtype=torch.int16), f, _disable_byteorder_record=True)
    serialization.set_default_load_endianness(serialization.LoadEndianness.BIG)
    try:
        f.seek(0)
        assert torch.load(f).tolist() == [256, 1]
    finally:
        serialization.set_default_load_endianness(None)
    f.seek(0)
    assert torch.load(f).tolist() == [1, 256]
    with pytest.raises(TypeError, match="Invalid argument type in function set_default_load_endianness"):
        serialization.set_default_load_endianness("big")


def test_conjugated_views_are_resolved():
    conj, neg, plain = torch.load(DATA + "conj.pt")
    assert conj.tolist() == [1 - 2j, 3 + 1j] and neg.tolist() == [-1.0, -2.0] and plain.tolist() == [1 + 2j, 3 - 1j]


@pytest.mark.parametrize("name, text", [("uint16", "dtype torch.uint16"), ("float8", "dtype torch.float8_e4m3fn"),
                                        ("sparse", "sparse tensor"), ("quantized", "quantized tensor")])
@pytest.mark.parametrize("weights_only", [True, False])
def test_what_ember_lacks_is_named(name, text, weights_only):
    with pytest.raises(NotImplementedError, match=text):
        torch.load(f"{DATA}lacks_{name}.pt", weights_only=weights_only)


def test_torchscript_is_refused(tmp_path):
    path = tmp_path / "script.pt"
    with zipfile.ZipFile(path, "w") as archive:
        for name in ("data.pkl", "constants.pkl", "version"):
            archive.writestr("script/" + name, b"\x80\x02N.")
    with pytest.raises(RuntimeError, match="Cannot use ``weights_only=True`` with TorchScript archives"):
        torch.load(path)
    with pytest.raises(RuntimeError, match="TorchScript"):
        torch.load(path, weights_only=False)


# ---------------------------------------------------------------- where storages go
def test_map_location():
    path = DATA + "views.pt"
    assert torch.load(path, map_location="cpu")["base"].device.type == "cpu"
    assert torch.load(path, map_location=torch.device("cpu"))["base"].device.type == "cpu"
    for place in ("meta", torch.device("meta"), {"cpu": "meta"}):
        got = torch.load(path, map_location=place)
        assert got["base"].is_meta and got["transposed"].stride() == (1, 12, 4)
    seen = []
    got = torch.load(path, map_location=lambda storage, location: seen.append((type(storage), location, len(storage))))
    assert seen[0] == (torch.UntypedStorage, "cpu", 96) and torch.equal(got["base"], OBJECTS["views"]["base"])
    got = torch.load(path, map_location=lambda storage, location: storage)
    assert torch.equal(got["base"], OBJECTS["views"]["base"])
    with pytest.raises(RuntimeError, match="Attempting to deserialize object on a CUDA device but torch.cuda.is_available"):
        torch.load(path, map_location="cuda:0")
    with pytest.raises(RuntimeError, match="don't know how to restore data location of torch.storage.UntypedStorage "
                                           r"\(tagged with bogus\)"):
        torch.load(path, map_location="bogus")
    with pytest.raises(TypeError, match="'int' object is not callable"):
        torch.load(path, map_location=5)


def relocated(place):
    """views.pt, as if its tensors had been saved from another device."""
    old, new = b"X\3\0\0\0cpu", b"X" + len(place).to_bytes(4, "little") + place
    return io.BytesIO(make_golden.repacked(read("views.pt"), lambda name, data: data.replace(old, new)))


def test_tensors_of_other_devices():
    with pytest.raises(RuntimeError, match=r"use torch.load with map_location=torch.device\('cpu'\)"):
        torch.load(relocated(b"cuda:0"))
    for place in ("cpu", {"cuda:0": "cpu"}, lambda storage, location: storage):
        assert described(torch, torch.load(relocated(b"cuda:0"), map_location=place)) == described(torch, OBJECTS["views"])


def test_mmap_is_private_and_keeps_the_file_mapped(tmp_path):
    path = tmp_path / "x.pt"
    torch.save({"a": torch.arange(1000.), "b": torch.ones(3)}, path)
    before = path.read_bytes()
    got = torch.load(path, mmap=True)
    a = got["a"]
    del got
    path.unlink()  # the map outlives the name
    a.add_(1)
    assert a[999].item() == 1000 and not a.untyped_storage().resizable()
    path.write_bytes(before)
    b = torch.load(path, mmap=True)["b"]
    b.zero_()
    assert path.read_bytes() == before
    assert torch.load(path, mmap=True)["b"].tolist() == [1, 1, 1]
    with pytest.raises(ValueError, match="f must be a file path in order to use the mmap argument"):
        torch.load(io.BytesIO(before), mmap=True)
    old = tmp_path / "old.pt"
    torch.save(torch.ones(2), old, _use_new_zipfile_serialization=False)
    with pytest.raises(RuntimeError, match="mmap can only be used with files saved with"):
        torch.load(str(old), mmap=True)


def test_mmap_addresses_are_aligned(tmp_path):
    path = tmp_path / "x.pt"
    torch.save([torch.ones(n) for n in range(1, 9)], path)
    for t in torch.load(path, mmap=True):
        assert t.data_ptr() % 64 == 0


def test_skip_data(tmp_path):
    path = tmp_path / "x.pt"
    with serialization.skip_data():
        torch.save(torch.ones(5), path)
    assert torch.load(path).tolist() == [0] * 5
    torch.save(torch.ones(5), path)
    with serialization.skip_data():
        assert torch.load(path).shape == (5,)


# ---------------------------------------------------------------- where files are
def test_paths_and_file_objects(tmp_path):
    value = {"w": torch.arange(3.)}
    path = tmp_path / "x.pt"
    for target in (path, str(path)):
        torch.save(value, target)
        assert torch.equal(torch.load(target)["w"], value["w"])
    with open(path, "rb") as file:
        assert torch.equal(torch.load(file)["w"], value["w"])
    with open(path, "wb") as file:
        torch.save(value, file)
    with open(path, "r+b") as file:
        assert torch.equal(torch.load(file)["w"], value["w"])

    class Reader:  # no fileno, no name
        def __init__(self, data):
            self.f = io.BytesIO(data)

        def __getattr__(self, name):
            if name in ("read", "seek", "tell"):
                return getattr(self.f, name)
            raise AttributeError(name)
    assert torch.equal(torch.load(Reader(path.read_bytes()))["w"], value["w"])


def test_file_objects_of_all_kinds(tmp_path):
    import bz2
    import gzip
    import mmap
    import tempfile
    value, data = {"w": torch.arange(3.)}, io.BytesIO()
    torch.save(value, data)
    path = tmp_path / "x"
    for module in (gzip, bz2):
        for new in (True, False):
            with module.open(path, "wb") as file:
                torch.save(value, file, _use_new_zipfile_serialization=new)
            with module.open(path, "rb") as file:
                assert torch.equal(torch.load(file)["w"], value["w"])
    with tempfile.TemporaryFile() as file:
        file.write(b"abc")
        torch.save(value, file)
        file.seek(3)
        assert torch.equal(torch.load(file)["w"], value["w"])
    path.write_bytes(data.getvalue())
    with open(path, "rb", buffering=0) as file:
        assert torch.equal(torch.load(file)["w"], value["w"])
    with open(path, "rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as mapped:
        assert torch.equal(torch.load(mapped)["w"], value["w"])
    archive = tmp_path / "archive.zip"
    with zipfile.ZipFile(archive, "w") as file:
        file.writestr("m.pt", data.getvalue())
    with zipfile.ZipFile(archive) as file, file.open("m.pt") as member:
        assert torch.equal(torch.load(member)["w"], value["w"])
    with pytest.raises(TypeError, match="must be str, not bytes"), open(path, "w") as file:
        torch.save(value, file)
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(OSError, match="Illegal seek"):  # and no waiting for a writer
        torch.load(tmp_path / "pipe")


@pytest.mark.parametrize("name, folder", [("a.b.pt", "a.b"), ("model", "model"), ("\u00e9.pt", "archive"), ("\udcff.pt", "archive")])
def test_names_of_files(name, folder, tmp_path):
    path = os.path.join(tmp_path, name)
    torch.save({"w": torch.ones(1)}, path)
    assert torch.load(path)["w"].item() == 1 and torch.load(path, mmap=True, weights_only=False)["w"].item() == 1
    with zipfile.ZipFile(path) as archive:
        assert archive.namelist()[0] == folder + "/data.pkl"


def test_file_errors(tmp_path):
    with pytest.raises(FileNotFoundError, match="No such file or directory: '/nonexistent.pt'"):
        torch.load("/nonexistent.pt")
    with pytest.raises(IsADirectoryError):
        torch.load(tmp_path)
    with pytest.raises(RuntimeError, match="Parent directory /nonexistent does not exist."):
        torch.save(1, "/nonexistent/x.pt")
    with pytest.raises(AttributeError, match="expected 'f' to be string, path, or a file-like object with a 'write'"):
        torch.save(1, 5)
    with pytest.raises(AttributeError, match="'int' object has no attribute 'seek'. You can only torch.load from a file "
                                             "that is seekable"):
        torch.load(5)
    with pytest.raises(RuntimeError, match="Can not safely load weights when explicit pickle_module is specified"):
        torch.load(DATA + "views.pt", pickle_module=pickle, weights_only=True)

    class Full:
        def write(self, data):
            raise OSError(28, "No space left on device")
    with pytest.raises(OSError, match="No space left"):
        torch.save(torch.ones(3), Full())


def test_pickle_module_is_used():
    class Noted(pickle.Pickler):
        used = 0

        def dump(self, obj):
            Noted.used += 1
            return super().dump(obj)

    class module:
        Pickler, Unpickler, dump, load = Noted, pickle.Unpickler, pickle.dump, pickle.load
    module.__name__ = "module"
    f = io.BytesIO()
    torch.save([torch.ones(1)], f, pickle_module=module)
    f.seek(0)
    assert Noted.used == 1 and torch.load(f, pickle_module=module)[0].item() == 1


# ---------------------------------------------------------------- what is shared
def test_views_of_one_storage_are_saved_once():
    base = torch.zeros(1000)
    f = io.BytesIO()
    torch.save([base[i] for i in range(100)], f)
    assert len(f.getvalue()) < 20_000
    f.seek(0)
    got = torch.load(f)
    got[0].fill_(5)
    assert all(got[i].untyped_storage().data_ptr() == got[0].untyped_storage().data_ptr() for i in range(100))


def test_compact_files_hold_what_is_seen():
    base = torch.arange(100_000, dtype=torch.float64)
    p = torch.nn.Parameter(base[50_001:50_004])
    values = {"a": base[50_000:50_010:3], "b": base[50_003:50_006], "p": p, "none": base[7:7], "other": torch.arange(3),
              "t": torch.ones(4, 5).t(), "byte": torch.zeros(1000, dtype=torch.uint8)[501:503], "storage": torch.ones(2).storage(),
              "generator": torch.Generator().manual_seed(3)}
    for new in (True, False):
        f = io.BytesIO()
        torch.save(values, f, compact=True, _use_new_zipfile_serialization=new)
        assert len(f.getvalue()) < 12_000
        f.seek(0)
        got = torch.load(f, weights_only=False)
        for name, want in values.items():
            if name not in ("storage", "generator"):
                assert torch.equal(got[name], want) and got[name].stride() == want.stride() and type(got[name]) is type(want), name
        assert not new or torch.equal(got["generator"].get_state(), values["generator"].get_state())
        got["a"][1] = -1
        assert got["b"][0].item() == -1 and got["storage"].tolist() == [1, 1]
    f = io.BytesIO()
    torch.save(values, f)
    assert len(f.getvalue()) > 800_000
    with pytest.raises(AttributeError):
        torch.save([base, lambda: 0], io.BytesIO(), compact=True)
    assert torch._tensor._saving.place is None


def test_same_bytes_as_two_dtypes_are_refused():
    a = torch.ones(2)
    with pytest.raises(RuntimeError, match="Cannot save multiple tensors or storages that view the same data as different types"):
        torch.save([a, a.view(torch.int32)], io.BytesIO())


def test_storages_are_saved():
    f = io.BytesIO()
    t = torch.ones(2)
    torch.save([t.storage(), t], f)
    f.seek(0)
    storage, again = torch.load(f)
    assert storage.tolist() == [1, 1] and storage.data_ptr() == again.data_ptr()


def test_whole_module_from_the_old_format():
    """PyTorch's old files hold classes with their source code, as persistent ids."""
    f = io.BytesIO()

    class Pickler(pickle.Pickler):
        noting = False

        def persistent_id(self, obj):
            if obj is not torch.nn.ReLU or self.noting:
                return None
            self.noting = True  # the class itself is a part of the id
            return ("module", obj, "file.py", "source")
    for value in (serialization.MAGIC_NUMBER, serialization.PROTOCOL_VERSION, {"little_endian": True}):
        pickle.dump(value, f, protocol=2)
    Pickler(f, protocol=2).dump([torch.nn.ReLU()])
    pickle.dump([], f, protocol=2)
    f.seek(0)
    assert isinstance(torch.load(f, weights_only=False)[0], torch.nn.ReLU)


# ---------------------------------------------------------------- both ways with PyTorch itself
READ_BACK = """
import sys, json, warnings
warnings.simplefilter("ignore")
sys.path[:0] = [sys.argv[1], sys.argv[2]]
import torch, make_golden
from same import described
objects = {**make_golden.objects(torch), **make_golden.unsafe_objects(torch)}
for name in objects:
    for suffix in ("", "_stream", "_protocol4"):
        if name == "generator" and suffix == "_stream":
            continue  # PyTorch itself cannot: the state is set before its bytes are read
        got = torch.load(f"{sys.argv[3]}/{name}{suffix}.pt", weights_only=False)
        assert described(torch, got) == described(torch, objects[name]), (name, suffix)
        if suffix != "_protocol4" and name not in ("module", "generator"):
            got = torch.load(f"{sys.argv[3]}/{name}{suffix}.pt", weights_only=True)
            assert described(torch, got) == described(torch, objects[name]), (name, suffix)
    if name != "containers":
        torch.load(f"{sys.argv[3]}/{name}.pt", weights_only=False, mmap=True)
print("read", len(objects))
"""


@pytest.mark.skipif(not ORACLE, reason="EMBER_ORACLE (a Python with PyTorch) is not set; tests/data stands in")
def test_pytorch_reads_what_ember_writes(tmp_path):
    for name, value in {**OBJECTS, **UNSAFE}.items():
        torch.save(value, tmp_path / f"{name}.pt")
        torch.save(value, tmp_path / f"{name}_stream.pt", _use_new_zipfile_serialization=False)
        torch.save(value, tmp_path / f"{name}_protocol4.pt", pickle_protocol=4)
    env = {key: value for key, value in os.environ.items() if key not in ("PYTHONPATH", "LD_PRELOAD")}
    done = subprocess.run([ORACLE, "-c", READ_BACK, os.path.dirname(__file__), DATA, str(tmp_path)], env=env, cwd=tmp_path,
                          capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[-2000:]
    assert done.stdout.startswith("read 9"), done.stdout


def test_whole_modules_and_optimizers(tmp_path):
    import modules
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        modules.write(torch, tmp_path)
        assert modules.read(torch, tmp_path) >= 20


@pytest.mark.skipif(not ORACLE, reason="EMBER_ORACLE (a Python with PyTorch) is not set; tests/data stands in")
@pytest.mark.parametrize("writer", ["torch", "ember"])
def test_whole_modules_and_optimizers_both_ways(writer, tmp_path):
    env = {key: value for key, value in os.environ.items() if key not in ("PYTHONPATH", "LD_PRELOAD")}
    python = {"torch": (ORACLE, env), "ember": (sys.executable, os.environ)}
    for name, what in ((writer, "write"), ({"torch": "ember", "ember": "torch"}[writer], "read")):
        command, environment = python[name]
        done = subprocess.run([command, os.path.join(os.path.dirname(__file__), "modules.py"), name, str(tmp_path), what],
                              env=environment, cwd=tmp_path, capture_output=True, text=True)
        assert done.returncode == 0, (name, what, done.stderr[-2000:])


def test_nothing_here_imports_numpy():
    code = "import ember, io, sys; f = io.BytesIO(); ember.save(ember.ones(2), f); f.seek(0); ember.load(f); " \
           "import ember.safetensors, ember.io; sys.exit('numpy' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code]).returncode == 0


# ---------------------------------------------------------------- mapped files
def test_from_file(tmp_path):
    path = str(tmp_path / "x.bin")
    with open(path, "wb") as file:
        file.write(bytes(range(16)))
    assert torch.from_file(path, size=16, dtype=torch.uint8).tolist() == list(range(16))
    assert torch.from_file(path, False, 4, dtype=torch.int32)[1].item() == 117835012
    assert torch.from_file(path).tolist() == []
    private = torch.from_file(path, size=16, dtype=torch.uint8)
    private[0] = 99
    assert open(path, "rb").read()[0] == 0
    shared = torch.from_file(path, shared=True, size=20, dtype=torch.uint8)
    shared[0], shared[19] = 99, 7
    assert open(path, "rb").read() == b"c" + bytes(range(1, 16)) + b"\0\0\0\7"
    new = str(tmp_path / "new.bin")
    assert torch.from_file(new, shared=True, size=3, dtype=torch.int16).tolist() == [0, 0, 0] and os.path.getsize(new) == 6
    storage = torch.UntypedStorage.from_file(path, False, 8)
    assert storage.nbytes() == 8 and not storage.resizable() and storage.is_shared()
    assert torch.FloatStorage.from_file(path, False, 2).size() == 2
    for arguments, words in (((path, False, 100), f"file <{path}> size <20> is smaller than the required mapping size <400>"),
                             (("/nofile", False, 1), "unable to open file </nofile> in read-only mode: No such file or directory"),
                             ((path, False, -1), "unable to mmap -4 bytes")):
        with pytest.raises(RuntimeError, match=words):
            torch.from_file(*arguments)
    with pytest.raises(TypeError, match=r"argument 'filename' \(position 1\) must be str, not PosixPath"):
        torch.from_file(tmp_path / "x.bin", size=1)


def test_shared_maps_of_checkpoints(tmp_path):
    import mmap
    path = tmp_path / "x.pt"
    torch.save(torch.zeros(4), path)
    with serialization.set_default_mmap_options(mmap.MAP_SHARED):
        torch.load(path, mmap=True).fill_(3)
        assert serialization.get_default_mmap_options() == mmap.MAP_SHARED
    assert torch.load(path, mmap=True).tolist() == [3, 3, 3, 3]
    with pytest.raises(ValueError, match="expected mmap.MAP_PRIVATE or mmap.MAP_SHARED, but got 5"):
        serialization.set_default_mmap_options(5)

"""Each allocation of readers and writers of files fails once: an exception comes, nothing is left behind."""

import io
import os

import pytest
from faults import fail_each
from subject import IS_EMBER, torch

pytestmark = pytest.mark.skipif(not IS_EMBER, reason="needs Ember's allocator")
DATA = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "data")


def read(name):
    with open(os.path.join(DATA, name), "rb") as file:
        return file.read()


@pytest.mark.parametrize("name", ["views.pt", "grads.pt", "views_stream.pt", "views_deflated.pt", "views_protocol4.pt"])
def test_load(name):
    assert fail_each(lambda: torch.load(os.path.join(DATA, name)), []) > 5
    data = read(name)
    assert fail_each(lambda: torch.load(io.BytesIO(data), weights_only=False), []) > 5


@pytest.mark.parametrize("new", [True, False])
def test_save(new):
    base = torch.arange(24.).reshape(2, 3, 4)
    values = {"a": base, "b": base.permute(2, 0, 1), "c": torch.nn.Parameter(torch.ones(3))}
    failed = fail_each(lambda: torch.save(values, io.BytesIO(), _use_new_zipfile_serialization=new), [base])
    assert failed > (5 if new else 0)


def test_other_formats():
    from ember import safetensors
    from ember.io import load_npy, load_npz, save_npy, save_npz
    data = read("all.safetensors")
    assert fail_each(lambda: safetensors.load(data), []) > 20
    assert fail_each(lambda: safetensors.load_file(os.path.join(DATA, "all.safetensors")), []) > 20
    x = torch.arange(6.).reshape(2, 3)
    assert fail_each(lambda: safetensors.save({"x": x, "y": x + 1}, {"k": "v"}), [x]) > 3
    npy, npz = io.BytesIO(), io.BytesIO()
    save_npy(npy, x)
    save_npz(npz, x, y=x)
    assert fail_each(lambda: load_npy(io.BytesIO(npy.getvalue())), []) > 2
    assert fail_each(lambda: load_npz(io.BytesIO(npz.getvalue())), []) > 5
    fail_each(lambda: save_npy(io.BytesIO(), x.t()), [x])

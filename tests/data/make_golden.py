"""Writes the files of this folder with real PyTorch and huggingface's safetensors: run by a Python that has both.

    /path/to/python/with/torch tests/data/make_golden.py

`objects(torch)` builds the same things from any torch: tests build them from Ember and compare with what the files
hold. numbers are exact in every dtype, so nothing here depends on random numbers or on rounding.
"""
import collections
import io
import json
import os
import struct
import sys
import zipfile

HERE = os.path.dirname(os.path.abspath(__file__))
DTYPES = ("float32", "float64", "float16", "bfloat16", "uint8", "int8", "int16", "int32", "int64", "bool", "complex64",
          "complex128")


def fill(module, torch):
    """Every parameter gets numbers that depend on its shape alone."""
    for p in module.parameters():
        p.data.copy_(torch.arange(float(p.numel())).reshape(p.shape) / 8 - 1)
    return module


def network(torch):
    return fill(torch.nn.Sequential(torch.nn.Linear(2, 3), torch.nn.ReLU(), torch.nn.Linear(3, 1)), torch)


def optimizer(torch):
    net = network(torch)
    opt = torch.optim.Adam(net.parameters(), lr=0.5)
    for p in net.parameters():
        p.grad = torch.ones_like(p)
    opt.step()
    for state in opt.state.values():  # exact numbers, whatever the rounding of the step was
        state["exp_avg"].fill_(0.5)
        state["exp_avg_sq"].fill_(0.25)
    return opt.state_dict()


def views(torch):
    base = torch.arange(24.).reshape(2, 3, 4)
    return {"base": base, "transposed": base.permute(2, 0, 1), "stepped": base[:, ::2], "offset": base[1, 1:, 1::2],
            "expanded": base[0, 0].expand(3, 4), "one": base[1, 2, 3], "again": base, "none": base[:, :0],
            "other": torch.arange(7).expand(1, -1), "empty": torch.zeros(0, 5), "zero_dim": torch.tensor(3)}


def grads(torch):
    p = torch.nn.Parameter(torch.ones(2))
    named = torch.nn.Parameter(torch.ones(3), requires_grad=False)
    named.note = "attribute"
    t = torch.ones(2, 2)
    t.note = {"more": 1}
    return [torch.ones(2, requires_grad=True), p, named, t, torch.nn.Parameter(torch.ones(1), requires_grad=False)]


def containers(torch):
    shared = [1, 2]
    return {"none": None, "bools": [True, False], "ints": [0, 255, 256, 65535, 65536, -1, 2**31, -2**63, 2**70, -2**90],
            "floats": [0.5, float("inf"), -0.0, 1e-300], "text": "h\u00e9llo \U0001f525\n", "empty": ["", (), [], {}],
            "tuples": [(1,), (1, 2), (1, 2, 3), (1, 2, 3, 4)], "ordered": collections.OrderedDict(b=1, a=2),
            "counter": collections.Counter("aab"), "complex": 1 + 2j, "bytes": bytes(range(256)), "set": {7},
            "size": torch.Size([2, 3]), "dtype": torch.bfloat16, "device": torch.device("cpu"),
            "device1": torch.device("cuda", 1), "layout": torch.strided, "shared": [shared, shared], 5: "int key",
            (1, "x"): "tuple key", "deep": [[[[[[{"a": {"b": {"c": ()}}}]]]]]], "meta": torch.ones(2, 3, device="meta")}


def objects(torch):
    """{name of the file: what it holds}"""
    return {"dtypes": {name: torch.tensor([0, 1, 1, 0, 1]).to(getattr(torch, name)) for name in DTYPES},
            "views": views(torch), "grads": grads(torch), "containers": containers(torch),
            "state_dict": network(torch).state_dict(), "optimizer": optimizer(torch),
            "zip_magic": [torch.tensor(list(b"PK\5\6" + b"\0" * 18 + b"PK\3\4PK\1\2") * 3, dtype=torch.uint8)]}


def unsafe_objects(torch):
    """Things that need weights_only=False."""
    generator = torch.Generator()
    generator.manual_seed(5)
    return {"module": network(torch), "generator": generator}


def repacked(data, change, **options):
    """The archive with records changed, written by Python's zipfile."""
    out = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(data)) as old, zipfile.ZipFile(out, "w", **options) as new:
        for info in old.infolist():
            new.writestr(info.filename, change(info.filename, old.read(info)))
    return out.getvalue()


def big_endian(torch):
    """What a big-endian machine would have written."""
    out = io.BytesIO()
    torch.save({name: torch.tensor([1, 2, 3]).to(getattr(torch, name)) for name in
                ("int16", "int32", "int64", "float32", "float64", "bfloat16", "complex64", "uint8")}, out)
    widths = [2, 4, 8, 4, 8, 2, 4, 1]

    def change(name, data):
        if name.endswith("byteorder"):
            return b"big"
        if "/data/" in name:
            width = widths[int(name.rsplit("/", 1)[1])]
            return b"".join(data[i:i + width][::-1] for i in range(0, len(data), width))
        return data
    return repacked(out.getvalue(), change)


def resumed_training(torch):
    """A model and its AdamW after three steps: tests/c/test_training.c goes on where PyTorch stopped."""
    w, u = torch.nn.Parameter(torch.tensor([1.0, 2.0, 3.0])), torch.nn.Parameter(torch.tensor([[0.5], [0.25]]))
    adamw = torch.optim.AdamW([w, u], lr=0.1, weight_decay=0.01)
    for _ in range(3):
        adamw.zero_grad()
        (w.pow(2).sum() * u.sum()).backward()
        adamw.step()
    return {"model": {"w": w.data, "u": u.data}, "optimizer": adamw.state_dict()}


def save_all(torch):
    torch.save(resumed_training(torch), os.path.join(HERE, "adamw_resume.pt"))
    for name, value in {**objects(torch), **unsafe_objects(torch)}.items():
        torch.save(value, os.path.join(HERE, name + ".pt"))
    for name in ("views", "dtypes", "grads"):
        torch.save(objects(torch)[name], os.path.join(HERE, name + "_stream.pt"), _use_new_zipfile_serialization=False)
    torch.save(objects(torch)["views"], os.path.join(HERE, "views_protocol4.pt"), pickle_protocol=4)
    torch.save(objects(torch)["containers"], os.path.join(HERE, "containers_protocol5.pt"), pickle_protocol=5)
    c = torch.tensor([1 + 2j, 3 - 1j])
    torch.save([c.conj(), torch._neg_view(torch.tensor([1.0, 2.0])), c], os.path.join(HERE, "conj.pt"))
    torch.serialization.set_crc32_options(False)
    torch.save(objects(torch)["views"], os.path.join(HERE, "views_nocrc.pt"))
    torch.serialization.set_crc32_options(True)
    for name, value in {"uint16": torch.ones(2, dtype=torch.uint16), "float8": torch.ones(2).to(torch.float8_e4m3fn),
                        "sparse": torch.eye(2).to_sparse(),
                        "quantized": torch.quantize_per_tensor(torch.ones(2), 0.5, 0, torch.qint8)}.items():
        torch.save(value, os.path.join(HERE, f"lacks_{name}.pt"))
    with open(os.path.join(HERE, "big_endian.pt"), "wb") as file:
        file.write(big_endian(torch))
    with open(os.path.join(HERE, "views.pt"), "rb") as file:
        views_file = file.read()
    with open(os.path.join(HERE, "views_deflated.pt"), "wb") as file:
        file.write(repacked(views_file, lambda name, data: data, compression=zipfile.ZIP_DEFLATED))


def safe_tensors(torch):
    names = [name for name in DTYPES if name != "complex128"]
    tensors = {f"{name}.b": torch.tensor([0, 1, 1]).to(getattr(torch, name)) for name in names}
    tensors.update({f"{name}.a": torch.tensor([[1], [0]]).to(getattr(torch, name)) for name in names})
    tensors.update({"scalar": torch.tensor(2.5), "empty": torch.zeros(0, 2), "\u00e9\"\\\n": torch.ones(1)})
    return tensors


def save_safetensors(torch):
    import safetensors.torch
    safetensors.torch.save_file(safe_tensors(torch), os.path.join(HERE, "all.safetensors"), {"note": "made by \"them\""})
    safetensors.torch.save_file({"u": torch.ones(2, dtype=torch.uint16)}, os.path.join(HERE, "lacks.safetensors"))
    header = json.dumps({"x": {"dtype": "F32", "shape": [2], "data_offsets": [0, 8]}, "__metadata__": {}}) + "   "
    with open(os.path.join(HERE, "unaligned.safetensors"), "wb") as file:
        file.write(struct.pack("<Q", len(header)) + header.encode() + struct.pack("<2f", 1, 2))


if __name__ == "__main__":
    import torch as real
    save_all(real)
    save_safetensors(real)
    print(f"written by PyTorch {real.__version__}: {sum(not n.endswith('.py') for n in os.listdir(HERE))} files",
          file=sys.stderr)

"""Whole modules and optimizers through files: `modules.py NAME FOLDER write|read` under any torch; NAME is its module.

What one torch wrote another reads: classes, settings, weights, buffers, hooks; outputs are compared.
"""
import importlib
import os
import sys
import warnings


def modules(torch):
    """{name: (function that makes a module, its input or None)}"""
    nn = torch.nn
    x, image = torch.arange(32.).reshape(2, 4, 4) / 10, torch.arange(384.).reshape(2, 3, 8, 8) / 100
    return {
        "activations": (lambda: nn.Sequential(nn.Linear(4, 3), nn.ReLU(), nn.GELU(), nn.Softmax(-1), nn.Dropout(), nn.PReLU()), x),
        "picture": (lambda: nn.Sequential(nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4), nn.MaxPool2d(2), nn.Flatten(), nn.Linear(36, 2)), image),
        "lstm": (lambda: nn.LSTM(4, 5, batch_first=True, bidirectional=True), x), "gru": (lambda: nn.GRU(4, 5), x),
        "gelu_layer": (lambda: nn.TransformerEncoderLayer(4, 2, 8, activation="gelu", batch_first=True), x),
        "encoder": (lambda: nn.TransformerEncoder(nn.TransformerEncoderLayer(4, 2, 8, batch_first=True), 2), x),
        "embedding": (lambda: nn.Embedding(10, 3), torch.tensor([1, 2])), "layer_norm": (lambda: nn.LayerNorm(4), x),
        "group_norm": (lambda: nn.GroupNorm(3, 3), image), "upsample": (lambda: nn.Upsample(scale_factor=2), image),
        "lists": (lambda: nn.ModuleDict({"a": nn.ModuleList([nn.Linear(1, 1)])}), None),
        "parameters": (lambda: nn.ParameterDict({"a": torch.ones(1)}), None), "transposed": (lambda: nn.ConvTranspose2d(3, 2, 3), image),
        "loss": (lambda: nn.CrossEntropyLoss(label_smoothing=0.1), None), "weight_norm": (lambda: nn.utils.weight_norm(nn.Linear(4, 3)), x),
        "spectral_norm": (lambda: nn.utils.spectral_norm(nn.Linear(4, 3)), x)}


def optimizers(torch):
    net = torch.nn.Linear(2, 2)
    names = ("SGD", "Adam", "AdamW", "RMSprop", "Adagrad", "Adadelta", "NAdam", "RAdam", "Adamax", "ASGD", "Rprop")
    return {name: getattr(torch.optim, name)(net.parameters(), lr=0.1) for name in names if hasattr(torch.optim, name)}


def write(torch, folder):
    torch.manual_seed(0)
    for name, (make, x) in modules(torch).items():
        module = make().eval()
        with torch.no_grad():
            torch.save({"it": module, "answer": None if x is None else module(x)}, f"{folder}/{name}.pt")
    for name, optimizer in optimizers(torch).items():
        torch.save({"it": optimizer, "answer": None}, f"{folder}/{name}.pt")


def close(torch, a, b):
    if isinstance(a, (tuple, list)):
        return all(close(torch, x, y) for x, y in zip(a, b))
    return torch.allclose(a, b, atol=1e-5)


def read(torch, folder):
    inputs = {name: x for name, (_, x) in modules(torch).items()}
    names = sorted(os.listdir(folder))
    for file in names:
        name = file[:-3]
        saved = torch.load(f"{folder}/{file}", weights_only=False)
        repr(saved["it"])
        if saved["answer"] is not None:
            with torch.no_grad():
                assert close(torch, saved["it"](inputs[name]), saved["answer"]), name
        if name not in inputs:
            saved["it"].step()
    return len(names)


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    torch = importlib.import_module(sys.argv[1])
    print({"write": write, "read": read}[sys.argv[3]](torch, sys.argv[2]))

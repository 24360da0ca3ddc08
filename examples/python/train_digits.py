"""Train a small convolutional network on handwritten digits: the main job of `make demo`.

An ordinary PyTorch program: `python -m ember examples/python/train_digits.py` runs it on Ember, plain `python` on PyTorch.
The 1,797 digits (8 x 8 grey values) come with scikit-learn's package, which is used for nothing else; a fifth is held out.
In the folder --out it leaves the weights (digits.pt), the digits for other programs, held-out ones first (digits.csv: 64 grey
values from 0 to 16, then the label), and a picture of the loss and of some digits with what the network read (digits.png).
"""
# tests run this with: --epochs 10 --require 96
import argparse
import json
import os
import sys
import time

import torch
from progress import Progress
from torch import nn
from torch.utils.data import DataLoader, TensorDataset, random_split

SKIPPED = 77  # the exit status by which an example says that it could not run


class Net(nn.Sequential):
    """Two 3 x 3 convolutions with batch norm, a pooling after each, and two linear layers."""

    def __init__(self):
        super().__init__(
            nn.Conv2d(1, 32, 3, padding=1), nn.BatchNorm2d(32), nn.ReLU(), nn.MaxPool2d(2),
            nn.Conv2d(32, 64, 3, padding=1), nn.BatchNorm2d(64), nn.ReLU(), nn.MaxPool2d(2),
            nn.Flatten(), nn.Linear(256, 128), nn.ReLU(), nn.Dropout(0.3), nn.Linear(128, 10))


def load_digits():
    """All digits as a dataset of (image [1, 8, 8] between 0 and 1, label), or an exit that says what is missing."""
    try:
        from sklearn.datasets import load_digits as load
    except ImportError:
        print("the digits come with scikit-learn: pip install -r requirements-demo.txt")
        sys.exit(SKIPPED)
    digits = load()
    return TensorDataset(torch.tensor(digits.data, dtype=torch.float32).view(-1, 1, 8, 8) / 16, torch.tensor(digits.target))


def read(model, digits):
    """Images, labels and what the model reads, of a whole dataset."""
    images, labels = next(iter(DataLoader(digits, batch_size=len(digits))))
    model.eval()
    with torch.no_grad():
        return images, labels, model(images).argmax(dim=1)


def train(model, digits, options):
    """Adam with a one-cycle schedule. Returns the loss of every step."""
    loader = DataLoader(digits, batch_size=options.batch, shuffle=True, drop_last=True)
    optimizer = torch.optim.Adam(model.parameters(), lr=options.lr, weight_decay=1e-4)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, options.lr, epochs=options.epochs, steps_per_epoch=len(loader))
    loss_of, losses, progress = nn.CrossEntropyLoss(label_smoothing=0.05), [], Progress(options.epochs * len(loader))
    model.train()
    for epoch in range(options.epochs):
        for images, labels in loader:
            optimizer.zero_grad()
            loss = loss_of(model(images), labels)
            loss.backward()
            optimizer.step()
            schedule.step()
            losses.append(loss.item())
            progress.update(len(losses), f"epoch {epoch + 1}/{options.epochs} loss {losses[-1]:.4f}")
    progress.close()
    return losses


def draw(path, losses, images, labels, said):
    """The loss curve, and digits with their predictions: the mistakes first."""
    try:
        from matplotlib.figure import Figure
    except ImportError:
        print("no picture: it needs matplotlib (pip install -r requirements-demo.txt)")
        return
    figure = Figure(figsize=(11, 4), layout="constrained")
    curve, grid = figure.subfigures(1, 2)
    axes = curve.subplots()
    axes.plot(losses, linewidth=0.8)
    axes.set(xlabel="step", ylabel="loss", yscale="log", title="training loss")
    order = (said == labels).int().argsort(stable=True)[:24].tolist()
    for axes, i in zip(grid.subplots(4, 6).flat, order):
        axes.imshow(images[i, 0].tolist(), cmap="gray_r")
        axes.set_title(str(said[i].item()) if said[i] == labels[i] else f"{said[i].item()}, is {labels[i].item()}",
                       color="black" if said[i] == labels[i] else "red", fontsize=9)
        axes.axis("off")
    figure.savefig(path, dpi=110)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--epochs", type=int, default=30)
    parser.add_argument("--batch", type=int, default=64)
    parser.add_argument("--lr", type=float, default=5e-3, help="the highest learning rate of the schedule")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--require", type=float, default=98.0, help="fail below this percentage")
    parser.add_argument("--out", default="out", help="folder for digits.pt, digits.csv and digits.png")
    parser.add_argument("--losses", help="write every step's loss to this file, as JSON")
    options = parser.parse_args()
    torch.manual_seed(options.seed)
    digits = load_digits()
    held_out, to_learn = random_split(digits, [len(digits) // 5, len(digits) - len(digits) // 5])
    model = Net()
    weights = sum(parameter.numel() for parameter in model.parameters())
    print(f"{len(to_learn)} digits to learn from, {weights} weights, {torch.__name__} {torch.__version__}", flush=True)
    start = time.monotonic()
    losses = train(model, to_learn, options)
    seconds = time.monotonic() - start

    os.makedirs(options.out, exist_ok=True)
    torch.save(model.state_dict(), os.path.join(options.out, "digits.pt"))
    reloaded = Net()
    reloaded.load_state_dict(torch.load(os.path.join(options.out, "digits.pt")))
    images, labels, said = read(reloaded, held_out)
    assert torch.equal(said, read(model, held_out)[2]), "the reloaded weights read something else"
    with open(os.path.join(options.out, "digits.csv"), "w", encoding="ascii") as file:
        for image, label in [*held_out, *to_learn]:
            file.write(",".join(map(str, [*(image.flatten() * 16).int().tolist(), label.item()])) + "\n")
    draw(os.path.join(options.out, "digits.png"), losses, images, labels, said)
    if options.losses:
        with open(options.losses, "w", encoding="ascii") as file:
            json.dump(losses, file)
    percent = 100 * (said == labels).float().mean().item()
    print(f"accuracy {percent:.1f}% on {len(labels)} held-out digits, {options.epochs} epochs in {seconds:.1f} s")
    return 0 if percent >= options.require else 1


if __name__ == "__main__":
    sys.exit(main())

"""Train a multilayer perceptron on handwritten digits: the main job of `make demo`.

The 1,797 digits (8 x 8 grey values) come with scikit-learn's package, which is used for nothing else. Four fifths are
trained on; the last line tells how many of the held-out fifth are read correctly. `--module torch` runs the very same
program on PyTorch.
"""
# tests run this with: --epochs 12 --require 95
import argparse
import importlib
import sys
import time

SKIPPED = 77  # the exit status by which an example says that it could not run


class Progress:
    """A bar that redraws itself on a terminal, and a plain line now and then elsewhere."""

    def __init__(self, total, stream=sys.stderr, width=30):
        self.total, self.stream, self.width = total, stream, width
        self.live = stream.isatty()
        self.drawn = 0.0
        self.step = max(total // 10, 1)

    def update(self, done, text):
        now = time.monotonic()
        if self.live and (now - self.drawn > 0.05 or done == self.total):
            full = self.width * done // self.total
            self.stream.write(f"\r[{'#' * full}{'.' * (self.width - full)}] {done}/{self.total} {text}\x1b[K")
            self.drawn = now
        elif not self.live and (done % self.step == 0 or done == self.total):
            self.stream.write(f"epoch {done}/{self.total} {text}\n")
        self.stream.flush()

    def close(self):
        if self.live:
            self.stream.write("\n")


def load_digits(torch):
    """The digits as (images between 0 and 1, labels), or an exit that says what is missing."""
    try:
        from sklearn.datasets import load_digits as load
    except ImportError:
        print("the digits come with scikit-learn: pip install -r requirements-demo.txt")
        sys.exit(SKIPPED)
    digits = load()
    images = torch.tensor(digits.data.tolist(), dtype=torch.float32) / 16
    labels = torch.tensor(digits.target.tolist(), dtype=torch.int64)
    return images, labels


def split(torch, images, labels):
    """A shuffled four fifths to train on, and the other fifth."""
    order = torch.randperm(len(labels))
    held_out = len(labels) // 5
    test, train = order[:held_out], order[held_out:]
    return images[train], labels[train], images[test], labels[test]


def build(nn, hidden):
    return nn.Sequential(
        nn.Linear(64, hidden), nn.ReLU(),
        nn.Linear(hidden, hidden), nn.ReLU(),
        nn.Dropout(0.1),
        nn.Linear(hidden, 10))


def accuracy(torch, model, images, labels):
    model.eval()
    with torch.no_grad():
        right = (model(images).argmax(dim=1) == labels).sum().item()
    model.train()
    return right / len(labels)


def train(torch, model, images, labels, options):
    """Plain minibatch descent: shuffle, take a batch, forward, backward, step."""
    loss_of = torch.nn.CrossEntropyLoss()
    optimizer = torch.optim.Adam(model.parameters(), lr=options.lr)
    progress = Progress(options.epochs)
    for epoch in range(1, options.epochs + 1):
        total = 0.0
        for batch in torch.randperm(len(labels)).split(options.batch):
            optimizer.zero_grad()
            loss = loss_of(model(images[batch]), labels[batch])
            loss.backward()
            optimizer.step()
            total += loss.item() * len(batch)
        progress.update(epoch, f"loss {total / len(labels):.4f}")
    progress.close()


def parse():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--epochs", type=int, default=40)
    parser.add_argument("--batch", type=int, default=64)
    parser.add_argument("--lr", type=float, default=2e-3)
    parser.add_argument("--hidden", type=int, default=256)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--require", type=float, default=95.0, help="fail below this percentage")
    parser.add_argument("--module", choices=["ember", "torch"], default="ember")
    return parser.parse_args()


def main():
    options = parse()
    torch = importlib.import_module(options.module)
    torch.manual_seed(options.seed)
    images, labels, test_images, test_labels = split(torch, *load_digits(torch))
    model = build(torch.nn, options.hidden)
    weights = sum(parameter.numel() for parameter in model.parameters())
    print(f"{len(labels)} digits to learn from, {weights} weights, {options.module} {torch.__version__}", flush=True)

    start = time.monotonic()
    train(torch, model, images, labels, options)
    seconds = time.monotonic() - start

    percent = 100 * accuracy(torch, model, test_images, test_labels)
    print(f"accuracy {percent:.1f}% on {len(test_labels)} held-out digits, {options.epochs} epochs in {seconds:.1f} s")
    return 0 if percent >= options.require else 1


if __name__ == "__main__":
    sys.exit(main())

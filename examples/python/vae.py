"""A variational autoencoder of handwritten digits: squeezes 64 grey values into 8 numbers, and draws digits of its own.

Run it with `python -m ember examples/python/vae.py`, or with plain `python` on PyTorch. After D. P. Kingma and M. Welling,
"Auto-Encoding Variational Bayes", 2013. The digits come with scikit-learn's package.
"""
# tests run this with: --steps 20
import argparse
import json
import sys

import torch
import torch.nn.functional as F
from progress import Progress
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

SKIPPED = 77  # the exit status by which an example says that it could not run


class VAE(nn.Module):
    """Encoder to mean and log variance, a draw from that normal, decoder to logits of grey values."""

    def __init__(self, hidden=128, latent=8):
        super().__init__()
        self.latent = latent
        self.encoder = nn.Sequential(nn.Linear(64, hidden), nn.SiLU(), nn.Linear(hidden, 2 * latent))
        self.decoder = nn.Sequential(nn.Linear(latent, hidden), nn.SiLU(), nn.Linear(hidden, 64))

    def forward(self, images):
        mean, log_variance = self.encoder(images).chunk(2, dim=1)
        drawn = mean + torch.randn_like(mean) * (0.5 * log_variance).exp()
        return self.decoder(drawn), mean, log_variance

    @torch.no_grad()
    def draw(self, count):
        return self.decoder(torch.randn(count, self.latent)).sigmoid()


def bound(logits, images, mean, log_variance):
    """The negative evidence lower bound, in nats a digit: reconstruction, and divergence from a standard normal."""
    reconstruction = F.binary_cross_entropy_with_logits(logits, images, reduction="sum")
    divergence = -0.5 * (1 + log_variance - mean.square() - log_variance.exp()).sum()
    return (reconstruction + divergence) / len(images)


def batches(size):
    """Digits without end, shuffled anew each time round."""
    try:
        from sklearn.datasets import load_digits
    except ImportError:
        print("the digits come with scikit-learn: pip install -r requirements-demo.txt")
        sys.exit(SKIPPED)
    images = torch.tensor(load_digits().data, dtype=torch.float32) / 16
    loader = DataLoader(TensorDataset(images), batch_size=size, shuffle=True, drop_last=True)
    while True:
        for batch, in loader:
            yield batch


def show(images):
    """Digits side by side, in text."""
    for row in range(8):
        print("  ".join("".join(" .:-=+*#%@"[int(value * 9.99)] * 2 for value in image[row]) for image in images))


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--steps", type=int, default=600)
    parser.add_argument("--batch", type=int, default=128)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--losses", help="write every step's loss to this file, as JSON")
    options = parser.parse_args()
    torch.manual_seed(options.seed)
    model = VAE()
    optimizer = torch.optim.RMSprop(model.parameters(), lr=1e-3)
    losses, progress = [], Progress(options.steps)
    for step, images in zip(range(1, options.steps + 1), batches(options.batch)):
        logits, mean, log_variance = model(images)
        loss = bound(logits, images, mean, log_variance)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
        progress.update(step, f"loss {losses[-1]:.3f}")
    progress.close()
    show(model.draw(6).view(6, 8, 8).tolist())
    print(f"loss {losses[0]:.2f} -> {losses[-1]:.2f} nats in {options.steps} steps on {torch.__name__} {torch.__version__}")
    if options.losses:
        with open(options.losses, "w", encoding="ascii") as file:
            json.dump(losses, file)


if __name__ == "__main__":
    main()

"""A convolutional network, trained on made-up pictures, as programs do it."""
from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import ember as torch
import ember.nn as nn
import ember.nn.functional as F
from ember import Tensor
from ember.optim.lr_scheduler import StepLR
from ember.utils.data import DataLoader, Dataset, random_split


@dataclass
class Config:
    width: int = 8
    classes: int = 4
    epochs: int = 2
    lr: float = 0.05
    device: torch.device = field(default_factory=lambda: torch.device("cuda" if torch.cuda.is_available() else "cpu"))


class Pictures(Dataset[tuple[Tensor, Tensor]]):
    """Squares whose place says their class."""

    def __init__(self, n: int, classes: int) -> None:
        generator = torch.Generator().manual_seed(1)
        self.labels = torch.randint(0, classes, (n,), generator=generator)
        self.images = 0.1 * torch.randn(n, 1, 12, 12, generator=generator)
        for i, label in enumerate(self.labels.tolist()):
            row, column = 6 * (label // 2), 6 * (label % 2)
            self.images[i, 0, row:row + 6, column:column + 6] += 1.0

    def __len__(self) -> int:
        return self.images.size(0)

    def __getitem__(self, index: int) -> tuple[Tensor, Tensor]:
        return self.images[index], self.labels[index]


class ConvBlock(nn.Module):
    def __init__(self, inputs: int, outputs: int, stride: int = 1) -> None:
        super().__init__()
        self.conv = nn.Conv2d(inputs, outputs, kernel_size=3, stride=stride, padding=1, bias=False)
        self.norm = nn.BatchNorm2d(outputs)
        self.skip: nn.Module = nn.Identity() if inputs == outputs else nn.Conv2d(inputs, outputs, 1, stride=stride)

    def forward(self, x: Tensor) -> Tensor:
        out: Tensor = F.relu(self.norm(self.conv(x)) + self.skip(x), inplace=True)
        return out


class Net(nn.Module):
    def __init__(self, config: Config) -> None:
        super().__init__()
        w = config.width
        self.features = nn.Sequential(ConvBlock(1, w), nn.MaxPool2d(2), ConvBlock(w, 2 * w, stride=2), nn.Dropout2d(0.1))
        self.pool = nn.AdaptiveAvgPool2d((1, 1))
        self.classifier = nn.Linear(2 * w, config.classes)
        for module in self.modules():
            if isinstance(module, nn.Conv2d):
                nn.init.kaiming_normal_(module.weight, nonlinearity="relu")
                if module.bias is not None:
                    nn.init.zeros_(module.bias)

    def forward(self, x: Tensor) -> Tensor:
        x = self.pool(self.features(x))
        logits: Tensor = self.classifier(torch.flatten(x, 1))
        return logits


def train(model: nn.Module, loader: DataLoader[tuple[Tensor, Tensor]], optimizer: torch.optim.Optimizer, config: Config) -> float:
    model.train()
    total = 0.0
    for images, labels in loader:
        images, labels = images.to(config.device, non_blocking=True), labels.to(config.device)
        optimizer.zero_grad(set_to_none=True)
        loss = F.cross_entropy(model(images), labels, label_smoothing=0.05)
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), max_norm=5.0)
        optimizer.step()
        total += loss.item() * images.shape[0]
    return total


@torch.no_grad()
def evaluate(model: nn.Module, loader: DataLoader[tuple[Tensor, Tensor]]) -> tuple[float, Tensor]:
    model.eval()
    correct, seen, confusion = 0, 0, torch.zeros(4, 4, dtype=torch.long)
    for images, labels in loader:
        predicted = model(images).argmax(dim=1)
        correct += int((predicted == labels).sum().item())
        seen += labels.numel()
        for a, b in zip(labels, predicted):
            confusion[a, b] += 1
    return correct / seen, confusion


def main() -> dict[str, Any]:
    torch.manual_seed(0)
    config = Config()
    train_set, test_set = random_split(Pictures(160, config.classes), [128, 32], generator=torch.Generator().manual_seed(0))
    loader = DataLoader(train_set, batch_size=16, shuffle=True, drop_last=True)
    test_loader = DataLoader(test_set, batch_size=32)
    model = Net(config).to(config.device)
    optimizer = torch.optim.SGD(model.parameters(), lr=config.lr, momentum=0.9, weight_decay=1e-4, nesterov=True)
    scheduler = StepLR(optimizer, step_size=1, gamma=0.5)
    losses: list[float] = []
    for _ in range(config.epochs):
        losses.append(train(model, loader, optimizer, config))
        scheduler.step()
    accuracy, confusion = evaluate(model, test_loader)
    parameters = sum(p.numel() for p in model.parameters() if p.requires_grad)
    return {"losses": losses, "accuracy": accuracy, "confusion": confusion, "parameters": parameters, "lr": scheduler.get_last_lr()[0]}


if __name__ == "__main__":
    result = main()
    assert result["losses"][1] < result["losses"][0] and result["confusion"].sum().item() == 32
    print(f"accuracy {result['accuracy']:.2f}")

"""What `make portability` runs under qemu: a small network learns, in float32 and bfloat16, without and with a convolution."""
import torch
from torch import nn

for dtype in (torch.float32, torch.bfloat16):
    torch.manual_seed(0)
    x = torch.randn(32, 1, 8, 8, dtype=dtype)
    y = (x.mean(dim=(1, 2, 3)) > 0).to(torch.int64)
    model = nn.Sequential(nn.Conv2d(1, 4, 3), nn.ReLU(), nn.Flatten(), nn.Linear(144, 16), nn.Tanh(), nn.Linear(16, 2)).to(dtype)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.02)
    losses = []
    for _ in range(25):
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(model(x), y)
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    print(f"{dtype}: loss {losses[0]:.3f} -> {losses[-1]:.3f}")
    assert losses[-1] < losses[0] / 3, losses

"""A program of test_isa.py: results whose bits must not depend on the instruction set, one line a result."""
import sys

import numpy as np
from subject import numpy_of, torch

torch.manual_seed(0)
random = np.random.RandomState(0)


def of(*shape, dtype=torch.float32):
    return torch.tensor(random.uniform(-2, 2, shape).tolist(), dtype=dtype)


def show(name, tensor):
    print(name, numpy_of(tensor).tobytes().hex())


for dtype in (torch.float32, torch.float64, torch.bfloat16, torch.float16):
    for shape in ((7,), (1031,), (37, 129), (129, 37), (5, 3, 67)):
        x = of(*shape, dtype=dtype)
        for layout, t in (("plain", x), ("turned", x.transpose(0, -1)), ("gaps", x[..., ::2])):
            head = f"{dtype} {shape} {layout}"
            for name in ("sum", "mean", "prod", "amax", "amin", "std", "var"):
                show(f"{head} {name}", getattr(t, name)())
                show(f"{head} {name} 0", getattr(t, name)(0))
                show(f"{head} {name} -1", getattr(t, name)(-1))
            show(f"{head} argmax", t.argmax(0))
            show(f"{head} any", (t > 1.9).any(0))
print("done", file=sys.stderr)

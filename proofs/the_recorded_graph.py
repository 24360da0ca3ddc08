"""Proof 2: the graph behind `loss` stands before backward() is called, with what each record saved.

    python proofs/the_recorded_graph.py
"""
import ember
from ember import nn


def saved(node):
    """What a record keeps for its derivative: [(name, shape or value)], and the bytes of the tensors."""
    kept, size = [], 0
    for name in dir(node):
        if name.startswith("_saved_"):
            value = getattr(node, name)
            if isinstance(value, ember.Tensor):
                kept.append(f"{name[7:]} {list(value.shape)}")
                size += value.numel() * value.element_size()
            elif value is not None:
                kept.append(f"{name[7:]}={value}")
    return kept, size


def walk(node, depth, seen):
    """Print the records below node, each once. Returns (records, saved bytes)."""
    if node in seen:
        print("  " * depth + f"{node.name()} (above)")
        return 0, 0
    seen.add(node)
    kept, size = saved(node)
    print("  " * depth + node.name() + (f"   saved: {', '.join(kept)}" if kept else ""))
    total = [1, size]
    for following, _ in node.next_functions:
        if following is not None:
            more = walk(following, depth + 1, seen)
            total = [total[0] + more[0], total[1] + more[1]]
    return total


def main():
    ember.manual_seed(0)
    model = nn.Sequential(nn.Linear(128, 256), nn.ReLU(), nn.Linear(256, 10))
    x = ember.randn(64, 128)
    loss = model(x).sum()
    print("x was made, not computed, so nothing is recorded about it: x.grad_fn =", x.grad_fn)
    count, size = walk(loss.grad_fn, 0, set())
    print(f"{count} records, {size:,} bytes saved by them")
    assert model[0].weight.grad is None
    loss.backward()
    print("after backward() the walk has ended at the leaves: model[0].weight.grad is", list(model[0].weight.grad.shape))
    try:
        loss.backward()
    except RuntimeError as error:
        print("and what was saved is gone, so a second walk says:", str(error).split(" (")[0])
    assert loss.grad_fn.name() == "SumBackward0" and count == 10


if __name__ == "__main__":
    main()

"""Proof 5: shared bytes, a history rewritten, a layer removed, a number absorbed, the list counted.

    python proofs/the_small_ideas.py
"""
import ember


def windows():
    """A tensor is a window: the same bytes under other strides; some windows cannot be described."""
    flat = ember.arange(6.0)
    table = flat.view(2, 3)
    table[1, 1] = 40.0
    print("one block of bytes:", flat.data_ptr() == table.data_ptr(), "- a write through the view shows:", flat.tolist())
    print("strides of the view", table.stride(), "and of its transpose", table.t().stride())
    try:
        table.t().view(-1)
    except RuntimeError as error:
        print("view refuses what no strides can say:", str(error).split(".")[0])
    copied = table.t().reshape(-1)
    print("reshape copies instead:", copied.data_ptr() != flat.data_ptr(), copied.tolist())
    assert flat[4] == 40 and copied.data_ptr() != flat.data_ptr() and table.t().stride() == (1, 3)


def history():
    """Writing in place appends to the record, and writing into a view tells its base."""
    leaf = ember.ones(2, 2, requires_grad=True)
    y = leaf * 3
    names = [type(y.grad_fn).__name__]
    y.add_(1)
    names.append(type(y.grad_fn).__name__)
    y[0].mul_(5)
    names.append(type(y.grad_fn).__name__)
    print("the record of y:", " -> ".join(names))
    y.sum().backward()
    print("and the gradient knows of all three:", leaf.grad.tolist())
    assert names == ["MulBackward0", "AddBackward0", "CopySlices"] and leaf.grad.tolist() == [[15, 15], [3, 3]]


def layers():
    """no_grad takes one layer off the stack; nothing else changes."""
    leaf = ember.ones(1, requires_grad=True)
    with ember.no_grad():
        quiet = leaf * 2
    print("inside no_grad:", quiet.grad_fn, "- outside:", (leaf * 2).grad_fn.name())
    assert quiet.grad_fn is None and quiet.item() == (leaf * 2).item()


def absorption():
    """float32 keeps 24 bits: near 2 ** 27 its neighbours stand 16 apart, and a one falls between."""
    large = ember.tensor(2.0 ** 27)
    print("(2 ** 27 + 1) - 2 ** 27 in float32:", ((large + 1) - large).item(), "- in float64:",
          ((large.double() + 1) - large.double()).item())
    many = ember.full((2 ** 20,), 0.1)
    print("a million times 0.1, summed in a tree:", many.sum().item())
    assert ((large + 1) - large).item() == 0


def the_list():
    """Every operator is a row; the build turns rows into entries of one table."""
    names = ember._C._dispatch_get_all_op_names()
    print("registered operator names:", len(names), "of which", len({name.split(".")[0] for name in names}),
          "without counting overloads")
    assert "aten::add.Tensor" in names


def main():
    for proof in (windows, history, layers, absorption, the_list):
        print(f"\n{proof.__doc__.splitlines()[0]}")
        proof()


if __name__ == "__main__":
    main()

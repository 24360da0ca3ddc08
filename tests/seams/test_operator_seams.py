"""Seams between arithmetic, layouts and memory."""
import pytest
from seam import IS_EMBER, torch


def test_bf16_add_alpha_rounds_once():
    a = torch.tensor([1.0], dtype=torch.bfloat16)
    b = torch.tensor([3.0], dtype=torch.bfloat16)
    # s*b = 1.0098, which bf16 rounds to 1.0078125; the exact sum 2.0098
    # rounds to 2.015625, a sum of rounded parts to 2.0.
    got = torch.add(a, b, alpha=0.3366)
    want = (a.float() + 0.3366 * b.float()).to(torch.bfloat16)
    twice = a + (b * 0.3366).to(torch.bfloat16)
    if IS_EMBER:  # PyTorch rounds alpha to bf16 first
        assert got.item() == want.item()
    assert twice.item() != want.item(), "the example does not tell one rounding from two"


def test_integer_division_by_zero_and_overflow():
    a = torch.tensor([1, 2, 3])
    z = torch.tensor([1, 0, 1])
    for op in ("floor_divide", "remainder"):
        with pytest.raises(RuntimeError, match="ZeroDivisionError"):
            getattr(torch, op)(a, z)
        with pytest.raises(RuntimeError, match="ZeroDivisionError"):
            getattr(torch, op)(a.to(torch.int32), z.to(torch.int32))
    lowest = torch.tensor([-2 ** 63, 5])
    minus = torch.tensor([-1, -1])
    assert torch.remainder(lowest, minus).tolist() == [0, 0]
    if IS_EMBER:  # the oracle dies of SIGFPE here
        assert torch.floor_divide(lowest, minus).tolist() == [-2 ** 63, -5]
        low8 = torch.tensor([-128, 5], dtype=torch.int8)
        assert torch.floor_divide(low8, torch.tensor([-1, -1], dtype=torch.int8)).tolist() == [-128, -5]


def test_out_overlapping_input():
    x = torch.arange(6.)
    torch.mul(x, 2, out=x)  # exactly the same window is fine
    assert x.tolist() == [0., 2., 4., 6., 8., 10.]
    with pytest.raises(RuntimeError, match="unsupported operation"):
        torch.mul(x[:-1], 2, out=x[1:])
    assert x.tolist() == [0., 2., 4., 6., 8., 10.]
    m = torch.arange(4.).reshape(2, 2)
    want = torch.mm(m, m.clone())
    if IS_EMBER:  # PyTorch leaves this undefined; Ember computes through a temporary
        torch.mm(m, m, out=m)
        assert m.tolist() == want.tolist()
    with pytest.raises(RuntimeError):
        torch.add(torch.ones(3), 1, out=torch.zeros(1).expand(3))


def test_output_strides_of_permuted_inputs():
    a = torch.ones(2, 3, 4)
    p = a.permute(2, 0, 1)
    assert (p + p).stride() == p.stride() == (1, 12, 4)
    assert (p + torch.ones(4, 2, 3)).stride() == (1, 12, 4)
    assert (torch.ones(4, 2, 3) + p).stride() == (6, 3, 1)
    assert p.exp().stride() == (1, 12, 4)
    assert torch.ones(3, 1).expand(3, 4).exp().stride() == (4, 1)
    assert (torch.ones(3).as_strided((3, 2), (1, 0)) +
     1).stride() == torch.empty_like(torch.ones(3).as_strided((3, 2), (1, 0))).stride()


def test_sums_equal_for_any_thread_count():
    torch.manual_seed(0)
    before = torch.get_num_threads()
    x = torch.randn(1_000_003)
    m = torch.randn(517, 1031)
    seen = []
    try:
        for n in (1, 2):
            torch.set_num_threads(n)
            seen.append([x.sum().item(), m.sum(0).tolist(), m.sum(1).tolist(), x.mean().item(), m.t().sum(0).tolist()] +
                        ([(m @ m.t()).sum().item(), torch.softmax(m, 1).sum().item()] if IS_EMBER else []))
    finally:
        torch.set_num_threads(before)
    if IS_EMBER:
        assert seen[0] == seen[1]

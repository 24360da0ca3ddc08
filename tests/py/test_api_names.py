"""PyTorch's names that ordinary programs use every day exist, and tests use them (`make coverage` counts all)."""
import os
import sys

import ember as torch
import pytest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "tools"))
import coverage  # noqa: E402

SURVEY = coverage.survey()


@pytest.mark.parametrize("space", ["torch", "torch.Tensor", "torch.nn.functional", "torch.nn", "torch.nn.init", "torch.optim",
                                   "torch.optim.lr_scheduler", "torch.utils.data", "torch.autograd", "torch.amp", "torch.linalg"])
def test_every_tier_1_name_exists_and_is_tested(space):
    rows = [row for row in SURVEY if row[0] == space and row[2] == 1]
    assert rows
    assert [name for _, name, _, there, _ in rows if not there] == []
    assert [name for _, name, _, _, tested in rows if not tested] == []


def test_names_that_no_other_test_calls():
    x = torch.zeros(3, 2)
    x.index_add_(0, torch.tensor([0, 2, 0]), torch.ones(3, 2))
    assert x.tolist() == [[2, 2], [0, 0], [1, 1]]
    x.scatter_add_(0, torch.tensor([[1, 0]]), torch.tensor([[5.0, 7.0]]))
    assert x.tolist() == [[2, 9], [5, 0], [1, 1]]
    torch.nn.init.zeros_(x), torch.nn.init.ones_(x[0])
    assert x.tolist() == [[1, 1], [0, 0], [0, 0]]
    assert issubclass(torch.optim.lr_scheduler.StepLR, torch.optim.lr_scheduler.LRScheduler)
    assert torch.nn.Conv3d(1, 2, 2)(torch.ones(1, 1, 3, 3, 3)).shape == (1, 2, 2, 2, 2)
    assert torch.nn.AvgPool2d(2)(torch.arange(4.0).view(1, 2, 2)).item() == 1.5
    assert torch.nn.AdaptiveAvgPool2d(1)(torch.arange(4.0).view(1, 2, 2)).item() == 1.5
    assert torch.allclose(torch.nn.RMSNorm(2)(torch.tensor([3.0, 4.0])), torch.tensor([3.0, 4.0]) / 12.5 ** 0.5)


def test_orthogonal_and_dirac():
    torch.manual_seed(3)
    wide = torch.nn.init.orthogonal_(torch.empty(2, 3), gain=2)
    assert torch.allclose(wide, torch.tensor(ORTHOGONAL), atol=1e-5)
    assert torch.allclose(wide @ wide.t(), 4 * torch.eye(2), atol=1e-5)
    tall = torch.nn.init.orthogonal_(torch.empty(4, 2))
    assert torch.allclose(tall.t() @ tall, torch.eye(2), atol=1e-5)
    kernel = torch.nn.init.dirac_(torch.empty(4, 2, 3), groups=2)
    assert kernel.nonzero().tolist() == [[0, 0, 1], [1, 1, 1], [2, 0, 1], [3, 1, 1]]
    for bad in (lambda: torch.nn.init.orthogonal_(torch.empty(2)), lambda: torch.nn.init.dirac_(torch.empty(2, 2)),
                lambda: torch.nn.init.dirac_(torch.empty(3, 2, 2), groups=2)):
        with pytest.raises(ValueError):
            bad()


# PyTorch 2.13, manual_seed(3), orthogonal_(empty(2, 3), gain=2)
ORTHOGONAL = [[1.9429, 0.422873, 0.215213], [0.151299, 0.307647, -1.970396]]

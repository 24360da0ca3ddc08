"""What a first afternoon with Ember found."""

import subprocess
import sys

import pytest

import ember as torch


def test_first_pickle_in_the_process_may_be_multiprocessings():
    # Its pickler copies copyreg's table before it begins, so a reducer registered on the way comes too late.
    code = ("import ember\nfrom multiprocessing.reduction import ForkingPickler\nimport pickle\n"
            "print(pickle.loads(ForkingPickler.dumps(ember.arange(3))).tolist())")
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    assert done.stdout == "[0, 1, 2]\n", done.stderr


def test_hash_is_id():
    t = torch.ones(1)
    assert hash(t) == id(t)


@pytest.mark.parametrize("form", ["scatter", "scatter_add", "gather"])
def test_int32_indices(form):
    base, index = torch.arange(4.0, requires_grad=True), torch.tensor([2, 0], dtype=torch.int32)
    more = (torch.tensor([5.0, 6.0]),) if form != "gather" else ()
    got, want = (getattr(base, form)(0, i, *more) for i in (index, index.long()))
    assert torch.equal(got, want)
    grads = [torch.autograd.grad(t.sum(), base)[0] for t in (got, want)]
    assert torch.equal(*grads)


def test_broadcast_tensors_names_the_sizes():
    with pytest.raises(RuntimeError, match=r"The size of tensor a \(2\) must match the size of tensor b \(3\) at "
                                           r"non-singleton dimension 0"):
        torch.broadcast_tensors(torch.ones(2), torch.ones(3))
    assert [t.shape for t in torch.broadcast_tensors(torch.ones(2, 1), torch.ones(3), torch.ones(4, 1, 1))] \
        == [(4, 2, 3)] * 3
    assert torch.broadcast_tensors(torch.ones(0), torch.ones(1))[1].shape == (0,)


def test_cudnn_is_a_module_and_files_are_absolute(tmp_path):
    """`import torch.backends.cudnn as cudnn` heads many programs; __file__ survives a change of folder."""
    program = tmp_path / "program.py"
    program.write_text("import os\nimport torch.backends.cudnn as cudnn\ncudnn.benchmark = True\nos.chdir('/')\n"
                       "print(os.path.abspath(__file__))\n")
    done = subprocess.run([sys.executable, "-m", "ember", "program.py"], cwd=tmp_path, capture_output=True, text=True)
    assert done.stdout == f"{program}\n", done.stderr


def test_truncated_normal_draws_as_pytorch():
    torch.manual_seed(7)
    drawn = torch.nn.init.trunc_normal_(torch.empty(2, 2))
    assert [round(v, 4) for v in drawn.flatten().tolist()] == [-0.1468, 0.7861, 0.9468, -1.1143]
    far = torch.nn.init.trunc_normal_(torch.empty(4), 0, 1, 9, 10)
    assert ((far >= 9) & (far <= 10)).all()


def test_binary_losses_refuse_integer_targets():
    for loss, words in ((torch.nn.functional.binary_cross_entropy_with_logits, "result type Float can't be cast"),
                        (torch.nn.functional.binary_cross_entropy, "Found dtype Long but expected Float")):
        with pytest.raises(RuntimeError, match=words):
            loss(torch.full((3,), 0.5), torch.ones(3, dtype=torch.int64))

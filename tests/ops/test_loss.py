"""Losses, distances, bags and activations beyond the table: draws, in-place gradients, options, messages, layers."""
import pytest
from subject import IS_EMBER, torch

F = __import__("ember.nn.functional" if IS_EMBER else "torch.nn.functional", fromlist=["x"])
nn = __import__("ember.nn" if IS_EMBER else "torch.nn", fromlist=["x"])


def close(a, b, tolerance=1e-5):
    b = torch.as_tensor(b, dtype=a.dtype)
    assert a.shape == b.shape and ((a - b).abs() <= tolerance * (1 + b.abs())).all().item(), (a, b)


def test_rrelu_draws_pytorchs_slopes():
    torch.manual_seed(0)
    close(F.rrelu(-torch.ones(6), training=True), [-0.3271, -0.2725, -0.2207, -0.3168, -0.2594, -0.2898], 1e-3)
    torch.manual_seed(0)
    close(F.rrelu(torch.tensor([-1.0, 1, -1, 1, 0]), training=True), [-0.3271, 1, -0.2725, 1, 0], 1e-3)
    torch.manual_seed(0)
    x = -torch.ones(6, requires_grad=True)
    y = F.rrelu(x, training=True)
    close(torch.autograd.grad(y.sum(), x)[0], -y.detach())
    torch.manual_seed(0)
    z = F.rrelu_(x * 1, training=True)
    assert torch.equal(y, z) and z.grad_fn.name() == "RreluWithNoiseBackward1"


def test_gumbel_softmax_is_one_hot_with_a_soft_gradient():
    torch.manual_seed(0)
    logits = torch.randn(5, 4, requires_grad=True)
    y = F.gumbel_softmax(logits, hard=True)
    close(y.detach().sum(1), [1.0] * 5)
    assert sorted(set(round(v, 4) for v in y.detach().flatten().tolist())) == [0.0, 1.0]
    assert torch.autograd.grad((y * torch.arange(4.0)).sum(), logits)[0].abs().sum() > 0


@pytest.mark.parametrize("name, args", [("elu_", (0.7,)), ("leaky_relu_", (0.2,)), ("celu_", (0.7,)), ("selu_", ()),
                                        ("rrelu_", ())])
def test_in_place_gradients_come_from_the_result(name, args):
    x = (torch.arange(8.0, dtype=torch.float64) - 3.5).requires_grad_()
    y = getattr(F, name)(x * 1, *args)
    want = torch.autograd.grad(getattr(F, name[:-1])(x, *args).sum(), x)[0]
    close(torch.autograd.grad(y.sum(), x)[0], want, 1e-6)


def test_in_place_with_a_negative_slope_has_no_gradient():
    x = torch.ones(3, requires_grad=True)
    with pytest.raises(RuntimeError, match="In-place leakyReLu backward calculation is triggered with a negative slope"):
        F.leaky_relu_(x * 1, -0.2).sum().backward()


def test_ctc_gradient_through_log_softmax():
    torch.manual_seed(0)
    logits = torch.randn(6, 2, 4, dtype=torch.float64, requires_grad=True)
    targets = torch.tensor([[1, 2, 2], [3, 1, 0]])

    def loss(x, reduction):
        return F.ctc_loss(x.log_softmax(2), targets, (6, 5), (3, 2), reduction=reduction)
    for reduction in ("none", "mean", "sum"):
        assert torch.autograd.gradcheck(lambda x, k=reduction: loss(x, k), (logits,))


def test_ctc_shapes_and_infinities():
    lp = torch.randn(5, 2, 4).log_softmax(2)
    assert F.ctc_loss(lp[:, 0], torch.tensor([1, 2]), torch.tensor(5), torch.tensor(2), reduction="none").shape == ()
    packed = F.ctc_loss(lp, torch.tensor([1, 2, 3]), (5, 5), (2, 1), reduction="none")
    padded = F.ctc_loss(lp, torch.tensor([[1, 2], [3, 0]]), torch.tensor([5, 5]), torch.tensor([2, 1]), reduction="none")
    assert torch.equal(packed, padded)
    x = lp.clone().requires_grad_()
    short = F.ctc_loss(x, torch.ones(2, 4).long(), (5, 5), (4, 1), reduction="none", zero_infinity=True)
    assert short[0].item() == 0 and short[1].item() > 0
    assert torch.isfinite(torch.autograd.grad(short.sum(), x)[0]).all()
    assert F.ctc_loss(lp, torch.ones(2, 2).long(), (0, 0), (1, 0), reduction="none").tolist() == [float("inf"), 0.0]


def test_bags_of_rows_and_of_offsets_agree():
    w = torch.randn(6, 3, dtype=torch.float64, requires_grad=True)
    ids = torch.tensor([[0, 1, 5], [2, 2, 4]])
    for mode in ("sum", "mean", "max"):
        a = F.embedding_bag(ids, w, mode=mode)
        b = F.embedding_bag(ids.flatten(), w, torch.tensor([0, 3]), mode=mode)
        rows = w[ids]
        want = rows.max(1)[0] if mode == "max" else rows.sum(1) / (3 if mode == "mean" else 1)
        close(a, want.detach(), 1e-12)
        assert torch.equal(a, b)
        g = torch.randn(2, 3, dtype=torch.float64)
        close(torch.autograd.grad(a, w, g)[0], torch.autograd.grad(want, w, g)[0], 1e-12)


def test_bag_options():
    w = torch.randn(6, 3, dtype=torch.float64, requires_grad=True)
    ids, s = torch.tensor([[0, 1, 5], [2, 2, 4]]), torch.rand(2, 3, dtype=torch.float64, requires_grad=True)
    y = F.embedding_bag(ids, w, mode="sum", per_sample_weights=s, padding_idx=2)
    want = (w[ids] * (s * (ids != 2)).unsqueeze(2)).sum(1)
    close(y, want.detach(), 1e-12)
    for a, b in zip(torch.autograd.grad(y.sum(), [w, s]), torch.autograd.grad(want.sum(), [w, s])):
        close(a, b, 1e-12)
    scaled = torch.autograd.grad(F.embedding_bag(ids, w, mode="sum", scale_grad_by_freq=True).sum(), w)[0]
    close(scaled[:4, 0], [1, 1, 1, 0])  # PyTorch halves row 4 too, which is there once
    assert torch.equal(F.embedding_bag(ids.flatten(), w, torch.tensor([0, 3, 3, 6]), include_last_offset=True)[1], torch.zeros(3))
    layer = nn.EmbeddingBag(6, 3, padding_idx=1, max_norm=0.5, mode="max")
    assert repr(layer) == "EmbeddingBag(6, 3, max_norm=0.5, mode='max', padding_idx=1)"
    assert layer(ids).shape == (2, 3) and layer.weight[[0, 2, 4, 5]].norm(dim=1).max().item() < 0.5 + 1e-5


def test_cosine_similarity_of_nothing_is_zero():
    x = torch.zeros(3, requires_grad=True)
    y = F.cosine_similarity(x, torch.ones(3), 0)
    assert y.item() == 0 and torch.isfinite(torch.autograd.grad(y, x)[0]).all()


def test_gaussian_nll_takes_variances_of_several_shapes():
    x, y = torch.randn(2, 3), torch.randn(2, 3)
    want = 0.5 * (torch.tensor(2.0).log() + (x - y) ** 2 / 2)
    for var in (2.0, torch.full((2, 3), 2.0), torch.full((2, 1), 2.0), torch.full((2,), 2.0)):
        close(F.gaussian_nll_loss(x, y, var, reduction="none"), want)


def test_adaptive_softmax_is_a_distribution():
    torch.manual_seed(0)
    layer = nn.AdaptiveLogSoftmaxWithLoss(8, 20, [5, 12], div_value=2.0)
    x, t = torch.randn(7, 8), torch.tensor([0, 4, 5, 11, 12, 19, 3])
    full = layer.log_prob(x)
    close(full.exp().sum(1), [1.0] * 7)
    output, loss = layer(x, t)
    close(output, full.gather(1, t.unsqueeze(1)).squeeze(1).detach())
    close(loss, (-output).mean().detach())
    assert torch.equal(layer.predict(x), full.argmax(1))
    assert [tuple(p.shape) for p in layer.parameters()] == [(7, 8), (4, 8), (7, 4), (2, 8), (8, 2)]


LAYERS = [
    (lambda: nn.PoissonNLLLoss(full=True), lambda x, y: (x, y.abs())), (lambda: nn.HingeEmbeddingLoss(), lambda x, y: (x, y.sign())),
    (lambda: nn.MultiLabelMarginLoss(), lambda x, y: (x, torch.tensor([[1, -1, 0, 2], [0, 1, 2, 3], [3, -1, 0, 1]]))),
    (lambda: nn.SoftMarginLoss(), lambda x, y: (x, y.sign())),
    (lambda: nn.MultiLabelSoftMarginLoss(torch.ones(4)), lambda x, y: (x, (y > 0).float())),
    (lambda: nn.CosineEmbeddingLoss(0.1), lambda x, y: (x, y, torch.tensor([1.0, -1, 1]))),
    (lambda: nn.MarginRankingLoss(0.1), lambda x, y: (x, y, y.sign())),
    (lambda: nn.MultiMarginLoss(p=2, weight=torch.ones(4)), lambda x, y: (x, torch.tensor([0, 3, 1]))),
    (lambda: nn.TripletMarginLoss(swap=True), lambda x, y: (x, y, x + 1)),
    (lambda: nn.TripletMarginWithDistanceLoss(distance_function=nn.PairwiseDistance(1.0)), lambda x, y: (x, y, x + 1)),
    (lambda: nn.GaussianNLLLoss(full=True), lambda x, y: (x, y, y.abs() + 0.1)), (lambda: nn.CosineSimilarity(), lambda x, y: (x, y)),
]
VALUES = [1.25576, 0.5, 0.375, 0.79517, 0.79517, 0.35516, 0.82778, 1.3125, 0.81904, 0.38889, 1.49452, 0.53445]


@pytest.mark.parametrize("number", range(len(LAYERS)))
def test_layer(number):
    make, given = LAYERS[number]
    x = (torch.arange(12.0) * 7 % 5 - 2).reshape(3, 4) / 2
    y = (torch.arange(12.0) * 5 % 7 - 3.5).reshape(3, 4) / 3
    value = make()(*given(x, y)).sum()
    assert abs(value.item() - VALUES[number]) < 1e-4


BAD = [
    (lambda x: F.multi_margin_loss(x, torch.tensor([0, 5])), RuntimeError, "target out of range"),
    (lambda x: F.multi_margin_loss(x, torch.tensor([0, 1]), p=3), ValueError, "only p == 1 and p == 2 supported"),
    (lambda x: F.multi_margin_loss(x, torch.tensor([0, 1, 2])), RuntimeError, "multi_margin_loss: target tensor should be 1-D"),
    (lambda x: F.multilabel_margin_loss(x, torch.full((2, 3), 5)), RuntimeError, "argument #2 'target' is out of range"),
    (lambda x: F.triplet_margin_loss(x[0], x, x), RuntimeError, "The anchor, positive, and negative tensors are expected"),
    (lambda x: F.triplet_margin_loss(x, x, x, margin=0), ValueError, "margin must be greater than 0, got 0"),
    (lambda x: F.cosine_embedding_loss(x, x, torch.ones(2, 1)), RuntimeError, "0D or 1D target tensor expected"),
    (lambda x: F.cosine_similarity(x.int(), x.int()), RuntimeError, "expected common dtype to be floating point, yet"),
    (lambda x: F.margin_ranking_loss(x, x[0], x), RuntimeError, "margin_ranking_loss : All input tensors should have same"),
    (lambda x: F.poisson_nll_loss(x, x, reduction="bad"), ValueError, "bad is not a valid value for reduction"),
    (lambda x: F.gaussian_nll_loss(x, x, -x.abs()), ValueError, "var has negative entry/entries"),
    (lambda x: F.gaussian_nll_loss(x, x, torch.ones(4)), ValueError, "var is of incorrect size"),
    (lambda x: F.smooth_l1_loss(x, x, beta=-1.0), RuntimeError, "smooth_l1_loss does not support negative values for beta."),
    (lambda x: F.huber_loss(x, x, delta=0.0), RuntimeError, "huber_loss does not support non-positive values for delta."),
    (lambda x: F.ctc_loss(x.reshape(1, 2, 3), torch.ones(2, 1).long(), (2, 1), (1, 1)), RuntimeError,
     "Expected input_lengths to have value at most 1, but got value 2"),
    (lambda x: F.ctc_loss(x.reshape(1, 2, 3), torch.ones(3).long(), (1, 1), (1, 1)), RuntimeError,
     "Expected tensor to have size 2 at dimension 0, but got size 3 for argument #2 'targets'"),
    (lambda x: F.ctc_loss(x.reshape(1, 2, 3), torch.ones(2, 1).long(), (1, 1), (1, 1), blank=3), RuntimeError,
     "blank must be in label range"),
    (lambda x: F.embedding_bag(torch.tensor([7]), x, torch.tensor([0])), RuntimeError, "Index 0 of input takes value 7 which"),
    (lambda x: F.embedding_bag(torch.tensor([0, 1]), x, torch.tensor([1])), RuntimeError, "offsets[0] has to be 0, i.e., the"),
    (lambda x: F.embedding_bag(torch.tensor([0, 1]), x, torch.tensor([0, 3])), RuntimeError, "offsets[-1] can not be greater"),
    (lambda x: F.embedding_bag(torch.tensor([0, 1]), x), ValueError, "offsets has to be a 1D Tensor but got None"),
    (lambda x: F.embedding_bag(torch.tensor([0, 1]), x, torch.tensor([0]), mode="bad"), ValueError, "mode has to be one of"),
    (lambda x: torch.embedding_renorm_(x, torch.tensor([9]), 1.0, 2.0), IndexError, "select(): index 9 out of range"),
    (lambda x: F.glu(x), RuntimeError, "Halving dimension must be even, but dimension 1 is size 3"),
    (lambda x: F.prelu(x, torch.ones(2)), RuntimeError, "Mismatch of parameter numbers and input channel size."),
    (lambda x: F.prelu(x, torch.ones(1, 3)), RuntimeError, "prelu: Expected `weight` to be a scalar or 1D tensor"),
    (lambda x: F.rrelu(x, 0.5, 0.2), RuntimeError, "Lower bound should be less than or equal to the upper bound"),
    (lambda x: F.softshrink(x, -1), RuntimeError, "lambda must be in range [0, 3.40282e+38] for input dtype Float, but found -1"),
    (lambda x: F.celu(x, 0), RuntimeError, "ZeroDivisionError: alpha cannot be 0 for CELU"),
    (lambda x: F.mish(x.int()), NotImplementedError, "\"mish_cpu\" not implemented for 'Int'"),
    (lambda x: nn.MultiMarginLoss(p=3), ValueError, "only p == 1 and p == 2 supported"),
    (lambda x: nn.AdaptiveLogSoftmaxWithLoss(4, 10, [5, 2]), ValueError, "cutoffs should be a sequence of unique, positive"),
]


@pytest.mark.parametrize("number", range(len(BAD)))
def test_bad_input(number):
    call, error, words = BAD[number]
    with pytest.raises(error) as caught:
        call(torch.randn(2, 3))
    assert str(caught.value).startswith(words)


@pytest.mark.skipif(not IS_EMBER, reason="PyTorch reads past its classes")
def test_ctc_refuses_labels_that_no_class_has():
    with pytest.raises(RuntimeError, match="target 7 is out of range for 4 classes"):
        F.ctc_loss(torch.zeros(5, 1, 4), torch.tensor([[7]]), (5,), (1,))


@pytest.mark.skipif(not IS_EMBER, reason="PyTorch answers with an assertion of its own")
def test_bags_refuse_offsets_that_decrease():
    with pytest.raises(RuntimeError, match="offsets must not decrease"):
        F.embedding_bag(torch.tensor([0, 1, 2]), torch.ones(5, 3), torch.tensor([0, 3, 2]))


def test_lazy_norms_become_their_layers():
    layer = nn.LazyBatchNorm2d(momentum=0.2)
    y = layer(torch.randn(2, 3, 4, 4))
    assert type(layer) is nn.BatchNorm2d and layer.num_features == 3 and y.shape == (2, 3, 4, 4)
    layer = nn.LazyInstanceNorm1d(affine=True, track_running_stats=True)
    layer(torch.randn(2, 5, 4))
    assert type(layer) is nn.InstanceNorm1d and list(layer.state_dict())[:3] == ["weight", "bias", "running_mean"]


def test_gradient_of_binary_cross_entropy_near_one():
    x = torch.tensor([1 - 2.0 ** -20], requires_grad=True)
    torch.nn.functional.binary_cross_entropy(x, torch.tensor([0.0])).backward()
    assert x.grad.item() == 2.0 ** 20  # x / (x (1 - x)): 1 - x is exact, x - x x is not

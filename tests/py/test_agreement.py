"""What a PyTorch user can see of views, layouts, casts and out=, beside PyTorch's own answers."""

import os
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import golden_util
from golden_util import Cases, warned

cases = Cases(__file__)


def raises(fn, *args, **kwargs):
    """Class and first line of the message: Ember's second line names the operator."""
    return golden_util.raises(fn, *args, **kwargs).split("\n")[0]


def look(t):
    return [t, list(t.stride()), t.storage_offset()]


# ---- views in place: the window moves, the bytes stay ----------------------------------------------------------


@cases.add()
def views_in_place(T):
    x = T.arange(6.0).reshape(1, 2, 3)
    out = []
    for name, args in (("squeeze_", ()), ("squeeze_", (0,)), ("squeeze_", ((0, 1),)), ("unsqueeze_", (1,)),
                       ("transpose_", (1, 2)), ("swapaxes_", (0, 2)), ("swapdims_", (0, -1)),
                       ("as_strided_", ((2,), (2,), 1))):
        t = x.clone()
        same = getattr(t, name)(*args) is t
        out.append([name, look(t), t._version, same])
    flat = T.arange(6.0).reshape(2, 3)
    flat.t_()
    return [out, look(flat), raises(T.ones(2, 2, 2).t_).split(":")[0], raises(T.ones(3).squeeze_, 4)]


@cases.add()
def views_in_place_have_history(T):
    out = []
    for name, args in (("squeeze_", ()), ("squeeze_", (0,)), ("squeeze_", ((0,),)), ("unsqueeze_", (0,)),
                       ("transpose_", (0, 1)), ("as_strided_", ((2,), (1,), 1))):
        x = T.arange(6.0).reshape(1, 2, 3).requires_grad_()
        y = x * 2
        getattr(y, name)(*args)
        (y * y).sum().backward()
        out.append([type(y.grad_fn).__name__, x.grad, y._version])
    x = T.arange(6.0).reshape(2, 3).requires_grad_()
    base = x * 1
    view = base[:, 1:]
    view.t_()
    before = [type(base.grad_fn).__name__, type(view.grad_fn).__name__, view._base is base]
    (view * T.arange(4.0).reshape(2, 2)).sum().backward(retain_graph=True)
    first = x.grad.clone()
    view.mul_(3)  # a write through the moved window reaches the base where it should
    (base * base).sum().backward()
    return [out, before, first, x.grad, base, raises(T.ones(2, 3, requires_grad=True).t_).split(":")[0]]


@cases.add()
def view_of_a_dtype_view_in_place(T):
    x = T.arange(8.0, dtype=T.float64).requires_grad_()
    base = x * 1
    pairs = T.view_as_complex(base.view(4, 2))
    grid = pairs.view(2, 2)
    grid.t_()
    grid.mul_(2)
    (base * T.arange(8.0)).sum().backward()
    return [grid, base, x.grad]


# ---- layouts ---------------------------------------------------------------------------------------------------


@cases.add()
def layouts_of_results(T):
    x = T.arange(60.0).reshape(3, 4, 5)
    last = T.zeros(2, 3, 4, 5).contiguous(memory_format=T.channels_last)
    mask = T.tensor([True, False, True, True, False])
    picked = [x.permute(2, 0, 1)[T.tensor([0, 3])], x.permute(2, 1, 0)[mask], x.transpose(0, 2)[:, T.tensor([1, 0, 2])],
              x.permute(1, 2, 0)[T.tensor([[0, 1], [2, 3]]), :, T.tensor([0, 2])], x[:, mask.nonzero()[:2, 0]]]
    return [[look(t) for t in picked], list(T.cat([last, last]).stride()), list(T.cat([last, last[:, :1]], 1).stride()),
            list(T.cat([last, T.zeros(2, 3, 4, 5)]).stride()), list(T.tensor(1.0).expand(1, 1).stride()),
            [x.transpose(0, 1).float(memory_format=T.contiguous_format).is_contiguous(),
             last.float(memory_format=T.contiguous_format).is_contiguous(),
             last.float(memory_format=T.channels_last) is last]]


@cases.add()
def gradients_of_mm_keep_layouts(T):
    a, b = T.arange(6.0).view(2, 3).requires_grad_(), T.arange(12.0).view(4, 3).requires_grad_()
    out = []
    for product in (lambda: a @ b.t(), lambda: T.addmm(T.ones(2, 4), a, b.t(), alpha=2)):
        first = T.autograd.grad((product() ** 2).sum(), (a, b), create_graph=True)
        second = T.autograd.grad(first[0].sum() + (first[1] * first[1]).sum(), (a, b))
        out.append([look(t) for t in (*first, *second)])
    return out


# ---- what may be given as out= -----------------------------------------------------------------------------------


@cases.add()
def out_rules(T):
    x, i = T.arange(6.0), T.tensor([2, 1, 0])
    w = T.ones(2, 4, requires_grad=True)
    row = T.zeros(8)[::2]
    said, _ = warned(T.matmul, T.ones(2), T.ones(2, 4), out=row)
    double = T.zeros(3, dtype=T.float64)
    refused = [raises(T.gather, x, 0, i, out=double), raises(T.gather, x, 0, i, out=x[:3]),
               raises(T.gather, i, 0, i[1:], out=i[:2]), raises(T.index_select, x, 0, i, out=x[3:]),
               raises(T.cat, [x, x], out=T.zeros(12, dtype=T.bool)), raises(T.stack, [i, i], out=T.zeros(2, 3).bool()),
               raises(T.cat, [x[:3], x[3:]], out=x), raises(T.matmul, w, T.ones(4, 2), out=T.zeros(2, 2)),
               raises(T.nn.functional.linear, T.ones(4), w, out=T.zeros(2)),
               raises(T.mm, T.ones(2, 2), T.ones(2, 2), out=T.zeros(2, 2, dtype=T.int64)),
               raises(T.narrow, x, 0, T.tensor([1]), 2)]
    refused = [r.split(" (result has")[0] for r in refused]
    taken = [T.softmax(x, 0, out=T.zeros(6)), T.log_softmax(x, 0, out=T.zeros(6)), T.dot(x, x, out=T.zeros(())),
             T.cat([i, i], out=T.zeros(6)), T.narrow(x, 0, T.tensor(-3), 2), T.concatenate([x, x]),
             T.linalg.matmul(T.eye(2), T.ones(2, 2)), T.special.softmax(x, 0)]
    return [refused, taken, list(row.stride()), len(said)]


# ---- writes that cast, or meet themselves ------------------------------------------------------------------------


@cases.add()
def masked_writes(T):
    x = T.zeros(3, 4, dtype=T.float64)
    rows, all_of_it = T.tensor([True, False, True]), x < 1
    x[rows] = T.tensor(3)
    x[rows, 1:2] = T.tensor([4])
    x[:, T.tensor([False, True, False, True])] = T.tensor(7)
    x.index_put_((all_of_it,), T.tensor(1))
    said, wide = warned(lambda: T.zeros(2, 1).expand(2, 3).masked_fill_(T.tensor([True, False, True]), 4))
    return [x, raises(x.__setitem__, (rows, T.tensor([0])), T.tensor(3)), raises(x.__setitem__, T.tensor([0]), T.tensor(3)),
            raises(T.zeros(0, 4).double().__setitem__, (T.tensor([0]), T.tensor([1])), T.tensor(3)),
            [w.split(" (Triggered")[0] for w in said], wide,
            T.zeros(2, 1).expand(2, 3).fill_(5), T.zeros(2, 1).expand(2, 3).zero_()]


@cases.add()
def too_large_for_a_dtype(T):
    half, short = T.float16, T.bfloat16
    return [T.tensor([3e38, 300, -5], dtype=half), T.tensor(3e39, dtype=short), T.tensor([3e39]),
            T.full((1,), 3e38, dtype=half), T.zeros(1, dtype=short).fill_(3e39), raises(T.full, (1,), 3e39),
            raises(T.tensor, [300], dtype=T.int8).replace("int8_t", "int8"),
            raises(T.zeros(1, dtype=half).masked_fill_, T.tensor([True]), 3e38)]


@cases.add()
def fill_has_history(T):
    x, v = T.ones(2, requires_grad=True), T.tensor(3.0, requires_grad=True)
    y, z = T.fill(x, 2), T.fill(x, v)
    (y + z).sum().backward()
    names = [type(t.grad_fn).__name__ for t in (y, z, (x * 1).fill_(2), (x * 1).fill_(v), (x * 1).zero_())]
    return [y, z, x.grad, v.grad, names]


# ---- halves --------------------------------------------------------------------------------------------------------


@cases.add(tol=0)
def losses_in_halves(T):
    T.manual_seed(1)
    out = []
    for dtype in (T.bfloat16, T.float16):
        x = (T.randn(9, 5) * 4).to(dtype).requires_grad_()
        target, weight = T.tensor([0, 1, 2, 3, 4, 0, -100, 2, 1]), T.tensor([0.5, 1, 2, 0.25, 1.5]).to(dtype)
        logs = T.log_softmax(x, 1)
        out += [logs, T.nn.functional.nll_loss(logs.detach(), target), T.nn.functional.nll_loss(logs, target, weight),
                T.nn.functional.nll_loss(logs, target, weight, reduction="sum")]
    return out


@cases.add()
def spatial_targets(T):
    x = (T.arange(24.0) / 7).reshape(2, 3, 2, 2).requires_grad_()
    target = T.tensor([[[2, 0], [1, 0]], [[0, -100], [2, 2]]])
    loss = T.nn.functional.cross_entropy(x, target, weight=T.tensor([1.0, 2.0, 0.5]))
    g, = T.autograd.grad(loss, x, create_graph=True)
    h, = T.autograd.grad((g * g).sum(), x)
    inner = T.nn.functional.nll_loss(T.log_softmax(x, 1), target)
    return [loss, g, h, type(inner.grad_fn).__name__]


@cases.add()
def probabilities(T):
    F, out = T.nn.functional, []
    y, w = T.tensor([1.0, 0.0, 0.25]).requires_grad_(), T.tensor([1.0, 2.0, 0.5])
    for reduction in ("none", "mean", "sum"):
        p = T.tensor([0.0, 1.0, 0.6], requires_grad=True)
        loss = F.binary_cross_entropy(p, y.detach(), w, reduction=reduction)
        loss.sum().backward()
        out += [loss, p.grad, type(loss.grad_fn).__name__]
    p = T.tensor([0.2, 0.9, 0.6], requires_grad=True)
    g = T.autograd.grad(F.binary_cross_entropy(p, y, w), (p, y), create_graph=True)
    return [out, g, T.autograd.grad((g[0] * g[0]).sum(), p)]


# ---- indices of 32 bits --------------------------------------------------------------------------------------------


@cases.add()
def int_indices(T):
    x, i = T.arange(6.0).reshape(2, 3).requires_grad_(), T.tensor([[0, 2], [1, 1]], dtype=T.int32)
    y = T.gather(x, 1, i)
    y.sum().backward()
    return [y, x.grad]


test_golden = cases.test()

if __name__ == "__main__":
    cases.write()

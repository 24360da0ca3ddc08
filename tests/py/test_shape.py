"""Shape operators, writing at positions, ordering: results' layouts and refusals' words, beside PyTorch's own answers."""

import os
import sys
import warnings

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from golden_util import Cases

cases = Cases(__file__)


def tell(T, value):
    """A result's dtype, shape, strides and values."""
    if isinstance(value, T.Tensor):
        return [str(value.dtype).split(".")[-1], list(value.shape), list(value.stride()), value.tolist()]
    return [tell(T, v) for v in value] if isinstance(value, (list, tuple)) else value


def attempts(T, *calls):
    """What each call gives, or the class and first line of what it raises."""
    told = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for call in calls:
            try:
                told.append(tell(T, call()))
            except Exception as e:
                told.append(f"{type(e).__name__}: {e}".split("\n")[0])
    return told


@cases.add()
def tril(T):
    x = T.arange(12.0).reshape(3, 4)
    return attempts(
        T,
        lambda: T.ones(3).tril(),
        lambda: x.t().tril(),
        lambda: T.tril_indices(-1, 2),
        lambda: T.tril_indices(2, -1),
        lambda: T.tril_indices(3, 3).dtype,
        lambda: T.tril_indices(3, 3),
        lambda: T.tril_indices(3, 3, dtype=T.bool),
    )


@cases.add()
def diag(T):
    x = T.arange(12.0).reshape(3, 4)
    return attempts(
        T,
        lambda: T.ones(2, 2, 2).diag(),
        lambda: x.diag(9),
        lambda: T.tensor(3.).diag(),
        lambda: x.diag_embed(0, 1, 1),
        lambda: x.diag_embed(1, 0, 2),
        lambda: x.diag_embed(0, 0, 5),
        lambda: T.tensor(1.).diag_embed(),
        lambda: T.tensor(1.).fill_diagonal_(1),
        lambda: T.ones(2, 3, 2).fill_diagonal_(1),
        lambda: T.ones(2).fill_diagonal_(1),
        lambda: T.ones(2, 2, 2).trace(),
        lambda: T.linalg.diagonal(T.tensor(1.)),
    )


@cases.add()
def flip(T):
    x = T.arange(12.0).reshape(3, 4)
    return attempts(
        T,
        lambda: T.ones(3).fliplr(),
        lambda: T.tensor(1.).flipud(),
        lambda: T.ones(3).rot90(),
        lambda: x.rot90(1, [0, 0]),
        lambda: x.rot90(1, [0]),
        lambda: x.rot90(1, [0, 5]),
        lambda: x.rot90(1, [-5, 1]),
        lambda: x.rot90(1, [0, 1]),
        lambda: x.rot90(2, [0, 1]),
        lambda: x.rot90(0, [0, 1]),
        lambda: x.rot90(1, [0, -2]),
        lambda: T.tensor(1.).rot90(),
    )


@cases.add()
def roll(T):
    x = T.arange(12.0).reshape(3, 4)
    return attempts(
        T,
        lambda: x.roll([]),
        lambda: x.roll(1, [0, 1]),
        lambda: x.roll([1, 2]),
        lambda: x.roll([1, 2], 0),
        lambda: x.roll(1, 3),
        lambda: x.roll([1, 1], [0, 0]),
        lambda: x.t().roll(1, 0),
        lambda: x.t().roll(1),
        lambda: T.tensor(1.).roll(1),
        lambda: T.tensor(1.).roll(1, 0),
        lambda: T.zeros(0, 3).roll(1, 0),
        lambda: x.t().roll([1, 1], [0, 1]),
        lambda: T.tensor(1.).roll([1, 1], [0, 0]),
        lambda: T.tensor(1.).roll(1, 1),
        lambda: T.zeros(2, 3, 4, 5, ).contiguous(memory_format=T.channels_last).roll(1, 0),
    )


@cases.add()
def adjoint(T):
    return attempts(
        T,
        lambda: T.ones(3).adjoint(),
        lambda: T.tensor(1.).adjoint(),
        lambda: T.tensor(1.).H,
        lambda: T.ones(2, 2, 2).H,
    )


@cases.add()
def repeat(T):
    x = T.arange(12.0).reshape(3, 4)
    return attempts(
        T,
        lambda: x.repeat(2),
        lambda: x.repeat(-1, 2),
        lambda: x.repeat(0, 2),
        lambda: x.repeat(2, 1, 1),
        lambda: x.t().repeat(1, 1),
        lambda: x.tile(2),
        lambda: x.tile(()),
        lambda: x.tile(-1),
        lambda: T.tile(x, (2, 2, 2)),
    )


@cases.add()
def ri(T):
    x = T.arange(12.0).reshape(3, 4)
    r = T.tensor([1, 2, 3])
    return attempts(
        T,
        lambda: T.repeat_interleave(r),
        lambda: T.repeat_interleave(r.float()),
        lambda: T.repeat_interleave(r-5),
        lambda: T.repeat_interleave(r[None]),
        lambda: T.repeat_interleave(r, output_size=5),
        lambda: x.repeat_interleave(r, 0),
        lambda: x.repeat_interleave(r),
        lambda: x.repeat_interleave(T.tensor([2]), 1),
        lambda: x.repeat_interleave(T.tensor(2), 1),
        lambda: x.repeat_interleave(-2, 1),
        lambda: x.repeat_interleave(2, 5),
        lambda: x.repeat_interleave(2),
        lambda: T.tensor(1.).repeat_interleave(2),
        lambda: T.tensor(1.).repeat_interleave(2, 0),
        lambda: x.repeat_interleave(2, 0, output_size=7),
        lambda: x.repeat_interleave(T.tensor([2, 2]), 1),
        lambda: x.repeat_interleave(r.int(), 0),
        lambda: x.repeat_interleave(r[None], 0),
        lambda: x.repeat_interleave(0, 0),
        lambda: x.repeat_interleave(r, 0, output_size=9),
        lambda: T.tensor(1.).repeat_interleave(T.tensor([2]), 0),
        lambda: x.repeat_interleave(2, 0, output_size=6),
        lambda: T.zeros(0, 2).repeat_interleave(T.tensor([], dtype=T.long), 0),
        lambda: T.repeat_interleave(r.to(T.int16)),
        lambda: T.repeat_interleave(T.tensor(3)),
        lambda: T.repeat_interleave(T.tensor([], dtype=T.long)),
        lambda: T.repeat_interleave(r.int()).dtype,
    )


@cases.add()
def stack(T):
    x = T.arange(12.0).reshape(3, 4)
    return attempts(
        T,
        lambda: T.hstack([]),
        lambda: T.vstack([]),
        lambda: T.dstack([]),
        lambda: T.column_stack([]),
        lambda: T.hstack([T.tensor(1.), x]),
        lambda: T.column_stack([T.ones(3), x]),
        lambda: T.column_stack([T.tensor(1.)]),
        lambda: T.hstack([T.tensor(1.)]),
        lambda: T.vstack([T.tensor(1.)]),
        lambda: T.dstack([T.tensor(1.), T.ones(1)]),
        lambda: T.dstack([x, x]),
        lambda: T.vstack([x, T.ones(3)]),
        lambda: T.row_stack([x, x]),
    )


@cases.add()
def comb(T):
    x = T.arange(12.0).reshape(3, 4)
    return attempts(
        T,
        lambda: T.combinations(x),
        lambda: T.combinations(x[0], -1),
        lambda: T.combinations(x[0], 0),
        lambda: T.combinations(x[0], 2),
        lambda: T.combinations(x[0], 2, True),
        lambda: T.combinations(x[0], 1),
        lambda: T.combinations(x[0], 6),
        lambda: T.combinations(x[0, :0], 2),
    )


@cases.add()
def vander(T):
    x = T.arange(12.0).reshape(3, 4)
    return attempts(
        T,
        lambda: T.vander(x),
        lambda: T.vander(x[0]),
        lambda: T.vander(x[0], -1),
        lambda: T.vander(x[0], 0),
        lambda: T.linalg.vander(x),
        lambda: T.linalg.vander(T.tensor(1.)),
        lambda: T.linalg.vander(x, N=0),
        lambda: T.linalg.vander(x, N=1),
        lambda: T.vander(T.tensor([1, 2])),
        lambda: T.linalg.vander(x, N=3),
        lambda: T.linalg.vander(x.t(), N=3),
    )


@cases.add()
def split(T):
    x = T.arange(12.0).reshape(3, 4)
    return attempts(
        T,
        lambda: T.tensor(1.).tensor_split(1),
        lambda: x.tensor_split(0),
        lambda: x.tensor_split(2, 5),
        lambda: x.tensor_split([1, 9, -1], 1),
        lambda: x.tensor_split(T.tensor([1, 2])),
        lambda: x.tensor_split(T.tensor(2)),
        lambda: x.tensor_split(T.tensor([1., 2.])),
        lambda: x.tensor_split(T.tensor([[1, 2]])),
        lambda: T.tensor(1.).hsplit(1),
        lambda: x.hsplit(3),
        lambda: x.hsplit(0),
        lambda: x[0].hsplit(2),
        lambda: x[0].vsplit(2),
        lambda: x.vsplit(2),
        lambda: x.vsplit(3),
        lambda: x.dsplit(2),
        lambda: T.ones(1, 2, 3).dsplit(2),
        lambda: T.ones(1, 2, 3).dsplit([1, 2]),
        lambda: x.dsplit([1]),
        lambda: x.vsplit(0),
        lambda: x.vsplit(-1),
        lambda: x[0].vsplit([0]),
        lambda: T.tensor(1.).hsplit([1]),
        lambda: x.unsafe_chunk(0),
        lambda: T.tensor(1.).unsafe_chunk(1),
    )


@cases.add()
def view_scatters(T):
    x = T.arange(12.0).reshape(3, 4)
    return attempts(
        T,
        lambda: x.select_scatter(T.ones(3), 0, 0),
        lambda: x.select_scatter(T.ones(4), 0, 7),
        lambda: x.select_scatter(T.ones(4).double(), 0, 1),
        lambda: x.t().select_scatter(T.ones(4), 1, 1),
        lambda: x.slice_scatter(T.ones(2), 0, 0, 1),
        lambda: x.slice_scatter(T.ones(4), 0, 0, 1),
        lambda: x.slice_scatter(T.ones(1, 4), 0, 0, 1, 0),
        lambda: x.diagonal_scatter(T.ones(4)),
        lambda: x.as_strided_scatter(T.ones(4), (2, 2), (2, 1)),
        lambda: x.as_strided_scatter(T.ones(2, 2), (2, 2), (2, 1)),
        lambda: x.as_strided_scatter(T.ones(2, 2), (2, 2), (20, 1)),
        lambda: x.t().as_strided_scatter(T.ones(2, 2), (2, 2), (2, 1)),
        lambda: x.t().diagonal_scatter(T.ones(3)),
        lambda: x.expand(2, 3, 4).select_scatter(x, 0, 1),
    )


@cases.add()
def copy(T):
    x = T.arange(12.0).reshape(3, 4)
    return attempts(
        T,
        lambda: T.permute_copy(x, [1, 0]),
        lambda: T.transpose_copy(x, 1, 0),
        lambda: T.t_copy(x),
        lambda: T.alias_copy(x.t()),
        lambda: T.expand_copy(x[:, :1], [3, 5]),
        lambda: T.diagonal_copy(x),
        lambda: T.slice_copy(x, 1, 0, 4, 2),
        lambda: T.select_copy(x, 1, 0),
        lambda: T.narrow_copy(x, 1, 1, 2),
        lambda: T.unfold_copy(x, 1, 2, 1),
        lambda: T.view_copy(x, [4, 3]),
        lambda: T.as_strided_copy(x, (2, 2), (1, 2)),
        lambda: T.narrow_copy(x, 1, 1, 9),
        lambda: T.detach_copy(x.t()),
    )


@cases.add()
def log(T):
    return attempts(
        T,
        lambda: T.logspace(0, 3, -1),
        lambda: T.logspace(0, 3, 4),
        lambda: T.logspace(0, 3, 4, dtype=T.bool),
        lambda: T.logspace(T.tensor([1.]), 3, 4),
        lambda: T.logspace(T.tensor(1.), 3, 4),
        lambda: T.logspace(T.tensor(1.), T.tensor([3.]), 4),
    )


@cases.add()
def sort(T):
    x = T.arange(12.0).reshape(3, 4)
    return attempts(
        T,
        lambda: T.sort(x, 5),
        lambda: T.sort(x, stable=True)[0],
        lambda: T.sort(x.t())[0],
        lambda: T.sort(x[:, ::2])[0],
        lambda: T.sort(x.expand(2, 3, 4))[0],
        lambda: T.topk(x, 9),
        lambda: T.topk(x, -1),
        lambda: T.topk(x.t(), 2)[0],
        lambda: T.topk(T.tensor(1.), 1)[0],
        lambda: T.topk(T.tensor(1.), 2),
        lambda: T.kthvalue(x, 0),
        lambda: T.kthvalue(x, 9),
        lambda: T.kthvalue(x, 2)[0],
        lambda: T.kthvalue(x, 2, 0, True)[0],
        lambda: T.kthvalue(T.tensor(1.), 1)[0],
        lambda: T.kthvalue(T.zeros(0, 3), 1),
        lambda: T.kthvalue(T.zeros(0, 3), 1, 1)[0],
        lambda: T.topk(x>0, 2),
        lambda: T.kthvalue(x>0, 2),
        lambda: T.argsort(x.t()),
        lambda: T.msort(x.t()),
        lambda: T.msort(T.tensor(1.)),
        lambda: T.sort(T.tensor(1.))[1],
        lambda: T.kthvalue(x.t(), 1)[0],
        lambda: T.kthvalue(T.ones(2, 3, 4).permute(2, 0, 1), 1, keepdim=True)[0],
        lambda: T.sort(x, out=o)[0],
    )


@cases.add()
def index_copy(T):
    x = T.zeros(3, 4)
    L = lambda *a: T.tensor(a)  # noqa: E731
    s = T.tensor(1.0)
    return attempts(
        T,
        lambda: x.index_copy(0, L(0, 1), T.ones(2, 4)),
        lambda: x.index_copy(0, L(0, 1).float(), T.ones(2, 4)),
        lambda: x.index_copy(0, L(0, 1).int(), T.ones(2, 4)),
        lambda: x.index_copy(0, L(0, 5), T.ones(2, 4)),
        lambda: x.index_copy(0, L(0, -1), T.ones(2, 4)),
        lambda: x.index_copy(0, L([0, 1]), T.ones(2, 4)),
        lambda: x.index_copy(0, L(0, 1), T.ones(3, 4)),
        lambda: x.index_copy(0, L(0, 1), T.ones(2, 5)),
        lambda: x.index_copy(0, L(0, 1), T.ones(2, 4).double()),
        lambda: x.index_copy(0, L(0), T.tensor(1.)),
        lambda: x.index_copy(0, T.tensor(0), T.ones(1, 4)),
        lambda: s.index_copy(0, L(0), T.ones(1)),
        lambda: s.index_copy(0, T.tensor(0), s),
        lambda: x.t().index_copy(0, L(0, 1), T.ones(2, 3)),
        lambda: x.index_copy_(0, L(0, 1), x[:2]),
        lambda: x.index_copy(0, L(0, 1), T.tensor(2.)),
        lambda: T.zeros(4).index_copy(0, L(0, 1), T.tensor(2.)),
    )


@cases.add()
def index_fill(T):
    x = T.zeros(3, 4)
    L = lambda *a: T.tensor(a)  # noqa: E731
    s = T.tensor(1.0)
    return attempts(
        T,
        lambda: x.index_fill(0, L(0, 1), 1),
        lambda: x.index_fill(0, L(0, -1), 1)[2],
        lambda: x.index_fill(0, L(0, 5), 1),
        lambda: x.index_fill(0, L(0, 1).int(), 1),
        lambda: x.index_fill(0, L([0, 1]), 1),
        lambda: x.index_fill(0, L(0, 1), T.ones(1)),
        lambda: x.long().index_fill(0, L(0, 1), 2.5)[0],
        lambda: s.index_fill(0, L(0), 2),
        lambda: s.index_fill(0, L(0, 5), 2),
        lambda: x.index_fill(5, L(0), 2),
        lambda: x.t().index_fill(0, L(0), 2),
        lambda: x.expand(2, 3, 4).index_fill_(0, L(0), 2),
        lambda: x.index_fill(0, T.tensor(0), 2),
        lambda: x.bool().index_fill(0, L(0), 2)[0],
    )


@cases.add()
def index_add(T):
    x = T.zeros(3, 4)
    L = lambda *a: T.tensor(a)  # noqa: E731
    return attempts(
        T,
        lambda: x.index_add(0, L(0, 1).short(), T.ones(2, 4)),
        lambda: x.index_add(0, L(0, 5), T.ones(2, 4)),
        lambda: x.index_add(0, L(0, -1), T.ones(2, 4)),
        lambda: x.long().index_add(0, L(0, 1), T.ones(2, 4).long(), alpha=1.5),
        lambda: x.bool().index_add(0, L(0, 1), T.ones(2, 4).bool(), alpha=1),
        lambda: x.bool().index_add(0, L(0, 1), T.ones(2, 4).bool(), alpha=True),
        lambda: x.index_add(0, L(0, 1), T.ones(2, 4).double()),
        lambda: x.index_add(0, L([0, 1]), T.ones(2, 4)),
        lambda: x.index_add(0, L(0, 1), T.ones(2, 5)),
        lambda: x.index_add(0, L(0, 1), T.ones(3, 4)),
        lambda: x.t().index_add(0, L(0, 1), T.ones(2, 3)),
    )


@cases.add()
def index_reduce(T):
    x = T.zeros(3, 4)
    L = lambda *a: T.tensor(a)  # noqa: E731
    return attempts(
        T,
        lambda: x.index_reduce(0, L(0, 1), T.ones(2, 4), 'sum'),
        lambda: x.index_reduce(0, L(0, 1), T.ones(2, 4), 'mean'),
        lambda: x.index_reduce(0, L(0, 5), T.ones(2, 4), 'mean'),
        lambda: x.index_reduce(0, L(0, 1).float(), T.ones(2, 4), 'mean'),
        lambda: x.index_reduce(0, L(0, 1), T.ones(3, 4), 'mean'),
        lambda: x.index_reduce(0, L([0, 1]), T.ones(2, 4), 'mean'),
        lambda: x.index_reduce(0, L(0, 1), T.ones(2, 4).double(), 'mean'),
        lambda: x.index_reduce(0, L(0, 1), T.ones(2, 5), 'mean'),
        lambda: x.bool().index_reduce(0, L(0, 1), T.ones(2, 4).bool(), 'amax'),
        lambda: x.long().index_reduce(0, L(0, 0), T.ones(2, 4).long()*3, 'mean')[0],
        lambda: (-x-5).long().index_reduce(0, L(0, 0), T.ones(2, 4).long()*1, 'mean')[0],
    )


@cases.add()
def scatter(T):
    x = T.zeros(3, 4)
    L = lambda *a: T.tensor(a)  # noqa: E731
    s = T.tensor(1.0)
    i = T.zeros(2, 3, dtype=T.long)
    return attempts(
        T,
        lambda: x.scatter(0, i, T.ones(2, 3), reduce='foo'),
        lambda: x.scatter(0, i, 2., reduce='multiply'),
        lambda: x.scatter(0, i, 2., reduce='mul'),
        lambda: x.scatter(0, i.int(), 2.),
        lambda: x.scatter(0, i.float(), 2.),
        lambda: x.scatter(0, i+5, 2.),
        lambda: x.scatter(0, i-1, 2.),
        lambda: x.scatter(0, T.zeros(2, 5, dtype=T.long), 2.),
        lambda: x.scatter(0, T.zeros(2, 4, dtype=T.long), T.ones(2, 3)),
        lambda: x.scatter(0, i, T.ones(2, 3).double()),
        lambda: x.scatter(0, i[0], T.ones(2, 3)),
        lambda: x.scatter(5, i, T.ones(2, 3)),
        lambda: x.scatter_reduce(0, i, T.ones(2, 3), 'foo'),
        lambda: x.scatter_reduce(0, i, T.ones(2, 3), 'add'),
        lambda: x.bool().scatter_reduce(0, i, T.ones(2, 3).bool(), 'sum'),
        lambda: x.bool().scatter_reduce(0, i, T.ones(2, 3).bool(), 'mean'),
        lambda: x.bool().scatter_reduce(0, i, T.ones(2, 3).bool(), 'amax'),
        lambda: x.scatter_add(0, i, T.ones(2, 3).double()),
        lambda: s.scatter(0, T.tensor(0), 3.),
        lambda: s.scatter(0, L(0), 3.),
        lambda: s.scatter(0, L(0, 0), 3.),
        lambda: x.t().scatter(0, i, 3.),
        lambda: x.scatter_(0, x.long()[:2], x[:2]),
        lambda: x.long().scatter(0, i, 2.5)[0],
        lambda: x.scatter_reduce(0, i, T.ones(2, 3).double(), 'sum'),
        lambda: x.scatter(0, T.zeros(0, dtype=T.long), T.ones(2, 3)),
        lambda: x.bool().scatter_add(0, i, T.ones(2, 3).bool()),
        lambda: x.scatter_reduce(0, i+7, T.ones(2, 3), 'sum'),
        lambda: x.scatter_add(0, i+7, T.ones(2, 3)),
        lambda: x.gather(0, i+7),
        lambda: x.expand(2, 3, 4).scatter_(0, T.zeros(1, 1, 1, dtype=T.long), 1.),
    )


@cases.add()
def take(T):
    x = T.zeros(3, 4)
    L = lambda *a: T.tensor(a)  # noqa: E731
    return attempts(
        T,
        lambda: x.take(L(0, 99)),
        lambda: x.take(L(0, -1)),
        lambda: x.take(L(0, -13)),
        lambda: x.take(L(0., )),
        lambda: x.take(L([0, 1])),
        lambda: T.zeros(0).take(L(0)),
        lambda: T.zeros(0).take(T.zeros(0).long()),
        lambda: x.take(L(0, 1).int()),
        lambda: x.take(T.arange(4).reshape(2, 2).t()),
    )


@cases.add()
def put(T):
    x = T.zeros(3, 4)
    L = lambda *a: T.tensor(a)  # noqa: E731
    return attempts(
        T,
        lambda: x.put(L(0, 99), L(1., 2.)),
        lambda: x.put(L(0, -1), L(1., 2.)),
        lambda: x.put(L(0, 1), L(1., 2., 3.)),
        lambda: x.put(L(0, 1), L(1, 2)),
        lambda: x.put(L(0, 1).int(), L(1., 2.)),
        lambda: x.put(L([0, 1]), L(1., 2.)),
        lambda: x.expand(2, 3, 4).put_(L(0, 1), L(1., 2.)),
        lambda: x.t().put(L(0, 1), L(1., 2.)),
        lambda: T.zeros(0).put(L(0), L(1.)),
        lambda: x.put_(L(0, 1), x.view(-1)[:2]),
        lambda: T.zeros(0).put(L(0)[:0], L(1.)[:0]),
    )


@cases.add()
def masked_scatter(T):
    x = T.zeros(3, 4)
    s = T.tensor(1.0)
    m = x == 0
    return attempts(
        T,
        lambda: x.masked_scatter(m, T.ones(3)),
        lambda: x.masked_scatter(m.byte(), T.ones(12)),
        lambda: x.masked_scatter(m, T.ones(12).double()),
        lambda: x.masked_scatter(m[0], T.ones(12)),
        lambda: x.masked_scatter(T.ones(2, 3, 4).bool(), T.ones(24)),
        lambda: x.masked_scatter_(T.ones(2, 3, 4).bool(), T.ones(24)),
        lambda: x.t().masked_scatter(m.t(), T.ones(24)),
        lambda: x.masked_scatter(m.float(), T.ones(12)),
        lambda: x.masked_scatter(T.ones(5).bool(), T.ones(24)),
        lambda: x.expand(2, 3, 4).masked_scatter_(m, T.ones(24)),
        lambda: s.masked_scatter(T.tensor(True), T.ones(1)),
    )


@cases.add()
def masked_select(T):
    x = T.zeros(3, 4)
    m = x == 0
    return attempts(
        T,
        lambda: x.masked_select(m.byte()),
        lambda: x.masked_select(m.long()),
        lambda: x.masked_select(T.ones(5).bool()),
    )


@cases.add()
def nonzero(T):
    x = T.zeros(3, 4)
    s = T.tensor(1.0)
    return attempts(
        T,
        lambda: T.nonzero(x),
        lambda: x.nonzero(as_tuple=True),
        lambda: T.nonzero_static(x+1, size=3),
        lambda: T.nonzero_static(x, size=3, fill_value=7),
        lambda: T.nonzero_static(x, size=-3),
        lambda: T.argwhere(x),
        lambda: T.argwhere(s),
        lambda: T.nonzero(s, as_tuple=True),
        lambda: T.where(s),
        lambda: T.where(x+1),
        lambda: T.nonzero_static(s, size=2),
    )


@cases.add()
def tad(T):
    x = T.zeros(3, 4)
    return attempts(
        T,
        lambda: T.take_along_dim(x, T.zeros(3, 1, dtype=T.long), 1),
        lambda: T.take_along_dim(x, T.zeros(3, dtype=T.long)),
        lambda: T.take_along_dim(x, T.zeros(3, dtype=T.long), 0),
        lambda: T.take_along_dim(x, T.zeros(3, 1), 1),
        lambda: T.take_along_dim(x, T.zeros(2, 3, 1, dtype=T.long), 1),
        lambda: T.take_along_dim(x, T.zeros(3, 1, dtype=T.int), 1),
        lambda: T.take_along_dim(x, T.zeros(1, 2, dtype=T.long), 1),
        lambda: T.take_along_dim(x, T.zeros(2, 2, dtype=T.long), 1),
    )


@cases.add()
def select(T):
    x = T.zeros(3, 4)
    L = lambda *a: T.tensor(a)  # noqa: E731
    s = T.tensor(1.0)
    i = T.zeros(2, 3, dtype=T.long)
    return attempts(
        T,
        lambda: x.index_select(0, L(0, 5)),
        lambda: x.index_select(0, L(0, -1)),
        lambda: x.t().index_select(0, L(0)),
        lambda: x.index_select(0, L(0.)),
        lambda: x.index_select(3, L(0)),
        lambda: s.index_select(0, L(0)),
        lambda: s.index_select(0, L(1)),
        lambda: x.index_select(0, L([0])),
        lambda: x.gather(0, T.zeros(4, 4).long()),
        lambda: x.gather(0, T.zeros(2, 5).long()),
        lambda: x.gather(0, T.zeros(2, 2)),
        lambda: x.gather(0, T.zeros(2).long()),
        lambda: x.gather(0, i-1),
    )


@cases.add()
def unique(T):
    x = T.arange(12.0).reshape(3, 4)
    return attempts(
        T,
        lambda: T._unique2(x, True, False, False)[1],
        lambda: T._unique2(x, True, True, False)[1],
        lambda: T._unique2(x, True, True, False)[2],
        lambda: T.unique(x, dim=5),
        lambda: T.unique(x, dim=0),
        lambda: T.unique(T.zeros(0, 3), dim=1),
        lambda: T.unique(T.zeros(0, 3), dim=0),
        lambda: T.unique(T.zeros(0)),
        lambda: T.unique_consecutive(x, dim=1),
        lambda: T.unique(T.tensor(3.), dim=0),
        lambda: T.unique_consecutive(T.zeros(0), return_counts=True),
        lambda: T.unique(x.t(), return_inverse=True)[1],
        lambda: T.unique(x, dim=1),
        lambda: T.unique(x, dim=1).stride(),
        lambda: T.unique_consecutive(x, True, True)[1],
        lambda: T.unique(T.zeros(2, 0, 3), dim=1),
    )


@cases.add()
def ss(T):
    x = T.arange(12.0).reshape(3, 4)
    L = lambda *a: T.tensor(a)  # noqa: E731
    s = T.tensor([1.0, 3.0, 5.0])
    return attempts(
        T,
        lambda: T.searchsorted(s, x),
        lambda: T.searchsorted(s, x.long()),
        lambda: T.searchsorted(s, 2),
        lambda: T.searchsorted(s, x, side='foo'),
        lambda: T.searchsorted(s, x, side='left', right=True),
        lambda: T.searchsorted(x, x[0]),
        lambda: T.searchsorted(x, x),
        lambda: T.searchsorted(x, x[:2]),
        lambda: T.searchsorted(s, x, sorter=L(0, 1)),
        lambda: T.searchsorted(s, x, sorter=L(0, 1, 2).int()),
        lambda: T.searchsorted(s, x, sorter=L(0, 1, 9)),
        lambda: T.searchsorted(T.tensor(1.), x),
        lambda: T.searchsorted(s[:0], x),
        lambda: T.searchsorted(s, T.tensor(2.)),
        lambda: T.searchsorted(x, 2),
        lambda: T.bucketize(x, x),
        lambda: T.bucketize(2, s),
        lambda: T.bucketize(x, s),
        lambda: T.searchsorted(s>2, x>2),
        lambda: T.searchsorted(s, x.t()),
        lambda: T.searchsorted(s, True),
        lambda: T.searchsorted(s, x, right=False, side='right'),
        lambda: T.searchsorted(s.bfloat16(), x.bfloat16()),
        lambda: T.bucketize(2.5, s.long()),
        lambda: T.searchsorted(x.t(), x.t()),
    )


@cases.add()
def isin(T):
    x = T.arange(12.0).reshape(3, 4)
    return attempts(
        T,
        lambda: T.isin(x>2, x>2),
        lambda: T.isin(x.t(), x),
        lambda: T.isin(x[:0], x),
        lambda: T.isin(x, x[:0]),
        lambda: T.isin(x.half(), x.half()),
        lambda: T.isin(x.bfloat16(), x.bfloat16()),
    )


@cases.add()
def bincount(T):
    x = T.arange(12.0).reshape(3, 4)
    L = lambda *a: T.tensor(a)  # noqa: E731
    return attempts(
        T,
        lambda: T.bincount(L(1, 2)),
        lambda: T.bincount(L(1., 2.)),
        lambda: T.bincount(L(-1, 2)),
        lambda: T.bincount(x.long()),
        lambda: T.bincount(L(1, 2), minlength=-1),
        lambda: T.bincount(L(1, 2), minlength=7),
        lambda: T.bincount(L(1, 2), weights=L(1.)),
        lambda: T.bincount(L(1)>0),
        lambda: T.bincount(T.tensor(1)),
        lambda: T.bincount(T.zeros(0, 3).long()),
    )


@cases.add()
def histc(T):
    x = T.arange(12.0).reshape(3, 4)
    return attempts(
        T,
        lambda: T.histc(x, 0),
        lambda: T.histc(x, 4, 5, 2),
        lambda: T.histc(x.long(), 4),
        lambda: T.histc(T.tensor([float('nan')]), 4),
        lambda: T.histc(T.tensor([float('nan'), 1.]), 4, 0, 2),
        lambda: T.histc(x, 4, 0, float('inf')),
        lambda: T.histc(x, 4, float('nan'), 1),
        lambda: T.histc(x.half(), 4),
        lambda: T.histc(x[:0], 4),
        lambda: T.histc(x>2, 4),
        lambda: T.histc(x, -4),
    )


@cases.add()
def histogram(T):
    x = T.arange(12.0).reshape(3, 4)
    L = lambda *a: T.tensor(a)  # noqa: E731
    return attempts(
        T,
        lambda: T.histogram(x, 0),
        lambda: T.histogram(x, 4, range=(5., 2.)),
        lambda: T.histogram(x.long(), 4),
        lambda: T.histogram(x, x),
        lambda: T.histogram(x, 4, weight=x[:2]),
        lambda: T.histogram(x, L(0., 1.).double()),
        lambda: T.histogram(x, 4, weight=x.double()),
        lambda: T.histogram(x, L(0.)[:0]),
        lambda: T.histogram(T.tensor([float('nan')]), 4),
        lambda: T.histogram(x[:0], 4),
        lambda: T.histogram(x, L(3., 1.)),
        lambda: T.histogram(x, 4, range=(1., )),
        lambda: T.histogram(x.half(), 4),
        lambda: T.histogram(x, L(4.)),
    )


test_golden = cases.test()

if __name__ == "__main__":
    cases.write()

"""RNN, LSTM, GRU, their cells, packed sequences: PyTorch's numbers, and what the one-kernel layer must agree with."""

import copy
import os
import pickle
import sys

import pytest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from golden_util import Cases, raises, warned

cases = Cases(__file__)


def run(T, cls, batch=3, steps=4, given=False, packed=None, dtype="float32", **kw):
    """Everything that a layer gives: outputs, states, gradients of input, parameters and first states."""
    m = getattr(T.nn, cls)(2, 3, **kw).to(getattr(T, dtype))
    first = kw.get("batch_first", False)
    x = T.randn(*((batch, steps, 2) if first else (steps, batch, 2))).to(getattr(T, dtype)).requires_grad_()
    hx = None
    if given:
        count = kw.get("num_layers", 1) * (2 if kw.get("bidirectional") else 1)
        hx = [T.randn(count, batch, kw.get("proj_size") or 3).to(getattr(T, dtype)).requires_grad_()]
        if cls == "LSTM":
            hx.append(T.randn(count, batch, 3).to(getattr(T, dtype)).requires_grad_())
    state = None if hx is None else tuple(hx) if cls == "LSTM" else hx[0]
    rnn = T.nn.utils.rnn
    fed = x if packed is None else rnn.pack_padded_sequence(x, T.tensor(packed), first, enforce_sorted=True)
    out, last = m(fed, state)
    if packed is not None:
        out, lengths = rnn.pad_packed_sequence(out, first, padding_value=0.5)
    last = last if isinstance(last, tuple) else (last,)
    (out.sin().sum() + sum((t * 3).sin().sum() for t in last)).backward()
    return [out, list(out.stride()), *last, x.grad, *[p.grad for p in m.parameters()], *[h.grad for h in hx or []]]


@cases.add(tol=2e-5)
def lstm(T):
    return [
        run(T, "LSTM"),
        run(T, "LSTM", given=True, batch_first=True, bias=False),
        run(T, "LSTM", dtype="float64", given=True),
    ]


@cases.add(tol=2e-5)
def lstm_layers_with_dropout(T):
    return [run(T, "LSTM", num_layers=2, bidirectional=True, dropout=0.5, batch_first=True, given=True)]


@cases.add(tol=2e-5)
def lstm_with_projection(T):
    return [
        run(T, "LSTM", num_layers=2, proj_size=2, given=True),
        run(T, "LSTM", proj_size=1, bidirectional=True, packed=[4, 2, 1]),
    ]


@cases.add(tol=2e-5)
def gru(T):
    return [run(T, "GRU"), run(T, "GRU", num_layers=2, bidirectional=True, given=True, bias=False, dtype="float64")]


@cases.add(tol=2e-5)
def rnn(T):
    return [run(T, "RNN", given=True), run(T, "RNN", nonlinearity="relu", bidirectional=True, batch_first=True)]


@cases.add(tol=2e-5)
def packed(T):
    return [
        run(T, c, packed=[4, 4, 1], given=True, bidirectional=True, num_layers=2, dropout=0.3)
        for c in ("LSTM", "GRU", "RNN")
    ]


@cases.add(tol=2e-5)
def large_batch(T):
    """More sequences than one block of the kernel takes, widths that fill no vector."""
    m, x = T.nn.LSTM(5, 37, bidirectional=True), T.randn(6, 70, 5, requires_grad=True)
    out, (h, c) = m(x)
    (out * out).sum().backward()
    return [out.sum((1, 2)), h.sum(), c.sum(1)[:, :5], x.grad[:, ::23], *[p.grad.sum() for p in m.parameters()]]


@cases.add(tol=0.02)
def half_precision(T):
    return [run(T, "LSTM", dtype="bfloat16")[:4], run(T, "GRU", dtype="float16")[:3]]


@cases.add(tol=0.03)
def autocast(T):
    """dtypes of what comes out in a region, and roughly its values."""
    made = []
    for name, kw in (("LSTM", {"num_layers": 2}), ("GRU", {"num_layers": 2}), ("RNN", {"num_layers": 2}), ("LSTM", {"proj_size": 2})):
        m, x = getattr(T.nn, name)(2, 3, **kw), T.randn(4, 2, 2)
        with T.autocast("cpu", dtype=T.bfloat16):
            out, last = m(x)
        out.float().sum().backward()
        made += [out, last, m.weight_ih_l0.grad.dtype]
    for name in ("LSTMCell", "GRUCell", "RNNCell"):
        with T.autocast("cpu", dtype=T.bfloat16):
            made.append(getattr(T.nn, name)(2, 3)(T.randn(4, 2)))
    return made


@cases.add(tol=2e-5)
def cells(T):
    made = []
    for name, kw in (
        ("RNNCell", {}),
        ("RNNCell", {"nonlinearity": "relu", "bias": False}),
        ("LSTMCell", {}),
        ("GRUCell", {}),
    ):
        m, x = getattr(T.nn, name)(2, 3, **kw), T.randn(4, 2, requires_grad=True)
        h = m(x)
        both = h if isinstance(h, tuple) else (h,)
        h = m(x, h)
        again = h if isinstance(h, tuple) else (h,)
        sum(t.sin().sum() for t in again).backward()
        made += [*both, *again, x.grad, *[p.grad for p in m.parameters()], m(x[0]), repr(m)]
    return made


@cases.add(tol=2e-5)
def unbatched(T):
    return [
        T.nn.LSTM(2, 3)(T.randn(4, 2)),
        T.nn.GRU(2, 3, batch_first=True)(T.randn(4, 2), T.zeros(1, 3)),
        T.nn.RNN(2, 3, 2)(T.randn(4, 2)),
    ]


@cases.add(tol=0)
def names(T):
    nn = T.nn
    m = nn.LSTM(3, 4, 2, proj_size=2, bidirectional=True)
    return [
        dict(nn.GRU(2, 3).state_dict()),
        list(m.state_dict()),
        repr(m),
        repr(nn.RNN(2, 3, 2, "relu", False)),
        repr(nn.GRU(2, 3, dropout=0.0)),
        len(m.all_weights),
        [len(w) for w in m.all_weights],
        m.proj_size,
        m.mode,
    ]


@cases.add(tol=0)
def sequences(T):
    R = T.nn.utils.rnn
    a, b, c = T.tensor([1.0, 2, 3]), T.tensor([4.0]), T.tensor([5.0, 6])
    p = R.pack_sequence([a, c, b])
    q = R.pack_sequence([b, a, c], enforce_sorted=False)
    return [
        repr(p),
        repr(q),
        repr(p.double()),
        repr(p.to(T.int64)),
        p.to(T.float32) is p,
        repr(p.cpu()),
        p.is_cuda,
        R.unpack_sequence(q),
        R.pad_packed_sequence(q, True, -1.0, 5),
        R.pad_sequence([a, b]),
        R.pad_sequence([a, b], True, 7.0, "left"),
        R.unpad_sequence(R.pad_sequence([a, b]), T.tensor([3, 1])),
        R.invert_permutation(T.tensor([2, 0, 1])),
        R.invert_permutation(None),
        repr(R.PackedSequence((a, T.tensor([1, 1, 1])))),
        list(p._fields),
    ]


def first_line(fn, *args, **kwargs):
    return raises(fn, *args, **kwargs).split("\n")[0]


@cases.add()
def complaints(T):
    nn, R, z = T.nn, T.nn.utils.rnn, T.zeros
    x = z(2, 2, 3)
    lstm, gru, cell = nn.LSTM(3, 4), nn.GRU(3, 4), nn.LSTMCell(3, 4)
    tries = [
        (lstm, z(2, 2, 5)),
        (lstm, z(2)),
        (gru, z(2, 2, 3, 1)),
        (lstm, x.double()),
        (lstm, x, (z(2, 2, 4), z(1, 2, 4))),
        (lstm, x, (z(1, 2, 4), z(1, 2, 5))),
        (lstm, x, (z(2, 4), z(2, 4))),
        (lstm, z(2, 3), (z(1, 4, 1), z(1, 4))),
        (gru, x, z(2, 2, 4)),
        (gru, z(2, 3), z(2, 2, 4)),
        (gru, x, z(2, 4)),
        (lstm, z(0, 2, 3)),
        (cell, z(2, 5)),
        (cell, z(2, 3, 1)),
        (cell, z(2, 3), (z(3, 4), z(3, 4))),
        (cell, z(2, 3), (z(2, 5), z(2, 4))),
        (cell, z(2, 3), (z(2, 2, 5), z(2, 4))),
        (nn.RNNCell(3, 4, nonlinearity="a"), z(2, 3)),
        (nn.LSTM, 3, 0),
        (nn.LSTM, 0, 3),
        (nn.LSTM, 3, 4, 0),
        (nn.RNNBase, "X", 3, 4),
        (nn.LSTM, 3.0, 4),
        (R.pack_padded_sequence, x, [2, 0]),
        (R.pack_padded_sequence, x, [1, 2]),
        (R.pack_padded_sequence, x, [2]),
        (R.pack_padded_sequence, z(3, 0, 4), []),
        (R.pad_sequence, []),
        (R.pad_sequence, 3),
        (R.pad_sequence, [z(2, 3), z(2, 4)]),
        (R.PackedSequence, z(2)),
        (T.lstm, x, (z(1, 2, 4),), [], True, 1, 0.0, False, False, False),
        (T.gru, x, z(1, 2, 4), [], True, 1, 0.0, False, False, False),
    ]
    keywords = [
        (nn.LSTM, {"proj_size": 4}),
        (nn.LSTM, {"proj_size": -1}),
        (nn.GRU, {"proj_size": 2}),
        (nn.RNN, {"nonlinearity": "x"}),
        (nn.LSTM, {"dropout": 2}),
        (nn.LSTM, {"dropout": "a"}),
        (nn.LSTM, {"bias": 1}),
        (nn.LSTM, {"batch_first": 1}),
    ]
    return (
        [first_line(*t) for t in tries]
        + [first_line(f, 3, 4, **kw) for f, kw in keywords]
        + [warned(nn.LSTM, 3, 4, dropout=0.5)[0]]
    )


test_golden = cases.test()


if __name__ != "__main__":  # the oracle, which writes the golden values, has no ember
    import ember


# ---- what PyTorch reads beyond its memory for, or answers at random


@pytest.mark.parametrize("sizes", [[2, 3], [2, 2, 2], [0], [3, -1, 2], []])
def test_hostile_batch_sizes_are_refused(sizes):
    m, data = ember.nn.GRU(2, 3), ember.randn(4, 2)
    with pytest.raises(RuntimeError, match="batch_sizes"):
        ember.gru(
            data,
            ember.tensor(sizes, dtype=ember.int64),
            ember.zeros(1, 2, 3),
            m._flat_weights,
            True,
            1,
            0.0,
            False,
            False,
        )
    with pytest.raises(RuntimeError, match="batch_sizes"):
        ember._VF._pad_packed_sequence(data, ember.tensor(sizes, dtype=ember.int64), False, 0.0, -1)


def test_lengths_beyond_the_input_are_refused():
    with pytest.raises(RuntimeError, match="longest of 'lengths'"):
        ember.nn.utils.rnn.pack_padded_sequence(ember.zeros(3, 2, 4), [4, 2])


def test_weights_that_do_not_fit_are_refused():
    x, h = ember.zeros(2, 2, 3), ember.zeros(1, 2, 4)
    for shapes in ([(16, 3), (16, 5)], [(12, 3), (16, 4)], [(16, 2), (16, 4)], [(16,), (16, 4)]):
        with pytest.raises(RuntimeError):
            ember.lstm(x, (h, h), [ember.zeros(*s) for s in shapes], False, 1, 0.0, False, False, False)
    with pytest.raises(RuntimeError, match="Expected more weights"):
        ember.lstm(x, (h, h), [ember.zeros(16, 3), ember.zeros(16, 4)], False, 2**62, 0.0, False, False, False)


# ---- one kernel against the same layer by steps


def layer(mode, hidden=3, out=None, steps=4, batch=2):
    rows = {0: 1, 1: 1, 2: 4, 3: 3}[mode] * hidden
    ember.manual_seed(mode + 7)
    make = lambda *s: ember.randn(*s, dtype=ember.float64, requires_grad=True)  # noqa: E731
    c = make(batch, hidden) if mode == 2 else None
    return [
        make(steps, batch, 2),
        make(batch, out or hidden),
        c,
        make(rows, 2),
        make(rows, out or hidden),
        make(rows),
        make(rows),
        make(out, hidden) if out else None,
    ]


@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize(
    "mode, out, sizes", [(0, None, []), (1, None, [2, 2, 1, 1]), (2, None, []), (2, 2, [2, 1, 1]), (3, None, [2, 2, 2])]
)
def test_kernel_agrees_with_steps(mode, out, sizes, reverse):
    given = layer(mode, out=out)
    if sizes:
        given[0] = ember.randn(sum(sizes), 2, dtype=ember.float64, requires_grad=True)
    ops = ember.ops.aten
    fused = ops._rnn_layer(*given, sizes, mode, reverse, True)
    steps = ops._rnn_layer_steps(*given, sizes, mode, reverse)
    inputs = [t for t in given if t is not None]
    grads = []
    for results in (fused[:3], steps):
        used = [r for r in results if r.numel() > 0]
        grads.append(ember.autograd.grad([r.sin().sum() for r in used], inputs))
    for a, b in zip(fused[:3], steps):
        assert a.shape == b.shape and ember.allclose(a, b, rtol=1e-10)
    for a, b in zip(*grads):
        assert ember.allclose(a, b, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("cls, kw", [("LSTM", {"proj_size": 2}), ("GRU", {"bidirectional": True}), ("RNN", {})])
def test_second_derivative(cls, kw):
    ember.manual_seed(0)
    m = getattr(ember.nn, cls)(2, 3, dtype=ember.float64, **kw)
    x = ember.randn(3, 2, 2, dtype=ember.float64, requires_grad=True)
    assert ember.autograd.gradgradcheck(lambda x: m(x)[0], (x,))


def test_backward_without_kept_values_is_refused():
    given = layer(2)
    out, hy, cy, reserve = ember.ops.aten._rnn_layer(*given, [], 2, False, False)
    assert reserve.numel() == 0
    with pytest.raises(RuntimeError, match="keep=True"):
        out.sum().backward()


# ---- what is kept


def test_nothing_is_kept_without_a_gradient():
    m, x = ember.nn.LSTM(64, 64), ember.randn(50, 8, 64)
    with ember.no_grad():
        m(x)
        before = ember._C._memory_stats()["bytes_live"]
        out, _ = m(x)
        after = ember._C._memory_stats()["bytes_live"]
    assert after - before < 2 * out.numel() * 4
    assert out.grad_fn is None


def test_one_node_a_layer():
    out, _ = ember.nn.LSTM(3, 4)(ember.randn(50, 2, 3))
    assert out.grad_fn.name() == "RnnLayerBackward0"
    assert all(
        f.name() == "AccumulateGrad" or f.name().endswith("::AccumulateGrad")
        for f, _ in out.grad_fn.next_functions
        if f is not None
    )


def test_copies_and_pickles():
    m, x = ember.nn.GRU(2, 3, 2), ember.randn(4, 1, 2)
    want = m(x)[0]
    for other in (copy.deepcopy(m), pickle.loads(pickle.dumps(m))):
        assert ember.equal(other(x)[0], want)
        with ember.no_grad():
            other.weight_ih_l0.add_(1.0)
        assert not ember.equal(other(x)[0], want) and ember.equal(m(x)[0], want)


def test_a_replaced_parameter_is_used():
    m, x = ember.nn.RNN(2, 3), ember.randn(4, 1, 2)
    m.weight_ih_l0 = ember.nn.Parameter(ember.zeros(3, 2))
    m.weight_hh_l0 = ember.nn.Parameter(ember.zeros(3, 3))
    out, _ = m(x)
    assert ember.allclose(out[0, 0], ember.tanh(m.bias_ih_l0 + m.bias_hh_l0))
    assert m.double()(x.double())[0].dtype == ember.float64


def test_threads_do_not_change_the_bits():
    m, x = ember.nn.LSTM(16, 32, bidirectional=True), ember.randn(9, 70, 16, requires_grad=True)
    found = []
    before = ember.get_num_threads()
    try:
        for n in (1, 2):
            ember.set_num_threads(n)
            out, _ = m(x)
            found.append((out, *ember.autograd.grad(out.sin().sum(), [x, *m.parameters()])))
    finally:
        ember.set_num_threads(before)
    assert all(ember.equal(a, b) for a, b in zip(*found))


if __name__ == "__main__":
    cases.write()

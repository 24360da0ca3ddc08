"""Recurrent networks. References walk one sequence at a time with the cells' definitions, in double precision."""

import numpy as np
from makers import calls
from subject import Arg

GATES = {"lstm": 4, "gru": 3, "rnn_tanh": 1, "rnn_relu": 1}


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def cell(kind, x, h, c, w_ih, w_hh, b_ih=None, b_hh=None, w_hr=None):
    """One step of one sequence, or of a batch: (h, c)."""
    gi, gh = x @ w_ih.T, h @ w_hh.T
    gi, gh = (gi if b_ih is None else gi + b_ih), (gh if b_hh is None else gh + b_hh)
    if kind == "lstm":
        i, f, g, o = np.split(gi + gh, 4, -1)
        c = sigmoid(f) * c + sigmoid(i) * np.tanh(g)
        h = sigmoid(o) * np.tanh(c)
        return (h if w_hr is None else h @ w_hr.T), c
    if kind == "gru":
        (ri, zi, ni), (rh, zh, nh) = np.split(gi, 3, -1), np.split(gh, 3, -1)
        z, n = sigmoid(zi + zh), np.tanh(ni + sigmoid(ri + rh) * nh)
        return (1 - z) * n + z * h, None
    return (np.tanh(gi + gh) if kind == "rnn_tanh" else np.maximum(gi + gh, 0)), None


def walk(kind, xs, h, c, weights, reverse):
    """All steps of a sequence: (outputs, h, c)."""
    outs = [None] * len(xs)
    for t in reversed(range(len(xs))) if reverse else range(len(xs)):
        h, c = cell(kind, xs[t], h, c, *weights)
        outs[t] = h
    return np.stack(outs), h, c


def network(kind, sequences, states, params, biases, layers, bidirectional):
    """sequences: one (steps, features) array each. Returns (sequences, h, c)."""
    ways = 2 if bidirectional else 1
    each = len(params) // (layers * ways)
    hs, cs = [], []
    for layer in range(layers):
        halves = []
        for way in range(ways):
            k = layer * ways + way
            given = params[k * each : (k + 1) * each]
            weights = given[:4] if biases else (*given[:2], None, None)
            weights = (*weights, given[-1]) if each in (3, 5) else weights
            done = [
                walk(kind, xs, states[0][k][b], states[1][k][b] if kind == "lstm" else None, weights, way == 1)
                for b, xs in enumerate(sequences)
            ]
            halves.append([d[0] for d in done])
            hs.append(np.stack([d[1] for d in done]))
            cs.append(np.stack([d[2] for d in done]) if kind == "lstm" else None)
        sequences = [np.concatenate(both, -1) for both in zip(*halves)]
    return sequences, np.stack(hs), np.stack(cs) if kind == "lstm" else None


def results(kind, output, h, c):
    return (output, h, c) if kind == "lstm" else (output, h)


def padded(kind):
    def ref(x, hx, params, biases, layers, dropout, train, bidirectional, batch_first):
        x = x if batch_first else x.swapaxes(0, 1)
        out, h, c = network(kind, list(x), hx if kind == "lstm" else (hx,), params, biases, layers, bidirectional)
        out = np.stack(out)
        return results(kind, out if batch_first else out.swapaxes(0, 1), h, c)

    return ref


def unpacked(data, batch_sizes):
    starts = np.cumsum([0, *batch_sizes])
    return [
        np.stack([data[starts[t] + b] for t in range(len(batch_sizes)) if b < batch_sizes[t]])
        for b in range(batch_sizes[0])
    ]


def repacked(sequences, batch_sizes):
    return np.stack([sequences[b][t] for t, n in enumerate(batch_sizes) for b in range(n)])


def packed(kind):
    def ref(data, batch_sizes, hx, params, biases, layers, dropout, train, bidirectional):
        sequences = unpacked(data, batch_sizes)
        out, h, c = network(kind, sequences, hx if kind == "lstm" else (hx,), params, biases, layers, bidirectional)
        return results(kind, repacked(out, batch_sizes), h, c)

    return ref


def weights(m, kind, layers=1, ways=1, biases=True, features=3, hidden=2, out=None):
    rows, columns = GATES[kind] * hidden, features
    params = []
    for layer in range(layers):
        for _ in range(ways):
            params += [m(rows, columns, low=-1, high=1), m(rows, out or hidden, low=-1, high=1)]
            params += [m(rows, low=-1, high=1), m(rows, low=-1, high=1)] if biases else []
            params += [m(out, hidden, low=-1, high=1)] if out else []
        columns = (out or hidden) * ways
    return params


def state(m, kind, count, batch, hidden=2, out=None):
    h = m(count, batch, out or hidden, low=-1, high=1)
    return [h, m(count, batch, hidden, low=-1, high=1)] if kind == "lstm" else h


def samples(kind):
    def make(m):
        yield (m(3, 2, 3), state(m, kind, 1, 2), weights(m, kind), True, 1, 0.0, False, False, False), {}
        yield (m(2, 4, 3), state(m, kind, 4, 2), weights(m, kind, 2, 2, False), False, 2, 0.0, True, True, True), {}
        yield (m(1, 1, 3), state(m, kind, 1, 1, 5), weights(m, kind, hidden=5), True, 1, 0.0, False, False, False), {}
        if kind == "lstm":
            yield (
                m(3, 2, 3),
                state(m, kind, 2, 2, 4, 2),
                weights(m, kind, 1, 2, True, 3, 4, 2),
                True,
                1,
                0.0,
                False,
                True,
                False,
            ), {}

    return make


def packed_samples(kind):
    sizes = Arg(np.array([3, 2, 2, 1]), "int64")

    def make(m):
        yield (m(8, 3), sizes, state(m, kind, 1, 3), weights(m, kind), True, 1, 0.0, False, False), {}
        yield (m(8, 3), sizes, state(m, kind, 4, 3), weights(m, kind, 2, 2, False), False, 2, 0.0, False, True), {}

    return make


def cells(kind):
    def make(m):
        w = weights(m, kind)
        first = [m(2, 2), m(2, 2)] if kind == "lstm" else m(2, 2)
        yield (m(2, 3), first, *w), {}
        yield (m(2, 3), first, *w[:2]), {}

    return make


def one_step(kind):
    def ref(x, hx, *w):
        h, c = cell(kind, x, *(hx if kind == "lstm" else (hx, None)), *w)
        return (h, c) if kind == "lstm" else h

    return ref


def pack(x, lengths, batch_first):
    x = x if batch_first else x.swapaxes(0, 1)
    sizes = [int((lengths > t).sum()) for t in range(lengths[0])]
    return repacked(list(x), sizes), np.array(sizes)


def pad(data, batch_sizes, batch_first, value, total):
    out = np.full((max(total, len(batch_sizes)), batch_sizes[0], *data.shape[1:]), value, dtype=data.dtype)
    sequences = unpacked(data, batch_sizes)
    for b, s in enumerate(sequences):
        out[: len(s), b] = s
    return out.swapaxes(0, 1) if batch_first else out, np.array([len(s) for s in sequences])


def unpack_grad(grad, size, batch_sizes, batch_first):
    steps = size[1 if batch_first else 0]
    return pad(grad, batch_sizes, batch_first, 0, steps)[0]


def pad_list(sequences, batch_first=False, value=0.0, side="right"):
    longest = max(map(len, sequences))
    rows = []
    for s in sequences:
        fill = np.full((longest - len(s), *s.shape[1:]), value).astype(s.dtype)
        rows.append(np.concatenate([fill, s] if side == "left" else [s, fill]))
    out = np.stack(rows)
    return out if batch_first else out.swapaxes(0, 1)


def groups(E):
    lengths, sizes = Arg(np.array([4, 3, 1]), "int64"), Arg(np.array([3, 2, 2, 1]), "int64")
    entries = []
    for kind in GATES:
        same = ("same",) * (3 if kind == "lstm" else 2)
        entries += [
            E(f"{kind}.input", samples(kind), padded(kind), result=same, kinds="float", scale=40),
            E(f"{kind}.data", packed_samples(kind), packed(kind), result=same, kinds="float", scale=40, layout=False),
            E(
                f"{kind}_cell",
                cells(kind),
                one_step(kind),
                result=("same", "same") if kind == "lstm" else "same",
                kinds="float",
                scale=16,
            ),
        ]
    two = calls(lambda m: (m(4, 3, 2), lengths, False), lambda m: (m(3, 5, 2, 2), lengths, True))
    return {
        "rnn": entries
        + [
            # lengths and batch sizes that a layout repeats are not such any more
            E("_pack_padded_sequence", two, pack, result=("same", "int64"), layout=False),
            E(
                "_pack_padded_sequence_backward",
                calls(lambda m: (m(8, 2), [4, 3, 2], sizes, False), lambda m: (m(8, 2), [3, 5, 2], sizes, True)),
                unpack_grad,
                layout=False,
            ),
            E(
                "_pad_packed_sequence",
                calls(
                    lambda m: (m(8, 2), sizes, False, m.number(1), -1),
                    lambda m: (
                        m(
                            8,
                        ),
                        sizes,
                        True,
                        m.number(0, 0.0),
                        6,
                    ),
                ),
                pad,
                result=("same", "int64"),
                layout=False,
            ),
            E(
                "pad_sequence",
                calls(lambda m: ([m(2, 3), m(4, 3), m(1, 3)],), lambda m: ([m(2), m(3)], True, 1.0, "left")),
                pad_list,
            ),
        ]
    }

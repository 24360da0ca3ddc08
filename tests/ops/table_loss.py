"""Losses beside those of table.py, distances, bags of embeddings."""
import numpy as np
import references as r
from makers import calls
from subject import Arg


def reduced(values, reduction):
    return values if reduction == 0 else values.mean() if reduction == 1 else values.sum()


def pair(f):
    """A loss of two arrays: reference of (x, y, reduction, *numbers)."""
    return lambda x, y, reduction=1, *numbers: reduced(f(x, y, *numbers), reduction)


def pair_backward(slope):
    def ref(g, x, y, reduction, *numbers):
        d = g * slope(x, y, *numbers)
        return d / x.size if reduction == 1 else d
    return ref


def smooth(x, y, beta=1.0):
    z = np.abs(x - y)
    return np.where(z < beta, 0.5 * z * z / beta, z - 0.5 * beta)


def huber(x, y, delta=1.0):
    z = np.abs(x - y)
    return np.where(z < delta, 0.5 * z * z, delta * (z - 0.5 * delta))


def multi_margin(x, t, p=1, margin=1, weight=None, reduction=1):
    rows = x.reshape(-1, x.shape[-1])
    losses = []
    for row, k in zip(rows, t.reshape(-1)):
        z = np.maximum(0, margin - row[k] + row) ** p * (1 if weight is None else weight[k])
        z[k] = 0
        losses.append(z.sum() / row.size)
    losses = np.array(losses)
    return reduced(losses, reduction) if x.ndim > 1 else losses[0]


def multi_margin_backward(g, x, t, p, margin, weight=None, reduction=1):
    d = np.zeros_like(x)
    for i, k in enumerate(t):
        z = margin - x[i, k] + x[i]
        slope = np.where(z > 0, 1 if p == 1 else 2 * z, 0) * (1 if weight is None else weight[k]) / x.shape[1]
        slope[k] = 0
        d[i] = slope
        d[i, k] = -slope.sum()
    return d * (g[:, None] if reduction == 0 else g / len(t) if reduction == 1 else g)


def named(t):
    return [k for k in t[:np.argmax(np.append(t, -1) == -1)]]


def multilabel(x, t, reduction=1):
    losses, hits = [], np.zeros(np.shape(t))
    for i, (row, labels) in enumerate(zip(x.reshape(-1, x.shape[-1]), t.reshape(-1, x.shape[-1]))):
        at = named(labels)
        hits.reshape(-1, x.shape[-1])[i, at] = 1
        others = [k for k in range(row.size) if k not in at]
        losses.append(sum(max(0, 1 - row[k] + row[d]) for k in at for d in others) / row.size)
    losses = np.array(losses)
    return reduced(losses, reduction) if x.ndim > 1 else losses[0], hits


def multilabel_backward(g, x, t, reduction, hits):
    d = np.zeros_like(x)
    for i, labels in enumerate(t):
        at = named(labels)
        for k in at:
            for j in set(range(x.shape[1])) - set(at):
                if 1 - x[i, k] + x[i, j] > 0:
                    d[i, j] += 1 / x.shape[1]
                    d[i, k] -= 1 / x.shape[1]
    return d * (g[:, None] if reduction == 0 else g / len(t) if reduction == 1 else g)


def hinge(x, y, margin=1.0, reduction=1):
    return reduced(np.where(y != 1, np.maximum(0, margin - x), 0) + np.where(y != -1, x, 0), reduction)


def ranking(a, b, y, margin=0.0, reduction=1):
    return reduced(np.maximum(0, -y * (a - b) + margin), reduction)


def distance(a, b, p=2.0, eps=1e-6, keepdim=False):
    return (np.abs(a - b + eps) ** p).sum(-1, keepdims=keepdim) ** (1 / p)


def triplet(a, b, c, margin=1.0, p=2.0, eps=1e-6, swap=False, reduction=1):
    far = np.minimum(distance(a, c, p, eps), distance(b, c, p, eps)) if swap else distance(a, c, p, eps)
    return reduced(np.maximum(0, margin + distance(a, b, p, eps) - far), reduction)


def cosine(a, b, dim=1, eps=1e-8):
    a, b = np.broadcast_arrays(a, b)
    length = lambda x: np.maximum(np.sqrt((x * x).sum(dim)), eps)  # noqa: E731
    return (a * b).sum(dim) / length(a) / length(b)


def cosine_embedding(a, b, y, margin=0.0, reduction=1):
    c = cosine(a, b, -1)
    return reduced(np.where(y == 1, 1 - c, 0) + np.where(y == -1, np.maximum(0, c - margin), 0), reduction)


def poisson(x, y, log_input, full, eps, reduction):
    loss = np.exp(x) - y * x if log_input else x - y * np.log(x + eps)
    if full:
        loss = loss + np.where(y > 1, y * np.log(y) - y + 0.5 * np.log(2 * np.pi * y), 0)
    return reduced(loss, reduction)


def kl(x, y, reduction=1, log_target=False):
    return reduced(np.exp(y) * (y - x) if log_target else y * np.log(y) - y * x, reduction)


def ctc_single(lp, labels, blank):
    """-log of the sum over all alignments, one by one."""
    extended = [blank]
    for k in labels:
        extended += [k, blank]
    ways = {}
    for s in range(min(2, len(extended))):
        ways[s] = np.exp(lp[0, extended[s]])
    for t in range(1, len(lp)):
        after = {}
        for s, p in ways.items():
            for n in (s, s + 1, s + 2):
                if n < len(extended) and (n < s + 2 or (extended[n] != blank and extended[n] != extended[s])):
                    after[n] = after.get(n, 0) + p * np.exp(lp[t, extended[n]])
        ways = after
    total = sum(ways.get(s, 0) for s in (len(extended) - 1, len(extended) - 2))
    return -np.log(total) if total else np.inf


def ctc(lp, targets, inputs, lengths, blank=0, reduction=1, zero_infinity=False):
    inputs, lengths = np.asarray(inputs), np.asarray(lengths)
    at = np.cumsum([0, *lengths])
    pick = lambda i: targets[at[i]:at[i + 1]] if targets.ndim == 1 else targets[i, :lengths[i]]  # noqa: E731
    losses = np.array([ctc_single(lp[:inputs[i], i], pick(i), blank) for i in range(len(lengths))])
    return (losses / np.maximum(lengths, 1)).mean() if reduction == 1 else reduced(losses, reduction)


def bag(w, ids, offsets, scale=False, mode=0, sparse=False, weights=None, last=False, padding=-1):
    padding = -1 if padding is None else padding % len(w) if padding >= 0 else padding
    ends = list(offsets[1:]) + ([] if last else [len(ids)])
    out, sizes, top = [], [], []
    for begin, end in zip(offsets, ends):
        chosen = [i for i in range(begin, end) if ids[i] != padding]
        rows = np.array([w[ids[i]] * (1 if weights is None else weights[i]) for i in chosen]).reshape(-1, w.shape[1])
        sizes.append(0 if mode == 0 else len(chosen))
        empty = np.zeros(w.shape[1])
        out.append(empty if not chosen else [rows.sum(0), rows.mean(0), rows.max(0)][mode] if mode < 2 else rows.max(0))
        top.append([ids[chosen[k]] for k in rows.argmax(0)] if chosen else [0] * w.shape[1])
    where = [b for b, (begin, end) in enumerate(zip(offsets, ends)) for _ in range(begin, end)]
    return np.array(out), np.array(where), np.array(sizes), np.array(top if mode == 2 else sizes)


def bag_backward(g, ids, offsets, where, sizes, top, rows, scale, mode, sparse, weights, padding=-1):
    d = np.zeros((rows, g.shape[1]))
    count = np.bincount(ids, minlength=rows)
    ends = list(offsets[1:]) + [len(ids)]
    for b, (begin, end) in enumerate(zip(offsets, ends)):
        if mode == 2:
            for k in range(g.shape[1]):
                d[top[b, k], k] += g[b, k]
            continue
        for i in range(begin, end):
            if ids[i] != padding:
                d[ids[i]] += (g[b] * (1 if weights is None else weights[i]) / (sizes[b] if mode == 1 else 1)
                              / (count[ids[i]] if scale else 1))
    return d


def bag_weights_backward(g, w, ids, offsets, where, mode, padding=-1):
    return np.array([0 if k == padding else g[b] @ w[k] for k, b in zip(ids, where)])


def renormed(w, ids, most, p):
    w = np.array(w)
    for k in set(np.ravel(ids)):
        length = (np.abs(w[k]) ** p).sum() ** (1 / p)
        if length > most:
            w[k] *= most / (length + 1e-7)
    return w


IDS, OFFSETS = Arg([0, 1, 4, 2, 2], "int64"), Arg([0, 2], "int64")


def groups(E):
    fl = {"kinds": "float"}
    each = lambda f: calls(*[lambda m, k=k: f(m, k) for k in (0, 1, 2)])  # noqa: E731
    two = lambda *numbers: each(lambda m, k: (m(3, 4), m(3, 4), k, *numbers))  # noqa: E731
    back = lambda *numbers: each(lambda m, k: (m(*((3, 4) if k == 0 else ())), m(3, 4), m(3, 4), k, *numbers))  # noqa: E731
    signs = lambda m, *s: Arg(np.where(m.random.rand(*s) < 0.5, -1.0, 1.0), diff=False)  # noqa: E731
    labels = Arg([[1, -1, 0], [2, 0, -1]], "int64")
    square = lambda x, y: (x - y) ** 2  # noqa: E731
    soft = lambda x, y: np.log1p(np.exp(-x * y))  # noqa: E731
    lp = lambda m: m(4, 2, 3, low=-3, high=-0.1)  # noqa: E731
    ctcs = calls(*[lambda m, k=k: (lp(m), Arg([[1, 2], [2, 1]], "int64"), [4, 3], [2, 1], 0, k) for k in (0, 1, 2)],
                 lambda m: (lp(m), Arg([1, 2, 2], "int64"), [4, 4], [2, 1], 0, 0))
    tensor_ctcs = calls(lambda m: (lp(m), Arg([[1, 2], [2, 1]], "int64"), Arg([4, 3], "int64"), Arg([2, 1], "int64")))

    def bags(*tail):
        return calls(lambda m: (m(5, 3), IDS, OFFSETS, False, 1, False, None, False, *tail),
                     lambda m: (m(5, 3), IDS, OFFSETS, False, 2, False, None, False, *tail),
                     lambda m: (m(5, 3), IDS, Arg([0, 2, 2, 5], "int64"), False, 1, False, None, True, *tail))
    padded = calls(lambda m: (m(5, 3), IDS, OFFSETS, False, 1, False, None, False, 2),
                   lambda m: (m(5, 3), IDS, OFFSETS, False, 0, False, m(5), False, 2),
                   lambda m: (m(5, 3), IDS, OFFSETS, False, 2, False, None, False, 4))
    counts, tops = Arg([2, 3], "int64"), Arg([[0, 1, 0], [2, 4, 4]], "int64")
    where = Arg([0, 0, 1, 1, 1], "int64")
    four = {"result": ("same", "int64", "int64", "int64"), "layout": False}  # offsets must stay what they are
    return {"losses_of_rows": [
        E("mse_loss", two(), pair(square), "fo", **fl),
        E("mse_loss_backward", back(), pair_backward(lambda x, y: 2 * (x - y)), "fo", **fl),
        E("smooth_l1_loss", two(0.7), pair(smooth), "fo", scale=2, **fl),
        E("smooth_l1_loss_backward", back(0.7), pair_backward(lambda x, y, b: np.clip((x - y) / b, -1, 1)), "fo", scale=2, **fl),
        E("huber_loss", two(0.7), pair(huber), "fo", scale=2, **fl),
        E("huber_loss_backward", back(0.7), pair_backward(lambda x, y, d: np.clip(x - y, -d, d)), "f", scale=2, **fl),
        E("soft_margin_loss", each(lambda m, k: (m(3, 4), m(3, 4, diff=False), k)), pair(soft), "fo", scale=4, **fl),
        E("soft_margin_loss_backward", each(lambda m, k: (m(*((3, 4) if k == 0 else ())), m(3, 4), m(3, 4, diff=False), k)),
          pair_backward(lambda x, y: -y * r.sigmoid(-x * y)), "fo", scale=4, **fl),
        E("multi_margin_loss", calls(*[lambda m, k=k: (m(4, 3), m.index(4, high=3), 1 + k % 2, 1, m.positive(3, diff=False), k)
                                       for k in (0, 1, 2)], lambda m: (m(3), Arg([1], "int64"))), multi_margin, "fo",
          scale=2, **fl),
        E("multi_margin_loss_backward", calls(*[
            lambda m, k=k: (m(*((4,) if k == 0 else ())), m(4, 3, diff=False), m.index(4, high=3), 1 + k % 2, 1, None, k)
            for k in (0, 1, 2)]), multi_margin_backward, "fo", scale=2, **fl),
        E("multilabel_margin_loss", each(lambda m, k: (m(2, 3), labels, k)), lambda *a: multilabel(*a)[0], "fo", scale=2, **fl),
        E("multilabel_margin_loss_forward", each(lambda m, k: (m(2, 3), labels, k)), multilabel, "f", scale=2, **fl),
        E("multilabel_margin_loss_backward", each(lambda m, k: (
            m(*((2,) if k == 0 else ())), m(2, 3), labels, k, Arg([[1, 1, 0], [1, 0, 1]], diff=False))), multilabel_backward,
          "fo", scale=2, **fl),
        E("hinge_embedding_loss", each(lambda m, k: (m(3, 4), signs(m, 3, 4), 1.0, k)), hinge, **fl),
        E("margin_ranking_loss", each(lambda m, k: (m(4), m(4), signs(m, 4), 0.5, k)), ranking, **fl),
        E("triplet_margin_loss", each(lambda m, k: (m(3, 4), m(3, 4), m(3, 4), 1.0, 2.0, 1e-6, k == 1, k)), triplet, scale=8, **fl),
        E("cosine_embedding_loss", each(lambda m, k: (m(3, 4), m(3, 4), signs(m, 3), 0.1, k)), cosine_embedding, scale=8, **fl),
        E("cosine_similarity", calls(lambda m: (m(3, 4), m(3, 4)), lambda m: (m(3, 4), m(1, 4), 0, 1e-6)), cosine, scale=8, **fl),
        E("pairwise_distance", calls(lambda m: (m(3, 4), m(3, 4)), lambda m: (m(3, 4), m(4), 3.0, 1e-3, True)), distance, scale=8,
          **fl),
        E("poisson_nll_loss", calls(lambda m: (m(3, 4), m.positive(3, 4), True, False, 1e-8, 1),
                                    lambda m: (m.positive(3, 4), m.positive(3, 4), False, True, 1e-3, 0)), poisson, scale=8, **fl),
        E("kl_div", calls(lambda m: (m(3, 4), m.positive(3, 4)), lambda m: ((m(3, 4), m(3, 4), 2), {"log_target": True})), kl,
          scale=8, **fl),
        E("ctc_loss.IntList", ctcs, ctc, scale=8, **fl), E("ctc_loss.Tensor", tensor_ctcs, ctc, scale=8, **fl),
        E("embedding_bag", bags(), bag, **four, **fl), E("embedding_bag.padding_idx", padded, bag, **four, **fl),
        E("_embedding_bag", padded, bag, **four, **fl), E("_embedding_bag_forward_only", padded, bag, **four, **fl),
        E("_embedding_bag_backward", calls(
            lambda m: (m(2, 3, diff=False), IDS, OFFSETS, where, counts, counts, 5, True, 1, False, None, -1),
            lambda m: (m(2, 3), IDS, OFFSETS, where, counts, counts, 5, False, 0, False, m(5, diff=False), 2),
            lambda m: (m(2, 3, diff=False), IDS, OFFSETS, where, counts, tops, 5, False, 2, False, None, -1)), bag_backward, **fl),
        E("_embedding_bag_per_sample_weights_backward", calls(
            lambda m: (m(2, 3), m(5, 3), IDS, OFFSETS, where, 0, 2)), bag_weights_backward, scale=4, **fl),
        E("embedding_renorm_", calls(lambda m: (m(5, 3, diff=False), IDS, 1.0, 2.0), lambda m: (m(5, 3, diff=False), IDS, 0.5, 1.0)),
          renormed, scale=4, **fl),
    ]}

"""scaled_dot_product_attention, MultiheadAttention, Transformer layers: PyTorch's numbers, and memory that does not hold the scores."""

import os
import sys

import pytest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from golden_util import Cases, raises, warned

cases = Cases(__file__)


def first_line(fn, *args, **kwargs):
    return raises(fn, *args, **kwargs).split("\n")[0]


def attend(T, shape, keys=None, heads=None, transposed=False, dtype="float32", mask=None, **kw):
    """Result, its strides, the node's name, gradients and their strides."""
    B, H, L, D = shape

    def make(h, length):
        x = T.randn(B, length, h, D).transpose(1, 2) if transposed else T.randn(B, h, length, D)
        return x.to(getattr(T, dtype)).detach().requires_grad_()

    q, k, v = make(H, L), make(heads or H, keys or L), make(heads or H, keys or L)
    if mask is not None:
        kw["attn_mask"] = mask(T, L, keys or L)
    out = T.nn.functional.scaled_dot_product_attention(q, k, v, **kw)
    out.sin().sum().backward()
    return [
        out,
        list(out.stride()),
        out.grad_fn.name(),
        *[x for t in (q, k, v) for x in (t.grad, list(t.grad.stride()))],
    ]


def some(T, rows, cols):
    m = T.rand(rows, cols) > 0.4
    m[0] = False  # sees nothing
    return m


@cases.add(tol=2e-5)
def fused(T):
    return [
        attend(T, (2, 2, 5, 4)),
        attend(T, (1, 2, 6, 3), keys=4, transposed=True, is_causal=True),
        attend(T, (1, 4, 3, 2), heads=2, enable_gqa=True),
        attend(T, (1, 1, 3, 4), keys=5, is_causal=True, dtype="float64", scale=0.3),
        attend(T, (1, 1, 1, 4), keys=7),
    ]


@cases.add(tol=2e-5)
def fused_with_masks(T):
    return [
        attend(T, (2, 2, 4, 4), mask=some),
        attend(T, (1, 2, 4, 4), mask=lambda T, r, c: T.randn(1, 2, r, c)),
        attend(T, (2, 1, 3, 4), keys=5, mask=lambda T, r, c: T.rand(2, 1, 1, c) > 0.5),
        attend(T, (1, 1, 4, 3), mask=lambda T, r, c: T.randn(r, 1), is_causal=True),
    ]


@cases.add(tol=5e-5)
def many_blocks(T):
    """More queries and keys than one block holds, and sizes that fill none."""
    made = []
    for kw in ({}, {"is_causal": True}, {"mask": some}):
        out = attend(T, (1, 2, 150, 20), keys=301, **kw)
        made += [out[0][:, :, ::37, ::5], *[g[:, :, ::29, ::7] for g in out[3::2]]]
    return made


@cases.add(tol=2e-5)
def of_operators(T):
    f = T.nn.functional.scaled_dot_product_attention
    q = T.randn(2, 4, 3)
    wide, short = T.randn(2, 2, 4, 3), T.randn(2, 2, 4, 5)
    m = T.randn(4, 4, requires_grad=True)
    f(wide, wide, wide, attn_mask=m).sin().sum().backward()
    return [
        f(q, q, q),
        f(q[0], q[0], q[0], is_causal=True),
        f(wide, wide, short),
        f(wide, wide, wide, dropout_p=0.5),
        m.grad,
        f(wide, wide, wide, attn_mask=some(T, 4, 4), dropout_p=0.25),
        f(wide, wide, wide, dropout_p=1.0),
        f(q, q, q, scale=-0.5),
    ]


@cases.add(tol=0.02)
def half_precision(T):
    return [attend(T, (1, 2, 5, 4), dtype=d)[0] for d in ("bfloat16", "float16")]


@cases.add()
def complaints(T):
    f, q = T.nn.functional.scaled_dot_product_attention, T.zeros(2, 4, 6, 8)
    tries = [
        ((q, q.double(), q), {}),
        ((q[0, 0, 0],) * 3, {}),
        ((q, q, q), {"attn_mask": T.ones(5, 6)}),
        ((q, q, q), {"attn_mask": T.ones(6, 6).int()}),
        ((q, q, q), {"dropout_p": 2.0}),
        ((q, q, q), {"dropout_p": -1.0}),
        ((q, q, q), {"attn_mask": T.ones(6).bool()}),
        ((q, q[:, :2], q[:, :2]), {}),
        ((q, q[:, :3], q[:, :3]), {"enable_gqa": True}),
        ((1, 2, 3), {}),
    ]
    return [first_line(f, *a, **kw) for a, kw in tries]


@cases.add()
def backends(T):
    A = T.nn.attention
    q = T.randn(1, 1, 4, 4, requires_grad=True)
    f = T.nn.functional.scaled_dot_product_attention
    made = []
    for b in (
        A.SDPBackend.MATH,
        [A.SDPBackend.MATH, A.SDPBackend.FLASH_ATTENTION],
        A.SDPBackend.FLASH_ATTENTION,
        A.SDPBackend.EFFICIENT_ATTENTION,
        [],
    ):
        with A.sdpa_kernel(b):
            try:
                made.append(f(q, q, q).grad_fn.name())
            except RuntimeError as e:
                made.append(str(e).split("\n")[0])
    cuda = T.backends.cuda
    with cuda.sdp_kernel(enable_flash=False):
        made += [f(q, q, q).grad_fn.name(), cuda.flash_sdp_enabled(), cuda.math_sdp_enabled()]
    cuda.enable_flash_sdp(False)
    made.append(f(q, q, q).grad_fn.name())
    cuda.enable_flash_sdp(True)
    return [
        *made,
        f(q, q, q).grad_fn.name(),
        repr(A.SDPBackend.MATH),
        str(A.SDPBackend.ERROR),
        T._fused_sdp_choice(q, q, q),
        T._fused_sdp_choice(q, q, q, dropout_p=0.5),
    ]


@cases.add(tol=2e-5)
def multihead(T):
    made = []
    for kw, call in (
        ({}, {}),
        ({"batch_first": True, "bias": False}, {"average_attn_weights": False}),
        ({"add_bias_kv": True, "add_zero_attn": True}, {}),
        ({"kdim": 3, "vdim": 5}, {"need_weights": False}),
        ({"dropout": 0.5}, {}),
        ({"dropout": 0.5}, {"need_weights": False}),
    ):
        m = T.nn.MultiheadAttention(4, 2, **kw)
        n, length = 2, 3
        q, k, v = (
            T.randn(*((n, length, d) if kw.get("batch_first") else (length, n, d)), requires_grad=True)
            for d in (4, kw.get("kdim", 4), kw.get("vdim", 4))
        )
        pad = T.tensor([[False, False, True], [False, False, False]])
        for masks in (
            {},
            {"key_padding_mask": pad},
            {"attn_mask": T.randn(3, 3)},
            {"attn_mask": T.randn(4, 3, 3), "key_padding_mask": T.randn(2, 3)},
        ):
            out, weights = m(q, k, v, **call, **masks)
            out.sin().sum().backward()
            made += [out, weights, list(out.stride())]
        made += [q.grad, k.grad, v.grad, [p.grad for p in m.parameters()], list(m.state_dict()), repr(m)]
    return made


@cases.add(tol=2e-5)
def multihead_itself(T):
    m = T.nn.MultiheadAttention(4, 2)
    x = T.randn(3, 2, 4, requires_grad=True)
    causal = T.nn.Transformer.generate_square_subsequent_mask(3)
    a = m(x, x, x, attn_mask=causal, is_causal=True, need_weights=False)[0]
    b, w = m(x, x, x, attn_mask=causal, is_causal=True)
    one = m(x[:, 0], x[:, 0], x[:, 0])
    return [a, b, w, *one, T.autograd.grad(a.sum(), x), {k: v for k, v in m.state_dict().items()}]


@cases.add(tol=2e-5)
def multihead_without_training(T):
    """A row of nothing but padding, and how results lie in memory."""
    m, x = T.nn.MultiheadAttention(8, 2, batch_first=True).eval(), T.randn(2, 5, 8)
    pad = T.tensor([[False] * 5, [True] * 5])
    with T.no_grad():
        found = [m(x, x, x, key_padding_mask=pad), m(x, x, x, need_weights=False), m(x, x.clone(), x, average_attn_weights=False)]
    return [[*pair, list(pair[0].stride())] for pair in (*found, m(x, x, x))]


@cases.add(tol=5e-5)
def transformer(T):
    made = []
    for kw in (
        {},
        {"batch_first": True, "norm_first": True, "activation": "gelu"},
        {"dropout": 0.0, "bias": False, "activation": T.tanh},
    ):
        t = warned(T.nn.Transformer, 4, 2, 2, 2, 8, **kw)[1]
        src, tgt = T.randn(3, 3, 4, requires_grad=True), T.randn(3, 3, 4)
        mask = T.nn.Transformer.generate_square_subsequent_mask(3)
        pad = T.tensor([[False, False, False], [False, False, True], [False, True, True]])
        out = t(src, tgt)
        masked = t(src, tgt, tgt_mask=mask, src_key_padding_mask=pad, memory_key_padding_mask=pad)
        out.sin().sum().backward()
        made += [out, masked, src.grad, [p.grad.sum() for p in t.parameters()], list(t.state_dict())]
    return made


@cases.add(tol=5e-5)
def encoder_leaves_padding_out(T):
    layer = T.nn.TransformerEncoderLayer(4, 2, 8, batch_first=True)
    m = T.nn.TransformerEncoder(layer, 2).eval()
    for p in m.parameters():
        T.nn.init.normal_(p, 0, 0.3)
    x, pad = T.randn(2, 3, 4), T.tensor([[False, False, True], [False, True, True]])
    with T.no_grad():
        return [
            warned(m, x, src_key_padding_mask=pad)[1],
            m(x),
            m.layers[0](x),
            m(x, mask=T.nn.Transformer.generate_square_subsequent_mask(3)),
        ]


@cases.add()
def module_complaints(T):
    nn, z = T.nn, T.zeros
    m, x = nn.MultiheadAttention(4, 2), z(3, 2, 4)
    t = warned(nn.Transformer, 4, 2, 1, 1, 8)[1]
    tries = [
        ((m, x, x, z(4, 2, 4)), {}),
        ((m, z(3, 2, 5), z(3, 2, 5), z(3, 2, 5)), {}),
        ((m, z(3, 4), x, x), {}),
        ((m, z(3), x, x), {}),
        ((m, x, x, x), {"attn_mask": z(2, 2)}),
        ((m, x, x, x), {"attn_mask": z(2, 3, 3)}),
        ((m, x, x, x), {"attn_mask": z(3)}),
        ((m, x, x, x), {"key_padding_mask": z(3, 3)}),
        ((m, x, x, x), {"key_padding_mask": z(2, 3).int()}),
        ((m, x, x, x), {"attn_mask": z(3, 3).int()}),
        ((m, x, x, x), {"is_causal": True}),
        ((nn.MultiheadAttention, 5, 2), {}),
        ((nn.MultiheadAttention, 0, 2), {}),
        ((nn.MultiheadAttention, 4, 0), {}),
        ((t, x, z(3, 3, 4)), {}),
        ((t, z(3, 2, 5), z(3, 2, 5)), {}),
        ((nn.TransformerEncoderLayer, 4, 2, 8), {"activation": "x"}),
    ]
    mixed = warned(m, x, x, x, attn_mask=z(3, 3).bool(), key_padding_mask=z(2, 3))[0]
    layers = [
        nn.TransformerEncoderLayer(4, 2, 8, **kw)
        for kw in (
            {},
            {"norm_first": True},
            {"batch_first": True, "bias": False},
            {"batch_first": True, "activation": T.tanh},
        )
    ]
    return [
        *[first_line(*a, **kw) for a, kw in tries],
        mixed,
        *[warned(nn.TransformerEncoder, e, 1)[0] for e in layers],
        repr(t),
        nn.Transformer.generate_square_subsequent_mask(3, dtype=T.float64),
    ]


test_golden = cases.test()


# ---- what is held


def peak(fn):
    import ember

    fn()
    ember._C._reset_peak_memory()
    before = ember._C._memory_stats()["bytes_live"]
    kept = fn()
    used = ember._C._memory_stats()["bytes_peak"] - before
    del kept
    return used


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_the_scores_are_never_held(dtype):
    """Twice the length: the scores would need four times the memory."""
    import ember

    before = ember.get_num_threads()
    ember.set_num_threads(1)
    try:
        used = {}
        for length in (1024, 2048):
            q = ember.randn(1, 2, length, 32, dtype=getattr(ember, dtype), requires_grad=True)
            g = ember.randn(1, 2, length, 32, dtype=getattr(ember, dtype))
            f = ember.nn.functional.scaled_dot_product_attention
            used[length] = peak(lambda: f(q, q, q, is_causal=True)), peak(lambda: ember.autograd.grad(f(q, q, q), q, g))
    finally:
        ember.set_num_threads(before)
    scores = 2 * 2048 * 2048 * 4
    for forward_or_backward in (0, 1):
        assert used[2048][forward_or_backward] < scores / 8, used
        assert used[2048][forward_or_backward] < 2.2 * used[1024][forward_or_backward], used


def test_nothing_is_saved_without_a_gradient():
    import ember

    q = ember.randn(1, 2, 64, 16)
    out = ember.nn.functional.scaled_dot_product_attention(q, q, q)
    assert out.grad_fn is None and not out.requires_grad


@pytest.mark.parametrize("causal", [False, True])
def test_second_derivative(causal):
    import ember

    ember.manual_seed(0)
    q, k, v = (ember.randn(1, 2, 3, 2, dtype=ember.float64, requires_grad=True) for _ in range(3))
    m = ember.randn(3, 3, dtype=ember.float64)
    f = ember.nn.functional.scaled_dot_product_attention
    assert ember.autograd.gradgradcheck(lambda a, b, c: f(a, b, c, m, is_causal=causal), (q, k, v))
    assert ember.autograd.gradgradcheck(lambda a, b, c: f(a, b, c, is_causal=causal), (q, k, v))


def test_threads_do_not_change_the_bits():
    import ember

    q, k = ember.randn(2, 3, 200, 24, requires_grad=True), ember.randn(2, 3, 300, 24, requires_grad=True)
    found, before = [], ember.get_num_threads()
    try:
        for n in (1, 2):
            ember.set_num_threads(n)
            out = ember.nn.functional.scaled_dot_product_attention(q, k, k)
            found.append((out, *ember.autograd.grad(out.sin().sum(), [q, k])))
    finally:
        ember.set_num_threads(before)
    assert all(ember.equal(a, b) for a, b in zip(*found))


@pytest.mark.parametrize(
    "change", [lambda t: t[:, :, :1], lambda t: t[:, :, ::2], lambda t: t.expand(2, -1, -1, -1), lambda t: t[..., :1]]
)
def test_operands_that_do_not_fit_are_refused(change):
    """Read by length alone, values shorter than the keys would be read beyond their end."""
    import ember

    q = ember.randn(1, 2, 4, 3)
    call = ember.ops.aten._scaled_dot_product_flash_attention_for_cpu
    with pytest.raises(RuntimeError):
        call(q, q, change(q))
    out, lse = call(q, q, q)
    with pytest.raises(RuntimeError):
        ember.ops.aten._scaled_dot_product_flash_attention_for_cpu_backward(change(q), q, q, q, out, lse, 0.0, False)


if __name__ == "__main__":
    cases.write()

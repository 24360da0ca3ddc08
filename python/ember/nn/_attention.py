"""Attention for nn.functional: scaled_dot_product_attention and the whole of multi_head_attention_forward."""

import math
import warnings
from typing import Any

import ember
from ember._C import _nn

__all__ = ["scaled_dot_product_attention", "multi_head_attention_forward", "_canonical_mask", "_none_or_dtype",
           "_in_projection", "_in_projection_packed", "_mha_shape_check"]

scaled_dot_product_attention = _nn.scaled_dot_product_attention


def _linear(x, w, b=None):
    return _nn.linear(x, w, b)


def _none_or_dtype(input):
    if input is None:
        return None
    if isinstance(input, ember.Tensor):
        return input.dtype
    raise RuntimeError("input to _none_or_dtype() must be None or torch.Tensor")


def _canonical_mask(mask, mask_name, other_type, other_name, target_type, check_other=True):
    """A mask as numbers to add: -inf where a bool mask is True."""
    if mask is None:
        return None
    if mask.dtype != ember.bool and not mask.is_floating_point():
        raise AssertionError(f"only bool and floating types of {mask_name} are supported")
    if check_other and other_type is not None and mask.dtype != other_type:
        warnings.warn(
            f"Support for mismatched {mask_name} and {other_name} "
            "is deprecated. Use same type for both instead.",
            stacklevel=2,
        )
    if mask.is_floating_point():
        return mask
    return ember.zeros_like(mask, dtype=target_type).masked_fill_(mask, float("-inf"))


def _in_projection_packed(q, k, v, w, b=None):
    """Query, key and value projected by one weight (3 E, E); one product when they are the same tensor."""
    E = q.size(-1)
    if k is v:
        if q is k:
            # (..., 3 E) with the three side by side: three dense tensors, one after the other in memory
            proj = _linear(q, w, b).unflatten(-1, (3, E)).unsqueeze(0).transpose(0, -2).squeeze(-2).contiguous()
            return proj[0], proj[1], proj[2]
        w_q, w_kv = w.split([E, 2 * E])
        b_q, b_kv = (None, None) if b is None else b.split([E, 2 * E])
        q_proj = _linear(q, w_q, b_q)
        kv_proj = _linear(k, w_kv, b_kv).unflatten(-1, (2, E)).unsqueeze(0).transpose(0, -2).squeeze(-2).contiguous()
        return q_proj, kv_proj[0], kv_proj[1]
    w_q, w_k, w_v = w.chunk(3)
    b_q, b_k, b_v = (None, None, None) if b is None else b.chunk(3)
    return _linear(q, w_q, b_q), _linear(k, w_k, b_k), _linear(v, w_v, b_v)


def _in_projection(q, k, v, w_q, w_k, w_v, b_q=None, b_k=None, b_v=None):
    """Query, key and value projected by weights of their own."""
    Eq, Ek, Ev = q.size(-1), k.size(-1), v.size(-1)
    assert w_q.shape == (Eq, Eq), f"expecting query weights shape of {(Eq, Eq)}, but got {w_q.shape}"
    assert w_k.shape == (Eq, Ek), f"expecting key weights shape of {(Eq, Ek)}, but got {w_k.shape}"
    assert w_v.shape == (Eq, Ev), f"expecting value weights shape of {(Eq, Ev)}, but got {w_v.shape}"
    for name, b in (("query", b_q), ("key", b_k), ("value", b_v)):
        assert b is None or b.shape == (Eq,), f"expecting {name} bias shape of {(Eq,)}, but got {b.shape}"
    return _linear(q, w_q, b_q), _linear(k, w_k, b_k), _linear(v, w_v, b_v)


def _mha_shape_check(query, key, value, key_padding_mask, attn_mask, num_heads):
    """Whether the query is batched; the other shapes must agree."""
    if query.dim() == 3:
        assert key.dim() == 3 and value.dim() == 3, (
            "For batched (3-D) `query`, expected `key` and `value` to be 3-D"
            f" but found {key.dim()}-D and {value.dim()}-D tensors respectively"
        )
        if key_padding_mask is not None:
            assert key_padding_mask.dim() == 2, (
                "For batched (3-D) `query`, expected `key_padding_mask` to be `None` or 2-D"
                f" but found {key_padding_mask.dim()}-D tensor instead"
            )
        if attn_mask is not None:
            assert attn_mask.dim() in (2, 3), (
                "For batched (3-D) `query`, expected `attn_mask` to be `None`, 2-D or 3-D"
                f" but found {attn_mask.dim()}-D tensor instead"
            )
        return True
    if query.dim() == 2:
        assert key.dim() == 2 and value.dim() == 2, (
            "For unbatched (2-D) `query`, expected `key` and `value` to be 2-D"
            f" but found {key.dim()}-D and {value.dim()}-D tensors respectively"
        )
        if key_padding_mask is not None:
            assert key_padding_mask.dim() == 1, (
                "For unbatched (2-D) `query`, expected `key_padding_mask` to be `None` or 1-D"
                f" but found {key_padding_mask.dim()}-D tensor instead"
            )
        if attn_mask is not None:
            assert attn_mask.dim() in (2, 3), (
                "For unbatched (2-D) `query`, expected `attn_mask` to be `None`, 2-D or 3-D"
                f" but found {attn_mask.dim()}-D tensor instead"
            )
            if attn_mask.dim() == 3:
                expected = (num_heads, query.shape[0], key.shape[0])
                assert attn_mask.shape == expected, (
                    f"Expected `attn_mask` shape to be {expected} but got {attn_mask.shape}"
                )
        return False
    raise AssertionError(f"query should be unbatched 2D or batched 3D tensor but received {query.dim()}-D query tensor")


def _checked_mask(attn_mask, num_heads, batch, queries, keys):
    """The mask with a leading dim for heads, its size checked."""
    if attn_mask.dim() == 2:
        if attn_mask.shape != (queries, keys):
            raise RuntimeError(
                f"The shape of the 2D attn_mask is {attn_mask.shape}, but should be {(queries, keys)}."
            )
        return attn_mask.unsqueeze(0)
    if attn_mask.dim() == 3:
        if attn_mask.shape != (batch * num_heads, queries, keys):
            raise RuntimeError(
                f"The shape of the 3D attn_mask is {attn_mask.shape}, "
                f"but should be {(batch * num_heads, queries, keys)}."
            )
        return attn_mask
    raise RuntimeError(f"attn_mask's dimension {attn_mask.dim()} is not supported")


def _heads(x, batch_heads, head_dim):
    """(length, batch, E) as (batch * heads, length, head_dim)."""
    return x.view(x.shape[0], batch_heads, head_dim).transpose(0, 1)


def _given(static, name, batch_heads, head_dim):
    """Keys or values that the caller projected already."""
    assert static.size(0) == batch_heads, f"expecting {name}.size(0) of {batch_heads}, but got {static.size(0)}"
    assert static.size(2) == head_dim, f"expecting {name}.size(2) of {head_dim}, but got {static.size(2)}"
    return static


def _longer(mask):
    """One more key that everybody may see."""
    return None if mask is None else ember._C._nn.pad(mask, (0, 1), "constant", None)


def _joined_mask(attn_mask, key_padding_mask, batch, num_heads, keys):
    if key_padding_mask is None:
        return attn_mask
    for dim, size in enumerate((batch, keys)):
        got = key_padding_mask.shape[dim]
        assert got == size, f"Expected key_padded_mask.shape[{dim}] to be {size}, but got {got}"
    padding = key_padding_mask.view(batch, 1, 1, keys).expand(-1, num_heads, -1, -1)
    padding = padding.reshape(batch * num_heads, 1, keys)
    return padding if attn_mask is None else attn_mask + padding


def _masks(query, attn_mask, key_padding_mask, is_causal, need_weights):
    """Both masks as numbers, and whether attention is causal without them."""
    key_padding_mask = _canonical_mask(
        key_padding_mask, "key_padding_mask", _none_or_dtype(attn_mask), "attn_mask", query.dtype
    )
    if is_causal and attn_mask is None:
        raise RuntimeError(
            "Need attn_mask if specifying the is_causal hint. "
            "You may use the Transformer module method "
            "`generate_square_subsequent_mask` to create this mask."
        )
    if is_causal and key_padding_mask is None and not need_weights:
        return None, None, True  # the kernel knows what a causal mask is
    attn_mask = _canonical_mask(attn_mask, "attn_mask", None, "", query.dtype, False)
    return attn_mask, key_padding_mask, is_causal and key_padding_mask is None  # two masks become one


def _project(query, key, value, weight, bias, separate):
    """Query, key and value projected: by one weight, or by the three of `separate`."""
    if separate is None:
        assert key.shape == value.shape, f"key shape {key.shape} does not match value shape {value.shape}"
        assert weight is not None, "use_separate_proj_weight is False but in_proj_weight is None"
        return _in_projection_packed(query, key, value, weight, bias)
    assert key.shape[:2] == value.shape[:2], (
        f"key's sequence and batch dims {key.shape[:2]} do not match value's {value.shape[:2]}"
    )
    for name, w in zip("qkv", separate):
        assert w is not None, f"use_separate_proj_weight is True but {name}_proj_weight is None"
    return _in_projection(query, key, value, *separate, *((None, None, None) if bias is None else bias.chunk(3)))


def _attend_with_weights(q, k, v, attn_mask, dropout_p):
    """(rows, length, head_dim) results and the weights, which are held."""
    scaled = q * math.sqrt(1.0 / float(q.size(-1)))
    if attn_mask is not None:
        weights = ember.baddbmm(attn_mask, scaled, k.transpose(-2, -1))
    else:
        weights = ember.bmm(scaled, k.transpose(-2, -1))
    weights = weights.softmax(-1)
    if dropout_p > 0.0:
        weights = ember.dropout(weights, dropout_p, True)
    return ember.bmm(weights, v).transpose(0, 1), weights


def _attend_fused(q, k, v, attn_mask, dropout_p, is_causal, num_heads):
    """(length, rows, head_dim) results of the kernel."""
    split = lambda t: t.view(-1, num_heads, *t.shape[1:])  # noqa: E731
    if attn_mask is not None:
        attn_mask = attn_mask.unsqueeze(0) if attn_mask.size(0) == 1 and attn_mask.dim() == 3 else split(attn_mask)
    output = scaled_dot_product_attention(split(q), split(k), split(v), attn_mask, dropout_p, is_causal)
    return output.permute(2, 0, 1, 3)


def _add_keys(k, v, bias_k, bias_v, attn_mask, key_padding_mask, static):
    """A key and a value that are parameters, behind the others."""
    assert static[0] is None, "bias cannot be added to static key."
    assert static[1] is None, "bias cannot be added to static value."
    k = ember.cat([k, bias_k.expand(1, k.size(1), -1)])
    v = ember.cat([v, bias_v.expand(1, v.size(1), -1)])
    return k, v, _longer(attn_mask), _longer(key_padding_mask)


def _add_zeros(k, v, attn_mask, key_padding_mask):
    """A key and a value of zeros, behind the others."""
    shape = (k.size(0), 1, k.size(2))
    k = ember.cat([k, ember.zeros(shape, dtype=k.dtype, device=k.device)], dim=1)
    v = ember.cat([v, ember.zeros(shape, dtype=v.dtype, device=v.device)], dim=1)
    return k, v, _longer(attn_mask), _longer(key_padding_mask)


def multi_head_attention_forward(
    query, key, value, embed_dim_to_check, num_heads, in_proj_weight, in_proj_bias, bias_k, bias_v, add_zero_attn,
    dropout_p, out_proj_weight, out_proj_bias, training=True, key_padding_mask=None, need_weights=True, attn_mask=None,
    use_separate_proj_weight=False, q_proj_weight=None, k_proj_weight=None, v_proj_weight=None, static_k=None,
    static_v=None, average_attn_weights=True, is_causal=False,
) -> Any:  # fmt: skip
    """Projections, attention in heads, output projection: what nn.MultiheadAttention runs.

    (length, batch, E), or (length, E) unbatched.
    """
    given = list(locals().items())
    operands = (query, key, value, in_proj_weight, in_proj_bias, bias_k, bias_v, out_proj_weight, out_proj_bias)
    if ember.overrides.has_torch_function(operands):
        first = [value for _, value in given[:13]]  # up to out_proj_bias; the others go by name
        return ember.overrides.handle_torch_function(multi_head_attention_forward, operands, *first, **dict(given[13:]))
    batched = _mha_shape_check(query, key, value, key_padding_mask, attn_mask, num_heads)
    if not batched:
        query, key, value = query.unsqueeze(1), key.unsqueeze(1), value.unsqueeze(1)
        key_padding_mask = None if key_padding_mask is None else key_padding_mask.unsqueeze(0)
    queries, batch, embed_dim = query.shape
    attn_mask, key_padding_mask, is_causal = _masks(query, attn_mask, key_padding_mask, is_causal, need_weights)
    assert embed_dim == embed_dim_to_check, (
        f"was expecting embedding dimension of {embed_dim_to_check}, but got {embed_dim}"
    )
    head_dim = embed_dim // num_heads
    assert head_dim * num_heads == embed_dim, f"embed_dim {embed_dim} not divisible by num_heads {num_heads}"
    separate = (q_proj_weight, k_proj_weight, v_proj_weight) if use_separate_proj_weight else None
    q, k, v = _project(query, key, value, in_proj_weight, in_proj_bias, separate)
    if attn_mask is not None:
        attn_mask = _checked_mask(attn_mask, num_heads, batch, queries, key.shape[0])
    if bias_k is not None and bias_v is not None:
        more = _add_keys(k, v, bias_k, bias_v, attn_mask, key_padding_mask, (static_k, static_v))
        k, v, attn_mask, key_padding_mask = more
    else:
        assert bias_k is None and bias_v is None

    rows = batch * num_heads
    q = _heads(q, rows, head_dim)
    k = _heads(k, rows, head_dim) if static_k is None else _given(static_k, "static_k", rows, head_dim)
    v = _heads(v, rows, head_dim) if static_v is None else _given(static_v, "static_v", rows, head_dim)
    if add_zero_attn:
        k, v, attn_mask, key_padding_mask = _add_zeros(k, v, attn_mask, key_padding_mask)
    keys = k.size(1)
    attn_mask = _joined_mask(attn_mask, key_padding_mask, batch, num_heads, keys)
    dropout_p = dropout_p if training else 0.0
    weights = None
    if need_weights:
        output, weights = _attend_with_weights(q, k, v, attn_mask, dropout_p)
        weights = weights.view(batch, num_heads, queries, keys)
        weights = weights.mean(dim=1) if average_attn_weights else weights
        weights = weights if batched else weights.squeeze(0)
    else:
        output = _attend_fused(q, k, v, attn_mask, dropout_p, is_causal, num_heads)
    output = _linear(output.contiguous().view(queries * batch, embed_dim), out_proj_weight, out_proj_bias)
    output = output.view(queries, batch, -1)
    return (output if batched else output.squeeze(1)), weights

"""Look-up functions of nn.functional: embedding and embedding_bag."""

import ember
from ember.overrides import handle_torch_function, has_torch_function_variadic

__all__ = ["embedding", "embedding_bag"]


def _renorm(weight, input, max_norm, norm_type):
    """Scales the rows of weight that input names down to max_norm, in place and unseen by autograd."""
    with ember.no_grad():
        ember.embedding_renorm_(weight.detach(), input, max_norm, norm_type)


def embedding(input, weight, padding_idx=None, max_norm=None, norm_type=2.0, scale_grad_by_freq=False, sparse=False) -> "ember.Tensor":
    """Rows of weight (V, D) at integer indices input (*), int64 or int32: a result of (*, D).

    padding_idx: the row that gets no gradient. max_norm: rows that are looked up are first scaled down to this norm, in
    place. scale_grad_by_freq: gradients are divided by how often a row occurs. IndexError for an index outside [0, V).

    >>> F.embedding(torch.tensor([2, 0]), torch.eye(3))
    tensor([[0., 0., 1.],
            [1., 0., 0.]])
    """
    if has_torch_function_variadic(input, weight):
        return handle_torch_function(embedding, (input, weight), input, weight, padding_idx=padding_idx,
                                     max_norm=max_norm, norm_type=norm_type, scale_grad_by_freq=scale_grad_by_freq,
                                     sparse=sparse)
    if padding_idx is None:
        padding_idx = -1
    elif padding_idx > 0:
        assert padding_idx < weight.size(0), "Padding_idx must be within num_embeddings"
    elif padding_idx < 0:
        assert padding_idx >= -weight.size(0), "Padding_idx must be within num_embeddings"
        padding_idx = weight.size(0) + padding_idx
    if max_norm is not None:
        _renorm(weight, input, max_norm, norm_type)
    return ember.embedding(weight, input, padding_idx, scale_grad_by_freq, sparse)


_MODES = {"sum": 0, "mean": 1, "max": 2}


def _as_bags(input, offsets, per_sample_weights):
    """input, offsets and weights in one row each: a 2-D input is one bag a row."""
    if input.dim() == 2:
        if offsets is not None:
            raise ValueError("if input is 2D, then offsets has to be None, as input is treated is a mini-batch of fixed "
                             f"length sequences. However, found offsets of type {type(offsets)}")
        offsets = ember.arange(0, input.numel(), input.size(1), dtype=input.dtype, device=input.device)
        weights = None if per_sample_weights is None else per_sample_weights.reshape(-1)
        return input.reshape(-1), offsets, weights
    if input.dim() != 1:
        raise ValueError(f"input has to be 1D or 2D Tensor, but got Tensor of dimension {input.dim()}")
    if offsets is None:
        raise ValueError("offsets has to be a 1D Tensor but got None")
    if offsets.dim() != 1:
        raise ValueError("offsets has to be a 1D Tensor")
    return input, offsets, per_sample_weights


def embedding_bag(input, weight, offsets=None, max_norm=None, norm_type: float = 2, scale_grad_by_freq=False, mode="mean",
                  sparse=False, per_sample_weights=None, include_last_offset=False, padding_idx=None) -> "ember.Tensor":
    """Sums, means or maxima of the rows of weight that each bag of indices names.

    input (B, N): a bag a row; or (N) with offsets, where each bag starts. padding_idx counts for nothing.
    """
    if has_torch_function_variadic(input, weight, offsets, per_sample_weights):
        return handle_torch_function(embedding_bag, (input, weight, offsets, per_sample_weights), input, weight,
                                     offsets=offsets, max_norm=max_norm, norm_type=norm_type,
                                     scale_grad_by_freq=scale_grad_by_freq, mode=mode, sparse=sparse,
                                     per_sample_weights=per_sample_weights, include_last_offset=include_last_offset,
                                     padding_idx=padding_idx)
    if per_sample_weights is not None and input.size() != per_sample_weights.size():
        raise ValueError(f"embedding_bag: If per_sample_weights ({per_sample_weights.shape}) is not None, then it must "
                         f"have the same shape as the input ({input.shape})")
    if weight.dim() != 2:
        raise ValueError(f"weight has to be a 2D Tensor, but got Tensor of dimension {weight.dim()}")
    input, offsets, per_sample_weights = _as_bags(input, offsets, per_sample_weights)
    if mode not in _MODES:
        raise ValueError("mode has to be one of sum, mean or max")
    if mode == "max" and scale_grad_by_freq:
        raise ValueError("max mode does not support scaling the gradient by the frequency")
    if mode == "max" and sparse:
        raise ValueError("max mode does not support sparse weights")
    if max_norm is not None:
        _renorm(weight, input, max_norm, norm_type)
    if per_sample_weights is not None and mode != "sum":
        raise NotImplementedError("embedding_bag: per_sample_weights was not None. per_sample_weights is only supported "
                                  f"for mode='sum' (got mode='{mode}'). Please open a feature request on GitHub.")
    return ember.embedding_bag(weight, input, offsets, scale_grad_by_freq, _MODES[mode], sparse, per_sample_weights,
                               include_last_offset, padding_idx)[0]

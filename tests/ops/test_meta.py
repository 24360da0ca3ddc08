"""A call on meta tensors says dtype, sizes, strides, offset and aliasing of the same call on real ones."""
import pytest
from sampling import PRESENT, cases, samples, tensors, writes_first
from subject import FULL, flat, operator, torch
from table import GROUPS, TABLE

# Their results' sizes or values are in the data.
NO_META = {"nonzero", "masked_select", "where", "equal", "allclose", "repeat_interleave.Tensor",
           "repeat_interleave.self_Tensor", "tensor_split.tensor_indices_or_sections", "masked_scatter_backward",
           "nonzero_numpy", "argwhere", "one_hot", "_pack_padded_sequence", "_pack_padded_sequence_backward",
           "_pad_packed_sequence", "lstm.data", "gru.data", "rnn_tanh.data", "rnn_relu.data",
           "_unique", "_unique2", "unique_dim", "unique_consecutive",
           "unique_dim_consecutive", "bincount", "ctc_loss.Tensor"}
DTYPES = ["float32", "int64", "bool", "bfloat16", "complex64"] if FULL else ["float32", "int64", "bool"]
FACTORIES = {entry.name for entry in GROUPS["creation"] + GROUPS["drawn"]} | {"logspace", "tril_indices", "triu_indices"}


def to_meta(tensor):
    return torch.empty_strided(tuple(tensor.shape), tensor.stride(), dtype=tensor.dtype, device="meta")


def turned(tensor):
    """The same values with the dimensions laid out the other way around."""
    n = tensor.dim()
    return tensor if n < 2 else tensor.permute(*range(n - 1, -1, -1)).contiguous().permute(*range(n - 1, -1, -1))


def masks(sample):
    """Whether an index is a mask: then the result's size is in the data."""
    return any(getattr(a, "dtype", None) == "bool" for a in (sample[0][1] if len(sample[0]) > 1 and
                                                             isinstance(sample[0][1], list) else []))


def describe(result, inputs):
    """What must agree: shape, strides, dtype, offset, and which input is written or viewed."""
    if not isinstance(result, torch.Tensor):
        return result
    same = [i for i, t in enumerate(inputs) if t is result]
    return (
    tuple(
        result.shape),
        result.stride(),
        result.dtype,
        result.storage_offset(),
        same,
         same or result._is_view())


def run(name, sample, dtype, change, device=None):
    args, kwargs = tensors(sample, dtype, change)
    if "dtype" in kwargs and device and name in FACTORIES:
        kwargs["device"] = device
    inputs = [a for a in args if isinstance(a, torch.Tensor)]
    return [describe(result, inputs) for result in flat(operator(name)(*args, **kwargs))]


@pytest.mark.parametrize("name, dtype", cases([n for n in PRESENT if n not in NO_META], DTYPES))
def test_meta_is_like_real(name, dtype):
    for number, sample in enumerate(samples(name, dtype)):
        if name.startswith("index") and masks(sample):
            continue
        for layout in (lambda t: t, turned) if TABLE[name].layout else (lambda t: t,):
            real = run(name, sample, dtype, layout)
            meta = run(name, sample, dtype, lambda t: to_meta(layout(t)), "meta")
            assert real == meta, f"{name} {dtype} sample {number}"


@pytest.mark.parametrize("name", sorted(set(PRESENT) & NO_META - {"where", "equal", "allclose"}))
def test_meta_refuses_shapes_that_are_in_the_data(name):
    with pytest.raises((NotImplementedError, RuntimeError)):
        run(name, samples(name, "float32")[0], "float32", to_meta)


@pytest.mark.parametrize("name", [n for n in PRESENT if writes_first(n) and "alpha_dropout" not in n])  # writes twice
def test_meta_inplace_bumps_the_version(name):
    args, kwargs = tensors(samples(name, "float32")[0], "float32", to_meta)
    before = args[0]._version
    operator(name)(*args, **kwargs)
    assert args[0]._version == before + 1

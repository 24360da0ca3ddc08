"""Sequences of different lengths: padded into one tensor, or packed without padding, as recurrent layers take them."""

from typing import NamedTuple, Optional
from typing import Any

import ember
from ember import Tensor

__all__ = [
    "PackedSequence",
    "invert_permutation",
    "pack_padded_sequence",
    "pad_packed_sequence",
    "pad_sequence",
    "unpad_sequence",
    "pack_sequence",
    "unpack_sequence",
]


class PackedSequence_(NamedTuple):
    data: Tensor
    batch_sizes: Tensor
    sorted_indices: Optional[Tensor]
    unsorted_indices: Optional[Tensor]


def _each(t, function):
    return None if t is None else function(t)


class PackedSequence(PackedSequence_):
    """Rows of all sequences, step after step; batch_sizes[t] sequences are still running at step t.

    sorted_indices says which sequence stands where (longest first), unsorted_indices the way back. Made by pack_padded_sequence and
    pack_sequence.
    """

    def __new__(cls, data, batch_sizes=None, sorted_indices=None, unsorted_indices=None):
        if batch_sizes is None:  # an old way: (data, batch_sizes) as one argument
            assert isinstance(data, (list, tuple)) and len(data) == 2, "Expected data to be a list or tuple of length 2"
            data, batch_sizes = data
        elif batch_sizes.device.type != "cpu":
            raise ValueError(
                "batch_sizes should always be on CPU. "
                "Instances of PackedSequence should never be created manually. "
                "They should be instantiated by functions like pack_sequence "
                "and pack_padded_sequences in nn.utils.rnn. "
                "https://pytorch.org/docs/stable/nn.html#torch.nn.utils.rnn.pack_sequence"
            )
        if unsorted_indices is None:
            unsorted_indices = invert_permutation(sorted_indices)
        return super().__new__(cls, data, batch_sizes, sorted_indices, unsorted_indices)

    def _with(self, data, move):
        """The same packing of other data; batch_sizes stays on the CPU and int64."""
        return type(self)(data, self.batch_sizes, _each(self.sorted_indices, move), _each(self.unsorted_indices, move))

    def pin_memory(self) -> Any:
        return self._with(self.data.pin_memory(), lambda t: t.pin_memory())

    def to(self, *args, **kwargs) -> Any:
        """The data moved or cast as Tensor.to does; itself when there is nothing to do. Indices keep their dtype."""
        data = self.data.to(*args, **kwargs)
        if data is self.data:
            return self
        return self._with(data, lambda t: t.to(data.device))

    def cuda(self, *args, **kwargs) -> Any:
        if "device" not in kwargs and not args:
            kwargs["device"] = "cuda"
        return self.to(*args, **kwargs)

    def cpu(self, *args, **kwargs) -> Any:
        kwargs["device"] = "cpu"
        return self.to(*args, **kwargs)

    def double(self) -> Any:
        return self.to(dtype=ember.double)

    def float(self) -> Any:
        return self.to(dtype=ember.float)

    def half(self) -> Any:
        return self.to(dtype=ember.half)

    def long(self) -> Any:
        return self.to(dtype=ember.long)

    def int(self) -> Any:
        return self.to(dtype=ember.int)

    def short(self) -> Any:
        return self.to(dtype=ember.short)

    def char(self) -> Any:
        return self.to(dtype=ember.int8)

    def byte(self) -> Any:
        return self.to(dtype=ember.uint8)

    @property
    def is_cuda(self) -> Any:
        return self.data.is_cuda

    def is_pinned(self) -> Any:
        return self.data.is_pinned()


def invert_permutation(permutation) -> Any:
    """The permutation that undoes this one (None: None)."""
    if permutation is None:
        return None
    inverse = ember.empty_like(permutation)
    inverse.scatter_(0, permutation, ember.arange(0, permutation.numel(), device=permutation.device))
    return inverse


def pack_padded_sequence(input, lengths, batch_first=False, enforce_sorted=True) -> Any:
    """Packs (steps, batch, *), or (batch, steps, *) with batch_first. lengths must fall, unless enforce_sorted is False."""
    if not isinstance(lengths, Tensor):
        lengths = ember.as_tensor(lengths, dtype=ember.int64, device="cpu")
    if enforce_sorted:
        order = None
    else:
        lengths, order = ember.sort(lengths, descending=True)
        order = order.to(input.device)
        input = input.index_select(0 if batch_first else 1, order)
    data, batch_sizes = ember._VF._pack_padded_sequence(input, lengths, batch_first)
    return PackedSequence(data, batch_sizes, order, None)


def pad_packed_sequence(sequence, batch_first=False, padding_value=0.0, total_length=None) -> Any:
    """(padded, lengths) of a PackedSequence, in the order in which the sequences came; total_length: at least so many steps."""
    if total_length is not None and total_length < sequence.batch_sizes.size(0):
        raise ValueError(
            "Expected total_length to be at least the length "
            "of the longest sequence in input, but got "
            f"total_length={total_length} and max sequence length being {sequence.batch_sizes.size(0)}"
        )
    padded, lengths = ember._VF._pad_packed_sequence(
        sequence.data, sequence.batch_sizes, batch_first, padding_value, total_length or -1
    )
    back = sequence.unsorted_indices
    if back is None:
        return padded, lengths
    return padded.index_select(0 if batch_first else 1, back), lengths[back.cpu()]


def pad_sequence(sequences, batch_first=False, padding_value=0.0, padding_side="right") -> Any:
    """Stacks tensors of different lengths, padded to the longest: (steps, batch, *), or (batch, steps, *)."""
    if isinstance(sequences, Tensor):
        sequences = sequences.unbind(0)
    elif not hasattr(sequences, "__iter__"):
        raise RuntimeError(
            "pad_sequence: Expected iterable for input sequences, but got arg of type: " + str(type(sequences))
        )
    return ember._C._nn.pad_sequence(tuple(sequences), batch_first, padding_value, padding_side)


def unpad_sequence(padded_sequences, lengths, batch_first=False) -> Any:
    """The tensors that pad_sequence was given."""
    if not batch_first:
        padded_sequences = padded_sequences.transpose(0, 1)
    steps = ember.arange(padded_sequences.shape[1], device=lengths.device)
    return [sequence[steps < length] for sequence, length in zip(padded_sequences, lengths)]


def pack_sequence(sequences, enforce_sorted=True) -> Any:
    """Packs a list of tensors of different lengths."""
    lengths = ember.as_tensor([v.size(0) for v in sequences])
    return pack_padded_sequence(pad_sequence(sequences), lengths, enforce_sorted=enforce_sorted)


def unpack_sequence(packed_sequences) -> Any:
    """The tensors that pack_sequence was given."""
    padded, lengths = pad_packed_sequence(packed_sequences, batch_first=True)
    return unpad_sequence(padded, lengths, batch_first=True)

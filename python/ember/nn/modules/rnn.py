"""Recurrent layers: RNN, LSTM, GRU over whole sequences, and their cells. One operator computes a layer (src/ops/rnn.c)."""

import math
import numbers
import warnings
import weakref
from typing import Any

import ember
from .. import init
from ..parameter import Parameter
from ..utils.rnn import PackedSequence
from .module import Module

__all__ = ["RNNBase", "RNN", "LSTM", "GRU", "RNNCellBase", "RNNCell", "LSTMCell", "GRUCell"]

_VF = ember._VF
_GATES = {"LSTM": 4, "GRU": 3, "RNN_TANH": 1, "RNN_RELU": 1}
_RUN = {"RNN_TANH": _VF.rnn_tanh, "RNN_RELU": _VF.rnn_relu, "GRU": _VF.gru}


def apply_permutation(tensor, permutation, dim=1) -> Any:
    warnings.warn(
        "`apply_permutation` is deprecated, please use `tensor.index_select(dim, permutation)` instead",
        category=FutureWarning,
        stacklevel=2,
    )
    return _permuted(tensor, permutation, dim)


def _permuted(tensor, permutation, dim=1):
    return tensor.index_select(dim, permutation)


class RNNBase(Module):
    """What RNN, LSTM and GRU share: parameters weight_ih_l0, weight_hh_l0, bias_ih_l0, bias_hh_l0, ..., those of the reverse direction
    with the suffix _reverse, weight_hr_l0 with a projection. All start uniform in +-1/sqrt(hidden_size).
    """

    __constants__ = [
        "mode",
        "input_size",
        "hidden_size",
        "num_layers",
        "bias",
        "batch_first",
        "dropout",
        "bidirectional",
        "proj_size",
    ]

    def __init__(
        self,
        mode,
        input_size,
        hidden_size,
        num_layers=1,
        bias=True,
        batch_first=False,
        dropout=0.0,
        bidirectional=False,
        proj_size=0,
        device=None,
        dtype=None,
    ) -> None:
        super().__init__()
        self.mode = mode
        self.input_size = input_size
        self.hidden_size = hidden_size
        self.num_layers = num_layers
        self.bias = bias
        self.batch_first = batch_first
        self.dropout = float(dropout)
        self.bidirectional = bidirectional
        self.proj_size = proj_size
        self._flat_weight_refs = []
        self._check_arguments(dropout)
        self._flat_weights_names = []
        self._all_weights = []
        for layer in range(num_layers):
            for direction in range(2 if bidirectional else 1):
                self._add_parameters(layer, direction, {"device": device, "dtype": dtype})
        self._init_flat_weights()
        self.reset_parameters()

    def _check_arguments(self, dropout):
        if not isinstance(dropout, numbers.Number) or not 0 <= dropout <= 1 or isinstance(dropout, bool):
            raise ValueError(
                "dropout should be a number in range [0, 1] "
                "representing the probability of an element being "
                "zeroed"
            )
        if dropout > 0 and self.num_layers == 1:
            warnings.warn(
                "dropout option adds dropout after all but last "
                "recurrent layer, so non-zero dropout expects "
                f"num_layers greater than 1, but got dropout={dropout} and "
                f"num_layers={self.num_layers}",
                stacklevel=2,
            )
        for name, type_ in (("bias", bool), ("batch_first", bool), ("input_size", int), ("hidden_size", int)):
            if not isinstance(getattr(self, name), type_):
                got = type(getattr(self, name)).__name__
                raise TypeError(f"{name} should be of type {type_.__name__}, got: {got}")
        for name in ("input_size", "hidden_size", "num_layers"):
            if getattr(self, name) <= 0:
                raise ValueError(f"{name} must be greater than zero")
        if self.proj_size < 0:
            raise ValueError("proj_size should be a positive integer or zero to disable projections")
        if self.proj_size >= self.hidden_size:
            raise ValueError("proj_size has to be smaller than hidden_size")
        if self.mode not in _GATES:
            raise ValueError("Unrecognized RNN mode: " + self.mode)

    def _add_parameters(self, layer, direction, where):
        rows = _GATES[self.mode] * self.hidden_size
        out = self.proj_size or self.hidden_size
        columns = self.input_size if layer == 0 else out * (2 if self.bidirectional else 1)
        shapes = {"weight_ih": (rows, columns), "weight_hh": (rows, out)}
        if self.bias:
            shapes.update(bias_ih=(rows,), bias_hh=(rows,))
        if self.proj_size > 0:
            shapes["weight_hr"] = (self.proj_size, self.hidden_size)
        suffix = "_reverse" if direction == 1 else ""
        names = [f"{name}_l{layer}{suffix}" for name in shapes]
        for name, shape in zip(names, shapes.values()):
            setattr(self, name, Parameter(ember.empty(shape, **where)))
        self._flat_weights_names.extend(names)
        self._all_weights.append(names)

    def _init_flat_weights(self):
        self._flat_weights = [getattr(self, name, None) for name in self._flat_weights_names]
        self._flat_weight_refs = [None if w is None else weakref.ref(w) for w in self._flat_weights]

    def __setattr__(self, attr, value) -> None:
        # A parameter that is replaced is replaced in the list that the operator gets.
        if "_flat_weights_names" in self.__dict__ and attr in self._flat_weights_names:
            index = self._flat_weights_names.index(attr)
            if index < len(self.__dict__.get("_flat_weights", ())):
                self._flat_weights[index] = value
        super().__setattr__(attr, value)

    def flatten_parameters(self) -> None:
        """Nothing to do: the operator packs weights itself, wherever they lie."""
        return None

    def _apply(self, fn, recurse=True):
        self._flat_weight_refs = []
        result = super()._apply(fn, recurse)
        self._init_flat_weights()
        return result

    def reset_parameters(self) -> None:
        bound = 1.0 / math.sqrt(self.hidden_size) if self.hidden_size > 0 else 0
        for weight in self.parameters():
            init.uniform_(weight, -bound, bound)

    def check_input(self, input, batch_sizes) -> None:
        if not ember.is_autocast_enabled("cpu") and input.dtype != self._flat_weights[0].dtype:
            want = self._flat_weights[0].dtype
            raise ValueError(
                f"RNN input dtype ({input.dtype}) does not match weight dtype ({want}). "
                f"Convert input: input.to({want}), or convert model: model.to({input.dtype})"
            )
        dims = 2 if batch_sizes is not None else 3
        if input.dim() != dims:
            raise RuntimeError(f"input must have {dims} dimensions, got {input.dim()}")
        if self.input_size != input.size(-1):
            raise RuntimeError(
                f"input.size(-1) must be equal to input_size. Expected {self.input_size}, got {input.size(-1)}"
            )

    def get_expected_hidden_size(self, input, batch_sizes) -> Any:
        if batch_sizes is not None:
            batch = int(batch_sizes[0])
        else:
            batch = input.size(0) if self.batch_first else input.size(1)
        return self.num_layers * (2 if self.bidirectional else 1), batch, self.proj_size or self.hidden_size

    def check_hidden_size(self, hx, expected_hidden_size, msg="Expected hidden size {}, got {}") -> None:
        if tuple(hx.size()) != tuple(expected_hidden_size):
            raise RuntimeError(msg.format(expected_hidden_size, list(hx.size())))

    def check_forward_args(self, input, hidden, batch_sizes) -> None:
        self.check_input(input, batch_sizes)
        self.check_hidden_size(hidden, self.get_expected_hidden_size(input, batch_sizes))

    def permute_hidden(self, hx, permutation) -> Any:
        return hx if permutation is None else _permuted(hx, permutation)

    def extra_repr(self) -> str:
        s = f"{self.input_size}, {self.hidden_size}"
        if self.proj_size != 0:
            s += f", proj_size={self.proj_size}"
        if self.num_layers != 1:
            s += f", num_layers={self.num_layers}"
        if self.bias is not True:
            s += f", bias={self.bias}"
        if self.batch_first is not False:
            s += f", batch_first={self.batch_first}"
        if self.dropout != 0:
            s += f", dropout={self.dropout}"
        if self.bidirectional is not False:
            s += f", bidirectional={self.bidirectional}"
        return s

    def __getstate__(self) -> Any:
        state = self.__dict__.copy()
        state.pop("_flat_weight_refs", None)  # weak references are not copied or stored
        return state

    def __setstate__(self, state) -> None:
        super().__setstate__(state)
        if "all_weights" in state:
            self._all_weights = state["all_weights"]
        if "proj_size" not in state:
            self.proj_size = 0
        self._init_flat_weights()

    @property
    def all_weights(self) -> Any:
        return [[getattr(self, name) for name in names] for names in self._all_weights]

    def _replicate_for_data_parallel(self):
        replica = super()._replicate_for_data_parallel()
        replica._flat_weights = replica._flat_weights[:]
        replica._flat_weights_names = replica._flat_weights_names[:]
        return replica

    # --- forward, in the parts that the three classes share

    def _first_state(self, input, batch, columns):
        return ember.zeros(
            self.num_layers * (2 if self.bidirectional else 1), batch, columns, dtype=input.dtype, device=input.device
        )

    def _settings(self):
        return self.bias, self.num_layers, self.dropout, self.training, self.bidirectional


class _Plain(RNNBase):
    """RNN and GRU: one state."""

    def forward(self, input, hx=None) -> Any:
        packed = input if isinstance(input, PackedSequence) else None
        order = batch_sizes = None
        batched = True
        if packed is not None:
            input, batch_sizes, order, back = packed
            batch = int(batch_sizes[0])
            hx = self._first_state(input, batch, self.hidden_size) if hx is None else self.permute_hidden(hx, order)
        else:
            if input.dim() not in (2, 3):
                raise ValueError(self._input_message.format(input.dim()))
            batched = input.dim() == 3
            at = 0 if self.batch_first else 1
            if not batched:
                input = input.unsqueeze(at)
            if hx is None:
                hx = self._first_state(input, input.size(at), self.hidden_size)
            elif hx.dim() != (3 if batched else 2):
                raise RuntimeError(
                    f"For batched 3-D input, hx should also be 3-D but got {hx.dim()}-D tensor"
                    if batched
                    else f"For unbatched 2-D input, hx should also be 2-D but got {hx.dim()}-D tensor"
                )
            elif not batched:
                hx = hx.unsqueeze(1)
        self.check_forward_args(input, hx, batch_sizes)
        run = _RUN[self.mode]
        if packed is None:
            output, hidden = run(input, hx, self._flat_weights, *self._settings(), self.batch_first)
            if not batched:
                return output.squeeze(at), hidden.squeeze(1)
            return output, hidden
        output, hidden = run(input, batch_sizes, hx, self._flat_weights, *self._settings())
        return PackedSequence(output, batch_sizes, order, back), self.permute_hidden(hidden, back)


class RNN(_Plain):
    """h' = tanh(W_ih x + b_ih + W_hh h + b_hh), or relu, over (steps, batch, features). Returns (output, last hidden state)."""

    _input_message = "RNN: Expected input to be 2D or 3D, got {}D tensor instead"

    def __init__(self, *args, **kwargs) -> None:
        if "proj_size" in kwargs:
            raise ValueError("proj_size argument is only supported for LSTM, not RNN or GRU")
        if len(args) > 3:
            self.nonlinearity = args[3]
            args = args[:3] + args[4:]
        else:
            self.nonlinearity = kwargs.pop("nonlinearity", "tanh")
        if self.nonlinearity not in ("tanh", "relu"):
            raise ValueError(f"Unknown nonlinearity '{self.nonlinearity}'. Select from 'tanh' or 'relu'.")
        super().__init__("RNN_" + self.nonlinearity.upper(), *args, **kwargs)


class GRU(_Plain):
    """Gated recurrent units: reset and update gates, and a candidate whose hidden part the reset gate scales."""

    _input_message = "GRU: Expected input to be 2D or 3D, got {}D instead"

    def __init__(self, *args, **kwargs) -> None:
        if "proj_size" in kwargs:
            raise ValueError("proj_size argument is only supported for LSTM, not RNN or GRU")
        super().__init__("GRU", *args, **kwargs)


class LSTM(RNNBase):
    """Long short-term memory: gates i f g o, c' = f c + i g, h' = o tanh(c'). Returns (output, (hidden, cell))."""

    def __init__(self, *args, **kwargs) -> None:
        super().__init__("LSTM", *args, **kwargs)

    def get_expected_cell_size(self, input, batch_sizes) -> Any:
        layers, batch, _ = self.get_expected_hidden_size(input, batch_sizes)
        return layers, batch, self.hidden_size

    def check_forward_args(self, input, hidden, batch_sizes) -> None:
        self.check_input(input, batch_sizes)
        self.check_hidden_size(
            hidden[0], self.get_expected_hidden_size(input, batch_sizes), "Expected hidden[0] size {}, got {}"
        )
        self.check_hidden_size(
            hidden[1], self.get_expected_cell_size(input, batch_sizes), "Expected hidden[1] size {}, got {}"
        )

    def permute_hidden(self, hx, permutation) -> Any:
        if permutation is None:
            return hx
        return _permuted(hx[0], permutation), _permuted(hx[1], permutation)

    def _zeros(self, input, batch):
        return (
            self._first_state(input, batch, self.proj_size or self.hidden_size),
            self._first_state(input, batch, self.hidden_size),
        )

    def forward(self, input, hx=None) -> Any:
        packed = input if isinstance(input, PackedSequence) else None
        order = batch_sizes = None
        batched = True
        if packed is not None:
            input, batch_sizes, order, back = packed
            batch = int(batch_sizes[0])
            hx = self._zeros(input, batch) if hx is None else self.permute_hidden(hx, order)
        else:
            if input.dim() not in (2, 3):
                raise ValueError(f"LSTM: Expected input to be 2D or 3D, got {input.dim()}D instead")
            batched = input.dim() == 3
            at = 0 if self.batch_first else 1
            if not batched:
                input = input.unsqueeze(at)
            if hx is None:
                hx = self._zeros(input, input.size(at))
            elif batched and (hx[0].dim() != 3 or hx[1].dim() != 3):
                raise RuntimeError(
                    "For batched 3-D input, hx and cx should "
                    f"also be 3-D but got ({hx[0].dim()}-D, {hx[1].dim()}-D) tensors"
                )
            elif not batched:
                if hx[0].dim() != 2 or hx[1].dim() != 2:
                    raise RuntimeError(
                        "For unbatched 2-D input, hx and cx should "
                        f"also be 2-D but got ({hx[0].dim()}-D, {hx[1].dim()}-D) tensors"
                    )
                hx = (hx[0].unsqueeze(1), hx[1].unsqueeze(1))
        self.check_forward_args(input, hx, batch_sizes)
        if packed is None:
            output, h, c = _VF.lstm(input, hx, self._flat_weights, *self._settings(), self.batch_first)
            if not batched:
                return output.squeeze(at), (h.squeeze(1), c.squeeze(1))
            return output, (h, c)
        output, h, c = _VF.lstm(input, batch_sizes, hx, self._flat_weights, *self._settings())
        return PackedSequence(output, batch_sizes, order, back), self.permute_hidden((h, c), back)


class RNNCellBase(Module):
    """One step: weight_ih (chunks * hidden, input), weight_hh (chunks * hidden, hidden), bias_ih, bias_hh."""

    __constants__ = ["input_size", "hidden_size", "bias"]

    def __init__(self, input_size, hidden_size, bias, num_chunks, device=None, dtype=None) -> None:
        super().__init__()
        where = {"device": device, "dtype": dtype}
        self.input_size = input_size
        self.hidden_size = hidden_size
        self.bias = bias
        rows = num_chunks * hidden_size
        self.weight_ih = Parameter(ember.empty((rows, input_size), **where))
        self.weight_hh = Parameter(ember.empty((rows, hidden_size), **where))
        if bias:
            self.bias_ih = Parameter(ember.empty(rows, **where))
            self.bias_hh = Parameter(ember.empty(rows, **where))
        else:
            self.register_parameter("bias_ih", None)
            self.register_parameter("bias_hh", None)
        self.reset_parameters()

    def extra_repr(self) -> str:
        s = f"{self.input_size}, {self.hidden_size}"
        if self.bias is not True:
            s += f", bias={self.bias}"
        if "nonlinearity" in self.__dict__ and self.nonlinearity != "tanh":
            s += f", nonlinearity={self.nonlinearity}"
        return s

    def reset_parameters(self) -> None:
        bound = 1.0 / math.sqrt(self.hidden_size) if self.hidden_size > 0 else 0
        for weight in self.parameters():
            init.uniform_(weight, -bound, bound)

    def _weights(self):
        return self.weight_ih, self.weight_hh, self.bias_ih, self.bias_hh

    def _check_dims(self, input, hx):
        name = type(self).__name__ if type(self).__name__ in __all__ else self._name
        if input.dim() not in (1, 2):
            raise ValueError(f"{name}: Expected input to be 1D or 2D, got {input.dim()}D instead")
        if isinstance(hx, tuple):
            for i, state in enumerate(hx):
                if state.dim() not in (1, 2):
                    raise ValueError(f"{name}: Expected hx[{i}] to be 1D or 2D, got {state.dim()}D instead")
        elif hx is not None and hx.dim() not in (1, 2):
            raise ValueError(f"{name}: Expected hidden to be 1D or 2D, got {hx.dim()}D instead")

    def _one_state(self, input, hx, run):
        self._check_dims(input, hx)
        batched = input.dim() == 2
        if not batched:
            input = input.unsqueeze(0)
        if hx is None:
            hx = ember.zeros(input.size(0), self.hidden_size, dtype=input.dtype, device=input.device)
        elif not batched:
            hx = hx.unsqueeze(0)
        result = run(input, hx, *self._weights())
        return result if batched else result.squeeze(0)


class RNNCell(RNNCellBase):
    """h' = tanh(W_ih x + b_ih + W_hh h + b_hh), or relu."""

    __constants__ = ["input_size", "hidden_size", "bias", "nonlinearity"]
    _name = "RNNCell"

    def __init__(self, input_size, hidden_size, bias=True, nonlinearity="tanh", device=None, dtype=None) -> None:
        super().__init__(input_size, hidden_size, bias, num_chunks=1, device=device, dtype=dtype)
        self.nonlinearity = nonlinearity

    def forward(self, input, hx=None) -> Any:
        if self.nonlinearity not in ("tanh", "relu"):
            raise RuntimeError(f"Unknown nonlinearity: {self.nonlinearity}")
        return self._one_state(input, hx, _VF.rnn_tanh_cell if self.nonlinearity == "tanh" else _VF.rnn_relu_cell)


class LSTMCell(RNNCellBase):
    """One step of an LSTM: (h', c') from input and (h, c)."""

    _name = "LSTMCell"

    def __init__(self, input_size, hidden_size, bias=True, device=None, dtype=None) -> None:
        super().__init__(input_size, hidden_size, bias, num_chunks=4, device=device, dtype=dtype)

    def forward(self, input, hx=None) -> Any:
        self._check_dims(input, hx)
        batched = input.dim() == 2
        if not batched:
            input = input.unsqueeze(0)
        if hx is None:
            zeros = ember.zeros(input.size(0), self.hidden_size, dtype=input.dtype, device=input.device)
            hx = (zeros, zeros)
        elif not batched:
            hx = (hx[0].unsqueeze(0), hx[1].unsqueeze(0))
        h, c = _VF.lstm_cell(input, hx, *self._weights())
        return (h, c) if batched else (h.squeeze(0), c.squeeze(0))


class GRUCell(RNNCellBase):
    """One step of a GRU: h' = (1 - z) * n + z * h with gates r, z and candidate n. (N, input_size) and (N, hidden_size), or
    both without N; the state is zero when it is not given.

    Weights weight_ih (3 hidden_size, input_size), weight_hh (3 hidden_size, hidden_size), gates in the order r, z, n.
    RuntimeError for sizes that do not fit.
    """

    _name = "GRUCell"

    def __init__(self, input_size, hidden_size, bias=True, device=None, dtype=None) -> None:
        super().__init__(input_size, hidden_size, bias, num_chunks=3, device=device, dtype=dtype)

    def forward(self, input, hx=None) -> Any:
        return self._one_state(input, hx, _VF.gru_cell)

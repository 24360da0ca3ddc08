"""Containers: Sequential, ModuleList, ModuleDict, ParameterList, ParameterDict."""

import operator
from collections import OrderedDict
from itertools import chain, islice
from typing import Any

import ember
from .module import Module, _addindent
from ..parameter import Parameter

__all__ = ["Container", "Sequential", "ModuleList", "ModuleDict", "ParameterList", "ParameterDict"]


def _iterable(x):
    return hasattr(x, "__iter__")


def _index(container, idx):
    """A non-negative position for idx. Raises IndexError."""
    idx = operator.index(idx)
    if not -len(container) <= idx < len(container):
        raise IndexError(f"index {idx} is out of range")
    return idx + len(container) if idx < 0 else idx


def _pairs(owner, items):
    """Key/value pairs from a mapping or from a sequence of pairs, as dict.update takes them."""
    if hasattr(items, "items"):
        yield from items.items()
        return
    for j, pair in enumerate(items):
        if not _iterable(pair):
            raise TypeError(f"{owner} update sequence element #{j} should be Iterable; is{type(pair).__name__}")
        if len(pair) != 2:
            raise ValueError(f"{owner} update sequence element #{j} has length {len(pair)}; 2 is required")
        yield pair


class Container(Module):
    """Deprecated: a module that holds the modules it is given as keywords."""

    def __init__(self, **kwargs) -> None:
        super().__init__()
        for key, value in kwargs.items():
            self.add_module(key, value)


class Sequential(Module):
    """Calls its modules in order, each on the result of the one before. Takes modules or one OrderedDict.

    Indexed, sliced and iterated over as a list is; append, insert and extend change it.

    >>> net = nn.Sequential(nn.Linear(2, 3), nn.ReLU(), nn.Linear(3, 1))
    >>> net(torch.zeros(4, 2)).shape
    torch.Size([4, 1])
    """

    def __init__(self, *args) -> None:
        super().__init__()
        named = args[0].items() if len(args) == 1 and isinstance(args[0], OrderedDict) else \
            ((str(i), module) for i, module in enumerate(args))
        for name, module in named:
            self.add_module(name, module)

    def _name_at(self, idx):
        return next(islice(self._modules, _index(self, idx), None))

    def __getitem__(self, idx) -> Any:
        if isinstance(idx, slice):
            return type(self)(OrderedDict(list(self._modules.items())[idx]))
        return self._modules[self._name_at(idx)]

    def __setitem__(self, idx, module) -> None:
        setattr(self, self._name_at(idx), module)

    def __delitem__(self, idx) -> None:
        names = list(self._modules)[idx] if isinstance(idx, slice) else [self._name_at(idx)]
        for name in names:
            delattr(self, name)
        self._renumber(list(self._modules.values()))

    def _renumber(self, modules):
        self._modules = {str(i): module for i, module in enumerate(modules)}

    def __len__(self) -> int:
        return len(self._modules)

    def __iter__(self) -> Any:
        return iter(self._modules.values())

    def __dir__(self) -> Any:
        return [name for name in super().__dir__() if not name.isdigit()]

    def _need_sequential(self, other):
        if not isinstance(other, Sequential):
            raise ValueError("add operator supports only objects of Sequential class, but "
                             f"{type(other)} is given.")

    def __add__(self, other) -> Any:
        self._need_sequential(other)
        out = Sequential()
        for module in chain(self, other):
            out.append(module)
        return out

    def __iadd__(self, other) -> Any:
        self._need_sequential(other)
        for module in list(other):
            self.append(module)
        return self

    def _need_factor(self, other):
        if not isinstance(other, int):
            raise TypeError(f"unsupported operand type(s) for *: {type(self)} and {type(other)}")
        if other <= 0:
            raise ValueError(f"Non-positive multiplication factor {other} for {type(self)}")

    def __mul__(self, other) -> Any:
        self._need_factor(other)
        out = Sequential()
        for _ in range(other):
            for module in self:
                out.append(module)
        return out

    __rmul__ = __mul__

    def __imul__(self, other) -> Any:
        self._need_factor(other)
        own = list(self)
        for _ in range(other - 1):
            for module in own:
                self.append(module)
        return self

    def forward(self, input) -> Any:
        for module in self._modules.values():
            input = module(input)
        return input

    def append(self, module) -> Any:
        """Add module at the end. Returns self."""
        self.add_module(str(len(self)), module)
        return self

    def insert(self, index, module) -> Any:
        """Put module before position index. Returns self."""
        if not isinstance(module, Module):
            raise AssertionError(f"module should be of type: {Module}")
        n = len(self)
        if not -n <= index <= n:
            raise IndexError(f"Index out of range: {index}")
        modules = list(self)
        modules.insert(index + n if index < 0 else index, module)
        self._renumber(modules)
        return self

    def extend(self, sequential) -> Any:
        """Add all modules of an iterable at the end. Returns self."""
        for module in sequential:
            self.append(module)
        return self

    def pop(self, key) -> Any:
        """Remove and return the module at a position."""
        module = self[key]
        del self[key]
        return module


class ModuleList(Module):
    """A list of modules, registered under their positions: indexed, sliced, appended to and iterated over as a list is.

    It has no forward of its own.

    >>> layers = nn.ModuleList([nn.Linear(2, 3), nn.Linear(3, 1)])
    >>> len(layers), layers[-1].out_features
    (2, 1)
    """

    def __init__(self, modules=None) -> None:
        super().__init__()
        if modules is not None:
            self += modules

    def __getitem__(self, idx) -> Any:
        if isinstance(idx, slice):
            return type(self)(list(self._modules.values())[idx])
        return self._modules[str(_index(self, idx))]

    def __setitem__(self, idx, module) -> None:
        setattr(self, str(_index(self, idx)), module)

    def __delitem__(self, idx) -> None:
        modules = list(self._modules.values())
        if isinstance(idx, slice):
            del modules[idx]
        else:
            del modules[_index(self, idx)]
        self._modules = {str(i): module for i, module in enumerate(modules)}

    def __len__(self) -> int:
        return len(self._modules)

    def __iter__(self) -> Any:
        return iter(self._modules.values())

    def __iadd__(self, modules) -> Any:
        return self.extend(modules)

    def __add__(self, other) -> Any:
        combined = ModuleList()
        for i, module in enumerate(chain(self, other)):
            combined.add_module(str(i), module)
        return combined

    def __dir__(self) -> Any:
        return [name for name in super().__dir__() if not name.isdigit()]

    def __repr__(self) -> str:
        reprs = [repr(item) for item in self]
        if not reprs:
            return self._get_name() + "()"
        # Neighbours that print alike become one line: (0-3): 4 x Linear(...)
        runs = [[0, 0, reprs[0]]]
        for i, text in enumerate(reprs[1:], 1):
            if text == runs[-1][2]:
                runs[-1][1] += 1
            else:
                runs.append([i, i, text])
        lines = []
        for first, last, text in runs:
            line = f"({first}): {text}" if first == last else f"({first}-{last}): {last - first + 1} x {text}"
            lines.append(_addindent(line, 2))
        return self._get_name() + "(\n  " + "\n  ".join(lines) + "\n)"

    def insert(self, index, module) -> None:
        """Put module before position index."""
        modules = list(self)
        modules.insert(index, module)
        for i, item in enumerate(modules):
            self.add_module(str(i), item)

    def append(self, module) -> Any:
        """Add module at the end. Returns self."""
        self.add_module(str(len(self)), module)
        return self

    def pop(self, key) -> Any:
        """Remove and return the module at a position."""
        module = self[key]
        del self[key]
        return module

    def extend(self, modules) -> Any:
        """Add all modules of an iterable at the end. Returns self."""
        if not _iterable(modules):
            raise TypeError("ModuleList.extend should be called with an iterable, but got "
                            + type(modules).__name__)
        offset = len(self)
        for i, module in enumerate(list(modules)):
            self.add_module(str(offset + i), module)
        return self


class ModuleDict(Module):
    """A dictionary of modules, registered under their keys, in order of insertion. It has no forward of its own."""

    def __init__(self, modules=None) -> None:
        super().__init__()
        if modules is not None:
            self.update(modules)

    def __getitem__(self, key) -> Any:
        return self._modules[key]

    def __setitem__(self, key, module) -> None:
        self.add_module(key, module)

    def __delitem__(self, key) -> None:
        del self._modules[key]

    def __len__(self) -> int:
        return len(self._modules)

    def __iter__(self) -> Any:
        return iter(self._modules)

    def __contains__(self, key) -> bool:
        return key in self._modules

    def clear(self) -> None:
        """Remove all items."""
        self._modules.clear()

    def pop(self, key) -> Any:
        """Remove and return the module under key."""
        module = self[key]
        del self[key]
        return module

    def keys(self) -> Any:
        return self._modules.keys()

    def items(self) -> Any:
        return self._modules.items()

    def values(self) -> Any:
        return self._modules.values()

    def update(self, modules) -> None:
        """Add or replace from a mapping or an iterable of pairs."""
        if not _iterable(modules):
            raise TypeError("ModuleDict.update should be called with an iterable of key/value pairs, but got "
                            + type(modules).__name__)
        for key, module in _pairs("ModuleDict", modules):
            self[key] = module


def _describe(value, type_name):
    """The line that ParameterList and ParameterDict print for one value; type_name(tensor) names its type."""
    if not isinstance(value, ember.Tensor):
        return f"Object of type: {type(value).__name__}"
    kind = "Parameter" if isinstance(value, Parameter) else "Tensor"
    size = "x".join(str(n) for n in value.size())
    device = "" if value.device.type == "cpu" else f" ({value.device})"
    return f"{kind} containing: [{type_name(value)} of size {size}{device}]"


class ParameterList(Module):
    """A list of parameters. Tensors become Parameters; other values are kept as they are."""

    def __init__(self, values=None) -> None:
        super().__init__()
        self._size = 0
        if values is not None:
            self += values

    def __getitem__(self, idx) -> Any:
        if isinstance(idx, slice):
            out = type(self)()
            for i in range(*idx.indices(len(self))):
                out.append(self[i])
            return out
        return getattr(self, str(_index(self, idx)))

    def __setitem__(self, idx, param) -> None:
        # A plain tensor becomes a Parameter, except inside an existing non-parameter slot.
        if isinstance(param, ember.Tensor) and not isinstance(param, Parameter):
            param = Parameter(param)
        setattr(self, str(_index(self, idx)), param)

    def __len__(self) -> int:
        return self._size

    def __iter__(self) -> Any:
        return iter(self[i] for i in range(len(self)))

    def __iadd__(self, values) -> Any:
        return self.extend(values)

    def __dir__(self) -> Any:
        return [name for name in super().__dir__() if not name.isdigit()]

    def append(self, value) -> Any:
        """Add a value at the end. Returns self."""
        self._size += 1
        self[self._size - 1] = value
        return self

    def extend(self, values) -> Any:
        """Add all values of an iterable at the end. Returns self."""
        if not _iterable(values) or isinstance(values, ember.Tensor):
            raise TypeError("ParameterList.extend should be called with an iterable, but got "
                            + type(values).__name__)
        for value in values:
            self.append(value)
        return self

    def extra_repr(self) -> str:
        return "\n".join(f"  ({i}): {_describe(value, lambda t: t.dtype)}" for i, value in enumerate(self))

    def __call__(self, *args, **kwargs) -> Any:
        raise RuntimeError("ParameterList should not be called.")


class ParameterDict(Module):
    """A dictionary of parameters. Tensors become Parameters; other values are kept as they are."""

    def __init__(self, parameters=None) -> None:
        super().__init__()
        self._keys = {}
        if parameters is not None:
            self.update(parameters)

    def _key_to_attr(self, key):
        if not isinstance(key, str):
            raise TypeError("Index given to ParameterDict cannot be used as a key as it is not a string (type is "
                            f"'{type(key).__name__}'). Open an issue on github if you need non-string keys.")
        return key

    def __getitem__(self, key) -> Any:
        return getattr(self, self._key_to_attr(key))

    def __setitem__(self, key, value) -> None:
        attr = self._key_to_attr(key)
        self._keys[key] = None
        if isinstance(value, ember.Tensor) and not isinstance(value, Parameter):
            value = Parameter(value)
        setattr(self, attr, value)

    def __delitem__(self, key) -> None:
        del self._keys[key]
        delattr(self, self._key_to_attr(key))

    def __len__(self) -> int:
        return len(self._keys)

    def __iter__(self) -> Any:
        return iter(self._keys)

    def __reversed__(self) -> Any:
        return reversed(list(self._keys))

    def __contains__(self, key) -> bool:
        return key in self._keys

    def copy(self) -> Any:
        """A new ParameterDict that holds the same parameters."""
        return ParameterDict(OrderedDict((k, self[k]) for k in self._keys))

    def setdefault(self, key, default=None) -> Any:
        """The value under key, after setting it to default if it was absent."""
        if key not in self:
            self[key] = default
        return self[key]

    def clear(self) -> None:
        """Remove all items."""
        for key in list(self._keys):
            del self[key]

    def pop(self, key) -> Any:
        """Remove and return the value under key."""
        value = self[key]
        del self[key]
        return value

    def popitem(self) -> Any:
        """Remove and return the last (key, value)."""
        key, _ = self._keys.popitem()
        value = self[key]
        self._keys[key] = None
        del self[key]
        return key, value

    def get(self, key, default=None) -> Any:
        """The value under key, or default."""
        return self[key] if key in self else default

    def fromkeys(self, keys, default=None) -> Any:
        """A new ParameterDict with these keys, all holding default."""
        return ParameterDict((k, default) for k in keys)

    def keys(self) -> Any:
        return self._keys.keys()

    def items(self) -> Any:
        return ((k, self[k]) for k in self._keys)

    def values(self) -> Any:
        return (self[k] for k in self._keys)

    def update(self, parameters) -> None:
        """Add or replace from a mapping or an iterable of pairs. A plain dict's keys are taken in sorted order."""
        if not _iterable(parameters) or isinstance(parameters, ember.Tensor):
            raise TypeError("ParametersDict.update should be called with an iterable of key/value pairs, but got "
                            + type(parameters).__name__)
        ordered = isinstance(parameters, (OrderedDict, ParameterDict))
        items = list(_pairs("ParameterDict", parameters))
        if not ordered and hasattr(parameters, "items"):
            items.sort()
        for key, value in items:
            self[key] = value

    def extra_repr(self) -> str:
        return "\n".join(f"  ({key}): {_describe(value, ember.typename)}" for key, value in self.items())

    def __call__(self, input) -> Any:
        raise RuntimeError("ParameterDict should not be called.")

    def __or__(self, other) -> Any:
        out = self.copy()
        out.update(other)
        return out

    def __ror__(self, other) -> Any:
        out = other.copy()
        out.update(self)
        return out

    def __ior__(self, other) -> Any:
        self.update(other)
        return self

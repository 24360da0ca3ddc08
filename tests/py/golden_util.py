"""Tests against stored values.

A case is a function of a namespace (ember, or the real torch) that returns tensors, numbers, strings or nestings of
them. `python test_x.py`, run by a Python that has PyTorch, stores what PyTorch answers in golden/test_x.json; under
pytest the same functions run on Ember and must give the same. Strings compare exactly, with "ember" read as "torch".
"""

import json
import math
import os
import warnings

import pytest


def raises(fn, *args, **kwargs):
    """Class and message of what fn raises. Fails if it raises nothing."""
    try:
        fn(*args, **kwargs)
    except Exception as e:
        return f"{type(e).__name__}: {e}"
    raise AssertionError(f"{fn} did not raise")


def warned(fn, *args, **kwargs):
    """Classes and messages of the warnings of fn, then its result."""
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        result = fn(*args, **kwargs)
    return [f"{w.category.__name__}: {w.message}" for w in seen], result


def plain(T, value):
    """value as JSON can hold it."""
    if isinstance(value, T.Tensor):
        value = value.detach()
        data = value.tolist()
        if value.dtype.is_complex:
            data = T.view_as_real(value).tolist()
        return {"dtype": str(value.dtype).split(".")[-1], "shape": list(value.shape), "data": data}
    if isinstance(value, dict):
        return {str(k): plain(T, v) for k, v in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(T, v) for v in value]
    if isinstance(value, str):
        return value.replace("ember", "torch")
    if value is None or isinstance(value, (bool, int, float)):
        return value
    return plain(T, str(value))


def same(got, want, tol, where="result"):
    """Fail unless got equals want, floats within relative and absolute tol (0: same bits; nan equals nan)."""
    assert type(got) is type(want) or {type(got), type(want)} <= {int, float}, f"{where}: {got!r} is not {want!r}"
    if isinstance(want, dict):
        assert list(got) == list(want), f"{where}: keys {list(got)}, not {list(want)}"
        for key in want:
            same(got[key], want[key], tol, f"{where}.{key}")
    elif isinstance(want, list):
        assert len(got) == len(want), f"{where}: {got!r} is not {want!r}"
        for i, (a, b) in enumerate(zip(got, want)):
            same(a, b, tol, f"{where}[{i}]")
    elif isinstance(want, float) and not (math.isnan(want) and math.isnan(got)):
        assert math.isclose(got, want, rel_tol=tol, abs_tol=tol), f"{where}: {got!r} is not {want!r}"
    elif not isinstance(want, float):
        assert got == want, f"{where}: {got!r} is not {want!r}"


class Cases:
    """The cases of one test file."""

    def __init__(self, file):
        folder, name = os.path.split(os.path.abspath(file))
        self.path = os.path.join(folder, "golden", name.replace(".py", ".json"))
        self.cases = {}

    def add(self, tol=1e-5):
        """Decorator: a case, compared within tol."""
        def register(fn):
            assert fn.__name__ not in self.cases, f"two cases named {fn.__name__}"
            self.cases[fn.__name__] = fn, tol
            return fn

        return register

    def test(self):
        """The pytest function that runs all cases on Ember."""
        @pytest.mark.parametrize("name", list(self.cases))
        def test_golden(name):
            import ember
            with open(self.path) as f:
                golden = json.load(f)
            fn, tol = self.cases[name]
            ember.manual_seed(0)
            same(json.loads(json.dumps(plain(ember, fn(ember)))), golden[name], tol, name)

        return test_golden

    def write(self):
        """Store PyTorch's answers."""
        import torch
        golden = {}
        for name, (fn, _) in self.cases.items():
            torch.manual_seed(0)
            golden[name] = plain(torch, fn(torch))
        os.makedirs(os.path.dirname(self.path), exist_ok=True)
        with open(self.path, "w") as f:
            f.write("{\n" + ",\n".join(f"{json.dumps(k)}: {json.dumps(v)}" for k, v in golden.items()) + "\n}\n")
        print(f"{self.path}: {len(golden)} cases by PyTorch {torch.__version__}")

"""torch.utils._pytree, torch.testing and torch.utils.swap_tensors: answers and messages of PyTorch 2.13, stored."""
import collections
import functools
import os
import sys
import weakref

import pytest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from golden_util import Cases, raises  # noqa: E402

cases = Cases(__file__)
NT = collections.namedtuple("NT", "a b")


def tree(T):
    return {"b": [1, (2, None)], "a": NT(3, T.Size([1, 2])), "o": collections.OrderedDict(z=1, y=2),
            "d": collections.defaultdict(list, {"q": [5]}), "dq": collections.deque([1, 2], maxlen=3), "s": "text"}


def pytree(T):
    import importlib
    return importlib.import_module(f"{T.__name__}.utils._pytree")


@cases.add()
def flatten(T):
    p = pytree(T)
    leaves, spec = p.tree_flatten(tree(T))
    back = p.tree_unflatten([x * 2 if x is not None else None for x in leaves], spec)
    return [leaves, str(spec).replace(__name__, "here"), spec.num_leaves, spec.num_nodes, spec.num_children, back["b"], back["o"],
            list(back["dq"]), back["dq"].maxlen, back["d"]["q"], back["a"].b, spec == p.tree_structure(back), spec.is_leaf(),
            p.tree_structure(3).is_leaf(), str(p.tree_structure([])), str(p.LeafSpec())]


@cases.add()
def maps(T):
    p = pytree(T)
    return [p.tree_map(lambda a, b: a + b, [1, {"x": 2, "y": 3}], [1, {"y": 5, "x": 6}]),
            p.tree_map_only(int, lambda x: x + 1, [1, 2.0, "a", (3,)]), p.tree_map_only((int, float), lambda x: x + 1, [1, 2.0, "a"]),
            p.tree_map_only(lambda x: x == 1, lambda x: x + 1, [1, 2]), p.tree_map(str, (1, [2])), p.tree_leaves({"b": 1, "a": [2, (3,)]}),
            p.tree_all(bool, [1, 1]), p.tree_any(bool, [0, [0]]), p.tree_all_only(int, bool, [1, "", 2]),
            p.tree_any_only(int, bool, [0, "x"]), p.tree_leaves([1, [2, 3]], is_leaf=lambda x: x == [2, 3]),
            p._broadcast_to_and_flatten([1, 2], p.tree_structure([1, (2, 3)])), p._broadcast_to_and_flatten([1, 2],
            p.tree_structure((1, 2))),
            p.tree_structure([1, 2]).flatten_up_to([3, [4]]), p.treespec_pprint(p.tree_structure([1, {"a": (2,)}]))]


@cases.add()
def paths(T):
    p = pytree(T)
    found, _ = p.tree_flatten_with_path({"a": [1, 2], "n": NT(1, (2,))})
    return [[p.keystr(path) for path, _ in found], str(found[0][0]), p.key_get({"a": [1, 2]}, found[1][0]),
            p.tree_map_with_path(lambda path, x: p.keystr(path), {"a": [1], "b": 2})]


@cases.add()
def text_of_specs(T):
    p = pytree(T)
    spec = p.tree_structure({"a": [1, (2,)], "o": collections.OrderedDict(z=1), "d": collections.defaultdict(int, {"q": 3})})
    return [p.treespec_dumps(spec), p.treespec_loads(p.treespec_dumps(spec)) == spec]


@cases.add()
def refusals(T):
    p = pytree(T)
    add = lambda a, b: a + b  # noqa: E731
    return [raises(p.tree_unflatten, [1], p.tree_structure([1, 2])), raises(p.tree_unflatten, [1], 5), raises(p.tree_map, add, [1, 2], [1]),
            raises(p.tree_map, add, [1, 2], (1, 2)), raises(p.tree_map, add, {"a": 1}, {"b": 1}), raises(p.treespec_dumps, 5),
            raises(p.treespec_dumps, p.tree_structure([1]), protocol=9)]


def close(T, *args, **kwargs):
    try:
        return T.testing.assert_close(*args, **kwargs)
    except (AssertionError, ValueError, TypeError) as error:
        return f"{type(error).__name__}: {error}"


@cases.add(0)
def assert_close(T):
    t, ac = T.tensor, functools.partial(close, T)
    n, i = float("nan"), float("inf")
    return [
        ac(t([1., 2.]), t([1., 2.0000001])), ac(t([1., 2., 3.]), t([1., 2.5, 3.])), ac(t([[1., 2.], [3., 4.]]), t([[1., 2.5], [3.5, 4.]])),
        ac(t([1, 2, 3]), t([1, 5, 3])), ac(t([True, False]), t([True, True])), ac(t(1.), t(2.)), ac(t(1), t(2)), ac(t([1.]), t([1., 2.])),
        ac(t([1.]), t([1])), ac(t([1.]), t([1]), check_dtype=False), ac(t([1.], dtype=T.float64), t([1.]), check_dtype=False),
        ac(T.ones(2, 3).t(), T.ones(3, 2), check_stride=True), ac(T.ones(2), T.ones(2, device="meta")),
        ac(T.ones(2, device="meta"), T.ones(2, device="meta")), ac(t([n]), t([n])), ac(t([n]), t([n]), equal_nan=True),
        ac(t([i, 1.]), t([1., 1.])),
        ac(t([1., 2.]), t([1., 2.5]), rtol=0.1, atol=0.01), ac(t([1.]), t([2.]), rtol=0.1), ac(t([1.]), t([2.]), atol=0.1),
        ac(t([1.]), t([2.]), rtol=0, atol=0), ac([t([1.]), t([2.])], [t([1.]), t([3.])]), ac([t([1.])], [t([1.]), t([3.])]),
        ac({"a": t([1.])}, {"a": t([2.])}), ac({"a": t([1.])}, {"b": t([2.])}), ac({"a": [t([1.]), 2]}, {"a": [t([1.]), 3]}), ac(1, 2),
        ac(1.0, 1.1),
        ac(1j, 2j), ac(1.0, 1.0 + 1e-10), ac(1, 1.0), ac(True, False), ac(1.0, t(1.0)), ac("a", "a"), ac("a", t(1)), ac(None, None),
        ac(None, t(1.)),
        ac(T.nn.Parameter(T.ones(2)), T.ones(2)), ac(T.nn.Parameter(T.ones(2)), T.ones(2), allow_subclasses=False),
        ac(t([1.]), t([2.]), msg="mine"),
        ac(t([1.]), t([2.]), msg=lambda text: "before\n" + text), ac(t([1 + 1j]), t([1 + 2j])), ac(T.zeros(0), T.zeros(0)),
        ac((t([1.]),), [t([1.])]),
        ac(t([1.], dtype=T.float16), t([1.01], dtype=T.float16)), ac(t([1.], dtype=T.bfloat16), t([1.5], dtype=T.bfloat16)),
        ac(t([1], dtype=T.uint8), t([255], dtype=T.uint8)), ac(T.zeros(10, 10), T.ones(10, 10)), ac(0.0, 1.0), ac(1.0, 0.0),
        ac(n, n, equal_nan=True)]


@cases.add(1e-6)
def make_tensor(T):
    make = functools.partial(T.testing.make_tensor, device="cpu")
    return [
        make((2, 3), dtype=T.float32), make(4, dtype=T.int64), make((4,), dtype=T.uint8), make((4,), dtype=T.bool),
        make((2,), dtype=T.complex64),
        make((4,), dtype=T.float64, low=2, high=5), make((2, 3), dtype=T.float32, noncontiguous=True),
        list(make((2, 3), dtype=T.float32, noncontiguous=True).stride()), make((4,), dtype=T.int8, low=-1, high=2, exclude_zero=True),
        make((1,), dtype=T.float32, requires_grad=True).requires_grad, make((3,), dtype=T.int32, low=0.5, high=3.5),
        make(2, 2, dtype=T.float32),
        list(make((1, 2, 3, 3), dtype=T.float32, memory_format=T.channels_last).stride()), make((2,), dtype=T.float16),
        make((2,), dtype=T.float16, low=-1e9, high=1e9), make((0,), dtype=T.float32), make((), dtype=T.float32, noncontiguous=True),
        raises(make, (1,), dtype=T.int64, requires_grad=True), raises(make, (1,), dtype=T.float32, low=5, high=2),
        raises(make, (1,), dtype=T.float32, low=float("nan"), high=2), raises(make, (1,), dtype=T.uint8, low=-5, high=-2),
        raises(make, (1,), dtype=T.bool, low=5, high=7),
        raises(make, (2,), dtype=T.float32, noncontiguous=True, memory_format=T.channels_last)]


@cases.add()
def swap(T):
    a, b = T.ones(2), T.zeros(3)
    T.utils.swap_tensors(a, b)
    p, c = T.nn.Parameter(T.ones(2)), T.zeros(1)
    p.note = 1
    T.utils.swap_tensors(p, c)
    g = T.ones(2)
    g.grad = T.full((2,), 7.)
    other = T.zeros(4)
    T.utils.swap_tensors(g, other)
    x = T.ones(2, requires_grad=True)
    y = (x * 2).sum()
    T.utils.swap_tensors(x, T.zeros(5))
    ref = weakref.ref(a)
    return [a, b, p, c, type(p).__name__, type(c).__name__, c.note, hasattr(p, "note"), g.grad is None, other.grad, x,
            raises(y.backward), raises(T.utils.swap_tensors, a, b), raises(T.utils.swap_tensors, b, a), ref() is a]


test_golden = cases.test()


def test_registered_nodes():
    from ember.utils import _pytree as p

    class Pair:
        def __init__(self, x, y):
            self.x, self.y = x, y
    p.register_pytree_node(Pair, lambda v: ([v.x, v.y], "context"), lambda children, context: Pair(*children),
                           flatten_with_keys_fn=lambda v: ([(p.GetAttrKey("x"), v.x), (p.GetAttrKey("y"), v.y)], "context"))
    leaves, spec = p.tree_flatten([Pair(1, [2])])
    assert leaves == [1, 2] and repr(spec) == "TreeSpec(list, None, [TreeSpec(Pair, context, [*,\n    TreeSpec(list, None, [*])])])"
    assert p.tree_map(lambda v: v + 1, Pair(1, [2])).y == [3]
    assert p.keystr(p.tree_leaves_with_path([Pair(1, [2])])[1][0]) == "[0].y[0]"
    with pytest.raises(ValueError, match="is already registered as pytree node."):
        p.register_pytree_node(Pair, None, None)
    with pytest.raises(NotImplementedError, match="is not registered"):
        p.treespec_dumps(spec)


def test_results_with_names_are_nodes():
    import ember as torch
    from ember.utils import _pytree as p
    result = p.tree_map(lambda t: t + 1, torch.max(torch.ones(2, 2), 0))
    assert type(result) is type(torch.max(torch.ones(2, 2), 0)) and result.indices.tolist() == [1, 1]


if __name__ == "__main__":
    cases.write()

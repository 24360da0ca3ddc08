"""utils.data in one process: datasets, samplers, collation, DataLoader. Answers and complaints are PyTorch's."""

import collections
import os
import sys

import numpy as np

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from golden_util import Cases, raises, warned

cases = Cases(__file__)
Point = collections.namedtuple("Point", "x y")


def complaint(fn, *args, **kwargs):
    return raises(fn, *args, **kwargs).split("\n")[0]


def seeded(T, seed=5):
    return T.Generator().manual_seed(seed)


@cases.add()
def random_samplers(T):
    D, seen = T.utils.data, []
    for kw in ({}, {"num_samples": 7}, {"num_samples": 10}, {"num_samples": 4},
               {"replacement": True, "num_samples": 40}, {"replacement": True, "num_samples": 64}):
        g = seeded(T)
        seen.append([list(D.RandomSampler(range(5), generator=g, **kw)), T.randint(100, (2,), generator=g)])
    seen.append(list(D.SubsetRandomSampler("abcdef", generator=seeded(T))))
    T.manual_seed(3)
    return seen, list(D.RandomSampler(range(6))), list(D.SubsetRandomSampler([4, 5, 6])), T.randint(100, (3,))


@cases.add()
def other_samplers(T):
    D = T.utils.data
    share = [list(D.DistributedSampler(range(n), 3, rank, drop_last=drop, shuffle=mix))
             for n in (7, 1, 0) for rank in (0, 2) for drop in (False, True) for mix in (False, True)]
    epochs = D.DistributedSampler(range(8), 2, 1, seed=4)
    epochs.set_epoch(3)
    return (share, list(epochs), len(epochs), list(D.SequentialSampler("abc")), list(D.BatchSampler(range(7), 3, False)),
            list(D.BatchSampler(range(7), 3, True)), len(D.BatchSampler(range(7), 3, True)),
            len(D.BatchSampler(range(7), 3, False)))


@cases.add()
def sampler_complaints(T):
    D = T.utils.data
    return [complaint(D.BatchSampler, [1], True, False), complaint(D.BatchSampler, [1], 1, 1),
            complaint(D.RandomSampler, []), complaint(D.RandomSampler, [1], 1), complaint(D.RandomSampler, [1], num_samples=-2),
            complaint(lambda: list(D.RandomSampler([], num_samples=3))), complaint(D.WeightedRandomSampler, [1.0], 0),
            complaint(D.WeightedRandomSampler, [[1.0]], 1), complaint(D.WeightedRandomSampler, [1.0], 1, 3),
            complaint(D.DistributedSampler, [1], 2, 2), complaint(lambda: list(D.Sampler()))]


@cases.add()
def splits(T):
    D = T.utils.data
    parts = [[list(s.indices) for s in D.random_split(range(10), lengths, seeded(T))]
             for lengths in ([7, 3], [0.33, 0.33, 0.34], [0.5, 0.5], [10, 0])]
    T.manual_seed(3)
    parts.append([list(s) for s in D.random_split("abcde", [2, 3])])
    warning, _ = warned(D.random_split, range(1), [0.5, 0.5])
    return (parts, warning, complaint(D.random_split, range(10), [5, 4]), complaint(D.random_split, range(10), [0.3, 0.9, -0.2]),
            complaint(D.random_split, range(10), [0.3, 0.3]))


@cases.add()
def datasets(T):
    D = T.utils.data
    joined = D.ConcatDataset([[1, 2], [], [3]])
    stream = [type("S", (D.IterableDataset,), {"__iter__": lambda self: iter(range(3)), "__len__": lambda self: 3})()]
    double = D.StackDataset(D.Subset(range(9), [3, 1]), "ab")
    table = D.TensorDataset(T.arange(4), T.arange(8.0).reshape(4, 2))
    return (len(joined), [joined[i] for i in (0, 1, 2, -1, -3)], joined.cumulative_sizes, list(stream[0] + stream[0]),
            len(stream[0] + stream[0]), double[1], double.__getitems__([0, 1]), D.StackDataset(a=range(3), b="xyz")[2],
            D.StackDataset(a=range(3), b="xyz").__getitems__([0, 2]), len(double), table[1], table[[0, 2]], len(table),
            D.Subset(range(9), [3, 1, 4])[2], D.Subset(table, [1, 2])[[0, 1]], len(D.Dataset.__add__([1, 2], [3])))


@cases.add()
def dataset_complaints(T):
    D = T.utils.data
    stream = type("S", (D.IterableDataset,), {"__iter__": lambda self: iter(range(3))})()
    half = type("Half", (D.Subset,), {"__getitem__": lambda self, i: i})
    short = type("Short", (), {"__len__": lambda s: 2, "__getitem__": lambda s, i: i, "__getitems__": lambda s, i: i[1:]})()
    return [complaint(D.TensorDataset, T.ones(2), T.ones(3)), complaint(D.StackDataset), complaint(D.StackDataset, [1], [1, 2]),
            complaint(D.StackDataset, [1], a=[1]), complaint(D.StackDataset(short).__getitems__, [0, 1]),
            complaint(D.ConcatDataset, []), complaint(D.ConcatDataset, [stream]),
            complaint(D.ConcatDataset([[1]]).__getitem__, -2), complaint(D.ConcatDataset([[1]]).__getitem__, 1),
            complaint(list, D.ChainDataset([[1]])), complaint(D.Dataset().__getitem__, 0), complaint(half, [1], [0])]


@cases.add()
def collate(T):
    join = T.utils.data.default_collate
    good = [[np.float64(1), np.float64(2)], [np.float32(1)], [True, False], [np.bool_(True)], [1, 2.5], [(1, 2), (3, 4)],
            [[1], [2]], ["a", "b"], [b"a"], [np.int8(3)], [range(3), range(3)], [Point(1, 2.0), Point(3, 4.0)],
            [collections.OrderedDict(a=1), {"a": 2}], [np.zeros(2), np.ones(2)], [T.ones(2), T.zeros(2)],
            [{"a": [1, "x"], "b": (T.ones(1),)}] * 2, [collections.UserDict(a=1)], [T.tensor(1), T.tensor(2.5)]]
    bad = [[None], [{1, 2}], [np.array(["a"])], [[1], [2, 3]], [T.ones(2), T.ones(3)], [{"a": 1}, {"b": 1}], [],
           [np.datetime64(3, "s")], [np.array([None])]]
    made = [join(x) for x in good]
    return made, [type(x).__name__ for x in made], [complaint(join, x) for x in bad]


@cases.add()
def convert(T):
    turn = T.utils.data.default_convert
    given = [np.float64(1), "a", np.str_("a"), (1, np.array(1)), {"a": np.array([1])}, range(3), bytearray(b"ab"), None,
             Point(np.array(1), 2), [np.ones(2), [np.int16(2)]], T.ones(1)]
    made = [turn(x) for x in given]
    return made, [type(x).__name__ for x in made]


@cases.add()
def collate_map(T):
    from importlib import import_module
    module = import_module(T.utils.data.__name__ + "._utils.collate")
    functions = {str: lambda batch, *, collate_fn_map=None: "+".join(batch), T.Tensor: module.collate_tensor_fn}
    return (module.collate([("a", T.ones(1)), ("b", T.zeros(1))], collate_fn_map=functions),
            complaint(module.collate, [1, 2], collate_fn_map=functions))


@cases.add()
def loading(T):
    D = T.utils.data
    ds = D.TensorDataset(T.arange(10), T.arange(10.0))
    T.manual_seed(3)
    seen = [list(D.DataLoader(ds, batch_size=4, shuffle=True))]
    loader = D.DataLoader(ds, 4, True, generator=seeded(T, 4), drop_last=True)
    seen += [len(loader), list(loader), next(iter(loader)), T.randint(100, (3,))]
    seen += [list(D.DataLoader(D.Subset(ds, [3, 1]), batch_size=2)), list(D.DataLoader([1, 2, 3], batch_size=None)),
             list(D.DataLoader(ds, batch_sampler=[[0, 1], [2]])), D.DataLoader(ds, batch_sampler=[[0]]).batch_size,
             list(D.DataLoader(ds, sampler=[5, 7, 9], batch_size=2, collate_fn=len)),
             warned(list, D.DataLoader([1], pin_memory=True)), len(iter(D.DataLoader(range(5), 2)))]
    return seen


@cases.add()
def streams(T):
    D = T.utils.data

    class Stream(D.IterableDataset):
        def __iter__(self):
            return iter(range(7))

        def __len__(self):
            return 1

        def __repr__(self):
            return "stream"

    loader = D.DataLoader(Stream(), batch_size=3)
    return (len(loader), warned(list, loader), list(D.DataLoader(Stream() + Stream(), batch_size=None)),
            list(D.DataLoader(Stream(), drop_last=True, batch_size=2)),
            [complaint(D.DataLoader, Stream(), **kw)
             for kw in ({"shuffle": True}, {"sampler": [1]}, {"batch_sampler": [[1]]}, {"batch_size": 0})])


@cases.add()
def loader_complaints(T):
    D = T.utils.data
    options = [{"num_workers": -1}, {"timeout": -1}, {"prefetch_factor": 3}, {"persistent_workers": True},
               {"sampler": [1], "shuffle": True}, {"batch_sampler": [[1]], "batch_size": 2},
               {"batch_size": None, "drop_last": True}, {"multiprocessing_context": "fork"}, {"batch_size": 0},
               {"num_workers": 1, "multiprocessing_context": "x"}, {"num_workers": 1, "multiprocessing_context": 3},
               {"num_workers": 1, "prefetch_factor": -1}]
    loader = D.DataLoader([1])
    names = ("batch_size", "batch_sampler", "sampler", "drop_last", "dataset", "persistent_workers")
    return ([complaint(D.DataLoader, [1], **kw) for kw in options], [complaint(setattr, loader, name, 1) for name in names],
            complaint(list, D.DataLoader([1], timeout=3)), complaint(iter(loader).__getstate__),
            warned(D.DataLoader, [1], num_workers=5000)[0][0].split(" Our")[0])


def test_a_generator_belongs_to_its_loader():
    import ember
    ds = range(8)

    def orders(validate):
        train = ember.utils.data.DataLoader(ds, 8, True, generator=seeded(ember, 7))
        other = ember.utils.data.DataLoader(range(3), generator=seeded(ember, 8))
        seen = []
        for _ in range(3):
            seen += [batch.tolist() for batch in train]
            validate and list(other)
        return seen

    assert orders(True) == orders(False)
    assert len({tuple(order) for order in orders(True)}) == 3


def test_getitems_is_asked_for_whole_batches():
    import ember
    asked = []

    class Many(ember.utils.data.Dataset):
        def __len__(self):
            return 5

        def __getitems__(self, keys):
            asked.append(keys)
            return [k * 10 for k in keys]

    loader = ember.utils.data.DataLoader(Many(), batch_size=2)
    assert [b.tolist() for b in loader] == [[0, 10], [20, 30], [40]]
    assert asked == [[0, 1], [2, 3], [4]]


def test_numpy_is_not_imported():
    import subprocess
    code = ("import sys, ember; D = ember.utils.data; "
            "assert len(list(D.DataLoader(D.TensorDataset(ember.ones(4)), 2, True))) == 2; assert 'numpy' not in sys.modules")
    subprocess.run([sys.executable, "-c", code], check=True)


test_golden = cases.test()

if __name__ == "__main__":
    cases.write()

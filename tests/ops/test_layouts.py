"""Every operator gives the same result whatever its inputs' layout: transposed, sliced with an offset, expanded, with
gaps; and 0-dim, empty and 7-dimensional tensors."""
import pytest
from sampling import PRESENT, cases, samples, tensors, writes_first
from subject import FULL, agree, flat, operator, torch
from table import GROUPS, TABLE

DTYPES = ["float32", "float64", "int64", "bool", "bfloat16", "complex64"] if FULL else ["float32", "int64", "bfloat16"]
SOUND = [n for n in PRESENT if TABLE[n].layout and TABLE[n].random is None]


def transposed(t):
    n = t.dim()
    return t.permute(*range(n - 1, -1, -1)).contiguous().permute(*range(n - 1, -1, -1)) if n > 1 else t


def sliced(t):
    """A window in the middle of a larger tensor: an offset, and gaps between rows."""
    if t.dim() == 0:
        return torch.stack([t, t])[1]
    holder = torch.zeros([n + 3 for n in t.shape], dtype=t.dtype)
    window = holder
    for dim, n in enumerate(t.shape):
        window = window.narrow(dim, 1, n)
    window.copy_(t)
    return window


def strided(t):
    """Every other element of a tensor twice as large, and the last dimension first."""
    if t.dim() == 0:
        return t
    order = [t.dim() - 1] + list(range(t.dim() - 1))
    holder = torch.zeros([2 * t.shape[d] for d in order], dtype=t.dtype)
    window = holder
    for dim in range(t.dim()):
        window = window[(slice(None),) * dim + (slice(1, None, 2),)]
    window = window.permute(*[order.index(d) for d in range(t.dim())])
    window.copy_(t)
    return window


def outermost_repeated(t):
    """The first row stands for all: stride 0. The values change, so it is compared with its own contiguous copy."""
    return t[:1].expand_as(t) if t.dim() > 0 and t.shape[0] > 0 else t


LAYOUTS = {f.__name__: f for f in (transposed, sliced, strided, outermost_repeated)}


# What is written besides the first argument, or in no order: not through stride 0.
WRITERS = ("scatter.src", "scatter.value", "batch_norm", "native_batch_norm", "_native_batch_norm_legit")


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("name, dtype", cases(SOUND, DTYPES))
def test_layout(name, dtype, layout):
    change = LAYOUTS[layout]
    if change is outermost_repeated and (writes_first(name) or name in WRITERS):
        return  # nothing may be written through stride 0, and repeated indices have no order
    for sample in samples(name, dtype):
        args, kwargs = tensors(sample, dtype, change)
        plain, plain_kwargs = tensors(sample, dtype, lambda t: change(t).clone(memory_format=torch.contiguous_format))
        got, want = flat(operator(name)(*args, **kwargs)), flat(operator(name)(*plain, **plain_kwargs))
        for g, w in zip(got, want, strict=True):
            assert g == w if not isinstance(g, torch.Tensor) else agree(g, w), (name, dtype, layout)


BINARY = [n for n in PRESENT if n in {e.name for e in GROUPS["arithmetic"] + GROUPS["comparisons"] + GROUPS["choices"]}]


def seven(t):
    """(3, 4) or smaller as 7 dimensions that do not collapse."""
    return t.reshape(1, *t.shape, 1, 1, 1, 1).expand(2, *t.shape, 1, 2, 1, 2).transpose(0, 6) if t.dim() == 2 else t


@pytest.mark.parametrize("name", [n for n in BINARY if n not in ("dot", "vdot", "equal", "allclose", "where")] +
                         [e.name for e in GROUPS["functions"] if e.name in PRESENT])
def test_seven_dimensions(name):
    """On operators whose first sample broadcasts nothing."""
    dtype = next(d for d in ("float32", "int64", "bool") if cases([name], [d]))
    sample = samples(name, dtype)[0]
    args, kwargs = tensors(sample, dtype, seven)
    plain, plain_kwargs = tensors(sample, dtype)
    if any(isinstance(a, torch.Tensor) and a.dim() == 1 for a in plain):
        return
    got, want = operator(name)(*args, **kwargs), operator(name)(*plain, **plain_kwargs)
    assert got.dim() == 7 and tuple(got.shape) == (2, 3, 4, 1, 2, 1, 2)
    for i in range(2):
        assert agree(got[i, :, :, 0, i, 0, 1 - i], want)


def test_views_and_reductions_of_eight_dimensions():
    x = torch.arange(2 ** 8).reshape([2] * 8)
    y = x.permute(7, 5, 3, 1, 0, 2, 4, 6)
    assert y.sum().item() == x.sum().item() and y.contiguous().is_contiguous()
    assert y.sum([0, 2, 4]).shape == (2,) * 5
    assert y.permute(4, 3, 5, 2, 6, 1, 7, 0).tolist() == x.tolist()
    assert (y + y).stride() == y.stride() and (y[0, 1] * 2).tolist() == (y.contiguous()[0, 1] * 2).tolist()
    assert y.amax(0).tolist() == y.contiguous().amax(0).tolist()


def test_empty_tensors_through_everything():
    for shape in ((0,), (2, 0), (0, 3), (2, 0, 3)):
        x = torch.ones(shape)
        assert (x + x).shape == shape and x.exp().shape == shape and x.sum().item() == 0
        assert x.transpose(0, -1).shape == shape[::-1] and x.clone().numel() == 0
        assert torch.cat([x, x]).shape == (2 * shape[0],) + shape[1:]
        assert x.softmax(-1).shape == shape and (x == x).shape == shape
    assert (torch.ones(3, 0) @ torch.ones(0, 2)).tolist() == [[0.0, 0.0]] * 3
    assert (torch.ones(0, 3) @ torch.ones(3, 2)).shape == (0, 2)


def test_zero_dim_broadcasts():
    scalar = torch.tensor(2.0)
    assert (scalar + torch.ones(2, 3)).tolist() == [[3.0] * 3] * 2
    assert (scalar * scalar).dim() == 0 and scalar.sum().dim() == 0 and scalar.softmax(0).item() == 1.0
    assert scalar.max(0).indices.item() == 0 and scalar.reshape(1, 1).shape == (1, 1)

"""Samples that OpInfo lacks: small programs over a module T, each leaving its result in r (r may lie over x).

samples(group) yields (dtype label, flags, program text). The text depends on nothing but this file, so the oracle and
Ember run the same programs.
"""

import os
import random
import zlib

PREFIXES = ("own.", "promotion.")
ALL = (
    "bool",
    "uint8",
    "int8",
    "int16",
    "int32",
    "int64",
    "float16",
    "bfloat16",
    "float32",
    "float64",
    "complex64",
    "complex128",
)
SHORT = {"float32": "f32", "float64": "f64", "int64": "i64", "bfloat16": "bf16", "complex64": "c64", "float16": "f16"}
BINARY = {
    "add": "T.add({a}, {b})",
    "mul": "T.mul({a}, {b})",
    "div": "T.div({a}, {b})",
    "eq": "T.eq({a}, {b})",
    "lt": "T.lt({a}, {b})",
    "pow": "T.pow({a}, {b})",
    "where": "T.where(T.tensor([True, False, True]), {a}, {b})",
    "cat": "T.cat([{a}.reshape(-1), {b}.reshape(-1)])",
}
GROUPS = tuple("promotion." + k for k in BINARY) + (
    "own.random",
    "own.index_get",
    "own.index_put",
    "own.creation",
    "own.numpy",
    "own.pickle",
    "own.repr",
    "own.extremal",
    "own.reductions",
    "own.nn",
    "own.nn_ulp",
    "own.nn_run",
    "own.rnn",
    "own.transformer",
    "own.autograd",
    "own.optim",
)


def promotion(op):
    """Every pair of dtypes, the second operand as tensor, 0-dim tensor and Python number."""
    text = BINARY[op]

    def half_complex(d, e, kind):  # the one pair whose result is complex32, which Ember has not
        return kind != "tensor" and d == "float16" and e.startswith("complex")

    for d in ALL:
        a = f"mk(T, '{d}', 'tensor')"
        for e in ALL:
            for kind in ("tensor", "0-dim"):
                if half_complex(d, e, kind):
                    continue
                yield SHORT.get(d, d), (), f"r = {text.format(a=a, b=f'''mk(T, '{e}', '{kind}')''')}"
            both = text.format(a=a.replace("tensor", "0-dim"), b=f"mk(T, '{e}', '0-dim')")
            yield SHORT.get(d, d), (), "r = " + both
        if op != "cat":
            for e in ("bool", "int64", "float64", "complex128"):
                if half_complex(d, e, "number"):
                    continue
                for kind in ("tensor", "0-dim"):
                    first = f"mk(T, '{d}', '{kind}')"
                    yield SHORT.get(d, d), (), f"r = {text.format(a=first, b=f'''mk(T, '{e}', 'number')''')}"
                    if op in ("add", "mul", "div", "pow", "eq", "lt"):
                        sign = {"add": "+", "mul": "*", "div": "/", "pow": "**", "eq": "==", "lt": "<"}[op]
                        yield SHORT.get(d, d), (), f"r = mk(T, '{e}', 'number') {sign} {first}"


STREAM = """T.manual_seed({seed})
r = ({first}, {call}, T.rand(3))"""


def random_streams():
    """Seeded streams: integers and uniform bit for bit, normal to 4 ulp; a call before, so that caches show."""
    for seed in (0, 1, 12345, 2**31 - 1):
        for n in (0, 1, 2, 3, 8, 15, 16, 17, 31, 32, 33, 1000):
            for d in ("float32", "float64", "bfloat16"):
                for call in (f"T.randn({n}, dtype=T.{d})", f"T.empty({n}, dtype=T.{d}).normal_(2, 3)"):
                    first = "T.randn(1)" if n % 2 else "0"
                    yield SHORT[d], ("ulp4",), STREAM.format(seed=seed, first=first, call=call)
                for call in (
                    f"T.rand({n}, dtype=T.{d})",
                    f"T.empty({n}, dtype=T.{d}).uniform_(-2, 5)",
                    f"T.empty({n}, dtype=T.{d}).bernoulli_(0.3)",
                ):
                    yield SHORT[d], ("exact",), STREAM.format(seed=seed, first="T.randint(0, 9, (2,))", call=call)
            for call in (
                f"T.randint(0, 10, ({n},))",
                f"T.randint(-5, 2**40, ({n},))",
                f"T.randperm({n})",
                f"T.randint(3, ({n},), dtype=T.int32)",
                f"T.nn.functional.dropout(T.ones({n}), 0.4)",
            ):
                yield "i64", ("exact",), STREAM.format(seed=seed, first="0", call=call)
    for shape in ((4, 5), (3, 6), (2, 3, 4)):
        for code in (
            f"T.randn{shape}",
            f"T.empty{shape}.t() if len({shape}) == 2 else T.empty{shape}.transpose(0, 2)",
        ):
            yield "f32", ("ulp4",), f"T.manual_seed(7)\nr = ({code}).normal_()"
            yield "f32", ("exact",), f"T.manual_seed(7)\nr = ({code}).uniform_()"
    state = "T.manual_seed(3)\na = T.randn(5)\ns = T.get_rng_state()\nb = T.randn(5)\nT.set_rng_state(s)\n"
    yield "f32", ("ulp4",), state + "r = (a, b, T.randn(5))"
    yield "f32", ("exact",), "T.manual_seed(3)\nT.randn(5)\nT.rand(700)\nr = T.get_rng_state()"
    yield "f32", ("exact",), "g = T.Generator()\ng.manual_seed(11)\nr = (T.rand(5, generator=g), g.initial_seed())"
    for bad in (
        "T.empty(3).uniform_(2, 1)",
        "T.empty(3).normal_(0, -1)",
        "T.randint(5, 5, (2,))",
        "T.randperm(-1)",
        "T.empty(3).bernoulli_(1.5)",
        "T.nn.functional.dropout(T.ones(3), -0.1)",
        "T.rand(-1)",
        "T.randn('a')",
        "T.bernoulli(T.tensor([1.5]))",
        "T.empty(3, dtype=T.int64).normal_()",
        "T.empty(3, dtype=T.int64).uniform_()",
    ):
        yield "errors", (), f"r = {bad}"


SHAPES = ((3, 4, 5), (6,), (2, 1, 3), (4, 0), (5, 5))


def index_item(rng, size, wild):
    """One index as text, and how many dimensions it takes."""
    k = rng.randrange(9)
    low, high = (-size - (1 if wild else 0), size - (0 if wild else 1)) if size else (-1, 0)
    if k == 0:
        return str(rng.randint(low, high)), 1
    if k in (1, 2):
        a, b = rng.randint(-7, 7), rng.randint(-7, 7)
        step = rng.choice(("", ":1", ":2", ":3"))
        return rng.choice((":", f"{a}:", f":{b}", f"{a}:{b}", f"{a}:{b}{step}", f"::{step[1:] or 1}")), 1
    if k == 3:
        return "None", 0
    if k == 4:
        return rng.choice(("True", "False")) if rng.random() < 0.2 else "None", 0
    if k == 5:
        v = [rng.randint(low, high) for _ in range(rng.randint(1, 4))]
        return f"T.tensor({v})", 1
    if k == 6:
        v = [[rng.randint(low, high)] for _ in range(2)]
        return f"T.tensor({v})", 1
    if k == 7:
        return f"T.tensor({[rng.random() < 0.5 for _ in range(size)]}, dtype=T.bool)", 1
    return (
        rng.choice((f"[{rng.randint(low, high)}, {rng.randint(low, high)}]", f"T.tensor({rng.randint(low, high)})")),
        1,
    )


def index_text(rng, shape):
    wild = rng.random() < 0.1
    items, used, dots = [], 0, False
    for _ in range(rng.randint(1, len(shape) + 1)):
        if not dots and rng.random() < 0.15:
            items.append("...")
            dots = True
            continue
        if used >= len(shape) and not wild:
            break
        text, n = index_item(rng, shape[min(used, len(shape) - 1)], wild)
        items.append(text)
        used += n
    items = items or [":"]
    return items[0] if len(items) == 1 and rng.random() < 0.5 else ", ".join(items) + ("," if len(items) == 1 else "")


def tensor_text(shape, d, layout):
    n = 1
    for s in shape:
        n *= s
    t = f"T.arange({n}).reshape({shape}).to(T.{d})"
    if layout == 1 and len(shape) > 1:
        return f"T.arange({n}).reshape({tuple(reversed(shape))}).to(T.{d}).permute({tuple(range(len(shape)))[::-1]})"
    if layout == 2:
        return f"T.arange({2 * n}).to(T.{d})[::2].view({shape})" if n else t
    return t


def indexing(put):
    rng = random.Random(zlib.crc32(b"put" if put else b"get"))
    for k in range(400):
        shape, d = rng.choice(SHAPES), rng.choice(("float32", "int64", "bool", "bfloat16", "float64"))
        x, i = tensor_text(shape, d, rng.randrange(3)), index_text(rng, shape)
        if not put:
            yield SHORT.get(d, d), ("exact",), f"x = {x}\nr = x[{i}]"
        elif rng.random() < 0.5:
            yield SHORT.get(d, d), (
                "exact",
            ), f"x = {x}\nx[{i}] = {rng.choice(('7', '1.5', 'True', 'T.tensor(3)'))}\nr = x"
        else:
            yield SHORT.get(d, d), ("exact",), f"x = {x}\nv = x[{i}]\nx[{i}] = -v if v.dtype != T.bool else v\nr = x"
        if k % 4 == 0:
            shape_text = tensor_text(shape, "float32", 0)
            if put:
                code = (
                    f"p = {shape_text}.requires_grad_()\ny = p * 2\ny[{i}] = 3.0\n"
                    "y.backward(T.ones_like(y))\nr = (y, p.grad)"
                )
            else:
                code = f"p = {shape_text}.requires_grad_()\ny = p[{i}]\ny.backward(T.ones_like(y))\nr = (y, p.grad)"
            yield "f32", (), code
    for bad in (
        "x[5]",
        "x[-4]",
        "x[0, 0, 0, 0]",
        "x[1.0]",
        "x['a']",
        "x[T.tensor([3])]",
        "x[T.tensor([-4])]",
        "x[T.tensor([True])]",
        "x[T.tensor([0.5])]",
        "x[::-1]",
        "x[T.tensor([0, 1]), T.tensor([0, 1, 2])]",
        "x[..., ...]",
        "x[::0]",
        "x[2, 9]",
        "T.tensor(3)[0]",
        "x[[]]",
        "x[()]",
        "x[object()]",
        "x[True, 0]",
        "x[T.zeros(3, 4, dtype=T.bool)]",
        "x[T.zeros(3, 5, dtype=T.bool)]",
        "x[T.tensor([0, 1], dtype=T.int32)]",
        "x[T.tensor([0, 1], dtype=T.uint8)]",
        "len(x)",
        "list(x[0, 0])",
        "x.tolist()",
        "bool(x)",
        "int(x)",
        "x[np.int64(1)]",
        "x[np.array([0, 1])]",
        "x[range(2)]",
        "x[(0, 1)]",
        "x[[0, 1], [1, 2]]",
        "x[[[0], [1]]]",
    ):
        yield "errors", ("exact",), f"x = T.arange(60).reshape(3, 4, 5)\nr = {bad}"
    for bad in (
        "x[0] = T.zeros(3)",
        "x[9] = 1",
        "x[T.tensor([0, 1])] = T.zeros(3)",
        "x[x > 1000] = T.zeros(2)",
        "x[...] = 'a'",
        "x[0, 0] = 1j",
        "x[0] = [1, 2, 3, 4, 5]",
        "x[:, T.tensor([0, 0])] = 5",
        "x[T.tensor([7])] = 1",
        "x[None] = 4",
        "x[True] = 4",
        "x[()] = 4",
        "x[:, 1:3] = x[:, 0:2].clone()",
        "x[..., 0] = T.arange(4)",
    ):
        yield "errors", ("exact",), f"x = T.arange(60.).reshape(3, 4, 5)\n{bad}\nr = x"


FLOATS = (
    "0., -0., 1., -1., .5, 2., 3., -2.5, 1e-3, 1e-40, -1e-40, 3e38, -3e38, 20., -20., 89., -104., {inf}, -{inf}, {nan}"
)
INTS = "0, 1, -1, 2, -3, 7, 100, -128, 2**31 - 1, -2**31, 2**62, 2**63 - 1, -2**63"
UNARY = "exp log sqrt tanh sigmoid relu abs neg nn.functional.gelu".split()
PAIRS = "add sub mul div pow maximum minimum floor_divide eq ne lt le gt ge".split()


ALONE = (
    "T.div(x, x.view(-1, 1), rounding_mode='trunc')",
    "T.div(x, x.view(-1, 1), rounding_mode='floor')",
    "T.clamp(x, -1, 1)",
    "T.clamp(x, max=2)",
    "T.clamp(x, 2, -2)",
    "T.clamp(x, min=float('nan'))",
    *("x ** %s" % p for p in (2, 0.5, -1, 3, 0)),
    *("2 ** x", "x * 0.1", "x / 3", "1 / x", "x + 1e30"),
    "T.where(x > 0, x, -x)",
    "T.where(x == x, 1.0, x)",
)


def extremal():
    """Zeros of both signs, denormals, the largest, infinities and NaN, one by one and each with each."""
    values = FLOATS.format(inf="float('inf')", nan="float('nan')")
    sign = "r = (y, T.where(y == 0, 1 / y, T.zeros_like(y)))"  # 1 / y tells the two zeros apart
    for d in ("float32", "float64", "bfloat16", "float16"):
        x = f"x = T.tensor([{values}], dtype=T.{d})"
        for f in UNARY:
            yield SHORT[d], (), f"{x}\ny = T.{f}(x)\n{sign}"
            if f != "neg" and d in ("float32", "float64"):
                yield SHORT[d], (), f"{x}\nx.requires_grad_()\nT.{f}(x).sum().backward()\nr = x.grad"
        for f in PAIRS:
            zero = sign if f in "add sub mul div maximum minimum".split() else "r = y"
            yield SHORT[d], (), f"{x}\ny = T.{f}(x, x.view(-1, 1))\n{zero}"
        for call in ALONE:
            yield SHORT[d], (), f"{x}\nr = {call}"
    for d in ("int64", "int32", "int16", "int8", "uint8", "bool"):
        x = f"x = T.tensor([{INTS}]).to(T.{d})"
        # real PyTorch dies of SIGFPE at INT_MIN // -1, so no -1 here (Ember's own tests have it)
        nonzero = f"{x}\nd = x[(x != 0) & (x != -1)].view(-1, 1)"
        for f in ("exp", "sqrt", "tanh", "sigmoid", "relu", "abs", "neg"):
            yield SHORT.get(d, d), (), f"{x}\nr = T.{f}(x)"
        for f in PAIRS:
            if f == "pow":
                yield SHORT.get(d, d), (), f"{x}\nr = [x ** k for k in (0, 1, 2, 3, 5)]"
            else:
                yield SHORT.get(d, d), (), f"{nonzero}\nr = T.{f}(x, d)"
        for mode in ("trunc", "floor"):
            yield SHORT.get(d, d), (), f"{nonzero}\nr = T.div(x, d, rounding_mode='{mode}')"
        for bad in ("T.floor_divide(x, x)", "x // 0", "T.div(x, 0, rounding_mode='trunc')", "x ** -1", "x / 0"):
            yield SHORT.get(d, d), (), f"{x}\nr = {bad}"


def reductions():
    """NaN, ties, infinities, empty and long inputs through every reduction."""
    inputs = {
        "nan": "T.tensor([[1., float('nan'), 3.], [float('nan'), 0., -1.], [2., 2., 2.]])",
        "inf": "T.tensor([[float('inf'), 1., float('inf')], [-float('inf'), 0., -1.], [-float('inf')] * 3])",
        "ties": "T.tensor([[1., 3., 3., 0.], [0., 0., 0., 0.], [-0., 0., -0., 0.]])",
        "one": "T.tensor([[2.5]])",
        "none": "T.zeros(3, 0)",
        "no row": "T.zeros(0, 3)",
        "scalar": "T.tensor(2.5)",
        "long": "T.linspace(-1, 2, 100001)",
        "tall": "T.linspace(-1, 2, 60000).view(20000, 3)",
        "wide": "T.linspace(-1, 2, 60000).view(3, 20000)",
        "turned": "T.linspace(-1, 2, 600).view(20, 30).t()",
    }
    calls = "sum mean var amax amin max min argmax argmin any all softmax log_softmax".split()
    for name, x in inputs.items():
        for d in ("float32", "float64", "bfloat16", "int64", "bool"):
            if d in ("int64", "bool") and name in ("nan", "inf"):
                continue
            if d != "float32" and name not in ("nan", "ties", "none", "long"):
                continue
            for f in calls:
                for tail in ("", ", 0", ", 1", ", -1, keepdim=True", ", (0, 1)", ", 2", ", None"):
                    if f.endswith("softmax") and tail not in (", 0", ", 1", ", 2"):
                        continue
                    rare = tail in (", 2", ", None", ", (0, 1)")
                    if rare and (d != "float32" or name not in ("nan", "none", "scalar")):
                        continue
                    code = f"x = {x}.to(T.{d})\nr = T.{f}(x{tail})"
                    yield SHORT.get(d, d), (), code
    for f in ("sum", "mean", "var", "amax", "amin", "softmax", "log_softmax", "max", "min"):
        for name in ("nan", "inf", "ties", "one"):
            pick = "[0]" if f in ("max", "min") else ""
            yield "f32", (), (
                f"x = {inputs[name]}.requires_grad_()\ny = x.{f}(1){pick}\n"
                "y.backward(T.ones_like(y))\nr = (y, x.grad)"
            )
    for d in ("float32", "bfloat16"):
        for f in ("sum", "mean"):
            yield SHORT[d], (), f"r = T.{f}(T.ones(3, 4, dtype=T.{d}), dtype=T.float64)"
            yield "bool", (), f"r = T.{f}(T.ones(3, 4, dtype=T.bool), dtype=T.{d})"


def text_of(name):
    with open(os.path.join(os.path.dirname(os.path.abspath(__file__)), name)) as f:
        return [line.rstrip() for line in f if not line.startswith("#")]


def creation():
    for line in text_of("creation.txt"):
        if line:
            yield "any", (), f"r = {line}"


def programs():
    """{group: [(dtype label, flags, text)]} of programs.txt."""
    out, flags, block = {}, (), []
    for line in text_of("programs.txt") + [""]:
        if line.startswith("== "):
            name, *flags = line[3:].split()
            group = out.setdefault(name, [])
        elif line:
            block.append(line)
        elif block:
            group.append(("any", tuple(flags), "\n".join(block)))
            block = []
    return out


def numpy_samples():
    for d in ("?", "u1", "i1", "i2", "i4", "i8", "f2", "f4", "f8", "c8", "c16"):
        yield d, ("exact",), f"r = T.from_numpy(np.arange(6).reshape(2, 3).astype('{d}'))"
        yield d, ("exact",), f"a = np.zeros((2, 3), '{d}')\nx = T.from_numpy(a)\na[1, 2] = 1\nr = x"
        yield d, ("exact",), f"r = T.from_numpy(np.arange(6).reshape(2, 3).astype('{d}').T)"
        yield d, ("exact",), f"r = T.from_numpy(np.arange(6).astype('{d}')[1::2])"
        yield d, ("exact",), f"r = T.from_numpy(np.arange(4).astype('{d}')).numpy()"
    for code in (
        "T.from_numpy(np.arange(4)[::-1])",
        "T.from_numpy(np.array(['a']))",
        "T.from_numpy([1])",
        "T.from_numpy(None)",
        "T.from_numpy(np.array(3.5))",
        "T.from_numpy(np.zeros((0, 3)))",
        "T.from_numpy(np.array([None]))",
        "T.from_numpy(np.zeros(3, '>f4'))",
        "T.ones(2, requires_grad=True).numpy()",
        "np.asarray(T.arange(3))",
        "np.add(np.arange(3), T.arange(3).numpy())",
        "T.ones(2, dtype=T.bfloat16).numpy()",
        "np.array(T.ones(2, 2))",
        "T.arange(6).reshape(2, 3).t().numpy()",
        "T.tensor(3).numpy()",
        "T.ones(3).numpy().sum().item()",
        "np.sin(T.zeros(2))",
        "T.ones(2).__array__(np.float64)",
        "T.from_numpy(np.ones(3)).requires_grad",
    ):
        yield "any", ("exact",), f"r = {code}"


PICKLE = """import pickle, copy, io
{x}
r = {how}"""


def pickles():
    hows = (
        "pickle.loads(pickle.dumps(x))",
        "copy.deepcopy(x)",
        "copy.copy(x)",
        "pickle.loads(pickle.dumps((x, x[0])))[1]",
    )
    xs = ["x = T.arange(6).reshape(2, 3).to(T.%s)" % d for d in ALL] + [
        "x = T.arange(6.).reshape(2, 3).t()",
        "x = T.arange(10.)[2:8:2]",
        "x = T.ones(2, 3).requires_grad_()",
        "x = T.ones(3).expand(2, 3)",
        "x = T.zeros(2, 0)",
        "x = (T.ones(2).requires_grad_() * 2)",
        "x = T.nn.Parameter(T.ones(2, 2))",
    ]
    for x in xs:
        for how in hows:
            yield "any", ("exact",), PICKLE.format(x=x, how=how)
    yield "any", ("exact",), PICKLE.format(x="x = T.ones(2)", how="pickle.loads(pickle.dumps(T.float32)) is T.float32")
    yield "any", ("exact",), PICKLE.format(x="x = T.ones(2)", how="pickle.loads(pickle.dumps(x.shape))")


def reprs():
    for x in (
        "T.tensor([1, 2])",
        "T.tensor([1., 2.5])",
        "T.tensor([1e-8, 1.])",
        "T.tensor([1e9, 1.])",
        "T.tensor(3)",
        "T.tensor(2.)",
        "T.tensor([True])",
        "T.tensor([])",
        "T.zeros(2, 0)",
        "T.arange(2000)",
        "T.arange(2000.)",
        "T.ones(2, 3)",
        "T.ones(2, 3, dtype=T.float64)",
        "T.tensor([1+2j])",
        "T.ones(2, requires_grad=True)",
        "T.ones(2, requires_grad=True) * 2",
        "T.tensor([float('nan'), 1])",
        "T.tensor([float('inf'), -1.5])",
        "T.arange(24).reshape(2, 3, 4)",
        "T.tensor([1, 2], dtype=T.int32)",
        "T.ones(2, dtype=T.bfloat16)",
        "T.nn.Parameter(T.ones(2))",
        "T.full((3,), 1/3)",
        "T.arange(5000.).reshape(50, 100)",
        "T.float32",
        "T.tensor([-0.0, 0.0])",
        "T.tensor([123456.789, 0.001])",
        "T.ones(2).shape",
        "T.device('cpu')",
        "T.nn.Linear(2, 3)",
        "T.nn.Sequential(T.nn.Linear(2, 3), T.nn.ReLU())",
        "T.strided",
        "T.contiguous_format",
        "T.ones(30, 30) * 1e-3",
        "T.tensor([1e-3, 1e3])",
        "T.tensor([100000., 0.00001])",
        "T.tensor([[1., -2.], [3., 4.]])",
    ):
        yield "any", ("exact",), f"r = repr({x})"
        yield "any", ("exact",), f"r = str({x})"


def samples(group):
    kind, _, name = group.partition(".")
    if kind == "promotion":
        return promotion(name)
    made = {
        "random": random_streams,
        "index_get": lambda: indexing(False),
        "index_put": lambda: indexing(True),
        "creation": creation,
        "extremal": extremal,
        "reductions": reductions,
        "numpy": numpy_samples,
        "pickle": pickles,
        "repr": reprs,
    }
    return made[name]() if name in made else programs()[name]

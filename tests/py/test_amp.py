"""amp: what is cast to what, the cache of casts, GradScaler and its two operators; answers are PyTorch's."""

import os
import sys
import threading

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from golden_util import Cases, raises, warned

cases = Cases(__file__)


def complaint(fn, *args, **kwargs):
    return raises(fn, *args, **kwargs).split("\n")[0]


def outputs(T, dtype, **kinds):
    """Dtypes that come out of operators of all three lists, and some of none, for arguments of `kinds`."""
    F = T.nn.functional

    def x(*size, kind="a"):
        return T.full(size, 0.5, dtype=kinds[kind])

    calls = {
        "mm": lambda: T.mm(x(2, 2), x(2, 2, kind="b")), "bmm": lambda: T.bmm(x(1, 2, 2), x(1, 2, 2)),
        "matmul": lambda: x(2, 2) @ x(2, 2, kind="b"), "addmm": lambda: T.addmm(x(2, 2), x(2, 2), x(2, 2)),
        "linear": lambda: F.linear(x(2, 2), x(3, 2, kind="b"), x(3)), "baddbmm": lambda: T.baddbmm(x(1), x(1, 2, 2), x(1, 2, 2)),
        "mv": lambda: T.mv(x(2, 2), x(2)), "dot": lambda: T.dot(x(2), x(2)), "mse": lambda: F.mse_loss(x(2), x(2)),
        "l1": lambda: F.l1_loss(x(2), x(2, kind="b")), "bce": lambda: F.binary_cross_entropy(x(2), x(2)),
        "cross_entropy": lambda: F.cross_entropy(x(2, 2), T.tensor([0, 1])),
        "nll": lambda: F.nll_loss(x(2, 2), T.tensor([0, 1])), "prod": lambda: T.prod(x(2)), "prod_dim": lambda: T.prod(x(2), 0),
        "cat": lambda: T.cat([x(2), x(2, kind="b")]), "stack": lambda: T.stack([x(2), x(2, kind="b")]),
        "softmax": lambda: F.softmax(x(2), 0), "add": lambda: x(2) + x(2, kind="b"), "exp": lambda: x(2).exp(),
        "sum": lambda: x(2).sum(), "relu": lambda: F.relu(x(2)),
        "conv1d": lambda: F.conv1d(x(1, 1, 4), x(1, 1, 2, kind="b")), "conv2d": lambda: F.conv2d(x(1, 1, 4, 4), x(1, 1, 2, 2)),
        "conv2d_same": lambda: F.conv2d(x(1, 1, 4, 4), x(1, 1, 3, 3), padding="same"),
        "conv3d": lambda: F.conv3d(x(1, 1, 2, 2, 2), x(1, 1, 2, 2, 2)),
        "conv_transpose2d": lambda: F.conv_transpose2d(x(1, 1, 2, 2), x(1, 1, 2, 2, kind="b")),
        "avg_pool2d": lambda: F.avg_pool2d(x(1, 1, 2, 2), 2),
        "avg_pool3d": lambda: F.avg_pool3d(x(1, 1, 2, 2, 2), 2), "max_pool3d": lambda: F.max_pool3d(x(1, 1, 2, 2, 2), 2),
        "adaptive3d": lambda: F.adaptive_avg_pool3d(x(1, 1, 2, 2, 2), 1), "reflect": lambda: F.pad(x(1, 1, 4), (1, 1), "reflect"),
        "replicate3d": lambda: F.pad(x(1, 1, 2, 2, 2), (1, 1, 1, 1, 1, 1), "replicate"), "zeros": lambda: F.pad(x(2), (1, 1)),
        "bce_logits": lambda: F.binary_cross_entropy_with_logits(x(2), x(2, kind="b")),
        "sdpa": lambda: F.scaled_dot_product_attention(x(1, 2, 4), x(1, 2, 4), x(1, 2, 4)),
        "group_norm": lambda: F.group_norm(x(1, 2, 2), 1),
        "gelu": lambda: F.gelu(x(2)),
    }
    with T.autocast("cpu", dtype=dtype):
        return {name: said(call) for name, call in calls.items()}


def said(call):
    try:
        return str(call().dtype)
    except RuntimeError as e:
        return f"{type(e).__name__}: {e}"[:55]


@cases.add()
def dtypes(T):
    f32, f64, bf, hf = T.float32, T.float64, T.bfloat16, T.float16
    return [outputs(T, low, a=a, b=b) for low in (bf, hf)
            for a, b in ((f32, f32), (f64, f64), (low, low), (low, f32), (f32, low))]


@cases.add()
def regions(T):
    seen = []

    def note():
        seen.append([T.is_autocast_enabled("cpu"), T.get_autocast_dtype("cpu"), T.is_autocast_cache_enabled(),
                     (T.ones(2, 2) @ T.ones(2, 2)).dtype])

    note()
    with T.autocast("cpu"):
        note()
        with T.autocast("cpu", dtype=T.float16, cache_enabled=False):
            note()
            with T.autocast("cpu", enabled=False):
                note()
        note()
    T.autocast("cpu")(note)()
    T.set_autocast_enabled("cpu", True)
    T.set_autocast_dtype("cpu", T.float16)
    note()
    T.set_autocast_enabled("cpu", False)
    T.set_autocast_dtype("cpu", T.bfloat16)
    with T.autocast("cuda", dtype=T.bfloat16, enabled=False):
        note()
        seen.append([T.is_autocast_enabled("cuda"), T.get_autocast_dtype("cuda"), T.is_autocast_enabled()])
    return seen, T.get_autocast_dtype("cuda"), T.get_autocast_dtype("xpu"), T.get_autocast_dtype("mps")


@cases.add()
def warnings_and_complaints(T):
    def enter(*args, **kwargs):
        with T.autocast(*args, **kwargs):
            return [T.get_autocast_dtype(args[0]), T.is_autocast_enabled(args[0])]

    return (warned(enter, "cpu", dtype=T.float32), warned(enter, "cuda"), warned(enter, "xpu", enabled=False),
            warned(lambda: T.cpu.amp.autocast() and None), warned(lambda: T.cuda.amp.autocast() and None),
            warned(lambda: T.cuda.amp.GradScaler() and None), warned(lambda: T.cpu.amp.GradScaler() and None),
            warned(lambda: T.amp.GradScaler().is_enabled()), complaint(T.autocast, 3), complaint(T.autocast, "meta"),
            complaint(T.autocast, "foo")[:40], complaint(T.autocast("cpu"), 3).split(".")[0], complaint(T.get_autocast_dtype, 3),
            complaint(T.amp.GradScaler, "cpu", growth_factor=1.0), complaint(T.amp.GradScaler, "cpu", backoff_factor=1.0),
            complaint(T.amp.custom_fwd, device_type=1), complaint(T.amp.custom_bwd, device_type=1),
            [T.amp.is_autocast_available(kind) for kind in ("cpu", "cuda", "meta", "xpu", "mps")])


class Scale:
    """An autograd.Function made of the namespace T."""

    @staticmethod
    def make(T, **options):
        class Product(T.autograd.Function):
            @staticmethod
            @T.amp.custom_fwd(device_type="cpu", **options)
            def forward(ctx, a, b):
                ctx.save_for_backward(a, b)
                seen.append([a.dtype, T.is_autocast_enabled("cpu")])
                return a @ b

            @staticmethod
            @T.amp.custom_bwd(device_type="cpu")
            def backward(ctx, grad):
                a, b = ctx.saved_tensors
                seen.append([grad.dtype, T.is_autocast_enabled("cpu"), (grad @ b.t()).dtype])
                return grad @ b.t(), a.t() @ grad

        seen = []
        return Product, seen


@cases.add()
def own_functions(T):
    made = []
    for options in ({}, {"cast_inputs": T.float32}, {"cast_inputs": T.float16}):
        product, seen = Scale.make(T, **options)
        for on in (True, False):
            a, b = T.full((2, 2), 0.5, requires_grad=True), T.full((2, 2), 3.0, requires_grad=True)
            with T.autocast("cpu", enabled=on):
                out = product.apply(a, b)
            out.float().sum().backward()
            made.append([out, a.grad, b.grad])
        made.append(seen)
    return made


# ---------------------------------------------------------------- the scaler
def trained(T, scaler, poison=(), clip=False, fused=False):
    """Scale, tracker and weights after each of some steps; those of `poison` overflow."""
    w = T.nn.Parameter(T.tensor([1.0, -2.0, 0.5]))
    opt = T.optim.SGD([w], lr=0.1, fused=fused) if fused else T.optim.SGD([w], lr=0.1)
    seen = []
    for step in range(6):
        opt.zero_grad()
        loss = (w * w).sum() * (float("inf") if step in poison else 1.0)
        scaler.scale(loss).backward()
        if clip:
            scaler.unscale_(opt)
            T.nn.utils.clip_grad_norm_([w], 0.5)
        scaler.step(opt)
        scaler.update()
        seen.append([scaler.get_scale(), scaler.state_dict(), w.detach().clone()])
    return seen


@cases.add(tol=1e-6)
def scaling(T):
    def scaler(**kw):
        return T.amp.GradScaler("cpu", init_scale=8.0, growth_interval=2, **kw)

    return [trained(T, scaler()), trained(T, scaler(), poison=(1, 4)), trained(T, scaler(), clip=True),
            trained(T, scaler(growth_factor=3.0, backoff_factor=0.25), poison=(0,), clip=True),
            trained(T, scaler(enabled=False)), trained(T, scaler(), poison=(2,), fused=True)]


@cases.add()
def scaler_details(T):
    s = T.amp.GradScaler("cpu", init_scale=4.0)
    before = [s.get_scale(), s.state_dict(), s._get_growth_tracker(), s.is_enabled()]
    lists = s.scale([T.ones(2), (T.ones(1),)]), list(s.scale(T.ones(1) for _ in range(2)))
    off = T.amp.GradScaler("cpu", enabled=False)
    w = T.nn.Parameter(T.ones(2))
    opt = T.optim.SGD([w], lr=0.1)
    s.scale(w.sum()).backward()
    unscaled = s.unscale_(opt), w.grad.clone()
    twice = complaint(s.unscale_, opt)
    s.step(opt)
    late = complaint(s.unscale_, opt), complaint(s.step, opt), complaint(s.__getstate__)
    s.update(2.5)
    third = s.get_scale()
    s.update(T.tensor(3.0))
    half = T.nn.Parameter(T.ones(2, dtype=T.float16))
    half.grad = T.ones(2, dtype=T.float16)
    other = T.amp.GradScaler("cpu")
    other.load_state_dict(s.state_dict())
    import pickle
    copied = pickle.loads(pickle.dumps(s))
    return (before, lists, off.scale(3), off.get_scale(), off.state_dict(), off._get_growth_tracker(), unscaled, twice, late,
            third, s.state_dict(), complaint(s.unscale_, T.optim.SGD([half], lr=0.1)), complaint(s.update),
            complaint(s.update, T.ones(2)), complaint(s.step, opt, closure=1), complaint(s.scale, 3),
            complaint(T.amp.GradScaler("cpu").step, opt), complaint(s.load_state_dict, {}), other.state_dict(),
            copied.state_dict())


@cases.add()
def scaler_operators(T):
    un, up = T._amp_foreach_non_finite_check_and_unscale_, T._amp_update_scale_
    zero, one, inf = T.tensor(0.0), T.tensor(1.0), float("inf")
    bad = [complaint(un, [T.ones(2)], T.zeros(2), one), complaint(un, [T.ones(2)], zero, T.ones(2)),
           complaint(un, [T.ones(2)], zero.double(), one), complaint(un, [T.ones(2)], zero, T.tensor(1)),
           complaint(un, [T.ones(2, dtype=T.int32)], zero, one), complaint(un, [T.ones(2, dtype=T.complex64)], zero, one),
           complaint(un, [T.ones(1).expand(2)], zero, one)]
    seen = []
    for values in ([1.0, 2.0], [1.0, inf], [float("nan"), 0.0]):
        for dtype in (T.float32, T.float64, T.float16, T.bfloat16):
            for factor in (0.5, 1.0):
                grads, found = [T.tensor(values, dtype=dtype), T.ones(3, 2, dtype=dtype).t(), T.ones(4, dtype=dtype)[::2],
                                T.empty(0, dtype=dtype)], T.zeros(1)
                un(grads, found, T.tensor([factor]))
                seen.append([grads, found])
    big, found = T.ones(200001), T.zeros(())
    big[150000] = -inf
    un([T.ones(5), big], found, T.tensor(0.25))
    seen.append([big.sum(), big[0], found])
    scale, tracker = T.tensor(4.0), T.tensor(0, dtype=T.int32)
    steps = []
    for value in (0.0, 0.0, 0.0, 1.0, 0.0, float("nan")):
        up(scale, tracker, T.tensor(value), 2.0, 0.5, 2)
        steps.append([scale.clone(), tracker.clone()])
    top = T.tensor(3e38)
    up(top, T.tensor(1, dtype=T.int32), zero, 2.0, 0.5, 2)
    bad += [complaint(up, T.ones(2), tracker, zero, 2.0, 0.5, 2), complaint(up, scale, T.zeros(2, dtype=T.int32), zero, 2.0, 0.5, 2),
            complaint(up, scale, tracker, T.zeros(2), 2.0, 0.5, 2), complaint(up, scale, T.tensor(0), zero, 2.0, 0.5, 2),
            complaint(up, scale.double(), tracker, zero, 2.0, 0.5, 2), complaint(up, scale, tracker, zero.half(), 2.0, 0.5, 2)]
    return bad, seen, steps, top


# ---------------------------------------------------------------- the cache
def casts(torch, **kw):
    """How many casts of the weight two products make, in a region and outside of no_grad."""
    weight = torch.nn.Parameter(torch.ones(2, 2))
    with torch.autocast("cpu", **kw):
        a, b = torch.ones(1, 2).bfloat16() @ weight, torch.ones(1, 2).bfloat16() @ weight
    grads = [n for out in (a, b) for n, _ in out.grad_fn.next_functions if n is not None]
    return len(set(grads)), weight, a + b


def test_a_parameter_is_cast_once_a_region():
    import ember
    for kw, expected in (({}, 1), ({"cache_enabled": False}, 2)):
        count, weight, out = casts(ember, **kw)
        assert count == expected
        out.sum().backward()
        assert weight.grad.tolist() == [[2, 2], [2, 2]] and weight.grad.dtype == ember.float32


def test_the_cache_does_not_lie():
    import ember
    weight = ember.nn.Parameter(ember.ones(2, 2))
    x = ember.ones(1, 2)
    with ember.autocast("cpu"):
        with ember.no_grad():
            silent = x @ weight
        loud = x @ weight
        assert not silent.requires_grad and loud.requires_grad  # PyTorch would reuse the unrecorded cast
        with ember.no_grad():
            weight.mul_(3)
        assert (x @ weight).tolist() == [[6, 6]]  # and the stale one
        with ember.autocast("cpu", dtype=ember.float16):
            assert (x @ weight).dtype == ember.float16
        assert (x @ weight).dtype == ember.bfloat16
    with ember.autocast("cpu"):
        many = [ember.nn.Parameter(ember.full((1, 1), float(i))) for i in range(300)]
        for _ in range(2):
            assert [(ember.ones(1, 1) @ p).item() for p in many] == [float(i) for i in ember.arange(300).bfloat16()]


def test_nothing_is_kept_after_a_region():
    import gc

    import ember
    gc.collect()
    before = ember._C._live_objects()
    with ember.autocast("cpu"):
        model = ember.nn.Linear(4, 4)
        model(ember.ones(2, 4)).sum().backward()
    del model
    gc.collect()
    assert ember._C._live_objects() == before


def test_the_lists_are_pytorchs():
    """The policy of each operator that PyTorch registers at AutocastCPU, and of nothing else."""
    import ember
    policy = ember._C._autocast_policy
    with open(os.path.join(os.path.dirname(os.path.abspath(__file__)), "golden", "autocast_cpu.txt")) as f:
        names = f.read().split()
    assert len(names) == 127
    known = {tuple((name + ".").split(".")[:2]): policy(*(name + ".").split(".")[:2]) for name in names}
    assert all(known.values())
    assert policy("mv") is None and policy("conv2d", "nothing") is None and policy("cat") == "widest"
    registered = {tuple((n.split("::")[1] + ".").split(".")[:2]) for n in ember._C._dispatch_get_all_op_names()
                  if n.startswith("aten::")}
    with ember.autocast("cpu"):  # the layer is there from the first use on
        cast = {key for key in registered
                if "Autocast" in ember._C._dispatch_keys(getattr(getattr(ember.ops.aten, key[0]), key[1] or "default"))}
    assert cast == registered & set(known)


def test_one_object_can_be_entered_again():
    import ember
    low = ember.autocast("cpu", dtype=ember.float16)
    with low:
        with low:
            pass
        assert ember.is_autocast_enabled("cpu") and (ember.ones(2, 2) @ ember.ones(2, 2)).dtype == ember.float16
    assert not ember.is_autocast_enabled("cpu")  # PyTorch stays on


def test_threads_do_not_share_state():
    import ember
    decorated = ember.autocast("cpu")(lambda: (ember.ones(2, 2) @ ember.ones(2, 2)).dtype)
    seen = []
    threads = [threading.Thread(target=lambda: seen.extend(decorated() for _ in range(20))) for _ in range(4)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert seen == [ember.bfloat16] * 80 and not ember.is_autocast_enabled("cpu")


test_golden = cases.test()

if __name__ == "__main__":
    cases.write()
    import torch
    names = [n[6:] for n in torch._C._dispatch_get_all_op_names() if n.startswith("aten::")
             and torch._C._dispatch_has_kernel_for_dispatch_key(n, "AutocastCPU")]
    with open(os.path.join(os.path.dirname(cases.path), "autocast_cpu.txt"), "w") as f:
        f.write("\n".join(sorted(names)) + "\n")

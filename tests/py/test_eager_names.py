"""compile, compiler, jit, profiler's schedules: names of compilers, answered by a build that has none; devices that are not there."""

import copy
import os
import pickle
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from golden_util import Cases, raises, warned

cases = Cases(__file__)
os.environ["PYTORCH_JIT"] = "0"  # PyTorch's own way of saying it


def complaint(fn, *args, **kwargs):
    return raises(fn, *args, **kwargs).split("\n")[0][:160]


def plus(x):
    return x + 1


@cases.add()
def compile_functions(T):
    fast = T.compile(plus, backend="eager")

    @T.compile(backend="eager", dynamic=True)
    def twice(x):
        return x * 2

    return (fast(T.ones(2)), twice(T.ones(2)), fast.__name__, fast._torchdynamo_orig_callable is plus,
            T.compile(plus, disable=True) is plus, complaint(T.compile, plus, mode="x"),
            complaint(T.compile, plus, mode="default", options={"a": 1}), complaint(T.compile, 3),
            complaint(T.compile, plus, dynamic=3), complaint(T.compile, plus, backend="nothing"),
            T.compiler.is_compiling(), T.compiler.is_dynamo_compiling(), T.compiler.is_exporting(), T.compiler.reset(),
            T.compiler.disable(plus)(T.ones(1)), T.compiler.disable()(plus)(T.ones(1)), T.compiler.list_backends(),
            T.compiler.allow_in_graph(plus) is plus, T.compiler.assume_constant_result(plus) is plus,
            T.compiler.cudagraph_mark_step_begin(), T._dynamo.is_compiling(), T._dynamo.reset())


@cases.add()
def compile_modules(T):
    module = T.nn.Linear(2, 3)
    fast = T.compile(module, backend="eager")
    seen = [type(fast).__name__, str(fast), fast._orig_mod is module, list(fast.state_dict()), fast.weight is module.weight,
            isinstance(fast, T.nn.Module), fast.in_features, [n for n, _ in fast.named_modules()],
            [n for n, _ in fast.named_parameters()], T.equal(fast(T.ones(1, 2)), module(T.ones(1, 2)))]
    fast.eval()
    seen += [module.training, fast.training]
    fast.train()
    fast.mark = 3
    seen += [module.training, module.mark, fast.mark]
    del fast.mark
    seen += [hasattr(module, "mark"), complaint(getattr, fast, "mark")]
    for other in (copy.deepcopy(fast), pickle.loads(pickle.dumps(fast))):
        seen += [type(other).__name__, T.equal(other.weight, module.weight), other._orig_mod is module]
    other = T.nn.Linear(2, 3)
    other.load_state_dict({k.removeprefix("_orig_mod."): v for k, v in fast.state_dict().items()})
    seen += [T.equal(other.bias, module.bias), other.compile(backend="eager"), list(other.state_dict())]
    opt = T.optim.SGD(fast.parameters(), lr=1.0)
    fast(T.ones(1, 2)).sum().backward()
    before = module.bias.detach().clone()
    opt.step()
    return seen, before - module.bias


@cases.add()
def jit(T):
    module = T.nn.Linear(2, 2)
    return (T.jit.is_scripting(), T.jit.is_tracing(), T.jit.script(plus) is plus, T.jit.script(module) is module,
            T.jit.trace(plus, T.ones(1)) is plus, T.jit.ignore(plus) is plus, T.jit.ignore(drop=True)(plus) is plus,
            T.jit.unused(plus) is plus, T.jit.export(plus) is plus, T.jit.annotate(int, 3), T.jit.isinstance([3], list[int]),
            T.jit.isinstance([3], list[str]), T.jit.isinstance({"a": 1}, dict[str, int]), T.jit.isinstance(3, (str, int)),
            T.jit.Attribute(3, int), complaint(T.jit.freeze, module), T.jit.script_method(plus) is plus)


ANSWERED = {
    "cuda": "is_available device_count is_initialized is_bf16_supported empty_cache memory_allocated max_memory_allocated "
            "memory_reserved max_memory_reserved memory_cached max_memory_cached memory_stats get_rng_state_all get_arch_list "
            "get_gencode_flags is_tf32_supported seed seed_all current_device synchronize get_device_name get_device_properties "
            "get_device_capability current_stream default_stream mem_get_info get_rng_state init initial_seed ipc_collect "
            "cudart get_sync_debug_mode Event CUDAGraph Stream FloatTensor BoolTensor",
    "xpu": "is_available device_count empty_cache current_device get_device_name synchronize memory_allocated memory_reserved "
           "max_memory_allocated get_device_properties current_stream is_bf16_supported get_rng_state Event",
    "mps": "is_available device_count synchronize empty_cache current_allocated_memory driver_allocated_memory get_rng_state "
           "recommended_max_memory Event",
    "accelerator": "is_available device_count current_accelerator current_device_index current_device_idx current_stream "
                   "synchronize empty_cache memory_allocated get_memory_info",
    "cpu": "is_available device_count current_device is_initialized synchronize",
}


@cases.add()
def absent_devices(T):
    def ask(fn, *args):
        try:
            return warned(fn, *args)
        except Exception as e:
            return f"{type(e).__name__}: {e}"[:150]

    def enter(context):
        with context:
            return "entered"

    seen = {module: {name: ask(getattr(getattr(T, module), name)) for name in text.split()} for module, text in ANSWERED.items()}
    c = T.cuda
    given = [ask(c.set_device, -1), ask(c.manual_seed, 3), ask(c.manual_seed_all, 3), ask(enter, c.stream(None)),
             ask(enter, c.device(-1)), ask(enter, c.device(0)), ask(enter, c.device_of(T.ones(1))), ask(c.set_rng_state_all, []),
             ask(c.nvtx.range_push, "x"), ask(T.mps.manual_seed, 3), ask(T.xpu.manual_seed_all, 3), ask(T.xpu.set_device, 0),
             ask(enter, T.accelerator.device_index(None)), ask(enter, T.cpu.stream(T.cpu.current_stream())),
             ask(enter, T.accelerator.device_index(0)), issubclass(c.OutOfMemoryError, RuntimeError)]
    return seen, given


@cases.add()
def schedules(T):
    P = T.profiler
    options = [{"wait": 1, "warmup": 1, "active": 2}, {"wait": 0, "warmup": 0, "active": 1, "repeat": 2},
               {"wait": 1, "warmup": 1, "active": 2, "repeat": 1, "skip_first": 2},
               {"wait": 2, "warmup": 0, "active": 1, "skip_first_wait": 1, "skip_first": 1},
               {"wait": 2, "warmup": 1, "active": 1, "skip_first_wait": 1, "repeat": 2}]
    return ([[P.schedule(**o)(i).name for i in range(14)] for o in options],
            raises(P.schedule, wait=-1, warmup=0, active=1), raises(P.schedule, wait=1, warmup=0, active=0),
            raises(P.schedule(wait=1, warmup=1, active=1), -1), raises(P.profile, activities=[]),
            raises(P.profile().events), raises(P.profile().key_averages), raises(P.profile().export_chrome_trace, "x"),
            [a.name for a in P.ProfilerAction][:4], [a.name for a in P.supported_activities()])


def test_what_differs_is_said():
    """A backend that is a function would get a graph, which is not made; distributed training is not in this build."""
    import pytest

    import ember
    with pytest.raises(NotImplementedError, match="wants a graph of the program"):
        ember.compile(plus, backend=lambda graph, inputs: graph)(ember.ones(1))
    assert ember.distributed.is_available() is False and not hasattr(ember.distributed, "init_process_group")
    assert "compile" in dir(ember) and "jit" in dir(ember)


def test_stances_and_numpy():
    import ember
    with ember.compiler.set_stance("force_eager"):
        assert ember.compile(plus)(ember.ones(1)).item() == 2
    assert ember.compiler.wrap_numpy(lambda a: a * 2)(ember.ones(2)).tolist() == [2, 2]
    assert ember.compiler.set_stance("default")(plus) is plus


test_golden = cases.test()

if __name__ == "__main__":
    cases.write()

"""Activation checkpointing: save a function's inputs instead of its intermediates, and run it again in backward."""

import warnings
import weakref
from collections import defaultdict
from itertools import count
from typing import Any

import ember
from ember import _C

__all__ = ["checkpoint", "checkpoint_sequential", "CheckpointError", "CheckpointFunction", "check_backward_validity",
           "detach_variable", "noop_context_fn", "set_checkpoint_early_stop"]


class CheckpointError(RuntimeError):
    """The second run of a checkpointed function did not do what the first one did."""


class _StopRecomputation(Exception):
    """Ends a second run as soon as all that backward needs has been seen."""


class _Nothing:
    def __enter__(self) -> None:
        pass

    def __exit__(self, exc_type, exc_value, traceback) -> None:
        pass


def noop_context_fn() -> Any:
    """The default context_fn: two contexts that do nothing, for the first run and the second."""
    return _Nothing(), _Nothing()


_early_stop = True


class set_checkpoint_early_stop:
    """Context manager: whether checkpoints called inside stop their second run early (they do by default)."""

    def __init__(self, enable) -> None:
        self.enable = enable

    def __enter__(self) -> None:
        global _early_stop
        self.prev, _early_stop = _early_stop, self.enable

    def __exit__(self, exc_type, exc_value, traceback) -> None:
        global _early_stop
        _early_stop = self.prev


class _RngState:
    """The CPU generator's state when made; `with` puts it in force and afterwards restores the state before."""

    def __init__(self) -> None:
        self.state = ember.get_rng_state()
        self.before = []  # A stack: a second run may start inside another one.

    def __enter__(self) -> None:
        self.before.append(ember.get_rng_state())
        ember.set_rng_state(self.state)

    def __exit__(self, exc_type, exc_value, traceback) -> None:
        ember.set_rng_state(self.before.pop())


def _internal_assert(cond):
    if not cond:
        raise AssertionError("Something went unexpectedly wrong in activation checkpoint. Please report this bug by "
                             "filing an issue to PyTorch.")


# ---- use_reentrant=True: a custom Function whose backward runs a backward of its own -------------------------


def detach_variable(inputs) -> Any:
    """Detached tensors of a tuple, each with its requires_grad; other values as they are."""
    if not isinstance(inputs, tuple):
        raise RuntimeError("Only tuple of tensors is supported. Got Unsupported input type: "
                           f"{type(inputs).__name__}")
    out = []
    for inp in inputs:
        if isinstance(inp, ember.Tensor):
            requires_grad = inp.requires_grad
            inp = inp.detach()
            inp.requires_grad = requires_grad
        out.append(inp)
    return tuple(out)


def check_backward_validity(inputs) -> None:
    """Warn if no input requires grad: the reentrant kind then has nothing to hang on to."""
    if not any(inp.requires_grad for inp in inputs if isinstance(inp, ember.Tensor)):
        warnings.warn("None of the inputs have requires_grad=True. Gradients will be None", stacklevel=2)


def _make_checkpoint_function():
    class CheckpointFunction(ember.autograd.Function):
        """The node of a reentrant checkpoint."""

        @staticmethod
        def forward(ctx, run_function, preserve_rng_state, *args):
            check_backward_validity(args)
            ctx.run_function = run_function
            ctx.rng = _RngState() if preserve_rng_state else _Nothing()
            ctx.inputs = [None if isinstance(a, ember.Tensor) else a for a in args]
            ctx.tensor_indices = [i for i, a in enumerate(args) if isinstance(a, ember.Tensor)]
            ctx.save_for_backward(*[args[i] for i in ctx.tensor_indices])
            with ember.no_grad():
                return run_function(*args)

        @staticmethod
        def backward(ctx, *grads):
            if not ember.autograd._is_checkpoint_valid():
                raise RuntimeError("When use_reentrant=True, torch.utils.checkpoint is incompatible with .grad() or "
                                   "passing an `inputs` parameter to .backward(). To resolve this error, you can "
                                   "either set use_reentrant=False, or call .backward() without passing the `inputs` "
                                   "argument.")
            inputs = list(ctx.inputs)
            for i, tensor in zip(ctx.tensor_indices, ctx.saved_tensors):
                inputs[i] = tensor
            inputs = detach_variable(tuple(inputs))
            with ctx.rng, ember.enable_grad():
                outputs = ctx.run_function(*inputs)
            if isinstance(outputs, ember.Tensor):
                outputs = (outputs,)
            wanted = [(o, g) for o, g in zip(outputs, grads) if isinstance(o, ember.Tensor) and o.requires_grad]
            if not wanted:
                raise RuntimeError("none of output has requires_grad=True, this checkpoint() is not necessary")
            ember.autograd.backward([o for o, _ in wanted], [g for _, g in wanted])
            return None, None, *(i.grad if isinstance(i, ember.Tensor) else None for i in inputs)

    return CheckpointFunction


_made = {}


def _function(name, make):
    """A custom Function class, made at first use."""
    if name not in _made:
        _made[name] = make()
    return _made[name]


def __getattr__(name) -> Any:
    if name == "CheckpointFunction":
        return _function(name, _make_checkpoint_function)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


# ---- use_reentrant=False: saved-tensor hooks that keep a place instead of a tensor ---------------------------
#
# In the first run each tensor that would be saved becomes a _Place, counted in order. The first place that backward
# asks for starts a second run under hooks that count in the same order and so know which tensor belongs to which
# place. What the second run finds lives until it is fetched, once per backward (graph task).


class _Place:
    def __init__(self) -> None:
        self.keys = {}  # graph task -> key into the frame's recomputed tensors; None once fetched


class _Key:
    pass


def _metadata(x):
    return {"shape": x.shape, "dtype": x.dtype, "device": x.device}


_METADATA = {"default": _metadata, "none": lambda x: None}

_TIP = "\nTip: the function must save the same tensors, in the same order, each time it runs with the same inputs.\n"


class _Frame:
    """One call of checkpoint()."""

    def __init__(self, recompute, early_stop, metadata) -> None:
        self.recompute = recompute
        self.early_stop = early_stop
        self.metadata = metadata
        self.saver = None
        self.places = []
        self.expected = []
        self.recomputed = defaultdict(weakref.WeakKeyDictionary)
        self.counter = defaultdict(int)
        self.done = defaultdict(bool)
        self.forward_completed = False
        self.ignore_mismatch = False

    def check(self, task) -> None:
        """The second run saved what the first one did. Raises CheckpointError."""
        if self.ignore_mismatch:
            return
        if len(self.places) != self.counter[task]:
            raise CheckpointError("torch.utils.checkpoint: A different number of tensors was saved during the "
                                  "original forward and recomputation.\nNumber of tensors saved during forward: "
                                  f"{len(self.places)}\nNumber of tensors saved during recomputation: "
                                  f"{self.counter[task]}.\n{_TIP}")
        different = []
        for i, place in enumerate(ref() for ref in self.places):
            if place is None:
                continue
            _internal_assert(task in place.keys)
            tensor = self.recomputed[task].get(place.keys[task])
            if tensor is None:
                continue
            now = self.metadata(tensor)
            if self.expected[i] != now:
                different.append(f"tensor at position {i}:\nsaved metadata: {self.expected[i]}\n"
                                 f"recomputed metadata: {now}\n")
        if different:
            raise CheckpointError("torch.utils.checkpoint: Recomputed values for the following tensors have different "
                                  f"metadata than during the forward pass.\n{''.join(different)}.\n{_TIP}")


_lone_tasks = count(-2, -1)  # Ids for second runs outside of any backward.


def _first_run_hooks(frame):
    def pack(x):
        place = _Place()
        frame.places.append(weakref.ref(place))
        with ember.no_grad():
            frame.expected.append(frame.metadata(x))
        return place

    def unpack(place):
        task = _C._current_graph_task_id()
        if task == -1:
            task = next(_lone_tasks)
        if not frame.done[task]:
            inputs = frame.saver.grad_fn.saved_tensors
            try:
                with _second_run_hooks(weakref.ref(frame), task), ember.enable_grad():
                    frame.recompute(inputs)
            except _StopRecomputation:
                pass
            frame.done[task] = True
            frame.check(task)
        _internal_assert(task in place.keys)
        key = place.keys[task]
        if key is None:
            raise CheckpointError("torch.utils.checkpoint: Unpack is being triggered for a tensor that was already "
                                  "unpacked once. If you are calling ctx.saved_tensors in backward, make sure to do "
                                  "so only once. Otherwise please open an issue with details on your use case.")
        _internal_assert(key in frame.recomputed[task])
        tensor = frame.recomputed[task][key]
        place.keys[task] = None
        return tensor

    return ember.autograd.graph.saved_tensors_hooks(pack, unpack)


def _second_run_hooks(frame_ref, task):
    def pack(x):
        frame = frame_ref()
        if frame is None:
            raise AssertionError("Internal error: target_frame reference is None")
        i = frame.counter[task]
        frame.counter[task] += 1
        if i >= len(frame.places):
            if not frame.forward_completed:
                # backward() was called inside the checkpointed function: the first run is not over.
                frame.ignore_mismatch = True
                return x.detach()
            raise CheckpointError("torch.utils.checkpoint: trying to save more tensors during recomputation than "
                                  f"during the original forward pass.\n{_TIP}")
        place = frame.places[i]()
        if place is not None:  # Else nobody can ask for it any more.
            frame.recomputed[task][place.keys.setdefault(task, _Key())] = x.detach()
        if frame.early_stop and frame.counter[task] == len(frame.places):
            raise _StopRecomputation
        return x.detach()

    return ember.autograd.graph.saved_tensors_hooks(pack, lambda x: x)


def _make_saver():
    class NoopSaveInputs(ember.autograd.Function):
        """Saves the inputs the way any operator does, so that hooks around the checkpoint see them."""

        @staticmethod
        def forward(ctx, dummy, *tensors):
            ctx.save_for_backward(*tensors)
            return ember.empty((0,))

        @staticmethod
        def backward(ctx, *grads):
            raise AssertionError("Did not expect to backward on this graph")

    return NoopSaveInputs


def _split_tensors(args, kwargs):
    """The tensors among args and kwargs, and a function that puts such tensors back among the other values."""
    flat = [*args, *kwargs.values()]
    names = list(kwargs)
    index = [i for i, a in enumerate(flat) if isinstance(a, ember.Tensor)]
    rest = [None if isinstance(a, ember.Tensor) else a for a in flat]
    n_args = len(args)

    def join(tensors):
        values = list(rest)
        for i, tensor in zip(index, tensors):
            values[i] = tensor
        return values[:n_args], dict(zip(names, values[n_args:]))

    return [flat[i] for i in index], join


def _checkpoint_without_reentrant(function, args, kwargs, preserve_rng_state, context_fn, determinism_check,
                                  early_stop):
    if determinism_check not in _METADATA:
        raise ValueError(f"determinism_check should be one of {list(_METADATA)}, but got {determinism_check}")
    first_context, second_context = context_fn()
    rng = _RngState() if preserve_rng_state else _Nothing()
    tensors, join = _split_tensors(args, kwargs)

    def recompute(inputs):
        own_args, own_kwargs = join(inputs)
        with rng, second_context:
            function(*own_args, **own_kwargs)

    frame = _Frame(recompute, early_stop and _early_stop, _METADATA[determinism_check])
    frame.saver = _function("NoopSaveInputs", _make_saver).apply(ember.empty((0,), requires_grad=True), *tensors)
    if frame.saver.grad_fn is None:
        # Recording is off: nothing will be saved, so there is nothing to avoid saving.
        with first_context:
            return function(*args, **kwargs)
    with _first_run_hooks(frame), first_context:
        out = function(*args, **kwargs)
    frame.forward_completed = True
    return out


# ---- the entry points ----------------------------------------------------------------------------------------


def checkpoint(function, *args, use_reentrant=None, context_fn=noop_context_fn, determinism_check="default",
               debug=False, early_stop=True, preserve_rng_state=True, **kwargs) -> Any:
    """function(*args, **kwargs), with its intermediates computed again in backward instead of kept.

    use_reentrant: pass it; False is the better kind (any nesting, .grad(), keyword arguments). preserve_rng_state:
    the second run draws the same random numbers. context_fn: makes the two contexts around first and second run.
    early_stop: end the second run once everything saved has been seen. Raises CheckpointError when the two runs
    differ.
    """
    if use_reentrant is None:
        warnings.warn("torch.utils.checkpoint: the use_reentrant parameter should be passed explicitly. Starting in "
                      "PyTorch 2.9, calling checkpoint without use_reentrant will raise an exception. "
                      "use_reentrant=False is recommended, but if you need to preserve the current default behavior, "
                      "you can pass use_reentrant=True. Refer to docs for more details on the differences between the "
                      "two variants.", stacklevel=2)
        use_reentrant = True
    if kwargs and use_reentrant:
        raise ValueError("Unexpected keyword arguments: " + ",".join(kwargs))
    if use_reentrant:
        if context_fn is not noop_context_fn or debug:
            raise ValueError("Passing `context_fn` or `debug` is only supported when use_reentrant=False.")
        return _function("CheckpointFunction", _make_checkpoint_function).apply(function, preserve_rng_state, *args)
    if debug:
        raise NotImplementedError("checkpoint: debug=True is not in Ember yet; EMBER_LOG=dispatch shows every "
                                  "operator of both runs")
    return _checkpoint_without_reentrant(function, args, kwargs, preserve_rng_state, context_fn, determinism_check,
                                         early_stop)


def checkpoint_sequential(functions, segments, input, use_reentrant=None, *, preserve_rng_state=True, **kwargs) -> Any:
    """Run a Sequential (or list of modules) as `segments` checkpointed pieces; the last one runs normally."""
    if use_reentrant is None:
        warnings.warn("torch.utils.checkpoint.checkpoint_sequential: the use_reentrant parameter should be passed "
                      "explicitly. In version 2.9 we will raise an exception if use_reentrant is not passed. "
                      "use_reentrant=False is recommended, but if you need to preserve the current default behavior, "
                      "you can pass use_reentrant=True. Refer to docs for more details on the differences between the "
                      "two variants.", stacklevel=2)
        use_reentrant = True
    if kwargs:
        raise ValueError("Unexpected keyword arguments: " + ",".join(kwargs))

    def run(start, end):
        def forward(value):
            for j in range(start, end):
                value = functions[j](value)
            return value

        return forward

    functions = list(functions.children() if isinstance(functions, ember.nn.Sequential) else functions)
    size = len(functions) // segments
    start = 0
    for _ in range(segments - 1):
        input = checkpoint(run(start, start + size), input, use_reentrant=use_reentrant,
                           preserve_rng_state=preserve_rng_state)
        start += size
    return run(start, len(functions))(input)

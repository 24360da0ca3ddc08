"""profile: a recording of every operator's time. record_function: a name for a stretch of code in it."""

import functools

from ember import _C

from .profiler_util import DeviceType, EventList, FunctionEvent, FunctionEventAvg, events_of

__all__ = ["profile", "record_function", "EventList", "FunctionEvent", "FunctionEventAvg", "DeviceType"]


class _ContextDecorator:
    """A context manager that decorates functions too."""

    def __call__(self, func):
        @functools.wraps(func)
        def wrapped(*args, **kwargs):
            with self:
                return func(*args, **kwargs)

        return wrapped


class record_function(_ContextDecorator):
    """The code inside appears in recordings as `name`. Costs next to nothing while there is none."""

    def __init__(self, name, args=None):
        self.name = name
        self.args = args
        self._begun = []  # one a nested entry

    def __enter__(self):
        self._begun.append(_C._profile_now() if _C._profile_active() else None)
        return self

    def __exit__(self, exc_type, value, trace):
        begun = self._begun.pop()
        if begun is not None:
            _C._profile_range(self.name if self.args is None else f"{self.name}, {self.args}", begun)
        return False


class profile:
    """Records what runs inside, on every thread. Then: key_averages().table(), export_chrome_trace(path), total_average()."""

    def __init__(self, enabled=True, *, use_cuda=False, use_device=None, record_shapes=False, with_flops=False,
                 profile_memory=False, with_stack=False, with_modules=False, use_kineto=False, use_cpu=True,
                 experimental_config=None, acc_events=False, custom_trace_id_callback=None):
        self.enabled = enabled
        self.use_device = None
        self.record_shapes = record_shapes
        self.profile_memory = profile_memory
        self.entered = False
        self._events = None

    def __enter__(self):
        if not self.enabled:
            return None
        if self.entered:
            raise RuntimeError("Profiler context manager is not reentrant")
        self.entered = True
        _C._profile_start(self.record_shapes, self.profile_memory)
        return self

    def __exit__(self, exc_type, value, trace):
        if self.enabled:
            self._events = events_of(_C._profile_stop(), self.profile_memory)
        return False

    @property
    def function_events(self):
        if self._events is None:
            raise AssertionError("Expected profiling results")
        return self._events

    def __repr__(self):
        return "<unfinished torch.autograd.profile>" if self._events is None else repr(self._events)

    def __str__(self):
        return "<unfinished torch.autograd.profile>" if self._events is None else str(self._events)

    def table(self, sort_by=None, row_limit=100, max_src_column_width=75, max_name_column_width=55, max_shapes_column_width=80,
              header=None, top_level_events_only=False):
        return self.function_events.table(sort_by=sort_by, row_limit=row_limit, max_name_column_width=max_name_column_width,
                                          max_shapes_column_width=max_shapes_column_width, header=header,
                                          top_level_events_only=top_level_events_only)

    def key_averages(self, group_by_input_shape=False, group_by_stack_n=0, group_by_overload_name=False):
        return self.function_events.key_averages(group_by_input_shape, group_by_stack_n, group_by_overload_name)

    def total_average(self):
        return self.function_events.total_average()

    @property
    def self_cpu_time_total(self):
        return self.function_events.self_cpu_time_total

    def export_chrome_trace(self, path, metadata=None):
        self.function_events.export_chrome_trace(path)

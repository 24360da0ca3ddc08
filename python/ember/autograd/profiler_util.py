"""Events of a recording, their sums by name, and the table."""

import enum
import json
from collections import defaultdict

__all__ = ["EventList", "FormattedTimesMixin", "Interval", "FunctionEvent", "FunctionEventAvg", "StringTable", "DeviceType"]


class DeviceType(enum.IntEnum):
    """Where something ran."""
    CPU = 0
    CUDA = 1


def _format_time(us):
    if us >= 1e6:
        return f"{us / 1e6:.3f}s"
    return f"{us / 1e3:.3f}ms" if us >= 1e3 else f"{us:.3f}us"


def _format_time_share(us, total):
    return "NaN" if total == 0 else f"{us * 100.0 / total:.2f}%"


def _format_memory(nbytes):
    for unit, name in ((1 << 30, "GB"), (1 << 20, "MB"), (1 << 10, "KB")):
        if abs(nbytes) >= unit:
            return f"{nbytes / unit:.2f} {name}"
    return f"{nbytes} B"


class Interval:
    def __init__(self, start, end):
        self.start = start
        self.end = end

    def elapsed_us(self):
        return self.end - self.start


class FormattedTimesMixin:
    """Times as text, averages, and the device's times, of which there are none."""

    device_time = device_time_total = self_device_time_total = 0
    device_memory_usage = self_device_memory_usage = 0
    cuda_time = cuda_time_total = self_cuda_time_total = 0
    use_device = None
    device_type = DeviceType.CPU
    is_async = is_remote = is_legacy = False
    node_id = -1
    flops = 0

    @property
    def cpu_time(self):
        return self.cpu_time_total / self.count if self.count else 0.0


def _text_property(name):
    return property(lambda self: _format_time(getattr(self, name)))


for _name in ("cpu_time", "cpu_time_total", "self_cpu_time_total", "device_time", "device_time_total", "self_device_time_total"):
    setattr(FormattedTimesMixin, _name + "_str", _text_property(_name))


class FunctionEvent(FormattedTimesMixin):
    """One call of an operator, or one range of the user's. Times are microseconds."""

    count = 1

    def __init__(self, id, name, thread, start_us, end_us, overload_name=None, input_shapes=None, cpu_memory_usage=0,
                 is_user_annotation=False):
        self.id = id
        self.name = self.trace_name = self.key = name
        self.overload_name = overload_name or ""
        self.thread = thread
        self.time_range = Interval(start_us, end_us)
        self.input_shapes = input_shapes if input_shapes is not None else []
        self.cpu_memory_usage = cpu_memory_usage
        self.is_user_annotation = is_user_annotation
        self.cpu_children = []
        self.cpu_parent = None
        self.stack = []
        self.scope = 7 if is_user_annotation else 0

    @property
    def cpu_time_total(self):
        return self.time_range.elapsed_us()

    @property
    def self_cpu_time_total(self):
        return self.cpu_time_total - sum(child.cpu_time_total for child in self.cpu_children)

    @property
    def self_cpu_memory_usage(self):
        return self.cpu_memory_usage - sum(child.cpu_memory_usage for child in self.cpu_children)

    def __repr__(self):
        return (f"<FunctionEvent id={self.id} name={self.name} overload_name={self.overload_name} "
                f"device_type=DeviceType.CPU node_id={self.node_id} cpu_time={self.cpu_time_str} "
                f"start_us={self.time_range.start} end_us={self.time_range.end} "
                f"cpu_children={[child.id for child in self.cpu_children]} name={self.name} thread={self.thread} "
                f"input_shapes={self.input_shapes} cpu_memory_usage={self.cpu_memory_usage} is_async=False is_remote=False>")


class FunctionEventAvg(FormattedTimesMixin):
    """The sum of events with the same key."""

    def __init__(self):
        self.key = None
        self.count = 0
        self.cpu_time_total = self.self_cpu_time_total = 0
        self.cpu_memory_usage = self.self_cpu_memory_usage = 0
        self.input_shapes = ""
        self.overload_name = ""
        self.cpu_children = []
        self.cpu_parent = None
        self.stack = []
        self.scope = None
        self.is_user_annotation = False

    def add(self, other):
        if self.key is None:
            for name in ("key", "input_shapes", "overload_name", "cpu_parent", "cpu_children", "stack", "scope",
                         "is_user_annotation"):
                setattr(self, name, getattr(other, name))
        for name in ("count", "cpu_time_total", "self_cpu_time_total", "cpu_memory_usage", "self_cpu_memory_usage"):
            setattr(self, name, getattr(self, name) + getattr(other, name))
        return self

    def __iadd__(self, other):
        return self.add(other)

    def __repr__(self):
        return (f"<FunctionEventAvg key={self.key} self_cpu_time={self.self_cpu_time_total_str} cpu_time={self.cpu_time_str}  "
                f"self_cuda_time=0.000us cuda_time=0.000us input_shapes={self.input_shapes} "
                f"cpu_memory_usage={self.cpu_memory_usage} cuda_memory_usage=0>")


class StringTable(defaultdict):
    """Names, interned."""

    def __missing__(self, key):
        self[key] = key
        return key


class EventList(list):
    """Events in the order in which they began, or averages."""

    def __init__(self, events=(), use_device=None, profile_memory=False, with_flops=False):
        super().__init__(events)
        self._profile_memory = profile_memory

    def _build_tree(self):
        """Parents and children: an event lies within its parent, on the same thread."""
        self.sort(key=lambda e: (e.time_range.start, -e.time_range.end))
        open_events = defaultdict(list)
        for event in self:
            stack = open_events[event.thread]
            while stack and stack[-1].time_range.end < event.time_range.end:
                stack.pop()
            if stack:
                event.cpu_parent = stack[-1]
                stack[-1].cpu_children.append(event)
            stack.append(event)

    def __str__(self):
        return self.table()

    @property
    def self_cpu_time_total(self):
        return sum(e.self_cpu_time_total for e in self)

    def key_averages(self, group_by_input_shapes=False, group_by_stack_n=0, group_by_overload_name=False):
        """Sums by name, and by shapes and overload if asked for."""
        sums = {}
        for event in self:
            key = (event.key, str(event.input_shapes) if group_by_input_shapes else "",
                   event.overload_name if group_by_overload_name else "", event.is_user_annotation)
            sums.setdefault(key, FunctionEventAvg()).add(event)
        result = EventList(sums.values(), profile_memory=self._profile_memory)
        for average in result:
            if not group_by_input_shapes:
                average.input_shapes = ""
            if not group_by_overload_name:
                average.overload_name = ""
        return result

    def total_average(self):
        total = FunctionEventAvg()
        for event in self:
            total.add(event)
        total.key = "Total"
        return total

    def table(self, sort_by=None, row_limit=100, max_src_column_width=75, max_name_column_width=55, max_shapes_column_width=80,
              header=None, top_level_events_only=False, time_unit=None):
        """The events as text. `sort_by`: count, cpu_time, cpu_time_total, self_cpu_time_total, cpu_memory_usage, ..."""
        return _table(self, sort_by, row_limit, max_name_column_width, max_shapes_column_width, header, top_level_events_only)

    def export_chrome_trace(self, path):
        """Write the events for chrome://tracing and its relatives; compressed if the name ends in .gz."""
        import gzip
        import os
        pid = os.getpid()
        trace = [{"ph": "M", "name": "process_name", "ts": 0, "pid": pid, "tid": 0, "args": {"name": "python"}}]
        for e in self:
            args = {"Input Dims": e.input_shapes} if e.input_shapes else {}
            trace.append({"ph": "X", "cat": "user_annotation" if e.is_user_annotation else "cpu_op", "name": e.name, "pid": pid,
                          "tid": e.thread, "ts": e.time_range.start, "dur": e.cpu_time_total, "args": args})
        opened = gzip.open(path, "wt") if str(path).endswith(".gz") else open(path, "w")
        with opened as f:
            json.dump({"schemaVersion": 1, "displayTimeUnit": "ms", "traceName": str(path), "traceEvents": trace}, f)


_SORTS = ("cpu_time", "cpu_time_total", "self_cpu_time_total", "cpu_memory_usage", "self_cpu_memory_usage", "count",
          "device_time", "device_time_total", "self_device_time_total", "device_memory_usage", "self_device_memory_usage",
          "cuda_time", "cuda_time_total", "self_cuda_time_total", "cuda_memory_usage", "self_cuda_memory_usage")


def _cut(text, width):
    return text[:width - 3] + "..." if width is not None and len(text) >= width - 3 else text


def _columns(events, names_width, shapes_width):
    """[(title, width, function of an event)]"""
    total = events.self_cpu_time_total
    rows = [e for e in events]
    name_width = max(len(e.key) for e in rows) + 4
    columns = [("Name", name_width if names_width is None else min(name_width, names_width), lambda e: _cut(e.key, names_width))]

    def add(title, text):
        columns.append((title, 12, text))

    add("Self CPU %", lambda e: _format_time_share(e.self_cpu_time_total, total))
    add("Self CPU", lambda e: e.self_cpu_time_total_str)
    add("CPU total %", lambda e: _format_time_share(e.cpu_time_total, total))
    add("CPU total", lambda e: e.cpu_time_total_str)
    add("CPU time avg", lambda e: e.cpu_time_str)
    if events._profile_memory:
        add("CPU Mem", lambda e: _format_memory(e.cpu_memory_usage))
        add("Self CPU Mem", lambda e: _format_memory(e.self_cpu_memory_usage))
    add("# of Calls", lambda e: str(e.count))
    if any(e.overload_name for e in rows):
        columns.insert(1, ("Overload Name", max(len(e.overload_name) for e in rows) + 4, lambda e: e.overload_name))
    if any(e.input_shapes for e in rows):
        width = max(len(str(e.input_shapes)) for e in rows) + 4
        width = width if shapes_width is None else min(width, shapes_width)
        columns.append(("Input Shapes", width, lambda e: str(e.input_shapes)[:width]))
    return columns


def _table(events, sort_by, row_limit, names_width, shapes_width, header, top_level_only):
    if len(events) == 0:
        return ""
    rows = list(events)
    if sort_by is not None:
        if sort_by not in _SORTS:
            raise AttributeError(f"'FunctionEventAvg' object has no attribute '{sort_by}'")
        attribute = sort_by.replace("cuda", "device")
        rows.sort(key=lambda e: getattr(e, attribute), reverse=True)
    columns = _columns(events, names_width, shapes_width)
    rule = "".join("-" * width + "  " for _, width, _ in columns)
    lines = []
    if header is not None:
        lines += ["=" * (len(rule) - 2), header]
    if top_level_only:
        lines += ["=" * (len(rule) - 2), "This report only display top-level ops statistics"]
        rows = [e for e in rows if e.cpu_parent is None]
    lines += [rule, "".join(f"{title:>{width}}  " for title, width, _ in columns), rule]
    for e in rows if row_limit < 0 else rows[:row_limit]:
        lines.append("".join(f"{text(e):>{width}}  " for _, width, text in columns))
    lines += [rule, f"Self CPU time total: {_format_time(events.self_cpu_time_total)}", ""]
    return "\n".join(lines)


def events_of(records, profile_memory):
    """EventList of what _C._profile_stop() gave, with times from the first event on."""
    zero = min((begin for _, _, begin, *_ in records), default=0)
    events = EventList(profile_memory=profile_memory)
    for name, overload, begin, end, thread, nbytes, shapes in records:
        events.append(FunctionEvent(0, name, thread, (begin - zero) / 1000, (end - zero) / 1000, overload_name=overload,
                                    input_shapes=None if shapes is None else json.loads(shapes), cpu_memory_usage=nbytes,
                                    is_user_annotation=overload is None))
    events._build_tree()
    for i, event in enumerate(events):
        event.id = i
    for event in reversed(events):  # children come after their parents
        if event.is_user_annotation:
            event.cpu_memory_usage = sum(child.cpu_memory_usage for child in event.cpu_children)
    return events



"""profiler: what is recorded, how it nests and adds up, schedules, the table and the trace."""

import gzip
import json
import os
import re
import threading

import pytest

import ember as torch
from ember.profiler import ProfilerActivity, profile, record_function, schedule


def names(p):
    return [e.name for e in p.events()]


def test_operators_and_ranges_nest():
    layer, x = torch.nn.Linear(10, 4), torch.randn(3, 10)
    with profile(activities=[ProfilerActivity.CPU], record_shapes=True, profile_memory=True) as p:
        with record_function("step"):
            layer(x).relu().sum().backward()
        x + 1
    events = p.events()
    step = next(e for e in events if e.name == "step")
    linear = next(e for e in events if e.name == "aten::linear")
    add = next(e for e in events if e.name == "aten::add")
    assert linear.cpu_parent is step and step.cpu_parent is None and add.cpu_parent is None
    assert linear.input_shapes == [[3, 10], [4, 10], [4]] and add.input_shapes == [[3, 10], [], []]
    assert "aten::mm" in [child.name for child in step.cpu_children] + names(p)  # the backward pass
    assert linear.cpu_memory_usage == 48 and add.cpu_memory_usage == 120
    assert step.cpu_memory_usage == sum(c.cpu_memory_usage for c in step.cpu_children)
    for e in events:
        assert 0 <= e.self_cpu_time_total <= e.cpu_time_total
        for child in e.cpu_children:
            assert e.time_range.start <= child.time_range.start <= child.time_range.end <= e.time_range.end
    assert events.self_cpu_time_total == pytest.approx(sum(e.cpu_time_total for e in events if e.cpu_parent is None))


def test_views_and_in_place_take_no_memory():
    x = torch.ones(10, 10)
    with profile(profile_memory=True) as p:
        x.t()
        x.add_(1)
        x.split(5)
        torch.cat([x, x])
    seen = {e.name: e.cpu_memory_usage for e in p.events()}
    assert seen["aten::t"] == seen["aten::add_"] == seen["aten::split"] == 0 and seen["aten::cat"] == 800


def test_averages():
    with profile(record_shapes=True) as p:
        for n in (2, 2, 3):
            torch.ones(n, n).mm(torch.ones(n, n))
    averages = {e.key: e for e in p.key_averages()}
    assert averages["aten::mm"].count == 3 and averages["aten::ones"].count == 6
    mm = averages["aten::mm"]
    assert mm.cpu_time == pytest.approx(mm.cpu_time_total / 3) and mm.input_shapes == ""
    by_shape = {str(e.input_shapes): e.count for e in p.key_averages(group_by_input_shape=True) if e.key == "aten::mm"}
    assert by_shape == {"[[2, 2], [2, 2]]": 2, "[[3, 3], [3, 3]]": 1}
    total = p.key_averages().total_average()
    assert total.key == "Total" and total.count == len(p.events())
    assert "key=aten::mm" in repr(mm) and "name=aten::mm" in repr([e for e in p.events() if e.name == "aten::mm"][0])


def test_table():
    with profile() as p:
        with record_function("a name that is much longer than the column for names is allowed to be"):
            torch.ones(3) + 1
    lines = p.key_averages().table(sort_by="cpu_time_total").split("\n")
    assert lines[1].split() == "Name Self CPU % Self CPU CPU total % CPU total CPU time avg # of Calls".split()
    assert len({len(line) for line in lines[:-2]}) == 1 and lines[0] == lines[2] == lines[-3]
    assert lines[3].startswith("a name that is much longer than the column for names...  ") and lines[3].endswith(" 1  ")
    assert re.match(r"^ *aten::(add|ones) +\d+\.\d\d% +\d+\.\d{3}us .* 1  $", lines[4])
    assert re.match(r"^Self CPU time total: \d+\.\d{3}(us|ms)$", lines[-2]) and lines[-1] == ""
    assert p.key_averages().table(header="title", row_limit=1).split("\n")[1] == "title"
    assert "only display top-level" in p.key_averages().table(top_level_events_only=True)
    assert "aten::ones" not in p.key_averages().table(top_level_events_only=True)
    with pytest.raises(AttributeError):
        p.key_averages().table(sort_by="nothing")
    with profile(profile_memory=True, record_shapes=True) as p:
        torch.ones(1024, 1024)
    assert "4.00 MB" in p.key_averages(group_by_input_shape=True).table()


def test_threads_and_states():
    with profile() as p:
        thread = threading.Thread(target=lambda: torch.ones(2) + 1)
        thread.start()
        thread.join()
        torch.ones(2).mul(2)
    threads = {e.thread: e.name for e in p.events()}
    assert len(threads) == 2 and "aten::add" in threads.values() and "aten::mul" in threads.values()
    assert not torch._C._profile_active() and "Profile" not in torch._C._dispatch_keys(torch.ops.aten.add.Tensor)
    with profile():
        with pytest.raises(RuntimeError, match="Profiler is already enabled"), profile():
            pass
    with pytest.raises(ZeroDivisionError), profile() as p:
        1 / 0
    assert p.events() == [] and p.key_averages().table() == ""
    with pytest.raises(RuntimeError), profile() as p:
        torch.ones(2) + torch.ones(3)
    assert "aten::add" in names(p)  # it was called, and failed
    with record_function("nobody listens"):
        torch.ones(1)


def test_decorator_and_autograd_profiler():
    @record_function("named")
    def work(n):
        return torch.ones(n) if n == 0 else work(n - 1)

    with torch.autograd.profiler.profile(record_shapes=True) as p:
        work(2)
    assert [e.name for e in p.function_events].count("named") == 3 and p.self_cpu_time_total > 0
    assert "named" in str(p) and "named" in p.table() and p.key_averages()[0].key == "named"
    with torch.autograd.profiler.profile(enabled=False) as p:
        assert p is None


def test_loader_shows_itself():
    with profile() as p:
        list(torch.utils.data.DataLoader(range(4), 2))
    assert names(p).count("enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__") == 3


def test_optimizers_show_themselves():
    w = torch.nn.Parameter(torch.ones(2))
    opt = torch.optim.SGD([w], lr=0.1)
    w.sum().backward()
    with profile() as p:
        opt.step()
    step = p.events()[0]
    assert step.name == "Optimizer.step#SGD.step" and step.cpu_children and w[0].item() == pytest.approx(0.9)


def test_schedule_and_traces(tmp_path):
    rounds = []

    def ready(p):
        rounds.append((p.step_num, names(p)))
        torch.profiler.tensorboard_trace_handler(str(tmp_path), "worker", use_gzip=True)(p)

    with profile(schedule=schedule(wait=1, warmup=1, active=2), on_trace_ready=ready) as p:
        for _ in range(9):
            torch.ones(2)
            p.step()
    assert rounds == [(4, ["ProfilerStep#2", "aten::ones", "ProfilerStep#3", "aten::ones"]),
                      (8, ["ProfilerStep#6", "aten::ones", "ProfilerStep#7", "aten::ones"])]
    files = sorted(os.listdir(tmp_path))
    assert len(files) == 2 and all(re.match(r"worker\.\d+\.pt\.trace\.json\.gz$", f) for f in files)
    with gzip.open(tmp_path / files[0], "rt") as f:
        trace = json.load(f)
    assert [e["name"] for e in trace["traceEvents"] if e["ph"] == "X"] == rounds[0][1]
    p.export_chrome_trace(tmp_path / "trace.json")
    with open(tmp_path / "trace.json") as f:
        assert len(json.load(f)["traceEvents"]) == 5

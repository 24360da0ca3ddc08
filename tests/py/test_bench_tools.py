"""The overhead benchmark must measure what there is, say what a module lacks, and not call a missing row good."""

import json
import os
import subprocess
import sys

import pytest

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.insert(0, os.path.join(ROOT, "bench"))

import bench_more  # noqa: E402
import bench_overhead  # noqa: E402
import benchlib  # noqa: E402
import sweep  # noqa: E402

SLOW = """import time
def full(shape, value, dtype=None):
    return value
def add(a, b):
    time.sleep(0.001)
    return a + b
"""


def bench(tmp_path, *more):
    """A run over a module of numbers: some rows it can do, most it cannot."""
    (tmp_path / "numbers_only.py").write_text(SLOW)
    out = tmp_path / "out.json"
    command = [sys.executable, os.path.join(ROOT, "bench", "bench_overhead.py"), "--modules", "numbers_only"]
    command += ["--rounds", "2", "--seconds", "0.002", "--json", str(out), *more]
    env = {**os.environ, "PYTHONPATH": str(tmp_path)}
    r = subprocess.run(command, capture_output=True, text=True, env=env)
    return r, {row["row"]: row for row in json.loads(out.read_text())["rows"]}


def test_rows_are_measured_and_missing_ones_named(tmp_path):
    r, rows = bench(tmp_path)
    assert r.returncode == 0, r.stderr
    assert rows["add(a, b)"]["numbers_only"] > 1e6, "it sleeps a millisecond"
    assert 0 < rows["floor: empty loop"]["numbers_only"] < 1e6
    assert rows["a + b"]["numbers_only"] < 1e6
    assert rows["relu(a)"]["numbers_only"] is None and "AttributeError" in rows["relu(a)"]["errors"]["numbers_only"]
    assert "numbers_only: AttributeError" in r.stdout


def test_a_row_that_failed_is_over_its_target(tmp_path):
    r, rows = bench(tmp_path, "--strict", "--only", "ten operators, 100")
    assert r.returncode == 1 and rows["ten operators, 100 elements"]["verdict"] == "over"


def test_verdicts():
    both = {"ns": 80, "ratio": 1 / 8}
    assert bench_overhead.verdict(both, 70, 0.1) == ("80 ns, 1/8", "ok")
    assert bench_overhead.verdict(both, 90, 0.1)[1] == "over"
    assert bench_overhead.verdict(both, 70, 0.2)[1] == "over"
    assert bench_overhead.verdict(both, 70, None)[1] == "over"
    assert bench_overhead.verdict(None, 70, None) == ("", "")
    assert set(bench_overhead.TARGETS) <= set(bench_overhead.rows_names())


def test_a_dead_worker_costs_its_rows_only(tmp_path):
    script = tmp_path / "dies.py"
    script.write_text(
        "import os, sys\nsys.path.insert(0, %r)\nimport benchlib\n"
        "benchlib.serve({'dies': lambda: (lambda: os._exit(7)), 'lives': lambda: (lambda: None)})\n"
        % os.path.join(ROOT, "bench")
    )
    w = benchlib.Worker("x", str(script), sys.executable, 1, {0})
    assert w.ask("lives", 0.001) > 0
    assert w.ask("dies", 0.001) is None and "status 7" in w.errors["dies"]
    assert w.ask("lives", 0.001) is None and "status 7" in w.errors["lives"]
    w.close()
    w.p.stdout.close()


def test_medians():
    assert benchlib.median([]) is None
    assert benchlib.median([3.0, 1.0, 2.0]) == 2.0 and benchlib.median([4.0, 1.0]) == 2.5


def test_sweep_measures_what_it_names(tmp_path):
    out = tmp_path / "out.json"
    command = [sys.executable, os.path.join(ROOT, "bench", "sweep.py"), "--modules", "ember", "--op", "softmax.int", "--exact"]
    command += ["--dtypes", "float32", "--sizes", "tiny,4k", "--rounds", "2", "--seconds", "0.002", "--json", str(out)]
    r = subprocess.run([*command, "--above", "0.5"], capture_output=True, text=True)
    assert r.returncode == 0, r.stderr
    rows = {row["row"]: row for row in json.loads(out.read_text())["rows"]}
    plain = [sweep.key("softmax.int", "float32", size, "plain", way) for size in ("tiny", "4k") for way in sweep.WAYS]
    other = [sweep.key("softmax.int", "float32", "4k", layout, way) for layout in ("turned", "wide") for way in sweep.WAYS]
    assert set(rows) == {*plain, *other}, "layouts make no difference to what is tiny"
    assert all(row["ember"] > 0 and row["ratio"] == 1.0 and not row["errors"] for row in rows.values())
    assert "8 rows measured, 0 not" in r.stdout


@pytest.mark.parametrize("layout", sweep.LAYOUTS)
def test_sweep_makes_sizes_and_layouts(layout):
    import ember

    calls = sweep.Calls(ember, 1)
    shown = []
    calls.ready = lambda call, args, kwargs, way: shown.append((args, kwargs, way))
    calls.make("exp", "float32", "1M", layout, "bwd")
    (tensor,), kwargs, way = shown[0]
    assert kwargs == {} and way == "bwd" and tensor.requires_grad
    assert abs(tensor.numel() / (1 << 20) - 1) < 0.05 and tensor.dim() == 2
    assert (tensor.stride(0) == 0) == (layout == "wide") and (tensor.stride(1) == 1) == (layout != "turned")


def test_more_rows_and_their_section(tmp_path):
    page = tmp_path / "page.md"
    page.write_text("# A page\n\ntext\n\n" + bench_more.HEADING + "\n\nold\n")
    command = [sys.executable, os.path.join(ROOT, "bench", "bench_more.py"), "--modules", "ember", "--rounds", "1"]
    command += ["--seconds", "0.001", "--page", str(page), "--json", str(tmp_path / "out.json")]
    r = subprocess.run(command, capture_output=True, text=True)
    assert r.returncode == 0 and r.stderr == ""
    text = page.read_text()
    assert text.startswith("# A page\n\ntext\n\n" + bench_more.HEADING) and "old" not in text
    measured = json.loads((tmp_path / "out.json").read_text())["rows"]
    assert {row["row"] for row in measured} == set(bench_more.rows(None)) >= set(bench_more.TARGETS)
    assert all(row["ember"] > 0 and f"| {row['row']} |" in text for row in measured)

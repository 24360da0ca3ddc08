"""The parity tools must see what is wrong: a value, a stride, a dtype, a missing error, a crash. Needs no torch."""

import copy
import os
import pickle
import subprocess
import sys
import types

import numpy as np
import pytest

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
PARITY = os.path.join(ROOT, "tests", "parity")
sys.path.insert(0, PARITY)
pytest.importorskip("yaml", reason="the ledger is YAML")

import codec  # noqa: E402
import compare  # noqa: E402
import reference  # noqa: E402
import report  # noqa: E402
import run_samples  # noqa: E402


def tensor(values, dtype="float32", strides=(1,), **kw):
    a = np.asarray(values, codec.NUMPY[dtype])
    return (
        "out",
        {
            "dtype": dtype,
            "shape": a.shape,
            "strides": strides,
            "data": a.tobytes(),
            "requires_grad": False,
            "alias": None,
            "same": None,
            "node": None,
            **kw,
        },
    )


def kinds(want, got, flags=(), form="call"):
    rec = {"forms": [form], "flags": flags}
    return [k for k, _ in compare.compare(rec, {form: want}, {form: got})]


def ok(v, **kw):
    return {"ok": v, **kw}


ERR = {"err": ("RuntimeError", "bad")}


def test_equal_results_pass():
    assert kinds(ok(tensor([1, 2, np.nan])), ok(tensor([1, 2, np.nan]))) == []
    assert kinds(ERR, {"err": ("RuntimeError", "other words")}) == []


@pytest.mark.parametrize(
    "got, kind",
    [
        (tensor([1, 2.1]), "value"),
        (tensor([1, np.nan]), "value"),
        (tensor([1, 2], strides=(2,)), "stride"),
        (tensor([1, 2], "float64"), "dtype"),
        (tensor([1, 2, 3]), "shape"),
        (tensor([1, 2], alias=(0, 4)), "alias"),
        (tensor([1, 2], same=0), "identity"),
        (tensor([1, 2], requires_grad=True), "requires_grad"),
        (("py", 3), "type"),
    ],
)
def test_each_wrong_property_is_named(got, kind):
    assert kinds(ok(tensor([1, 2])), ok(got)) == ["call:" + kind]


def test_errors_missing_extra_and_of_another_class():
    assert kinds(ERR, ok(tensor([1]))) == ["call:no-error"]
    assert kinds(ok(tensor([1])), ERR) == ["call:raises"]
    assert kinds(ERR, {"err": ("TypeError", "bad")}) == ["call:error-class"]


def test_exactness():
    near = float(np.nextafter(np.float32(1), np.float32(2)))
    assert kinds(ok(tensor([1])), ok(tensor([near]))) == []
    assert kinds(ok(tensor([1])), ok(tensor([near])), ("exact",)) == ["call:value"]
    assert kinds(ok(tensor([1])), ok(tensor([near])), ("ulp4",)) == []
    assert kinds(ok(tensor([1])), ok(tensor([1 + 6 * (near - 1)])), ("ulp4",)) == ["call:value"]
    assert kinds(ok(tensor([0.0])), ok(tensor([-0.0])), ("exact",)) == ["call:value"]
    assert kinds(ok(tensor([1], "int64")), ok(tensor([2], "int64"))) == ["call:value"]
    assert kinds(ok(tensor([1], "int64")), ok(tensor([2], "int64")), ("uninit",)) == []
    wide = tensor([1, 1], "uint8")
    a, b = copy.deepcopy(wide), copy.deepcopy(wide)
    a[1]["dtype"] = b[1]["dtype"] = "bool"
    b[1]["data"] = b"\x01\x02"  # true, but not as one byte of value 1
    assert kinds(ok(a), ok(b)) == ["call:value"]


def test_bfloat16_and_complex():
    def bf16(x):
        t = tensor([0], "float32")
        t[1].update(dtype="bfloat16", data=(np.float32(x).view(np.uint32) >> 16).astype("u2").tobytes())
        return t

    assert kinds(ok(bf16(1.0)), ok(bf16(1.0078125))) == []
    assert kinds(ok(bf16(1.0)), ok(bf16(1.0078125)), ("exact",)) == ["call:value"]
    assert kinds(ok(bf16(1.0)), ok(bf16(1.0625))) == ["call:value"]
    assert kinds(ok(tensor([1 + 2j], "complex64")), ok(tensor([1 + 2.1j], "complex64"))) == ["call:value"]
    assert kinds(ok(tensor([1 + 2j], "complex64")), ok(tensor([1 + 2j], "complex64")), ("exact",)) == []


def test_gradients_inputs_and_results_in_lists():
    assert kinds(ok(("list", [tensor([1])])), ok(("list", [tensor([2])])), ("exact",), "grad") == ["grad:value"]
    assert kinds(ok(("list", [tensor([1])])), ok(("list", [("py", None)])), (), "grad") == ["grad:type"]
    assert kinds(ok(("list", [tensor([1])])), ok(("list", []))) == ["call:type"]
    assert kinds(ok(("tuple", [], ["values"])), ok(("tuple", [], []))) == ["call:type"]
    assert kinds(ok(tensor([1]), modified=[]), ok(tensor([1]), modified=[0])) == ["call:modified"]


def beside(want, got, wide, flags=(), dtype="float32", form="call"):
    """Failures of one tensor beside the result in double precision."""
    rec, twin = {"forms": [form], "flags": flags}, {form: ok(tensor(wide, reference.WIDE[dtype]))}
    return compare.compare(rec, {form: ok(tensor(want, dtype))}, {form: ok(tensor(got, dtype))}, twin)


def test_who_is_nearer_to_double_precision():
    assert beside([1, 2.5], [1, 2.1], [1, 2.0]) == []
    [(kind, detail)] = beside([1, 2.25], [1, 2.5], [1, 2.0])
    assert kind == "call:value" and detail.endswith("(1 of 2); largest error 2 times PyTorch's")
    assert report.errors_ratio(detail) == 2.0
    one = np.float32(2**24)  # a unit in the last place is 2 here
    assert beside([one], [one + 2], [2.0**24]) == [] and beside([1e-3], [0.0], [0.0]) == []
    assert beside([2.5], [2.1], [2.0], ("exact",))[0][1].endswith("(1 of 1)"), "bits must agree: nobody is asked"
    assert beside([2 + 2j, 0], [2 + 1.5j, 0], [2 + 1j, 0], dtype="complex64") == []
    assert beside([2 + 2j], [2.5 + 1j], [2 + 1j], dtype="complex64")[0][0] == "call:value"


def test_infinities_and_nan_excuse_nothing():
    assert beside([np.inf], [3.0], [3.0]) == [] and beside([np.nan], [np.inf], [np.inf]) == []
    for want, got in ((np.inf, 4.0), (np.nan, 4.0), (1.0, np.nan), (1.0, np.inf)):
        [(_, detail)] = beside([want, 1], [got, 1], [3.0, 1])
        assert report.errors_ratio(detail) == np.inf


def test_an_out_form_that_agrees_with_the_call_says_so():
    rec, call = {"forms": ["call", "out:same"], "flags": ()}, ok(tensor([1, 2]))
    expected = {"call": call, "out:same": ok(("list", [tensor([0, 0])]))}
    for values, agrees in (([1, 2], True), ([1, 3], False)):
        [(kind, detail)] = compare.compare(rec, expected, {"call": call, "out:same": ok(("list", [tensor(values)]))})
        assert kind == "out:same:value" and detail.endswith("; equal to PyTorch's call without out=") == agrees


def test_a_call_is_widened_with_all_that_belongs_to_it():
    window, shape = ("in", 0, "float32", (2,), (1,), 1, True), (3,)
    rec = {
        "flags": (),
        "args": [window, ("list", [("in", 1, "int64", (1,), (1,), 0, False)])],
        "kwargs": [("dtype", ("dtype", "bfloat16"))],
        "storages": [np.arange(3, dtype="f4").tobytes(), np.arange(1).tobytes()],
        "cotangents": {"grad": [("complex64", shape, np.ones(3, "c8").tobytes())]},
        "out_meta": [("float32", shape, (1,)), ("bool", shape, (1,))],
    }
    t = reference.twin(rec)
    assert t["args"][0] == ("in", 0, "float64", (2,), (1,), 1, True) and t["args"][1] == rec["args"][1]
    assert t["kwargs"] == [("dtype", ("dtype", "float64"))]
    assert t["storages"] == [np.arange(3.0).tobytes(), np.arange(1).tobytes()]
    assert t["cotangents"] == {"grad": [("complex128", shape, np.ones(3, "c16").tobytes())]}
    assert t["out_meta"] == [("float64", shape, (1,)), ("bool", shape, (1,))]
    assert reference.twin({**rec, "flags": ("seed",)}) is None and reference.twin({**rec, "code": "r = 1"}) is None
    assert reference.twin({**rec, "args": [window, ("in", 0, "int64", (1,), (1,), 0, False)]}) is None


def test_input_layouts_are_rebuilt_exactly():
    class T:  # the little of a module that Inputs needs, over numpy
        class Tensor:
            def __init__(self, a):
                self.a = a

            def detach(self):
                return self

            def as_strided(self, shape, strides, offset):
                size = self.a.itemsize
                flat = self.a.reshape(-1)[offset:]
                return T.Tensor(np.lib.stride_tricks.as_strided(flat, shape, [s * size for s in strides]))

        @staticmethod
        def from_numpy(a):
            return T.Tensor(a)

    store = np.arange(6, dtype=np.float32).tobytes()
    ins = codec.Inputs(T, [store], False)
    t = ins.value(("in", 0, "float32", (3, 2), (1, 3), 0, False))
    u = ins.value(("in", 0, "float32", (2, 2), (0, 1), 4, False))
    assert t.a.tolist() == [[0, 3], [1, 4], [2, 5]] and u.a.tolist() == [[4, 5], [4, 5]]
    t.a[0, 0] = 9
    assert ins.roots[0].a[0] == 9, "tensors that shared a storage share it again"


def job(tmp_path, codes, timeout=30.0):
    """A Job over a module that has only what code samples need."""
    (tmp_path / "hollow.py").write_text("class Tensor: pass\nclass Size(tuple): pass\nclass dtype: pass\n")
    records = [
        {
            "op": "own.x",
            "dtype": "any",
            "i": i,
            "call": "own.x",
            "flags": (),
            "code": c,
            "forms": ["call"],
            "storages": [],
            "args": [],
            "kwargs": [],
            "expected": {"call": {"ok": ("py", 1)}},
        }
        for i, c in enumerate(codes)
    ]
    path = tmp_path / "own.pkl"
    path.write_bytes(pickle.dumps({"op": "own.x", "records": records, "skipped": []}))
    args = types.SimpleNamespace(python=sys.executable, module="hollow", dtype=[], sample=[], timeout=timeout)
    j = run_samples.Job("own.x", str(path), args)
    old = os.environ.get("PYTHONPATH", "")
    os.environ["PYTHONPATH"] = str(tmp_path)
    try:
        j.run()
    finally:
        os.environ["PYTHONPATH"] = old
    return j, args


def test_a_crash_costs_one_sample(tmp_path):
    j, args = job(
        tmp_path, ["r = 1", "import os; os.kill(os.getpid(), 11)", "r = 2", "import os; os._exit(3)", "r = 1"]
    )
    got = {i: [f[0] for f in r["failures"]] for i, r in j.results.items()}
    assert got == {0: [], 1: ["crash"], 2: ["call:value"], 3: ["crash"], 4: []}
    assert j.results[1]["failures"][0][1] == "signal 11" and j.results[3]["failures"][0][1] == "exit status 3"
    t = report.table(j, report.Ledger(str(tmp_path / "none.yaml")), args)
    assert report.summary([t])[0] == "5 samples, 2 passed (40.0%), 0 in the ledger, 3 failed"


def test_a_silent_sample_is_given_up(tmp_path):
    j, _ = job(tmp_path, ["import time; time.sleep(60)", "r = 1"], timeout=3.0)
    assert j.results[0]["failures"][0][0] == "timeout" and j.results[1]["failures"] == []


def test_a_module_that_does_not_import_fails_every_sample(tmp_path):
    j, args = job(tmp_path, ["r = 1"])
    args.module, j.results = "no_such_module_at_all", {}
    j.run()
    t = report.table(j, report.Ledger(str(tmp_path / "none.yaml")), args)
    assert t["failed"] == 1 and "no_such_module_at_all" in t["broken"]


def test_the_ledger_counts_what_it_names_and_nothing_else(tmp_path):
    j, args = job(tmp_path, ["r = 2", "r = 3"])
    path = tmp_path / "ledger.yaml"
    path.write_text("- {op: 'own.*', kind: 'call:value', pattern: 'got 2$', reason: two is fine}\n")
    ledger = report.Ledger(str(path))
    t = report.table(j, ledger, args)
    assert (t["ledger"], t["failed"], ledger.entries[0]["used"]) == (1, 1, 1)
    path.write_text("- {op: 'own.*', within: 2, reason: the order of a sum}\n")
    match = report.Ledger(str(path)).match
    detail = "element (0,) expected 1.0 got 2.0 (1 of 2); largest error {} times PyTorch's"
    assert match("own.x", "f32", "call:value", detail.format("1.5"))
    for other in (detail.format("2.5"), detail.format("inf"), "element (0,) expected 1.0 got 2.0 (1 of 2)"):
        assert not match("own.x", "f32", "call:value", other)
    path.write_text("- {op: 'own.*', kind: 'call:value'}\n")
    with pytest.raises(SystemExit):  # an entry without a reason is none
        report.Ledger(str(path))


def test_percentages_are_never_rounded_up():
    t = {"samples": 10000, "passed": 9999, "ledger": 0, "failed": 1}
    assert report.summary([t])[0] == "10000 samples, 9999 passed (99.9%), 0 in the ledger, 1 failed"


@pytest.mark.parametrize(
    "script",
    [
        "tests/parity/run_samples.py",
        "tests/parity/make_samples.py",
        "bench/bench_overhead.py",
        "bench/bench_pointwise.py",
        "bench/bench_start.py",
    ],
)
def test_every_tool_has_help(script):
    r = subprocess.run([sys.executable, os.path.join(ROOT, script), "--help"], capture_output=True, text=True)
    assert r.returncode == 0 and "usage:" in r.stdout

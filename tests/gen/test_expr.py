"""Expressions of rows: printed C and OpenCL C against golden text, and bad rows refused with file and line."""

import os
import sys
import textwrap

import pytest

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
OPS = os.path.join(ROOT, "ops")
sys.path.insert(0, os.path.join(ROOT, "gen"))

import emit_pointwise  # noqa: E402
import emit_reduction  # noqa: E402
from expr import CLPrinter, CPrinter, Vocabulary, parse_expression, type_tree  # noqa: E402
from rows import RowError, load_rows  # noqa: E402

VOCABULARY = Vocabulary(OPS)


def printed(text, loop, names, printer=CPrinter, result=None, **types):
    tree = parse_expression(text, names, VOCABULARY.arity, "rows.yaml:7")
    typed = type_tree(tree, loop, {n: types.get(n, loop) for n in names}, result or loop, "rows.yaml:7", text)
    return printer(VOCABULARY).print(typed)


@pytest.mark.parametrize("text, loop, want", [
    # literals are constants of the loop's type: no double constant in an f32 loop
    ("a + 0.1 * b", "f32", "(a + (0.1f * b))"),
    ("a + 0.1 * b", "f64", "(a + (0.1 * b))"),
    ("a + 2 * b", "f32", "(a + (2.0f * b))"),
    ("a + 2 * b", "i64", "(a + (2 * b))"),
    ("a + 2 * b", "c64", "em_cadd_c64(a, em_cmul_c64(((em_c64){2.0f, 0.0f}), b))"),
    ("0 if a < 0 else a", "f32", "((a < 0.0f) ? 0.0f : a)"),
    ("exp(a) - 1", "f32", "(vm_exp_f32(a) - 1.0f)"),
    ("exp(a)", "f64", "vm_exp_f64(a)"),
    ("a // b", "i64", "em_floordiv_i64(a, b, sticky)"),
    ("a // b", "f32", "em_floordiv_f32(a, b)"),
    ("~a & b", "b8", "((!a) & b)"),
    ("a < b and not b < 1", "f32", "(((a < b) & !(b < 1.0f)) ? 1.0f : 0.0f)"),
    ("maximum(a, lowest)", "i64", "em_maximum_i64(a, INT64_MIN)"),
])
def test_c(text, loop, want):
    got = printed(text, loop, ["a", "b"])
    if text.startswith("a < b and"):  # a truth value among numbers is cast, never pasted
        want = "(float)((a < b) & !(b < 1.0f))"
    assert got == want


def test_flag_result():
    assert printed("a == b", "f32", ["a", "b"], result="flag") == "(a == b)"
    assert printed("a", "f32", ["a", "b"], result="flag") == "(a != 0)"


# Five rows as OpenCL C: the same trees through another printer.
OPENCL = {
    "add.Tensor": "(self + (alpha * other))",
    "relu": "((self < 0.0f) ? 0.0f : self)",
    "threshold_backward": "((self <= threshold) ? 0.0f : grad_output)",
    "tanh_backward": "(grad_output * (1.0f - (output * output)))",
    "exp": "exp(self)",
}


@pytest.mark.parametrize("name", sorted(OPENCL))
def test_opencl(name):
    row = next(r for r in load_rows(OPS) if r.functional.full == "aten::" + name)
    names = [a.name for a in row.functional.ins]
    assert printed(row.fields["pointwise"], "f32", names, CLPrinter) == OPENCL[name]


def emit(tmp_path, rows, emitter=emit_pointwise):
    with open(os.path.join(OPS, "vocabulary.yaml")) as f:
        (tmp_path / "vocabulary.yaml").write_text(f.read())
    (tmp_path / "native_functions.yaml").write_text(textwrap.dedent(rows))
    return emitter.emit(load_rows(str(tmp_path)), str(tmp_path))


@pytest.mark.parametrize("field, message", [
    ("pointwise: self + othr", "unknown name 'othr' (arguments: self, other)"),
    ("pointwise: frobnicate(self)", "unknown function 'frobnicate'"),
    ("pointwise: exp(self, other)", "exp takes 1 argument(s), got 2"),
    ("pointwise: self +", "syntax error at column"),
    ("pointwise: self ** other", "operator Pow is not in the language"),
    ("pointwise: self < other < 1", "one comparison at a time"),
    ("pointwise: self + 0.5 * other", "literal 0.5 has no integer value"),
    ("{pointwise: self / other}", "use // or truncdiv() on integers"),
    ("{pointwise: self < other, dtypes: complex}", "complex numbers have no order"),
    ("{pointwise: self + other, promotion: sideways}", "unknown promotion 'sideways'"),
    ("{pointwise: self + other, dtypes: quaternion}", "unknown dtype or class 'quaternion'"),
    ("{pointwise: self + other, promote: alpha}", "'alpha' is not an argument"),
    ("{pointwise: self + other, loops: F16}", "no native loop for 'F16'"),
    ("{pointwise: self + other, guard: check me}", "a guard is a C call over arguments"),
])
def test_bad_rows(tmp_path, field, message):
    body = field.strip("{}").replace(", promotion", "\n  promotion").replace(", dtypes", "\n  dtypes")
    body = body.replace(", promote", "\n  promote").replace(", loops", "\n  loops").replace(", guard", "\n  guard")
    rows = "# a comment\n- func: f(Tensor self, Tensor other) -> Tensor\n  " + body + "\n"
    with pytest.raises(RowError) as e:
        emit(tmp_path, rows)
    assert str(e.value).startswith("native_functions.yaml:2: ")
    assert message in str(e.value)


@pytest.mark.parametrize("old, new, message", [
    ("merge: {s: s + s_b}", "merge: {t: s}", "'merge' does not say what becomes of 's'"),
    ("finish: s", "finish: [s, s]", "must agree in number"),
    ("finish: s", "finish: q", "unknown name 'q'"),
    ("state: {s: 0}", "start: {s: 0}", "unknown key 'start'"),
])
def test_bad_reductions(tmp_path, old, new, message):
    rows = """
    - func: f(Tensor self) -> Tensor
      reduction:
        state: {s: 0}
        step: {s: s + x}
        merge: {s: s + s_b}
        finish: s
    """
    emit(tmp_path, rows, emit_reduction)
    assert old in rows
    with pytest.raises(RowError) as e:
        emit(tmp_path, rows.replace(old, new), emit_reduction)
    assert str(e.value).startswith("native_functions.yaml:2: ")
    assert message in str(e.value)


def test_loop_golden(tmp_path):
    """One row's loop as it is compiled: three broadcast patterns, the expression once."""
    files, functions = emit(tmp_path, """
    - func: scale(Tensor self, Tensor other, *, Scalar alpha=1) -> Tensor
      pointwise: alpha * self * other
      dtypes: F32
    """)
    loops = files["gen_pointwise_0.c"]
    expression = next(line for line in loops.splitlines() if " x0_scale_f32(" in line)
    assert expression.endswith("float x0_scale_f32(float self, float other, float alpha) { return ((alpha * self) * other); }")
    start = loops.index("static uint32_t scale_f32")
    assert loops[start:loops.index("\n\nconst em_pw_loop")] == textwrap.dedent("""\
        static uint32_t scale_f32(char *const *data, uint32_t bcast, int64_t n, const void *attr) {
          const float alpha = ((const float *)attr)[0];
          float *o0 = (float *)data[0];
          const float *p0 = (const float *)data[1];
          const float *p1 = (const float *)data[2];
          switch (bcast) {
          case 0: {
            _Pragma("omp simd")
            for (int64_t i = 0; i < n; i++) o0[i] = x0_scale_f32(p0[i], p1[i], alpha);
            break;
          }
          case 1: {
            const float self = p0[0];
            _Pragma("omp simd")
            for (int64_t i = 0; i < n; i++) o0[i] = x0_scale_f32(self, p1[i], alpha);
            break;
          }
          case 2: {
            const float other = p1[0];
            _Pragma("omp simd")
            for (int64_t i = 0; i < n; i++) o0[i] = x0_scale_f32(p0[i], other, alpha);
            break;
          }
          }
          return 0;
        }""")
    assert functions[("scale", "CPU")] == "em_cpu_scale" and functions[("scale_", "Meta")] == "em_meta_scale_"

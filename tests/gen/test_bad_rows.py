"""Bad rows are refused, each with its file and line and what is wrong with it."""

import os
import re
import shutil
import sys

import pytest

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.insert(0, os.path.join(ROOT, "gen"))
import ember_gen  # noqa: E402
from schema import RowError  # noqa: E402

POINTWISE = "- func: zz(Tensor self, Scalar k=1) -> Tensor\n  pointwise: self + k\n"
# row of native_functions.yaml, words of the refusal, the line (counted from the row's first) it names
NATIVE = {
    "no schema": ("- pointwise: self + 1\n", "needs 'func:'", 0),
    "unknown field": (POINTWISE + "  colour: red\n", "unknown field 'colour'", 0),
    "field given twice": (POINTWISE + "  pointwise: self\n", "'pointwise' is given twice", 2),
    "two kinds": (POINTWISE + "  composite: c_zz\n", "exactly one of", 0),
    "no kind": ("- func: zz(Tensor self) -> Tensor\n", "exactly one of", 0),
    "schema without arrow": ("- func: zz(Tensor self)\n  pointwise: self\n", "cannot read schema", 0),
    "unknown type": ("- func: zz(Tensor self, Matrix m) -> Tensor\n  pointwise: self\n", "unknown type 'Matrix'", 0),
    "argument named twice": ("- func: zz(Tensor a, Tensor a) -> Tensor\n  pointwise: a\n", "'a' is named twice", 0),
    "not a name": ("- func: Zz(Tensor self) -> Tensor\n  pointwise: self\n", "not an operator name", 0),
    "duplicate operator": (
        "- func: clone(Tensor self) -> Tensor\n  forms: functional\n  pointwise: self + 0\n",
        "is also made by",
        0,
    ),
    "unknown form": (POINTWISE + "  forms: functional, sideways\n", "unknown form 'sideways'", 0),
    "out names": (POINTWISE + "  out: a, b\n", "names 2 tensors", 0),
    "structured without a kernel": ("- func: zz(Tensor self) -> Tensor\n  check: check_zz\n", "needs 'cpu:'", 0),
    "unknown variant": (POINTWISE + "  variants: function, verb\n", "unknown variant 'verb'", 0),
    "unknown dtype class": (POINTWISE + "  dtypes: float, quaternion\n", "unknown dtype or class 'quaternion'", 0),
    "unknown promotion": (POINTWISE + "  promotion: upwards\n", "unknown promotion 'upwards'", 0),
    "unknown function": ("- func: zz(Tensor self) -> Tensor\n  pointwise: wibble(self)\n", "wibble", 0),
    "wrong arity": ("- func: zz(Tensor self) -> Tensor\n  pointwise: exp(self, self)\n", "exp", 0),
    "unknown name": ("- func: zz(Tensor self) -> Tensor\n  pointwise: self + other\n", "other", 0),
    "not an expression": ("- func: zz(Tensor self) -> Tensor\n  pointwise: self + + *\n", "self + + *", 0),
    "reduction without merge": (
        "- func: zz(Tensor self) -> Tensor\n  reduction: {state: {s: 0}, step: {s: s + x}, finish: s}\n",
        "'merge' is missing",
        0,
    ),
    "not a mapping": ("- just words\n", "a row is a mapping", None),
}
DERIVATIVE = {
    "no operator": ("- self: grad\n", "needs 'op:'", 0),
    "unknown operator": ("- op: nobody\n  self: grad\n", "nobody", 0),
    "a second one": ("- op: exp\n  self: grad\n", "has a derivative already", 0),
    "unknown argument": ("- op: zz\n  self: grad\n  colour: grad\n", "'colour' is not an argument", 0),
    "number with a gradient": ("- op: zz\n  self: grad\n  k: grad\n", "only tensors have gradients", 0),
    "missing formula": ("- op: zz\n", "'self' has no formula", 0),
    "unknown name": ("- op: zz\n  self: grad * wibble\n", "unknown name 'wibble'", 0),
    "unknown call": ("- op: zz\n  self: wibble(grad)\n", "no operator 'wibble'", 0),
    "unknown formula function": ("- op: zz\n  self: formula_wibble(grad)\n", "formula_wibble", 0),
    "in place": ("- op: zz\n  self: grad.mul_(2)\n", "", 0),
    "not in the language": ("- op: zz\n  self: '[g for g in grad]'\n", "not part of the language", 0),
    "not an expression": ("- op: zz\n  self: grad *\n", "formula", 0),
}


def refused(tmp_path, name, row):
    """Appends the row to a copy of ops/ and returns (message, line where the row begins)."""
    ops = tmp_path / "ops"
    shutil.copytree(os.path.join(ROOT, "ops"), ops)
    if name == "derivatives.yaml":
        with open(ops / "native_functions.yaml", "a", encoding="utf-8") as file:
            file.write("\n" + POINTWISE)
    path = ops / name
    text = path.read_text().rstrip("\n") + "\n"
    path.write_text(text + row)
    with pytest.raises(RowError) as caught:
        ember_gen.generate(str(ops))
    return str(caught.value), text.count("\n") + 1


@pytest.mark.parametrize("case", NATIVE)
def test_bad_operator_row(tmp_path, case):
    row, words, offset = NATIVE[case]
    message, line = refused(tmp_path, "native_functions.yaml", row)
    assert words in message
    where = re.match(r"native_functions\.yaml(?::(\d+))?: ", message)
    assert where, message
    assert offset is None or int(where[1]) == line + offset


@pytest.mark.parametrize("case", DERIVATIVE)
def test_bad_derivative_row(tmp_path, case):
    row, words, offset = DERIVATIVE[case]
    message, line = refused(tmp_path, "derivatives.yaml", row)
    assert words in message
    where = re.match(r"derivatives\.yaml:(\d+): ", message)
    assert where and int(where[1]) == line + offset, message


def test_good_rows_are_accepted(tmp_path):
    """The row that the cases spoil is a good one."""
    ops = tmp_path / "ops"
    shutil.copytree(os.path.join(ROOT, "ops"), ops)
    with open(ops / "native_functions.yaml", "a", encoding="utf-8") as file:
        file.write("\n" + POINTWISE)
    with open(ops / "derivatives.yaml", "a", encoding="utf-8") as file:
        file.write("\n- op: zz\n  self: grad\n")
    assert "em_call_zz(" in ember_gen.generate(str(ops))["gen_ops.h"]

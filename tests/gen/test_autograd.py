"""The derivative generator: two rows against golden C, and bad rows refused with file and line."""
import os
import sys

import pytest

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "..", "gen"))
import emit_autograd  # noqa: E402
from rows import RowError, load_rows  # noqa: E402

ROWS = """
- func: mul.Tensor(Tensor self, Tensor other) -> Tensor
  forms: functional, inplace, out
  check: check_mul
  cpu: k_cpu_mul
- func: sum.dim_IntList(Tensor self, int[1]? dim, bool keepdim=False, *, ScalarType? dtype=None) -> Tensor
  check: check_sum
  cpu: k_cpu_sum
- func: max.dim(Tensor self, int dim, bool keepdim=False) -> (Tensor values, Tensor indices)
  check: check_max
  cpu: k_cpu_max
- func: select.int(Tensor(a) self, int dim, SymInt index) -> Tensor(a)
  view: view_select
"""
MUL = """
- op: mul.Tensor
  self: grad * other.conj()
  other: grad * self.conj()
"""
SUM = """
- op: sum.dim_IntList
  self: formula_sum(grad, self.sizes(), dim, keepdim)
"""


def emit(tmp_path, derivatives, rows=ROWS):
    (tmp_path / "native_functions.yaml").write_text(rows)
    (tmp_path / "derivatives.yaml").write_text(derivatives)
    return emit_autograd.emit(load_rows(str(tmp_path)), str(tmp_path))


@pytest.mark.parametrize("name, row", [("mul", MUL), ("sum", SUM)])
def test_golden(tmp_path, name, row):
    text, functions = emit(tmp_path, row)
    path = os.path.join(HERE, "golden", f"autograd_{name}.c")
    got = text["gen_autograd.c"].split("\n// ---- Alias")[0]
    if os.environ.get("EMBER_UPDATE_GOLDEN"):
        with open(path, "w") as file:
            file.write(got + "\n")
    with open(path) as file:
        assert got + "\n" == file.read()
    assert any(key == "Autograd" for _, key in functions)


def test_alias_entries(tmp_path):
    """Views are marked, writes bump versions; functional operators have no entry and cost nothing."""
    text, functions = emit(tmp_path, MUL)
    assert {(c, f) for (c, key), f in functions.items() if key == "Alias"} == {
        ("select_int", "alias_select_int"), ("mul__Tensor", "alias_mul__Tensor"), ("mul_out", "alias_mul_out")}
    assert "em_view_mark(*out, self, &em_opr_select_int" in text["gen_autograd.c"]


def test_nodes_are_numbered_in_order(tmp_path):
    rows = ROWS + "- func: max(Tensor self) -> Tensor\n  check: c\n  cpu: k\n"
    text, _ = emit(tmp_path, """
- op: max.dim
  self: formula_selected(grad, dim, indices, self.sizes(), keepdim)
  output_differentiability: [True, False]
- op: max
  self: grad
""", rows)
    assert '.name = "MaxBackward0"' in text["gen_autograd.c"] and '.name = "MaxBackward1"' in text["gen_autograd.c"]


BAD = {
    "- op: mul.Tensor\n  self: grad\n  other: grad *\n": "derivatives.yaml:2: formula 'grad *': invalid syntax",
    "- op: mul.Tensor\n  self: grad\n": "derivatives.yaml:2: aten::mul.Tensor: argument 'other' has no formula",
    "- op: mul.Tensor\n  self: grad\n  it: grad\n": "derivatives.yaml:2: aten::mul.Tensor: 'it' is not an argument",
    "- op: mul.Tensor\n  self, other: grad\n":
        "derivatives.yaml:2: aten::mul.Tensor: formula of self, other yields 1 gradients",
    "- op: mul.Tensor\n  self: grad\n  self, other: grad\n":
        "derivatives.yaml:2: aten::mul.Tensor: 'self' has two formulas",
    "- op: mul.Tensor\n  self: grad * wrong\n  other: none\n": "derivatives.yaml:2: formula: unknown name 'wrong'",
    "- op: mul.Tensor\n  self: formula_nothing(grad)\n  other: none\n":
        "derivatives.yaml:2: formula: src/autograd/formulas.h has no",
    "- op: mul.Tensor\n  self: formula_conj(grad, grad)\n  other: none\n":
        "derivatives.yaml:2: formula: formula_conj takes 1 arguments",
    "- op: mul.Tensor\n  self: \"[x for x in grad]\"\n  other: none\n": "is not part of the language",
    "- op: mul.Tensor\n  self: \"'text'\"\n  other: none\n":
        "derivatives.yaml:2: formula: a gradient is a tensor, got STR",
    "- op: max.dim\n  self: grad\n  output_differentiability: [True]\n":
        "output_differentiability has 1 entries, the operator returns 2",
    "- op: sum.dim_IntList\n  self: grad\n  dim: grad\n": "'dim' is a int[1]?; only tensors have gradients",
    "- self: grad\n": "derivatives.yaml:2: a derivative needs 'op:'",
    MUL + MUL.replace("\n", "", 1): "derivatives.yaml:5: mul.Tensor has a derivative already, at derivatives.yaml:2",
    "- op: mul.Tensor\n  self: grad\n  self: grad\n": "derivatives.yaml:4: key 'self' is given twice",
}


@pytest.mark.parametrize("row", BAD, ids=range(len(BAD)))
def test_bad_rows(tmp_path, row):
    with pytest.raises(RowError) as error:
        emit(tmp_path, row if row.startswith("\n") else "\n" + row)
    assert BAD[row] in str(error.value)


def test_unknown_operator(tmp_path):
    with pytest.raises(RowError, match="derivatives.yaml:2: no operator 'nothing'"):
        emit(tmp_path, "\n- op: nothing\n  self: grad\n")

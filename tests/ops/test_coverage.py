"""Every operator that Ember registers is in the table, or is a form of one that is, or is excepted with a reason."""
import pytest
from forms import inplace_of, out_of
from sampling import PRESENT
from subject import IS_EMBER, operator, torch
from table import TABLE

pytestmark = pytest.mark.skipif(not IS_EMBER, reason="looks through Ember's own operator list")

EXCEPTED = {
    "_fused_sgd_": "writes lists of tensors: tests/c/test_optim.c and tests/py/test_optim.py",
    "_fused_adam_": "the same", "_fused_adamw_": "the same",
    "_amp_foreach_non_finite_check_and_unscale_": "writes a list of tensors: tests/py/test_amp.py",
    "_amp_update_scale_": "its arguments must be of three dtypes: tests/py/test_amp.py",
    "_ctc_loss": "its second result is unfinished in PyTorch; ctc_loss calls it", "_ctc_loss_backward": "its derivative",
    "linspace.Tensor_Tensor": "reads the ends and calls linspace: tests/parity (own.creation)",
    "linspace.Tensor_Scalar": "the same", "linspace.Scalar_Tensor": "the same",
    "logspace.Tensor_Tensor": "reads the ends and calls logspace: tests/ops/test_shape.py",
    "logspace.Tensor_Scalar": "the same", "logspace.Scalar_Tensor": "the same",
    "narrow.Tensor": "reads start and calls narrow: tests/py/test_agreement.py (out_rules)",
    "_rnn_layer": "Ember's own, below lstm, gru and rnn, which are in the table; tests/py/test_rnn.py",
    "_rnn_layer_backward": "the same", "_rnn_layer_steps": "the same",
    "_fused_sdp_choice": "returns a number: tests/py/test_attention.py",
    "linalg_lu_factor": "factors, not values: tests/ops/test_linalg.py", "linalg_lu_factor_ex": "the same", "linalg_qr": "the same",
    "linalg_eigh.eigvals": "the same", "linalg_lu_factor.out": "the same", "linalg_lu_factor_ex.out": "the same", "svd.U": "the same",
    "linalg_qr.out": "the same", "linalg_svd": "the same", "linalg_svd.U": "the same", "svd": "the same", "_linalg_svd": "the same",
    "linalg_eigh": "the same", "_linalg_eigh": "the same", "_linalg_det": "below det", "_linalg_slogdet": "below slogdet",
    "_linalg_solve_ex": "below linalg_solve",
    "norm.dtype_out": "norm.ScalarOpt_dim_dtype with out=: tests/ops/test_maths.py", "norm.ScalarOpt_dtype_out": "the same",
    "_standard_gamma_grad": "an approximation: tests/py/test_distribution_kinds.py (slopes)", "_dirichlet_grad": "the same",
    "resize_": "its result is not a function of its inputs' values; tests/py covers it",
}


def registered():
    return sorted({name.split("::")[1] for name in torch._C._dispatch_get_all_op_names() if name.startswith("aten::")})


def covered():
    made = set(PRESENT)
    for name in PRESENT:
        made |= {inplace_of(name), out_of(name)} - {None}
    return made


def test_every_registered_operator_is_tested():
    missing = [name for name in registered() if name not in covered() and name not in EXCEPTED]
    assert not missing, f"no entry in tests/ops/table.py: {missing}"


def test_exceptions_are_still_needed():
    for name in EXCEPTED:
        assert operator(name) is not None and name not in covered(), f"{name} needs no exception"


def test_entries_have_unique_names():
    from table import GROUPS
    assert sum(map(len, GROUPS.values())) == len(TABLE)


@pytest.mark.parametrize("name", ["add.Tensor", "sum", "mm", "softmax.int", "index.Tensor", "randn", "nll_loss_forward",
                                  "embedding", "where.self", "cat", "as_strided", "clamp", "gelu", "max.dim", "arange"])
def test_the_issues_operators_are_there(name):
    assert operator(name) is not None

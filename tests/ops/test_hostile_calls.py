"""Calls that the operator fuzz found reading or writing outside of memory, hanging, or computing from resized inputs.

Words and values are PyTorch 2.13's where it has an answer that does not depend on memory.
"""
import pytest
from subject import IS_EMBER, torch

aten = torch.ops.aten
ember_only = pytest.mark.skipif(not IS_EMBER, reason="PyTorch reads uninitialised memory here")


def test_running_statistics_must_be_vectors():
    x, one, flat = torch.randn(2, 4, 3), torch.ones(4), torch.ones(1, 4)
    for mean, var in ((flat, one), (one, flat)):
        for training in (True, False):
            with pytest.raises(RuntimeError, match="TensorAccessor expected 1 dims but tensor has 2"):
                torch.native_batch_norm(x, one, one, mean, var, training, 0.1, 1e-3)
    assert torch.native_batch_norm(x, flat, one, one, one, True, 0.1, 1e-3)[0].shape == x.shape


@pytest.mark.parametrize("reduction", ["mean", "sum", "none"])
def test_a_vector_of_scores_has_one_target(reduction):
    x = torch.tensor([0.1, 0.2, 0.3, 0.4])
    nll = torch.nn.functional.nll_loss
    with pytest.raises(ValueError, match="For 1D input, 1D target must have size 1, but got target size: 4"):
        nll(x, torch.tensor([2, 1, 0, 3]), reduction=reduction)
    for target in (torch.tensor([2]), torch.tensor(2)):
        assert abs(nll(x, target, reduction=reduction).item() + 0.3) < 1e-6


def test_embedding_dense_backward_of_other_sizes():
    call, ids = aten.embedding_dense_backward, torch.tensor([1, 2, 3, 0])
    for shape, count in (((3, 4), 12), ((4,), 4)):
        with pytest.raises(RuntimeError, match=rf"shape '\[4, 4\]' is invalid for input of size {count}"):
            call(torch.ones(shape), ids, 5, 1, False)
    with pytest.raises(RuntimeError, match="zeros: Dimension size must be non-negative."):
        call(torch.ones(4, 2), ids, -3, 1, False)
    assert call(torch.ones(4, 2), ids, 0, 1, False).shape == (0, 2)
    assert call(torch.ones(4, 0), ids, 5, 1, True).shape == (5, 0)
    for outside in (-1, 7):  # counted by frequency, PyTorch 2.13 writes outside of its counts
        assert call(torch.ones(4, 1), torch.tensor([outside, 2, 3, 0]), 5, 1, IS_EMBER).tolist() == [[1], [0], [1], [1], [0]]


def test_an_empty_index_of_any_shape():
    x, index = torch.arange(12.0).reshape(3, 4), torch.empty(2, 1, 0, 3, dtype=torch.int64)
    assert torch.gather(x, 0, index).shape == index.shape
    if IS_EMBER:  # PyTorch's check of dims looks at an empty index too
        assert torch.equal(x.scatter_reduce(1, index, torch.ones(2, 3), "amax", include_self=False), x)


def test_counts_that_overflow():
    x = torch.ones(2, 1)
    for call in (lambda: x.expand(2, 2**62), lambda: x.as_strided((2**40, 2**40), (0, 0)),
                 lambda: torch.empty_strided((2**40, 2**40), (0, 0))):
        with pytest.raises(RuntimeError, match="^numel: integer multiplication overflow"):
            call()
    for call in (lambda: torch.vander(torch.ones(2), 2**62, True), lambda: torch.chunk(torch.empty(0, 1), 2**62, 0),
                 lambda: torch.ones(1, 1).expand(2, 2**58).clone()):
        with pytest.raises((RuntimeError, MemoryError)):
            call()
    assert torch.empty(2**40, 0, 2**20, device="meta").numel() == 0


def test_fourier_transforms_of_nothing():
    for dims in ([0, 1], [1]):
        with pytest.raises(RuntimeError):
            aten._fft_r2c(torch.ones(3, 0, 5), dims, 2, True)


@ember_only
def test_a_private_solver_checks_its_shapes():
    for a, b in (((), (0, 0)), ((1,), ()), ((3, 2), (2, 3)), ((4, 3, 0), (4, 3)), ((2, 3, 3), (3, 3, 2)), ((2, 1), (0, 1))):
        with pytest.raises(RuntimeError, match="linalg.solve: "):
            aten._linalg_solve_ex(torch.ones(a), torch.ones(b))
    with pytest.raises(RuntimeError, match="linalg.solve: "):
        aten._linalg_solve_ex(torch.eye(2), torch.ones(2, 2, dtype=torch.int64))


@pytest.mark.parametrize("bad", ["inf", "-inf", "nan"])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.complex64, torch.complex128])
def test_decompositions_end_where_values_are_not_finite(bad, dtype):
    x = torch.eye(3, dtype=dtype).repeat(2, 1, 1)
    x[1, 2, 1] = float(bad)
    if IS_EMBER or bad == "nan":  # MKL gives nan for inf
        with pytest.raises(torch.linalg.LinAlgError, match=r"linalg.svd: \(Batch element 1\): The algorithm failed to converge because the "
                                                           "input matrix contained non-finite values."):
            torch.linalg.svd(x)
    assert torch.linalg.eigvalsh(x)[0].tolist() == [1, 1, 1]
    assert torch.linalg.eigvalsh(x)[1].isnan().any()


def test_triangles_of_many_empty_rows():
    few = torch.triu_indices(2**32, 5, 2)
    assert few.tolist() == [[0, 0, 0, 1, 1, 2], [2, 3, 4, 3, 4, 4]]
    assert torch.tril_indices(2**32, 5, -(2**32) + 2).tolist() == [[2**32 - 2, 2**32 - 1, 2**32 - 1], [0, 0, 1]]


@ember_only
def test_an_out_that_is_the_input_keeps_its_shape_until_it_is_read():
    x = torch.arange(6.0).reshape(2, 3)
    assert torch.sum(x, dim=0, out=x).tolist() == [3, 5, 7] and x.shape == (3,)
    x = torch.arange(4.0).reshape(2, 2)
    assert torch.mm(x, torch.ones(2, 1), out=x).tolist() == [[1], [5]]
    x = torch.empty(0, 3, 1)
    assert aten.nanmedian.out(x, out=x).isnan().item()


@ember_only
def test_a_meta_tensor_beside_real_ones_reaches_no_kernel_of_the_cpu():
    real, meta = torch.ones(3), torch.ones(3, device="meta")
    index = torch.empty(0, dtype=torch.int64)
    for call in (lambda: torch.nonzero(meta, out=index), lambda: torch.masked_select(real, meta.bool()), lambda: torch.equal(real, meta),
                 lambda: torch.bincount(torch.tensor([1]), meta[:1]), lambda: torch.masked_select(meta, real.bool())):
        with pytest.raises(NotImplementedError, match="from the 'Meta' backend.*only available for these backends: .*CPU"):
            call()
    with pytest.raises(NotImplementedError) as error:
        torch.nonzero(meta)
    assert "Meta, " not in str(error.value).split("backends:")[1]

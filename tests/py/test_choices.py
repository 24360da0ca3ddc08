"""Every kernel that has more than one path tells which one it took and why not another, and takes the other when it should."""

import os
import re
import subprocess
import sys

import pytest

import ember
from ember import _C, nn

F = nn.functional
cpu = ember.arange(48.0).reshape(8, 6)
big = ember.arange(90_000.0).reshape(300, 300)
image = ember.arange(200.0).reshape(2, 4, 5, 5)
where = ember.arange(48).reshape(8, 6) % 8
queries = ember.ones(2, 3, 9, 4)
many = ember.arange(1000.0)
spread = ember.ones(300, 600).as_strided((300, 300), (0, 2))  # no library reads rows that lie upon each other
blas = _C._library_info()["OpenBLAS"] is not None


def notes(fn, *args):
    """What the kernels under one call said, a line each."""
    told = ember.fall(fn, *args)
    return [line for call in told.calls for line in call.facts["notes"].splitlines()]


def said(fn, *args):
    return "\n".join(notes(fn, *args))


def backward(fn, *tensors):
    """Only the gradients' calls of it."""
    leaves = [t.detach().clone().requires_grad_() for t in tensors]
    out = fn(*leaves)
    return lambda: out.backward(ember.ones_like(out))


def normal(*sizes):
    return lambda: ember.empty(*sizes).normal_()


lstm = nn.LSTM(4, 5)
bag = nn.EmbeddingBag(9, 4)
adam = {}
for kind in (ember.float32, ember.bfloat16):
    parameter = ember.ones(5, dtype=kind, requires_grad=True)
    parameter.grad = ember.ones(5, dtype=kind)
    adam[kind] = ember.optim.Adam([parameter], fused=True)
    adam[kind].step()

# family: [(call, how its line begins, why another path was refused)], a path each
PATHS = {
    "pointwise": [
        (lambda: cpu + cpu, "short path: one run of 48 float32", "planning refused: same dtype, contiguous"),
        (lambda: cpu + cpu[0], "iterator: 48 float32 elements in runs of 6", "short path refused: an operand is broadcast"),
        (lambda: cpu[:, ::2] + cpu[:, ::2], "iterator: 24 ", "short path refused: an operand is not contiguous"),
        (lambda: cpu + where, "iterator: 48 ", "short path refused: operands are cast to a common dtype"),
        (lambda: cpu.half() + cpu.half(), "iterator: 48 float16", "short path refused: no loop takes this dtype as it is"),
        (lambda: big + big, "iterator: 90000 ", "short path refused: many elements, worth threads"),
        (lambda: big + big.t(), "iterator: 90000 ", "element by element refused: it lies across the others"),
        (lambda: ember.where(cpu > 0, cpu, cpu), "iterator: 48 ", "short path refused: it is for one or two operands"),
    ],
    "in place": [
        (lambda: cpu.clone().add_(cpu), "short path: one run of 48", "planning refused"),
        (lambda: cpu.clone().add_(cpu[0]), "iterator: 48 ", "short path refused: an operand is broadcast"),
    ],
    "copy": [
        (lambda: cpu.clone(), "copy: float32, runs of 48 by memmove", "squares refused: neither lies across the other"),
        (lambda: cpu.double(), "copy: float32 cast to float64, runs of 48 by the cast loop", "squares refused"),
        (lambda: cpu.t().contiguous(), "copy: float32, runs of 8 by the strided loop", "squares refused: fewer than 4096 elements"),
        (lambda: big.t().contiguous(), "copy: 300 x 300 float32 in squares, turned in cache", "row by row refused"),
        (lambda: ember.empty(300, 300, dtype=ember.float64).copy_(big.t()), "copy: 300 x 300 float32 cast to float64 in squares",
         "row by row refused"),
    ],
    "fill": [
        (lambda: ember.zeros(5), "fill: 5 float32 elements by memset", "the cast loop refused: all bits are zero"),
        (lambda: ember.full((5,), 2.0), "fill: 5 float32 elements by the cast loop", "memset refused: the value is not all zero bits"),
        (lambda: ember.ones(4, 4)[:, ::2].zero_(), "fill: 8 ", "memset refused: elements lie apart"),
    ],
    "reduction": [
        (lambda: big.sum(0), "reduction over outer dims", "lanes within a result refused: its elements lie apart"),
        (lambda: cpu.sum(1), "reduction of short rows: 8 results of 6", "lanes within a result refused: 128 elements or fewer"),
        (lambda: big.sum(1), "reduction of one segment each", "a tree of segments refused: 2048 elements or fewer"),
        (lambda: big.sum(), "reduction in a tree", "neighbours together refused: there is one result"),
        (lambda: big.reshape(9, 10_000).amax(1), "reduction in a tree", "neighbours together refused: fewer than 4"),
    ],
    "softmax": [
        (lambda: cpu.softmax(1), "rows: 8 of 6", "bands refused: rows lie dense"),
        (lambda: cpu.softmax(0), "bands: ", "rows refused: a row's elements lie 6 apart"),
        (lambda: cpu.log_softmax(0), "bands: ", "rows refused"),
    ],
    "scan": [
        (lambda: cpu.cumsum(1), "lines: 8 of 6", "bands refused: the dim is the last one"),
        (lambda: cpu.cumsum(0), "bands: ", "lines refused: their elements lie 6 apart"),
        (lambda: cpu.cummax(0), "bands: ", "lines refused"),
    ],
    "layer norm": [
        (lambda: F.layer_norm(cpu, (6,)), "rows: 8 of 6", "columns refused"),
        (backward(lambda x: F.layer_norm(x, (6,)), cpu), "rows: 8 of 6", "parts refused: no weight's gradient"),
        (backward(lambda x, w: F.layer_norm(x, (6,), w), cpu, cpu[0]), "parts: 1 of up to 8 rows", "single rows refused"),
    ],
    "group norm": [
        (lambda: F.group_norm(image, 2), "groups by channels: 4", "one row a group refused"),
        (lambda: F.group_norm(cpu, 2), "groups as rows: 16", "channel by channel refused: a channel is one element"),
    ],
    "batch norm": [
        (lambda: F.batch_norm(image, None, None, training=True), "channel by channel: 4", "columns refused"),
        (lambda: F.batch_norm(cpu, None, None, training=True), "columns: 6", "channel by channel refused: a channel is one element wide"),
        (lambda: F.batch_norm(image.to(memory_format=ember.channels_last), None, None, training=True), "columns: 4",
         "channel by channel refused: channels lie side by side"),
    ],
    "pooling": [
        (lambda: F.avg_pool2d(image, 2), "rows of the output", "planes refused"),
        (backward(lambda x: F.avg_pool2d(x, 2), image), "whole planes", "rows refused: several outputs write the same element"),
    ],
    "sort": [
        (lambda: cpu.sort(), "ranks: 8 rows of 6", "radix refused: rows of up to 20 elements"),
        (lambda: many.sort(), "radix: 1 row of 1000 pairs of a key of 32 bits", "ranks refused: rows of more than 20"),
        (lambda: many.double().sort(), "radix: 1 row of 1000 pairs of a key of 64 bits", "ranks refused"),
        (lambda: many.topk(3), "heap: the 3 best of 1000", "radix refused: at most a 32nd is wanted"),
        (lambda: many.topk(300), "radix: 1 row of", "a heap refused: more than a 32nd is wanted"),
        (lambda: many.kthvalue(3), "narrowing down", "sorting refused: one element is wanted"),
        (lambda: many.median(), "selecting", "sorting refused"),
        (lambda: many.mode(), "sorting", "selecting refused: equal elements are counted"),
    ],
    "along a dim": [
        (lambda: cpu.index_select(0, where[0]), "whole runs: one position for each run of 6", "element by element refused"),
        (lambda: cpu.gather(0, where), "element by element", "whole runs refused: each element has a position of its own"),
        (lambda: ember.zeros(8, 6).scatter_add_(0, where, cpu), "element by element", "so that no two write one element"),
    ],
    "index": [
        (lambda: cpu[where[0]], "offset table: 6 places, blocks of 6", "single elements refused"),
        (lambda: cpu[where[0], where[0] % 6], "offset table: 6 places, single elements", "blocks refused: nothing lies behind"),
        (lambda: cpu[cpu > 3], "mask: ", "an offset table refused: the mask alone says where"),
        (lambda: cpu.clone().index_put_((where[0],), cpu[0], accumulate=True), "offset table: ", "more refused: sums are made in order"),
    ],
    "embedding": [
        (lambda: F.embedding(where, cpu), "rows: 48 of 6 elements by memcpy", "element by element refused"),
        (lambda: F.embedding(where % 6, cpu.t()), "rows: 48 of 8 elements element by element", "memcpy refused"),
        (lambda: bag(ember.arange(6), ember.tensor([0, 2])), "bag by bag: 2 bags of rows of 4", "more refused: bags are not shared out"),
    ],
    "cat": [
        (lambda: ember.cat([cpu, cpu], 1), "rows: 2 tensors, 8 rows", "copies into windows refused: all are dense"),
        (lambda: ember.cat([cpu.t(), cpu.t()], 1), "windows: each of 2", "rows refused: rows of a tensor"),
        (lambda: ember.cat([cpu, cpu.double()]), "windows: each of 2", "rows refused: dtypes differ"),
        (lambda: ember.cat([big, big]), "windows: each of 2", "rows refused: one long row"),
    ],
    "attention": [
        (lambda: F.scaled_dot_product_attention(queries, queries, queries), "fused attention", "operators refused"),
        (lambda: F.scaled_dot_product_attention(queries[0], queries[0], queries[0]), "attention of operators",
         "the fused kernel refused: not 4 dims"),
        (lambda: F.scaled_dot_product_attention(queries, queries, queries, dropout_p=0.5), "attention of operators",
         "the fused kernel refused: it has no dropout"),
        (lambda: F.scaled_dot_product_attention(queries, queries, queries), "flash attention: ", "reading where they lie refused"),
        (lambda: F.scaled_dot_product_attention(queries[:, :, :2], queries, queries), "flash attention: ", "packing refused: at most 4"),
    ],
    "RNN": [
        (lambda: lstm(ember.ones(7, 8, 4)), "layer: 7 steps", "the product of each step refused"),
        (lambda: lstm(ember.ones(7, 2, 4)), "layer: 7 steps", "packing refused: at most 3 sequences"),
        (lambda: lstm(ember.ones(1, 8, 4)), "layer: 1 step,", "packing refused: one step"),
    ],
    "FFT": [
        (lambda: ember.fft.fft(ember.ones(12, 64)), "stages: 12 lines of 64", "a chirp refused"),
        (lambda: ember.fft.fft(ember.ones(3, 131)), "chirp: 3 lines of 131", "stages refused: 131 has a prime factor"),
    ],
    "products": [
        (lambda: ember.mm(cpu, cpu.t()), "Ember's blocks: (8 x 6)(6 x 8) in float32", "OpenBLAS refused: too small"),
        (lambda: ember.mm(where, where.t()), "Ember's blocks: ", "OpenBLAS refused: it has no integer products"),
        (lambda: ember.mm(big.half(), big.half()), "Ember's blocks: ", "oneDNN refused: it would convert float16 as Ember does"),
        (lambda: ember.mm(cpu.half(), cpu.t().half()), "Ember's blocks: ", "oneDNN refused: too small"),
        (lambda: ember.mv(big, big[0]), "Ember's column loop: ", "OpenBLAS refused: one column waits for memory"),
        (lambda: ember.dot(many, many), "Ember's dot loop: 1000", "OpenBLAS refused"),
        (lambda: ember.mm(spread, big), "Ember's blocks: ", "OpenBLAS refused: strides that it cannot read"),
        (lambda: ember.mm(big, big), "OpenBLAS: (300 x 300)(300 x 300)" if blas else "Ember's blocks: ",
         "Ember's blocks refused: slower at this size" if blas else "OpenBLAS refused: not found"),
    ],
    "convolution": [
        (lambda: F.conv2d(image, ember.ones(7, 4, 3, 3)), "implicit matrix product: 1 piece of", "im2col refused: it would write 9 copies"),
        (lambda: F.conv2d(image, ember.ones(7, 4, 3, 3)), "implicit matrix product: 1 piece of", "columns refused"),
        (lambda: F.conv2d(ember.ones(8, 64, 4, 40), ember.ones(256, 64, 3, 31)), "implicit matrix product: ", "planes refused"),
        (backward(lambda w: F.conv2d(image, w), ember.ones(7, 4, 3, 3)), "weight's gradient: ", "columns refused"),
    ],
    "random": [
        (normal(20), "blocks of 16 normals: 20", "pairs one after another refused"),
        (normal(5), "serial normals: 5", "blocks of 16 refused: fewer than 16 elements"),
        (lambda: ember.ones(20, 4).t().normal_(), "serial normals: 80", "blocks of 16 refused: not contiguous"),
        (lambda: ember.rand(5), "random fill: 5 float32 elements in runs of 5, side by side", "more refused: the order matters"),
        (lambda: ember.ones(4, 6)[:, ::2].uniform_(), "random fill: 12 ", "runs side by side refused: strided"),
    ],
    "resampling": [
        (lambda: F.interpolate(image, scale_factor=2, mode="bilinear"), "dim by dim: 8 planes", "bytes refused: not uint8"),
        (lambda: F.interpolate(image.to(ember.uint8), scale_factor=2, mode="bilinear"), "dim by dim in bytes: 8 planes",
         "float loop refused"),
        (lambda: F.interpolate(image.to(ember.uint8), scale_factor=2), "dim by dim: 8 planes", "bytes refused: nearest neighbours"),
    ],
    "padding": [
        (lambda: F.pad(image, (1, 1)), "rows: margin", "fill and copy refused: both are contiguous"),
        (lambda: F.pad(image.transpose(2, 3), (1, 1)), "fill and copy: ", "rows in one go refused"),
    ],
    "optimizer": [
        (adam[ember.float32].step, "fused step: ", "dense copies refused: all are dense"),
        (adam[ember.bfloat16].step, "fused step: ", "in place refused"),
    ],
}
if blas:
    PATHS["factorisations"] = [(lambda: ember.linalg.inv(ember.eye(5)), "LAPACK of OpenBLAS: 1 of 5 x 5", "Ember's loops refused")]


@pytest.mark.parametrize("family", PATHS)
def test_the_path_and_why_not_another_are_told(family):
    for fn, begins, refused in PATHS[family]:
        lines = notes(fn)
        assert any(line.startswith(begins) and refused in line for line in lines), (begins, refused, lines)


def test_every_path_of_a_family_differs():
    """The list above holds paths, not one path many times."""
    for family, paths in PATHS.items():
        seen = [(begins, refused) for _, begins, refused in paths]
        assert len(set(seen)) == len(seen), family


# Calls that nothing is chosen for: they move no bytes, or ask the tensor's header.
@pytest.mark.parametrize("fn", [lambda: cpu.t(), lambda: cpu.view(-1), lambda: ember.empty(3), lambda: cpu[1:], lambda: cpu.detach()])
def test_what_chooses_nothing_says_nothing(fn):
    assert notes(fn) == []


def test_each_note_is_said_once_for_each_call_and_to_it_alone():
    told = ember.fall(lambda: (cpu.softmax(0), cpu + cpu, lstm(ember.ones(7, 2, 4))))
    for call in told.calls:
        lines = call.facts["notes"].splitlines()
        assert len(set(lines)) == len(lines)
    (outer,) = [call for call in told.calls if call.op == "aten::softmax.int"]
    assert outer.facts["notes"] == ""  # what its part said is the part's
    (plus,) = [call for call in told.calls if call.op == "aten::add.Tensor"]
    assert len(plus.facts["notes"].splitlines()) == 1


def test_the_threads_are_told_and_why_there_are_no_more():
    before = ember.get_num_threads()
    try:
        ember.set_num_threads(2)
        assert said(lambda: big + big).endswith("; on 2 threads")
        assert "; on 1 thread (more refused: 48 to share, a thread gets 32768 or more)" in said(lambda: cpu.clone())
        assert "; on 1 thread (more refused: one piece of work)" in said(lambda: big[:1].softmax(1))
        ember.set_num_threads(1)
        assert said(lambda: big + big).endswith("; on 1 thread, all that there is")
    finally:
        ember.set_num_threads(before)


def test_the_instruction_set_is_named():
    assert f" {_C._build_info()['isa']} loop" in said(lambda: cpu + cpu)
    code = "import ember; print(ember.fall(lambda: ember.ones(3) + 1).calls[-1].facts['notes'])"
    environment = {**os.environ, "EMBER_ISA": "baseline"}
    done = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True)
    assert "through the baseline loop" in done.stdout


def test_the_log_says_the_same():
    code = "import ember; a = ember.ones(8, 6); a.softmax(0)"
    environment = {**os.environ, "EMBER_LOG": "kernels"}
    done = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True)
    lines = [line for line in done.stderr.splitlines() if line.startswith("[kernels] ")]
    assert len(lines) == len(done.stderr.splitlines()) and lines[0].startswith("[kernels] fill: 48 float32 elements by the cast loop")
    assert re.fullmatch(r"\[kernels\] bands: up to 128 neighbouring columns of 8 elements together, \w+ loop in float32 "
                        r"\(rows refused: a row's elements lie 6 apart\)", lines[2])
    assert lines[3].startswith("[kernels]   on 1 thread")


def test_more_notes_than_there_is_room_for_end_in_dots():
    """A kernel that says many different things fills its room and says that there was more."""
    parts = [ember.ones(n, 3).t() for n in range(1, 40)]
    lines = notes(lambda: ember.cat(parts, 1))
    assert lines[0].startswith("windows: each of 39") and lines[-1] == "..." and lines.count("...") == 1

"""What help() says: every public name that programs use has a signature and words, operators have all their sections, and examples
in docstrings run."""
import contextlib
import doctest
import inspect
import io
import os
import pydoc
import re
import subprocess
import sys
import types
import warnings

import ember as torch
import ember.nn.functional as F
import pytest

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.insert(0, os.path.join(ROOT, "tools"))
import coverage  # noqa: E402

WORDS = 6
SECTIONS = ("Result: ", "Dtypes: ", "Gradient: ", "Raises:", "TypeError: ", "C: em_", "Where: ops/native_")
TABLES = [torch._C._VariableFunctions, torch.Tensor, torch._C._nn, torch._C._linalg, torch._C._special, torch._C._fft]
BUILT_IN = (types.BuiltinFunctionType, types.MethodDescriptorType)


def find(name):
    """`torch.a.b` with ember for torch, or None for a name that Ember does not have."""
    found = torch
    for part in name.split(".")[1:]:
        try:
            found = getattr(found, part)
        except AttributeError:
            try:
                __import__(found.__name__ + "." + part)
                found = getattr(found, part)
            except (ImportError, AttributeError):
                return None
    return found


def public():
    """[(name, object)] of tiers 1 and 2: what can be called, but for slots, whose words are Python's."""
    found = {}
    for _, name, tier in coverage.names():
        thing = find(name) if tier < 3 else None
        theirs = getattr(thing, "__module__", "") == "multiprocessing.context"  # the standard library's
        if callable(thing) and not isinstance(thing, types.WrapperDescriptorType) and not theirs:
            found[name] = thing
    return found


PUBLIC = public()


def operators():
    """{name: its text}, of the operators that Python sees."""
    found = {}
    for table in TABLES:
        for name in dir(table):
            thing = inspect.getattr_static(table, name)
            if isinstance(thing, (types.BuiltinFunctionType, types.MethodDescriptorType)) and "\nC: em_" in (thing.__doc__ or ""):
                found[name] = thing.__doc__
    return found


OPERATORS = operators()


def sentence(text):
    return text.split("\n\n")[1]


@pytest.mark.parametrize("space", sorted({name.rpartition(".")[0] for name in PUBLIC}))
def test_every_public_name_has_words_and_a_signature(space):
    short, unsigned = [], []
    for name, thing in PUBLIC.items():
        if name.rpartition(".")[0] == space:
            text = thing.__doc__ or ""
            if len(re.findall(r"\w+", text)) < WORDS:
                short.append(name)
            if isinstance(thing, BUILT_IN) and not re.match(r"[\w.]*\(.*\)", text):
                unsigned.append(name)
    assert short == [] and unsigned == []
    assert len(PUBLIC) > 700


def test_operators_say_everything():
    assert len(OPERATORS) > 850
    lacking = {name: [s for s in SECTIONS if s not in text] for name, text in OPERATORS.items()}
    assert {name: s for name, s in lacking.items() if s} == {}
    for name, text in OPERATORS.items():
        head, said = text.split("\n\n")[:2]
        assert all(re.match(r"(torch|Tensor)[\w.]*\(.*\) -> .+$", line) for line in head.split("\n")), name
        assert re.search(r"\w", said) and said.endswith("."), name
        assert "The operator of row " not in said, f"{name}: its first row has no `doc:`"


def test_no_two_operators_say_the_same():
    said = {}
    for name, text in OPERATORS.items():
        if not sentence(text).startswith(("Another name of", "In place, what")):
            said.setdefault(sentence(text), []).append(name)
    assert {words: names for words, names in said.items() if len(names) > 1} == {}


def test_the_famous_ones():
    for text, words in ((torch.conv2d.__doc__, ["weight (Tensor): (out, in / groups, kH, kW)", "stride (int or 2 ints, default 1): ",
                                                "H_out = floor((H + 2 padding", "what torch.convolution", "em_conv2d()"]),
                        (torch.topk.__doc__, ["-> (values, indices)", "Dtypes: integers, floating point.", "Gradient: of input.",
                                              "RuntimeError: selected index k out of range", "k (int): how many"]),
                        (torch.einsum.__doc__, ['"ij,jk->ik"', "einsum(): must provide at least one operand", "Dtypes: all."]),
                        (torch.Tensor.view.__doc__, ["Tensor.view(size) -> Tensor\nTensor.view(dtype) -> Tensor", "never a copy",
                                                     "Gradient: input: grad.reshape(self.sizes())."]),
                        (torch.linalg.solve.__doc__, ["torch.linalg.solve(A, B, *, left=True, out=None)", "A X = B",
                                                      "Dtypes: float32, float64, complex.", "A (Tensor): (..., n, n), invertible"]),
                        (torch.add.__doc__, ["Gradient: input: grad; other: grad * alpha.conj().", "Boolean alpha only supported",
                                             "tensors of several dtypes are promoted"]),
                        (torch.Tensor.add_.__doc__, ["In place, what `torch.add` computes: input + alpha", "Result: the tensor itself"]),
                        (torch.special.erf.__doc__, ["torch.special.erf(input", "Another name of `torch.erf`."]),
                        (F.cross_entropy.__doc__, ["log_softmax(input, 1)", "label_smoothing", "RuntimeError"]),
                        (F.interpolate.__doc__, ["scale_factor", "align_corners", "mode"]),
                        (torch._C._nn.cross_entropy_loss.__doc__, ["ignore_index (int, default -100): "])):
        for part in words:
            assert part in text, (part, text)


def test_help_prints_it():
    out = io.StringIO()
    pydoc.Helper(output=out).help(torch.linalg.solve)
    assert "X with A X = B" in out.getvalue() and "Dtypes: " in out.getvalue()


def test_dtypes_are_those_that_are_taken():
    """The words about dtypes, for operators of one tensor: what they name is taken, what they do not name is refused."""
    kinds = {"bool": [torch.bool], "integers": [torch.int64, torch.uint8], "floating point": [torch.float32, torch.float16],
             "complex": [torch.complex64]}
    for name in ("relu", "floor", "cumsum", "logsumexp", "median", "erf", "neg", "isposinf", "logical_not", "softmax"):
        line = re.search(r"^Dtypes: (.*)\.$", getattr(torch, name).__doc__, re.M)[1].split(";")[0]
        for kind, dtypes in kinds.items():
            for dtype in dtypes:
                args = (torch.ones(2, 2, dtype=dtype),) + ((0,) if name in ("cumsum", "logsumexp", "softmax") else ())
                try:
                    getattr(torch, name)(*args)
                    taken = True
                except (RuntimeError, TypeError):
                    taken = False
                assert taken == (line == "all" or kind in line or str(dtype)[6:] in line), (name, dtype, line)


def test_without_the_file_nothing_else_changes(tmp_path):
    """The texts are a file beside the bridge: a package that lacks it, or has another version's, works and has no help."""
    package = os.path.dirname(os.path.abspath(torch.__file__))
    for kind, content in (("none", None), ("bad", b"EMHP" + b"\1" * 60), ("empty", b"")):
        folder = tmp_path / kind / "ember"
        folder.mkdir(parents=True)
        for name in os.listdir(package):
            if not name.startswith("_gen_help") and name != "__pycache__":
                os.symlink(os.path.join(package, name), folder / name)
        if content is not None:
            (folder / "_gen_help.bin").write_bytes(content)
        program = "import ember as t; assert t.add.__doc__ is None and t.Tensor.item.__doc__ is None; print(t.add(t.ones(1), 1).item())"
        done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=120,
                              env={**os.environ, "PYTHONPATH": str(tmp_path / kind)})
        assert (done.returncode, done.stdout) == (0, "2.0\n"), done.stderr


def examples():
    texts = {**{name: text for name, text in OPERATORS.items()}, **{name: thing.__doc__ or "" for name, thing in PUBLIC.items()}}
    return {name: text for name, text in texts.items() if ">>> " in text}


def test_examples_in_docstrings_run():
    parser, found = doctest.DocTestParser(), examples()
    runner = doctest.DocTestRunner(optionflags=doctest.NORMALIZE_WHITESPACE, verbose=False)
    assert len(found) > 60
    for name, text in found.items():
        out = io.StringIO()
        with contextlib.redirect_stdout(out), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            result = runner.run(parser.get_doctest(inspect.cleandoc(text) + "\n", {"torch": torch, "nn": torch.nn, "F": F}, name, name, 0),
                                out=out.write)
        assert result.failed == 0, out.getvalue()
        assert result.attempted > 0

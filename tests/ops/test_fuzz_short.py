"""Ten seconds of tests/fuzz/run.py, always the same programs; `make fuzz` goes on."""
import importlib.util
import os

SPEC = importlib.util.spec_from_file_location("fuzz_run", os.path.join(
    os.path.dirname(os.path.abspath(__file__)), "..", "fuzz", "run.py"))
fuzz = importlib.util.module_from_spec(SPEC)
SPEC.loader.exec_module(fuzz)


def test_ten_seconds_of_random_programs():
    count, failure = fuzz.run(10, seed=20_000)
    assert failure is None, failure
    assert count > 20


def test_the_fuzzer_finds_a_planted_bug():
    """A wrong interpreter is as good as a wrong Ember: the comparison can fail."""
    right = fuzz.UNARY["tanh"]
    fuzz.UNARY["tanh"] = lambda x: right(x) + 1e-3
    try:
        assert fuzz.run(10, seed=20_000)[1] is not None
    finally:
        fuzz.UNARY["tanh"] = right

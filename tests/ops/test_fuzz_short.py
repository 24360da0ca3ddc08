"""Seconds of tests/fuzz/run.py, always the same programs, and of tests/fuzz/operators.py, the same calls; `make fuzz` goes on."""
import importlib.util
import os

FOLDER = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "fuzz")


def module(name):
    spec = importlib.util.spec_from_file_location("fuzz_" + name, os.path.join(FOLDER, name + ".py"))
    made = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(made)
    return made


fuzz, hostile = module("run"), module("operators")


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


def test_twenty_seconds_of_hostile_calls():
    count, findings = hostile.run(20, seed=40_000)
    assert not findings, findings[0]
    assert count > 500


def test_hostile_calls_find_planted_bugs():
    """An error without words and a tensor outside of its storage are findings; a call that is done is none."""
    def outside():
        raise AssertionError("reaches element 7 of a storage of 3")

    def wordless():
        raise RuntimeError("no")

    for function, words in ((outside, "reaches element"), (wordless, "without words")):
        assert words in hostile.one(("aten::planted", function, [], None), 1)
    assert hostile.one(("aten::planted", lambda: None, [], None), 1) is None

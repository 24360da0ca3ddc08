"""Twenty seconds of tests/fuzz/files.py, always the same files; `make fuzz ARGS=--files` and `make fuzz-files` go on."""
import importlib.util
import os

SPEC = importlib.util.spec_from_file_location("fuzz_files", os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "fuzz",
                                                                         "files.py"))
fuzz = importlib.util.module_from_spec(SPEC)
SPEC.loader.exec_module(fuzz)


def test_twenty_seconds_of_damaged_files(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    count, failure = fuzz.run(20, seed=1)
    assert failure is None, failure
    assert count > 500


def test_the_fuzzer_finds_a_planted_bug(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(fuzz, "check", lambda torch, value, depth=0: 1 // 0)
    assert "ZeroDivisionError" in fuzz.run(20, seed=1)[1]

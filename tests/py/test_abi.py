"""The stable face: docs/abi.txt, the headers and the library agree, and nothing that was promised is gone."""
import importlib.util
import os
import subprocess

import pytest

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
BUILD = os.environ.get("EMBER_BUILD", os.path.join(ROOT, "build"))
spec = importlib.util.spec_from_file_location("abi", os.path.join(ROOT, "tools", "abi.py"))
abi = importlib.util.module_from_spec(spec)
spec.loader.exec_module(abi)


def recorded():
    with open(abi.LIST, encoding="utf-8") as file:
        return [line.rstrip("\n") for line in file if not line.startswith("#")]


@pytest.fixture(scope="module")
def now():
    return abi.description(BUILD)


def test_the_list_is_kept(now):
    """Nothing that stands in the list has changed or gone; new operators may wait for the next `make abi`, nothing else may."""
    gone = [line for line in recorded() if line not in set(now)]
    assert not gone, f"the stable face changed: {gone[:10]}"
    new = [line for line in now if line not in set(recorded()) and not line.startswith("operator ")]
    assert not new, f"not in docs/abi.txt (`make abi` writes it): {new[:10]}"


def test_the_library_exports_what_the_headers_declare():
    listed = subprocess.run(["nm", "-D", "--defined-only", "--with-symbol-versions", os.path.join(BUILD, "libember.so")],
                            check=True, capture_output=True, text=True).stdout
    nodes = dict(line.split()[-1].split("@@") for line in listed.splitlines() if "@@" in line)
    declared = set(abi.functions(abi.read(abi.public_headers(BUILD))))
    stable = {name for name, node in nodes.items() if node == "EMBER_1"}
    assert len(declared) > 1000 and stable == declared
    assert {node for node in nodes.values()} == {"EMBER_1", "EMBER_PRIVATE"}
    assert nodes["em_version"] == "EMBER_1" and nodes["em_priv_lib_open"] == "EMBER_PRIVATE"


HEADER = """
#define EM_API __attribute__((visibility("default")))
typedef struct em_box { int kind, size; union { char c; struct { int64_t n; const char *s, *t; } list; }; void (*f)(void *); } em_box;
typedef enum em_color { EM_RED = 3, EM_BLUE /* the sky's */, EM_GREEN } em_color;
typedef em_status (*em_fn)(void *context,
                           int n);
static inline int em_hidden(int a) { return a; }
EM_API EM_MUST_CHECK em_status em_box_open(em_box *b, void (*release)(void *)); /* EM_API int em_comment(void); */
EM_API const char *em_text(void);
"""


def test_the_reader_of_headers():
    text = abi.plain(HEADER)
    assert abi.functions(text) == {"em_box_open": "em_status em_box_open(em_box *b, void (*release)(void *))",
                                   "em_text": "const char *em_text(void)"}
    assert abi.structs(text) == {"em_box": ["kind", "size", "c", "list", "list.n", "list.s", "list.t", "f"]}
    assert abi.enumerators(text) == ["EM_RED", "EM_BLUE", "EM_GREEN"]
    assert [m[1] for m in abi.CALLBACK.findall(text)] == ["em_fn"]


def test_a_change_is_seen(tmp_path, monkeypatch, now):
    """The comparison speaks up when a promise is broken."""
    changed = tmp_path / "abi.txt"
    changed.write_text("\n".join([*now, "function int em_was_here(void)"]) + "\n")
    monkeypatch.setattr(abi, "LIST", str(changed))
    with pytest.raises(AssertionError, match="em_was_here"):
        test_the_list_is_kept(now)
    changed.write_text("\n".join(now[1:]) + "\n")
    with pytest.raises(AssertionError, match="not in docs/abi.txt"):
        test_the_list_is_kept(now)

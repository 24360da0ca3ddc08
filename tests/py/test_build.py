"""What the built libraries export, need and weigh."""
import glob
import os
import subprocess

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
BUILD = os.environ.get("EMBER_BUILD", os.path.join(ROOT, "build"))
LIBEMBER = os.path.join(BUILD, "libember.so")
BRIDGE = (glob.glob(os.path.join(BUILD, "_C.*.so")) + ["(no bridge was built)"])[0]


def lines(*command):
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.splitlines()


def exported(path):
    return {line.split()[-1] for line in lines("nm", "-D", "--defined-only", path)}


def needed(path):
    entries = [line for line in lines("readelf", "-d", path) if "(NEEDED)" in line]
    return {line.split("[")[1].rstrip("]").split(".so")[0] for line in entries}


def test_libember_exports_its_own_names_only():
    names = {name for name in exported(LIBEMBER) if not name.startswith("EMBER_")}
    assert names and all(name.startswith("em_") for name in names), sorted(names)[:20]
    private = {name.split("@@")[0] for name in names if name.endswith("@@EMBER_PRIVATE")}
    assert {name.split("@@")[0] for name in names if name.startswith(("em_priv_", "em_opr_", "em_redispatch_"))} <= private


def test_bridge_is_thin():
    """_C takes the machine from libember: it exports its entry alone, and contains no copy of the core."""
    assert exported(BRIDGE) == {"PyInit__C"}
    assert "libember" in needed(BRIDGE)
    assert any(line.split()[-1].startswith("em_version") for line in lines("nm", "-D", LIBEMBER))
    defined = {line.split()[-1] for line in lines("nm", "--defined-only", BRIDGE)}
    assert "em_tensor_new" not in defined


def test_no_math_library_is_linked():
    allowed = {"libc", "libm", "libdl", "libgomp", "libpthread", "ld-linux-x86-64", "libember", "libpython3"}
    sanitizers = {"libasan", "libubsan"}
    for path in (LIBEMBER, BRIDGE):
        assert needed(path) <= allowed | sanitizers, path


def test_libraries_are_small(tmp_path):
    """Under 12 MB together, stripped."""
    total = 0
    for path in (LIBEMBER, BRIDGE):
        stripped = tmp_path / os.path.basename(path)
        subprocess.run(["strip", "-o", str(stripped), path], check=True)
        total += stripped.stat().st_size
    assert total < 12 << 20


def test_three_instruction_sets_are_inside():
    """The same loops were compiled three times, and only the wide builds use wide registers."""
    archives = {isa: os.path.join(BUILD, f"libember_{isa}.a") for isa in ("baseline", "avx2", "avx512")}
    code = {isa: "\n".join(lines("objdump", "-d", "--no-show-raw-insn", path)) for isa, path in archives.items()}
    assert "%ymm" not in code["baseline"] and "%zmm" not in code["baseline"]
    assert "%ymm" in code["avx2"] and "%zmm" not in code["avx2"]
    assert "%zmm" in code["avx512"]

"""The wheel: built, installed into a fresh virtual environment, and used from another folder without a compiler."""
import glob
import os
import re
import shutil
import subprocess
import sys
import zipfile

import pytest

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
pytestmark = pytest.mark.slow

TRAIN = """
import os, sys
import ember as torch
assert torch.__file__.startswith(sys.prefix), torch.__file__
assert "numpy" not in sys.modules
torch.manual_seed(0)
x = torch.randn(64, 3)
y = (x @ torch.tensor([[1.0], [-2.0], [0.5]])) + 0.25
model = torch.nn.Linear(3, 1)
optimizer = torch.optim.Adam(model.parameters(), lr=0.1)
first = None
for step in range(60):
    optimizer.zero_grad()
    loss = ((model(x) - y) ** 2).mean()
    first = first or loss.item()
    loss.backward()
    optimizer.step()
assert loss.item() < first / 50, (first, loss.item())
torch.save(model.state_dict(), "weights.pt")
model.load_state_dict(torch.load("weights.pt"))
assert "numpy" not in sys.modules
print("trained")
"""


def run(*command, **more):
    done = subprocess.run(command, capture_output=True, text=True, timeout=500, **more)
    assert done.returncode == 0, f"{command}\n{done.stdout[-3000:]}{done.stderr[-3000:]}"
    return done.stdout


def outside(**more):
    """An environment that knows nothing of the checkout."""
    return {**{key: value for key, value in os.environ.items() if not key.startswith(("PYTHON", "EMBER"))}, **more}


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
    """Built as `make wheel` builds it: with the build tools of this environment."""
    for module in ("mesonpy", "mesonbuild", "yaml"):
        pytest.importorskip(module, reason=f"wheels are built with {module} (requirements-dev.txt)")
    if shutil.which("ninja") is None:
        pytest.skip("no ninja in this environment")
    folder = tmp_path_factory.mktemp("wheel")
    run("make", "-C", ROOT, "wheel", f"DIST={folder}")
    found = glob.glob(os.path.join(str(folder), "*.whl"))
    assert len(found) == 1
    return found[0]


@pytest.fixture(scope="module")
def venv(wheel, tmp_path_factory):
    """A fresh environment with nothing but the wheel; its math libraries are not there, and it must work without."""
    folder = str(tmp_path_factory.mktemp("venv") / "v")
    run(sys.executable, "-m", "venv", "--without-pip", folder)
    python = os.path.join(folder, "bin", "python")
    run(sys.executable, "-m", "pip", "--python", python, "install", "-q", "--no-deps", "--no-index", wheel, env=outside())
    return python


def test_contents(wheel):
    assert os.path.getsize(wheel) < 10 << 20
    with zipfile.ZipFile(wheel) as file:
        names = file.namelist()
    for name in ("__init__.py", "libember.so.1", "include/ember/ember.h", "include/ember/gen_api.h", "share/pkgconfig/ember.pc",
                 "share/cmake/ember/emberConfig.cmake", "nn/functional.py"):
        assert f"ember/{name}" in names, name
    assert sum(bool(re.fullmatch(r"ember/_C\..*\.so", name)) for name in names) == 1
    assert {name.split("/")[0] for name in names} == {"ember", re.search(r"(ember-[^-]+)-", os.path.basename(wheel))[1] + ".dist-info"}
    assert not [name for name in names if "__pycache__" in name]


def test_metadata(wheel, venv):
    report = ("from importlib.metadata import metadata, version; import ember; m = metadata('ember'); "
              "print(version('ember'), ember.version.ember, ember.__version__, m['License-Expression'], m['Requires-Python'], "
              "sorted(m.get_all('Requires-Dist')), m['Description-Content-Type'], len(m.get_payload()), sep='|')")
    version, own, full, licence, python, needs, kind, length = run(venv, "-c", report, env=outside(), cwd="/").strip().split("|")
    with open(os.path.join(ROOT, "meson.build"), encoding="utf-8") as file:
        declared = re.search(r"^  version: '(.*)'", file.read(), re.M)[1]
    assert version == own == declared and full.endswith("+ember." + declared)
    assert licence == "BSD-3-Clause" and python == ">=3.9" and kind == "text/markdown" and int(length) > 1000
    assert "scipy-openblas32" in needs and "onednn-cpu-gomp" in needs and "numpy; extra ==" in needs
    with zipfile.ZipFile(wheel) as file:
        assert any(name.endswith("dist-info/licenses/LICENSE") for name in file.namelist())


def test_trains_without_a_compiler(venv, tmp_path):
    """From another folder, with nothing in PATH."""
    assert run(venv, "-c", TRAIN, env=outside(PATH="/nonexistent"), cwd=tmp_path).strip() == "trained"


def test_libraries_stand_alone(venv):
    """Stripped, found through $ORIGIN, and without a trace of the folder they were built in."""
    package = run(venv, "-c", "import ember, os; print(os.path.dirname(ember.__file__))", env=outside(), cwd="/").strip()
    for path in [os.path.join(package, "libember.so.1"), *glob.glob(os.path.join(package, "_C.*.so"))]:
        sections = run("readelf", "-SW", path)
        assert ".debug_info" not in sections and ".symtab" not in sections, path
        with open(path, "rb") as file:
            assert ROOT.encode() not in file.read(), path
    (bridge,) = glob.glob(os.path.join(package, "_C.*.so"))
    assert re.search(r"\(RUNPATH\).*\[\$ORIGIN\]", run("readelf", "-d", bridge))


def test_the_tag_is_what_the_libraries_want(wheel, venv):
    """No newer glibc than the name says, no library beyond it; and pip, which reads the name, took it (`venv`)."""
    name = os.path.basename(wheel)
    major, minor = map(int, re.search(r"-manylinux_(\d+)_(\d+)_\w+\.whl$", name).groups())
    package = run(venv, "-c", "import ember, os; print(os.path.dirname(ember.__file__))", env=outside(), cwd="/").strip()
    versions = set()
    for path in [os.path.join(package, "libember.so.1"), *glob.glob(os.path.join(package, "_C.*.so"))]:
        asked = run("objdump", "-T", path)
        versions |= {tuple(map(int, found)) for found in re.findall(r"\(GLIBC_(\d+)\.(\d+)", asked)}
        needed = set(re.findall(r"NEEDED\s+(\S+)", run("objdump", "-p", path)))
        assert all(re.match(r"(libc|libm|libdl|libpthread|ld-linux\S*|libember)\.so\.\d+$", other) for other in needed), needed
    assert max(versions) == (major, minor)
    with zipfile.ZipFile(wheel) as file:
        (about,) = [text for text in file.namelist() if text.endswith(".dist-info/WHEEL")]
        assert re.search(r"^Tag: (.*)$", file.read(about).decode(), re.M)[1] == "-".join(name[:-len(".whl")].split("-")[2:])
        record = file.read(about.replace("WHEEL", "RECORD")).decode()
    assert record.count("dist-info/WHEEL,sha256=") == 1


def test_a_stranger_among_the_libraries_keeps_the_tag(tmp_path):
    """A wheel whose library wants more than glibc is no manylinux wheel."""
    (tmp_path / "a.c").write_text("int f(void) { return 1; }\n")
    run("gcc", "-shared", "-fPIC", "-Wl,-soname,libother.so.3", str(tmp_path / "a.c"), "-o", str(tmp_path / "libother.so"))
    (tmp_path / "b.c").write_text("int f(void);\nint g(void) { return f(); }\n")
    run("gcc", "-shared", "-fPIC", str(tmp_path / "b.c"), str(tmp_path / "libother.so"), "-o", str(tmp_path / "_C.so"))
    wheel = tmp_path / "ember-1-cp311-cp311-linux_x86_64.whl"
    with zipfile.ZipFile(wheel, "w") as file:
        file.write(tmp_path / "_C.so", "ember/_C.so")
    done = subprocess.run([sys.executable, os.path.join(ROOT, "tools", "tag_wheel.py"), str(wheel)], capture_output=True, text=True)
    assert done.returncode == 1 and "libother.so.3" in done.stdout and wheel.exists()


EXAMPLE = os.path.join(ROOT, "examples", "c", "custom_op.c")


def test_c_programs_find_the_package(venv, tmp_path):
    flags = run(venv, "-m", "ember", "--cflags", "--libs", env=outside(), cwd=tmp_path).split()
    run("gcc", EXAMPLE, *flags, "-lm", "-o", str(tmp_path / "one"))
    run(str(tmp_path / "one"), cwd=tmp_path, env=outside())
    if shutil.which("pkg-config") is None:
        pytest.skip("no pkg-config on this machine: only `python -m ember --cflags --libs` was tried")
    folder = run(venv, "-m", "ember", "--pkgconfigdir", env=outside(), cwd=tmp_path).strip()
    flags = run("pkg-config", "--cflags", "--libs", "ember", env=outside(PKG_CONFIG_PATH=folder)).split()
    run("gcc", EXAMPLE, *flags, "-lm", "-o", str(tmp_path / "two"))
    run(str(tmp_path / "two"), cwd=tmp_path, env=outside())


def test_cmake_finds_the_package(venv, tmp_path):
    if shutil.which("cmake") is None or subprocess.run(["cmake", "--version"], capture_output=True).returncode != 0:
        pytest.skip("no cmake on this machine")
    (tmp_path / "CMakeLists.txt").write_text(
        "cmake_minimum_required(VERSION 3.16)\nproject(user C)\nfind_package(ember 0.1 REQUIRED)\n"
        f"add_executable(program {EXAMPLE})\ntarget_link_libraries(program PRIVATE ember::ember m)\n")
    folder = run(venv, "-c", "import ember.utils; print(ember.utils.cmake_prefix_path)", env=outside(), cwd="/").strip()
    assert folder == run(venv, "-m", "ember", "--cmakedir", env=outside(), cwd=tmp_path).strip()
    run("cmake", "-S", str(tmp_path), "-B", str(tmp_path / "b"), f"-DCMAKE_PREFIX_PATH={folder}", env=outside())
    run("cmake", "--build", str(tmp_path / "b"), env=outside())
    run(str(tmp_path / "b" / "program"), cwd=tmp_path, env=outside())

"""What `meson install` leaves in a prefix: C programs find Ember there with pkg-config and with CMake."""
import glob
import json
import os
import shutil
import subprocess
import sys

import pytest

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
BUILD = os.environ.get("EMBER_BUILD", os.path.join(ROOT, "build"))
EXAMPLE = os.path.join(ROOT, "examples", "c", "custom_op.c")
CMAKE = """\
cmake_minimum_required(VERSION 3.16)
project(user C)
find_package(ember {version} REQUIRED)
add_executable(program {source})
target_link_libraries(program PRIVATE ember::ember m)
"""


def run(*command, **more):
    done = subprocess.run(command, capture_output=True, text=True, timeout=200, **more)
    assert done.returncode == 0, f"{command}\n{done.stdout}{done.stderr}"
    return done.stdout


def introspect(what):
    return json.loads(run(sys.executable, "-m", "mesonbuild.mesonmain", "introspect", what, BUILD))


@pytest.fixture(scope="module")
def options():
    return {option["name"]: option["value"] for option in introspect("--buildoptions")}


@pytest.fixture(scope="module")
def prefix(tmp_path_factory, options):
    """The build, installed elsewhere than it was configured for: a prefix may be moved."""
    if options["b_sanitize"] not in ("none", [], ["none"]):
        pytest.skip("programs of others do not bring the sanitizer's run time along")
    into = tmp_path_factory.mktemp("install")
    run(sys.executable, "-m", "mesonbuild.mesonmain", "install", "-C", BUILD, "--no-rebuild", "--quiet", "--destdir", str(into))
    return str(into) + options["prefix"]


@pytest.fixture(scope="module")
def package(prefix, options):
    """The folder that PYTHONPATH names."""
    (found,) = glob.glob(prefix.removesuffix(options["prefix"]) + "/**/*-packages/ember/__init__.py", recursive=True)
    return os.path.dirname(os.path.dirname(found))


@pytest.fixture(scope="module")
def library(prefix, options):
    return os.path.join(prefix, options["libdir"])


@pytest.fixture
def environment(library):
    """Nothing of the checkout: neither its package nor its build folder."""
    env = {key: value for key, value in os.environ.items() if not key.startswith(("PYTHON", "PKG_CONFIG", "EMBER_BUILD"))}
    return dict(env, PKG_CONFIG_PATH=os.path.join(library, "pkgconfig"), LD_LIBRARY_PATH=library)


def test_pkg_config(prefix, library, environment, tmp_path):
    if shutil.which("pkg-config") is None:
        pytest.skip("no pkg-config on this machine")
    # The prefix is defined for builds that were configured before they made relocatable files.
    flags = run("pkg-config", f"--define-variable=prefix={prefix}", "--cflags", "--libs", "ember", env=environment).split()
    assert run("pkg-config", "--modversion", "ember", env=environment).strip() == introspect("--projectinfo")["version"]
    run("gcc", "-Wall", "-Wextra", "-Werror", EXAMPLE, *flags, "-lm", "-o", str(tmp_path / "program"), env=environment)
    run(str(tmp_path / "program"), env=environment, cwd=tmp_path)
    mapped = run("ldd", str(tmp_path / "program"), env=environment)
    assert os.path.realpath(mapped.split("libember.so.1 => ")[1].split()[0]) == os.path.join(os.path.realpath(library), "libember.so.1")
    assert os.readlink(os.path.join(library, "libember.so")) == "libember.so.1"


def test_cmake(prefix, environment, tmp_path):
    """find_package() finds the prefix, and refuses a version that it has not."""
    if shutil.which("cmake") is None or subprocess.run(["cmake", "--version"], capture_output=True).returncode != 0:
        pytest.skip("no cmake on this machine")

    def configure(version):
        (tmp_path / "CMakeLists.txt").write_text(CMAKE.format(source=EXAMPLE, version=version))
        return subprocess.run(["cmake", "-S", str(tmp_path), "-B", str(tmp_path / version), f"-DCMAKE_PREFIX_PATH={prefix}"],
                              capture_output=True, text=True, env=environment)

    version = introspect("--projectinfo")["version"]
    done = configure(version)
    assert done.returncode == 0, done.stdout + done.stderr
    run("cmake", "--build", str(tmp_path / version), env=environment)
    run(str(tmp_path / version / "program"), env=environment, cwd=tmp_path)
    refused = configure("99.0")
    assert refused.returncode != 0 and "99.0" in refused.stderr


def test_python_of_the_prefix(prefix, package, library, environment, tmp_path):
    """The package finds the prefix's libember.so, and says where a C program does."""
    assert not glob.glob(os.path.join(package, "ember", "libember.so*"))
    del environment["LD_LIBRARY_PATH"]
    environment["PYTHONPATH"] = package
    flags = run(sys.executable, "-m", "ember", "--cflags", "--libs", env=environment, cwd=tmp_path).split()
    assert flags[0] == "-I" + os.path.join(prefix, "include") and "-L" + library in flags
    run("gcc", EXAMPLE, *flags, "-lm", "-o", str(tmp_path / "program"), env=environment)
    run(str(tmp_path / "program"), env=environment, cwd=tmp_path)
    assert "libember.so.1" in run(sys.executable, "-m", "ember.info", env=environment, cwd=tmp_path)
    assert run(sys.executable, "-m", "ember", "--pkgconfigdir", env=environment, cwd=tmp_path).strip() == \
        os.path.join(library, "pkgconfig")


def test_the_build_folder_serves_too(tmp_path, options):
    """Before anything is installed, the checkout says where its headers and its library are."""
    if options["b_sanitize"] not in ("none", [], ["none"]):
        pytest.skip("programs of others do not bring the sanitizer's run time along")
    flags = run(sys.executable, "-m", "ember", "--cflags", "--libs", cwd=tmp_path,
                env=dict(os.environ, PYTHONPATH=os.path.abspath(os.environ["PYTHONPATH"]))).split()
    run("gcc", EXAMPLE, *flags, "-lm", "-o", str(tmp_path / "program"))
    run(str(tmp_path / "program"), cwd=tmp_path)

"""A pointwise operator with its derivative is two rows and no other file: CONTRIBUTING.md's example, done in a copy."""
import os
import re
import shutil
import subprocess
import sys

import pytest

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
BUILD = os.environ.get("EMBER_BUILD", os.path.join(ROOT, "build"))


def blocks(language):
    with open(os.path.join(ROOT, "CONTRIBUTING.md"), encoding="utf-8") as file:
        return re.findall(rf"^```{language}[^\n]*\n(.*?)^```$", file.read(), re.M | re.S)


def copy_checkout(tree):
    """The sources and the build folder, with times and with this checkout's path replaced.

    Ninja compares commands and times, and compile commands hold no absolute path: only what the new rows change is
    built again.
    """
    for folder in ("gen", "include", "ops", "python", "src", "packaging", "tests/c", "tests/fuzz", "tools", "examples/c"):
        shutil.copytree(os.path.join(ROOT, folder), tree / folder, symlinks=True)
    for name in ("meson.build", "meson.options"):
        shutil.copy2(os.path.join(ROOT, name), tree / name)
    shutil.copytree(BUILD, tree / "build", symlinks=True)
    if os.path.exists(os.path.join(ROOT, ".venv")):  # the generator runs under its Python
        os.symlink(os.path.realpath(os.path.join(ROOT, ".venv")), tree / ".venv")
    ninja = tree / "build" / "build.ninja"
    times = ninja.stat()
    ninja.write_text(ninja.read_text().replace(ROOT + "/", f"{tree}/").replace(ROOT, str(tree)))
    os.utime(ninja, ns=(times.st_atime_ns, times.st_mtime_ns))


@pytest.mark.slow
def test_two_rows_make_an_operator(tmp_path):
    native, derivative = blocks("yaml")
    tree = tmp_path / "ember"
    tree.mkdir()
    copy_checkout(tree)
    for name, key in (("native_maths.yaml", "func: hypot("), ("derivatives_maths.yaml", "op: hypot\n")):  # the copy has it not yet
        text = (tree / "ops" / name).read_text(encoding="utf-8")
        kept = [row for row in re.split(r"^(?=- )", text, flags=re.M) if not row.startswith(f"- {key}")]
        (tree / "ops" / name).write_text("".join(kept), encoding="utf-8")
    for name, row in (("native_functions.yaml", native), ("derivatives.yaml", derivative)):
        with open(tree / "ops" / name, "a", encoding="utf-8") as rows:
            rows.write("\n" + row)
    built = subprocess.run(["ninja", "-C", "build"], cwd=tree, capture_output=True, text=True,
                           env=dict(os.environ, PATH=os.path.dirname(sys.executable) + ":" + os.environ["PATH"]))
    assert built.returncode == 0, built.stdout[-4000:] + built.stderr[-2000:]
    program = [code for code in blocks("python") if "hypot" in code]
    assert len(program) == 1
    done = subprocess.run([sys.executable, "-c", program[0] + "\nimport sys\nsys.stdout.write(ember.__file__)\n"],
                          cwd=tmp_path, capture_output=True, text=True,
                          env=dict(os.environ, PYTHONPATH=str(tree / "python")))
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith(str(tree)), "another checkout's package was imported"

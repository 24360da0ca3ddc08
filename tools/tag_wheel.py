"""Give a wheel that was built on this machine the platform tag that it has earned (PEP 600).

    tag_wheel.py WHEEL [--show]

A build is tagged linux_x86_64: for machines like this one. What its libraries want is the newest version of glibc that one of
their symbols asks for, and no library beyond glibc's own: so manylinux_2_35_x86_64 is true, and pip installs it wherever glibc
is that new. A wheel whose libraries want others is left alone, with status 1. The wheel is replaced by one of its new name.
"""
import argparse
import base64
import hashlib
import os
import re
import subprocess
import sys
import tempfile
import zipfile

GLIBC = re.compile(r"(ld-linux-.*|lib(c|m|dl|pthread|rt))\.so\.\d+")
OURS = re.compile(r"libember\.so\.\d+")


def readelf(option, data):
    with tempfile.NamedTemporaryFile(suffix=".so") as file:
        file.write(data)
        file.flush()
        return subprocess.run(["readelf", "-W", option, file.name], check=True, capture_output=True, text=True).stdout


def wants(data):
    """(libraries beyond glibc and Ember, the newest glibc version as (2, 35)) of one ELF file."""
    needed = re.findall(r"\(NEEDED\).*\[(.*)\]", readelf("-d", data))
    versions = re.findall(r"Name: GLIBC_(\d+)\.(\d+)", readelf("--version-info", data))
    return ({name for name in needed if not GLIBC.fullmatch(name) and not OURS.fullmatch(name)},
            max(((int(a), int(b)) for a, b in versions), default=(2, 5)))


def earned(path):
    """(strangers, glibc version) of the whole wheel."""
    strangers, newest = set(), (2, 5)
    with zipfile.ZipFile(path) as wheel:
        for name in wheel.namelist():
            if ".so" in os.path.basename(name):
                others, version = wants(wheel.read(name))
                strangers |= others
                newest = max(newest, version)
    return strangers, newest


def tagged(path, platform):
    """The same wheel with `platform` in its name, its WHEEL file and its RECORD. Returns the new path; the old file goes."""
    name, version, python, abi, _ = os.path.basename(path)[:-len(".whl")].split("-")
    new = os.path.join(os.path.dirname(path), f"{name}-{version}-{python}-{abi}-{platform}.whl")
    with zipfile.ZipFile(path) as old, zipfile.ZipFile(new + ".part", "w") as out:
        (place,) = [info.filename for info in old.infolist() if info.filename.endswith(".dist-info/WHEEL")]
        text = re.sub(r"^Tag: .*$", f"Tag: {python}-{abi}-{platform}", old.read(place).decode(), flags=re.M).encode()
        digest = base64.urlsafe_b64encode(hashlib.sha256(text).digest()).rstrip(b"=").decode()
        for info in old.infolist():
            data = old.read(info)
            if info.filename == place:
                data = text
            elif info.filename.endswith(".dist-info/RECORD"):
                row = f"{place},sha256={digest},{len(text)}"
                data = re.sub(rf"^{re.escape(place)},.*$", row, data.decode(), flags=re.M).encode()
            out.writestr(info, data, compress_type=zipfile.ZIP_DEFLATED)
    os.replace(new + ".part", new)
    if new != path:
        os.remove(path)
    return new


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("wheel")
    parser.add_argument("--show", action="store_true", help="say what it would be, change nothing")
    args = parser.parse_args()
    strangers, (major, minor) = earned(args.wheel)
    machine = re.search(r"-(?:linux|manylinux_\d+_\d+)_(\w+)\.whl$", args.wheel)
    if strangers or not machine:
        print(f"{args.wheel}: keeps its tag: " + (f"needs {', '.join(sorted(strangers))}" if strangers else "not of Linux with glibc"))
        return 1
    platform = f"manylinux_{major}_{minor}_{machine[1]}"
    print(platform if args.show else tagged(args.wheel, platform))
    return 0


if __name__ == "__main__":
    sys.exit(main())

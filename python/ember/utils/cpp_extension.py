"""Where C programs find Ember: its headers, libember.so, and the files for pkg-config and CMake.

    cc program.c $(python -m ember --cflags --libs)
    cc program.c $(PKG_CONFIG_PATH=$(python -m ember --pkgconfigdir) pkg-config --cflags --libs ember)
    cmake -DCMAKE_PREFIX_PATH=$(python -m ember --cmakedir) .
"""
import os
import re

from ember import _C


def _folders():
    """(headers, libraries, pkg-config files, CMake files), as lists. A wheel has all in the package, a prefix in lib and
    include, and a build folder has its library and the generated headers; the others are in the checkout."""
    package = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    if os.path.isdir(os.path.join(package, "include")):
        return [[os.path.join(package, name)] for name in ("include", ".", "share/pkgconfig", "share/cmake")]
    bridge = os.path.dirname(os.path.realpath(_C.__file__))
    if os.path.isdir(os.path.join(bridge, "gen")):
        checkout = os.path.realpath(os.path.join(os.path.dirname(os.path.realpath(__file__)), "..", "..", ".."))
        headers = [os.path.join(checkout, "include"), os.path.join(bridge, "gen")]
        return [headers, [bridge], [os.path.join(bridge, "meson-uninstalled")], []]
    # <prefix>/lib/python3.x/site-packages/ember; the bridge knows the way to the library.
    library = os.path.dirname(library_in_use())
    folder = library
    while not os.path.isdir(os.path.join(folder, "include", "ember")) and os.path.dirname(folder) != folder:
        folder = os.path.dirname(folder)
    return [[os.path.join(folder, "include")], [library], [os.path.join(library, "pkgconfig")],
            [os.path.join(library, "cmake")]]


def library_in_use():
    """The file of the libember.so that this process has loaded."""
    with open("/proc/self/maps", encoding="utf-8") as maps:
        found = [line.split(None, 5)[5].strip() for line in maps if re.search(r"/libember\.so[.\d]*$", line.rstrip())]
    if not found:
        raise RuntimeError("no libember.so is loaded in this process")
    return found[0]


def _existing(folders):
    return [os.path.normpath(folder) for folder in folders if os.path.isdir(folder)]


def include_paths(device_type="cpu", torch_include_dirs=True):
    """Folders for the compiler's -I: <ember/ember.h> is found there. Ember has one set of headers for every device."""
    return _existing(_folders()[0]) if torch_include_dirs else []


def library_paths(device_type="cpu", torch_include_dirs=True, cross_target_platform=None):
    """Folders for the linker's -L: libember.so is found there."""
    return _existing(_folders()[1]) if torch_include_dirs else []


def pkgconfig_paths():
    """Folders for PKG_CONFIG_PATH: ember.pc is found there."""
    return _existing(_folders()[2])


def cmake_paths():
    """Folders for CMAKE_PREFIX_PATH: emberConfig.cmake is found there. A build folder has none."""
    return _existing(_folders()[3])


def flags(wanted):
    """The text that `python -m ember --cflags --libs ...` prints."""
    import shlex
    parts = []
    for name in wanted:
        if name == "--cflags":
            parts += [f"-I{path}" for path in include_paths()]
        elif name == "--libs":
            parts += [text for path in library_paths() for text in (f"-L{path}", f"-Wl,-rpath,{path}")]
            # A wheel has no symbolic links, and so the library alone.
            names = {name for path in library_paths() for name in os.listdir(path)}
            parts.append("-lember" if "libember.so" in names else "-l:" + os.path.basename(library_in_use()))
        else:
            parts += {"--includedir": include_paths, "--libdir": library_paths, "--pkgconfigdir": pkgconfig_paths,
                      "--cmakedir": cmake_paths}[name]()
    return " ".join(shlex.quote(part) for part in parts)

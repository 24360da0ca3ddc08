"""Put built libraries and generated Python files where `import ember` finds them.

With no --into they are linked into the package's source folder (git-ignored there). With --into DIR a package DIR/ember
is put together out of links to the Python sources, so that builds of other kinds (clang, sanitizers) never disturb the
ordinary one: run with PYTHONPATH=DIR.
"""
import argparse
import compileall
import os


def link(target, path):
    """Make `path` a symlink to `target`; replaced in one step, because running programs may be importing."""
    target = os.path.abspath(target)
    if os.path.islink(path) and os.readlink(path) == target:
        return
    temporary = f"{path}.{os.getpid()}.new"
    os.symlink(target, temporary)
    os.replace(temporary, path)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--package", required=True, help="the package's source folder")
    parser.add_argument("--into", default="", help="put a package together here instead")
    parser.add_argument("--stamp", required=True)
    parser.add_argument("files", nargs="+")
    args = parser.parse_args()
    folder = os.path.join(args.into, "ember") if args.into else args.package
    os.makedirs(folder, exist_ok=True)
    if args.into:
        for name in os.listdir(folder):
            path = os.path.join(folder, name)
            if os.path.islink(path) and not os.path.exists(path):
                os.unlink(path)
        for name in sorted(os.listdir(args.package)):
            source = os.path.join(args.package, name)
            if name != "__pycache__" and not os.path.islink(source):
                link(source, os.path.join(folder, name))
    for path in args.files:
        link(path, os.path.join(folder, os.path.basename(path)))
    # Importing must not compile: some environments never write byte code by themselves.
    compileall.compile_dir(folder, quiet=2)
    if not os.path.exists(args.stamp):
        with open(args.stamp, "w", encoding="utf-8") as stamp:
            stamp.write("placed\n")


main()

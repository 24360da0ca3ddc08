"""Print the files of ROOT that match the patterns, one absolute path a line, sorted (meson has no glob)."""
import glob
import os
import sys

root = sys.argv[1]
found = [path for pattern in sys.argv[2:] for path in glob.glob(os.path.join(root, pattern), recursive=True)]
print("\n".join(sorted(found)))

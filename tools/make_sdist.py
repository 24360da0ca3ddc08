"""Make a source distribution of what is committed, in the folder named: make_sdist.py dist"""
import os
import sys

import mesonpy

root = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
folder = os.path.abspath(sys.argv[1])
os.makedirs(folder, exist_ok=True)
os.chdir(root)
print(os.path.join(folder, mesonpy.build_sdist(folder)))

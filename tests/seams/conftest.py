"""Puts this folder on the path, so that tests find seam.py however pytest is started."""
import os
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

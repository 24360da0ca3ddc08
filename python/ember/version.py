"""The version: PyTorch's, whose interface this is, and Ember's own."""

from ._C import _ember_version as ember  # meson.build's

__version__ = "2.13.0+ember." + ember
cuda = None
hip = None
debug = False
git_version = "unknown"

"""The version: PyTorch's, whose interface this is, and Ember's own."""

ember = "0.1.0"
__version__ = "2.13.0+ember." + ember
cuda = None
hip = None
debug = False
git_version = "unknown"

"""Which libraries stand behind the operators."""

import types


def _module(name, **values):
    m = types.SimpleNamespace(**values)
    m.__name__ = f"ember.backends.{name}"
    return m


def _no():
    return False


def _yes():
    return True


cuda = _module("cuda", is_built=_no, matmul=_module("cuda.matmul", allow_tf32=False))
cudnn = _module("cudnn", is_available=_no, version=lambda: None, enabled=False, benchmark=False, deterministic=False,
                allow_tf32=False)
mps = _module("mps", is_available=_no, is_built=_no)
mkl = _module("mkl", is_available=_no)
openmp = _module("openmp", is_available=_yes)
mkldnn = _module("mkldnn", is_available=_no, enabled=False)

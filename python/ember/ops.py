"""ember.ops.<namespace>.<name>.<overload>: see _ops.py. Importing this module gives the object of that name."""

import sys

from . import _ops

sys.modules[__name__] = sys.modules[__spec__.name] = _ops.ops

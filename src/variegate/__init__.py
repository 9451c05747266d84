"""Learn, from examples of good selections, to pick relevant and diverse subsets.

Names are listed in ``__init__.pyi`` and imported at first use, as SPEC 1 says; only
NumPy, which all of them need, is imported at once.
"""

import lazy_loader as _lazy
import numpy as _numpy  # noqa: F401

__getattr__, __dir__, __all__ = _lazy.attach_stub(__name__, __file__)

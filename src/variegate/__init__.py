"""Learn, from examples of good selections, to pick relevant and diverse subsets.

Names are listed in ``__init__.pyi`` and imported at first use, as SPEC 1 says.  Nothing
is imported before, so that a command can prepare for Ctrl-C and for little memory.
"""

import lazy_loader as _lazy

__getattr__, __dir__, __all__ = _lazy.attach_stub(__name__, __file__)

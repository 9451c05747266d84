"""Decoders: from an ensemble to one subset, one algorithm a file.

To add one: write a class with the call signature of
:class:`variegate.decoding.base.Decoder` in a file of its own, and name it in
``registry.py`` and ``__init__.pyi``.
"""

import lazy_loader as _lazy

__getattr__, __dir__, __all__ = _lazy.attach_stub(__name__, __file__)

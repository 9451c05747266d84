"""Determinantal point processes on PyTorch's tensors, in batches, on any device.

What lies here knows numbers only; :mod:`variegate.torch` is the face of it, and
:mod:`variegate.learning` uses it where a device is asked for.
"""

try:
    from torch import Tensor as _Tensor  # noqa: F401  (is it there?)
except ImportError as error:
    raise ImportError(
        "this needs PyTorch, which is not installed: pip install 'variegate[torch]'"
    ) from error

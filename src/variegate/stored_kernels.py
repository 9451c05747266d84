"""Kernels in model files: named, with their parameters and what fitting settled."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from variegate import kernels as builtin_kernels
from variegate.kernels import Kernel
from variegate.model_format import ModelFileError, section_of

__all__ = ["decode_kernel", "encode_kernel"]

_KERNELS: dict[str, type[Kernel]] = {
    name: getattr(builtin_kernels, name)
    for name in builtin_kernels.__all__
    if name not in ("FixedKernel", "Kernel")
}
#: Marks a kernel among the parameters of another.
_NESTED = "$kernel"


def encode_kernel(kernel: Kernel) -> dict[str, Any]:
    """Return a fitted kernel as plain values."""
    name = type(kernel).__name__
    if _KERNELS.get(name, type(kernel)) is not type(kernel):
        raise ValueError(
            f"your kernel is called {name}, as one of variegate's own is: a file could "
            "not tell them apart. Give it another name"
        )
    parameters = {
        name: _encode_kernel_parameter(value)
        for name, value in kernel.get_params(deep=False).items()
    }
    return {
        "type": type(kernel).__name__,
        "parameters": parameters,
        "state": kernel.get_state(),
    }


def _encode_kernel_parameter(value: Any) -> Any:
    if isinstance(value, Kernel):
        return {_NESTED: encode_kernel(value)}
    if isinstance(value, list | tuple):
        return [_encode_kernel_parameter(entry) for entry in value]
    if isinstance(value, Mapping):
        return {key: _encode_kernel_parameter(entry) for key, entry in value.items()}
    return _plain(value)


def _plain(value: Any) -> Any:
    """Return NumPy numbers and arrays as Python's own."""
    return value.tolist() if isinstance(value, np.ndarray | np.generic) else value


def decode_kernel(section: Mapping[str, Any], own: Sequence[type[Kernel]]) -> Kernel:
    """Return the kernel of a file, one of variegate's or of the user's own."""
    return _decode_kernel(
        section, {kernel.__name__: kernel for kernel in own} | _KERNELS
    )


def _decode_kernel(
    section: Mapping[str, Any], known: Mapping[str, type[Kernel]]
) -> Kernel:
    name = section.get("type")
    if name not in known:
        raise ModelFileError(
            f"unknown kernel {name!r}; known are {', '.join(sorted(known))}. For a "
            "kernel of your own, pass its class: vg.load(path, kernels=[YourKernel])"
        )
    parameters = {
        key: _decode_kernel_parameter(value, known)
        for key, value in section_of(section, "parameters").items()
    }
    kernel = known[str(name)](**parameters)
    kernel.set_state(section_of(section, "state"))
    kernel.check()
    return kernel


def _decode_kernel_parameter(value: Any, known: Mapping[str, type[Kernel]]) -> Any:
    if isinstance(value, dict) and value.keys() == {_NESTED}:
        return _decode_kernel(section_of(value, _NESTED), known)
    if isinstance(value, list):
        return [_decode_kernel_parameter(entry, known) for entry in value]
    return value

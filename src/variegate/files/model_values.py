"""Settings, kernels and solver results as plain values of model files, and back."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from variegate import kernels as builtin_kernels
from variegate._typing import FloatArray
from variegate.decoding import DECODERS
from variegate.files.model_format import TOOLS, ModelFileError, section_of
from variegate.kernels import Kernel
from variegate.solvers import SOLVERS, SolverResult, Stop

_TOOLS: dict[str, type[Any]] = {
    cls.__name__: cls for cls in (*DECODERS.values(), *SOLVERS.values())
}
_KERNELS: dict[str, type[Kernel]] = {
    name: getattr(builtin_kernels, name)
    for name in builtin_kernels.__all__
    if name not in ("FixedKernel", "Kernel")
}
#: Marks a kernel among the parameters of another.
_NESTED = "$kernel"


def encode_ending(result: SolverResult) -> dict[str, Any]:
    """Return how learning ended as plain values."""
    names = ("status", "remedy", "objective", "n_iterations", "n_evaluations")
    return {
        "stop": result.stop.value,
        **{name: getattr(result, name) for name in names},
    }


def encode_settings(model: Any, not_stored: Sequence[str]) -> dict[str, Any]:
    """Return the settings of a model as plain values, less some."""
    return {
        name: _encode_setting(name, value)
        for name, value in model.get_params(deep=False).items()
        if name not in not_stored
    }


def _encode_setting(name: str, value: Any) -> Any:
    if name == "random_state" and not isinstance(value, int | np.integer | None):
        return None  # a generator's position in its stream is not part of a model
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        if type(value) is not _TOOLS.get(type(value).__name__):
            raise ValueError(
                f"{name}={value!r} cannot be stored: only variegate's own can. Set "
                f"{name} to one of those, save, and set yours again after loading"
            )
        fields = [field.name for field in dataclasses.fields(value)]
        parameters = {name: getattr(value, name) for name in fields}
        return {"type": type(value).__name__, "parameters": parameters}
    if callable(value):
        raise ValueError(
            f"{name}={value!r} cannot be stored: set {name} to a name such as "
            "'mbr' or 'lbfgs', save, and set yours again after loading"
        )
    return _plain(value)


def _plain(value: Any) -> Any:
    """Return NumPy numbers and arrays as Python's own."""
    return value.tolist() if isinstance(value, np.ndarray | np.generic) else value


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


def read_settings(
    document: Mapping[str, Any], model: Any, not_stored: Sequence[str]
) -> dict[str, Any]:
    """Return the settings of a file, all of them known to such a model."""
    settings: dict[str, Any] = document["settings"]
    known = set(model.get_params(deep=False)) - set(not_stored)
    if unknown := sorted(set(settings) - known):
        raise ModelFileError(f"unknown settings: {', '.join(unknown)}")
    return settings


def decode_settings(
    document: Mapping[str, Any], model: Any, not_stored: Sequence[str]
) -> dict[str, Any]:
    """Return the settings of a file, with decoders and solvers as objects."""
    return {
        name: _decode_tool(name, value) if isinstance(value, dict) else value
        for name, value in read_settings(document, model, not_stored).items()
    }


def decode_ending(document: Mapping[str, Any], flat: FloatArray) -> SolverResult:
    """Return how learning ended, at some parameters."""
    training = dict(document["training"])
    training["stop"] = Stop(training["stop"])
    training["objective"] = float(training["objective"])
    return SolverResult(flat, **training)


def _decode_tool(setting: str, value: Mapping[str, Any]) -> Any:
    name = value.get("type")
    if name not in _TOOLS:
        raise ModelFileError(f"unknown type {name!r}; known are {', '.join(_TOOLS)}")
    parameters = section_of(value, "parameters")
    TOOLS[str(name)].check(parameters, f"settings.{setting}.parameters")
    return _TOOLS[str(name)](**parameters)


def decode_kernel(section: Mapping[str, Any], own: Sequence[type[Kernel]]) -> Kernel:
    """Return the kernel of a file, one of variegate's or of the user's own."""
    known = {kernel.__name__: kernel for kernel in own} | _KERNELS
    name = section.get("type")
    if name not in known:
        raise ModelFileError(
            f"unknown kernel {name!r}; known are {', '.join(sorted(known))}. For a "
            "kernel of your own, pass its class: vg.load(path, kernels=[YourKernel])"
        )
    parameters = {
        key: _decode_kernel_parameter(value, own)
        for key, value in section_of(section, "parameters").items()
    }
    kernel = known[str(name)](**parameters)
    kernel.set_state(section_of(section, "state"))
    kernel.check()
    return kernel


def _decode_kernel_parameter(value: Any, own: Sequence[type[Kernel]]) -> Any:
    if isinstance(value, dict) and value.keys() == {_NESTED}:
        return decode_kernel(section_of(value, _NESTED), own)
    if isinstance(value, list):
        return [_decode_kernel_parameter(entry, own) for entry in value]
    return value

"""Model files: a versioned JSON text that a person can read and nothing can run.

A file names its format and version, the settings the model was made with, its kernel,
and the learned numbers::

    {
      "format": "variegate-model",
      "version": 1,
      "written_by": "variegate 0.1.0",
      "settings": {"lam": 1.0, "omega": 1.0, "decoder": "mbr", ...},
      "kernel": {"type": "MultipleKernel", "parameters": {...}, "state": {...}},
      "fitted": {"theta": [...], "intercept": 0.3, "kernel_parameters": [...]},
      "training": {"status": "converged: ...", "objective": 3.1, "n_iterations": 40}
    }

A ``"type"`` after the first lines marks the model of an application, which holds some
of these: a summarizer, for example.

Names of kernels, decoders and solvers are looked up in a fixed table, never imported,
so a file from anywhere can do no more than fail to load.  Numbers are written with
all their digits: a loaded model predicts exactly what the saved one did.

A file is checked whole when it is read, against one schema of its format
(:mod:`variegate.model_format`, to which applications add their sections): a model that
was loaded can be used and described.  Settings that a file lacks take their defaults,
so that files of an older version load for ever; what this version does not know is an
error.
"""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Callable, Mapping, Sequence
from importlib.metadata import entry_points
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from variegate import kernels as builtin_kernels
from variegate._files import plain, write_atomic
from variegate._version import __version__
from variegate.decoding import DECODERS
from variegate.kernels import Kernel
from variegate.model_format import FORMAT, PLAIN, TOOLS, VERSION, parse
from variegate.schema import SchemaError
from variegate.solvers import SOLVERS, SolverResult, Stop

__all__ = ["ModelFileError", "load", "save"]

_Model = TypeVar("_Model")

_KERNELS: dict[str, type[Kernel]] = {
    name: getattr(builtin_kernels, name)
    for name in builtin_kernels.__all__
    if name not in ("FixedKernel", "Kernel")
}
_TOOLS: dict[str, type[Any]] = {
    cls.__name__: cls for cls in (*DECODERS.values(), *SOLVERS.values())
}
#: From a document and kernels of the user's own to a model.
Reader = Callable[[Mapping[str, Any], Sequence[type[Kernel]]], Any]
#: What reads each type of model; plain models have none.
_readers: dict[str | None, Reader] = {}
#: The entry points by which applications register readers of their types of models.
_APPLICATIONS = "variegate.applications"
#: Marks a kernel among the parameters of another.
_NESTED = "$kernel"
#: Settings that are code or live state, and so are not stored.
_NOT_STORED = ("kernel", "callback", "verbose")


class ModelFileError(ValueError):
    """A file is not a model that this version can load."""


def register(kind: str | None, reader: Reader) -> None:
    """Let ``reader`` read files of a type: those of applications are entry points."""
    _readers[kind] = reader


# Writing --------------------------------------------------------------------------


def save(model: Any, path: str | Path) -> None:
    """Write a fitted model."""
    write_document(model.encode(), path)


def write_document(content: Mapping[str, Any], path: str | Path) -> None:
    """Write a model file: ``content`` after the lines that every file begins with."""
    document = {
        "format": FORMAT,
        "version": VERSION,
        "written_by": f"variegate {__version__}",
        **content,
    }
    try:
        text = json.dumps(
            document, indent=2, allow_nan=False, ensure_ascii=False, default=plain
        )
        parse(text)  # what could not be read is not written
    except (TypeError, ValueError) as error:
        raise ValueError(f"the model cannot be written as JSON: {error}") from error
    write_atomic(path, text + "\n")


def encode(model: Any) -> dict[str, Any]:
    """Return a fitted :class:`~variegate.LargeMarginDPP` as plain values."""
    model._check_parameters()
    settings = {
        name: _encode_setting(name, value)
        for name, value in model.get_params(deep=False).items()
        if name not in _NOT_STORED
    }
    result = model.solver_result_
    return {
        "settings": settings,
        "kernel": _encode_kernel(model.kernel_) | {"given": model.kernel is not None},
        "fitted": {
            "theta": model.theta_.tolist(),
            "intercept": model.intercept_,
            "kernel_parameters": model.kernel_parameters_.tolist(),
        },
        "training": {
            "stop": result.stop.value,
            "status": result.status,
            "remedy": result.remedy,
            "objective": result.objective,
            "n_iterations": result.n_iterations,
            "n_evaluations": result.n_evaluations,
        },
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


def _encode_kernel(kernel: Kernel) -> dict[str, Any]:
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
        return {_NESTED: _encode_kernel(value)}
    if isinstance(value, list | tuple):
        return [_encode_kernel_parameter(entry) for entry in value]
    if isinstance(value, Mapping):
        return {key: _encode_kernel_parameter(entry) for key, entry in value.items()}
    return _plain(value)


def _plain(value: Any) -> Any:
    """Return NumPy numbers and arrays as Python's own."""
    return value.tolist() if isinstance(value, np.ndarray | np.generic) else value


# Reading --------------------------------------------------------------------------


def load(path: str | Path, kernels: Sequence[type[Kernel]] = ()) -> Any:
    """Read a model that ``save`` wrote.

    Parameters
    ----------
    path : str or Path
    kernels : sequence of kernel classes, optional
        Your own kernels that the file may name.

    Returns
    -------
    LargeMarginDPP, or what an application made of some: a ``variegate.text.Summarizer``

    Raises
    ------
    ModelFileError
        If the file is damaged, is something else, or needs a newer version.  Nothing
        in a file is ever run.
    """
    path = Path(path)
    try:
        document = parse(path.read_bytes())
    except (ValueError, RecursionError) as error:
        raise ModelFileError(
            f"{path} is not a variegate model, or is damaged: {error}"
        ) from None
    try:
        _check_head(document)
        return _reader(document.get("type"))(document, kernels)
    except (ModelFileError, SchemaError) as error:
        raise ModelFileError(f"{path}: {error}") from None
    except (
        ArithmeticError,
        AttributeError,
        LookupError,
        RecursionError,
        TypeError,
        ValueError,
    ) as error:
        raise ModelFileError(
            f"{path} holds a model that makes no sense: {error}"
        ) from None


def _check_head(document: Any) -> None:
    if not isinstance(document, dict) or document.get("format") != FORMAT:
        raise ModelFileError(f'not a variegate model: "format" is not "{FORMAT}"')
    version = document.get("version")
    if version is None or not PLAIN.required["version"].admits(version):
        raise ModelFileError(f'"version" is {version!r}, not a version number')
    if version > VERSION:
        raise ModelFileError(
            f"format version {version} is newer than this variegate ({__version__}), "
            f"which reads up to {VERSION}: upgrade it"
        )


def _reader(kind: Any) -> Reader:
    """Return what reads a type of model; a file can name no other code."""
    if kind not in _readers:
        known = {point.name: point for point in entry_points(group=_APPLICATIONS)}
        if kind not in known:
            raise ModelFileError(
                f"unknown type of model {kind!r}; known are {', '.join(sorted(known))}"
            )
        register(kind, known[kind].load())
    return _readers[kind]


def read_plain(
    cls: Callable[..., _Model],
    document: Mapping[str, Any],
    kernels: Sequence[type[Kernel]] = (),
) -> _Model:
    """Return the model of a file that holds one and nothing else."""
    PLAIN.check(document)
    return decode(cls, document, kernels)


def decode(
    cls: Callable[..., _Model],
    document: Mapping[str, Any],
    kernels: Sequence[type[Kernel]] = (),
) -> _Model:
    """Return the ``LargeMarginDPP`` that :func:`encode` turned into plain values.

    They have been checked against the schema of the format.
    """
    section = document["kernel"]
    kernel = _decode_kernel(section, {k.__name__: k for k in kernels} | _KERNELS)
    model: Any = cls(
        **_decode_settings(cls(), document),
        kernel=kernel if section.get("given", True) else None,
    )
    model._check_parameters()
    fitted = document["fitted"]
    parameters = np.array(fitted["kernel_parameters"], dtype=np.float64)
    if len(parameters) != kernel.domain.size:
        raise ModelFileError(
            f"{len(parameters)} kernel parameters, but the kernel has "
            f"{kernel.domain.size}"
        )
    if not np.allclose(kernel.domain.project(parameters), parameters, atol=1e-9):
        raise ModelFileError("a kernel parameter is outside its domain")
    training = document.get("training", {})
    parts = {
        "theta": np.array(fitted["theta"], dtype=np.float64),
        "intercept": np.full(int(model.fit_intercept), float(fitted["intercept"])),
        "kernel": parameters,
    }
    result = SolverResult(
        np.concatenate(list(parts.values())),
        float(training.get("objective", np.nan)),
        Stop(training.get("stop", Stop.CONVERGED.value)),
        training.get("status", ""),
        training.get("remedy", ""),
        training.get("n_iterations", 0),
        training.get("n_evaluations", 0),
    )
    model._set_fitted(kernel, parts, result)
    fitted_model: _Model = model
    return fitted_model


def _section(document: Mapping[str, Any], name: str) -> dict[str, Any]:
    section = document.get(name)
    if not isinstance(section, dict):
        raise ModelFileError(f'the section "{name}" is missing')
    return section


def read_settings(
    document: Mapping[str, Any], model: Any, not_stored: Sequence[str]
) -> dict[str, Any]:
    """Return the settings of a file, all of them known to such a model."""
    settings: dict[str, Any] = document["settings"]
    known = set(model.get_params(deep=False)) - set(not_stored)
    if unknown := sorted(set(settings) - known):
        raise ModelFileError(f"unknown settings: {', '.join(unknown)}")
    return settings


def _decode_settings(model: Any, document: Mapping[str, Any]) -> dict[str, Any]:
    return {
        name: _decode_tool(name, value) if isinstance(value, dict) else value
        for name, value in read_settings(document, model, _NOT_STORED).items()
    }


def _decode_tool(setting: str, value: Mapping[str, Any]) -> Any:
    name = value.get("type")
    if name not in _TOOLS:
        raise ModelFileError(f"unknown type {name!r}; known are {', '.join(_TOOLS)}")
    parameters = _section(value, "parameters")
    TOOLS[str(name)].check(parameters, f"settings.{setting}.parameters")
    return _TOOLS[str(name)](**parameters)


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
        for key, value in _section(section, "parameters").items()
    }
    kernel = known[str(name)](**parameters)
    kernel.set_state(_section(section, "state"))
    kernel.check()
    return kernel


def _decode_kernel_parameter(value: Any, known: Mapping[str, type[Kernel]]) -> Any:
    if isinstance(value, dict) and value.keys() == {_NESTED}:
        return _decode_kernel(_section(value, _NESTED), known)
    if isinstance(value, list):
        return [_decode_kernel_parameter(entry, known) for entry in value]
    return value

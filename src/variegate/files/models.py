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

A ``"type"`` marks the model of an application, such as a summarizer, which has sections
of its own.  Names of kernels, decoders and solvers are looked up in a fixed table and
never imported, so that loading a file runs nothing.  Numbers are written with all their
digits: a loaded model predicts exactly what the saved one did.

A file is checked against the schema of its format (:mod:`variegate.files.model_format`)
when it is read.  Settings that it lacks take their defaults; unknown ones are an error.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from importlib import import_module
from importlib.metadata import entry_points
from pathlib import Path
from typing import Any

import numpy as np

from variegate._version import __version__
from variegate.files.atomic import as_plain_value, write_atomic
from variegate.files.model_format import (
    FORMAT,
    HEAD,
    PLAIN,
    VERSION,
    ModelFileError,
    decode_ending,
    decode_kernel,
    decode_settings,
    encode_ending,
    encode_kernel,
    encode_settings,
    parse_json,
)
from variegate.files.schema import SchemaError
from variegate.kernels import Kernel

__all__ = ["ModelFileError", "load", "save"]


@dataclass(frozen=True)
class Own:
    """The user's own code that a file names and cannot hold."""

    kernels: Sequence[type[Kernel]] = ()
    #: Modules of PyTorch by their roles, such as "encoder".
    modules: Mapping[str, Any] = field(default_factory=dict)


#: For files that need no code of the user.
NOTHING = Own()
#: Returns a model from a document (a file's content as plain values) and user code.
Reader = Callable[[Mapping[str, Any], Own], Any]
#: Readers by type of model, which plain models do not have.
_readers: dict[str | None, Reader] = {}
#: The entry points by which applications register readers of their types of models.
_APPLICATIONS = "variegate.applications"
#: The modules that register the readers of the library's own models.  Their layer is
#: above this one, so that they are imported by name.
_ESTIMATORS = {
    None: "variegate.estimator.large_margin",
    "sequential": "variegate.estimator.sequential",
}
#: Settings that are code, live state or about a machine, and so are not stored.
_NOT_STORED = ("kernel", "callback", "verbose", "device")
#: Errors that values of the right shape cause where they do not go together.
_NONSENSE = (
    ArithmeticError,
    AttributeError,
    LookupError,
    RecursionError,
    TypeError,
    ValueError,
)


def register_reader(kind: str | None, reader: Reader) -> None:
    """Register the reader of files of a "type", None for files without one."""
    _readers[kind] = reader


# Writing --------------------------------------------------------------------------


def save(model: Any, path: str | Path) -> None:
    """Write a fitted model to a JSON file."""
    write_document(model.encode(), path)


def write_document(content: Mapping[str, Any], path: str | Path) -> None:
    """Write a model file: format, versions, then the sections ``content``."""
    document = {
        "format": FORMAT,
        "version": VERSION,
        "written_by": f"variegate {__version__}",
        **content,
    }
    try:
        text = json.dumps(
            document,
            indent=2,
            allow_nan=False,
            ensure_ascii=False,
            default=as_plain_value,
        )
        parse_json(text)  # refuses values that could not be read
    except (TypeError, ValueError) as error:
        raise ValueError(f"the model cannot be written as JSON: {error}") from error
    write_atomic(path, text + "\n")


def encode(model: Any) -> dict[str, Any]:
    """Return the sections of a fitted ``LargeMarginDPP``, after checking parameters."""
    model._check_parameters()
    return {
        "settings": encode_settings(model, _NOT_STORED),
        "kernel": encode_kernel(model.kernel_) | {"given": model.kernel is not None},
        "fitted": {
            "theta": model.theta_.tolist(),
            "intercept": model.intercept_,
            "kernel_parameters": model.kernel_parameters_.tolist(),
        },
        "training": encode_ending(model.solver_result_),
    }


# Reading --------------------------------------------------------------------------


def load(
    path: str | Path,
    kernels: Sequence[type[Kernel]] = (),
    modules: Mapping[str, Any] | None = None,
) -> Any:
    """Read a model that ``save`` wrote.

    Parameters
    ----------
    path : str or Path
    kernels : sequence of kernel classes, optional
        Your own kernels that the file may name.
    modules : dict of torch.nn.Module, optional
        Your own modules of a ``variegate.torch.NeuralDPP``, as ``{"encoder": ...}``:
        of the shape that was saved, with any weights.

    Returns
    -------
    LargeMarginDPP, NeuralDPP, or the model of an application, such as a
    ``variegate.text.Summarizer``

    Raises
    ------
    ModelFileError
        If the file is damaged, is something else, or needs a newer version.  Nothing
        in a file is ever run.
    """
    path = Path(path)
    try:
        document = parse_json(path.read_bytes())
    except (ValueError, RecursionError) as error:
        raise ModelFileError(
            f"{path} is not a variegate model, or is damaged: {error}"
        ) from None
    try:
        _check_head(document)
        own = Own(kernels, {} if modules is None else modules)
        return _find_reader(document.get("type"))(document, own)
    except (ModelFileError, SchemaError) as error:
        raise ModelFileError(f"{path}: {error}") from None
    except _NONSENSE as error:
        raise ModelFileError(
            f"{path} holds a model that makes no sense: {error}"
        ) from None


def _check_head(document: Any) -> None:
    """Raise ModelFileError unless a document is a model of a known format version."""
    if not isinstance(document, dict) or document.get("format") != FORMAT:
        raise ModelFileError(f'not a variegate model: "format" is not "{FORMAT}"')
    version = document.get("version")
    if version is None or not HEAD["version"].admits(version):
        raise ModelFileError(f'"version" is {version!r}, not a version number')
    if version > VERSION:
        raise ModelFileError(
            f"format version {version} is newer than this variegate ({__version__}), "
            f"which reads up to {VERSION}: upgrade it"
        )


def _find_reader(kind: Any) -> Reader:
    """Return the reader of a type of model; an entry point's is loaded and registered.

    An unknown type raises ModelFileError.
    """
    if kind is None or kind == "sequential":
        import_module(_ESTIMATORS[kind])
    if kind not in _readers:
        known = {point.name: point for point in entry_points(group=_APPLICATIONS)}
        if kind not in known:
            raise ModelFileError(
                f"unknown type of model {kind!r}; known are {', '.join(sorted(known))}"
            )
        register_reader(kind, known[kind].load())
    return _readers[kind]


def read_nested_model(
    plain: Callable[..., Any], entry: Mapping[str, Any], own: Own = NOTHING
) -> Any:
    """Return one model of an application's file, from its plain values ``entry``.

    ``plain`` is the class of models without a "type", such as ``LargeMarginDPP``.
    """
    if "type" in entry:
        return _find_reader(entry["type"])(entry, own)
    return decode(plain, entry, own)


def read_single_model(
    cls: Callable[..., Any], document: Mapping[str, Any], own: Own = NOTHING
) -> Any:
    """Check a document of one plain model, and return the fitted ``cls`` in it."""
    PLAIN.check(document)
    return decode(cls, document, own)


def decode(
    cls: Callable[..., Any], document: Mapping[str, Any], own: Own = NOTHING
) -> Any:
    """Return a fitted ``cls`` from a document like that of ``encode``, checked before.

    ``own`` has the user's kernels; ModelFileError if kernel and parameters do not fit.
    """
    section = document["kernel"]
    kernel = decode_kernel(section, own.kernels)
    model = cls(
        **decode_settings(document, cls(), _NOT_STORED),
        kernel=kernel if section["given"] else None,
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
    parts = {
        "theta": np.array(fitted["theta"], dtype=np.float64),
        "intercept": np.full(int(model.fit_intercept), float(fitted["intercept"])),
        "kernel": parameters,
    }
    flat = np.concatenate(list(parts.values()))
    return model._set_fitted(kernel, parts, decode_ending(document, flat))

"""The format of model files, whose values are checked before any object is made.

Settings, kernels and solver results are encoded as plain values here, and decoded.  A
``document`` is the content of a file as plain values, those that JSON can hold; a tool
is a decoder or solver; a place is the dotted name of a value, for messages.
"""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from variegate import kernels as builtin_kernels
from variegate._typing import FloatArray
from variegate.decoding import DECODERS
from variegate.files.json_text import load_json
from variegate.files.schema import (
    ANYTHING,
    FLAG,
    LARGEST,
    NULL,
    ListOf,
    MapOf,
    Maybe,
    NamedValues,
    Number,
    Record,
    Shape,
    String,
)
from variegate.kernels import Kernel
from variegate.solvers import SOLVERS, SolverResult, Stop

FORMAT = "variegate-model"
VERSION = 1


class ModelFileError(ValueError):
    """A file is not a model that this version can load."""


COUNT = Number(least=0, is_whole=True)
POSITIVE = Number(least=0, is_above=True)

_REQUIRED: dict[str, Shape] = {"format": String(), "version": Number(1, is_whole=True)}
_OPTIONAL: dict[str, Shape] = {"written_by": String()}
#: The first lines of all files.
HEAD = _REQUIRED | _OPTIONAL
_MODEL: dict[str, Shape] = {
    "settings": MapOf(ANYTHING),
    "kernel": Record(
        {
            "type": String(),
            "parameters": MapOf(ANYTHING),
            "state": MapOf(ANYTHING),
            "given": FLAG,
        }
    ),
    "fitted": Record(
        {
            "theta": ListOf(Number(), least=1),
            "intercept": Number(),
            "kernel_parameters": ListOf(Number()),
        }
    ),
}
#: How learning ended.
ENDED: dict[str, Shape] = {
    "training": Record(
        {
            "stop": String(tuple(stop.value for stop in Stop)),
            "status": String(),
            "remedy": String(),
            "objective": Number(),
            "n_iterations": COUNT,
            "n_evaluations": COUNT,
        }
    )
}

_SOME = Number(least=1, is_whole=True)
_AMOUNT = Number(least=0)
#: Shapes of parameters that their annotations do not tell; a file cannot hold code.
_PARAMETERS: dict[str, Shape] = {
    "agreement": NULL,
    "draw": NULL,
    "search": String(("samples", "greedy")),
    "beta": POSITIVE,
    "decay_steps": POSITIVE,
    "learning_rate": POSITIVE,
}


def _parameter_shape(field: dataclasses.Field[Any]) -> Shape:
    """Return the shape of a field of the dataclass of a decoder or solver.

    It follows from ``_PARAMETERS``, else from the annotation: ``int`` is a whole number
    of at least 1, the others are numbers of at least 0, and ``None`` adds null.
    """
    if field.name in _PARAMETERS:
        return _PARAMETERS[field.name]
    annotation = str(field.type)
    shape = _SOME if annotation.startswith("int") else _AMOUNT
    return Maybe(shape) if annotation.endswith("None") else shape


_TOOLS: dict[str, type[Any]] = {
    cls.__name__: cls for cls in (*DECODERS.values(), *SOLVERS.values())
}
TOOLS = {
    name: Record(
        {}, {field.name: _parameter_shape(field) for field in dataclasses.fields(cls)}
    )
    for name, cls in _TOOLS.items()
}
_KERNELS: dict[str, type[Kernel]] = {
    name: getattr(builtin_kernels, name)
    for name in builtin_kernels.__all__
    if name not in ("FixedKernel", "Kernel")
}
#: Marks a kernel among the parameters of another.
_NESTED = "$kernel"

#: A file with one model and nothing else.
PLAIN = Record(_REQUIRED | _MODEL | ENDED, _OPTIONAL)


def _check_one_model(value: Mapping[str, Any], place: str) -> None:
    """Raise SchemaError unless ``value`` is a model with an omega, at a place.

    Of a model with a "type", which its reader checks, only omega and type are checked.
    """
    shape = Record({"omega": POSITIVE} | _MODEL | ENDED)
    if "type" in value:
        shape = Record({"omega": POSITIVE, "type": String()})
        value = {name: value[name] for name in ("omega", "type") if name in value}
    shape.check(value, place)


def _check_nested_model(value: Mapping[str, Any], place: str) -> None:
    """Raise SchemaError unless ``value`` is a model; readers check those of a type."""
    if "type" not in value:
        Record(_MODEL | ENDED).check(value, place)


#: A file of a ``SequentialDPP``.
SEQUENTIAL = Record(
    _REQUIRED
    | {
        "type": String(),
        "settings": Record({"segment": _SOME, "memory": _SOME, "beam": _SOME}),
        "model": NamedValues(_check_nested_model),
    },
    _OPTIONAL,
)

#: The models of an application, one for each omega.
MODELS = ListOf(NamedValues(_check_one_model), least=1)


def application_format(sections: Mapping[str, Shape]) -> Shape:
    """Return the shape of an application's files, with its own further ``sections``."""
    shared = {"type": String(), "settings": MapOf(ANYTHING), "models": MODELS}
    return Record({**_REQUIRED, **shared, **sections}, _OPTIONAL)


def section_of(document: Mapping[str, Any], name: str) -> dict[str, Any]:
    """Return a section of a document; ModelFileError if it is missing."""
    section = document.get(name)
    if not isinstance(section, dict):
        raise ModelFileError(f'the section "{name}" is missing')
    return section


def parse_json(text: str | bytes) -> Any:
    """Return the values of a JSON text; ValueError for NaN, huge numbers, bad text."""
    document = load_json(
        text,
        parse_constant=_refuse_constant,
        parse_float=lambda number: _check_magnitude(float(number), number),
        parse_int=lambda number: _check_magnitude(int(number), number),
    )
    json.dumps(document, ensure_ascii=False).encode()  # no halves of characters
    return document


def _refuse_constant(name: str) -> None:
    """Raise ValueError for NaN and infinities in JSON."""
    raise ValueError(f"{name} is not a number that a model may hold")


def _check_magnitude(value: float, number: str) -> float:
    """Return a number read from the text ``number``; refuse one above ``LARGEST``."""
    if not abs(value) <= LARGEST:
        raise ValueError(f"{number[:20]} is larger than a number in a model may be")
    return value


# Values ---------------------------------------------------------------------------


def encode_ending(result: SolverResult) -> dict[str, Any]:
    """Return how a solver ended as plain values: no parameters, no history."""
    names = ("status", "remedy", "objective", "n_iterations", "n_evaluations")
    return {"stop": result.stop.value} | {n: getattr(result, n) for n in names}


def encode_settings(model: Any, not_stored: Sequence[str]) -> dict[str, Any]:
    """Return the settings of a model as plain values, except ``not_stored``."""
    return {
        name: _encode_setting(name, value)
        for name, value in model.get_params(deep=False).items()
        if name not in not_stored
    }


def _encode_setting(name: str, value: Any) -> Any:
    """Return a setting as a plain value; ValueError for code.

    A tool is its "type" and "parameters"; a random generator is None.
    """
    if name == "random_state" and not isinstance(value, int | np.integer | None):
        return None  # a generator's position in its stream is not part of a model
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        if type(value) is not _TOOLS.get(type(value).__name__):
            raise ValueError(
                f"{name}={value!r} cannot be stored: only variegate's own can. Set "
                f"{name} to one of those, save, and set yours again after loading"
            )
        fields = dataclasses.fields(value)
        parameters = {field.name: getattr(value, field.name) for field in fields}
        return {"type": type(value).__name__, "parameters": parameters}
    if callable(value):
        raise ValueError(
            f"{name}={value!r} cannot be stored: set {name} to a name such as "
            "'mbr' or 'lbfgs', save, and set yours again after loading"
        )
    return value


def encode_kernel(kernel: Kernel) -> dict[str, Any]:
    """Return "type", "parameters" and "state" of a fitted kernel as plain values.

    ValueError for a class of the user with a name of variegate's.
    """
    name = type(kernel).__name__
    if _KERNELS.get(name, type(kernel)) is not type(kernel):
        raise ValueError(
            f"your kernel is called {name}, the name of a kernel of variegate, and a "
            "file holds the name alone: give it another name"
        )
    parameters = {
        name: _encode_kernel_parameter(value)
        for name, value in kernel.get_params(deep=False).items()
    }
    return {"type": name, "parameters": parameters, "state": kernel.get_state()}


def _encode_kernel_parameter(value: Any) -> Any:
    """Return a parameter of a kernel; kernels in it become ``{"$kernel": values}``."""
    if isinstance(value, Kernel):
        return {_NESTED: encode_kernel(value)}
    if isinstance(value, list | tuple):
        return [_encode_kernel_parameter(entry) for entry in value]
    if isinstance(value, Mapping):
        return {key: _encode_kernel_parameter(entry) for key, entry in value.items()}
    return value


def read_settings(
    document: Mapping[str, Any], model: Any, not_stored: Sequence[str]
) -> dict[str, Any]:
    """Return the settings of a document, as they are in the file.

    Settings that ``model`` lacks, or in ``not_stored``, raise ModelFileError.
    """
    settings: dict[str, Any] = document["settings"]
    known = set(model.get_params(deep=False)) - set(not_stored)
    if unknown := sorted(set(settings) - known):
        raise ModelFileError(f"unknown settings: {', '.join(unknown)}")
    return settings


def decode_settings(
    document: Mapping[str, Any], model: Any, not_stored: Sequence[str]
) -> dict[str, Any]:
    """Return ``read_settings`` of a document, with decoders, solvers as objects."""
    return {
        name: _decode_tool(name, value) if isinstance(value, dict) else value
        for name, value in read_settings(document, model, not_stored).items()
    }


def decode_ending(document: Mapping[str, Any], flat: FloatArray) -> SolverResult:
    """Return the result of the section "training", with ``flat`` as parameters."""
    training = dict(document["training"])
    training["stop"] = Stop(training["stop"])
    training["objective"] = float(training["objective"])
    return SolverResult(flat, **training)


def _decode_tool(setting: str, value: Mapping[str, Any]) -> Any:
    """Return a decoder or solver from its plain values, checked at ``setting``."""
    name = value.get("type")
    if name not in _TOOLS:
        raise ModelFileError(f"unknown type {name!r}; known are {', '.join(_TOOLS)}")
    parameters = section_of(value, "parameters")
    TOOLS[str(name)].check(parameters, f"settings.{setting}.parameters")
    return _TOOLS[str(name)](**parameters)


def decode_kernel(section: Mapping[str, Any], own: Sequence[type[Kernel]]) -> Kernel:
    """Return a fitted kernel from the values that ``encode_kernel`` gave.

    ``own`` are kernel classes of the user; ModelFileError for any other class.
    """
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
    """Return a parameter of a kernel, with the kernels in it as objects."""
    if isinstance(value, dict) and value.keys() == {_NESTED}:
        return decode_kernel(section_of(value, _NESTED), own)
    if isinstance(value, list):
        return [_decode_kernel_parameter(entry, own) for entry in value]
    return value

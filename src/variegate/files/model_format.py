"""The format of model files: what they hold, checked whole before anything is made.

Sections of applications are theirs; settings and the parameters of kernels have names
and checks of their own.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from variegate.files.schema import (
    LARGEST,
    Anything,
    Flag,
    ListOf,
    MapOf,
    Maybe,
    Names,
    Null,
    Number,
    Record,
    Shape,
    String,
)
from variegate.solvers import Stop

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
    "settings": MapOf(Anything()),
    "kernel": Record(
        {
            "type": String(),
            "parameters": MapOf(Anything()),
            "state": MapOf(Anything()),
            "given": Flag(),
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
#: The parameters of decoders and solvers; code among them cannot be in a file.
_PARAMETERS: dict[str, dict[str, Shape]] = {
    "Greedy": {},
    "Local": {"max_steps": _SOME},
    "Relaxed": {"max_iterations": _SOME},
    "Exact": {"time_limit": Maybe(_AMOUNT)},
    "MBR": {
        "n_samples": _SOME,
        "n_candidates": Maybe(_SOME),
        "search": String(("samples", "greedy")),
        "agreement": Null(),
        "draw": Null(),
    },
    "ExpectedF": {"beta": POSITIVE, "repetition": _AMOUNT},
    "LBFGS": {"max_iter": _SOME, "tol": _AMOUNT},
    "AlternatingSubgradient": {
        "max_iter": _SOME,
        "tol": _AMOUNT,
        "steps_per_turn": _SOME,
    },
    "MiniBatch": {
        "batch_size": Maybe(_SOME),
        "n_epochs": _SOME,
        "learning_rate": POSITIVE,
        "decay_steps": POSITIVE,
        "buffer_size": Maybe(_SOME),
        "validation_fraction": _AMOUNT,
        "n_validation": Maybe(_SOME),
        "report_every": _SOME,
        "patience": Maybe(_SOME),
        "checkpoint_every": _SOME,
    },
}
TOOLS = {name: Record({}, shapes) for name, shapes in _PARAMETERS.items()}

#: A file with one model and nothing else.
PLAIN = Record(_REQUIRED | _MODEL | ENDED, _OPTIONAL)


class _OneModel(Names):
    """A model for an omega; of one that has a type, the rest is its reader's."""

    def check(self, value: Any, place: str = "") -> None:
        """Refuse a value that is not a model."""
        super().check(value, place)
        shape = Record({"omega": POSITIVE} | _MODEL | ENDED)
        if "type" in value:
            shape = Record({"omega": POSITIVE, "type": String()})
            value = {name: value[name] for name in ("omega", "type") if name in value}
        shape.check(value, place)


#: The models of an application, one for each omega.
MODELS = ListOf(_OneModel(), least=1)


def application(sections: Mapping[str, Shape]) -> Record:
    """Return the format of an application's files, with sections of its own."""
    shared = {"type": String(), "settings": MapOf(Anything()), "models": MODELS}
    return Record({**_REQUIRED, **shared, **sections}, _OPTIONAL)


def section_of(document: Mapping[str, Any], name: str) -> dict[str, Any]:
    """Return a section of a file, or say that it is missing."""
    section = document.get(name)
    if not isinstance(section, dict):
        raise ModelFileError(f'the section "{name}" is missing')
    return section


def parse(text: str | bytes) -> Any:
    """Return plain values, numbers and texts among them that can be worked with."""
    document = json.loads(
        text,
        parse_constant=_refuse_constant,
        parse_float=lambda number: _bounded(float(number), number),
        parse_int=lambda number: _bounded(int(number), number),
    )
    json.dumps(document, ensure_ascii=False).encode()  # no halves of characters
    return document


def _refuse_constant(name: str) -> None:
    raise ValueError(f"{name} is not a number that a model may hold")


def _bounded(value: float, number: str) -> float:
    if not abs(value) <= LARGEST:
        raise ValueError(f"{number[:20]} is larger than a number in a model may be")
    return value

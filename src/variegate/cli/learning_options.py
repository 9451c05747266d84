"""Options of commands that learn: their defaults and choices are the estimator's."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from inspect import signature
from typing import Any

import click

from variegate.cli.paths import output_option
from variegate.cli.values import POSITIVE, Number

__all__ = ["OUT", "lam_option", "max_iter_option", "omega_option", "parameter"]

_Decorator = Callable[[Any], Any]

OUT = output_option(
    "-o", "--out", required=True, help="Where the model is written, as JSON."
)


def parameter(
    estimator: type, name: str, choices: Iterable[str] | None = None, **settings: Any
) -> _Decorator:
    """Return the option for a parameter of an estimator, with its default."""
    if choices is not None:
        settings["type"] = click.Choice(list(choices))
    default = signature(estimator).parameters[name].default
    option = f"--{name.replace('_', '-')}"
    return click.option(option, name, default=default, show_default=True, **settings)


def lam_option(estimator: type) -> _Decorator:
    """Return the option for the weight of the margin."""
    return parameter(
        estimator,
        "lam",
        type=Number(min=0.0),
        help="Weight of the margin; 0 is maximum likelihood.",
    )


def max_iter_option(estimator: type) -> _Decorator:
    """Return the option for the most iterations."""
    return parameter(
        estimator,
        "max_iter",
        type=click.IntRange(min=1),
        help="When to stop learning at the latest.",
    )


def omega_option(item: str, command: str) -> _Decorator:
    """Return the option for one or more values of omega."""
    return click.option(
        "--omega",
        type=POSITIVE,
        multiple=True,
        default=(1.0,),
        show_default=True,
        callback=lambda context, parameter, value: value if value[1:] else value[0],
        help=f"What a missed {item} costs against one too many; repeat to learn for "
        f"several, and {command} takes any value between them.",
    )

"""Options of commands that learn, each for a parameter of an estimator."""

from __future__ import annotations

from collections.abc import Callable, Iterable
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
    name: str, default: Any, choices: Iterable[str] | None = None, **settings: Any
) -> _Decorator:
    """Return the option for a parameter of an estimator, with its default.

    The default and the choices are written again rather than read from the estimator,
    which takes long to import; a test compares them.
    """
    if choices is not None:
        settings["type"] = click.Choice(list(choices))
    option = f"--{name.replace('_', '-')}"
    return click.option(option, name, default=default, show_default=True, **settings)


def lam_option(default: float) -> _Decorator:
    """Return the option for the weight of the margin."""
    return parameter(
        "lam",
        default,
        type=Number(min=0.0),
        help="Weight of the margin; 0 is maximum likelihood.",
    )


def max_iter_option(default: int) -> _Decorator:
    """Return the option for the most iterations."""
    return parameter(
        "max_iter",
        default,
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

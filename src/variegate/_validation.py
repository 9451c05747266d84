"""Checks of parameters, which raise ValueError; ``name`` is the parameter's name."""

from __future__ import annotations

from collections.abc import Iterable
from numbers import Integral, Real
from typing import Any

import numpy as np


def check_number(name: str, value: Any, *, positive: bool = False) -> None:
    """Raise ValueError unless ``value`` is finite and ≥ 0, or > 0 if ``positive``."""
    is_number = isinstance(value, Real) and not isinstance(value, bool | np.bool_)
    if (
        not is_number
        or not np.isfinite(value)
        or value < 0
        or (positive and value == 0)
    ):
        bound = "> 0" if positive else ">= 0"
        raise ValueError(f"{name} must be a finite number {bound}, got {value!r}")


def check_flag(name: str, value: Any) -> None:
    """Raise ValueError for anything but True and False."""
    if not isinstance(value, bool | np.bool_):
        raise ValueError(f"{name} must be True or False, got {value!r}")


def check_count(name: str, value: Any, least: int = 1) -> None:
    """Raise ValueError for anything but a whole number of at least ``least``."""
    is_count = isinstance(value, Integral) and not isinstance(value, bool | np.bool_)
    if not is_count or value < least:
        raise ValueError(
            f"{name} must be a whole number of at least {least}, got {value!r}"
        )


def check_real(name: str, values: Any) -> None:
    """Raise ValueError for complex numbers, whose imaginary parts would be lost."""
    if np.iscomplexobj(values):
        raise ValueError(f"{name} must hold real numbers, got complex ones")


def check_choice(name: str, value: Any, known: Iterable[str]) -> None:
    """Raise ValueError for a value that is not among the ``known`` ones."""
    if value not in list(known):
        raise ValueError(f"unknown {name} {value!r}; there are {', '.join(known)}")

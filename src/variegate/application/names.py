"""Errors about ground sets, by the names that users know."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from variegate.ground_set import GroundSetError

__all__ = ["by_name"]


@contextmanager
def by_name(names: Sequence[str]) -> Iterator[None]:
    """Say which of some named ground sets an error is about."""
    try:
        yield
    except GroundSetError as error:
        raise ValueError(f"{names[error.position]}: {error.problem}") from error

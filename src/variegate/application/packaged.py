"""Models that come with the package."""

from __future__ import annotations

import copy
from functools import cache
from importlib.resources import as_file, files
from typing import Any

from variegate.files.models import load

__all__ = ["packaged_model"]


def packaged_model(package: str, name: str) -> Any:
    """Return the model in ``models/name`` of a package, read once."""
    # A copy: what one user sets is not what another gets.
    return copy.copy(_read(package, name))


@cache
def _read(package: str, name: str) -> Any:
    with as_file(files(package) / "models" / name) as path:
        return load(path)

"""The model that comes with the package."""

from __future__ import annotations

import copy
from functools import cache
from importlib.resources import as_file, files

from variegate.text.summarizer import Summarizer

__all__ = ["load_default"]


def load_default() -> Summarizer:
    """Return the summarizer that comes with the package: see ``models/news.md``."""
    # A copy: what one user sets is not what another gets.
    return copy.copy(_read())


@cache
def _read() -> Summarizer:
    with as_file(files("variegate.text") / "models" / "news.json") as path:
        return Summarizer.load(path)

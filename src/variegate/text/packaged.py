"""The model that comes with the package."""

from __future__ import annotations

from functools import cache
from importlib.resources import as_file, files

from variegate.text.summarizer import Summarizer

__all__ = ["load_default"]


@cache
def load_default() -> Summarizer:
    """Return the summarizer that comes with the package: see ``models/news.md``."""
    with as_file(files("variegate.text") / "models" / "news.json") as path:
        return Summarizer.load(path)

"""The model that comes with the package."""

from __future__ import annotations

import copy
from functools import cache
from importlib.resources import as_file, files

from variegate.video.picker import KeyframePicker

__all__ = ["load_default"]


def load_default() -> KeyframePicker:
    """Return the picker that comes with the package: see ``models/videos.md``."""
    # A copy: what one user sets is not what another gets.
    return copy.copy(_read())


@cache
def _read() -> KeyframePicker:
    with as_file(files("variegate.video") / "models" / "videos.json") as path:
        return KeyframePicker.load(path)

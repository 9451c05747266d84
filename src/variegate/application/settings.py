"""Settings of applications in model files."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from variegate.persistence import ModelFileError

__all__ = ["decode_settings", "encode_settings"]


def encode_settings(
    settings: Mapping[str, Any], not_stored: Sequence[str] = ()
) -> dict[str, Any]:
    """Return settings as plain values."""
    return {
        name: _plain(value)
        for name, value in settings.items()
        if name not in not_stored
    }


def _plain(value: Any) -> Any:
    if isinstance(value, np.random.Generator):
        return None  # a position in a stream is not part of a model
    if isinstance(value, np.ndarray | np.generic):
        return value.tolist()
    if isinstance(value, list | tuple):
        return [_plain(entry) for entry in value]
    if value is None or isinstance(value, bool | int | float | str):
        return value
    return str(value)


def decode_settings(
    document: Mapping[str, Any], known: Sequence[str]
) -> dict[str, Any]:
    """Return the settings of a file, all of them known."""
    settings = document.get("settings")
    if not isinstance(settings, dict):
        raise ModelFileError('the section "settings" is missing')
    unknown = sorted(set(settings) - set(known))
    if unknown:
        raise ModelFileError(f"unknown settings: {', '.join(unknown)}")
    return settings

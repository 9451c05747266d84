"""What the model files of applications share: settings, and a model for each omega."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from variegate import persistence
from variegate.estimator import LargeMarginDPP
from variegate.kernels import Kernel
from variegate.persistence import ModelFileError

__all__ = ["decode_models", "decode_settings", "encode_models", "encode_settings"]


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


def encode_models(
    omegas: Sequence[float], models: Sequence[LargeMarginDPP]
) -> list[dict[str, Any]]:
    """Return models as plain values."""
    return [
        {"omega": omega, **persistence.encode(fitted)}
        for omega, fitted in zip(omegas, models, strict=True)
    ]


def decode_models(
    document: Mapping[str, Any],
    kernels: Sequence[type[Kernel]],
    features: str,
    n_features: int,
) -> tuple[tuple[float, ...], tuple[LargeMarginDPP, ...]]:
    """Return the omegas of a file, sorted, and the model of each."""
    entries = document.get("models")
    if not isinstance(entries, list) or not entries:
        raise ModelFileError('the section "models" is missing')
    entries = sorted(entries, key=lambda entry: float(entry["omega"]))
    models = tuple(persistence.decode(entry, kernels) for entry in entries)
    for entry, model in zip(entries, models, strict=True):
        if not np.isfinite(entry["omega"]) or entry["omega"] <= 0.0:
            raise ModelFileError(
                f'"omega" is {entry["omega"]!r}, not a positive number'
            )
        if len(model.theta_) != n_features:
            raise ModelFileError(
                f"{len(model.theta_)} weights for the {n_features} features of "
                f"{features!r}"
            )
    return tuple(float(entry["omega"]) for entry in entries), models

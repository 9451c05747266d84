"""Pickers in files: the format of :mod:`variegate.persistence`, several at once."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from variegate import persistence
from variegate.application.settings import decode_settings, encode_settings
from variegate.kernels import Kernel
from variegate.persistence import ModelFileError
from variegate.tuning import OmegaFamily
from variegate.video.fisher import FisherEncoder
from variegate.video.picker import KeyframePicker
from variegate.video.view import feature_names

__all__ = ["decode", "load", "save"]

_TYPE = "keyframe-picker"


def save(model: KeyframePicker, path: str | Path) -> None:
    """Write a fitted picker."""
    content = {
        "type": _TYPE,
        "settings": encode_settings(model.get_params(deep=False)),
        "patterns": model.encoder_.to_dict(),
        "models": OmegaFamily(model.omegas_, model.models_).encode(),
        "training": model.training_,
    }
    persistence.write_document(content, path)


def load(path: str | Path) -> KeyframePicker:
    """Read a picker."""
    model = persistence.load(path)
    if not isinstance(model, KeyframePicker):
        raise ModelFileError(f"{path} holds a {type(model).__name__}, no key frames")
    return model


def decode(
    document: Mapping[str, Any], kernels: Sequence[type[Kernel]] = ()
) -> KeyframePicker:
    """Return the picker that a file describes."""
    known = sorted(KeyframePicker().get_params(deep=False))
    picker = KeyframePicker(**decode_settings(document, known))
    picker._check_parameters()
    features = picker.features
    family = OmegaFamily.decode(
        document, kernels, features, len(feature_names(features))
    )
    picker.omegas_, picker.models_ = family.omegas, family.models
    patterns = document.get("patterns")
    if not isinstance(patterns, dict):
        raise ModelFileError('the section "patterns" is missing')
    picker.encoder_ = FisherEncoder.from_dict(patterns)
    picker.training_ = dict(document.get("training", {}))
    return picker

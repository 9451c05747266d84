"""The settings of a neural model, checked before the work."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
from torch import nn

from variegate._random import check_random_state
from variegate._validation import check_count, check_flag, check_number
from variegate.decoding import as_decoder
from variegate.learning.device_name import device_named
from variegate.torch.neural.networks import ROLES

if TYPE_CHECKING:
    from variegate.torch.neural.estimator import NeuralDPP

__all__ = ["as_device", "check_settings"]

_COUNTS = ("n_hidden", "n_embedding", "n_kinds", "batch_size", "max_epochs", "patience")


def check_settings(model: NeuralDPP) -> None:
    """Refuse what cannot be, and say what is wrong with it."""
    for name in ("lam", "omega", "jitter", "weight_decay", "validation_fraction"):
        check_number(name, getattr(model, name))
    check_number("learning_rate", model.learning_rate, positive=True)
    if model.validation_fraction >= 1.0:
        raise ValueError(
            f"validation_fraction must be below 1, got {model.validation_fraction!r}"
        )
    for name in _COUNTS:
        check_count(name, getattr(model, name))
    for name in ("standardize", "warm_start", "verbose"):
        check_flag(name, getattr(model, name))
    for role in ROLES:
        module = getattr(model, role)
        if module is not None and not isinstance(module, nn.Module):
            raise ValueError(
                f"{role} must be a torch.nn.Module or None, got {module!r}"
            )
    if model.callback is not None and not callable(model.callback):
        raise ValueError(f"callback must be callable, got {model.callback!r}")
    check_random_state(model.random_state)
    as_decoder(model.decoder)
    as_device(model.device)


def as_device(device: str | None) -> torch.device:
    """Return the device that a name stands for; "auto" is a GPU where there is one."""
    return torch.device(device_named(device) or "cpu")

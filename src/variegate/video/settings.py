"""Checks of the settings of a :class:`KeyframePicker`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from variegate._random import check_random_state
from variegate._validation import check_choice, check_count, check_flag, check_number
from variegate.tuning.family import as_omegas
from variegate.video.decoding import (
    CONSENSUS,
    SEARCHES,
    VIDEO_DECODERS,
)
from variegate.video.training import TARGETS
from variegate.video.view import BLOCKS

__all__ = ["check_settings", "choosing_settings"]


def check_settings(settings: Mapping[str, Any]) -> None:
    """Refuse settings that cannot be."""
    check_choice("targets", settings["targets"], TARGETS)
    check_choice("decoder", settings["decoder"], VIDEO_DECODERS)
    check_choice("search", settings["search"], SEARCHES)
    check_choice("consensus", settings["consensus"], CONSENSUS)
    blocks = settings["blocks"]
    if isinstance(blocks, str) or not len(blocks):
        raise ValueError(f"blocks must be a list of names, got {blocks!r}")
    for block in blocks:
        check_choice("block", block, BLOCKS)
    for name in ("lam", "l2"):
        check_number(name, settings[name])
    for name in ("max_iter", "n_samples"):
        check_count(name, settings[name])
    check_random_state(settings["random_state"])
    for name in ("beta", "max_similarity", "default_omega"):
        check_number(name, settings[name], positive=True)
    check_flag("verbose", settings["verbose"])
    as_omegas(settings["omega"])


def choosing_settings(settings: Mapping[str, Any]) -> dict[str, Any]:
    """Return the settings of how frames are chosen."""
    names = ("decoder", "search", "consensus", "beta", "n_samples")
    return {name: settings[name] for name in names}

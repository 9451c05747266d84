"""Which groups: those to learn from, those to hold out, those with these numbers."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from variegate._typing import IntArray
from variegate._validation import check_choice
from variegate.application.refusal import Setting
from variegate.application.table_defaults import EMPTY_GROUPS
from variegate.ground_set import GroundSet
from variegate.report.words import count
from variegate.tables.columns import no_label
from variegate.tables.groups import Group, Groups
from variegate.tables.survey import Survey
from variegate.tables.table import TableError

__all__ = ["examples", "only", "split", "usable_groups"]


def usable_groups(survey: Survey, empty_groups: str) -> IntArray:
    """Return numbers of the groups with chosen rows, or of all of them."""
    check_choice("empty_groups", empty_groups, EMPTY_GROUPS)
    n_chosen = survey.n_chosen
    if n_chosen is None:
        raise no_label()
    names = survey.index.names
    if not n_chosen.any():
        where = f" in column {survey.columns.label!r}" if survey.columns.label else ""
        raise TableError(f"no row is labelled 1{where}: nothing was chosen")
    empty = n_chosen == 0
    if empty.any() and empty_groups == "error":
        n_empty, drop = int(empty.sum()), Setting("empty_groups", "drop")
        raise TableError(
            f"{n_empty:,} of {len(names):,} groups "
            f"{'has' if n_empty == 1 else 'have'} no chosen row, the first is "
            f"{names[int(np.argmax(empty))]!r}: leave such groups out (",
            drop,
            "), or take it that nothing was to be chosen there (",
            Setting("empty_groups", "keep"),
            ")",
            fixes=[drop],
        )
    return np.flatnonzero(~empty) if empty_groups == "drop" else np.arange(len(names))


def split(usable: IntArray, fraction: float, seed: int) -> tuple[IntArray, IntArray]:
    """Return numbers of the groups to learn from, and of those to hold out."""
    if fraction == 0.0:
        return usable, usable[:0]
    n_held_out = round(fraction * len(usable))
    if not 0 < n_held_out < len(usable):
        none = Setting("validation_fraction", 0)
        raise TableError(
            f"{count(len(usable), 'group')} cannot be split into a share of "
            f"{fraction:g} to hold out and the rest to learn from: give more groups, "
            "or hold out none: ",
            none,
            fixes=[none],
        )
    shuffled = np.random.default_rng(seed).permutation(usable)
    return np.sort(shuffled[n_held_out:]), np.sort(shuffled[:n_held_out])


def examples(
    groups: Groups, numbers: IntArray
) -> tuple[list[GroundSet], list[IntArray]]:
    """Return some groups as ground sets and subsets."""
    some = list(only(groups, numbers))
    return [group.ground_set for group in some], [group.wanted() for group in some]


def only(groups: Groups, numbers: IntArray) -> Iterator[Group]:
    """Yield the groups with these numbers."""
    return groups.only(numbers)

"""A few groups as people look at them: what was chosen beside what was wanted."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from variegate import metrics
from variegate._typing import IntArray
from variegate.tables.cells import RowTexts
from variegate.tables.choosing import Chooser
from variegate.tables.groups import Group

__all__ = ["ExampleGroup", "ExampleRow", "example_groups"]


@dataclass(frozen=True)
class ExampleRow:
    """A row to be looked at: its rank is from 1 for chosen rows, and 0 for others.

    The probability is that the model includes it; a row labelled 1 is wanted.
    """

    cells: tuple[str, ...]
    rank: int
    probability: float
    is_wanted: bool


@dataclass(frozen=True)
class ExampleGroup:
    """A group to be looked at; ``f`` is the F-score of what was chosen from it."""

    name: str
    rows: tuple[ExampleRow, ...]
    f: float


def example_groups(
    texts: RowTexts, groups: Sequence[Group], chooser: Chooser, show: Sequence[str]
) -> list[ExampleGroup]:
    """Return groups with the cells of the columns ``show`` as text.

    Only rows that are chosen or wanted are in them, and next to these the most
    probable of the others.
    """
    if not groups:
        return []
    choices = [chooser(group) for group in groups]
    wanted_rows = np.concatenate([group.rows for group in groups])
    cells = texts(np.sort(wanted_rows), show)
    examples = []
    for group, choice in zip(groups, choices, strict=True):
        assert group.chosen is not None  # examples are made of labelled groups
        assert choice.probability is not None  # and by a model
        rank = np.zeros(len(group), dtype=np.int64)
        rank[choice.order] = np.arange(1, len(choice.order) + 1)
        rows = [
            ExampleRow(
                cells[int(group.rows[i])],
                int(rank[i]),
                float(choice.probability[i]),
                bool(group.chosen[i]),
            )
            for i in _worth_showing(rank, choice.probability, group.chosen)
        ]
        f = metrics.f_score(choice.order, group.chosen)
        examples.append(ExampleGroup(str(group.name), tuple(rows), f))
    return examples


def _worth_showing(rank: IntArray, probability: Any, wanted: Any) -> list[int]:
    """Return chosen rows by rank, then missed ones, then three near misses."""
    chosen = np.flatnonzero(rank)
    by_rank = chosen[np.argsort(rank[chosen])]
    rest = np.flatnonzero(rank == 0)
    rest = rest[np.argsort(-probability[rest], kind="stable")]
    missed = rest[wanted[rest]]
    others = rest[~wanted[rest]][:3]
    return [*by_rank.tolist(), *missed.tolist(), *others.tolist()]

"""Scores of choices by the subtopics of the wanted rows of a group."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from variegate import metrics
from variegate._typing import IntArray
from variegate.tables.encoded import Group

#: The scores of a choice by the subtopics of wanted rows.
SUBTOPIC_SCORES = ("subtopic_recall", "alpha_ndcg", "intent_aware_precision")


def subtopic_scores(
    group: Group, orders: Sequence[IntArray], wanted: IntArray
) -> list[tuple[float, ...]]:
    """Return ``SUBTOPIC_SCORES`` of each order; an empty list without subtopics.

    Orders are positions, best first.  Only rows at the positions ``wanted`` cover
    subtopics; scores are NaN where none has any.  Rankings are compared with the ideal
    one to the depth of the number of wanted rows.
    """
    if group.subtopics is None:
        return []
    names: list[tuple[str, ...]] = [()] * len(group)
    for row in wanted.tolist():
        names[row] = group.subtopics[row]
    J = metrics.subtopic_matrix(names)
    if not J.shape[1]:
        return [(np.nan,) * len(SUBTOPIC_SCORES)] * len(orders)
    return [
        (
            metrics.subtopic_recall(order, J),
            metrics.alpha_ndcg(order, J, len(wanted)),
            metrics.intent_aware_precision(order, J),
        )
        for order in orders
    ]

"""How unlike each other the chosen rows of a group are."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple, TypeAlias

import numpy as np

from variegate._typing import FloatArray, IntArray
from variegate.application.model_facts import learned_kinds
from variegate.estimator import LargeMarginDPP
from variegate.ground_set import GroundSet
from variegate.linalg.cosine import unit_rows
from variegate.tables.groups import Group

__all__ = ["NEAR_COPY", "Diversity", "DiversityJudge", "kinds_by"]

#: Rows whose cosine is above this are near copies of each other.
NEAR_COPY = 0.95

#: Rows that are compared with all others at a time.
_CHUNK = 1024

#: From a ground set to the number of the most probable kind of every item.
KindsOf: TypeAlias = Callable[[GroundSet], IntArray]


class Diversity(NamedTuple):
    """What the chosen rows of one group are like.

    The mean cosine of two of them, NaN where there are fewer than two; how many are
    near copies of another; and how many kinds they are of, NaN where the model knows no
    kinds.
    """

    similarity: float
    copies: float
    kinds: float


@dataclass(frozen=True, eq=False)
class DiversityJudge:
    """Judges rows by the encoded similarity columns, and by the kinds of a model."""

    kinds_of: KindsOf | None = None

    def __call__(self, group: Group, chosen: IntArray) -> Diversity:
        """Return what some rows of a group are like."""
        F = unit_rows(group.embeddings()[chosen])
        kinds = np.nan
        if self.kinds_of is not None:
            of_each = self.kinds_of(group.take(chosen)) if len(chosen) else chosen
            kinds = float(len(np.unique(of_each)))
        return Diversity(_mean_cosine(F), float(_n_copies(F)), kinds)


def _mean_cosine(F: FloatArray) -> float:
    """Return the mean over pairs: ``Σ_{i≠j} f_i · f_j = |Σ f_i|² - Σ |f_i|²``."""
    n = len(F)
    if n < 2:
        return float("nan")
    total = F.sum(axis=0)
    return float(total @ total - np.vdot(F, F)) / (n * (n - 1))


def _n_copies(F: FloatArray) -> int:
    n_copies = 0
    for first in range(0, len(F), _CHUNK):
        S = F[first : first + _CHUNK] @ F.T
        rows = np.arange(len(S))
        S[rows, first + rows] = 0.0
        n_copies += int((S > NEAR_COPY).any(axis=1).sum())
    return n_copies


def kinds_by(model: LargeMarginDPP) -> KindsOf | None:
    """Return what tells the kinds of items, None if the kernel knows no kinds.

    Of several in a mixture, that with the largest weight.
    """
    found = learned_kinds(model)
    if not found:
        return None
    kinds = max(found, key=lambda one: one.weight)
    return lambda group: kinds.kernel.kinds(group, kinds.parameters).argmax(axis=1)

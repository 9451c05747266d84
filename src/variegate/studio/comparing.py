"""Which similarity suits the picks best: a thorough comparison, now and then.

It is that of :class:`variegate.tuning.kernel_search.KernelSearch`, as ``variegate fit``
makes it, among the similarities that DATA allows, on groups held out in turn; made when
4, 8, 16, 32, ... groups are done.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning

from variegate.estimator import AllAlikeWarning, LargeMarginDPP
from variegate.kernels import FixedKernel, Linear, MultipleKernel
from variegate.studio.lessons import ESTIMATOR, Example, Lesson
from variegate.tuning.kernel_search import KernelSearch, Winner

__all__ = ["Comparison", "compare", "is_compared"]

#: Groups without which nothing is compared, and at most that it is done on.
_FEWEST = 4
_MOST = 150


@dataclass(frozen=True, eq=False)
class Comparison:
    """What came out: a lesson to learn by from now on, and a sentence about it."""

    lesson: Lesson
    n_groups: int
    sentence: str


def is_compared(n: int) -> bool:
    """Return whether a comparison is made once so many groups are done."""
    return n >= _FEWEST and n & (n - 1) == 0


def compare(lessons: Mapping[str, Lesson], examples: Sequence[Example]) -> Comparison:
    """Return the lesson that does best on groups held out in turn."""
    some = list(examples)[-_MOST:]
    kernels: dict[str, Any] = {
        name: lesson.estimator.kernel for name, lesson in lessons.items()
    }
    fixed = tuple(
        name
        for name, kernel in kernels.items()
        if isinstance(kernel, FixedKernel | MultipleKernel)
    )
    search = KernelSearch(
        clone(ESTIMATOR),
        kernels,
        Linear(),
        fixed,
        decoders=("greedy",),
        varies=("penalty", "l2"),
        tries_sizes=False,
    )
    ground_sets = [ground_set for ground_set, _ in some]
    picks = [picked for _, picked in some]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        warnings.simplefilter("ignore", AllAlikeWarning)
        winner = search.run(ground_sets, picks)
    model: LargeMarginDPP = clone(winner.contender.model)
    name = winner.standings[0].name
    return Comparison(Lesson(name, model), len(some), _sentence(winner, len(some)))


def _sentence(winner: Winner, n_groups: int) -> str:
    first, *others = winner.standings
    scores = ", ".join(f"{one.name} {one.mean:.2f}" for one in others)
    return (
        f"Of the similarities compared on {n_groups} groups held out in turn, "
        f"{first.name} did best (F {first.mean:.2f}"
        + (f"; {scores})." if scores else ").")
    )

"""How much may be chosen from each group, the same for all that are compared."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from variegate._validation import check_count, check_number
from variegate.tables.choosing import Choice
from variegate.tables.groups import Group
from variegate.tables.ways import Chooser

__all__ = ["WANTED", "Terms"]

#: In place of a number: as many rows as are labelled 1 in a group.
WANTED = "wanted"


@dataclass(frozen=True)
class Terms:
    """At most ``k`` rows, or as many as are "wanted", that cost no more than a budget.

    Where neither is given, the terms are free.
    """

    k: int | str | None = None
    budget: float | None = None

    def __post_init__(self) -> None:
        """Refuse terms that make no sense."""
        if self.k is not None and self.k != WANTED:
            check_count("k", self.k)
        if self.budget is not None:
            check_number("budget", self.budget, positive=True)

    @property
    def are_free(self) -> bool:
        """Whether each may choose as much as it likes."""
        return self.k is None and self.budget is None

    def __str__(self) -> str:
        words = []
        if self.k is not None:
            words.append("as many as wanted" if self.k == WANTED else f"k = {self.k}")
        if self.budget is not None:
            words.append(f"budget {self.budget:g}")
        return ", ".join(words)

    def with_k(self, k: int) -> Terms:
        """Return the terms with a number of rows, if they have none."""
        return self if self.k is not None else replace(self, k=k)

    def way(
        self, make: Callable[[int | None, float | None], Chooser]
    ) -> Callable[[Group], Choice]:
        """Return a chooser that keeps the terms, made with ``k`` and a budget."""
        if not isinstance(self.k, str):
            return make(self.k, self.budget)
        return lambda group: make(len(group.wanted()), self.budget)(group)

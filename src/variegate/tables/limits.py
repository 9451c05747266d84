"""Limits on the rows that are chosen from a group."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Self

from variegate._validation import check_count, check_number
from variegate.application.refusal import Setting
from variegate.decoding import Constraint
from variegate.report.wording import count
from variegate.tables.encoded import Group
from variegate.tables.errors import TableError

#: In place of a number: as many rows as are labelled 1 in a group.
WANTED = "wanted"


@dataclass(frozen=True)
class Limit:
    """At most ``k`` rows, or as many as are "wanted", within a budget and ``at_most``.

    Of rows with the same value in the column ``per[i]``, at most ``at_most[i]`` are
    chosen.  Without ``k``, a chooser decides how many.
    """

    k: int | str | None = None
    budget: float | None = None
    at_most: tuple[int, ...] = ()
    per: tuple[str, ...] = ()

    @classmethod
    def of(
        cls, k: Any = None, budget: Any = None, at_most: Any = None, per: Any = None
    ) -> Self:
        """Return a checked limit; ``at_most`` and ``per`` may be sequences, or None."""
        if k is not None and k != WANTED:
            check_count("k", k)
        if budget is not None:
            check_number("budget", budget, positive=True)
        several = at_most if isinstance(at_most, Sequence) else [at_most]
        columns = per if not isinstance(per, str) and per is not None else [per]
        numbers = tuple(one for one in several if one is not None)
        names = tuple(one for one in columns if one is not None)
        for number in numbers:
            check_count("at_most", number)
        if len(numbers) != len(names):
            raise TableError(
                f"{count(len(numbers), 'number')} in ",
                Setting("at_most"),
                f" and {count(len(names), 'column')} in ",
                Setting("per"),
                ": give a number for each column, the most rows with the same value "
                "in it",
            )
        return cls(k, budget, numbers, names)

    def __bool__(self) -> bool:
        """Return whether anything is limited."""
        return self != NO_LIMIT

    def __str__(self) -> str:
        """Return the limit as text, such as "k = 3, at most 1 per genre"."""
        words = []
        if self.k is not None:
            words.append("as many as wanted" if self.k == WANTED else f"k = {self.k}")
        if self.budget is not None:
            words.append(f"budget {self.budget:g}")
        pairs = zip(self.at_most, self.per, strict=True)
        return ", ".join(words + [f"at most {most} per {name}" for most, name in pairs])

    def with_k(self, k: int | None) -> Self:
        """Return the limit with ``k`` rows where it has no number of rows yet."""
        return self if self.k is not None else replace(self, k=k)

    def size(self, group: Group) -> int | None:
        """Return the number of rows to choose, None without ``k``.

        For "wanted", it is the number of rows labelled 1.
        """
        return len(group.wanted()) if self.k == WANTED else self.k  # type: ignore[return-value]

    def constraint(self, group: Group, rows: Any = slice(None)) -> Constraint:
        """Return the budget and ``at_most``, without ``k``, for rows of a group.

        ``rows`` are their positions, by default all.  A budget needs costs.
        """
        costs, per = None, [labels[rows] for labels in group.per if self.per]
        if self.budget is not None:
            if group.costs is None:
                raise TableError("a budget needs a column of costs")
            costs = group.costs[rows]
        n_rows = len(group.rows[rows])
        limits = (self.at_most, per) if per else (None, None)
        return Constraint.of(n_rows, None, self.budget, costs, *limits)


#: Without a limit, a chooser decides by itself how many rows to choose.
NO_LIMIT = Limit()


def warn_of_few_rows(n_short: int, n_groups: int, limit: Limit) -> None:
    """Warn that ``at_most`` allows fewer than ``k`` rows in ``n_short`` > 0 groups."""
    if n_short:
        warnings.warn(
            f"fewer than {count(int(limit.k or 0), 'row')} could be chosen from "
            f"{n_short:,} of {count(n_groups, 'group')}: "
            f"{replace(limit, k=None)} leaves no more",
            UserWarning,
            stacklevel=4,
        )

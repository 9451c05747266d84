"""Choosers to compare on the same groups: models, rivals and untrained methods."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING

from variegate._progress import Progress, ignore
from variegate._typing import IntArray
from variegate._validation import check_choice, check_count, check_number
from variegate.baselines import METHODS
from variegate.baselines.learned import Rival, learned_rivals
from variegate.tables.choosing import ByMethod, Choice, Chooser, map_groups
from variegate.tables.encoded import Group
from variegate.tables.errors import TableError
from variegate.tables.groups import Groups

if TYPE_CHECKING:
    from variegate.tables.fitted import FittedSelector

Choosers = Mapping[str, Chooser]

#: In place of a number: as many rows as are labelled 1 in a group.
WANTED = "wanted"

#: Groups that rivals learn from, at most.
MAX_GROUPS = 2000


@dataclass(frozen=True)
class SizeLimit:
    """At most ``k`` rows, or as many as are "wanted", that cost no more than a budget.

    Without either, a chooser decides by itself how many rows to choose.
    """

    k: int | str | None = None
    budget: float | None = None

    def __post_init__(self) -> None:
        if self.k is not None and self.k != WANTED:
            check_count("k", self.k)
        if self.budget is not None:
            check_number("budget", self.budget, positive=True)

    def __bool__(self) -> bool:
        return self.k is not None or self.budget is not None

    def __str__(self) -> str:
        words = []
        if self.k is not None:
            words.append("as many as wanted" if self.k == WANTED else f"k = {self.k}")
        if self.budget is not None:
            words.append(f"budget {self.budget:g}")
        return ", ".join(words)

    def with_k(self, k: int) -> SizeLimit:
        """Return the limit with a number of rows, if it has none."""
        return self if self.k is not None else replace(self, k=k)

    @property
    def number(self) -> int | None:
        """The number of rows, where it is the same for all groups."""
        return None if isinstance(self.k, str) else self.k

    def limit_chooser(self, chooser: Chooser) -> Chooser:
        """Limit a chooser to ``number`` rows, or to the number labelled 1."""
        return partial(_choose_wanted, chooser=chooser) if self.k == WANTED else chooser


def _choose_wanted(group: Group, chooser: Chooser) -> Choice:
    """Choose as many rows as are labelled 1 in the group."""
    return chooser(group, len(group.wanted()))


def method_choosers(
    methods: Sequence[str], limit: SizeLimit, diversity: float, seed: int = 0
) -> dict[str, Chooser]:
    """Return untrained methods by name; the name says how many rows each chooses."""
    for name in methods:
        check_choice("method", name, METHODS)
    return {
        f"{name} ({limit})": limit.limit_chooser(
            ByMethod(name, limit.number, limit.budget, diversity, seed)
        )
        for name in methods
    }


def model_choosers(
    name: str, selector: FittedSelector, omega: float | None, limit: SizeLimit
) -> dict[str, Chooser]:
    """Return a model that decides how much to choose, and one within the limit."""
    choosers = {name: selector._make_chooser(omega)}
    if limit:
        chooser = selector._make_chooser(omega, limit.number, limit.budget)
        choosers[f"{name} ({limit})"] = limit.limit_chooser(chooser)
    return choosers


def rival_choosers(rivals: Mapping[str, Rival], limit: SizeLimit) -> dict[str, Chooser]:
    """Return rivals within a limit; without one, of as many rows as was best.

    With a budget and no number of rows, at most as many.
    """
    choosers = {}
    for name, rival in rivals.items():
        own = limit.with_k(rival.k)
        shown = limit if limit.budget is not None else own
        how = (rival.method, own.number, own.budget, rival.diversity)
        chooser = ByMethod(*how, relevance=rival.relevance)
        choosers[f"{name} ({shown})"] = own.limit_chooser(chooser)
    return choosers


def learn_rivals(
    groups: Groups,
    numbers: IntArray,
    seed: int = 0,
    *,
    budget: float | None = None,
    memory: int,
    progress: Progress = ignore,
) -> dict[str, Rival]:
    """Learn rivals from as many of the groups as there is memory for.

    Their ``k`` is the best on these groups, within the budget if there is one.
    """
    progress("learning baselines", 0, 1)
    n_rows = memory // (8 * max(groups.encoding.width, 1))
    drawn = groups.sample(numbers, seed, MAX_GROUPS, n_rows)
    if not len(drawn):
        raise TableError("there are no groups that baselines could learn from")
    rivals = learned_rivals(*groups.examples(drawn), seed, budget=budget)
    progress("learning baselines", 1, 1)
    return rivals


def memoize_choices(
    groups: Iterable[Group], choosers: Choosers, n_jobs: int | None
) -> dict[str, Chooser]:
    """Choose from groups once; return choosers that look these choices up.

    For groups of the same numbers, whose features may be others.
    """

    def choose_with_all(group: Group) -> list[Choice]:
        """Return the choice of every chooser from one group."""
        found = (chooser(group) for chooser in choosers.values())
        # Without the probabilities, which take the room of all rows.
        return [choice._replace(probability=None) for choice in found]

    kept = {
        group.number: found
        for group, found in map_groups(choose_with_all, groups, n_jobs)
    }
    return {
        name: lambda group, place=place: kept[group.number][place]
        for place, name in enumerate(choosers)
    }

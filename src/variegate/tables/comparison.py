"""Choosers to compare on the same groups: models, rivals and untrained methods."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

from variegate._progress import Progress, ignore
from variegate._typing import IntArray
from variegate._validation import check_choice
from variegate.baselines import METHODS
from variegate.baselines.learned import Rival, learned_rivals
from variegate.tables.choosing import ByMethod, Choice, Chooser, map_groups
from variegate.tables.encoded import Group
from variegate.tables.errors import TableError
from variegate.tables.groups import Groups
from variegate.tables.limits import Limit

if TYPE_CHECKING:
    from variegate.tables.fitted import FittedSelector

Choosers = Mapping[str, Chooser]

#: Groups that rivals learn from, at most.
MAX_GROUPS = 2000


def method_choosers(
    methods: Sequence[str], limit: Limit, diversity: float, seed: int = 0
) -> dict[str, Chooser]:
    """Return untrained methods by name; the name says how many rows each chooses."""
    for name in methods:
        check_choice("method", name, METHODS)
    return {
        f"{name} ({limit})": ByMethod(name, limit, diversity, seed) for name in methods
    }


def model_choosers(
    name: str, selector: FittedSelector, omega: float | None, limit: Limit
) -> dict[str, Chooser]:
    """Return a model without a limit and, if there is a limit, the model within it."""
    choosers = {name: selector._make_chooser(omega)}
    if limit:
        omega = omega if limit.k is None else None
        choosers[f"{name} ({limit})"] = selector._make_chooser(omega, limit)
    return choosers


def rival_choosers(rivals: Mapping[str, Rival], limit: Limit) -> dict[str, Chooser]:
    """Return choosers of rivals; a limit without ``k`` takes each rival's own.

    Names say ``k`` or the limit.
    """
    choosers: dict[str, Chooser] = {}
    for name, rival in rivals.items():
        own = limit.with_k(rival.k)
        shown = limit if limit.budget is not None else own
        method = ByMethod(rival.method, own, rival.diversity, relevance=rival.relevance)
        choosers[f"{name} ({shown})"] = method
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
    """Learn rivals, by name, from groups by number, as many as fit in memory.

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
    """Choose from groups once; return choosers that look choices up by group number.

    The groups that are looked up may have other features.
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

    def look_up(place: int) -> Chooser:
        """Return a chooser that looks its choices up."""
        return lambda group: kept[group.number][place]

    return {name: look_up(place) for place, name in enumerate(choosers)}

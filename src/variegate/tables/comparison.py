"""Choosers to compare on the same groups: models, rivals and untrained methods."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from variegate._progress import Progress, ignore
from variegate._typing import FloatArray, IntArray
from variegate._validation import check_choice
from variegate.baselines import METHODS
from variegate.baselines.learned import Relevance, Rival, learned_rivals
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
    """Return choosers by untrained methods, by the name "METHOD (LIMIT)".

    ``diversity`` is from 0 (relevance only) to 1; the seed is for random methods.
    """
    for name in methods:
        check_choice("method", name, METHODS)
    return {
        f"{name} ({limit})": ByMethod(name, limit, diversity, seed) for name in methods
    }


def model_choosers(
    name: str, selector: FittedSelector, omega: float | None, limit: Limit
) -> dict[str, Chooser]:
    """Return choosers by a model, "NAME" without a limit and "NAME (LIMIT)" within it.

    The second is there if anything is limited.  ``omega``, None for the model's own,
    does not count in it where the limit has a ``k``.
    """
    choosers = {name: selector._make_chooser(omega)}
    if limit:
        omega = omega if limit.k is None else None
        choosers[f"{name} ({limit})"] = selector._make_chooser(omega, limit)
    return choosers


def rival_choosers(rivals: Mapping[str, Rival], limit: Limit) -> dict[str, Chooser]:
    """Return choosers by rivals, each of its own ``k`` rows where the limit has none.

    Their names are that of the rival and its ``k`` or, with a budget, the limit.
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
    """Learn rivals, by name, from a sample of the groups with these numbers.

    A rival is a learned relevance and a method that goes by it.  Its ``k`` is the best
    on the sample, within the budget; the sample's features fit in ``memory`` bytes.
    Rivals do not see boosted log-odds, which may be of trees fitted to these groups.
    """
    progress("learning baselines", 0, 1)
    is_boosted = groups.encoding.boosting is not None
    if is_boosted:
        groups = groups.without_boosting()
    n_rows = memory // (8 * max(groups.encoding.width, 1))
    drawn = groups.sample(numbers, seed, MAX_GROUPS, n_rows)
    if not len(drawn):
        raise TableError("there are no groups that baselines could learn from")
    rivals = learned_rivals(*groups.examples(drawn), seed, budget=budget)
    if is_boosted:
        rivals = {
            name: replace(rival, relevance=_OfOtherFeatures(rival.relevance))
            for name, rival in rivals.items()
        }
    progress("learning baselines", 1, 1)
    return rivals


@dataclass(frozen=True, eq=False)
class _OfOtherFeatures:
    """A relevance by all quality features but the last."""

    relevance: Relevance

    def __call__(self, quality: FloatArray) -> FloatArray:
        return self.relevance(quality[:, :-1])


def memoize_choices(
    groups: Iterable[Group], choosers: Choosers, n_jobs: int | None
) -> dict[str, Chooser]:
    """Choose from groups once; return choosers that look choices up by group number.

    The groups looked up may have other features.  Choices have no probabilities.
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
        """Return a chooser with the kept choices of chooser number ``place``."""
        return lambda group: kept[group.number][place]

    return {name: look_up(place) for place, name in enumerate(choosers)}

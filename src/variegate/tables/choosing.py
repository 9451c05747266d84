"""From groups to choices: by a learned model, or by a method that learns nothing."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import chain
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias, TypeVar

import numpy as np
from joblib import effective_n_jobs
from threadpoolctl import threadpool_limits

from variegate._progress import Progress, ignore
from variegate._typing import BoolArray, FloatArray, IntArray
from variegate.application.base import best_by_quality
from variegate.baselines.learned import Ordering
from variegate.decoding import Constraint
from variegate.decoding.residuals import rank_members
from variegate.ground_set import GroundSet, GroundSetError
from variegate.partitions.engine import map_in_threads
from variegate.selection import Selection
from variegate.tables.encoded import Group
from variegate.tables.errors import TableError
from variegate.tables.groups import Groups, reword_for_rows

if TYPE_CHECKING:
    from variegate.decoding import Decoder
    from variegate.estimator import LargeMarginDPP

#: Rows of a larger group that are candidates: those of the highest quality.
MAX_CANDIDATES = 2000

_Result = TypeVar("_Result")


class Choice(NamedTuple):
    """Rows chosen from a group: positions in it, best first.

    Of a model, ``probability`` has that of each row to be chosen, NaN for rows of a
    large group that are not candidates, and ``ending`` says how the search ended:
    ``stop_reason``, ``gap`` and ``is_optimal`` of a :class:`variegate.Selection`.
    """

    order: IntArray
    probability: FloatArray | None = None
    ending: dict[str, Any] | None = None


#: Chooses from a group; a second argument overrides its number of rows.
Chooser: TypeAlias = Callable[..., Choice]


@dataclass(frozen=True, eq=False)
class ByModel:
    """Choose by a learned model.

    Rows are ranked by what each adds to those before it: first the one of the highest
    quality, next the one that raises the determinant most, and so on.  Of a group with
    no more than ``k`` rows all are chosen.  The seed is the same for every group, so
    that a choice does not depend on other groups.
    """

    model: LargeMarginDPP
    decoder: Decoder
    k: int | None = None
    budget: float | None = None
    seed: int = 0

    def __call__(self, group: Group, k: int | None = None) -> Choice:
        """Choose from one group."""
        k = self.k if k is None else k
        if len(group) <= MAX_CANDIDATES:
            return self._choose(group.ground_set, k)
        if k is not None and k > MAX_CANDIDATES:
            raise TableError(
                f"a model chooses at most {MAX_CANDIDATES:,} rows of a group as large "
                f"as this ({len(group):,} rows), not {k:,}: choose by a method"
            )
        allowed = None
        if self.budget is not None and group.costs is not None:
            allowed = Constraint(None, self.budget, group.costs).affords(group.costs)
        candidates = best_by_quality(self.model, group.quality, MAX_CANDIDATES, allowed)
        order, inner, ending = self._choose(group.take(candidates), k)
        probability = np.full(len(group), np.nan)
        probability[candidates] = inner
        return Choice(candidates[order], probability, ending)

    def _choose(self, ground_set: GroundSet, k: int | None) -> Choice:
        """Decode one ground set; return its items, best first, and all marginals."""
        ensemble = self.model.ensemble(ground_set)
        k = None if k is None else min(k, len(ground_set))
        limit = budget_constraint(self.budget, ground_set.costs)
        costs = None
        if limit is not None:
            costs = limit.costs
            n_affordable = int(limit.affords(np.cumsum(np.sort(costs))).sum())
            k = None if k is None else min(k, n_affordable)
            if n_affordable == 0:
                nothing = np.zeros(0, dtype=np.intp)
                best = ensemble.log_prob(nothing)
                chosen = Selection(nothing, best, "no row can be paid for", best)
                return Choice(nothing, ensemble.marginals(), chosen.ending())
        chosen = ensemble.decode(self.decoder, k, self.budget, costs, self.seed)
        order = rank_members(ensemble, chosen.indices)
        return Choice(order, ensemble.marginals(), chosen.ending())


@dataclass(frozen=True, eq=False)
class ByMethod:
    """Choose by a method of :func:`variegate.select`.

    With a budget, rows are taken in the order of the method while they fit.  The
    relevance is that of the group, or a function of its quality features.  A ``model``,
    whose quality that is, adds its probabilities to the choice.
    """

    method: str
    k: int | None = None
    budget: float | None = None
    diversity: float = 0.5
    seed: int = 0
    relevance: Callable[[FloatArray], FloatArray] | None = None
    model: LargeMarginDPP | None = None

    def __call__(self, group: Group, k: int | None = None) -> Choice:
        """Choose from one group."""
        order = Ordering(self.method, self.diversity, self.seed)
        relevance = group.relevance
        if self.relevance is not None:
            relevance = self.relevance(group.quality)
        limit = budget_constraint(self.budget, group.costs)
        k = self.k if k is None else k
        rows = order(group.embeddings(), relevance, k, limit)
        if self.model is None:
            return Choice(rows)
        candidates = best_by_quality(self.model, group.quality, MAX_CANDIDATES)
        probability = np.full(len(group), np.nan)
        ensemble = self.model.ensemble(group.take(candidates))
        probability[candidates] = ensemble.marginals()
        reason = f"rows of learned relevance, chosen by {self.method}"
        ending = {"stop_reason": reason, "gap": None, "is_optimal": False}
        return Choice(rows, probability, ending)


def budget_constraint(
    budget: float | None, costs: FloatArray | None
) -> Constraint | None:
    """Return the limit on costs, if there is a budget."""
    if budget is None:
        return None
    if costs is None:
        raise TableError("a budget needs a column of costs")
    return Constraint(None, budget, costs)


@dataclass(frozen=True, eq=False)
class Choices:
    """Rows chosen from a table, row by row and group by group.

    Attributes
    ----------
    selected : array of bool
    rank : array of int
        From 1 in every group, 0 for rows that are not selected.
    probability : array of float, or None
        That the model includes each row; None for methods that learn nothing.
    groups : list
        The names of the groups.
    endings : list of dict
        How the search in each of ``groups`` ended: a sentence ``stop_reason``, the
        ``gap`` to the best selection where the decoder bounds it (in log-probability),
        and whether the selection ``is_optimal``.  Empty for methods that learn nothing.
    unknown_levels : dict
        By column, how many rows have a category that was not there in training.
    """

    selected: BoolArray
    rank: IntArray
    probability: FloatArray | None
    groups: list[Any] = field(default_factory=list)
    endings: list[dict[str, Any]] = field(default_factory=list)
    unknown_levels: Mapping[str, int] = field(default_factory=dict)

    def slice_rows(self, first: int, end: int) -> Choices:
        """Return the arrays of rows ``first`` to ``end``, without names of groups."""
        known = None if self.probability is None else self.probability[first:end]
        return Choices(self.selected[first:end], self.rank[first:end], known)


def choose_from_groups(
    groups: Groups,
    chooser: Chooser,
    n_jobs: int | None = None,
    progress: Progress = ignore,
) -> Choices:
    """Choose from every group of a table."""
    work = partial(choose_in_partition, chooser=chooser, n_jobs=groups.threads(n_jobs))
    parts = groups.map(work, np.arange(len(groups)), partial(progress, "choosing"))
    return collect_choices(parts, groups.survey.n_rows)


def collect_choices(
    parts: Iterable[Iterable[tuple[Group, Choice]]], n_rows: int, first_row: int = 0
) -> Choices:
    """Merge choices of groups into arrays over ``n_rows`` rows from ``first_row``."""
    rank: IntArray = np.zeros(n_rows, dtype=np.int32)
    # A file without rows has all columns of the others.
    probability: FloatArray | None = None if n_rows else np.zeros(0)
    names: list[Any] = []
    endings: list[dict[str, Any]] = []
    unknown: Counter[str] = Counter()
    for group, choice in chain.from_iterable(parts):
        rows = group.rows - first_row
        rank[rows[choice.order]] = np.arange(1, len(choice.order) + 1)
        if choice.probability is not None:
            probability = np.zeros(n_rows) if probability is None else probability
            probability[rows] = choice.probability
        if choice.ending is not None:
            endings.append(choice.ending)
        names.append(group.name)
        unknown.update(group.unknown)
    return Choices(rank > 0, rank, probability, names, endings, dict(unknown))


def choose_in_partition(
    groups: Iterable[Group], chooser: Chooser, n_jobs: int | None
) -> list[tuple[Group, Choice]]:
    """Choose from the groups of a partition; return them without their features."""
    nothing = np.zeros((0, 0))
    return [
        (replace(group, quality=nothing, blocks={}), choice)
        for group, choice in map_groups(chooser, groups, n_jobs)
    ]


def map_groups(
    work: Callable[[Group], _Result], groups: Iterable[Group], n_jobs: int | None
) -> Iterator[tuple[Group, _Result]]:
    """Yield every group with the result of ``work``, some at a time in threads."""
    threads = effective_n_jobs(n_jobs)

    def work_naming_group(group: Group) -> tuple[Group, _Result]:
        try:
            return group, work(group)
        except ValueError as error:
            # The model is given one ground set, whose position says nothing.
            problem = error.problem if isinstance(error, GroundSetError) else error
            problem = reword_for_rows(str(problem))
            raise TableError(f"group {group.name!r}: {problem}") from error

    with threadpool_limits(limits=1, user_api="blas"):
        if threads == 1:
            yield from map(work_naming_group, groups)
        else:
            # No more groups in memory than keep the threads busy.
            yield from map_in_threads(work_naming_group, groups, threads, 8 * threads)

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
from variegate.baselines.learned import Ordering
from variegate.decoding import Constraint
from variegate.decoding.odds import scale_odds
from variegate.decoding.residuals import rank_members
from variegate.ground_set import GroundSetError
from variegate.partitions.engine import map_in_threads
from variegate.selection import Selection
from variegate.tables.encoded import Group
from variegate.tables.errors import TableError
from variegate.tables.groups import Groups, reword_for_rows
from variegate.tables.limits import NO_LIMIT, Limit

if TYPE_CHECKING:
    from variegate.decoding import Decoder
    from variegate.ensemble import LEnsemble
    from variegate.estimator import LargeMarginDPP

#: Candidates of a larger group that are considered: those of the highest quality; and
#: as many given rows.
MAX_CANDIDATES = 2000

_NOTHING: IntArray = np.zeros(0, dtype=np.intp)

_Result = TypeVar("_Result")


class Choice(NamedTuple):
    """Rows chosen from a group: positions in it, best first.

    Of a model, ``probability`` has that of each row to be chosen, NaN for given rows
    and rows of a large group that are not considered, and ``ending`` says how the
    search ended: ``stop_reason``, ``gap`` and ``is_optimal`` of a
    :class:`variegate.Selection`.  ``is_short`` tells whether ``at_most`` allows fewer
    rows than were asked for.
    """

    order: IntArray
    probability: FloatArray | None = None
    ending: dict[str, Any] | None = None
    is_short: bool = False


#: Chooses from a group.
Chooser: TypeAlias = Callable[[Group], Choice]


@dataclass(frozen=True, eq=False)
class ByModel:
    """Choose by a learned model: its decoder, or a method that goes by its quality.

    Rows chosen by a decoder are ranked by what each adds to those before it: first the
    one of the highest quality, next the one that raises the determinant most, and so
    on.  Of a group with no more than ``k`` rows all are chosen, and of one whose limits
    allow fewer, as many as they allow.  The seed is the same for every group, so that a
    choice does not depend on other groups.
    """

    model: LargeMarginDPP
    how: Decoder | Ordering
    limit: Limit = NO_LIMIT
    seed: int = 0
    #: By how much the odds of all rows are multiplied, after ``how`` has chosen.
    odds: float = 1.0

    def __call__(self, group: Group) -> Choice:
        """Choose from one group."""
        probability = np.full(len(group), np.nan)
        rows = self._candidates(group)
        if len(rows) == 0:
            chosen = Selection(_NOTHING, 0.0, "all rows are given", 0.0)
            return Choice(_NOTHING, probability, chosen.ending())
        constraint = self.limit.constraint(group, rows)
        given = self._given_rows(group)
        ensemble = self.model.ensemble(group.take(np.union1d(rows, given)))
        order, ending, is_short = self._choose(ensemble, group, rows, constraint)
        if self.odds != 1.0:
            order = scale_odds(ensemble, order, self.odds, constraint)
        probability[rows] = ensemble.marginals()
        return Choice(rows[order], probability, ending, is_short)

    def _given_rows(self, group: Group) -> IntArray:
        """Return sorted positions of given rows: all, or the best of very many.

        Candidates have the best quality, and rows that are alike have a like quality.
        """
        if group.given is None:
            return _NOTHING
        given = np.flatnonzero(group.given)
        if len(given) <= MAX_CANDIDATES:
            return given
        u = self.model.log_quality(group.quality[given])
        best = np.argsort(-u, kind="stable")[:MAX_CANDIDATES]
        return np.sort(given[best])

    def _candidates(self, group: Group) -> IntArray:
        """Return positions of all candidates, or of the best ones of a large group.

        They are sorted.  Of ``MAX_CANDIDATES``, half are chosen such that ``at_most``
        allows all of them together; the others are the best of the rest.
        """
        rows = group.candidates
        if len(rows) <= MAX_CANDIDATES:
            return rows
        k = self.limit.size(group)
        if k is not None and k > MAX_CANDIDATES:
            raise TableError(
                f"a model chooses at most {MAX_CANDIDATES:,} rows of a group as large "
                f"as this ({len(rows):,} rows), not {k:,}: choose by a method"
            )
        constraint = self.limit.constraint(group, rows)
        u = self.model.log_quality(group.quality[rows])
        u = np.where(constraint.affords(constraint.costs), u, -np.inf)
        order = np.argsort(-u, kind="stable")
        if constraint.at_most is not None:
            first = constraint.at_most.first_allowed(order, MAX_CANDIDATES // 2)
            order = np.concatenate([first, order[~np.isin(order, first)]])
        return rows[np.sort(order[:MAX_CANDIDATES])]

    def _choose(
        self, ensemble: LEnsemble, group: Group, rows: IntArray, constraint: Constraint
    ) -> tuple[IntArray, dict[str, Any], bool]:
        """Choose from candidates ``rows``, the items of ``ensemble``, at odds of one.

        Return positions in ``rows``, best first; how the search ended; and whether
        ``at_most`` allows fewer rows than were asked for.
        """
        most = constraint.largest_size()
        k, is_short = _limit_size(self.limit.size(group), most, constraint)
        if most == 0:
            best = ensemble.log_prob(_NOTHING)
            chosen = Selection(_NOTHING, best, "no row can be paid for", best)
            return _NOTHING, chosen.ending(), False
        if isinstance(self.how, Ordering):
            relevance = self.model.log_quality(group.quality[rows])
            features = group.embeddings()
            given = None if group.given is None else features[group.given]
            order = self.how(features[rows], relevance, k, constraint, given)
            reason = f"rows of learned relevance, chosen by {self.how.method}"
            ending = dict[str, Any](stop_reason=reason, gap=None, is_optimal=False)
        else:
            limited = replace(constraint, k=k)
            chosen = self.how(ensemble, limited, np.random.default_rng(self.seed))
            order = rank_members(ensemble, chosen.indices)
            ending = chosen.ending()
        if is_short:
            ending["stop_reason"] = f"the limits allow no more than {most} rows"
        return order, ending, is_short


@dataclass(frozen=True, eq=False)
class ByMethod:
    """Choose by a method of :func:`variegate.select`, unlike given rows.

    With a budget, rows are taken in the order of the method while they fit.  The
    relevance is that of the group, or a function of its quality features.
    """

    method: str
    limit: Limit = NO_LIMIT
    diversity: float = 0.5
    seed: int = 0
    relevance: Callable[[FloatArray], FloatArray] | None = None

    def __call__(self, group: Group) -> Choice:
        """Choose positions in one group, by relevance and similarity features."""
        order = Ordering(self.method, self.diversity, self.seed)
        relevance, features, given = group.relevance, group.embeddings(), None
        if self.relevance is not None:
            relevance = self.relevance(group.quality)
        rows = group.candidates
        if len(rows) == 0:
            return Choice(rows)
        if group.given is not None:
            given, features = features[group.given], features[rows]
            relevance = None if relevance is None else relevance[rows]
        constraint = self.limit.constraint(group, rows)
        most = constraint.largest_size()
        k, is_short = _limit_size(self.limit.size(group), most, constraint)
        return Choice(
            rows[order(features, relevance, k, constraint, given)], is_short=is_short
        )


def _limit_size(
    k: int | None, most: int, constraint: Constraint
) -> tuple[int | None, bool]:
    """Return ``k``, or ``most`` if that is less, and whether ``at_most`` made it less.

    ``most`` is the largest size that the constraint allows.  None stands for a number
    that the chooser decides, and is returned.
    """
    if k is None:
        return None, False
    is_short = constraint.at_most is not None and most < min(k, len(constraint.costs))
    return min(k, most), is_short


@dataclass(frozen=True, eq=False)
class Choices:
    """Rows chosen from a table, row by row and group by group.

    Attributes
    ----------
    selected : array of bool
    rank : array of int
        From 1 in every group, 0 for rows that are not selected.
    probability : array of float, or None
        That the model includes each row, NaN for given rows; None for methods that
        learn nothing.
    groups : list
        The names of the groups.
    endings : list of dict
        How the search in each of ``groups`` ended: a sentence ``stop_reason``, the
        ``gap`` to the best selection where the decoder bounds it (in log-probability),
        and whether the selection ``is_optimal``.  Empty for methods that learn nothing.
    unknown_levels : dict
        By column, how many rows have a category that was not there in training.
    n_short : int
        Groups where ``at_most`` allows fewer rows than were asked for.
    """

    selected: BoolArray
    rank: IntArray
    probability: FloatArray | None
    groups: list[Any] = field(default_factory=list)
    endings: list[dict[str, Any]] = field(default_factory=list)
    unknown_levels: Mapping[str, int] = field(default_factory=dict)
    n_short: int = 0

    def slice_rows(self, first: int, end: int) -> Choices:
        """Return choices with only the arrays, of rows ``first`` to ``end - 1``."""
        known = None if self.probability is None else self.probability[first:end]
        return Choices(self.selected[first:end], self.rank[first:end], known)


def choose_from_groups(
    groups: Groups,
    chooser: Chooser,
    n_jobs: int | None = None,
    progress: Progress = ignore,
) -> Choices:
    """Choose from every group of a table, and report progress as "choosing".

    This process uses ``n_jobs`` threads, one for None; workers use one each.
    """
    work = partial(choose_in_partition, chooser=chooser, n_jobs=groups.threads(n_jobs))
    parts = groups.map(work, np.arange(len(groups)), partial(progress, "choosing"))
    return collect_choices(parts, groups.survey.n_rows)


def collect_choices(
    parts: Iterable[Iterable[tuple[Group, Choice]]], n_rows: int, first_row: int = 0
) -> Choices:
    """Merge the choices of groups into arrays over ``n_rows`` rows.

    ``parts`` has an iterable of (group, choice) for each partition; ``first_row`` is
    the number in the table of the first of these rows.
    """
    rank: IntArray = np.zeros(n_rows, dtype=np.int32)
    # A file without rows has all columns of the others.
    probability: FloatArray | None = None if n_rows else np.zeros(0)
    names: list[Any] = []
    endings: list[dict[str, Any]] = []
    unknown: Counter[str] = Counter()
    n_short = 0
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
        n_short += choice.is_short
    unknown_levels = dict(unknown)
    return Choices(rank > 0, rank, probability, names, endings, unknown_levels, n_short)


def choose_in_partition(
    groups: Iterable[Group], chooser: Chooser, n_jobs: int | None
) -> list[tuple[Group, Choice]]:
    """Return the groups of a partition, without features, each with its choice."""
    nothing = np.zeros((0, 0))
    return [
        (replace(group, quality=nothing, blocks={}, per=(), segment=None), choice)
        for group, choice in map_groups(chooser, groups, n_jobs)
    ]


def map_groups(
    work: Callable[[Group], _Result], groups: Iterable[Group], n_jobs: int | None
) -> Iterator[tuple[Group, _Result]]:
    """Yield (group, ``work(group)``) in order, by threads; errors name the group."""
    threads = effective_n_jobs(n_jobs)

    def work_naming_group(group: Group) -> tuple[Group, _Result]:
        """Return a group with its result; name it in errors."""
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

"""A model judged by the labels of a folder, file by file.

Of home's comparisons (:meth:`variegate.tables.TableSelector.evaluate`), those with
untrained methods and with rivals that learn relevance are made on the same groups, file
by file; rivals learn from a sample of at most 2,000 groups, as at home, brought here.
Several models are not compared: each is judged by itself.

Scores of every judged group come here, 80 bytes for each way to choose.  So that this
is bounded, no more than a million groups are judged, drawn at random from all.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from sklearn.utils.validation import check_is_fitted

from variegate._typing import FloatArray, IntArray
from variegate.partitions import Engine
from variegate.tables.choosing import Choice
from variegate.tables.columns import no_label
from variegate.tables.comparison import enough, model_ways, untrained_ways
from variegate.tables.diversity import DiversityJudge, kinds_by
from variegate.tables.evaluation import Evaluation, evaluate
from variegate.tables.fitted import fitting
from variegate.tables.folder.files import FolderTable, as_folder
from variegate.tables.folder.groups import FolderGroups, files_with
from variegate.tables.folder.parts import FolderPartition, Reader, in_file
from variegate.tables.folder.scan import FolderSurvey, scan
from variegate.tables.groups import Group
from variegate.tables.rivals import Rivals
from variegate.tables.selector import TableSelector
from variegate.tables.settings import watched
from variegate.tables.splitting import usable_groups
from variegate.tables.table import Progress, TableError, ignore
from variegate.tables.terms import Terms

__all__ = [
    "MAX_JUDGED",
    "FolderEvaluation",
    "evaluate_folder",
    "judge_held_out",
    "labelled",
    "travelling",
]

#: Groups that are judged, at most.
MAX_JUDGED = 1_000_000

#: What choosing goes by.
_FITTED = (
    "columns_", "encoding_", "family_", "omega_", "k_", "ordering_", "elsewhere_",
    "seed_",
)  # fmt: skip

Ways = Mapping[str, Callable[[Group], Choice]]


@dataclass(frozen=True, eq=False)
class FolderEvaluation(Evaluation):
    """Scores of several ways to choose on groups of a folder.

    Attributes
    ----------
    ended : dict
        What :meth:`endings_in_short` returns; ``endings`` of single groups are not
        kept.
    n_in_all : int
        Groups that could be judged by; where ``n_groups`` are fewer, they are a sample.
    unreadable : tuple of str
        Files that were left out.
    """

    ended: Mapping[str, dict[str, Any]] = field(default_factory=dict)
    n_in_all: int = 0
    unreadable: tuple[str, ...] = ()

    def endings_in_short(self) -> dict[str, dict[str, Any]]:
        """Return how searches ended over all groups, of every way that searches."""
        return dict(self.ended)


def travelling(selector: TableSelector) -> TableSelector:
    """Return a fitted selector with nothing but what choosing needs, to be sent."""
    slim = TableSelector(
        decoder=selector.decoder,
        empty_groups=selector.empty_groups,
        memory=selector.memory,
    )
    for name in _FITTED:
        setattr(slim, name, getattr(selector, name))
    slim.training_, slim.path_ = {}, None
    return slim


class _Judged(NamedTuple):
    """What is said about the groups of a file."""

    scores: dict[str, FloatArray]
    counts: dict[str, FloatArray]
    diversity: dict[str, FloatArray]
    n_wanted: float
    ended: dict[str, dict[str, Any]]


def judge_file(
    partition: FolderPartition,
    selector: TableSelector,
    reader: Reader,
    ways: Callable[[TableSelector], Ways],
    omega: float | None,
    has_diversity: bool,
) -> _Judged:
    """Judge several ways on the groups of a file that are meant."""
    judge = DiversityJudge(kinds_by(selector._model_at(omega)))
    groups = reader.wanted(partition, selector.encoding_)
    with in_file(partition):
        found = evaluate(
            groups, ways(selector), diversity=judge if has_diversity else None
        )
    return _Judged(
        dict(found.scores),
        dict(found.counts),
        dict(found.diversity),
        found.wanted_size * found.n_groups,
        found.endings_in_short(),
    )


def _judge(
    selector: TableSelector,
    groups: FolderGroups,
    numbers: IntArray,
    ways: Callable[[TableSelector], Ways],
    omega: float | None = None,
    has_diversity: bool = True,
    progress: Progress = ignore,
) -> FolderEvaluation:
    """Judge ways on some groups of a folder, or on a sample if these are too many."""
    n_in_all = len(numbers)
    if n_in_all > MAX_JUDGED:
        rng = np.random.default_rng(selector.seed_)
        numbers = np.sort(rng.choice(numbers, MAX_JUDGED, replace=False))
    judge = partial(
        judge_file,
        selector=travelling(selector),
        reader=groups.survey.reader,
        ways=ways,
        omega=omega,
        has_diversity=has_diversity,
    )
    files = files_with(groups.survey, numbers)
    told = partial(progress, "judging")
    found = list(groups.engine.map(judge, files, told))
    if not found:
        raise TableError("there are no groups to evaluate on")
    return FolderEvaluation(
        _joined([one.scores for one in found]),
        sum(one.n_wanted for one in found) / len(numbers),
        counts=_joined([one.counts for one in found]),
        diversity=_joined([one.diversity for one in found]),
        ended=_ended([one.ended for one in found]),
        n_in_all=n_in_all,
        unreadable=groups.survey.unreadable,
    )


def _joined(parts: Sequence[dict[str, FloatArray]]) -> dict[str, FloatArray]:
    """Put the numbers of files below each other."""
    return {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}


def _ended(parts: Sequence[dict[str, dict[str, Any]]]) -> dict[str, dict[str, Any]]:
    """Put together how searches ended in several files."""
    found = {}
    for name in parts[0]:
        several = [part[name] for part in parts]
        reasons: Counter[str] = Counter()
        for one in several:
            reasons.update(one["stop_reasons"])
        gaps = [one["largest_gap"] for one in several]
        found[name] = {
            "stop_reasons": dict(reasons),
            "n_optimal": sum(one["n_optimal"] for one in several),
            "largest_gap": None if None in gaps else max(gaps),
        }
    return found


# Held-out groups ----------------------------------------------------------------------


def _every_omega(selector: TableSelector) -> Ways:
    return selector._judged_ways()


def judge_held_out(
    selector: TableSelector, groups: FolderGroups, numbers: IntArray, progress: Progress
) -> Evaluation:
    """Judge what was learned, for every omega, on groups that were held out."""
    return _judge(
        selector, groups, numbers, _every_omega, has_diversity=False, progress=progress
    )


# Another folder -----------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class _Compared:
    """Makes the ways that are compared, where they are."""

    name: str
    omega: float | None
    terms: Terms
    rivals: Rivals | None
    methods: tuple[str, ...]
    #: On which terms methods choose that cannot tell how much is enough.
    untrained: Terms
    trade_off: float

    def __call__(self, selector: TableSelector) -> Ways:
        """Return all of them, for a selector."""
        ways = model_ways(self.name, selector, self.omega, self.terms)
        if self.rivals is not None:
            ways |= self.rivals.ways(self.terms)
        return ways | untrained_ways(self.methods, self.untrained, self.trade_off)


def evaluate_folder(
    selector: TableSelector,
    folder: str | Path | FolderTable,
    engine: Engine,
    *,
    methods: Sequence[str] = (),
    relevance: str | None = None,
    k: int | str | None = None,
    budget: float | None = None,
    train: Any = None,
    trade_off: float = 0.5,
    omega: float | None = None,
    empty_groups: str | None = None,
    name: str = "model",
    skip_unreadable: bool = False,
    progress: Progress | None = None,
) -> FolderEvaluation:
    """Compare what a selector chooses with the labels of a folder, file by file.

    Parameters
    ----------
    selector : TableSelector
        Fitted.
    folder : str, Path or FolderTable
    engine : Engine
    methods, relevance, k, budget, trade_off, omega, empty_groups, name, progress
        As for :meth:`variegate.tables.TableSelector.evaluate`.
    train : str, Path or FolderTable, optional
        A labelled folder; rivals learn from a sample of its groups, brought here.
    skip_unreadable : bool, default=False
        Whether files that cannot be read are left out, and named in the result.

    Returns
    -------
    FolderEvaluation
        As at home, of no more than ``MAX_JUDGED`` groups, drawn from all.
    """
    check_is_fitted(selector, "family_")
    progress = watched(progress, selector.verbose)
    terms = Terms(k, budget)
    empty_groups = selector.empty_groups if empty_groups is None else empty_groups
    relevance = relevance or (selector.default_relevance() if methods else None)
    if relevance is None and "top" in methods:
        raise TableError("'top' needs a relevance: no quality is a number")
    untrained = selector._untrained_terms(terms) if methods else terms
    untrained_ways(methods, untrained, trade_off)  # refuses those that do not exist
    selector._chooser(omega)
    table = as_folder(folder, skip_unreadable)
    found = labelled(
        selector, table, engine,
        budget=budget, relevance=relevance, skip_unreadable=skip_unreadable,
        progress=progress,
    )  # fmt: skip
    used = enough(usable_groups(found, empty_groups), table)
    rivals = None
    if train is not None:
        rivals = _rivals(selector, train, engine, budget, empty_groups, progress)
    compared = _Compared(
        name, omega, terms, rivals, tuple(methods), untrained, trade_off
    )
    groups = FolderGroups(found, selector.encoding_, engine)
    judged = _judge(selector, groups, used, compared, omega, progress=progress)
    return replace(judged, reference=name if terms.are_free else f"{name} ({terms})")


def labelled(
    selector: TableSelector,
    table: FolderTable,
    engine: Engine,
    *,
    budget: float | None = None,
    relevance: str | None = None,
    skip_unreadable: bool = False,
    progress: Progress = ignore,
) -> FolderSurvey:
    """Scan a folder with the columns of a model and with labels."""
    columns = selector._columns_for(True, budget is not None, relevance)
    if columns.label is None:
        raise no_label()
    fitting(table, columns)
    return scan(
        table,
        Reader(table.schema, columns),
        engine,
        skip_unreadable=skip_unreadable,
        progress=progress,
    )


def _rivals(
    selector: TableSelector,
    train: str | Path | FolderTable,
    engine: Engine,
    budget: float | None,
    empty_groups: str,
    progress: Progress,
) -> Rivals:
    """Let rivals learn from some groups of a labelled folder."""
    table = as_folder(train, False)
    try:
        found = labelled(selector, table, engine, budget=budget, progress=progress)
        used = usable_groups(found, empty_groups)
    except TableError as error:
        raise error.within("rivals cannot learn: ") from error
    return Rivals.fit_some(
        FolderGroups(found, selector.encoding_, engine),
        used,
        selector.seed_,
        budget=budget,
        memory=selector.memory,
        progress=progress,
    )

"""A fitted selector judged by labels, reported on, described and drawn."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from sklearn.utils.validation import check_is_fitted

from variegate._progress import Progress
from variegate._typing import IntArray
from variegate.application.refusal import Setting
from variegate.baselines.learned import Rival
from variegate.partitions import Engine
from variegate.report.wording import count
from variegate.tables.cells import as_labels
from variegate.tables.columns import Columns
from variegate.tables.comparison import (
    learn_rivals,
    memoize_choices,
    method_choosers,
    model_choosers,
    rival_choosers,
)
from variegate.tables.derived import AGE
from variegate.tables.errors import TableError
from variegate.tables.evaluation import DiversityJudge, Evaluation, judge_groups
from variegate.tables.fitted import FittedSelector, is_network, refuse_network
from variegate.tables.groups import Groups
from variegate.tables.limits import Limit
from variegate.tables.survey import usable_groups
from variegate.tables.table import Table, as_table
from variegate.tuning.held_out import SCORES

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from variegate.application.description import Description
    from variegate.tables.report import Report


class ScoringSelector(FittedSelector):
    """The part of a :class:`~variegate.tables.TableSelector` that judges and shows."""

    # Judging ----------------------------------------------------------------------

    def evaluate(
        self,
        X: Any,
        y: Any = None,
        *,
        methods: Sequence[str] = (),
        relevance: str | None = None,
        k: int | str | None = None,
        budget: float | None = None,
        train: Any = None,
        diversity: float = 0.5,
        omega: float | None = None,
        empty_groups: str | None = None,
        others: Mapping[str, FittedSelector] | None = None,
        name: str = "model",
        progress: Progress | None = None,
        engine: Engine | None = None,
        skip_unreadable: bool = False,
        subtopics: str | None = None,
        at_most: int | Sequence[int] | None = None,
        per: str | Sequence[str] | None = None,
    ) -> Evaluation:
        """Compare what is chosen from every group with the labels of a table.

        Parameters
        ----------
        X, y : as for :meth:`fit`
        methods : sequence of str, optional
            Methods of :func:`variegate.select` to compare with, on the same groups.
            They go by the column ``relevance``, by default that of the selector or the
            first quality column of numbers, with a ``diversity`` from 0 (relevance
            only) to 1 (diversity only), and choose ``k`` rows, by default the mean of
            the training groups.
        k : int or "wanted", optional
            How many rows each chooser chooses, the model in addition to the number that
            it finds right; with "wanted" as many as are labelled 1 in each group.
        budget : float, optional
            The most that the rows of a group may cost together, likewise for all; the
            model needs a column of costs.
        at_most, per : int and str, or sequences of them, optional
            At most this many rows of a group with the same value in this column,
            likewise for all.
        train : data frame, Arrow table or path, or such with an array of 0 and 1
            A labelled table with the columns of the model, such as the one it was
            fitted on.  With it, relevance is learned by logistic regression and
            gradient boosting too, from at most 2,000 of its groups, and followed by
            "top", "mmr" and "dpp": see :mod:`variegate.baselines.learned`.
        omega, progress : as for :meth:`choose`
        empty_groups : {"error", "keep", "drop"}, optional
            Treatment of groups without a row labelled 1; by default that of the
            selector.
        others : dict of TableSelector, to compare with one called ``name``, optional
        engine : Engine, optional
            Judges the files of a folder, one by one: ``X`` and ``train`` are folders
            of which each file holds all rows of its groups.  Of more than a million
            groups, a sample of that size is drawn.
        skip_unreadable : bool, default=False
            Whether files that cannot be read are left out, and named in the result.
        subtopics : str, optional
            A column with the subtopic of each row labelled 1, or a list of several (in
            text, ``["a", "b"]``).  Adds scores of how well choices cover the subtopics
            of their group: :func:`variegate.metrics.subtopic_recall`,
            :func:`~variegate.metrics.alpha_ndcg` to the depth of the number of rows
            labelled 1, and :func:`~variegate.metrics.intent_aware_precision`.  Empty
            cells, rows labelled 0, and groups without a subtopic do not count.

        Returns
        -------
        Evaluation
            Scores by group; ``intervals()`` and ``differences(name)`` are their means,
            ``over_rows()`` is precision and recall over all rows, and
            ``diversities()`` says how alike the chosen rows are.
        """
        check_is_fitted(self, "policy_")
        progress = self._progress(progress)
        limit = Limit.of(k, budget, at_most, per)
        if empty_groups is None:
            empty_groups = self.empty_groups
        relevance = relevance or (self.default_relevance() if methods else None)
        if relevance is None and "top" in methods:
            raise TableError("'top' needs a relevance: no quality is a number")
        if engine is not None and (others or y is not None):
            raise ValueError(
                "with an engine, labels are a column of the files, not y, and models "
                "are judged one by one, without others"
            )
        methods_limit = self._default_limit(limit) if methods else limit
        choosers = method_choosers(methods, methods_limit, diversity)
        candidates = model_choosers(name, self, omega, limit)
        reading: dict[str, Any] = {"empty_groups": empty_groups, "engine": engine}
        reading["progress"] = progress
        if train is not None:
            rivals = self._learn_rivals(train, Limit(budget=budget), reading)
            choosers = rival_choosers(rivals, limit) | choosers
        table, labels = as_table(X, skip_unreadable), as_labels(y)
        roles: dict[str, Any] = {"use_labels": y is None, "limit": limit}
        reading |= {"labels": labels, "skip_unreadable": skip_unreadable, "least": 2}
        for other, selector in (others or {}).items():
            for role in ("group", "label", "given"):
                if getattr(self.columns_, role) != getattr(selector.columns_, role):
                    raise TableError(
                        "the models go by different columns of groups, labels or given "
                        "rows, so that there is nothing to compare"
                    )
            columns = selector._required_columns(**roles)
            groups, used = _labelled_groups(selector, table, columns, **reading)
            theirs = model_choosers(other, selector, omega, limit)
            candidates |= memoize_choices(groups.only(used), theirs, selector.n_jobs)
        # Models with sizes of their own, then within the limit, then other choosers.
        names = sorted(candidates, key=lambda one: one not in {name, *(others or {})})
        choosers = {one: candidates[one] for one in names} | choosers
        columns = self._required_columns(
            **roles, relevance=relevance, subtopics=subtopics
        )
        groups, used = _labelled_groups(self, table, columns, **reading)
        alike = DiversityJudge.of(self.model_)
        with self._list_all_problems(table, columns, labels, empty_groups, engine):
            found = judge_groups(
                groups,
                used,
                choosers,
                self.n_jobs,
                progress,
                alike,
                seed=self.seed_,
            )
        return replace(found, reference=f"{name} ({limit})" if limit else name)

    def _learn_rivals(
        self, train: Any, limit: Limit, reading: Mapping[str, Any]
    ) -> dict[str, Rival]:
        """Learn rivals of the model, by name, from a labelled table or a pair (X, y).

        Only the budget of the limit counts.  ``reading`` are arguments of
        ``_read_groups``.
        """
        X, y = train if isinstance(train, tuple) else (train, None)
        columns = self._required_columns(y is None, limit)
        try:
            labels = as_labels(y)
            groups, used = _labelled_groups(
                self, as_table(X), columns, labels=labels, **reading
            )
        except TableError as error:
            raise error.with_prefix("baselines cannot learn: ") from error
        limits: dict[str, Any] = {"budget": limit.budget, "memory": self.memory}
        return learn_rivals(
            groups, used, self.seed_, **limits, progress=reading["progress"]
        )

    def default_relevance(self) -> str | None:
        """Return the relevance column, else the first numeric quality column or None.

        Ages do not count as relevance.
        """
        if self.columns_.relevance is not None:
            return self.columns_.relevance
        numbers = (
            column.name
            for column in self.encoding_.quality
            # The younger the better, if anything.
            if column.kind == "number"
            and column.name.removeprefix(AGE) not in self.columns_.ages
        )
        return next(numbers, None)

    def _default_limit(self, limit: Limit) -> Limit:
        """Return the limit, with the mean size in training if it has no k or budget."""
        if limit.k is not None or limit.budget is not None:
            return limit
        if not self.training_:
            raise TableError(
                "the model does not say how many rows are usual: give ", Setting("k")
            )
        mean = float(self.training_["chosen_sizes"]["mean"])
        return limit.with_k(max(1, round(mean)))

    def score(self, X: Any, y: Any = None) -> float:
        """Return the mean F-score of choices over the groups of a labelled table."""
        check_is_fitted(self, "policy_")
        columns, labels = self._required_columns(y is None), as_labels(y)
        groups, used = _labelled_groups(
            self, as_table(X), columns, self.empty_groups, labels=labels
        )
        found = judge_groups(groups, used, {"": self._make_chooser()}, self.n_jobs)
        return float(found.scores[""][:, SCORES.index("f")].mean())

    # Showing ----------------------------------------------------------------------

    def report(
        self,
        X: Any,
        relevance: str | None = None,
        show: Sequence[str] | None = None,
        model: str = "model.json",
        progress: Progress | None = None,
        engine: Engine | None = None,
        skip_unreadable: bool = False,
    ) -> Report:
        """Return a report of the training, to be written as a page or as Markdown.

        Parameters
        ----------
        X : data frame, Arrow table or path
            The table that the selector was fitted on.
        relevance : str, optional
            A column that untrained methods go by, by default that of the selector;
            without any they are left out.
        show : sequence of str, optional
            Columns to show in examples; by default the item and the first columns of
            the quality.
        model : str, default="model.json"
            The name of the file that the selector is saved in.
        progress : callable, optional
        engine, skip_unreadable : as for :meth:`evaluate`
            At most a few thousand groups are copied from workers to this process.
        """
        from variegate.tables.report.gathering import make_report

        check_is_fitted(self, "policy_")
        refuse_network(self.model_, "report")
        progress = self._progress(progress)
        table = as_table(X, skip_unreadable)
        relevance = relevance or self.columns_.relevance
        how: dict[str, Any] = {"engine": engine, "skip_unreadable": skip_unreadable}
        return make_report(self, table, relevance, show, model, progress, **how)

    def describe(self) -> Description:
        """Return a description of the model: print it, or take its ``numbers``."""
        from variegate.tables.report.description import describe

        check_is_fitted(self, "policy_")
        refuse_network(self.model_, "describe")
        return describe(self)

    def _learned_html(self) -> str:
        """Return HTML on the learned model, for notebooks (see ``Application``)."""
        check_is_fitted(self, "policy_")
        if is_network(self.model_):
            return self.model_._learned_html()
        return super()._learned_html()

    def plot(self) -> Figure:
        """Draw precision and recall by omega, or the weights without held-out scores.

        The first is the figure of ``path_``, the second that of :meth:`describe`.

        Returns
        -------
        matplotlib.figure.Figure
            ``figure.savefig("model.png")`` keeps it.
        """
        check_is_fitted(self, "policy_")
        if self.path_ is not None and len(self.path_) > 1:
            return self.path_.plot()
        return self.describe().figure()


def _labelled_groups(
    selector: FittedSelector,
    table: Table,
    columns: Columns,
    empty_groups: str,
    *,
    least: int = 1,
    **reading: Any,
) -> tuple[Groups, IntArray]:
    """Return all groups of a labelled table, and the numbers of usable ones.

    Fewer than ``least`` are refused.  ``reading`` are further arguments of
    ``_read_groups``.
    """
    groups = selector._read_groups(table, columns, empty_groups=empty_groups, **reading)
    used = usable_groups(groups.survey, empty_groups)
    if len(used) < least:
        # One group tells nothing about the variation between groups.
        raise TableError(
            f"{table.name} has {count(len(used), 'group')} to judge by: intervals need "
            "two at least"
        )
    return groups, used

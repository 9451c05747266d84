"""A fitted selector judged by labels, reported on, described and drawn."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from sklearn.utils.validation import check_is_fitted

from variegate.application.refusal import Setting
from variegate.tables.cells import as_labels
from variegate.tables.comparison import compare, untrained_ways
from variegate.tables.derived import AGE
from variegate.tables.evaluation import SCORES, Evaluation, evaluate
from variegate.tables.fitted import FittedSelector
from variegate.tables.networks import is_network, refuse_network
from variegate.tables.rivals import learn_rivals
from variegate.tables.settings import watched
from variegate.tables.splitting import only, usable_groups
from variegate.tables.table import Progress, TableError, as_table
from variegate.tables.terms import Terms

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from variegate.application.description import Description
    from variegate.tables.report import Report

__all__ = ["JudgedSelector"]


class JudgedSelector(FittedSelector):
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
        trade_off: float = 0.5,
        omega: float | None = None,
        empty_groups: str | None = None,
        others: Mapping[str, FittedSelector] | None = None,
        name: str = "model",
        progress: Progress | None = None,
    ) -> Evaluation:
        """Compare what is chosen from every group with the labels of a table.

        Parameters
        ----------
        X, y : as for :meth:`fit`
        methods : sequence of str, optional
            Methods of :func:`variegate.select` to compare with, on the same groups.
            They go by the column ``relevance``, by default that of the selector or the
            first quality column of numbers, with a ``trade_off`` from 0 (relevance
            only) to 1 (diversity only), and choose ``k`` rows, by default the mean of
            the training groups.
        k : int or "wanted", optional
            How many rows each way chooses, the model once more beside what it chooses
            by itself; with "wanted" as many as are labelled 1 in each group.
        budget : float, optional
            The most that the rows of a group may cost together, likewise for all; the
            model needs a column of costs.
        train : data frame, Arrow table or path, or such with an array of 0 and 1
            A labelled table with the columns of the model, such as the one it was
            fitted on.  With it, relevance is learned by logistic regression and
            gradient boosting too, from at most 2,000 of its groups, and followed by
            "top", "mmr" and "dpp": see :mod:`variegate.baselines.learned`.
        omega, progress : as for :meth:`choose`
        empty_groups : {"error", "keep", "drop"}, optional
            What to do with groups of which no row is labelled 1; by default what the
            selector was fitted with.
        others : dict of TableSelector, to compare with one called ``name``, optional

        Returns
        -------
        Evaluation
            Scores by group; ``intervals()`` and ``differences(name)`` are their means,
            ``over_rows()`` is precision and recall over all rows, and
            ``diversities()`` says how alike the chosen rows are.
        """
        check_is_fitted(self, "family_")
        progress = watched(progress, self.verbose)
        terms = Terms(k, budget)
        if empty_groups is None:
            empty_groups = self.empty_groups
        relevance = relevance or (self.default_relevance() if methods else None)
        if relevance is None and "top" in methods:
            raise TableError("'top' needs a relevance: no quality is a number")
        ways = untrained_ways(methods, self._untrained_terms(terms), trade_off)
        if train is not None:
            rivals = learn_rivals(self, train, budget, empty_groups, progress)
            ways = rivals.ways(terms) | ways
        return compare(
            as_table(X),
            {name: self, **(others or {})},
            ways,
            terms=terms,
            relevance=relevance,
            omega=omega,
            empty_groups=empty_groups,
            labels=as_labels(y),
            progress=progress,
        )

    def default_relevance(self) -> str | None:
        """Return the relevance, or in place of one the first quality of numbers."""
        if self.columns_.relevance is not None:
            return self.columns_.relevance
        numbers = (
            column.name
            for column in self.encoding_.quality
            # The younger the better, if anything.
            if column.kind == "number" and not self._is_age(column.name)
        )
        return next(numbers, None)

    def _is_age(self, name: str) -> bool:
        return name.removeprefix(AGE) in self.columns_.ages

    def _untrained_terms(self, terms: Terms) -> Terms:
        """Return on which terms methods choose that cannot tell how much is enough."""
        if not terms.are_free:
            return terms
        if not self.training_:
            raise TableError(
                "the model does not say how many rows are usual: give ", Setting("k")
            )
        return Terms(max(1, round(float(self.training_["chosen_sizes"]["mean"]))))

    def score(self, X: Any, y: Any = None) -> float:
        """Return the mean F-score over groups."""
        check_is_fitted(self, "family_")
        labels = as_labels(y)
        groups = self._groups(as_table(X), labels=labels, use_labels=y is None)
        used = usable_groups(groups.survey, self.empty_groups)
        found = evaluate(only(groups, used), {"": self._chooser()}, self.n_jobs)
        return float(found.scores[""][:, SCORES.index("f")].mean())

    # Showing ----------------------------------------------------------------------

    def report(
        self,
        X: Any,
        relevance: str | None = None,
        show: Sequence[str] | None = None,
        model: str = "model.json",
        progress: Progress | None = None,
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
            Columns to show in examples; by default the item and some of the quality.
        model : str, default="model.json"
            The name of the file that the selector is saved in.
        progress : callable, optional
        """
        from variegate.tables.report.gathering import make_report

        check_is_fitted(self, "family_")
        refuse_network(self.model_, "report")
        progress = watched(progress, self.verbose)
        relevance = relevance or self.columns_.relevance
        return make_report(self, as_table(X), relevance, show, model, progress)

    def describe(self) -> Description:
        """Return what was learned and from what: print it, or take its ``numbers``."""
        from variegate.tables.report.description import describe

        check_is_fitted(self, "family_")
        refuse_network(self.model_, "describe")
        return describe(self)

    def _learned_html(self) -> str:
        check_is_fitted(self, "family_")
        if is_network(self.model_):
            return self.model_._learned_html()
        return super()._learned_html()

    def plot(self) -> Figure:
        """Draw precision and recall by omega, or the weights where omega is one.

        The first is the figure of ``path_``, the second that of :meth:`describe`.

        Returns
        -------
        matplotlib.figure.Figure
            ``figure.savefig("model.png")`` keeps it.
        """
        check_is_fitted(self, "family_")
        if self.path_ is not None and len(self.path_) > 1:
            return self.path_.plot()
        return self.describe().figure()

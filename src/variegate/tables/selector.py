"""From a table of good selections to a model, from a table to a selection."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from variegate._random import generator
from variegate._typing import BoolArray, FloatArray, RandomState
from variegate._validation import check_choice, check_count, check_flag, check_number
from variegate.decoding import as_decoder
from variegate.estimator import LargeMarginDPP
from variegate.kernels import Kernel
from variegate.tables.choosing import Choices
from variegate.tables.columns import Columns
from variegate.tables.encoding import Encoding
from variegate.tables.evaluation import SCORES, evaluate
from variegate.tables.frames import with_choices
from variegate.tables.groups import DEFAULT_MEMORY, Groups
from variegate.tables.record import training_record, validation_path
from variegate.tables.splitting import EMPTY_GROUPS, only, usable_groups
from variegate.tables.survey import learn_encoding, survey
from variegate.tables.table import Table, TableError, as_table
from variegate.tables.training import KERNELS, Lesson, Progress, ignore, kernel_for
from variegate.tables.using import (
    as_labels,
    choose_from,
    chooser_of,
    groups_of,
    refuse_labels_among,
    rows_of,
    split_of,
)
from variegate.tuning.omega import as_omegas, model_at

if TYPE_CHECKING:
    from variegate.application.description import Description

__all__ = ["TableSelector"]


class TableSelector(BaseEstimator):  # type: ignore[misc]
    """Learns from a table which rows of each group to choose.

    A table is a data frame (pandas, polars), an Arrow table, or the path of a Parquet,
    CSV, JSON-lines or Arrow file, which may be larger than memory.  Its rows belong to
    groups (a query, a user, a day); from each group, rows are chosen that are good and
    unlike each other, by a :class:`variegate.LargeMarginDPP` over the group.  How
    columns become features is written at the top of
    :mod:`variegate.tables.encoding`.

    Parameters
    ----------
    group : str, optional
        The column whose values name the groups.  Without one, all rows are one group.
    label : str, optional
        The column that is 1 in rows that were chosen and 0 in others; not needed where
        ``fit`` is given ``y``.
    quality : str or sequence of str, optional
        Columns that tell good rows from bad ones; ``*`` in a name stands for anything.
        By default every column of numbers that has no other part.
    similarity : str or sequence of str, optional
        Columns that tell whether rows are alike: vectors (embeddings) or numbers.  By
        default the quality columns.
    categorical : str or sequence of str, optional
        Columns whose values are names of kinds.
    item : str, optional
        The column that identifies a row in its group; values must differ.
    cost : str, optional
        The column of costs, for a budget.
    missing : {"error", "mean", "indicator"}, default="error"
        What to do where a cell is empty.
    empty_groups : {"error", "keep", "drop"}, default="error"
        What to do with groups of which no row was chosen.
    lam : float, default=4.0
        Weight of the margin; 0 is maximum likelihood.  The larger it is, the more
        ``omega`` acts: with 1 hardly, with 16 so much that a small one chooses nothing.
    omega : float or sequence of float, optional
        What a missed row costs against a wrong one.  Of several, a model is learned for
        each, and any value between them can be asked for later.  By default 1/16, 1/4,
        1, 4 and 16; 1 alone for tables larger than ``memory``.
    tune : bool, default=False
        Whether to choose ``lam`` among ``lams``, and ``omega``, by cross-validation
        on at most 500 of the groups.
    lams : sequence of float, default=(0.0, 4.0, 16.0)
        To choose from with ``tune``.
    target_precision, target_recall : float, optional
        A mean precision or recall on new groups to aim at; implies ``tune``.
    kernel : {"multiple", "linear"} or Kernel, default="multiple"
        The similarity: Gaussians of several bandwidths and a linear part with learned
        weights, or a linear kernel.
    l2 : float, default=1e-4
        Penalty on the weights of the quality.
    decoder : name or decoder object, default="greedy"
        How rows are chosen; see :meth:`variegate.LEnsemble.decode`.  "greedy" is fast
        and leaves out what is like something chosen; "mbr" takes longer and chooses
        more, often with a somewhat better F-score.
    max_iter : int, default=200
        Most iterations of L-BFGS.
    tol : float, default=1e-2
        Its tolerance on the gradient.
    n_epochs : int, optional
        Passes over a table that is too large for memory; by default as many as make
        1000 steps.
    validation_fraction : float, default=0.0
        Share of the groups that is held out and judged by in ``training_``; what is
        learned does not depend on them.
    memory : int, default=536870912
        Bytes of features that may be held in memory.  A table that takes more is
        learned from in batches, by stochastic gradients.
    n_jobs : int, optional
        Threads or processes that work at a time; -1 for one a core.
    random_state : None, int or numpy.random.Generator, default=0

    Attributes
    ----------
    columns_ : Columns
        What each column is, patterns spelt out.
    encoding_ : Encoding
        How columns become features.
    lam_ : float
    omegas_ : tuple of float
    models_ : tuple of LargeMarginDPP
        One for each of ``omegas_``.
    omega_ : float
        That which is used if none is asked for.
    path_ : OmegaPath or None
        Precision and recall by omega: of cross-validation with ``tune``, else on the
        groups held out.
    training_ : dict
        What was learned from, and how it went, as plain values.
    seed_ : int
        For the groups held out, and for choosing.
    feature_names_in_ : array of str
        All columns of the training table.
    n_features_in_ : int

    Examples
    --------
    >>> from variegate.tables import TableSelector, make_table
    >>> table = make_table(n_groups=40, random_state=0)
    >>> selector = TableSelector(
    ...     group="query", label="chosen", quality=["score", "freshness"],
    ...     similarity="embedding", omega=1.0,
    ... )
    >>> chosen = selector.fit(table).select(table)
    >>> chosen.column_names[-2:]
    ['selection_rank', 'inclusion_probability']
    """

    def __init__(
        self,
        group: str | None = None,
        label: str | None = None,
        quality: str | Sequence[str] | None = None,
        similarity: str | Sequence[str] | None = None,
        categorical: str | Sequence[str] | None = None,
        item: str | None = None,
        cost: str | None = None,
        missing: str = "error",
        empty_groups: str = "error",
        lam: float = 4.0,
        omega: float | Sequence[float] | None = None,
        tune: bool = False,
        lams: Sequence[float] = (0.0, 4.0, 16.0),
        target_precision: float | None = None,
        target_recall: float | None = None,
        kernel: str | Kernel = "multiple",
        l2: float = 1e-4,
        decoder: Any = "greedy",
        max_iter: int = 200,
        tol: float = 1e-2,
        n_epochs: int | None = None,
        validation_fraction: float = 0.0,
        memory: int = DEFAULT_MEMORY,
        n_jobs: int | None = None,
        random_state: RandomState = 0,
    ) -> None:
        self.group = group
        self.label = label
        self.quality = quality
        self.similarity = similarity
        self.categorical = categorical
        self.item = item
        self.cost = cost
        self.missing = missing
        self.empty_groups = empty_groups
        self.lam = lam
        self.omega = omega
        self.tune = tune
        self.lams = lams
        self.target_precision = target_precision
        self.target_recall = target_recall
        self.kernel = kernel
        self.l2 = l2
        self.decoder = decoder
        self.max_iter = max_iter
        self.tol = tol
        self.n_epochs = n_epochs
        self.validation_fraction = validation_fraction
        self.memory = memory
        self.n_jobs = n_jobs
        self.random_state = random_state

    # Learning ---------------------------------------------------------------------

    def fit(self, X: Any, y: Any = None, progress: Progress | None = None) -> Self:
        """Learn from a table of groups and what was chosen from them.

        Parameters
        ----------
        X : data frame, Arrow table or path
        y : array of 0 and 1, optional
            The label of every row, in place of the label column.
        progress : callable, optional
            Called with what is being done, and (finished, all) steps of it.

        Returns
        -------
        self
        """
        self._check_parameters()
        report = progress or ignore
        table = as_table(X)
        labels = None if y is None else as_labels(y)
        columns = self._columns_of(table, y)
        if labels is not None and not self.quality:
            refuse_labels_among(columns.quality, table, labels)
        self.seed_ = int(generator(self.random_state).integers(2**31))
        found = survey(table, columns, labels, rows_of(report, "reading"))
        learned_from, held_out = split_of(self, found)
        encoding = learn_encoding(
            table, found, learned_from, rows_of(report, "looking at columns")
        )
        groups = Groups(
            table, found, encoding, labels, self.memory, rows_of(report, "encoding")
        )
        learned = self._lesson(encoding, report).learn(groups, learned_from)
        self.columns_, self.encoding_ = columns, encoding
        self.lam_, self.omega_ = learned.lam, learned.omega
        self.omegas_, self.models_ = learned.omegas, learned.models
        self.feature_names_in_ = np.array(table.schema.names, dtype=object)
        self.n_features_in_ = len(self.feature_names_in_)
        judged = None
        if len(held_out):
            ways = {str(omega): chooser_of(self, omega) for omega in self.omegas_}
            judged = evaluate(
                only(groups, held_out),
                ways,
                self.n_jobs,
                lambda done: report("judging", done, len(held_out)),
            )
        self.path_ = learned.path or validation_path(judged, learned)
        self.training_ = training_record(
            found, learned, self.path_, judged, learned_from, held_out
        )
        return self

    def _columns_of(self, table: Table, y: Any) -> Columns:
        """Return what the columns of a training table are."""
        wanted = self._columns()
        if y is not None and wanted.label not in table.schema.names:
            wanted = replace(wanted, label=getattr(y, "name", None))
            if wanted.label not in table.schema.names:
                wanted = replace(wanted, label=None)
        columns = wanted.resolve(table.schema, is_untyped=table.is_untyped)
        if y is not None:
            return replace(columns, label=None)
        if columns.label is None:
            raise TableError(
                "which rows were chosen? Name the label column, or give y to fit"
            )
        return columns

    def _columns(self) -> Columns:
        return Columns.of(
            group=self.group,
            label=self.label,
            item=self.item,
            quality=self.quality,
            categorical=self.categorical,
            similarity=self.similarity,
            cost=self.cost,
            missing=self.missing,
        )

    def _lesson(self, encoding: Encoding, report: Progress) -> Lesson:
        has_target = (self.target_precision, self.target_recall) != (None, None)
        return Lesson(
            lam=self.lam,
            omegas=None if self.omega is None else as_omegas(self.omega),
            kernel=kernel_for(self.kernel, encoding),
            l2=self.l2,
            decoder=self.decoder,
            max_iter=self.max_iter,
            tol=self.tol,
            n_epochs=self.n_epochs,
            tune=self.tune or has_target,
            lams=self.lams,
            target_precision=self.target_precision,
            target_recall=self.target_recall,
            memory=self.memory,
            n_jobs=self.n_jobs,
            seed=self.seed_,
            progress=report,
        )

    def _check_parameters(self) -> None:
        check_choice("empty_groups", self.empty_groups, EMPTY_GROUPS)
        if not isinstance(self.kernel, Kernel):
            check_choice("kernel", self.kernel, KERNELS)
        check_flag("tune", self.tune)
        for name in ("lam", "l2", "tol", "validation_fraction"):
            check_number(name, getattr(self, name))
        if self.validation_fraction >= 1.0:
            raise ValueError(
                f"validation_fraction must be below 1, got {self.validation_fraction!r}"
            )
        for name in ("max_iter", "memory"):
            check_count(name, getattr(self, name))
        if self.n_epochs is not None:
            check_count("n_epochs", self.n_epochs)
        if self.omega is not None:
            as_omegas(self.omega)
        as_decoder(self.decoder)
        self._columns()

    @property
    def model_(self) -> LargeMarginDPP:
        """The model for ``omega_``."""
        check_is_fitted(self, "models_")
        return model_at(self.omegas_, self.models_, self.omega_)

    @property
    def weights_(self) -> dict[str, float]:
        """The weight of every quality feature, by its name."""
        weights = self.model_.theta_.tolist()
        return dict(zip(self.encoding_.names, weights, strict=True))

    def describe(self) -> Description:
        """Return what the selector was learned from and what it learned: print it."""
        from variegate.tables.report.description import describe

        return describe(self)

    # Choosing ---------------------------------------------------------------------

    def choose(
        self,
        X: Any,
        k: int | None = None,
        budget: float | None = None,
        omega: float | None = None,
        progress: Progress | None = None,
    ) -> Choices:
        """Choose rows of every group.

        Parameters
        ----------
        X : data frame, Arrow table or path
            With the columns that the model was learned with; labels are not needed.
        k : int, optional
            Rows to choose from each group, all of it if it has no more.  By default
            the model decides how many are worth choosing.
        budget : float, optional
            The most that the rows of a group may cost together.
        omega : float, optional
            Below 1 few and precise, above 1 many and complete; between the values that
            were learned.  By default ``omega_``.
        progress : callable, optional

        Returns
        -------
        Choices
            Arrays with a value for each row: whether it is selected, its rank in its
            group, and the probability with which the model includes it.
        """
        check_is_fitted(self, "models_")
        return choose_from(self, as_table(X), k, budget, omega, progress)[0]

    def predict(self, X: Any) -> BoolArray:
        """Return, for every row, whether it is chosen."""
        return self.choose(X).selected

    def inclusion_probability(self, X: Any, omega: float | None = None) -> FloatArray:
        """Return, for every row, the probability that the model includes it."""
        probability = self.choose(X, omega=omega).probability
        assert probability is not None  # a model always tells
        return probability

    def select(
        self,
        X: Any,
        k: int | None = None,
        budget: float | None = None,
        omega: float | None = None,
        keep_all: bool = False,
    ) -> Any:
        """Return the chosen rows, with their rank and probability in new columns.

        Parameters
        ----------
        X : data frame, Arrow table or path
            What is returned is of the same kind, an Arrow table for a path.
        k, budget, omega : as for :meth:`choose`
        keep_all : bool, default=False
            Whether to return all rows, with one more column that says which are
            selected.
        """
        choices = self.choose(X, k, budget, omega)
        return with_choices(X, choices, keep_all)

    def score(self, X: Any, y: Any = None) -> float:
        """Return the mean F-score over groups."""
        check_is_fitted(self, "models_")
        labels = None if y is None else as_labels(y)
        groups = groups_of(self, as_table(X), labels=labels, use_labels=y is None)
        used = usable_groups(groups.survey, self.empty_groups)
        ways = {"model": chooser_of(self)}
        found = evaluate(only(groups, used), ways, self.n_jobs)
        return float(found.scores["model"][:, SCORES.index("f")].mean())

    # Keeping ----------------------------------------------------------------------

    def save(self, path: str | Path) -> None:
        """Write the fitted selector to a JSON file; :func:`variegate.load` reads it."""
        from variegate.tables import model_file

        check_is_fitted(self, "models_")
        model_file.save(self, path)

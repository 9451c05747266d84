"""From a table of good selections to a model, from a table to a selection."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from variegate._random import generator
from variegate._typing import BoolArray, FloatArray, IntArray, RandomState
from variegate._validation import check_choice, check_count, check_flag, check_number
from variegate.decoding import as_decoder
from variegate.estimator import LargeMarginDPP
from variegate.kernels import Kernel
from variegate.omega import as_omegas, model_at, resolve_omega
from variegate.tables.choosing import ByModel, Choices, choose
from variegate.tables.columns import Columns
from variegate.tables.encoding import Encoding
from variegate.tables.evaluation import evaluate
from variegate.tables.frames import with_choices
from variegate.tables.groups import DEFAULT_MEMORY, Groups
from variegate.tables.record import training_record, validation_path
from variegate.tables.survey import Survey, survey
from variegate.tables.table import Table, TableError, as_table
from variegate.tables.training import (
    EMPTY_GROUPS,
    KERNELS,
    Lesson,
    Progress,
    kernel_for,
    only,
    split,
    usable_groups,
)

__all__ = ["TableSelector"]


def _ignore(stage: str, done: int, total: int) -> None:
    """Report nothing."""


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
    lam : float, default=1.0
        Weight of the margin; 0 is maximum likelihood.
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
        lam: float = 1.0,
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
        report = progress or _ignore
        table = as_table(X)
        labels = None if y is None else _labels(y)
        wanted = self._columns()
        if y is not None and wanted.label not in table.schema.names:
            wanted = replace(wanted, label=None)
        columns = wanted.resolve(table.schema, is_untyped=table.is_untyped)
        if y is not None:
            columns = replace(columns, label=None)
        elif columns.label is None:
            raise TableError(
                "which rows were chosen? Name the label column, or give y to fit"
            )
        found = survey(table, columns, labels, report=_rows(report, "reading"))
        learned_from, held_out = self.split(found)
        groups = Groups(table, found, labels, self.memory, _rows(report, "encoding"))
        lesson = self._lesson(found.encoding, report)
        learned = lesson.learn(groups, learned_from, held_out)
        self.columns_, self.encoding_ = columns, found.encoding
        self.lam_, self.omega_ = learned.lam, learned.omega
        self.omegas_, self.models_ = learned.omegas, learned.models
        self.feature_names_in_ = np.array(table.schema.names, dtype=object)
        self.n_features_in_ = len(self.feature_names_in_)
        judged = None
        if len(held_out):
            ways = {str(omega): self.chooser(omega) for omega in self.omegas_}
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

    def split(self, found: Survey) -> tuple[IntArray, IntArray]:
        """Return numbers of the groups to learn from, and of those to hold out."""
        usable = usable_groups(found, self.empty_groups)
        return split(usable, self.validation_fraction, self._seed())

    def _seed(self) -> int:
        return int(generator(self.random_state).integers(2**31))

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
            seed=self._seed(),
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
        return self.choose_from(as_table(X), k, budget, omega, progress)[0]

    def choose_from(
        self,
        table: Table,
        k: int | None = None,
        budget: float | None = None,
        omega: float | None = None,
        progress: Progress | None = None,
    ) -> tuple[Choices, Groups]:
        """Choose as :meth:`choose` does, and return the groups as well."""
        check_is_fitted(self, "models_")
        report = progress or _ignore
        chooser = self.chooser(omega, k, budget)
        groups = self.groups(table, use_costs=budget is not None, progress=report)
        choices = choose(
            groups,
            groups.survey.n_rows,
            chooser,
            self.n_jobs,
            lambda done: report("choosing", done, len(groups)),
        )
        return choices, groups

    def use_columns(
        self,
        group: str | None = None,
        label: str | None = None,
        cost: str | None = None,
    ) -> None:
        """Take other names for columns that are no features, where given."""
        check_is_fitted(self, "models_")
        given = {"group": group, "label": label, "cost": cost}
        self.columns_ = self.columns_.updated(given)

    def groups(
        self,
        table: Table,
        *,
        labels: BoolArray | None = None,
        use_labels: bool = False,
        use_costs: bool = False,
        relevance: str | None = None,
        progress: Progress = _ignore,
    ) -> Groups:
        """Return the groups of another table, its columns encoded as in training."""
        columns = replace(
            self.columns_,
            label=self.columns_.label if use_labels else None,
            cost=self.columns_.cost if use_costs else None,
            relevance=relevance,
        )
        if use_costs and columns.cost is None:
            raise TableError("a budget needs a column of costs: name it with cost")
        self._check_columns(table, columns)
        found = survey(
            table, columns, labels, self.encoding_, _rows(progress, "reading")
        )
        return Groups(table, found, labels, self.memory, _rows(progress, "encoding"))

    def _check_columns(self, table: Table, columns: Columns) -> None:
        """Refuse a table without the columns that the model was learned with."""
        try:
            columns.resolve(table.schema, is_untyped=table.is_untyped)
        except TableError as error:
            raise TableError(f"{table.name} does not fit the model: {error}") from None

    def chooser(
        self, omega: float | None, k: int | None = None, budget: float | None = None
    ) -> ByModel:
        """Return what chooses from a group."""
        if k is not None:
            check_count("k", k)
        if budget is not None:
            check_number("budget", budget, positive=True)
        if omega is not None:
            check_number("omega", omega, positive=True)
        wanted = resolve_omega(self.omegas_, omega, self.omega_)
        model = model_at(self.omegas_, self.models_, wanted)
        return ByModel(model, as_decoder(self.decoder), k, budget, self._seed())

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
        table = as_table(X)
        labels = None if y is None else _labels(y)
        groups = self.groups(table, labels=labels, use_labels=y is None)
        found = evaluate(groups, {"model": self.chooser(None)}, self.n_jobs)
        return float(found.scores["model"][:, 2].mean())

    # Keeping ----------------------------------------------------------------------

    def save(self, path: str | Path) -> None:
        """Write the fitted selector to a JSON file; :func:`variegate.load` reads it."""
        from variegate.tables import model_file

        check_is_fitted(self, "models_")
        model_file.save(self, path)


def _rows(report: Progress, stage: str) -> Callable[[int], None]:
    # How many rows there are is not known before they have been read.
    return lambda done: report(stage, done, 0)


def _labels(y: Any) -> BoolArray:
    import pyarrow as pa

    from variegate.tables.cells import as_flags

    values: IntArray = np.asarray(y)
    if values.ndim != 1:
        raise TableError(f"y must have one label a row, got shape {values.shape}")
    try:
        column = pa.array(values.tolist(), from_pandas=True)
    except (pa.ArrowException, TypeError) as error:
        raise TableError(f"y must be 1 or 0 for every row: {error}") from None
    return as_flags(column, "y", 0)

"""The selector that learns from tables and chooses from tables."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Self

import numpy as np
from sklearn.base import clone

from variegate._progress import Progress
from variegate._random import generator
from variegate._typing import BoolArray, IntArray, RandomState
from variegate.application.table_defaults import EMPTY_GROUPS, MEMORY, MISSING
from variegate.estimator import DPPEstimator
from variegate.files.models import NOTHING, Own
from variegate.files.run_store import RunStore
from variegate.kernels import Kernel
from variegate.partitions import Engine
from variegate.partitions.cache import Limits
from variegate.tables import model_file
from variegate.tables.cells import as_labels
from variegate.tables.columns import Columns
from variegate.tables.groups import Groups
from variegate.tables.judging import judge
from variegate.tables.kinds import kinds_record
from variegate.tables.model_file import (
    NOUNS,
    path_of_record,
    training_record,
    validation_path,
)
from variegate.tables.problems import Inspection
from variegate.tables.scoring import ScoringSelector
from variegate.tables.selector_parameters import (
    NetworkPlan,
    check_parameters,
    columns_wanted,
    progress_callback,
    training_columns,
    training_plan,
)
from variegate.tables.survey import (
    Survey,
    learn_encoding,
    refuse_labels_among,
    split,
    survey,
    usable_groups,
)
from variegate.tables.table import Table, TableError, as_table
from variegate.tables.training import Learned, TrainingPlan


class TableSelector(ScoringSelector):
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
        Columns that tell good rows from bad ones; ``*`` in a name stands for anything,
        and ``age:published`` for the age in days of a column of dates.  By default
        every column of numbers that has no other part.
    similarity : str, sequence of str or dict, optional
        Columns that tell whether rows are alike: vectors (embeddings) or numbers.
        ``"embedding=e*"``, or ``{"embedding": "e*"}``, makes one vector of several
        columns of numbers.  By default the quality columns.
    categorical : str or sequence of str, optional
        Columns whose values are names of kinds.
    item : str, optional
        The column that identifies a row in its group; values must differ.
    cost : str, optional
        The column of costs, for a budget.
    relevance : str, optional
        The column for untrained methods, in :meth:`evaluate` and :meth:`report`.
    missing : {"error", "mean", "indicator"}, default="error"
        What to do where a cell is empty.
    empty_groups : {"error", "keep", "drop"}, default="error"
        What to do with groups without a chosen row, here and in :meth:`evaluate`.
    lam : float, optional
        Weight of the margin; 0 is maximum likelihood.  The larger it is, the more
        ``omega`` acts: with 1 hardly, with 16 so much that a small one chooses nothing.
        4 without an estimator.
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
    kernel : {"auto", "multiple", "kinds", "metric", "linear"} or Kernel, optional
        The similarity, over all columns of it: Gaussians of several bandwidths and a
        linear part with learned weights, learned kinds, a learned metric, or a linear
        kernel.  "auto", if the estimator has none, compares kinds of several numbers,
        Gaussians and the linear kernel on at most 300 groups, held out in turn, among
        themselves and with a logistic regression whose rows an untrained method of
        :func:`variegate.select` makes diverse, and takes what does best there; what of
        ``lam``, ``l2``, ``omega``, ``decoder`` is not given, and whether to choose a
        fixed number of rows, is decided there too.
    l2 : float, optional
        Penalty on the weights of the quality.  1e-4 without an estimator.
    decoder : name or decoder object, optional
        How rows are chosen; see :meth:`variegate.LEnsemble.decode`.  "greedy", without
        an estimator, is fast and leaves out what is like something chosen;
        "expected-f" and "mbr" choose more, often with a better F-score.
    max_iter : int, optional
        Most iterations of L-BFGS.  200 without an estimator.
    tol : float, optional
        Its tolerance on the gradient.  1e-2 without an estimator.
    n_epochs : int, optional
        Passes over a table that is too large for memory; by default those of the
        estimator's solver, if that is a :class:`variegate.solvers.MiniBatch`, else as
        many as make 1000 steps.
    validation_fraction : float, default=0.0
        Share of the groups that is held out and judged by in ``training_``; what is
        learned does not depend on them.
    memory : int, default=536870912
        Bytes of features that may be held in memory.  A table that takes more is
        learned from in batches, by stochastic gradients.
    n_jobs : int, optional
        Threads or processes that work at a time; -1 for one a core.
    random_state : None, int or numpy.random.Generator, default=0
    estimator : LargeMarginDPP or variegate.torch.NeuralDPP, optional
        What is learned with.  By default one that suits most tables:
        ``LargeMarginDPP(lam=4.0, l2=1e-4, decoder="greedy", max_iter=200, tol=1e-2)``.
        Its ``omega``, ``random_state`` and ``warm_start`` do not matter: the selector
        has its own.  Of ``lam``, ``kernel``, ``l2``, ``decoder``, ``max_iter``,
        ``tol``, ``n_jobs`` and ``device``, those that are given to the selector, and
        not None, count in place of the estimator's.  A ``NeuralDPP`` learns for one
        ``omega``, its own if the selector has none, from tables in memory; there is
        nothing to ``tune`` or compare, and no weights to describe.
    verbose : bool, default=False
        Whether to print progress to standard error, where no ``progress`` is given.
    device : str, optional
        Where models are learned, for example "cuda" or "auto": see
        :class:`variegate.LargeMarginDPP`.  Everything else is done on the CPU.

    Attributes
    ----------
    columns_ : Columns
        The roles of columns, patterns spelt out.
    encoding_ : Encoding
        How columns become features.
    lam_ : float
    family_ : OmegaFamily
    omegas_, models_ : tuple of float, tuple of LargeMarginDPP
        Those of the family.
    omega_ : float
        The default omega.
    k_ : int or None
        The default number of rows of each group; None where the model decides.
    ordering_ : Ordering or None
        The method of :func:`variegate.select` and its trade-off that rows are chosen
        by, with the model's quality for relevance, where a regression did best.
    fallback_ : Fallback or None
        Where kinds were learned by comparison: models without learned kinds, for groups
        that are unlike those of training.
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
        similarity: str | Sequence[str] | Mapping[str, Any] | None = None,
        categorical: str | Sequence[str] | None = None,
        item: str | None = None,
        cost: str | None = None,
        missing: str = MISSING[0],
        empty_groups: str = EMPTY_GROUPS[0],
        lam: float | None = None,
        omega: float | Sequence[float] | None = None,
        tune: bool = False,
        lams: Sequence[float] = (0.0, 4.0, 16.0),
        target_precision: float | None = None,
        target_recall: float | None = None,
        kernel: str | Kernel | None = None,
        l2: float | None = None,
        decoder: Any = None,
        max_iter: int | None = None,
        tol: float | None = None,
        n_epochs: int | None = None,
        validation_fraction: float = 0.0,
        memory: int = MEMORY,
        n_jobs: int | None = None,
        random_state: RandomState = 0,
        estimator: DPPEstimator | None = None,
        relevance: str | None = None,
        verbose: bool = False,
        device: str | None = None,
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
        self.estimator = estimator
        self.relevance = relevance
        self.verbose = verbose
        self.device = device

    # Learning ---------------------------------------------------------------------

    def fit(
        self,
        X: Any,
        y: Any = None,
        progress: Progress | None = None,
        *,
        engine: Engine | None = None,
        checkpoint: RunStore | str | Path | None = None,
        skip_unreadable: bool = False,
        first_passes: int | None = None,
        limits: Limits | None = None,
    ) -> Self:
        """Learn from a table of groups and what was chosen from them.

        Parameters
        ----------
        X : data frame, Arrow table or path
        y : array of 0 and 1, optional
            The label of every row, in place of the label column.
        progress : callable, optional
            Called with what is being done, and (finished, all) steps of it.
        engine : Engine, optional
            Learns from the files of a folder where they are, one by one: ``X`` is the
            path of a folder of Parquet or Arrow files, of which each holds all rows of
            its groups (:func:`variegate.tables.gather` sees to that).  The rest is for
            an engine only.
        checkpoint : RunStore, str or Path, optional
            A file, made if it is not there, by which a fit that was killed is resumed,
            with the same bits.  It is removed at the end, unless it was given open.
        skip_unreadable : bool, default=False
            Whether files that cannot be read are left out, and named in ``training_``.
        first_passes, limits
            As for :class:`variegate.partitions.PartitionedExamples`.

        Returns
        -------
        self
        """
        self._check_parameters()
        progress = progress_callback(progress, self.verbose)
        if engine is not None:
            from variegate.tables.folder.learning import learn_folder

            if y is not None:
                raise ValueError(
                    "with an engine, labels are a column of the files, not y"
                )
            learn_folder(
                self, X, engine, progress, checkpoint=checkpoint,
                skip_unreadable=skip_unreadable, first_passes=first_passes,
                limits=limits,
            )  # fmt: skip
            return self
        table = as_table(X)
        labels = as_labels(y)
        try:
            return self._fit(table, y, labels, progress)
        except TableError as error:
            wanted = columns_wanted(self, table, y)
            found = Inspection(table, wanted, labels, self.empty_groups)
            raise found.of(error) from error

    def _fit(
        self, table: Table, y: Any, labels: BoolArray | None, progress: Progress
    ) -> Self:
        names = table.schema.names
        table, columns = training_columns(self, table, y)
        if labels is not None and not self.quality:
            refuse_labels_among(columns.quality, table, labels)
        self.seed_ = int(generator(self.random_state).integers(2**31))
        # A relevance is for methods that learn nothing.
        found = survey(table, replace(columns, relevance=None), labels, progress)
        learned_from, held_out = self._split(found)
        encoding = learn_encoding(table, found, learned_from, progress)
        groups = Groups(table, found, encoding, labels, self.memory, progress)
        plan = training_plan(self, encoding, progress)
        self._learn(plan, names, columns, groups, learned_from, held_out)
        return self

    def _learn(
        self,
        plan: TrainingPlan | NetworkPlan,
        names: Sequence[str],
        columns: Columns,
        groups: Groups,
        learned_from: IntArray,
        held_out: IntArray,
    ) -> Learned:
        """Learn from some groups, judge by others, and record how it went.

        ``names`` are those of all columns of the table.
        """
        learned = plan.learn(groups, learned_from)
        self.columns_, self.encoding_ = columns, groups.encoding
        self.family_, self.omega_ = learned.policy.family, learned.policy.omega
        self.k_, self.ordering_ = learned.policy.k, learned.policy.ordering
        self.fallback_ = learned.fallback
        self.feature_names_in_ = np.array(names, dtype=object)
        self.n_features_in_ = len(self.feature_names_in_)
        judged = None
        if len(held_out):
            # One chooser per omega, plus the default.
            choosers = {str(omega): self._chooser(omega) for omega in self.omegas_}
            choosers[""] = self._chooser()
            judged = judge(
                groups, held_out, choosers, self.n_jobs, plan.progress, seed=self.seed_
            )
        path = learned.path or validation_path(judged, learned)
        self.path_ = path and replace(path, nouns=NOUNS)
        self.training_ = training_record(
            groups.survey, learned, self.path_, judged, learned_from, held_out
        )
        self.training_ |= kinds_record(self.model_, groups, learned_from, self.seed_)
        return learned

    def _split(self, found: Survey) -> tuple[IntArray, IntArray]:
        usable = usable_groups(found, self.empty_groups)
        return split(usable, self.validation_fraction, self.seed_)

    # Keeping ----------------------------------------------------------------------

    _check_parameters = check_parameters
    _sections = model_file.SECTIONS
    _encode_rest = model_file.encode_rest
    _decode_rest = model_file.decode_rest

    @classmethod
    def decode(cls, document: Mapping[str, Any], own: Own = NOTHING) -> Self:
        """Return the selector that a file describes."""
        selector = super().decode(document, own)
        selector.estimator = clone(selector.models_[0])
        model_file.decode_policy(selector, document, own)
        selector.path_ = path_of_record(selector.training_)
        return selector

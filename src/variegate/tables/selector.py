"""The selector that learns from tables and chooses from tables."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Self

from sklearn.base import clone

from variegate._progress import Progress
from variegate._typing import RandomState
from variegate.application.table_defaults import (
    EMPTY_GROUPS,
    MEMORY,
    MISSING,
    QUALITY_MODELS,
)
from variegate.estimator import DPPEstimator
from variegate.files.models import NOTHING, Own
from variegate.files.run_store import RunStore
from variegate.kernels import Kernel
from variegate.partitions import Engine
from variegate.tables import model_file
from variegate.tables.cells import as_labels
from variegate.tables.errors import TableError
from variegate.tables.fitting import (
    SelectorFit,
    check_parameters,
    requested_columns,
    use_checkpoint,
)
from variegate.tables.model_file import path_of_record
from variegate.tables.problems import Inspection
from variegate.tables.scoring import ScoringSelector
from variegate.tables.table import as_table


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
    given : str, optional
        The column that is 1 in rows that are there already, such as the first page of
        results, and 0 in the candidates.  Candidates are chosen beside the given rows
        of their group, unlike them.  Given rows are never chosen, not labelled 1, and
        do not count for ``k``, ``budget``, ``at_most`` and scores.  Groups of given
        rows alone are left out of ``fit`` and ``evaluate``.
    segment : str, optional
        The column that cuts a group into segments, such as the scenes of a film or the
        sessions of a user.  Rows with the same value are a segment; segments are in the
        order of their first rows.  Rows of a segment are chosen unlike each other and
        unlike the rows chosen from the last ``segment_memory`` segments, and may repeat
        what is further back, as by :class:`variegate.SequentialDPP`.  Ranks, limits and
        scores are of the whole group; untrained methods and rivals choose from it
        regardless of segments.  Not with ``at_most``.
    missing : {"error", "mean", "indicator"}, default="error"
        What to do where a cell is empty.
    empty_groups : {"error", "keep", "drop"}, default="error"
        What to do with groups without a chosen row, here and in :meth:`evaluate`.
    lam : float, optional
        Weight of the margin; 0 is maximum likelihood.  4 without an estimator.
    omega : float, optional
        What a missed row costs against a wrong one while learning; any other value can
        be asked for when rows are chosen.  1 unless another is better in the
        comparison of ``kernel``.
    tune : bool, default=False
        Whether to choose ``lam`` among ``lams``, and ``omega``, by cross-validation
        on at most 300 of the groups.
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
    quality_model : {"auto", "linear", "boosting"}, default="auto"
        How the quality of a row depends on its features.  "boosting" adds the log-odds
        of boosted trees (:class:`variegate.estimator.BoostedQuality`) to the quality
        features, as "boosted score": rows that are learned from are scored out of
        fold, others by trees fitted to all folds.  "auto" tries this in the comparison
        of ``kernel``, where there is one, and keeps it if it clearly gains there.
    l2 : float, optional
        Penalty on the weights of the quality.  1e-4 without an estimator.
    decoder : name or decoder object, optional
        How rows are chosen; see :meth:`variegate.LEnsemble.decode`.  "greedy", without
        an estimator, is fast and leaves out what is like something chosen;
        "expected-f" and "mbr" choose more, often with a better F-score.
    max_iter : int, optional
        Most iterations of L-BFGS.  1000 without an estimator.
    tol : float, optional
        Its tolerance on the gradient.  1e-2 without an estimator.
    first_passes : int, optional
        Passes of stochastic gradients before L-BFGS begins; by default one for very
        many groups, where it saves time, and none for fewer.
    validation_fraction : float, default=0.0
        Share of the groups that is held out and judged by in ``training_``; what is
        learned does not depend on them.
    memory : int, default=536870912
        Bytes that a process may hold.  A larger table is read in parts; what is learned
        does not depend on it.
    segment_memory : int, default=1
        Segments whose chosen rows the next one is chosen beside.
    n_jobs : int, optional
        Threads or processes that work at a time; -1 for one a core.
    random_state : None, int or numpy.random.Generator, default=0
    estimator : LargeMarginDPP or variegate.torch.NeuralDPP, optional
        What is learned with.  By default one that suits most tables:
        ``LargeMarginDPP(lam=4.0, l2=1e-4, decoder="greedy", max_iter=1000, tol=1e-2)``.
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
    model_ : LargeMarginDPP
        The learned model.
    lam_, omega_ : float
        Those of the model; ``omega_`` is the default in :meth:`select`.
    k_ : int or None
        The default number of rows of each group; None where the model decides.
    policy_ : Policy
        How rows are chosen by default: the model, k, a method of
        :func:`variegate.select` where a regression did best and, where kinds were
        learned by comparison, a fallback for groups unlike those of training.
    path_ : OmegaPath or None
        Precision and recall by omega on the groups held out, None without any.
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

    _type = "table-selector"
    _noun = "table selector"
    #: The estimator is stored as the model, and the rest is about the machine.
    _not_stored = (
        "estimator", "kernel", "decoder", "n_jobs", "device", "memory", "verbose",
    )  # fmt: skip

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
        omega: float | None = None,
        tune: bool = False,
        lams: Sequence[float] = (0.0, 4.0, 16.0),
        target_precision: float | None = None,
        target_recall: float | None = None,
        kernel: str | Kernel | None = None,
        l2: float | None = None,
        decoder: Any = None,
        max_iter: int | None = None,
        tol: float | None = None,
        first_passes: int | None = None,
        validation_fraction: float = 0.0,
        memory: int = MEMORY,
        n_jobs: int | None = None,
        random_state: RandomState = 0,
        estimator: DPPEstimator | None = None,
        relevance: str | None = None,
        verbose: bool = False,
        device: str | None = None,
        quality_model: str = QUALITY_MODELS[0],
        given: str | None = None,
        segment: str | None = None,
        segment_memory: int = 1,
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
        self.first_passes = first_passes
        self.validation_fraction = validation_fraction
        self.memory = memory
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.estimator = estimator
        self.relevance = relevance
        self.verbose = verbose
        self.device = device
        self.quality_model = quality_model
        self.given = given
        self.segment = segment
        self.segment_memory = segment_memory

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
    ) -> Self:
        """Learn from a table of groups and what was chosen from them.

        What is learned does not depend on how the table is packed: in memory, in a file
        or in a folder of any number of files, by any engine, the model is the same to
        the last bit.

        Parameters
        ----------
        X : data frame, Arrow table or path
        y : array of 0 and 1, optional
            The label of every row, in place of the label column.
        progress : callable, optional
            Called with the stage, and the numbers of finished and of all its steps.
        engine : Engine, optional
            Reads and learns partition by partition, such as
            :class:`variegate.dask.DaskEngine`; by default this process.
        checkpoint : RunStore, str or Path, optional
            A file, made if it is not there, from which a fit to a file or a folder
            resumes after it was killed, with the same bits.  It is removed at the end,
            unless it was given open.
        skip_unreadable : bool, default=False
            Whether files that cannot be read are left out, and named in ``training_``.

        Returns
        -------
        self
        """
        self._check_parameters()
        progress = self._progress(progress)
        table, labels = as_table(X, skip_unreadable), as_labels(y)
        with use_checkpoint(checkpoint, self, table) as store:
            fit = SelectorFit(
                self, table, y, labels, engine, store, skip_unreadable, progress
            )
            try:
                fit.fit_selector()
            except TableError as error:
                wanted = requested_columns(self, table.schema.names, y)
                found = Inspection(
                    table, wanted, labels, self.empty_groups,
                    engine=engine, memory=self.memory,
                )  # fmt: skip
                raise found.list_problems(error) from error
        return self

    # Keeping ----------------------------------------------------------------------

    _check_parameters = check_parameters
    _sections = model_file.SECTIONS
    _encode_rest = model_file.encode_rest
    _decode_rest = model_file.decode_rest

    @classmethod
    def decode(cls, document: Mapping[str, Any], own: Own = NOTHING) -> Self:
        """Return the selector of a parsed file; ``own`` has the user's classes."""
        selector = super().decode(document, own)
        selector.estimator = clone(selector.family_.models[0])
        model_file.decode_policy(selector, document, own)
        selector.path_ = path_of_record(selector.training_)
        return selector

"""``LargeMarginDPP``: learn from selections, then select."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import partial
from pathlib import Path
from typing import Any, Self

from sklearn.utils.validation import check_is_fitted

from variegate._random import check_random_state
from variegate._typing import FloatArray, RandomState
from variegate._validation import check_count, check_flag, check_number
from variegate.decoding import Decoder, as_decoder
from variegate.ensemble import LEnsemble
from variegate.estimator.alike import warn_if_all_alike
from variegate.estimator.base import DPPEstimator, LearnedDisplay, weights_html
from variegate.estimator.learner import AdamState, Learner
from variegate.files import models as model_files
from variegate.ground_set import GroundSet
from variegate.kernels import Kernel, MultipleKernel
from variegate.learning.device_name import resolve_device
from variegate.learning.examples import Example, check_examples
from variegate.learning.factors import learned_ensemble
from variegate.learning.problem import SharedExamples
from variegate.learning.quality import log_quality
from variegate.partitions.engine import Engine, Serial, Threads
from variegate.partitions.examples import PartitionedExamples
from variegate.partitions.partition import PairPartitions, Source, hold_pairs
from variegate.solvers import Callback, SolverResult, Step, as_solver


class LargeMarginDPP(LearnedDisplay, DPPEstimator):
    r"""Determinantal point process learned with the large-margin principle.

    Each ground set has the kernel ``L_ij = q_i q_j S_ij`` with quality
    ``q_i = exp(θᵀ x_i + b)`` and a similarity ``S`` given by ``kernel``.  ``fit``
    minimizes (paper eq. 14)

    .. math::

        \frac{1}{n} \sum_n \Bigl[ -\log P(y_n; L_n) + \lambda \log \Bigl(
            \sum_{i \notin y_n} K_{ii} + \omega \sum_{i \in y_n} (1 - K_{ii})
        \Bigr) \Bigr]_+ + \frac{l_2}{2} \|\theta\|^2

    over ``θ``, ``b`` and the kernel's parameters, where ``K_ii`` is the probability
    that item ``i`` is chosen.  ``lam=0`` is maximum likelihood.

    Parameters
    ----------
    lam : float, default=1.0
        Weight ``λ`` of the margin.
    omega : float, default=1.0
        Cost of missing an item relative to choosing a wrong one: above 1 for recall,
        below 1 for precision.
    kernel : Kernel, optional
        The similarity; ``MultipleKernel()`` if none is given.
    fit_intercept : bool, default=True
        Whether to learn ``b``, which sets how many items are chosen when the features
        alone cannot.  The paper has no intercept.
    l2 : float, default=0.0
        Penalty on ``θ`` (not on ``b``).
    solver : {"lbfgs", "minibatch"} or solver object, default="lbfgs"
        L-BFGS, or :class:`~variegate.solvers.MiniBatch`, which takes a step of Adam for
        each batch.
    decoder : name or decoder object, default="mbr"
        How ``predict`` chooses: "mbr", "expected-f", "greedy", "local", "relaxed" or
        "exact"; see :meth:`LEnsemble.decode`.
    jitter : float, default=1e-6
        Ridge on ``S`` relative to its diagonal, so that a training subset larger than
        the rank of ``S`` keeps a positive probability.
    max_iter : int, default=500
        Largest number of iterations of a solver given by name.
    tol : float, default=1e-5
        Tolerance on the gradient of a solver given by name.
    n_starts : int, default=1
        Where the kernel has parameters, the objective has several minima.  The first
        start is always the same; each further one takes random kernel parameters, and
        the best end by training objective is kept.
    warm_start : bool, default=False
        Start from the parameters of the previous ``fit`` where they fit.
    callback : callable, optional
        Called with a :class:`~variegate.solvers.Step` after every iteration; a true
        return value stops the solver.
    random_state : None, int or numpy.random.Generator
        For sampling in the decoder, and for further starts.
    n_jobs : int, optional
        Threads that ground sets are shared among while learning, with BLAS held to one
        each; -1 for one a core.  What is learned has the same bits whatever the number.
        By default one thread, with BLAS as it is configured; with a ``device``,
        nothing.
    verbose : bool, default=False
        Whether to print progress on standard error.
    device : None, "auto", "cpu", "cuda" or "cuda:1", default=None
        Where learning computes.  None: the CPU, by NumPy and compiled code.  Anything
        else needs PyTorch (``pip install 'variegate[torch]'``): a GPU, the first or by
        its number, or PyTorch on the CPU; "auto" is a GPU where there is one and None
        otherwise.  What is learned does not depend on it but for rounding, and is not
        tied to it: a model file holds no device, and ``predict`` does not use one.
        Worth it from thousands of ground sets, or sets of a thousand items, on; kernels
        with parameters other than the library's own are refused.

    Attributes
    ----------
    theta_ : array of shape (d,)
    intercept_ : float
    kernel_ : the fitted kernel
    kernel_parameters_ : array
    alpha_, beta_ : array, float
        The weights of a ``MultipleKernel`` (paper eq. 8).
    history_ : list of Step
        Objective and gradient at every iteration.
    solver_result_ : SolverResult
    n_features_in_ : int

    Examples
    --------
    >>> import variegate as vg
    >>> data = vg.datasets.make_synthetic(n_sets=60, random_state=0)
    >>> model = vg.LargeMarginDPP(kernel=vg.Linear(), decoder="exact")
    >>> model = model.fit(data.ground_sets[:40], data.subsets[:40])
    >>> len(model.predict(data.ground_sets[40:]))
    20
    >>> model.score(data.ground_sets[40:], data.subsets[40:]) > 0.8
    True
    """

    _fitted = "theta_"

    def __init__(
        self,
        lam: float = 1.0,
        omega: float = 1.0,
        kernel: Kernel | None = None,
        fit_intercept: bool = True,
        l2: float = 0.0,
        solver: Any = "lbfgs",
        decoder: str | Decoder = "mbr",
        jitter: float = 1e-6,
        max_iter: int = 500,
        tol: float = 1e-5,
        n_starts: int = 1,
        warm_start: bool = False,
        callback: Callback | None = None,
        random_state: RandomState = None,
        n_jobs: int | None = None,
        verbose: bool = False,
        device: str | None = None,
    ) -> None:
        self.lam = lam
        self.omega = omega
        self.kernel = kernel
        self.fit_intercept = fit_intercept
        self.l2 = l2
        self.solver = solver
        self.decoder = decoder
        self.jitter = jitter
        self.max_iter = max_iter
        self.tol = tol
        self.n_starts = n_starts
        self.warm_start = warm_start
        self.callback = callback
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.verbose = verbose
        self.device = device

    # Learning ---------------------------------------------------------------------

    def fit(
        self,
        ground_sets: (
            Sequence[GroundSet]
            | Iterable[tuple[GroundSet, Any]]
            | Source
            | PartitionedExamples
        ),
        subsets: Sequence[Any] | None = None,
        *,
        false_positive: Sequence[Any] | None = None,
        false_negative: Sequence[Any] | None = None,
        validation: tuple[Sequence[GroundSet], Sequence[Any]] | None = None,
        engine: Engine | None = None,
        checkpoint: str | Path | None = None,
    ) -> Self:
        """Learn from wanted subsets.

        Parameters
        ----------
        ground_sets : list of GroundSet, iterable of pairs, or PairPartitions
            A bare array stands for ``GroundSet(array)``.  Without ``subsets``, an
            iterable of (ground set, subset) pairs, which may be a generator: it is read
            once, held in memory up to 1 GiB and beyond that in temporary files.  Or
            :class:`~variegate.partitions.PairPartitions`, which the engine loads part
            by part.  From the same pairs the same is learned, but for rounding.
        subsets : list, optional
            For each ground set, the wanted item numbers or a boolean mask.
        false_positive, false_negative : list of arrays of shape (N,), optional
            Costs of choosing each item wrongly and of missing it, in place of 1 and
            ``omega``.  Only with ``subsets``.
        validation : (list of GroundSet, list of subsets), optional
            Held-out data, on which ``MiniBatch`` reports and by which it picks the
            best parameters.
        engine : Engine, optional
            Where partitions are learned from: :class:`~variegate.partitions.Serial`
            (the default), :class:`~variegate.partitions.Threads`, or
            ``variegate.dask.DaskEngine``, which needs ``PairPartitions``.
        checkpoint : path, optional
            With partitions, a file in which evaluations are kept.  If it exists,
            learning resumes from it and ends with the same parameters as without
            interruption; it is removed at the end.

        Warns
        -----
        variegate.estimator.AllAlikeWarning
            If the learned similarity calls nearly all items alike.
        """
        self._check_parameters()
        costs = (false_positive, false_negative)
        if subsets is None:
            examples = self._read_pairs(ground_sets, costs, engine)
        else:
            if isinstance(ground_sets, PairPartitions | PartitionedExamples):
                raise ValueError(
                    "subsets are for lists: partitions hold the subsets with their "
                    "ground sets"
                )
            examples = check_examples(ground_sets, subsets, self.omega, *costs)
        n_jobs = self.n_jobs
        if isinstance(examples, list) and engine is not None:
            if not isinstance(engine, Serial | Threads):
                raise ValueError(
                    f"{type(engine).__name__} cannot read the memory of this process: "
                    "give variegate.partitions.PairPartitions, which workers load"
                )
            n_jobs = getattr(engine, "n_jobs", 1)
        learner = Learner(self, warm=self.warm_start, n_jobs=n_jobs)
        self._set_fitted(*learner.learn(examples, validation, checkpoint))
        some = examples if isinstance(examples, list) else examples.first_examples()
        warn_if_all_alike(self.kernel_, self.kernel_parameters_, some)
        return self

    def _read_pairs(
        self, data: Any, costs: tuple[Any, Any], engine: Engine | None
    ) -> list[Example] | PartitionedExamples:
        """Return ``data``, pairs as examples, or partitions with the ``engine``.

        ValueError if any of ``costs`` is given.
        """
        if any(given is not None for given in costs):
            raise ValueError(
                "false_positive and false_negative are for lists: give ground_sets and "
                "subsets"
            )
        if isinstance(data, PartitionedExamples):
            if engine is not None:
                raise ValueError(
                    "PartitionedExamples have an engine: give engine= to them"
                )
            return data
        if not hasattr(data, "partitions") and not isinstance(data, SharedExamples):
            data = hold_pairs(data, self.omega)
        return data if isinstance(data, list) else PartitionedExamples(data, engine)

    def partial_fit(
        self, ground_sets: Sequence[GroundSet], subsets: Sequence[Any], n_steps: int = 1
    ) -> Self:
        """Take ``n_steps`` steps of Adam on one batch of ground sets and subsets.

        With the rate of ``solver``, where that is a ``MiniBatch``.  The first call fits
        the kernel and the scale of features to its batch, so let it be a typical one;
        after ``fit`` or ``load``, it resumes from the fitted parameters.
        """
        self._check_parameters()
        check_count("n_steps", n_steps)
        examples = check_examples(ground_sets, subsets, self.omega)
        if hasattr(self, "theta_"):
            self._check_n_features(examples[0].ground_set.n_features)
        state = getattr(self, "_optimizer", None)
        learned, optimizer = Learner(self, warm=True).take_steps(
            examples, n_steps, state
        )
        self._set_fitted(*learned)
        self._optimizer: AdamState = optimizer
        return self

    def _set_fitted(
        self, kernel: Kernel, parts: dict[str, FloatArray], result: SolverResult
    ) -> Self:
        """Set fitted attributes from ``parts``, drop the state of Adam, return self."""
        if hasattr(self, "_optimizer"):  # the state of earlier parameters
            del self._optimizer
        self.kernel_ = kernel
        self.theta_: FloatArray = parts["theta"]
        self.intercept_ = float(parts["intercept"].sum())
        self.kernel_parameters_: FloatArray = parts["kernel"]
        self.solver_result_ = result
        self.history_: list[Step] = result.history
        self.n_features_in_ = len(self.theta_)
        return self

    def _check_parameters(self) -> None:
        """Raise ValueError for invalid parameters of the constructor."""
        for name in ("lam", "omega", "l2", "jitter", "tol"):
            check_number(name, getattr(self, name))
        for name in ("max_iter", "n_starts"):
            check_count(name, getattr(self, name))
        for name in ("fit_intercept", "warm_start", "verbose"):
            check_flag(name, getattr(self, name))
        if self.kernel is not None and not isinstance(self.kernel, Kernel):
            raise ValueError(
                f"kernel must be a Kernel such as MultipleKernel(), got {self.kernel!r}"
            )
        if self.callback is not None and not callable(self.callback):
            raise ValueError(f"callback must be callable, got {self.callback!r}")
        check_random_state(self.random_state)
        if self.n_jobs not in (None, -1):
            check_count("n_jobs", self.n_jobs)
        resolve_device(self.device)
        as_solver(self.solver, self.max_iter, self.tol)
        as_decoder(self.decoder)

    @property
    def alpha_(self) -> FloatArray:
        """The weights of the Gaussians of a ``MultipleKernel``."""
        return self._multiple_kernel().split(self.kernel_parameters_)[0]

    @property
    def beta_(self) -> FloatArray | float:
        """The weight of the linear part of a ``MultipleKernel``."""
        return self._multiple_kernel().split(self.kernel_parameters_)[1]

    def _multiple_kernel(self) -> MultipleKernel:
        """Return the fitted kernel, or raise AttributeError if it is another one."""
        if not hasattr(self, "kernel_"):
            raise AttributeError("the model is not fitted")
        if not isinstance(self.kernel_, MultipleKernel):
            raise AttributeError(
                f"{type(self.kernel_).__name__} has no alpha and beta; only a "
                "MultipleKernel has"
            )
        return self.kernel_

    def _learned_html(self) -> str:
        """Return the weights, the kernel and the end of learning as HTML."""
        check_is_fitted(self, "theta_")
        result = getattr(self, "solver_result_", None)
        status = "" if result is None else result.status
        return weights_html(self.theta_, self.intercept_, self.kernel_, status)

    # Choosing ---------------------------------------------------------------------

    def ensemble(self, ground_set: GroundSet) -> LEnsemble:
        """Return the determinantal point process of one ground set.

        Of more than 2000 items with a similarity of low rank (``Linear`` with few
        features, or an approximation), it is held as a factor, which leaves out the
        ``jitter``: no more items can be chosen than the factor has columns.
        Beside given items it is that of the candidates; ``items`` has their numbers.
        """
        return super().ensemble(ground_set)

    def _ensemble(self, ground_set: GroundSet) -> LEnsemble:
        """Return the ensemble of a ground set whose features were checked."""
        return learned_ensemble(
            ground_set,
            self.kernel_,
            self.kernel_parameters_,
            self._log_quality(ground_set.quality),
            self.jitter,
        )

    def _log_quality(self, features: FloatArray) -> FloatArray:
        """Return ``u = Xθ + b`` (N,) for quality features ``X`` (N, d)."""
        return log_quality(features, self.theta_, self.intercept_)

    # Keeping ----------------------------------------------------------------------

    def encode(self) -> dict[str, Any]:
        """Return settings, kernel, learned numbers and the ending as plain values."""
        return model_files.encode(self)


model_files.register_reader(
    None, partial(model_files.read_single_model, LargeMarginDPP)
)

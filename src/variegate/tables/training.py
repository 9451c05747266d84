"""Learning from groups: choose a contender on a sample, then learn from all."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
from joblib import effective_n_jobs
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from threadpoolctl import threadpool_limits

from variegate._progress import Progress
from variegate._typing import IntArray
from variegate.application.table_defaults import default_estimator
from variegate.baselines.learned import Ordering
from variegate.estimator import AllAlikeWarning, LargeMarginDPP
from variegate.files.run_store import RunStore
from variegate.kernels import Kernel, Kinds, Linear, Metric, Mixture, MultipleKernel
from variegate.learning.device_name import resolve_device
from variegate.partitions import Limits, PartitionedExamples, Serial, Threads
from variegate.solvers import MiniBatch, Step
from variegate.tables.boosting import BoostedSearch, boosted_groups
from variegate.tables.encoding import Encoding
from variegate.tables.errors import TableError
from variegate.tables.groups import Groups
from variegate.tables.policy import Policy
from variegate.tuning import LargeMarginDPPCV, OmegaPath
from variegate.tuning.kernel_search import Familiarity, KernelSearch, Winner
from variegate.tuning.race import LearnedDPP, Rule, TwoStage

if TYPE_CHECKING:
    from variegate.tables.selector import TableSelector

#: The omegas that the best is looked for among; below 1 are few that help the F-score.
TUNING_OMEGAS = (1 / 4, 1.0, 2.0, 4.0, 8.0, 16.0)

#: Groups that lambda and omega are chosen on, at most.
MAX_TUNING = 300

#: Iterations of each fit that they are chosen by, which starts from its neighbour's.
MAX_TUNING_ITER = 25

#: Groups that kernels are compared on, at most, rows of such a group, and rows of all,
#: which may be more where groups are few.
MAX_COMPARED = 300
MAX_COMPARED_ROWS = 500
MAX_COMPARED_IN_ALL = 7500
FEW_COMPARED = 50

#: Groups without which nothing is compared.
MIN_COMPARED = 4

#: Numbers of kinds that are compared.
_N_KINDS = (8, 16, 32)

#: Rows of a group whose pairs can be learned from.
MAX_ROWS = 10_000

#: Bytes of the groups that settings are chosen on, or that a model which learns in
#: memory learns from.  A constant, so that models do not depend on the memory allowed.
_SAMPLE_BYTES = 2**29

#: Parameters of a selector that count in place of those of its estimator.
_SHORT = ("lam", "l2", "decoder", "max_iter", "tol", "n_jobs", "device")


@dataclass(frozen=True, eq=False)
class Learned:
    """The policy that was learned, and what it was chosen by."""

    policy: Policy
    #: Scores on held-out groups that omega was chosen by.
    path: OmegaPath | None = None
    #: Groups that it was chosen on, 0 if it was given.
    n_tuned: int = 0
    #: The winner of a comparison, and the number of groups that it was made on.
    winner: Winner | None = None
    n_compared: int = 0
    #: Groups that were learned from, where they are a sample of all; else 0.
    n_sample: int = 0
    #: The groups with boosted log-odds, if the policy goes by them.
    boosted: Groups | None = None


def train(
    selector: TableSelector,
    groups: Groups,
    numbers: IntArray,
    progress: Progress,
    store: RunStore | None = None,
) -> Learned:
    """Learn from groups by number; return a policy, and what it was chosen by.

    The store keeps sums over partitions, such as gradients, for a run that resumes.
    """
    estimator = estimator_of(selector).set_params(random_state=selector.seed_)
    kernel = estimator.kernel if selector.kernel is None else selector.kernel
    estimator.set_params(kernel=kernel_for(kernel, groups.encoding))
    kernels = None
    if kernel in (None, "auto"):
        kernels = _kernel_search(selector, estimator, groups.encoding)
    training = _Training(selector, estimator, kernels, groups, numbers, progress, store)
    is_small = groups.survey.sizes[numbers].max() <= MAX_COMPARED_ROWS
    # Threads of BLAS wait for each other longer than small matrices take.
    with threadpool_limits(1 if is_small else None, user_api="blas"):
        return training.run()


def estimator_of(selector: TableSelector) -> Any:
    """Return a copy of the estimator, DPP or networks, with the selector's settings."""
    if selector.estimator is None:
        estimator = default_estimator()
    else:
        estimator = clone(selector.estimator)
        estimator.set_params(callback=selector.estimator.callback)
    known = estimator.get_params(deep=False)
    given = {name: getattr(selector, name) for name in _SHORT if name in known}
    return estimator.set_params(**{n: v for n, v in given.items() if v is not None})


def is_tuned(selector: TableSelector) -> bool:
    """Return whether lambda and omega are chosen by cross-validation."""
    return selector.tune or _has_target(selector)


def _has_target(selector: TableSelector) -> bool:
    """Tell whether a precision or a recall is aimed at."""
    return (selector.target_precision, selector.target_recall) != (None, None)


@dataclass(frozen=True, eq=False)
class _Training:
    """One training, from the groups of a table with these ``numbers``."""

    selector: TableSelector
    #: Its ``random_state`` is a seed.
    estimator: LargeMarginDPP
    #: Chooses the kernel of the estimator; None keeps it.
    kernels: KernelSearch | None
    groups: Groups
    numbers: IntArray
    progress: Progress
    store: RunStore | None

    def run(self) -> Learned:
        """Compare kernels, tune and boost where asked; return the learned policy."""
        winner, n_compared = self._run_comparison()
        kernel = winner.contender.model.kernel
        has_rank = getattr(kernel, "approximation", None)
        if not has_rank and not isinstance(kernel, Linear):
            refuse_large_groups(self.groups, self.numbers)
        winner, omega, path, n_tuned = self._tune(winner)
        boosted, groups = None, self.groups
        if winner.is_boosted:
            self.progress("boosting", 0, 1)
            boosted = groups = boosted_groups(groups, self.numbers, self.selector.seed_)
            self.progress("boosting", 1, 1)
        policy, n_sample = replace(self, groups=groups)._learn_policies(winner, omega)
        self.progress("learning", 1, 1)
        return Learned(policy, path, n_tuned, winner, n_compared, n_sample, boosted)

    def _learn_policies(self, winner: Winner, omega: float) -> tuple[Policy, int]:
        """Return a winner's policy, with fallback, and the sample's size, 0 for all."""
        sample = self._sample_within(self.numbers, len(self.numbers), _SAMPLE_BYTES)
        policy = self._learn_policy(winner, omega, sample)
        n_sample = 0
        if isinstance(winner.contender, TwoStage) and len(sample) < len(self.numbers):
            n_sample = len(sample)
        if winner.fallback is not None:
            kernel = policy.model.kernel_
            is_familiar = Familiarity.fit(kernel, self.groups.segments(sample)[0])
            if is_familiar is not None:
                with warnings.catch_warnings():
                    # A warning is about the model for most groups.
                    warnings.simplefilter("ignore", AllAlikeWarning)
                    fallback = self._learn_policy(winner.fallback, omega, sample)
                policy = replace(policy, fallback=fallback, is_familiar=is_familiar)
        return policy, n_sample

    def _run_comparison(self) -> tuple[Winner, int]:
        """Return the winner of the comparison, and the number of groups compared on.

        Without a comparison, or groups for it, the winner is the estimator as it is,
        and the number 0.
        """
        own = Rule(self.estimator.decoder)
        trees = self.selector.quality_model == "boosting"
        given = Winner(LearnedDPP("", self.estimator, [own]), own, is_boosted=trees)
        if self.kernels is None:
            return given, 0
        sizes = self.groups.survey.sizes
        small = self.numbers[sizes[self.numbers] <= MAX_COMPARED_ROWS]
        mean = sizes[small].mean() if len(small) else 1.0
        most = max(FEW_COMPARED, min(MAX_COMPARED, int(MAX_COMPARED_IN_ALL / mean)))
        some = self._sample_within(small, most, _SAMPLE_BYTES // 2)
        if len(some) < MIN_COMPARED:
            return given, 0
        seed = self.selector.seed_
        found = self.groups.segments(some)
        with self.groups.name_in_errors(found.sequence):
            winner = self.kernels.run(*found, seed=seed, progress=self.progress)
        return winner, len(some)

    def _tune(self, winner: Winner) -> tuple[Winner, float, OmegaPath | None, int]:
        """Return the winner with tuned ``lam``, its omega, and scores by omega.

        The last result is the number of groups tuned on.  Where nothing is tuned: the
        winner as it is, its omega, None and 0.
        """
        selector, estimator = self.selector, winner.contender.model
        if not is_tuned(selector) or isinstance(winner.contender, TwoStage):
            omega = selector.omega
            if omega is None:
                omega = float(estimator.omega) if self.kernels is not None else 1.0
            return winner, omega, None, 0
        numbers = self._sample_within(self.numbers, MAX_TUNING, _SAMPLE_BYTES)
        if len(numbers) < 2:
            raise TableError(
                "one group is not enough to choose lambda and omega by: give more "
                "groups, or do not tune"
            )
        decoder = estimator.decoder if winner.rule.k else winner.rule.how
        most = min(estimator.max_iter, MAX_TUNING_ITER)
        here = {"callback": None, "n_jobs": None, "device": None}
        model = clone(estimator).set_params(decoder=decoder, max_iter=most, **here)
        search_class = BoostedSearch if winner.is_boosted else LargeMarginDPPCV
        search = search_class(
            model,
            lams=selector.lams,
            omegas=TUNING_OMEGAS if selector.omega is None else [selector.omega],
            target_precision=selector.target_precision,
            target_recall=selector.target_recall,
            cv=min(3, len(numbers)),
            n_jobs=selector.n_jobs,
            random_state=selector.seed_,
            refit=False,
            drop_lams=True,
            callback=partial(self.progress, "tuning"),
        )
        X, y, sequence = self.groups.segments(numbers)
        with self.groups.name_in_errors(sequence):
            search.fit(X, y, None if selector.segment is None else sequence)
        best = next(p for p in search.path_ if p.omega == search.path_.chosen)
        if winner.rule.k and winner.standings[0].mean > best.f + best.f_error:
            # A fixed number of rows is clearly better than a tuned decoder.
            return winner, float(estimator.omega), None, 0
        model = clone(estimator).set_params(lam=search.best_lam_)
        contender = replace(winner.contender, model=model)
        tuned = replace(winner, contender=contender, rule=Rule(decoder))
        return tuned, search.best_omega_, search.path_, len(numbers)

    def _learn_policy(self, winner: Winner, omega: float, sample: IntArray) -> Policy:
        """Fit a winner to all groups or, if it is a regression, to the ``sample``."""
        is_two_stage = isinstance(winner.contender, TwoStage)
        found = self.groups.segments(sample) if is_two_stage else self._training_data()
        with self.groups.name_in_errors(found[2]):
            return self._fit_policy(winner, omega, *found[:2])

    def _training_data(self) -> tuple[Any, Any, IntArray]:
        """Return X and y to fit, partitions or lists, and group numbers for errors."""
        estimator, memory = self.estimator, self.selector.memory
        n_bytes = self._pairwise_bytes(self.numbers)
        is_on_device = resolve_device(estimator.device) is not None
        if is_on_device and n_bytes > memory:
            raise TableError(
                f"learning takes about {n_bytes / 1e9:.1f} GB, more than memory="
                f"{memory:,}, and device={estimator.device!r} holds all of it: "
                "raise memory, or leave out device"
            )
        is_mini_batch = isinstance(estimator.solver, MiniBatch)
        if is_on_device or (is_mini_batch and n_bytes <= memory):
            return self.groups.segments(self.numbers)
        engine, n_jobs = self.groups.engine, 1
        if type(engine) is Serial:
            # Threads share partitions or, where there is one, its groups.
            n_jobs = effective_n_jobs(estimator.n_jobs)
            engine = Threads(n_jobs)
            n_jobs = n_jobs if len(self.groups.survey.partitions) == 1 else 1
        examples = PartitionedExamples(
            self.groups.source(self.numbers),  # type: ignore[arg-type]
            engine,
            n_jobs=n_jobs,
            store=self.store,
            first_passes=self.selector.first_passes,
            limits=Limits(memory=max(memory // 2, 1)),
        )
        return examples, None, self.numbers

    def _fit_policy(self, winner: Winner, omega: float, *data: Any) -> Policy:
        """Fit a winner for an omega to ``data``, arguments of fit; return a policy."""
        estimator, how = winner.contender.model, winner.rule.how
        n_steps = estimator.max_iter

        def report_iteration(one: Step) -> Any:
            """Report an iteration; return what the estimator's callback returns."""
            self.progress("learning", min(one.iteration, n_steps), n_steps)
            callback = self.estimator.callback
            return None if callback is None else callback(one)

        watched = clone(estimator).set_params(callback=report_iteration)
        if isinstance(winner.contender, LearnedDPP) and winner.rule.k is None:
            watched.set_params(decoder=how)
        contender = replace(winner.contender, model=watched)
        with warnings.catch_warnings():
            if self.kernels is not None:
                # The winner of the comparison had fewer steps than these.
                warnings.simplefilter("ignore", ConvergenceWarning)
            model = contender.learn(omega, *data)
        # Settings of this machine are not part of a model.
        model.set_params(n_jobs=None, device=None)
        ordering = how if isinstance(how, Ordering) else None
        return Policy(model, winner.rule.k, ordering)

    def _pairwise_bytes(self, numbers: IntArray) -> int:
        """Estimate the bytes of features and pairwise similarities of some groups."""
        sizes = self.groups.survey.sizes[numbers].astype(np.float64)
        features = sizes.sum() * self.groups.encoding.width
        # Four triangles: squared distances, two of Gaussians, and the linear part.
        pairs = 2.0 * (sizes @ sizes)
        return int(8.0 * (features + pairs))

    def _sample_within(self, numbers: IntArray, most: int, n_bytes: int) -> IntArray:
        """Draw at most ``most`` of the numbers, of groups that fit into ``n_bytes``.

        They are sorted.  Two groups are drawn even if they do not fit.
        """
        rng = np.random.default_rng(self.estimator.random_state)
        some = rng.permutation(numbers)[:most]
        while len(some) > 2 and self._pairwise_bytes(some) > n_bytes:
            some = some[: max(2, len(some) // 2)]
        return np.sort(some)


def refuse_large_groups(groups: Groups, numbers: IntArray) -> None:
    """Refuse groups of more than ``MAX_ROWS`` rows, as all pairs are compared."""
    sizes = groups.survey.sizes[numbers]
    largest = int(np.argmax(sizes))
    if sizes[largest] > MAX_ROWS:
        raise TableError(
            f"group {groups.survey.name(numbers[largest])!r} has "
            f"{sizes[largest]:,} rows, and learning compares all pairs of rows in "
            f"a group: divide groups of more than {MAX_ROWS:,} rows, or use a "
            "linear kernel"
        )


# Kernels --------------------------------------------------------------------------

#: Kernels of one block each.
_OF_A_BLOCK = {"linear": Linear, "kinds": Kinds, "metric": Metric}


def kernel_for(name: Any, encoding: Encoding) -> Kernel:
    """Return the kernel with a name, over all blocks of the similarity.

    Names are those of ``TableSelector.kernel``; "auto" and None stand for "multiple".
    A kernel is returned as it is.
    """
    if isinstance(name, Kernel):
        return name
    if name in _OF_A_BLOCK:
        return _kernel_of_blocks(_OF_A_BLOCK[name], encoding)
    blocks = list(encoding.blocks) if len(encoding.blocks) > 1 else None
    return MultipleKernel(blocks=blocks)


def _kernel_search(
    selector: TableSelector, estimator: LargeMarginDPP, encoding: Encoding
) -> KernelSearch:
    """Return a comparison of kernels, and of settings that the selector leaves open."""
    fixed = {
        "Gaussians": kernel_for("multiple", encoding),
        "linear": kernel_for("linear", encoding),
    }
    kinds = {
        f"{n} kinds": _kernel_of_blocks(partial(Kinds, n), encoding) for n in _N_KINDS
    }
    cosine = _kernel_of_blocks(partial(Linear, True), encoding)
    varies = ["penalty"]
    # A fixed number of rows is of a group, not of a segment.
    fixes_sizes = not _has_target(selector) and selector.segment is None
    how: dict[str, Any] = {"tries_sizes": fixes_sizes}
    how["quality_model"] = selector.quality_model
    if selector.estimator is None:
        varies += [n for n in ("lam", "l2") if getattr(selector, n) is None]
    if selector.decoder is not None or selector.estimator is not None:
        how |= {"decoders": [estimator.decoder], "tries_sizes": False}
    kernels = fixed | kinds
    return KernelSearch(estimator, kernels, cosine, tuple(fixed), varies=varies, **how)


def _kernel_of_blocks(make: Callable[..., Kernel], encoding: Encoding) -> Kernel:
    """Return ``make()``; for several blocks, a mixture of ``make(block=...)``."""
    if len(encoding.blocks) < 2:
        return make()
    return Mixture([make(block=block) for block in encoding.blocks])

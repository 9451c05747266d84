"""Learning as one function of one vector for each batch of a stream.

:class:`StreamedProblem` is to :class:`~variegate.solvers.MiniBatch` what a
:class:`~variegate.learning.problem.TrainingProblem` is to the other solvers; it makes
one of those for every batch.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager
from itertools import islice
from typing import Any

import numpy as np
from scipy import sparse

from variegate._typing import AnyArray, FloatArray
from variegate.ground_set import GroundSet, as_indicator, renumbering
from variegate.kernels import Kernel
from variegate.learning import quality
from variegate.learning.objective import LargeMarginLoss
from variegate.learning.problem import TrainingProblem
from variegate.linalg.determinants import STACK_LIMIT, Resolvent, with_jitter
from variegate.solvers import MiniBatch, Problem
from variegate.streaming import Example, Examples, ListedExamples

__all__ = ["StreamedProblem", "n_to_hold_out"]

#: Ground sets from the head of a stream that bandwidths and the mean of the features
#: are taken from.
N_SAMPLE = 1000
#: Fewer of them, where their features take more bytes than this.
_SAMPLE_BYTES = 2**26
#: A share of a stream to hold out is cut to this many pairs, which stay in memory.
LARGEST_VALIDATION = 10_000
#: Ground sets whose probabilities are worked out together.
_STACK = 256


def n_to_hold_out(solver: MiniBatch, examples: Examples | ListedExamples) -> int:
    """Return how many examples at the head of a stream are only for judging by."""
    if not solver.validation_fraction:
        return solver.n_validation or 0
    try:
        n_examples = len(examples)
    except TypeError:
        raise ValueError(
            "validation_fraction needs a stream that has a length: give n_validation, "
            "the number of pairs to hold out, instead"
        ) from None
    share = max(1, round(solver.validation_fraction * n_examples))
    return min(share, LARGEST_VALIDATION)


def _head(stream: Iterator[Example]) -> Iterator[Example]:
    """Yield enough examples to settle bandwidths by, of bounded size."""
    taken = 0
    for example in islice(stream, N_SAMPLE):
        yield example
        blocks = example.ground_set.blocks.values()
        width = example.ground_set.n_features + sum(b.shape[1] for b in blocks)
        taken += 8 * len(example.ground_set) * width
        if taken > _SAMPLE_BYTES:
            return


class StreamedProblem:
    """The objective of learning, one batch at a time.

    ``intercept`` in a point of ``space`` is ``b + θᵀ center``, as in a
    :class:`~variegate.learning.problem.TrainingProblem`, but with one ``center`` for
    all batches: the mean of the features at the head of the stream.

    Parameters
    ----------
    examples : Examples or ListedExamples
    kernel : Kernel
        Its ``fit`` is called with ground sets from the head of the stream.
    loss : LargeMarginLoss
    validation : sequence of Example, optional
        Examples to judge by.
    n_held_out : int
        Examples at the head of the stream to judge by, and to keep out of learning.
    fit_intercept, l2, jitter : as for TrainingProblem
    n_sample : int, optional
        How many ground sets from the head of what is learned from settle bandwidths
        and ``center``: if not given, 1000, or as many as fit into 64 MiB.
    settle : bool
        Whether to call the kernel's ``fit``.
    """

    def __init__(
        self,
        examples: Examples | ListedExamples,
        kernel: Kernel,
        loss: LargeMarginLoss,
        *,
        validation: Sequence[Example] = (),
        n_held_out: int = 0,
        fit_intercept: bool = True,
        l2: float = 0.0,
        jitter: float = 1e-6,
        n_sample: int | None = None,
        settle: bool = True,
    ) -> None:
        self.examples = examples
        self.kernel = kernel
        self.loss = loss
        self.fit_intercept = fit_intercept
        self.l2 = l2
        self.jitter = jitter
        self.n_held_out = n_held_out
        stream = examples.starting_at(0)
        held_out = list(islice(stream, n_held_out))
        sample = list(islice(stream, n_sample) if n_sample else _head(stream))
        if not sample:
            raise ValueError(
                "the stream is empty"
                if not held_out
                else f"the stream holds {len(held_out)} pairs, all of them held out: "
                "there is nothing to learn from"
            )
        with _by_place_in_stream(sample):
            if settle:
                kernel.fit([example.ground_set for example in sample])
            # One small batch knows the space; the sample knows the mean.
            self.space = self._training_problem(sample[:1]).space
        self.center = (
            np.concatenate([e.ground_set.quality for e in sample]).mean(axis=0)
            if fit_intercept
            else np.zeros(sample[0].ground_set.n_features)
        )
        self._fingerprints = [_fingerprint(held_out), _fingerprint(sample)]
        judged = [*validation, *held_out]
        if validation:
            _check_alike(validation[0].ground_set, sample[0].ground_set)
            self._fingerprints.append(_fingerprint(validation))
        self.has_held_out = bool(judged)
        if judged:
            self._held_out = self.batch(judged)
            self._marginals = _Marginals(judged, kernel, jitter)

    def _training_problem(self, examples: Sequence[Example]) -> TrainingProblem:
        return TrainingProblem(
            [example.ground_set for example in examples],
            [example.members for example in examples],
            self.kernel,
            self.loss,
            false_positive=[example.false_positive for example in examples],
            false_negative=[example.false_negative for example in examples],
            fit_intercept=self.fit_intercept,
            l2=self.l2,
            jitter=self.jitter,
        )

    def blocks(self, size: int, first: int = 0) -> Iterator[list[Example]]:
        """Read one pass in blocks of ``size``, from block number ``first`` on."""
        examples = self.examples.starting_at(self.n_held_out + first * size)
        block = list(islice(examples, size))
        if not block:
            raise ValueError(
                f"the stream holds no more than {first * size} pairs to learn from: "
                "it is shorter than it was, or can be read only once"
            )
        while block:
            yield block
            block = list(islice(examples, size))

    def batch(self, examples: Sequence[Example]) -> Problem:
        """Return the objective of some examples, in the coordinates of ``space``."""
        with _by_place_in_stream(examples):
            problem = self._training_problem(examples)
        return _Recentred(problem, self.center, examples)

    def judge(self, flat: FloatArray) -> tuple[float, float]:
        r"""Return the objective and the expected F-score on what is held out.

        The latter is the mean of
        :math:`2 \sum_{i \in y} K_{ii} / (\sum_i K_{ii} + |y|)`: the F-score with the
        numbers of right and of chosen items replaced by what they are expected to be.
        """
        objective, _ = self._held_out.value_and_gradient(flat)
        parts = self.space.unpack(flat)
        intercept = float(parts["intercept"].sum()) - float(
            self.center @ parts["theta"]
        )
        return objective, self._marginals.expected_f(
            parts["theta"], intercept, parts["kernel"]
        )

    def description(self) -> dict[str, Any]:
        """Return, as plain values, what tells this problem from others."""
        try:
            n_pairs: int | None = len(self.examples)
        except TypeError:
            n_pairs = None
        return {
            "n_pairs": n_pairs,
            "n_held_out": self.n_held_out,
            "data": self._fingerprints,
            "kernel": [repr(self.kernel), self.kernel.get_state()],
            "lam": self.loss.lam,
            "l2": self.l2,
            "jitter": self.jitter,
            "fit_intercept": self.fit_intercept,
        }


def _check_alike(ground_set: GroundSet, first: GroundSet) -> None:
    if (
        ground_set.n_features != first.n_features
        or ground_set.blocks.keys() != first.blocks.keys()
    ):
        raise ValueError(
            f"validation holds {ground_set!r}, but the data to learn from {first!r}"
        )


def _by_place_in_stream(examples: Sequence[Example]) -> AbstractContextManager[None]:
    return renumbering([example.position for example in examples])


class _Recentred:
    """A problem in coordinates of another ``center``: ``b + θᵀ center`` differs."""

    def __init__(
        self, problem: TrainingProblem, center: FloatArray, examples: Sequence[Example]
    ) -> None:
        self.problem = problem
        self.center = center
        self.examples = examples
        self.space = problem.space
        self.is_smooth = problem.is_smooth

    def value_and_gradient(self, flat: FloatArray) -> tuple[float, FloatArray]:
        shift = self.problem.center - self.center
        moved = flat.copy()
        parts = self.space.unpack(moved)
        parts["intercept"] += shift @ parts["theta"]
        with _by_place_in_stream(self.examples):
            value, gradient = self.problem.value_and_gradient(moved)
        slopes = self.space.unpack(gradient)
        slopes["theta"] += shift * slopes["intercept"].sum()
        return value, gradient


class _Marginals:
    """The probabilities that items are chosen, for judging by."""

    def __init__(
        self, examples: Sequence[Example], kernel: Kernel, jitter: float
    ) -> None:
        self._kernel = kernel
        self._jitter = jitter
        self._stacks = []
        by_size: dict[int, list[Example]] = {}
        for example in examples:
            by_size.setdefault(len(example.ground_set), []).append(example)
        for size, group in by_size.items():
            step = _STACK if kernel.stackable and size <= STACK_LIMIT else 1
            for start in range(0, len(group), step):
                self._stacks.append(self._stack(group[start : start + step], size))

    def _stack(
        self, group: Sequence[Example], size: int
    ) -> tuple[FloatArray, AnyArray, Any]:
        prepared = [self._kernel.prepare(example.ground_set) for example in group]
        return (
            np.stack([example.ground_set.quality for example in group]),
            np.stack([as_indicator(example.members, size) for example in group]),
            self._kernel.stack(prepared) if self._kernel.stackable else prepared[0],
        )

    def expected_f(
        self, theta: FloatArray, intercept: float, parameters: FloatArray
    ) -> float:
        """Return the mean of ``2 Σ_{i∈y} K_ii / (Σ_i K_ii + |y|)``."""
        scores = []
        for X, wanted, prepared in self._stacks:
            S = self._kernel.value(prepared, parameters)
            S = with_jitter(S if S.ndim == 3 else S[None], self._jitter)
            u = quality.log_quality(X, theta, intercept)
            included = Resolvent.of(S, u).included
            right = np.where(wanted, included, 0.0).sum(axis=1)
            total = included.sum(axis=1) + wanted.sum(axis=1)
            scores.append(np.where(total > 0, 2.0 * right / (total + (total == 0)), 1))
        return float(np.concatenate(scores).mean())


def _fingerprint(examples: Sequence[Example]) -> str:
    """Return a short name for the numbers in some examples."""
    digest = hashlib.sha256()
    for example in examples:
        arrays = [example.ground_set.quality, example.members]
        for block in example.ground_set.blocks.values():
            arrays += [block.data, block.indices] if sparse.issparse(block) else [block]
        costs = (example.false_positive, example.false_negative)
        for array in [*arrays, *(np.asarray(cost) for cost in costs)]:
            digest.update(str(array.shape).encode())
            digest.update(np.ascontiguousarray(array).tobytes())
    return f"{len(examples)} pairs, {digest.hexdigest()[:16]}"

"""Learning as one function of one vector for each batch of the examples.

:class:`~variegate.solvers.MiniBatch` minimizes a :class:`BatchedProblem`, which makes
a :class:`~variegate.learning.problem.LearningProblem` of every batch.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext
from typing import Any

import numpy as np
from scipy import sparse

from variegate._typing import FloatArray
from variegate.ground_set import (
    GroundSet,
    GroundSetError,
    ValidationError,
    map_positions_in_errors,
)
from variegate.kernels import Kernel
from variegate.learning.examples import Example, check_examples
from variegate.learning.objective import LargeMarginLoss
from variegate.learning.problem import LearningProblem, build_problem
from variegate.learning.quality import FeatureMoments, parameter_space
from variegate.linalg.limits import should_use_compiled


class BatchedProblem:
    """The objective of learning, one batch at a time.

    Parameters
    ----------
    examples : sequence of Example
    kernel : Kernel
        Its ``fit`` is called with the ground sets that are learned from.
    loss : LargeMarginLoss
    validation : sequence of Example, optional
        Held-out examples from other data.
    n_held_out : int
        Examples at the head that are held out.
    fit_kernel : bool
        Whether to call the kernel's ``fit``.
    device : str, optional
        A device of PyTorch that batches are brought to.
    fit_intercept, l2, jitter : as for LearningProblem

    Attributes
    ----------
    space, center, scale : as for LearningProblem
        Of all examples that are learned from, and so the same in every batch.
    """

    def __init__(
        self,
        examples: Sequence[Example],
        kernel: Kernel,
        loss: LargeMarginLoss,
        *,
        validation: Sequence[Example] = (),
        n_held_out: int = 0,
        fit_kernel: bool = True,
        device: str | None = None,
        fit_intercept: bool = True,
        l2: float = 0.0,
        jitter: float = 1e-6,
    ) -> None:
        self.kernel = kernel
        self.loss = loss
        self.device = device
        self._options: dict[str, Any] = {
            "fit_intercept": fit_intercept,
            "l2": l2,
            "jitter": jitter,
        }
        held_out, self.examples = examples[:n_held_out], examples[n_held_out:]
        if not self.examples:
            raise ValueError(
                f"there are {len(held_out)} pairs, all of them held out: there is "
                "nothing to learn from"
            )
        ground_sets = [example.ground_set for example in self.examples]
        if fit_kernel:
            with map_positions_in_errors(
                [example.position for example in self.examples]
            ):
                kernel.fit(ground_sets)
        # One answer for all batches, however many examples the last one has.
        self._compiled = should_use_compiled(
            [len(ground_set) for ground_set in ground_sets]
        )
        self.coordinates = FeatureMoments.of(ground_sets).coordinates(fit_intercept)
        self.space = parameter_space(self.coordinates, fit_intercept, kernel)
        self._fingerprints = [fingerprint(held_out), fingerprint(self.examples)]
        if validation:
            _check_same_features(validation[0].ground_set, ground_sets[0])
            self._fingerprints.append(fingerprint(validation))
        self.has_held_out = bool(validation or held_out)
        self._judging = label_validation_errors if validation else nullcontext
        if self.has_held_out:
            with self._judging():
                self._held_out = self.batch([*validation, *held_out])

    def batch(self, examples: Sequence[Example]) -> LearningProblem:
        """Return the objective of some examples."""
        return build_problem(
            examples,
            self.kernel,
            self.loss,
            coordinates=self.coordinates,
            device=self.device,
            compiled=self._compiled,
            **self._options,
        )

    def blocks(self, size: int, first: int = 0) -> Iterator[list[Example]]:
        """Yield one pass in blocks of ``size``, from block number ``first`` on."""
        for start in range(first * size, len(self.examples), size):
            yield list(self.examples[start : start + size])

    def judge(self, flat: FloatArray) -> tuple[float, float]:
        """Return the objective and the expected F-score on the held-out examples."""
        with self._judging():
            objective, _ = self._held_out.value_and_gradient(flat)
            return objective, self._held_out.expected_f(flat)

    def description(self) -> dict[str, Any]:
        """Return plain values that differ from those of another problem."""
        return {
            "n_pairs": len(self.examples),
            "data": self._fingerprints,
            "kernel": [repr(self.kernel), self.kernel.get_state()],
            "lam": self.loss.lam,
            **self._options,
        }


def _check_same_features(ground_set: GroundSet, first: GroundSet) -> None:
    if (
        ground_set.n_features != first.n_features
        or ground_set.blocks.keys() != first.blocks.keys()
    ):
        raise ValueError(
            f"validation holds {ground_set!r}, but the data to learn from {first!r}"
        )


@contextmanager
def label_validation_errors() -> Iterator[None]:
    """Say "validation" in errors of held-out ground sets."""
    try:
        yield
    except GroundSetError as error:
        raise ValidationError(error.position, error.problem) from error


def check_validation(validation: Any, omega: float) -> list[Example]:
    """Check a pair of lists, held-out ground sets and their subsets."""
    if not isinstance(validation, tuple | list) or len(validation) != 2:
        raise ValueError(
            "validation must be a pair of lists (ground_sets, subsets), got "
            f"{type(validation).__name__}"
        )
    ground_sets, subsets = validation
    with label_validation_errors():
        return check_examples(ground_sets, subsets, omega)


def fingerprint(examples: Sequence[Example]) -> str:
    """Return a hash of the numbers in some examples, and how many there are."""
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

"""Learning as one function of one vector for each batch of the examples.

:class:`~variegate.solvers.MiniBatch` minimizes a :class:`BatchedProblem`, which makes
a :class:`~variegate.learning.problem.LearningProblem` of every batch.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from variegate.kernels import Kernel
from variegate.learning.examples import Example, label_validation_errors
from variegate.learning.objective import LargeMarginLoss
from variegate.learning.problem import LearningProblem, build_problem
from variegate.learning.quality import FeatureMoments, parameter_space
from variegate.linalg.limits import should_use_compiled


class BatchedProblem:
    """The objective of learning from examples in memory, one batch at a time.

    Parameters
    ----------
    examples : sequence of Example
    kernel : Kernel
        Fitted.
    loss : LargeMarginLoss
    validation : sequence of Example
        Held-out examples.
    device : str, optional
        A device of PyTorch that batches are brought to.
    **options
        ``fit_intercept``, ``l2`` and ``jitter`` of a LearningProblem.

    Attributes
    ----------
    space, coordinates : as for LearningProblem
        Of all examples, and so the same in every batch.
    counts : array of shape (n examples,)
        Ones: the number of examples behind each number that :meth:`batch` takes.
    held_out : LearningProblem or None
        The objective on the held-out examples.
    """

    def __init__(
        self,
        examples: Sequence[Example],
        kernel: Kernel,
        loss: LargeMarginLoss,
        *,
        validation: Sequence[Example] = (),
        device: str | None = None,
        **options: Any,
    ) -> None:
        ground_sets = [example.ground_set for example in examples]
        fit_intercept = options.get("fit_intercept", True)
        self.kernel = kernel
        self.loss = loss
        self.coordinates = FeatureMoments.from_ground_sets(ground_sets).coordinates(
            fit_intercept
        )
        self.space = parameter_space(self.coordinates, fit_intercept, kernel)
        self.counts = np.ones(len(examples), dtype=np.int64)
        self._examples = examples
        self._options = options | {
            "coordinates": self.coordinates,
            "device": device,
            # One answer for all batches, however many examples the last one has.
            "compiled": should_use_compiled([len(one) for one in ground_sets]),
        }
        self.held_out: Any = None
        if validation:
            here, there = ground_sets[0], validation[0].ground_set
            if (
                here.n_features != there.n_features
                or here.blocks.keys() != there.blocks.keys()
            ):
                raise ValueError(
                    f"validation holds {there!r}, but the data to learn from {here!r}"
                )
            with label_validation_errors():
                self.held_out = self._build_problem(validation)

    def _build_problem(self, examples: Sequence[Example]) -> LearningProblem:
        """Return the problem of some examples in the coordinates of all."""
        return build_problem(examples, self.kernel, self.loss, **self._options)

    def batch(self, numbers: Sequence[int]) -> LearningProblem:
        """Return the problem of the examples with these indices."""
        return self._build_problem([self._examples[k] for k in numbers])

"""The objective of learning as one function of one vector, computed on a device.

Everything is brought to the device once; an evaluation takes parameters over and brings
one value and one gradient back, and nothing waits in between.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import numpy as np
import torch
from torch import Tensor

from variegate._typing import FloatArray, IntArray
from variegate.ground_set import GroundSetError
from variegate.kernels import Kernel
from variegate.learning.examples import Example
from variegate.learning.factors import Factors
from variegate.learning.objective import LargeMarginLoss
from variegate.learning.parameters import InfeasibleError
from variegate.learning.problem import (
    LearningProblem,
    not_definite_error,
    zero_probability_error,
)
from variegate.learning.quality import FeatureCoordinates, FeatureMoments
from variegate.linalg.limits import FEWEST_FACTORED, MAX_MATRIX
from variegate.torch.batches import ExampleBatch, size_groups
from variegate.torch.inputs import Kernels
from variegate.torch.kernel_similarities import (
    KernelOf,
    check_kernel,
    low_rank_form,
    prepare_kernel,
)
from variegate.torch.targets import NOT_DEFINITE


class Stack:
    """Ground sets that are evaluated together, with their quality features and kernels.

    ``kernel`` is a function from parameters to the kernels of the batch; ``center``
    (d,) is subtracted from quality features.
    """

    def __init__(
        self, batch: ExampleBatch, kernel: KernelOf, center: FloatArray
    ) -> None:
        self.batch, self.kernel = batch, kernel
        rows = np.concatenate([each.ground_set.quality for each in batch.examples])
        self.quality = batch.pad_features([rows - center]).flatten(0, 1).T.contiguous()

    def build_kernels(self, at: Mapping[str, Tensor]) -> Kernels:
        """Return kernels at the parameters by name: theta (d,), intercept, kernel."""
        u = at["theta"] @ self.quality + at["intercept"].sum()
        targets, u = self.batch.targets, u.view(self.batch.shape)
        return replace(
            self.kernel(at["kernel"]),
            log_quality=u,
            mask=targets.mask,
            given=targets.is_given,
        )


class DeviceProblem(LearningProblem):
    """The objective of a :class:`~variegate.learning.problem.TrainingProblem`.

    It takes the same parameters, and ``device``, a name of PyTorch; the kernel is one
    that :func:`~variegate.torch.kernel_similarities.check_kernel` accepts.
    """

    def __init__(
        self,
        examples: Sequence[Example],
        kernel: Kernel,
        loss: LargeMarginLoss,
        *,
        device: str,
        coordinates: FeatureCoordinates | None = None,
        **options: Any,
    ) -> None:
        check_kernel(kernel)
        self.device = device
        if coordinates is None:
            ground_sets = [example.ground_set for example in examples]
            fit_intercept = options.get("fit_intercept", True)
            coordinates = FeatureMoments.from_ground_sets(ground_sets).coordinates(
                fit_intercept
            )
        super().__init__(kernel, loss, len(examples), coordinates, **options)
        self._stacks: list[Stack] = []
        with _explain_memory_errors(device):
            for places, low_rank in _evaluation_groups(examples, kernel, device):
                batch = ExampleBatch([examples[i] for i in places], device)
                similarity = prepare_kernel(kernel, batch, low_rank, self.jitter)
                self._stacks.append(Stack(batch, similarity, coordinates.center))

    def send(self, flat: FloatArray) -> Tensor:
        """Return a copy of flat parameters on the device."""
        return torch.from_numpy(np.array(flat)).to(self.device)

    def value_and_gradient(self, flat: FloatArray) -> tuple[float, FloatArray]:
        """Return penalized objective and gradient (n,), or raise InfeasibleError."""
        at = self.send(flat).requires_grad_()
        parts = self.space.unpack(at)
        head = torch.zeros(2, dtype=torch.float64, device=self.device)
        failures = []
        with _explain_memory_errors(self.device):
            for stack in self._stacks:
                value, failed = stack.build_kernels(parts).losses(
                    stack.batch.targets, self.loss.lam, self.loss.hinge
                )
                total = value.sum()
                total.backward()
                n_failed = (failed > 0).sum(dtype=torch.float64)
                head += torch.stack([total.detach(), n_failed])
                failures.append(failed)
        # The one place that waits for the device.
        found = torch.cat([head, at.grad]).cpu().numpy()
        if found[1]:
            raise self._infeasible_error(failures)
        return self.add_penalty(flat, float(found[0]), found[2:].copy())

    def expected_f(self, flat: FloatArray) -> float:
        """Return the mean of the expected F-scores of all ground sets at ``flat``."""
        parts = self.space.unpack(self.send(flat))
        found = [
            stack.batch.expected_f(stack.build_kernels(parts)) for stack in self._stacks
        ]
        if not all(bool(definite.all()) for _, definite in found):
            raise self._infeasible_error([~one * NOT_DEFINITE for _, one in found])
        return float(sum(score.sum() for score, _ in found)) / self.n_sets

    def _infeasible_error(self, failures: Sequence[Tensor]) -> InfeasibleError:
        """Return the error of the first failed set, from each stack's reasons (B,)."""
        found = [
            (stack.batch.examples[number], int(failed[number]))
            for stack, failed in zip(self._stacks, failures, strict=True)
            for number in failed.nonzero().flatten().tolist()
        ]
        example, reason = min(found, key=lambda failure: failure[0].position)
        is_undefined = reason == NOT_DEFINITE
        explain = not_definite_error if is_undefined else zero_probability_error
        return explain(example.position, self.jitter, example.ground_set.given)


@contextmanager
def _explain_memory_errors(device: str) -> Iterator[None]:
    """Raise a MemoryError with a remedy where a device has too little memory."""
    try:
        yield
    except torch.OutOfMemoryError as error:
        raise MemoryError(
            f"the memory of {device!r} is not enough for these ground sets and their "
            'similarities: learn in batches (solver="minibatch"), with fewer '
            "similarities, or leave device out"
        ) from error


def _evaluation_groups(
    examples: Sequence[Example], kernel: Kernel, device: str
) -> Iterator[tuple[IntArray, Sequence[Factors] | int | None]]:
    """Yield indices of examples to be evaluated together, and their low-rank forms.

    The latter are None for similarities held as matrices, else the factors of each
    example, with the same columns, or the number of kinds.  A group has about one size.
    """
    sizes = np.array([len(example.ground_set) for example in examples])
    dense = np.ones(len(sizes), dtype=bool)
    by_columns: dict[Any, dict[int, Factors | int]] = defaultdict(dict)
    for place in np.flatnonzero(sizes >= FEWEST_FACTORED).tolist():
        form = low_rank_form(kernel, examples[place])
        if form is not None:
            dense[place] = False
            columns = form if isinstance(form, int) else tuple(form.owner.tolist())
            by_columns[columns][place] = form
    n = (sizes * dense).max(initial=0)
    if n > MAX_MATRIX:
        raise GroundSetError(
            examples[int((sizes * dense).argmax())].position,
            f"its similarity would be a matrix of {n:,} x {n:,} on the device, which "
            f"is too large (above {MAX_MATRIX:,}): take a kernel of low rank (Linear "
            "of few features, Kinds, or an approximation), or leave device out",
        )
    for places in size_groups(sizes, np.flatnonzero(dense), device):
        yield places, None
    for columns, forms in by_columns.items():
        n_columns = columns if isinstance(columns, int) else len(columns)
        for places in size_groups(sizes, np.array(list(forms)), device, n_columns):
            chosen = [forms[place] for place in places.tolist()]
            factors = [form for form in chosen if isinstance(form, Factors)]
            yield places, factors or n_columns

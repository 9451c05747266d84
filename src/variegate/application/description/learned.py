"""What learned kernels go by: how alike two of a kind are, and which features count."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from variegate._typing import FloatArray
from variegate.estimator import LargeMarginDPP
from variegate.kernels import FixedKernel, Kernel, Kinds, Metric, Mixture
from variegate.report.words import count, percent, shortened

__all__ = [
    "LearnedKinds",
    "LearnedMetric",
    "alike_in_words",
    "kinds_in_words",
    "learned_kinds",
    "learned_metrics",
]


@dataclass(frozen=True, eq=False)
class LearnedKinds:
    """The kinds of a model; ``weight`` is their share of a mixture, 1 if alone."""

    kernel: Kinds
    parameters: FloatArray
    weight: float

    @property
    def apart(self) -> float:
        """``ε``: how much of an item is like no other."""
        return self.kernel.share_apart(self.parameters)


@dataclass(frozen=True, eq=False)
class LearnedMetric:
    """The metric of a model; ``weight`` is its share of a mixture, 1 if alone."""

    kernel: Metric
    parameters: FloatArray
    weight: float

    @property
    def feature_shares(self) -> FloatArray:
        """The diagonal of ``WᵀW``, divided by its sum: how much each feature counts."""
        W = self.kernel.weights(self.parameters)
        lengths = np.einsum("kd,kd->d", W, W)
        total = float(lengths.sum())
        return np.asarray(lengths / total if total > 0.0 else lengths)


def learned_kinds(model: LargeMarginDPP) -> list[LearnedKinds]:
    """Return the kinds of a model: one, none, or several in a mixture."""
    return [
        LearnedKinds(kernel, parameters, weight)
        for kernel, parameters, weight in _parts(model)
        if isinstance(kernel, Kinds)
    ]


def learned_metrics(model: LargeMarginDPP) -> list[LearnedMetric]:
    """Return the metrics of a model: one, none, or several in a mixture."""
    return [
        LearnedMetric(kernel, parameters, weight)
        for kernel, parameters, weight in _parts(model)
        if isinstance(kernel, Metric)
    ]


def _parts(model: LargeMarginDPP) -> list[tuple[Kernel, FloatArray, float]]:
    if not isinstance(model, LargeMarginDPP):
        return []  # networks have no kernel
    return _parts_of(model.kernel_, model.kernel_parameters_, 1.0)


def _parts_of(
    kernel: Kernel, parameters: FloatArray, weight: float
) -> list[tuple[Kernel, FloatArray, float]]:
    """Return kernels with parameters of their own, and their weights in mixtures."""
    if not isinstance(kernel, Mixture):
        return [(kernel, parameters, weight)]
    weights, others = kernel.split(parameters)
    learned: Sequence[tuple[Kernel, float]] = [
        (part, float(share))
        for part, share in zip(kernel.kernels_, weights, strict=True)
        if not isinstance(part, FixedKernel)
    ]
    return [
        found
        for (part, share), own in zip(learned, others, strict=True)
        for found in _parts_of(part, own, weight * share)
    ]


def kinds_in_words(kinds: LearnedKinds, noun: str) -> str:
    """Return what there is to say about kinds without data to look at."""
    block = kinds.kernel.block
    of = "" if block is None else f" of {shortened(block, 30)}"
    n_kinds = count(kinds.kernel.embedding_size, "kind")
    return f"{n_kinds}{of}. {alike_in_words(kinds.apart, noun)}"


def alike_in_words(apart: float, noun: str = "row") -> str:
    """Return what ``ε`` means: how readily a second item of a kind is chosen.

    Two items that are surely of one kind have the similarity ``s = 1 - ε``, and the
    determinant of the two is ``1 - s²`` times that of items unlike each other: so much
    are the odds to add the second one lowered by the first.
    """
    alike = 1.0 - apart
    odds = 1.0 - alike * alike
    if odds < 0.15:
        then = "so that one of a kind is mostly enough"
    elif odds < 0.6:
        then = "so that a second one is chosen only where it is much better than others"
    else:
        then = "so that a second one is chosen nearly as readily as the first"
    same = "the same to the model" if apart < 5e-4 else f"alike to {alike:.3f}"
    return (
        f"Two {noun}s that are surely of one kind are {same}. Once one is chosen, the "
        f"odds of the other are {percent(odds)} of what they were, {then}."
    )

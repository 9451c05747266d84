"""Facts about a learned model: its weights, and the parts of its kernel."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

import numpy as np

from variegate._typing import FloatArray
from variegate.estimator import DPPEstimator, LargeMarginDPP
from variegate.kernels import (
    FixedKernel,
    Gaussian,
    Kernel,
    Metric,
    Mixture,
    MultipleKernel,
)
from variegate.report.wording import count, percent, shorten_middle

K = TypeVar("K", bound=Kernel)


@dataclass(frozen=True)
class Weight:
    """The weight of a feature, or the norm of the ``n_features`` of a vector column.

    ``n_rows``, unless None, is the number of training rows of the category;
    ``spread`` is the standard deviation of the feature.
    """

    name: str
    value: float
    n_features: int = 1
    n_rows: int | None = None
    spread: float = 1.0

    @property
    def effect(self) -> float:
        """The change of log-quality if the feature grows by one standard deviation."""
        return self.value * self.spread

    def label(self, longest: int) -> str:
        """Return the name, cut to ``longest`` characters, and its features or rows."""
        many = f" (length of {self.n_features})" if self.n_features > 1 else ""
        if self.n_rows is not None:
            many = f" ({count(self.n_rows, 'row')})"
        return shorten_middle(self.name, longest) + many


def largest_weights(found: Sequence[Weight], most: int) -> tuple[list[Weight], str]:
    """Return the ``most`` weights of largest absolute effect, and a note on others.

    The note is "" where none is left out.
    """
    found = sorted(found, key=lambda weight: -abs(weight.effect))
    rest = len(found) - most
    note = f"Not shown: {count(rest, 'feature')} of smaller effect."
    return found[:most], note if rest > 0 else ""


# Parts of a sum of kernels ------------------------------------------------------------


@dataclass(frozen=True)
class KernelPart:
    """One similarity of a sum, and its weight; all weights sum to one.

    ``block`` names the columns that it looks at, None where there is only one block;
    ``name`` is "Gaussian", "anchored Gaussian", "linear", or the class of the kernel;
    ``bandwidth`` is, of a Gaussian, the distance at which items stop being alike.
    """

    block: str | None
    name: str
    bandwidth: float | None
    weight: float

    @property
    def label(self) -> str:
        """The name with the bandwidth and the block, as far as there are any."""
        width = "" if self.bandwidth is None else f", σ = {self.bandwidth:.3g}"
        block = "" if self.block is None else f"{shorten_middle(self.block, 20)}: "
        return f"{block}{self.name}{width}"


def kernel_parts(model: LargeMarginDPP) -> list[KernelPart]:
    """Return the weighted similarities that a model's sum of kernels has, else []."""
    kernel = model.kernel_
    if isinstance(kernel, MultipleKernel):
        ladders = kernel.bandwidths_
        names: list[tuple[str | None, str, float | None]] = [
            (block, _kernel_name(Gaussian(sigma, anchored=kernel.anchored)), sigma)
            for block, ladder in ladders.items()
            for sigma in ladder.tolist()
        ]
        names += [(block, "linear", None) for block in ladders if kernel.linear]
        values = model.kernel_parameters_.tolist()
        parts = [KernelPart(*name, v) for name, v in zip(names, values, strict=True)]
        # Block by block, each with its linear part last.
        order = list(ladders)
        return sorted(parts, key=lambda part: order.index(part.block))
    if isinstance(kernel, Mixture):
        weights, _ = kernel.split(model.kernel_parameters_)
        return [
            KernelPart(
                getattr(part, "block", None),
                _kernel_name(part),
                float(part.bandwidth) if isinstance(part, Gaussian) else None,
                value,
            )
            for part, value in zip(kernel.kernels, weights.tolist(), strict=True)
        ]
    return []


def _kernel_name(kernel: Kernel) -> str:
    """Return "linear", "anchored Gaussian", or the name of the kernel's class."""
    if isinstance(kernel, Gaussian) and kernel.anchored:
        return "anchored Gaussian"
    name = type(kernel).__name__
    return "linear" if name == "Linear" else name


# Learned similarities -----------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class LearnedKernel(Generic[K]):
    """A learned part of a kernel; ``weight`` is its share of a mixture, 1 if alone."""

    kernel: K
    parameters: FloatArray
    weight: float


def learned_parts(model: DPPEstimator, kind: type[K]) -> list[LearnedKernel[K]]:
    """Return the kernels of class ``kind`` in a model, of a mixture perhaps several."""
    if not isinstance(model, LargeMarginDPP):
        return []  # networks have no kernel
    parts = _weighted_kernels(model.kernel_, model.kernel_parameters_, 1.0)
    return [LearnedKernel(k, p, w) for k, p, w in parts if isinstance(k, kind)]


def metric_shares(metric: LearnedKernel[Metric]) -> FloatArray:
    """Return features' shares (d,), of sum one: ``diag(WᵀW)`` of a metric's matrix."""
    W = metric.kernel.weights(metric.parameters)
    lengths = np.einsum("kd,kd->d", W, W)
    total = float(lengths.sum())
    return np.asarray(lengths / total if total > 0.0 else lengths)


def _weighted_kernels(
    kernel: Kernel, parameters: FloatArray, weight: float
) -> Iterator[tuple[Kernel, FloatArray, float]]:
    """Yield a kernel with its parameters and weight, or those of a mixture's parts.

    Parts without parameters are left out; ``weight`` is the share of ``kernel``.
    """
    if not isinstance(kernel, Mixture):
        yield kernel, parameters, weight
        return
    shares, others = kernel.split(parameters)
    learned = [
        (part, float(share))
        for part, share in zip(kernel.kernels_, shares, strict=True)
        if not isinstance(part, FixedKernel)
    ]
    for (part, share), own in zip(learned, others, strict=True):
        yield from _weighted_kernels(part, own, weight * share)


def alike_in_words(epsilon: float, noun: str = "row") -> str:
    """Return sentences on ``ε``: how readily a second item of a kind is chosen.

    Two items that are surely of one kind have the similarity ``s = 1 - ε``, and the
    determinant of the two is ``1 - s²`` times that of items unlike each other: by that
    factor the first one lowers the odds to add the second.
    """
    alike = 1.0 - epsilon
    odds = 1.0 - alike * alike
    if odds < 0.15:
        then = "so one of a kind is usually enough"
    elif odds < 0.6:
        then = "so a second one is chosen only if it is much better than others"
    else:
        then = "so a second one is chosen nearly as easily as the first"
    same = "1" if epsilon < 5e-4 else f"{alike:.3f}"
    return (
        f"Two {noun}s that surely belong to one kind have similarity {same}. Choosing "
        f"one lowers the odds of the other to {percent(odds)} of their value, {then}."
    )

"""What there is to say about a learned model: its weights and its kernel."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from variegate.estimator import LargeMarginDPP
from variegate.kernels import Gaussian, Kernel, Mixture, MultipleKernel
from variegate.report.words import count, shortened

__all__ = [
    "KernelPart",
    "Weight",
    "kernel_parts",
    "named_weights",
    "strongest",
]


@dataclass(frozen=True)
class Weight:
    """The weight of a feature, or the length of those of a vector column.

    Only a vector column has several features.
    """

    name: str
    value: float
    n_features: int = 1

    def label(self, longest: int) -> str:
        """Return the name, shortened, and of how many weights this is the length."""
        many = f" (length of {self.n_features})" if self.n_features > 1 else ""
        return shortened(self.name, longest) + many


@dataclass(frozen=True)
class KernelPart:
    """One similarity of a sum, and its weight; all weights sum to one.

    ``block`` names the columns that it looks at, None where there is only one block;
    ``name`` is "Gaussian" (or "anchored Gaussian") or "linear", or what else the kernel
    is called; ``bandwidth`` is, of a Gaussian, the distance at which items stop being
    alike.
    """

    block: str | None
    name: str
    bandwidth: float | None
    weight: float

    @property
    def label(self) -> str:
        """The name with the bandwidth and the block, as far as there are any."""
        width = "" if self.bandwidth is None else f", σ = {self.bandwidth:.3g}"
        block = "" if self.block is None else f"{shortened(self.block, 20)}: "
        return f"{block}{self.name}{width}"


def named_weights(names: Sequence[str], model: LargeMarginDPP) -> list[Weight]:
    """Return the weights of the quality by the names of its features."""
    return [
        Weight(name, value)
        for name, value in zip(names, model.theta_.tolist(), strict=True)
    ]


def strongest(found: Sequence[Weight], most: int) -> tuple[list[Weight], str]:
    """Return the largest weights, and a line on those that are left out, if any are."""
    found = sorted(found, key=lambda weight: -abs(weight.value))
    rest = found[most:]
    note = ""
    if rest:
        verb = "is" if len(rest) == 1 else "are"
        note = (
            f"{count(len(rest), 'more feature')} {verb} left out, with weights of at "
            f"most {abs(rest[0].value):.2g}."
        )
    return found[:most], note


def kernel_parts(model: LargeMarginDPP) -> list[KernelPart]:
    """Return the similarities that the kernel is a sum of; none for other kernels."""
    kernel = model.kernel_
    values = model.kernel_parameters_.tolist()
    if isinstance(kernel, MultipleKernel):
        ladders = kernel.bandwidths_
        names: list[tuple[str | None, str, float | None]] = [
            (block, _name(Gaussian(sigma, anchored=kernel.anchored)), sigma)
            for block, ladder in ladders.items()
            for sigma in ladder.tolist()
        ]
        names += [(block, "linear", None) for block in ladders if kernel.linear]
        order = list(ladders)
        parts = [KernelPart(*name, v) for name, v in zip(names, values, strict=True)]
        # Block by block, each with its linear part last.
        return sorted(parts, key=lambda part: order.index(part.block))
    if isinstance(kernel, Mixture):
        weights, _ = kernel.split(model.kernel_parameters_)
        return [
            KernelPart(
                getattr(part, "block", None),
                _name(part),
                float(part.bandwidth) if isinstance(part, Gaussian) else None,
                value,
            )
            for part, value in zip(kernel.kernels, weights.tolist(), strict=True)
        ]
    return []


def _name(kernel: Kernel) -> str:
    if isinstance(kernel, Gaussian) and kernel.anchored:
        return "anchored Gaussian"
    name = type(kernel).__name__
    return "linear" if name == "Linear" else name

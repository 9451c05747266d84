"""A similarity held as features: ``S = F Fᵀ``, never formed."""

from __future__ import annotations

from dataclasses import dataclass

from torch import Tensor

__all__ = ["LowRank"]


@dataclass(frozen=True)
class LowRank:
    """The similarity (or kernel) ``F Fᵀ`` of features ``F``, never formed.

    Parameters
    ----------
    features : tensor of shape (N, D) or (B, N, D)
        One row an item.  ``N`` may be millions where ``D`` is a few hundred.
    """

    features: Tensor

    def __post_init__(self) -> None:
        if not isinstance(self.features, Tensor):
            raise TypeError(
                f"features must be a tensor, got {type(self.features).__name__}"
            )
        if not self.features.is_floating_point():
            raise ValueError(
                f"features must be floating-point numbers, got {self.features.dtype}"
            )

"""What a decoder returns."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from variegate._typing import IntArray

__all__ = ["Selection"]


@dataclass(frozen=True, eq=False)
class Selection:
    """A chosen subset, how good it is, and why the search ended.

    Attributes
    ----------
    indices : sorted item numbers
    log_prob : float
        ``log P(indices)`` under the ensemble.
    upper_bound : float
        No feasible subset has a larger log-probability; infinite where the decoder
        gives no bound.
    stop_reason : str
        A sentence.
    """

    indices: IntArray
    log_prob: float
    stop_reason: str
    upper_bound: float = np.inf

    @property
    def gap(self) -> float:
        """``upper_bound - log_prob``, at most this far from the best."""
        return max(self.upper_bound - self.log_prob, 0.0)

    @property
    def is_optimal(self) -> bool:
        """Whether no feasible subset is known to be able to do better."""
        return self.gap == 0.0

    def __len__(self) -> int:
        return len(self.indices)

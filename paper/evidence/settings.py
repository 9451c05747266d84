"""The settings of the experiment on evidence."""

from __future__ import annotations

from dataclasses import dataclass

from paper.experiment import Settings as BaseSettings
from paper.held_out import HoldingOut

#: The row that all are compared with.
OURS = "EvidenceSelector"

#: Shares of the training questions of the growth curves, below 1.
GROWTH = (0.125, 0.25, 0.5)


@dataclass(frozen=True)
class Settings(BaseSettings):
    """What the results depend on, beside the data."""

    n_folds: int = 5
    seed: int = 0
    n_bootstrap: int = 10_000

    @classmethod
    def quick(cls) -> Settings:
        """Return settings for a run with fewer folds."""
        return cls(n_folds=2, n_bootstrap=1000)


Setup = HoldingOut[Settings]

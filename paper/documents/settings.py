"""The settings of the document experiments (paper, section 4.2)."""

from __future__ import annotations

from dataclasses import dataclass

from paper.held_out import HoldingOut, RowSettings


@dataclass(frozen=True)
class Settings(RowSettings):
    """What the paper fixes, and what it leaves open."""

    #: Runs of MBR decoding, each with samples of its own.
    n_runs: int = 10
    #: Samples of a run.
    n_samples: int = 1000
    #: Weights of the margin and of ``l2`` to choose from, on training topics.
    lambdas: tuple[float, ...] = (0.25, 1.0, 4.0)
    ridges: tuple[float, ...] = (1e-3, 1e-2)
    #: Parts of the training topics that are held out in turn to choose.
    n_inner: int = 2
    #: Samples of a run when choosing.
    n_inner_samples: int = 300
    #: Of learned similarities: what they are learned from, numbers of kinds or
    #: directions, and penalties, to choose from; and the steps of a fit when choosing.
    blocks: tuple[str, ...] = ("roles", "words")
    sizes: tuple[int, ...] = (4, 16)
    penalties: tuple[float, ...] = (1e-3, 1e-1)
    n_inner_steps: int = 40
    #: For the curve of precision against recall.
    omegas: tuple[float, ...] = (1 / 16, 1 / 4, 1.0, 4.0, 16.0)
    #: The weight of the margin along that curve.
    omega_lam: float = 4.0
    #: Bootstrap samples of the clusters.
    n_bootstrap: int = 2000
    #: Of the MultiLing summaries, of those as short as DUC's, and of reviews.
    long_budget: str = "250w"
    short_budget: str = "665b"
    review_budget: str = "300c"
    #: Whether to learn from, and report on, English clusters only.
    only_english: bool = False
    max_iter: int = 200
    seed: int = 0

    @classmethod
    def quick(cls) -> Settings:
        """Return settings for a run of a few minutes."""
        return cls(
            n_runs=2,
            n_samples=300,
            lambdas=(1.0,),
            ridges=(1e-2,),
            blocks=("roles",),
            sizes=(4,),
            penalties=(1e-3,),
            n_inner_steps=20,
            omegas=(1 / 16, 1.0, 16.0),
            n_bootstrap=500,
            only_english=True,
            max_iter=30,
        )


@dataclass(frozen=True)
class Setup(HoldingOut[Settings]):
    """Settings and folders; ``duc`` holds DUC 2003 and 2004, if there are."""

    duc: str | None = None

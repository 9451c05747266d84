"""The settings of the video experiments (paper, section 4.3)."""

from __future__ import annotations

from dataclasses import dataclass

from paper.held_out import HoldingOut, RowSettings


@dataclass(frozen=True)
class Settings(RowSettings):
    """What the paper fixes, and what it leaves open."""

    #: Parts of the videos that are held out in turn.
    n_folds: int = 5
    #: Runs of MBR decoding, each with samples of its own.
    n_runs: int = 10
    #: Samples of a run.
    n_samples: int = 300
    #: What a missed frame costs against one too many: the paper's eight.
    omegas: tuple[float, ...] = tuple(2.0**q for q in range(-6, 9, 2))
    #: Weights of the margin and of ``l2`` and quality features to choose from, on
    #: training videos.
    lambdas: tuple[float, ...] = (6.0, 8.0, 12.0)
    ridges: tuple[float, ...] = (0.1, 10.0)
    feature_sets: tuple[str, ...] = ("picture", "full")
    #: Values to choose the best ω from, on training videos.
    inner_omegas: tuple[float, ...] = (4.0, 16.0)
    #: Of learned similarities: numbers of kinds or directions, and penalties, to choose
    #: from.
    sizes: tuple[int, ...] = (8, 32)
    penalties: tuple[float, ...] = (1e-3, 1e-1)
    #: Of sequences: candidates of a segment, segments whose key frames are given to the
    #: next one, and values of λ and ω, to choose from.
    segments: tuple[int, ...] = (5, 10)
    memories: tuple[int, ...] = (1, 2)
    sequence_lambdas: tuple[float, ...] = (6.0, 12.0)
    sequence_omegas: tuple[float, ...] = (4.0, 16.0, 64.0)
    #: Parts of the training videos that are held out in turn to choose.
    n_inner: int = 3
    #: Numbers of key frames to choose from for k-means, uniform and random frames.
    counts: tuple[int, ...] = tuple(range(4, 17))
    #: Bootstrap samples of the videos.
    n_bootstrap: int = 2000
    max_iter: int = 200
    seed: int = 0

    @classmethod
    def quick(cls) -> Settings:
        """Return settings for a run of a few minutes."""
        return cls(
            n_runs=2,
            n_samples=100,
            omegas=(1 / 64, 1.0, 4.0, 64.0),
            lambdas=(6.0,),
            ridges=(0.1,),
            feature_sets=("picture",),
            inner_omegas=(4.0,),
            sizes=(8,),
            penalties=(1e-3,),
            segments=(8,),
            memories=(1,),
            sequence_lambdas=(6.0,),
            sequence_omegas=(4.0,),
            n_inner=2,
            n_bootstrap=500,
            max_iter=40,
        )


#: Settings and folders.
Setup = HoldingOut[Settings]

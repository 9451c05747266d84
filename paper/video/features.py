"""The paper's quality features of frames: saliency, neighbours and place.

The library describes frames by numbers about their pictures alone; the tables compare
these with what the paper has.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import product
from typing import Any, Self

import numpy as np

from paper.video.saliency import (
    SALIENCY_STATISTICS,
    contrast_saliency,
    image_signature,
    saliency_statistics,
)
from variegate._progress import Progress, ignore
from variegate._typing import AnyArray, BoolArray, FloatArray, RandomState
from variegate.decoding import MBR, Constraint, Decoder, Greedy
from variegate.ground_set import GroundSet
from variegate.kernels import Kernel
from variegate.selection import Ensemble, Selection
from variegate.video import KeyframePicker
from variegate.video.candidates import TrainingVideo, VideoView, standardize_columns
from variegate.video.choosing import Amount, Choice, MatchingAgreement
from variegate.video.evaluation import n_matches
from variegate.video.fisher import FisherEncoder
from variegate.video.picture import PICTURE_STATISTICS, shrink_to_describe

__all__ = ["FEATURE_SETS", "PaperPicker", "PaperView", "saliency_of"]

_SALIENCY = tuple(
    f"{name}_{statistic}"
    for name in ("signature", "contrast")
    for statistic in SALIENCY_STATISTICS
)
_OTHERS = ("before", "after", "nearest", "mean")
_CONTEXT = (
    *(f"hue_{other}" for other in _OTHERS),
    *(f"layout_{other}" for other in _OTHERS),
    "position",
    "off_centre",
    "log_gap_before",
    "log_gap_after",
)
#: Quality features by the name of their set.  "picture" has numbers about the picture
#: itself, "paper" what the paper has (saliency, similarity to neighbours, position),
#: and "full" has all.
FEATURE_SETS = {
    "picture": PICTURE_STATISTICS,
    "paper": (*_SALIENCY, *_CONTEXT),
    "full": (*PICTURE_STATISTICS, *_SALIENCY, *_CONTEXT),
}


#: Samples that may be chosen where each must be matched with all others.
_N_CANDIDATES = 150


def saliency_of(image: AnyArray) -> FloatArray:
    """Return the statistics of both saliency maps of a picture, (16,).

    Those of the image signature, then of the contrast of colours.
    """
    small = shrink_to_describe(image)
    maps = image_signature(small), contrast_saliency(small)
    return np.array([v for m in maps for v in saliency_statistics(m).values()])


@dataclass(frozen=True, eq=False)
class PaperView(VideoView):
    """Candidates with their saliency, (N, 16), beside what the library describes."""

    saliency: FloatArray = field(kw_only=True)

    def features(self, name: str) -> FloatArray:
        """Return the features of a set, each with mean 0 and deviation 1."""
        columns = self._columns
        return standardize_columns(
            np.column_stack([columns[n] for n in FEATURE_SETS[name]])
        )

    @cached_property
    def _columns(self) -> dict[str, FloatArray]:
        picture = np.array([d.picture for d in self.descriptions])
        return {
            **dict(zip(PICTURE_STATISTICS, picture.T, strict=True)),
            **dict(zip(_SALIENCY, self.saliency.T, strict=True)),
            **self._context(),
        }

    def _context(self) -> dict[str, FloatArray]:
        """Return how frames lie among the others, and where in the video."""
        layout = np.array([d.layout for d in self.descriptions], dtype=np.float64)
        # Vectors of length 1: their distance is a function of their product.
        layouts = np.sqrt(np.maximum(2.0 - 2.0 * layout @ layout.T, 0.0))
        times = np.array([d.time for d in self.descriptions])
        end = max(self.duration, times[-1])
        place = times / end if end > 0.0 else np.zeros_like(times)
        gaps = np.diff(times, prepend=0.0, append=end)
        return {
            **_distances_to_others("hue", self.hue_distances),
            **_distances_to_others("layout", layouts),
            "position": place,
            "off_centre": (place - 0.5) ** 2,
            "log_gap_before": np.log1p(gaps[:-1]),
            "log_gap_after": np.log1p(gaps[1:]),
        }


class PaperPicker(KeyframePicker):
    """A picker with the paper's choices, to compare with those of the library.

    Parameters
    ----------
    features : str
        The quality features: one of :data:`FEATURE_SETS`.
    targets : {"users", "oracle"}
        Whether to learn from the choice of each user, or from the one choice that
        agrees best with all of them.
    decoder : {"mbr", "greedy"}
        Whether to choose as the library does, or greedily by probability, as many
        frames as a sample has on average.
    best_sample : {None, "equal", "matched"}
        Choose the sample that agrees best with all others, by the F-score of equal or
        of matched frames, instead of a search.
    kernel : Kernel, optional
        Instead of the Gaussians and linear parts of all blocks.
    **parameters
        As for :class:`variegate.video.KeyframePicker`.
    """

    _type = "paper-keyframe-picker"

    def __init__(
        self,
        features: str = "picture",
        targets: str = "users",
        decoder: str = "mbr",
        best_sample: str | None = None,
        kernel: Kernel | None = None,
        **parameters: Any,
    ) -> None:
        super().__init__(**parameters)
        self.features = features
        self.targets = targets
        self.decoder = decoder
        self.best_sample = best_sample
        self.kernel = kernel

    @classmethod
    def _get_param_names(cls) -> list[str]:
        own = ("features", "targets", "decoder", "best_sample", "kernel")
        return sorted([*KeyframePicker._get_param_names(), *own])

    def fit_prepared(
        self,
        training: Sequence[TrainingVideo],
        encoder: FisherEncoder,
        progress: Progress = ignore,
    ) -> Self:
        """Learn from videos that were prepared before, for several fits."""
        if self.targets == "oracle":
            training = [
                replace(video, users=[video.oracle.tolist()], n_unmatchable=[0])
                for video in training
            ]
        return super().fit_prepared(training, encoder, progress)

    def _make_kernel(self) -> Kernel:
        return super()._make_kernel() if self.kernel is None else self.kernel

    def choose(
        self,
        view: VideoView,
        omega: float | None = None,
        amount: Amount = Amount(),  # noqa: B008 - it is frozen
        random_state: RandomState = None,
    ) -> Choice:
        """Choose among the candidates of a view."""
        if self.decoder == "mbr" and self.best_sample is None:
            return super().choose(view, omega, amount, random_state)
        model = self.family_.at(self.family_.resolve(omega))
        ensemble = model.ensemble(self.ground_set(view))
        decode: Decoder = MBR(self.n_samples)
        if self.decoder == "greedy":
            decode = choose_expected_number
        elif self.best_sample == "matched":
            agreement = PairwiseMatching(view.alike, self.beta, view.alike)
            decode = MBR(self.n_samples, _N_CANDIDATES, agreement)
        rng = self._make_generator(random_state)
        everything = Constraint(None, None, np.ones(len(view)))
        return Choice(ensemble, decode(ensemble, everything, rng), {})

    @property
    def feature_names_(self) -> list[str]:
        """Names of the quality features."""
        return list(FEATURE_SETS[self.features])

    def ground_set(self, view: VideoView) -> GroundSet:
        """Return the features of the candidates of a video."""
        assert isinstance(view, PaperView)
        return GroundSet(
            view.features(self.features), view.similarity(self.encoder_, self.blocks)
        )


class PairwiseMatching(MatchingAgreement):
    """The same agreement of all pairs of subsets, to choose among samples."""

    def gains(self, candidates: BoolArray, voters: BoolArray) -> FloatArray:
        """Return the F-score of each candidate matched with each voter."""
        values = np.zeros((len(candidates), len(voters)))
        square = self.beta**2
        for (i, row), (j, voter) in product(enumerate(candidates), enumerate(voters)):
            if row.any() and voter.any():
                matches = n_matches(self.alike[np.ix_(row, voter)])
                total = row.sum() + square * voter.sum()
                values[i, j] = (1.0 + square) * matches / total
        return values


def choose_expected_number(
    ensemble: Ensemble, constraint: Constraint, generator: np.random.Generator
) -> Selection:
    """Choose greedily as many frames as a sample has on average."""
    k = min(len(ensemble), max(1, round(ensemble.expected_size())))
    return Greedy()(ensemble, Constraint(k, None, constraint.costs), generator)


def _distances_to_others(name: str, distances: FloatArray) -> dict[str, FloatArray]:
    """Return how far each frame is from the one before, after, nearest, and all."""
    n = len(distances)
    if n == 1:
        return {f"{name}_{other}": np.zeros(1) for other in _OTHERS}
    steps = np.diagonal(distances, offset=1)
    others = distances + np.diag(np.full(n, np.inf))
    usual = float(np.median(steps))
    columns = (
        np.concatenate([[usual], steps]),
        np.concatenate([steps, [usual]]),
        others.min(axis=1),
        distances.sum(axis=1) / (n - 1),
    )
    return {f"{name}_{o}": values for o, values in zip(_OTHERS, columns, strict=True)}

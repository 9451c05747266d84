"""A video as the learner sees it: frames that may be chosen, and their features."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from variegate._typing import BoolArray, FloatArray
from variegate.video.description import Description
from variegate.video.evaluation import THRESHOLD
from variegate.video.fisher import FisherEncoder
from variegate.video.matching import frame_distances
from variegate.video.picture import PICTURE_STATISTICS
from variegate.video.saliency import SALIENCY_STATISTICS

__all__ = ["BLOCKS", "FEATURE_SETS", "VideoView"]

#: The blocks of features that similarity is learned from.
BLOCKS = ("palette", "layout", "patterns")

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

#: Histograms of brightness of frames that are alike differ by less (L1).
_VALUE_THRESHOLD = 1.1

#: A deviation below this is none: features are then 0.
_CONSTANT = 1e-9


@dataclass(frozen=True, eq=False)
class VideoView:
    """Candidates for key frames of one video, in its order; its duration in seconds.

    ``shots`` are the numbers of the shots that they are of, if these are known.
    """

    descriptions: Sequence[Description]
    duration: float
    shots: Sequence[int] = ()

    def __len__(self) -> int:
        return len(self.descriptions)

    @cached_property
    def alike(self) -> BoolArray:
        """Which frames count as the same: (N, N).

        VSUMM's rule on hues; and brightness must not be all different, without which
        all frames of a film in black and white would be one.
        """
        values = np.array([d.value for d in self.descriptions])
        return np.asarray(
            (self._hue_distances < THRESHOLD)
            & (frame_distances(values, values) < _VALUE_THRESHOLD)
        )

    @cached_property
    def same_shot(self) -> BoolArray:
        """Which frames are of one shot, (N, N); where shots are not known, all are."""
        shots = np.array(self.shots if len(self.shots) else [0] * len(self))
        return np.asarray(shots[:, None] == shots)

    def quality(self, features: str) -> FloatArray:
        """Return the features of a set, each with mean 0 and deviation 1."""
        columns = self._columns
        table = np.column_stack([columns[name] for name in FEATURE_SETS[features]])
        deviation = table.std(axis=0)
        deviation[deviation < _CONSTANT] = np.inf
        return np.asarray((table - table.mean(axis=0)) / deviation)

    def similarity(
        self, encoder: FisherEncoder, blocks: Sequence[str] = BLOCKS
    ) -> dict[str, FloatArray]:
        """Return features to compare frames by, vectors of length 1 in each block."""
        vectors = {
            block: [
                encoder.encode(d.sift) if block == "patterns" else getattr(d, block)
                for d in self.descriptions
            ]
            for block in blocks
        }
        return {block: np.array(v, dtype=np.float64) for block, v in vectors.items()}

    @cached_property
    def _hue_distances(self) -> FloatArray:
        hues = np.array([d.hue for d in self.descriptions])
        return frame_distances(hues, hues)

    @cached_property
    def _columns(self) -> dict[str, FloatArray]:
        picture = np.array([d.picture for d in self.descriptions])
        saliency = np.array([d.saliency for d in self.descriptions])
        return {
            **dict(zip(PICTURE_STATISTICS, picture.T, strict=True)),
            **dict(zip(_SALIENCY, saliency.T, strict=True)),
            **self._context(),
        }

    def _context(self) -> dict[str, FloatArray]:
        layout = np.array([d.layout for d in self.descriptions], dtype=np.float64)
        # Vectors of length 1: their distance is a function of their product.
        layouts = np.sqrt(np.maximum(2.0 - 2.0 * layout @ layout.T, 0.0))
        times = np.array([d.time for d in self.descriptions])
        end = max(self.duration, times[-1])
        place = times / end if end > 0.0 else np.zeros_like(times)
        gaps = np.diff(times, prepend=0.0, append=end)
        return {
            **_distances_to_others("hue", self._hue_distances),
            **_distances_to_others("layout", layouts),
            "position": place,
            "off_centre": (place - 0.5) ** 2,
            "log_gap_before": np.log1p(gaps[:-1]),
            "log_gap_after": np.log1p(gaps[1:]),
        }


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

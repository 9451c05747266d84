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

__all__ = ["BLOCKS", "VideoView", "standardized"]

#: The blocks of features that similarity is learned from.
BLOCKS = ("palette", "layout", "patterns")

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
            (self.hue_distances < THRESHOLD)
            & (frame_distances(values, values) < _VALUE_THRESHOLD)
        )

    @cached_property
    def same_shot(self) -> BoolArray:
        """Which frames are of one shot, (N, N); where shots are not known, all are."""
        shots = np.array(self.shots if len(self.shots) else [0] * len(self))
        return np.asarray(shots[:, None] == shots)

    def quality(self) -> FloatArray:
        """Return the features of the pictures, each with mean 0 and deviation 1."""
        return standardized(np.array([d.picture for d in self.descriptions]))

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
    def hue_distances(self) -> FloatArray:
        """Distances of the histograms of hue: (N, N)."""
        hues = np.array([d.hue for d in self.descriptions])
        return frame_distances(hues, hues)


def standardized(table: FloatArray) -> FloatArray:
    """Return columns with mean 0 and deviation 1; a constant becomes 0."""
    deviation = table.std(axis=0)
    deviation[deviation < _CONSTANT] = np.inf
    return np.asarray((table - table.mean(axis=0)) / deviation)

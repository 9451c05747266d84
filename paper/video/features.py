"""The paper's quality features of frames: saliency, neighbours and place.

The library describes frames by numbers about their pictures alone; the tables compare
these with what the paper has.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np

from paper.video.saliency import (
    SALIENCY_STATISTICS,
    contrast_saliency,
    image_signature,
    saliency_statistics,
)
from variegate._typing import AnyArray, FloatArray
from variegate.ground_set import GroundSet
from variegate.video import KeyframePicker
from variegate.video.description import described_size
from variegate.video.picture import PICTURE_STATISTICS
from variegate.video.view import VideoView, standardized

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


def saliency_of(image: AnyArray) -> FloatArray:
    """Return the statistics of both saliency maps of a picture, (16,).

    Those of the image signature, then of the contrast of colours.
    """
    small = described_size(image)
    maps = image_signature(small), contrast_saliency(small)
    return np.array([v for m in maps for v in saliency_statistics(m).values()])


@dataclass(frozen=True, eq=False)
class PaperView(VideoView):
    """Candidates with their saliency, (N, 16), beside what the library describes."""

    saliency: FloatArray = field(kw_only=True)

    def features(self, name: str) -> FloatArray:
        """Return the features of a set, each with mean 0 and deviation 1."""
        columns = self._columns
        return standardized(np.column_stack([columns[n] for n in FEATURE_SETS[name]]))

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
    """A picker whose quality features are one of :data:`FEATURE_SETS`."""

    _type = "paper-keyframe-picker"

    def __init__(self, features: str = "picture", **parameters: Any) -> None:
        super().__init__(**parameters)
        self.features = features

    @classmethod
    def _get_param_names(cls) -> list[str]:
        return sorted([*KeyframePicker._get_param_names(), "features"])

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

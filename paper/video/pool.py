"""The pool of frames of the Open Video Project that is public, and how it is judged.

The ground set of a video is what four methods chose of it: the frames whose pictures
are public.  A frame without a picture borrows that of the nearest frame within 60; one
that has none so near stays unmatched: a user's counts in recall, a method's in
precision.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from paper.held_out import find_folder
from paper.video.features import PaperView, saliency_of
from variegate._typing import AnyArray, FloatArray
from variegate.video.candidates import TrainingVideo
from variegate.video.evaluation import KeyframeScore, evaluate_keyframes, with_lost
from variegate.video.picture import describe, hue_histogram
from variegate.video.reading import require_cv2

#: Frames that a picture may be borrowed over.
_NEAR = 60

_INDEX = "videos.json"


@dataclass(frozen=True, eq=False)
class PoolVideo:
    """A video as far as it is public.

    Of ``n_frames`` frames, ``rate`` a second, ``frames`` are the numbers of those that
    have pictures in the folder, ascending; ``histograms`` of shape (frames, 16) are of
    these.  Places in ``frames`` say what each user chose, as far as it can be told,
    beside ``n_unmatchable``, how many frames of each user have no picture near; and
    what each method chose, with the number of those lost.
    """

    name: str
    folder: Path
    n_frames: int
    rate: float
    frames: list[int]
    users: list[list[int]]
    n_unmatchable: list[int]
    methods: dict[str, tuple[list[int], int]]
    histograms: FloatArray

    def image(self, place: int) -> AnyArray:
        """Return the picture of a frame: red, green and blue."""
        return _picture(self.folder / f"{self.frames[place]:05d}.jpg")

    def score(self, places: Sequence[int], n_lost: int = 0) -> KeyframeScore:
        """Return the mean agreement of some frames, and some lost, with the users."""
        users = zip(self.users, self.n_unmatchable, strict=True)
        return evaluate_keyframes(
            [with_lost(self.histograms[user], lost) for user, lost in users],
            with_lost(self.histograms[list(places)], n_lost),
        )

    def prepared(self) -> TrainingVideo:
        """Return it as a video to learn from: its frames are the candidates."""
        descriptions = [
            describe(frame, frame / self.rate, self.image(place))
            for place, frame in enumerate(self.frames)
        ]
        saliency = [saliency_of(self.image(place)) for place in range(len(self.frames))]
        duration = self.n_frames / self.rate
        view = PaperView(descriptions, duration, saliency=np.array(saliency))
        return TrainingVideo(view, self.users, self.n_unmatchable)


#: Videos as they are judged and as they are learned from.
Videos = list[tuple[PoolVideo, TrainingVideo]]


def find_pool(given: Path | None, option: str = "--data") -> Path:
    """Return the folder of the pool: see :func:`find_folder`."""
    return find_folder(given, _INDEX, ["ovp", "video/ovp"], option)


def read_pool(folder: Path) -> list[PoolVideo]:
    """Read ``videos.json`` and the pictures in ``frames``."""
    index = find_pool(folder) / _INDEX
    folder = index.parent
    try:
        videos = json.loads(index.read_text(encoding="utf-8"))
    except ValueError as error:
        raise ValueError(f"{index} is no JSON: {error}") from error
    return [
        _read_video(name, entry, folder / "frames" / name)
        for name, entry in sorted(videos.items())
    ]


def _read_video(name: str, entry: dict[str, Any], folder: Path) -> PoolVideo:
    frames = sorted(entry["frames_with_image"])
    users = [_places(chosen, frames) for chosen in entry["users"]]
    methods = {m: _places(chosen, frames) for m, chosen in entry["methods"].items()}
    pictures = (_picture(folder / f"{frame:05d}.jpg") for frame in frames)
    return PoolVideo(
        name,
        folder,
        int(entry["n_frames"]),
        float(entry["fps"]),
        frames,
        [places for places, _ in users],
        [lost for _, lost in users],
        methods,
        np.array([hue_histogram(picture) for picture in pictures]),
    )


def _places(chosen: Sequence[int], frames: Sequence[int]) -> tuple[list[int], int]:
    """Return where pictures are, borrowing within reach, and how many are lost."""
    known = np.asarray(frames)
    places = []
    for frame in chosen:
        distance = np.abs(known - frame)
        nearest = int(np.argmin(distance))
        if distance[nearest] <= _NEAR:
            places.append(nearest)
    return places, len(chosen) - len(places)


def _picture(path: Path) -> AnyArray:
    require_cv2()
    import cv2

    picture = cv2.imread(str(path))
    if picture is None:
        raise ValueError(f"{path} is missing or no picture")
    return np.ascontiguousarray(picture[:, :, ::-1])

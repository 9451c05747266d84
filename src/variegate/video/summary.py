"""What was chosen of a video, and what it was chosen from."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from os import PathLike
from typing import Any

import numpy as np
from numpy.typing import NDArray

from variegate._typing import FloatArray
from variegate.selection import Selection
from variegate.video.candidates import ReadVideo
from variegate.video.reading import Frame
from variegate.video.screening import Decision

__all__ = ["Candidate", "Keyframe", "VideoSummary"]

#: Pixels on the longer side of a picture in a notebook.
_THUMBNAIL = 200


@dataclass(frozen=True)
class Candidate:
    """A frame that could have been chosen.

    Attributes
    ----------
    number, time : as in :class:`variegate.video.Frame`
    probability : float
        With which a set drawn from the model holds it.
    chosen : bool
    """

    number: int
    time: float
    probability: float
    chosen: bool


@dataclass(frozen=True, eq=False)
class Keyframe:
    """A frame that was chosen, with its picture: red, green and blue, 0 to 255."""

    number: int
    time: float
    probability: float
    image: NDArray[np.uint8] = field(repr=False)


@dataclass(frozen=True, eq=False)
class VideoSummary:
    """The key frames of one video.

    Attributes
    ----------
    source : str
        The path of the video.
    keyframes : sequence of Keyframe, in the order of the video
    candidates : sequence of Candidate
        The frames that the model chose from.
    decisions : sequence of Decision
        Every frame that was looked at, and why those were dropped that were.
    omega : float
        The knob from precise to complete.
    selection : Selection
        Which of ``candidates`` were chosen, and why the search ended: its
        ``stop_reason``, ``gap`` and ``is_optimal``.
    """

    source: str
    keyframes: Sequence[Keyframe]
    candidates: Sequence[Candidate]
    decisions: Sequence[Decision]
    omega: float
    selection: Selection | None = None

    @classmethod
    def of(
        cls,
        source: str | PathLike[str],
        video: ReadVideo,
        probabilities: FloatArray,
        selection: Selection,
        frames: Sequence[Frame],
        omega: float,
    ) -> VideoSummary:
        """Put together candidates, the choice among them, and its frames."""
        descriptions = video.view.descriptions
        # What is kept of the choice is no longer tied to the model.
        selection = selection.among(np.arange(len(descriptions)))
        taken = set(selection.indices.tolist())
        candidates = [
            Candidate(d.number, d.time, float(probability), place in taken)
            for place, (d, probability) in enumerate(
                zip(descriptions, probabilities, strict=True)
            )
        ]
        chosen = [candidate for candidate in candidates if candidate.chosen]
        keyframes = [
            Keyframe(frame.number, frame.time, candidate.probability, frame.image)
            for candidate, frame in zip(chosen, frames, strict=True)
        ]
        return cls(
            str(source), keyframes, candidates, video.decisions, omega, selection
        )

    @property
    def duration(self) -> float:
        """The time of the last frame that was looked at, in seconds."""
        return self.decisions[-1].time

    def __repr__(self) -> str:
        return (
            f"<VideoSummary: {len(self.keyframes)} of {len(self.candidates)} frames of "
            f"{self.source}>"
        )

    def _repr_html_(self) -> str:
        from base64 import b64encode

        from variegate.report.notebook import card
        from variegate.report.words import percent
        from variegate.video.colour import shrunk
        from variegate.video.storyboard import encode_jpeg, time_label

        pictures = []
        for keyframe in self.keyframes:
            small = encode_jpeg(shrunk(keyframe.image, _THUMBNAIL))
            label = f"{time_label(keyframe.time)}, {percent(keyframe.probability)}"
            pictures.append(
                '<figure style="display:inline-block;margin:4px">'
                f'<img alt="frame at {label}" '
                f'src="data:image/jpeg;base64,{b64encode(small).decode()}">'
                f"<figcaption>{label}</figcaption></figure>"
            )
        facts = {"video": self.source, "omega": f"{self.omega:g}"}
        title = f"{len(self.keyframes):,} key frames of {len(self.candidates):,}"
        return card(title, facts, f"<div>{''.join(pictures)}</div>")

    def as_dict(self) -> dict[str, Any]:
        """Return everything but the pictures as plain values."""
        return {
            "source": self.source,
            "omega": self.omega,
            "duration": round(self.duration, 3),
            **(self.selection.ending() if self.selection else {}),
            "keyframes": [
                _place(k) | {"probability": round(k.probability, 6)}
                for k in self.keyframes
            ],
            "candidates": [
                _place(c) | {"probability": round(c.probability, 6), "chosen": c.chosen}
                for c in self.candidates
            ],
            "dropped": [
                _place(d) | {"reason": d.reason} for d in self.decisions if not d.kept
            ],
        }


def _place(frame: Keyframe | Candidate | Decision) -> dict[str, Any]:
    return {"frame": frame.number, "time": round(frame.time, 3)}

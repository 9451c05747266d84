"""Hold the key frames of a video, and the candidates they were chosen from."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Sequence
from dataclasses import dataclass, field
from os import PathLike
from typing import Any

import numpy as np

from variegate.report.notebook import html_card
from variegate.report.wording import percent
from variegate.selection import Selection
from variegate.video.candidates import CandidateReader, ReadVideo
from variegate.video.choosing import Choice
from variegate.video.picture import shrink_picture
from variegate.video.picture_store import StoredPicture
from variegate.video.reading import Picture, time_label
from variegate.video.screening import Decision
from variegate.video.sequence import KeyframeSequence
from variegate.video.shots import Shot, shot_at

_THUMBNAIL = 200  # pixels on the longer side of a picture in a notebook


@dataclass(frozen=True)
class Candidate:
    """A frame that could have been chosen.

    Attributes
    ----------
    number, time : as in :class:`variegate.video.Frame`, of the key frame if chosen
    probability : that a set drawn from the model holds it
    why_not : of a frame likelier than a chosen one: "too similar to frame 12 at 0:08.0"
    like : number of the most similar key frame, or None
    similarity : to that key frame as learned, from 0 to 1, or None
    """

    number: int
    time: float
    probability: float
    chosen: bool
    why_not: str | None = None
    like: int | None = None
    similarity: float | None = None


@dataclass(frozen=True, eq=False)
class Keyframe:
    """A frame that was chosen, with its picture, which may be stored in a file."""

    number: int
    time: float
    probability: float
    picture: Picture | StoredPicture = field(repr=False)

    @property
    def image(self) -> Picture:
        """Red, green and blue of the picture, 0 to 255."""
        if isinstance(self.picture, StoredPicture):
            return self.picture.read()
        return self.picture


@dataclass(frozen=True, eq=False)
class VideoSummary:
    """The key frames of one video.

    Attributes
    ----------
    source : path of the video
    keyframes : sequence of Keyframe, in the order of the video
    candidates : sequence of Candidate, that the model chose from
    decisions : sequence of Decision
        On every sampled frame, with the reason why it was dropped.
    omega : from precise, below 1, to complete, above
    duration : in seconds
    shots : sequence of Shot, without those that are dark from end to end
    selection : Selection
        Of ``candidates``, with its ``stop_reason``, ``gap`` and ``is_optimal``.
    """

    source: str
    keyframes: Sequence[Keyframe]
    candidates: Sequence[Candidate]
    decisions: Sequence[Decision]
    omega: float
    duration: float
    shots: Sequence[Shot] = ()
    selection: Selection | None = None

    @classmethod
    def from_choice(
        cls,
        source: str | PathLike[str],
        video: ReadVideo | CandidateReader,
        candidates: Sequence[tuple[int, float]],
        choice: Choice | KeyframeSequence,
        pictures: Sequence[tuple[int, float, Picture | StoredPicture]],
        omega: float,
    ) -> VideoSummary:
        """Return the summary of a choice among the candidates of a video.

        ``candidates`` are their numbers and times.  ``pictures`` are those of the
        chosen ones after number and time, in the order of the choice's sorted indices:
        they may be other frames than the candidates, but near them.
        """
        # This selection does not keep the model in memory.
        selection = choice.selection.renumber(np.arange(len(candidates)))
        chosen = dict(zip(selection.indices.tolist(), pictures, strict=True))
        probabilities = choice.probability
        found = []
        for place, probability in enumerate(probabilities):
            number, time = chosen.get(place, candidates[place])[:2]
            why: tuple[Any, ...] = ()
            if refusal := choice.refusals.get(place):
                beside, when, _ = chosen[refusal.beside]
                text = f"{refusal.why} frame {beside} at {time_label(when)}"
                why = text, beside, refusal.similarity
            found.append(Candidate(number, time, probability, place in chosen, *why))
        keyframes = [
            Keyframe(number, time, probabilities[place], picture)
            for place, (number, time, picture) in chosen.items()
        ]
        rest = video.decisions, omega, video.duration, video.shots, selection
        return cls(str(source), keyframes, found, *rest)

    @property
    def shots_shown(self) -> int:
        """The number of shots of which there is a key frame."""
        shots = list(self.shots)
        return len({shot_at(shots, k.time) for k in self.keyframes}) if shots else 0

    def __repr__(self) -> str:
        return (
            f"<VideoSummary: {len(self.keyframes)} of {len(self.candidates)} frames of "
            f"{self.source}>"
        )

    def _repr_html_(self) -> str:
        """Return HTML of facts and small pictures, for a notebook."""
        from variegate.video.storyboard import encode_jpeg

        pictures = []
        for keyframe in self.keyframes:
            small = encode_jpeg(shrink_picture(keyframe.image, _THUMBNAIL))
            label = f"{time_label(keyframe.time)}, {percent(keyframe.probability)}"
            pictures.append(
                '<figure style="display:inline-block;margin:4px">'
                f'<img alt="frame at {label}" '
                f'src="data:image/jpeg;base64,{b64encode(small).decode()}">'
                f"<figcaption>{label}</figcaption></figure>"
            )
        facts = {"video": self.source, "omega": f"{self.omega:g}"}
        title = f"{len(self.keyframes):,} key frames of {len(self.candidates):,}"
        return html_card(title, facts, f"<div>{''.join(pictures)}</div>")

    def as_dict(self) -> dict[str, Any]:
        """Return everything but the pictures as plain values, for JSON."""
        return {
            "source": self.source,
            "omega": self.omega,
            "duration": round(self.duration, 3),
            **(self.selection.ending() if self.selection else {}),
            "shots": [
                {"start": round(s.start, 3), "end": round(s.end, 3)} for s in self.shots
            ],
            "shots_shown": self.shots_shown,
            "keyframes": [
                _number_and_time(k) | {"probability": round(k.probability, 6)}
                for k in self.keyframes
            ],
            "candidates": [
                _number_and_time(c)
                | {"probability": round(c.probability, 6), "chosen": c.chosen}
                | _refusal_values(c)
                for c in self.candidates
            ],
            "dropped": [
                _number_and_time(d) | {"reason": d.reason}
                for d in self.decisions
                if not d.kept
            ],
        }


def _number_and_time(frame: Keyframe | Candidate | Decision) -> dict[str, Any]:
    """Return the number and time of a frame, by the names in JSON."""
    return {"frame": frame.number, "time": round(frame.time, 3)}


def _refusal_values(candidate: Candidate) -> dict[str, Any]:
    """Return why a candidate was refused, by names in JSON; {} if it was not."""
    if candidate.why_not is None:
        return {}
    similarity = candidate.similarity
    return {
        "why_not": candidate.why_not,
        "like": candidate.like,
        "similarity": None if similarity is None else round(similarity, 3),
    }

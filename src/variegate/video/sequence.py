"""Choose key frames of long videos in order, segment by segment."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Self

import numpy as np

from variegate._typing import FloatArray, IntArray
from variegate.ground_set import GroundSet
from variegate.selection import Selection
from variegate.video.candidates import (
    CandidateReader,
    ReadVideo,
    VideoView,
    scale_columns,
)
from variegate.video.choosing import Amount, Choice, Refusal, choose_frames
from variegate.video.picture import SIFT_LENGTH, FrameDescription
from variegate.video.shots import Shot, shot_at

if TYPE_CHECKING:
    from variegate.video.picker import KeyframePicker

#: The most candidates of a segment.  Models are learned from videos of a few minutes,
#: which have about as many.
SEGMENT = 100

#: Segments whose key frames are given to the next one.
MEMORY = 1

_MOST_AT_ONCE = 300  # key frames that fewer are chosen of in one step
_NO_PATTERNS = np.zeros((0, SIFT_LENGTH), dtype=np.uint8)
_NO_LAYOUT = np.zeros(0, dtype=np.float32)


@dataclass(frozen=True, eq=False)
class _Frames:
    """Candidates or key frames, with their features; ``places`` count the candidates.

    ``spans`` are the times (start, end) that they stand for.
    """

    places: IntArray
    spans: Sequence[tuple[float, float]]
    descriptions: Sequence[FrameDescription]
    blocks: dict[str, FloatArray]

    def __len__(self) -> int:
        return len(self.places)

    def take(self, items: IntArray) -> _Frames:
        """Return some of the frames, with features of single precision, to keep."""
        return _Frames(
            self.places[items],
            [self.spans[item] for item in items],
            [self.descriptions[item] for item in items],
            {name: b[items].astype(np.float32) for name, b in self.blocks.items()},
        )

    @classmethod
    def join(cls, parts: Sequence[Self]) -> _Frames:
        """Return the frames of several parts, in order."""
        return _Frames(
            np.concatenate([part.places for part in parts]),
            [span for part in parts for span in part.spans],
            [description for part in parts for description in part.descriptions],
            {
                name: np.concatenate([part.blocks[name] for part in parts])
                for name in parts[0].blocks
            },
        )

    @property
    def statistics(self) -> FloatArray:
        """Numbers about the pictures (N, 9), not standardized."""
        return np.array([description.picture for description in self.descriptions])


class KeyframeSequence:
    """Key frames of one video, chosen from its segments as they arrive.

    Each segment is chosen beside the key frames of the last ``memory`` segments: by the
    conditional process of the picker's model.  Quality features are standardized over
    all candidates so far.

    Of candidates, only numbers are held; of the key frames that are given to the next
    segment, features too.  With ``max_frames``, the features of all key frames are
    held, and :meth:`limit` chooses among them.

    Attributes
    ----------
    frames : number and time of each candidate
    probability : of each candidate, beside the key frames before its segment
    refusals : as of :class:`~variegate.video.choosing.Choice`
    """

    def __init__(
        self,
        picker: KeyframePicker,
        omega: float,
        generator: np.random.Generator,
        max_frames: int | None = None,
        memory: int = MEMORY,
    ) -> None:
        self._picker = picker
        self._model = picker.family_.at(omega)
        self._generator = generator
        self._max_frames = max_frames
        self._moments = RunningMoments()
        self._last: deque[_Frames] = deque(maxlen=memory)
        self._kept: list[_Frames] = []
        self._chosen: list[int] = []
        self._log_prob = 0.0
        self._n_segments = 0
        self.frames: list[tuple[int, float]] = []
        self.probability: list[float] = []
        self.refusals: dict[int, Refusal] = {}

    def add(self, segment: ReadVideo) -> Sequence[tuple[float, float]]:
        """Choose from the next segment; return the spans that key frames stand for."""
        candidates = self._describe(segment)
        self._moments.add(candidates.statistics)
        earlier = list(self._last)
        choice = self._choose([*earlier, candidates], len(candidates), segment.shots)
        self._n_segments += 1
        self._log_prob += choice.selection.log_prob
        self.frames += segment.frames
        self.probability += choice.ensemble.marginals().tolist()
        self._add_refusals(choice, _Frames.join([candidates, *earlier]).places)
        chosen = candidates.take(choice.selection.indices)
        self._chosen += chosen.places.tolist()
        self._last.append(chosen)
        if self._max_frames is not None:
            self._kept.append(chosen)
        return chosen.spans

    def limit(self, shots: Sequence[Shot]) -> Sequence[tuple[float, float]]:
        """Choose at most ``max_frames`` of the key frames, as of a video of only these.

        Return the spans of time that they stand for.  Of many, an equal number of each
        part of the video is chosen first.
        """
        assert self._max_frames is not None
        kept = _Frames.join(self._kept)
        room = max(_MOST_AT_ONCE, 2 * self._max_frames)
        while len(kept) > room:
            n_parts = -(-len(kept) // room)
            most = max(1, room // n_parts)
            parts = np.array_split(np.arange(len(kept)), n_parts)
            fewer = [self._choose_fewer(kept.take(p), most, shots) for p in parts]
            kept = _Frames.join(fewer)
        kept = self._choose_fewer(kept, self._max_frames, shots)
        self._chosen = kept.places.tolist()
        chosen = set(self._chosen)
        refusals = self.refusals.items()
        self.refusals = {
            place: one
            for place, one in refusals
            if one.beside in chosen and place not in chosen
        }
        return kept.spans

    @property
    def selection(self) -> Selection:
        """The chosen candidates; the log-probability is a sum over segments."""
        reason = (
            "key frames of one segment"
            if self._n_segments == 1
            else f"{self._n_segments:,} segments, each chosen beside the key frames of "
            "the one before"
        )
        if self._max_frames is not None:
            reason += f", and of these at most {self._max_frames}"
        chosen = np.array(self._chosen, dtype=np.intp)
        return Selection(chosen, self._log_prob, reason)

    def _describe(self, segment: ReadVideo) -> _Frames:
        """Return the candidates of a segment with the features of the model."""
        n = len(segment.view)
        return _Frames(
            np.arange(len(self.frames), len(self.frames) + n),
            [segment.span_around(place) for place in range(n)],
            [
                replace(d, sift=_NO_PATTERNS, layout=_NO_LAYOUT)
                for d in segment.view.descriptions
            ],
            segment.view.similarity(self._picker.encoder_, self._picker.blocks),
        )

    def _choose(
        self,
        parts: Sequence[_Frames],
        n_candidates: int,
        shots: Sequence[Shot],
        most: int | None = None,
    ) -> Choice:
        """Choose among the last ``n_candidates`` frames, beside those before them."""
        frames = _Frames.join(parts)
        quality = self._moments.standardize(frames.statistics)
        places = [shot_at(list(shots), d.time) for d in frames.descriptions]
        return choose_frames(
            self._model.ensemble(GroundSet(quality, frames.blocks)),
            VideoView(frames.descriptions, 0.0, places),
            self._picker._make_decoder,
            self._picker.max_similarity,
            Amount(most),
            self._generator,
            len(frames) - n_candidates,
        )

    def _choose_fewer(
        self, frames: _Frames, most: int, shots: Sequence[Shot]
    ) -> _Frames:
        """Return the frames that are chosen, at most ``most``."""
        if len(frames) <= most:
            return frames
        choice = self._choose([frames], len(frames), shots, most)
        self._add_refusals(choice, frames.places)
        return frames.take(choice.selection.indices)

    def _add_refusals(self, choice: Choice, places: IntArray) -> None:
        """Add the refusals of a choice, with candidates of the video by ``places``.

        Numbers below 0 count back in the earlier key frames, which are the last ones.
        """
        for item, refusal in choice.refusals.items():
            beside = int(places[refusal.beside])
            self.refusals[int(places[item])] = replace(refusal, beside=beside)


class RunningMoments:
    """Means and deviations of the columns of tables that arrive one after the other."""

    def __init__(self) -> None:
        self._n = 0
        self._mean: FloatArray = np.zeros(1)
        self._squares: FloatArray = np.zeros(1)

    def add(self, table: FloatArray) -> None:
        """Add the rows of a table (N, d)."""
        n, mean = len(table), table.mean(axis=0)
        total, step = self._n + n, mean - self._mean
        between = step**2 * (self._n * n / total)
        self._squares = self._squares + ((table - mean) ** 2).sum(axis=0) + between
        self._mean = self._mean + step * (n / total)
        self._n = total

    def standardize(self, table: FloatArray) -> FloatArray:
        """Return a table, less the means and divided by the deviations so far."""
        return scale_columns(table, self._mean, np.sqrt(self._squares / self._n))


def choose_in_order(
    sequence: KeyframeSequence, reader: CandidateReader
) -> Iterator[tuple[float, float]]:
    """Read a video, and yield spans of time of key frames as they are chosen."""
    for segment in reader.segments(SEGMENT):
        if len(segment.view):
            yield from sequence.add(segment)

"""Read candidates for key frames of a video, their features, and users' picks."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from os import PathLike

import numpy as np

from variegate._progress import Progress
from variegate._typing import BoolArray, FloatArray, IntArray
from variegate.files.model_format import COUNT
from variegate.files.schema import Number, Record
from variegate.video.evaluation import (
    THRESHOLD,
    evaluate_keyframes,
    frame_distances,
    oracle_keyframes,
    with_lost,
)
from variegate.video.fisher import FisherEncoder
from variegate.video.picks import PickedVideo
from variegate.video.picture import FrameDescription
from variegate.video.reading import EVERY, Frame, with_progress
from variegate.video.screening import Decision, screen
from variegate.video.shots import (
    Reel,
    Shot,
    Stretch,
    merge_stretches,
    shot_at,
    split_into_stretches,
)

BLOCKS = ("palette", "layout", "patterns")  # of features that frames are compared by
MAX_CANDIDATES = 1000  # of more stretches, neighbours are merged
REACH = 2.0  # seconds from a picked time to the sampled frames, at most
_VALUE_THRESHOLD = 1.1  # L1 distance of histograms of brightness of like frames
_CONSTANT = 1e-9  # deviation below which features are constant, and become 0
_AROUND = 4.0  # seconds before and after a candidate that it stands for, at most

# Stretches shorter than this many seconds are dropped if they have less than this
# share of the detail of a neighbour.
_SHORTEST = 1.0
_FADED = 0.75

#: The section of a model file about its training.
TRAINING = Record(
    {
        **dict.fromkeys(("n_videos", "n_candidates", "n_users", "n_lost"), COUNT),
        "oracle_f": Number(least=0),
    }
)


@dataclass(frozen=True, eq=False)
class VideoView:
    """N candidates for key frames of one video, in order, with its duration in seconds.

    ``shots`` is the number of each candidate's shot, empty if shots are not known.
    """

    descriptions: Sequence[FrameDescription]
    duration: float
    shots: Sequence[int] = ()

    def __len__(self) -> int:
        return len(self.descriptions)

    @cached_property
    def alike(self) -> BoolArray:
        """Which pairs of frames (N, N) are near in histograms of hue and of brightness.

        VSUMM compares hue alone, by which all frames of a film in black and white would
        be alike.
        """
        values = np.array([d.value for d in self.descriptions])
        is_as_light = frame_distances(values, values) < _VALUE_THRESHOLD
        return np.asarray((self.hue_distances < THRESHOLD) & is_as_light)

    @cached_property
    def same_shot(self) -> BoolArray:
        """Which pairs (N, N) are of one shot; all where shots are not known."""
        shots = np.array(self.shots if len(self.shots) else [0] * len(self))
        return np.asarray(shots[:, None] == shots)

    @cached_property
    def hue_distances(self) -> FloatArray:
        """The L1 distances of the histograms of hue of all pairs: (N, N)."""
        hues = np.array([d.hue for d in self.descriptions])
        return frame_distances(hues, hues)

    def quality(self) -> FloatArray:
        """Return nine statistics of the candidates' pictures, (N, 9), standardized.

        They are :data:`~variegate.video.picture.PICTURE_STATISTICS`, from brightness to
        the share of dark pixels; each has mean 0 and deviation 1 over the N candidates.
        """
        return standardize_columns(np.array([d.picture for d in self.descriptions]))

    def similarity(
        self, encoder: FisherEncoder, blocks: Sequence[str] = BLOCKS
    ) -> dict[str, FloatArray]:
        """Return an array (N, D) for each block of features, its rows of length 1.

        "palette" is colours of the picture, "layout" those of its 25 cells, "patterns"
        the Fisher vector of its SIFT descriptors.
        """
        vectors = {
            block: [
                encoder.encode(d.sift) if block == "patterns" else getattr(d, block)
                for d in self.descriptions
            ]
            for block in blocks
        }
        return {block: np.array(v, dtype=np.float64) for block, v in vectors.items()}


def standardize_columns(table: FloatArray) -> FloatArray:
    """Return a table with columns of mean 0 and deviation 1; constant ones are 0."""
    return scale_columns(table, table.mean(axis=0), table.std(axis=0))


def scale_columns(
    table: FloatArray, mean: FloatArray, deviation: FloatArray
) -> FloatArray:
    """Return a table less the means and divided by the deviations; constants are 0."""
    divisor = np.where(deviation < _CONSTANT, np.inf, deviation)
    return np.asarray((table - mean) / divisor)


@dataclass(frozen=True, eq=False)
class ReadVideo:
    """The candidates of a video, one for each stretch of like pictures.

    ``spans`` are (start, end) of these stretches in seconds; ``decisions`` are on every
    sampled frame.  ``shots`` are those with a frame that is not dark.  Of a segment of
    a video, ``bounds`` are the times to which its candidates can stand for others.
    """

    view: VideoView
    spans: list[tuple[float, float]]
    decisions: list[Decision]
    shots: list[Shot]
    bounds: tuple[float, float] = (-np.inf, np.inf)

    @property
    def frames(self) -> list[tuple[int, float]]:
        """The number and time of each candidate."""
        return [(d.number, d.time) for d in self.view.descriptions]

    @property
    def duration(self) -> float:
        """The duration in seconds."""
        return self.view.duration

    def candidate_at(self, time: float, reach: float = 0.0) -> int | None:
        """Return the number of the candidate whose stretch is nearest to a time.

        None where the nearest is more than ``reach`` seconds away.
        """
        starts, ends = np.array(self.spans).T
        distance = np.maximum(np.maximum(starts - time, time - ends), 0.0)
        nearest = int(np.argmin(distance))
        return nearest if distance[nearest] <= reach else None

    def span_around(self, place: int) -> tuple[float, float]:
        """Return the span of time (start, end) that candidate ``place`` stands for.

        It is within the candidate's shot, ends half way to the stretches beside its
        own, and four seconds away at most.
        """
        time = self.view.descriptions[place].time
        shots = self.view.shots
        shot = self.shots[shots[place]]
        start = max(time - _AROUND, shot.start, self.bounds[0])
        end = min(time + _AROUND, shot.end, self.bounds[1])
        if place > 0 and shots[place - 1] == shots[place]:
            start = max(start, (self.spans[place - 1][1] + self.spans[place][0]) / 2.0)
        if place + 1 < len(shots) and shots[place + 1] == shots[place]:
            end = min(end, (self.spans[place][1] + self.spans[place + 1][0]) / 2.0)
        return start, end


class CandidateReader:
    """Reads a video once, frame by frame, and finds its stretches of like pictures.

    Frames are sampled ``every`` seconds, and in every shot; no stretch crosses a cut.
    ``progress`` is called with "reading", the time of each sampled frame, and the
    duration of the video, 0 where it is not known.  ``decisions`` are on the frames
    that were sampled so far.
    """

    def __init__(
        self,
        path: str | PathLike[str],
        every: float = EVERY,
        progress: Progress | None = None,
    ) -> None:
        self._reel = Reel(path, every)
        self._frames = with_progress(self._reel, path, progress)
        self.decisions: list[Decision] = []

    def _kept_frames(self) -> Iterator[Frame]:
        """Yield the frames that pass the screen; note the decision on every frame."""
        for decision, frame in screen(self._frames):
            self.decisions.append(decision)
            if frame is not None:
                yield frame

    def stretches(self) -> Iterator[Stretch]:
        """Yield all stretches in order."""
        return split_into_stretches(self._kept_frames(), self._reel.cuts)

    def segments(self, size: int) -> Iterator[ReadVideo]:
        """Yield the candidates in segments of at most ``size``, in order.

        A segment ends at the last cut in its second half, if there is one.  Without
        ``decisions``, which are those of the reader.
        """
        held: list[Stretch] = []
        first = -np.inf
        for stretch in self.stretches():
            held.append(stretch)
            if len(held) > size:
                place = self._last_cut(held)
                last = (held[place - 1].end + held[place].start) / 2.0
                yield self._as_video(held[:place], held[place], (first, last))
                held, first = held[place:], last
        if held:
            yield self._as_video(held, None, (first, np.inf))

    def _last_cut(self, held: list[Stretch]) -> int:
        """Return the place in the second half where the last shot begins, or the end.

        The end is the place of the last stretch.
        """
        cuts = self._reel.cuts
        last = len(held) - 1
        for place in range(last, last // 2, -1):
            if bisect_right(cuts, held[place].start) > bisect_right(
                cuts, held[place - 1].end
            ):
                return place
        return last

    def _as_video(
        self, members: list[Stretch], after: Stretch | None, bounds: tuple[float, float]
    ) -> ReadVideo:
        """Return stretches as candidates; the one ``after`` tells fades at the end."""
        shots = self._reel.shots
        both = members if after is None else [*members, after]
        kept = [stretch for stretch in _drop_fades(both, shots) if stretch is not after]
        return _read_video(kept, self._reel.duration, [], shots, bounds)

    def whole(self, stretches: list[Stretch]) -> ReadVideo:
        """Return the whole video, at its end, with candidates of these stretches."""
        shots = self.shots
        kept = _drop_fades(stretches, shots)
        return _read_video(kept, self.duration, self.decisions, shots)

    @property
    def duration(self) -> float:
        """The seconds that were read."""
        return self._reel.duration

    @property
    def shots(self) -> list[Shot]:
        """The shots with a frame that is not dark; known at the end."""
        shots = self._reel.shots
        starts = [shot.start for shot in shots]
        lit = {
            max(bisect_right(starts, d.time) - 1, 0)
            for d in self.decisions
            if d.kept or d.reason != "dark"
        }
        return [shot for place, shot in enumerate(shots) if place in lit]


def _read_video(
    stretches: list[Stretch],
    duration: float,
    decisions: list[Decision],
    shots: list[Shot],
    bounds: tuple[float, float] = (-np.inf, np.inf),
) -> ReadVideo:
    """Return a video with one candidate for each stretch."""
    places = [shot_at(shots, stretch.frame.time) for stretch in stretches]
    view = VideoView([stretch.frame for stretch in stretches], duration, places)
    spans = [(stretch.start, stretch.end) for stretch in stretches]
    return ReadVideo(view, spans, decisions, shots, bounds)


def read_candidates(
    path: str | PathLike[str],
    every: float = EVERY,
    progress: Progress | None = None,
) -> ReadVideo:
    """Read a video once, and describe one frame of each stretch of like pictures.

    See :class:`CandidateReader`.  Of more than a thousand stretches, neighbours are
    merged.
    """
    reader = CandidateReader(path, every, progress)
    stretches: list[Stretch] = []
    for stretch in reader.stretches():
        stretches.append(stretch)
        if len(stretches) == 2 * MAX_CANDIDATES:
            stretches = merge_stretches(stretches, MAX_CANDIDATES)
    return reader.whole(merge_stretches(stretches, MAX_CANDIDATES))


def _drop_fades(stretches: list[Stretch], shots: list[Shot]) -> list[Stretch]:
    """Return stretches without those in a fade, unless one of ``shots`` has no other.

    In a fade, a stretch is shorter than a second and has less detail than a neighbour.
    """
    kept = []
    places = [shot_at(shots, stretch.frame.time) for stretch in stretches]
    for place, stretch in enumerate(stretches):
        after = stretches[place + 1 : place + 2]
        neighbours = stretches[max(place - 1, 0) : place] + after
        end = after[0].start if after else np.inf
        most = max((other.detail for other in neighbours), default=0.0)
        passes = end - stretch.start < _SHORTEST and stretch.detail < _FADED * most
        if not passes or places.count(places[place]) == 1:
            kept.append(stretch)
    return kept


@dataclass(frozen=True, eq=False)
class TrainingVideo:
    """The candidates of a video, and for each user those that they chose.

    ``users`` has their numbers, ``n_unmatchable`` how many picks of each user have no
    candidate near.  ``path`` names the video in messages.
    """

    view: VideoView
    users: Sequence[Sequence[int]]
    n_unmatchable: Sequence[int]
    path: str = "a video"

    @classmethod
    def read(cls, video: PickedVideo, every: float) -> TrainingVideo:
        """Read candidates, sampled ``every`` seconds, and match users' picks.

        Raises ValueError if no picked time is within two seconds of a candidate.
        """
        read = read_candidates(video.path, every)
        users, lost = [], []
        for times in video.users:
            places = [read.candidate_at(time, REACH) for time in times]
            users.append([place for place in places if place is not None])
            lost.append(len(places) - len(users[-1]))
        if not any(users):
            raise ValueError(
                f"{video.path}: no picked time is within {REACH:g} s of a frame worth "
                f"looking at; the video ends at {read.view.duration:.1f} s"
            )
        return cls(read.view, users, lost, str(video.path))

    @property
    def targets(self) -> list[IntArray]:
        """Sorted numbers of the chosen candidates, for each user who chose any."""
        return [np.unique(np.array(user, dtype=np.intp)) for user in self.users if user]

    @property
    def _hue_histograms(self) -> tuple[FloatArray, list[FloatArray]]:
        """Hue histograms (N, 16) of candidates, and a list with those of each user.

        Picks without a candidate have rows of NaN.
        """
        hues = np.array([d.hue for d in self.view.descriptions])
        users = zip(self.users, self.n_unmatchable, strict=True)
        return hues, [with_lost(hues[list(user)], lost) for user, lost in users]

    @cached_property
    def oracle(self) -> IntArray:
        """Sorted numbers of candidates, chosen greedily by mean F-score over users."""
        return oracle_keyframes(*self._hue_histograms)

    @property
    def oracle_f(self) -> float:
        """The mean F-score of the oracle against the users."""
        hues, users = self._hue_histograms
        return evaluate_keyframes(users, hues[self.oracle]).f

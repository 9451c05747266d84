"""Videos as material: candidate frames, as ``KeyframePicker`` sees them."""

from __future__ import annotations

import csv
import hashlib
import io
import shlex
from collections.abc import Callable, Sequence
from concurrent.futures import CancelledError, Future
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from threading import Lock, Thread, main_thread
from time import monotonic
from typing import Any

import numpy as np

from variegate._progress import Progress
from variegate._typing import AnyArray
from variegate.kernels import Kinds, Linear, Mixture, MultipleKernel
from variegate.studio.material.base import (
    Item,
    Material,
    MaterialError,
    Picks,
    is_any,
)
from variegate.video import KeyframePicker
from variegate.video.candidates import (
    ReadVideo,
    TrainingVideo,
    VideoView,
    read_candidates,
)
from variegate.video.colour import shrunk
from variegate.video.picker import load_default
from variegate.video.picks import frames_at
from variegate.video.reading import VIDEO_SUFFIXES, time_label

#: Candidates that are shown together: a longer video comes in parts.
_TOGETHER = 40

#: The widest picture of a frame that is kept.
_WIDEST = 480

#: Seconds to wait for the picture of a frame, and between two looks at whether the
#: program goes on.
_WAIT = 60.0
_LOOK = 0.5


@dataclass(frozen=True, eq=False)
class _Piece:
    """Some candidates of a video that follow each other."""

    video: int
    places: range
    view: VideoView


class VideoMaterial(Material):
    """Candidate frames of a video or a folder of videos, in parts of at most 40.

    Without a ``prior``, local patterns are those of the picker that comes with the
    package, and nothing else is.
    """

    kind = "video"
    nouns = ("frame", "frames")

    def __init__(
        self, path: Path, prior: KeyframePicker | None, progress: Progress
    ) -> None:
        self._folder = path if path.is_dir() else path.parent
        self._paths = paths = [path] if not path.is_dir() else _videos_in(path)
        self._picker = load_default() if prior is None else prior
        self.prior = None if prior is None else prior.family_
        self._videos: list[ReadVideo] = []
        for done, path in enumerate(paths, 1):
            self._videos.append(read_candidates(path, self._picker.every_))
            progress("opening", done, len(paths))
        self._pieces, self.names = self._divided()
        self.sizes = [len(piece.places) for piece in self._pieces]
        self.feature_names = [n.replace("_", " ") for n in self._picker.feature_names_]
        blocks = list(self._picker.blocks)
        ladder = {block: list(self._picker.bandwidths) for block in blocks}
        kinds = [Kinds(16, penalty=1e-2, block=block) for block in blocks]
        self.kernels = {
            "Gaussians": MultipleKernel(bandwidths=ladder, linear=True, blocks=blocks),
            "16 kinds": Mixture(kinds),
            "linear": Mixture([Linear(block=block) for block in blocks]),
        }
        self._ground_sets = [self._picker.ground_set(p.view) for p in self._pieces]
        self._frames = [
            _Frames(path, [d.time for d in video.view.descriptions])
            for path, video in zip(paths, self._videos, strict=True)
        ]
        digest = hashlib.sha256(repr(self.names).encode())
        for ground_set in self._ground_sets:
            digest.update(ground_set.quality.tobytes())
        self.fingerprint = digest.hexdigest()

    def _divided(self) -> tuple[list[_Piece], list[str]]:
        pieces, names = [], []
        for number, video in enumerate(self._videos):
            n_candidates = len(video.view)
            n_pieces = -(-n_candidates // _TOGETHER)
            bounds = np.linspace(0, n_candidates, n_pieces + 1).round().astype(int)
            for part in range(n_pieces):
                places = range(int(bounds[part]), int(bounds[part + 1]))
                pieces.append(_Piece(number, places, _part_of(video.view, places)))
                of = f", part {part + 1} of {n_pieces}" * (n_pieces > 1)
                names.append(f"{self._paths[number].name}{of}")
        return pieces, names

    def _items(self, group: int) -> Sequence[Item]:
        piece = self._pieces[group]
        video = self._videos[piece.video]
        items = []
        for place in piece.places:
            time = video.view.descriptions[place].time
            start, end = video.spans[place]
            fields = [("stands for", f"{time_label(start)} to {time_label(end)}")]
            if len(video.view.shots):
                fields.append(("shot", str(video.view.shots[place] + 1)))
            items.append(Item(time_label(time), None, tuple(fields), has_image=True))
        return items

    def _picture(self, group: int, item: int) -> AnyArray:
        piece = self._pieces[group]
        return self._frames[piece.video].picture(piece.places[item])

    _columns_of_picks = (("video", "string"), ("time", "float64"), ("picked", "int8"))

    def _rows(self, picks: Picks) -> list[tuple[Any, ...]]:
        rows = []
        for group, chosen in picks.items():
            piece, wanted = self._pieces[group], set(chosen)
            name = self._paths[piece.video].name
            for number, place in enumerate(piece.places):
                time = self._videos[piece.video].view.descriptions[place].time
                rows.append((name, round(time, 3), int(number in wanted)))
        return rows

    def picks_text(self, name: str, picks: Picks) -> str | None:
        """Return picked times as ``variegate fit-keyframes`` takes them."""
        if name != "picks.csv":
            return None
        lines = io.StringIO()
        writer = csv.writer(lines, lineterminator="\n")
        writer.writerow(["video", "time"])
        for video, time, is_picked in self._rows(picks):
            if is_picked:
                writer.writerow([video, f"{time:.3f}"])
        return lines.getvalue()

    def learner(self, picks: Picks) -> Callable[[], KeyframePicker]:
        """Return a function that learns a picker from picks, of the parts done."""
        training = [
            TrainingVideo(
                self._pieces[group].view, [chosen.tolist()], [0], self.names[group]
            )
            for group, chosen in picks.items()
            if len(chosen)
        ]
        if not training:
            raise MaterialError("nothing was picked yet")
        return partial(_learned, training, self._picker.encoder_, self._picker.every_)

    def command_line(self, picks: Picks) -> str:
        """Return the commands that learn from the same picks.

        They learn which local patterns there are from the videos themselves, and take
        a part of a video that is not done for one without picks.
        """
        first = shlex.quote(str(self._paths[0]))
        return (
            f"variegate fit-keyframes {shlex.quote(str(self._folder))} picks.csv "
            "--omega 0.25 --omega 1 --omega 4 -o model.json\n"
            f"variegate keyframes {first} -o frames --model model.json\n"
        )


def _learned(
    training: Sequence[TrainingVideo], encoder: Any, every: float
) -> KeyframePicker:
    picker = KeyframePicker(omega=(0.25, 1.0, 4.0))
    picker.fit_prepared(training, encoder)
    picker.every_ = every
    return picker


class _Frames:
    """Pictures of the candidates of a video, read once when the first is asked for."""

    def __init__(self, path: Path, times: Sequence[float]) -> None:
        self._path, self._times = path, list(times)
        self._pictures: list[Future[AnyArray]] = [Future() for _ in times]
        self._lock = Lock()
        self._is_started = False

    def picture(self, place: int) -> AnyArray:
        """Return the picture of a candidate, as soon as it is read."""
        with self._lock:
            if not self._is_started:
                self._is_started = True
                Thread(target=self._read, daemon=True).start()
        end = monotonic() + _WAIT
        # Interpreters wait for this thread at their end: it must not wait then.
        while monotonic() < end and main_thread().is_alive():
            try:
                return self._pictures[place].result(_LOOK)
            except TimeoutError:
                continue
            except CancelledError:
                break
        raise MaterialError(f"a frame of {self._path.name} cannot be read")

    def _read(self) -> None:
        places = {time: place for place, time in enumerate(self._times)}
        try:
            for time, frame in frames_at(self._path, self._times):
                small = np.array(shrunk(frame.image, _WIDEST))
                self._pictures[places[time]].set_result(small)
        finally:
            for picture in self._pictures:
                picture.cancel()  # does nothing to those that are there


def _videos_in(folder: Path) -> list[Path]:
    found = [file for file in sorted(folder.iterdir()) if is_any(file, VIDEO_SUFFIXES)]
    if not found:
        raise MaterialError(f"there are no videos in {folder}")
    return found


def _part_of(view: VideoView, places: range) -> VideoView:
    some = slice(places.start, places.stop)
    shots = view.shots[some] if len(view.shots) else ()
    return VideoView(view.descriptions[some], view.duration, shots)

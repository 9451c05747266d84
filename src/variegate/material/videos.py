"""Videos as material: candidate frames, as ``KeyframePicker`` sees them."""

from __future__ import annotations

import csv
import io
import shlex
from collections.abc import Sequence
from concurrent.futures import CancelledError, Future
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from threading import Lock, Thread, main_thread
from time import monotonic
from typing import Any

import numpy as np

from variegate._progress import Progress
from variegate._typing import AnyArray
from variegate.kernels import Kinds, Linear, Mixture, MultipleKernel
from variegate.material.base import Item, Material, MaterialError, Picks, has_suffix
from variegate.material.identity import digest, unique_texts
from variegate.material.pictures import statistic_texts
from variegate.tuning.family import OmegaFamily
from variegate.tuning.path import PathPoint
from variegate.video import KeyframePicker
from variegate.video.candidates import ReadVideo, VideoView, read_candidates
from variegate.video.picker import load_default
from variegate.video.picks import frames_at
from variegate.video.picture import decode_picture, shrink_picture
from variegate.video.reading import VIDEO_SUFFIXES, time_label
from variegate.video.storyboard import encode_jpeg

#: Candidates that are shown together: a longer video comes in parts.
_TOGETHER = 40

#: The longer side, in pixels, of the pictures of frames that are kept.
_LONGEST = 960
_JPEG_QUALITY = 90

#: Seconds to wait for the picture of a frame, and between two looks at whether the
#: program goes on.
_WAIT = 60.0
_LOOK = 0.5


@dataclass(frozen=True, eq=False)
class _Piece:
    """A group: some candidate frames of a video that follow each other."""

    name: str
    #: The name of the file.
    video: str
    view: VideoView
    #: Start and end, in seconds, of the part of the video that a candidate stands for.
    spans: Sequence[tuple[float, float]]
    frames: _Frames


class VideoMaterial(Material):
    """Candidate frames of a video or a folder of videos.

    They come in parts of at most 40, unless videos ``are_whole``.  Without a ``prior``,
    local patterns are those of the picker that comes with the package, and nothing else
    is.
    """

    kind = "video"
    nouns = ("frame", "frames")

    def __init__(
        self,
        path: Path,
        prior: KeyframePicker | None,
        progress: Progress,
        are_whole: bool = False,
    ) -> None:
        self._folder = path if path.is_dir() else path.parent
        self._paths = paths = [path] if not path.is_dir() else _videos_in(path)
        self._picker = load_default() if prior is None else prior
        self.prior = None if prior is None else prior.family_
        self._pieces: list[_Piece] = []
        for done, path in enumerate(paths, 1):
            self._add_video(path, read_candidates(path, self._picker.every_), are_whole)
            progress("opening", done, len(paths))
        self.names = [piece.name for piece in self._pieces]
        self.sizes = [len(piece.view) for piece in self._pieces]
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

    def identities(self, group: int) -> Sequence[str]:
        """Return the time of each frame with a digest of its description."""
        frames = self._pieces[group].view.descriptions
        texts = [f"{f.time:.3f} {digest(f.picture.tobytes())}" for f in frames]
        return unique_texts(texts, texts)

    def _add_video(self, path: Path, video: ReadVideo, is_whole: bool) -> None:
        """Append a video's groups of at most 40 candidates, or one if ``is_whole``."""
        frames = _Frames(path, [frame.time for frame in video.view.descriptions])
        n_parts = 1 if is_whole else -(-len(video.view) // _TOGETHER)
        bounds = np.linspace(0, len(video.view), n_parts + 1).round().astype(int)
        for part, (first, end) in enumerate(pairwise(bounds.tolist()), 1):
            some = slice(first, end)
            shots = video.view.shots[some] if len(video.view.shots) else ()
            view = VideoView(video.view.descriptions[some], video.view.duration, shots)
            name = path.name + (f", part {part} of {n_parts}" if n_parts > 1 else "")
            piece = _Piece(name, path.name, view, video.spans[some], frames)
            self._pieces.append(piece)

    def _items(self, group: int) -> Sequence[Item]:
        """Return the frames of a group, with their times as titles."""
        view = self._pieces[group].view
        items = []
        for number, (start, end) in enumerate(self._pieces[group].spans):
            fields = [("stands for", f"{time_label(start)} to {time_label(end)}")]
            if len(view.shots):
                fields.append(("shot", str(view.shots[number] + 1)))
            title = time_label(view.descriptions[number].time)
            items.append(Item(title, None, tuple(fields), has_image=True))
        return items

    def _picture(self, group: int, item: int) -> AnyArray:
        """Return the RGB picture of a frame; wait until it is read from the video."""
        piece = self._pieces[group]
        return piece.frames.picture(piece.view.descriptions[item].time)

    def values(self, group: int, item: int) -> Sequence[str]:
        """Return the value of each quality feature of a frame as text."""
        return statistic_texts(self._pieces[group].view.descriptions[item].picture)

    _place_columns = (("group", "string"), ("file", "string"), ("time", "float64"))

    def _places(self, group: int) -> Sequence[tuple[str, str, float]]:
        """Return group, file and time in seconds of every frame of a group."""
        piece = self._pieces[group]
        times = [round(frame.time, 3) for frame in piece.view.descriptions]
        return [(piece.name, piece.video, time) for time in times]

    def picks_text(self, name: str, picks: Picks) -> str | None:
        """Return picked times as CSV for "picks.csv", None for any other ``name``."""
        if name != "picks.csv":
            return None
        lines = io.StringIO()
        rows: list[tuple[Any, ...]] = [("video", "time")]
        for group, chosen in picks.items():
            places = self._places(group)
            rows += [(places[n][1], f"{places[n][2]:.3f}") for n in chosen]
        csv.writer(lines, lineterminator="\n").writerows(rows)
        return lines.getvalue()

    def model(
        self, family: OmegaFamily, picks: Picks, path: Sequence[PathPoint]
    ) -> KeyframePicker:
        """Return a picker with the family, and counts of ``picks`` in its record.

        The oracle's F there is 1, as picks are candidates.  ``path`` is not used.
        """
        first, own = family.models[0], self._picker
        picker = KeyframePicker(
            lam=first.lam, omega=family.omegas, blocks=own.blocks, l2=first.l2
        )
        picker.family_, picker.encoder_ = family, own.encoder_
        picker.every_ = own.every_
        picker.training_ = {
            "n_videos": len({self._pieces[group].video for group in picks}),
            "n_candidates": sum(self.sizes[group] for group in picks),
            "n_users": 1,
            "n_lost": 0,
            "oracle_f": 1.0,
        }
        return picker

    def fit_command(self, picks: Picks) -> str:
        """Return the shell command that learns a picker from ``picks.csv``.

        For that command, parts of a video that are not done yet have no picks.
        """
        return (
            f"variegate fit-keyframes {shlex.quote(str(self._folder))} picks.csv "
            "--omega 0.25 --omega 1 --omega 4 -o keyframes.json"
        )


class _Frames:
    """Pictures of the candidates of a video, read once when the first is asked for."""

    def __init__(self, path: Path, times: Sequence[float]) -> None:
        self._path = path
        self._pictures: dict[float, Future[bytes]] = {t: Future() for t in times}
        self._lock = Lock()
        self._is_started = False

    def picture(self, time: float) -> AnyArray:
        """Return the picture of the candidate at a time in seconds, once it is read.

        The first call starts a thread that reads all pictures.  MaterialError if this
        one cannot be read, or not within ``_WAIT`` seconds.
        """
        with self._lock:
            if not self._is_started:
                self._is_started = True
                Thread(target=self._read_pictures).start()
        end = monotonic() + _WAIT
        # Interpreters wait for this thread at their end: it must not wait then.
        while monotonic() < end and main_thread().is_alive():
            try:
                picture = decode_picture(self._pictures[time].result(_LOOK))
                assert picture is not None
                return picture
            except TimeoutError:
                continue
            except CancelledError:
                break
        raise MaterialError(f"a frame of {self._path.name} cannot be read")

    def _read_pictures(self) -> None:
        """Set all pictures, as JPEG; cancel those that cannot be read."""

        def check(*_: object) -> None:
            """Raise CancelledError, as progress callback, if the program ends."""
            # A reader that the end of the program cuts off takes it down.
            if not main_thread().is_alive():
                raise CancelledError

        try:
            for time, frame in frames_at(self._path, self._pictures, check):
                small = shrink_picture(frame.image, _LONGEST)
                self._pictures[time].set_result(encode_jpeg(small, _JPEG_QUALITY))
        except CancelledError:
            pass
        finally:
            for picture in self._pictures.values():
                picture.cancel()  # does nothing to those that are there


def _videos_in(folder: Path) -> list[Path]:
    """Return the paths of the videos in a folder, sorted; MaterialError if none."""
    found = [
        file for file in sorted(folder.iterdir()) if has_suffix(file, VIDEO_SUFFIXES)
    ]
    if not found:
        raise MaterialError(f"there are no videos in {folder}")
    return found

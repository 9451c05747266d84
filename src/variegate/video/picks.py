"""Read the frames that people picked: tables of times, and folders of pictures."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from functools import cache, partial
from os import PathLike
from pathlib import Path
from typing import Any, NamedTuple

from variegate._progress import Progress
from variegate.files.folders import read_text
from variegate.report.wording import count
from variegate.video.picture import decode_picture
from variegate.video.picture_size import MOST_PIXELS
from variegate.video.reading import (
    EVERY_FRAME,
    VIDEO_SUFFIXES,
    Frame,
    Picture,
    read_frames,
    with_progress,
)

_PICTURES = (".jpg", ".jpeg", ".png")  # suffixes of the pictures read from a folder
_STORYBOARD = "storyboard.png"  # the sheet that ``variegate keyframes`` writes
_ROUNDING = 0.001  # seconds by which a frame may be earlier: tables round times

# Seconds; before them minutes, if the seconds have two digits below 60; and before
# those hours, if the minutes have.
_TIME = re.compile(
    r"(?P<sign>-\s*)?(?:(?:(?P<hours>[0-9]+):(?=[0-5][0-9]:))?"
    r"(?P<minutes>[0-9]+):(?=[0-5][0-9](?:\.|$)))?"
    r"(?P<seconds>[0-9]+(?:\.[0-9]*)?|\.[0-9]+)"
)


@dataclass(frozen=True)
class PickedVideo:
    """A video, and for each person the times of the frames they chose, in seconds."""

    path: Path
    users: Sequence[Sequence[float]]


def parse_time(text: str) -> float:
    """Return seconds from "12.5", "m:ss", "m:ss.s", "h:mm:ss" or "h:mm:ss.s".

    Examples
    --------
    >>> parse_time("1:02.5"), parse_time("1:00:00"), parse_time("90")
    (62.5, 3600.0, 90.0)
    """
    text = text.strip()
    match = _TIME.fullmatch(text)
    if match is None:
        raise ValueError(
            f"{text!r:.40} is not a time: write seconds (12.5), m:ss or h:mm:ss"
        )
    sign, hours, minutes, seconds = match.groups()
    if sign is not None:
        raise ValueError(f"the time {text} is negative: times count from the start")
    return 3600.0 * int(hours or 0) + 60.0 * int(minutes or 0) + float(seconds)


class _Row(NamedTuple):
    """A pick in a table, "" for missing columns; ``where`` names its file and line."""

    where: str
    time: float
    video: str = ""
    user: str = ""


def _read_rows(table: Path, required: Sequence[str]) -> list[_Row]:
    """Return the rows, at least one, of a CSV file with the ``required`` columns."""
    text = read_text(table, remedy="save the table as CSV in UTF-8")
    reader = csv.reader(io.StringIO(text, newline=""), skipinitialspace=True)
    lines = []
    try:
        for fields in reader:
            values = [field.strip() for field in fields]
            if any(values):
                lines.append((f"{table}, line {reader.line_num}", values))
    except csv.Error as error:
        raise ValueError(
            f"{table}, line {reader.line_num} is not CSV: {error}"
        ) from error
    if not lines:
        raise ValueError(
            f"{table} is empty: its first line must name the columns, "
            f"{' and '.join(required)}"
        )
    (where, header), *rest = lines
    _check_header(header, required, where)
    if not rest:
        raise ValueError(f"there are no rows in {table} after its first line")
    return [_parse_row(header, values, where) for where, values in rest]


def _parse_row(header: Sequence[str], fields: Sequence[str], where: str) -> _Row:
    """Return a row from a field for each name in ``header``; ``where`` is its line."""
    if len(fields) != len(header):
        raise ValueError(
            f"{where} has {count(len(fields), 'value')}, but the first line names "
            f"{len(header)} columns; a comma within a value needs quotes around it"
        )
    values = dict(zip(header, fields, strict=True))
    try:
        time = parse_time(values["time"])
    except ValueError as error:
        raise ValueError(f"{where}: {error}") from None
    return _Row(where, time, values.get("video", ""), values.get("user", ""))


def _check_header(names: list[str], required: Sequence[str], where: str) -> None:
    """Raise ValueError if a column is missing, or video, time or user there twice."""
    for column in required:
        if column in names:
            continue
        if len(names) == 1 and re.search(r"[;\t|]", names[0]):
            raise ValueError(f"{where}: the columns must be separated by commas")
        lower = {name.casefold(): name for name in names if name}
        near = [repr(lower[name]) for name in get_close_matches(column, lower, n=2)]
        hint = f"the columns are {', '.join(map(repr, names))}"
        if near:
            hint = f"did you mean {' or '.join(near)}?"
        raise ValueError(f"{where}: there is no column {column!r}; {hint}")
    for column in ("video", "time", "user"):
        if names.count(column) > 1:
            raise ValueError(f"{where}: there are two columns {column!r}")


def read_picks(
    table: str | PathLike[str], folder: str | PathLike[str]
) -> list[PickedVideo]:
    """Read the times that people picked in the videos of a folder.

    Parameters
    ----------
    table : path
        CSV in UTF-8 whose first line names the columns, in any order: ``video``, the
        name of a file in the folder, without its suffix if that is unambiguous;
        ``time``, as in :func:`~variegate.video.picks.parse_time`; and optionally
        ``user``.  Other columns are ignored, so that a ``keyframes.csv`` can be
        corrected and learned from.
    folder : path

    Returns
    -------
    list of PickedVideo
        Videos and users in the order of the table, times sorted and each once.
    """
    table, folder = Path(table), Path(folder)
    if not folder.is_dir():
        raise NotADirectoryError(
            f"{folder} is a file, not a folder of videos"
            if folder.exists()
            else f"there is no folder {folder}"
        )
    find = cache(partial(_find_video, folder))
    chosen: dict[Path, list[_Row]] = {}
    for row in _read_rows(table, ("video", "time")):
        try:
            path = find(row.video)
        except ValueError as error:
            raise ValueError(f"{row.where}: {error}") from None
        chosen.setdefault(path, []).append(row)
    return [
        PickedVideo(path, tuple(_times_by_user(rows).values()))
        for path, rows in chosen.items()
    ]


def _times_by_user(rows: Iterable[_Row]) -> dict[str, tuple[float, ...]]:
    """Return by user the sorted times in seconds, each once."""
    chosen: dict[str, set[float]] = {}
    for row in rows:
        chosen.setdefault(row.user, set()).add(row.time)
    return {user: tuple(sorted(times)) for user, times in chosen.items()}


def _find_video(folder: Path, name: str) -> Path:
    """Return the file of a name in a folder, perhaps without suffix; or raise."""
    if not name:
        raise ValueError("there is no name of a video")
    if name in (".", "..") or re.search(r"[/\\]", name):
        raise ValueError(f"{name!r} is a path; give the name of a file in {folder}")
    if (folder / name).is_file():
        return folder / name
    files = sorted(path for path in folder.iterdir() if path.is_file())
    found = [path for path in files if path.stem == name]
    videos = [path for path in found if path.suffix.lower() in VIDEO_SUFFIXES]
    found = videos or found
    if len(found) > 1:
        names = " and ".join(path.name for path in found)
        raise ValueError(f"{name!r} may be {names}; write the name with its suffix")
    if found:
        return found[0]
    near = get_close_matches(name, [path.name for path in files], n=1)
    hint = f"; did you mean {near[0]!r}?" if near else ""
    raise ValueError(f"there is no video {name!r} in {folder}{hint}")


def read_choices(
    table: str | PathLike[str], video: str | PathLike[str] | None = None
) -> dict[str, tuple[float, ...]]:
    """Return the sorted times at which users chose frames of one video.

    The table is as for :func:`read_picks`, but only the column ``time`` is needed.  Of
    a column ``video`` only the rows of the given one are read; without a column
    ``user``, the user is "".
    """
    rows = _read_rows(Path(table), ("time",))
    if video is not None:
        names = {"", Path(video).name, Path(video).stem}
        rows = [row for row in rows if row.video in names]
        if not rows:
            raise ValueError(f"{table}: no row has the video {Path(video).name!r}")
    return _times_by_user(rows)


def frames_at(
    video: str | PathLike[str], times: Iterable[float], progress: Progress | None = None
) -> Iterator[tuple[float, Frame]]:
    """Yield, for each time in order, the first frame at or after it.

    The video is read once, up to the last of the times.  Times after its last frame
    are left out.  A frame a millisecond earlier counts, as tables round.  ``progress``
    is called with "reading", the time of each frame that is read, and the duration.
    """
    waiting = sorted(set(times), reverse=True)
    if not waiting:
        return
    for frame in with_progress(read_frames(video, EVERY_FRAME), video, progress):
        while waiting and frame.time + _ROUNDING >= waiting[-1]:
            yield waiting.pop(), frame
        if not waiting:
            return


def read_pictures(folder: str | PathLike[str]) -> Iterator[tuple[Path, Picture]]:
    """Yield the JPEG and PNG files of a folder with their pictures.

    In the natural order of their names: 2 is before 10.  Hidden files and a
    ``storyboard.png`` are left out.  Pictures have red, green and blue, 0 to 255.
    """
    folder = Path(folder)
    paths = [
        path
        for path in sorted(folder.iterdir(), key=lambda path: natural_key(path.name))
        if path.suffix.lower() in _PICTURES
        and path.is_file()
        and not path.name.startswith(".")
        and path.name != _STORYBOARD
    ]
    if not paths:
        raise ValueError(
            f"there are no pictures in the folder {folder}: "
            f"they must end in {', '.join(_PICTURES)}"
        )
    for path in paths:
        image = decode_picture(path.read_bytes())
        if image is None:
            raise ValueError(
                f"{path} cannot be read as a picture: it is damaged, or has more than "
                f"{MOST_PIXELS:,} pixels"
            )
        yield path, image


def natural_key(name: str) -> Any:
    """Return a sort key by which digits in names are compared as whole numbers."""
    parts = re.split(r"([0-9]+)", name.casefold())  # every other is a number
    key = [int(part) if place % 2 else part for place, part in enumerate(parts)]
    return key, name

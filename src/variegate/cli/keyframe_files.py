"""Names and folders of the files that ``variegate keyframes`` writes."""

from __future__ import annotations

import csv
import io
import re
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from itertools import count, product
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

import click

from variegate.cli import output
from variegate.files.folders import files_below
from variegate.video.reading import VIDEO_SUFFIXES

if TYPE_CHECKING:
    from variegate.video.summary import VideoSummary

#: Files beside the pictures.  The table is written last: if it is there, all are.
SHEET, PAGE, TABLE = "storyboard.png", "keyframes.html", "keyframes.csv"

#: Bytes of a file, or a function that returns them when the file is written.
Content: TypeAlias = bytes | Callable[[], bytes]

_COLUMNS = ("video", "frame", "time", "probability", "file")
_PICTURES = (".jpg", ".jpeg", ".png")

#: A template has no other fields than these, with short forms, and is not a path.
_TEMPLATE = re.compile(
    r"(?!.*\.\.)(?:[^{}/\\]|\{(?:name|n|frame|time)(?::[^{}]{0,6})?\})*\.(?:jpe?g|png)",
    re.I,
)

_NAMED = 3  # files left out that a note names
_LONGEST_NAME = 100  # bytes of a video's name in the names of files and folders
_LONGEST_FILE = 200  # bytes of a file's name; of 255, writing takes some


@dataclass(frozen=True)
class Job:
    """A video, its name in the names of pictures, and the folder for its results."""

    video: Path
    name: str
    folder: Path


def make_jobs(videos: Sequence[Path], out: Path) -> list[Job]:
    """Return a job for each video; raise UsageError if a file is missing.

    A folder stands for the videos in it and in its folders.  Results of one video go to
    ``out`` itself, of several to a folder each in it.
    """
    distinct: dict[Path, Path] = {}
    for path in videos:
        if not path.exists():
            raise click.UsageError(f"there is no file {path}; check the path")
        for video in _list_videos(path) if path.is_dir() else [path]:
            distinct.setdefault(video.resolve(), video)
    if len(distinct) == 1:
        (video,) = distinct.values()
        return [Job(video, _safe_file_name(video), out)]
    jobs = []
    taken: set[str] = set()
    for video in distinct.values():
        name = folder = _safe_file_name(video)
        numbers = count(2)
        # Some file systems take capital and small letters for the same.
        while folder.casefold() in taken:
            folder = f"{name}-{next(numbers)}"
        taken.add(folder.casefold())
        jobs.append(Job(video, name, out / folder))
    return jobs


def _list_videos(folder: Path) -> list[Path]:
    """Return the videos in a folder and below; print a note on other files."""
    files = files_below(folder)
    videos = [file for file in files if file.suffix.lower() in VIDEO_SUFFIXES]
    if not videos:
        raise click.UsageError(
            f"there are no videos in the folder {folder}: files must end in "
            f"{', '.join(VIDEO_SUFFIXES)}"
        )
    if len(videos) < len(files):
        others = [file.name for file in files if file not in videos]
        names = output.abbreviate_names(others, _NAMED)
        output.print_note(
            f"{folder}: left out files that are not videos by their names: {names}"
        )
    return videos


def _safe_file_name(video: Path) -> str:
    """Return a video's name without suffix, printable and of at most 100 bytes."""
    name = "".join(c if c.isprintable() and c != "\\" else "_" for c in video.stem)
    name = name.encode()[:_LONGEST_NAME].decode(errors="ignore")
    return name.strip(". ") or "video"


def refuse_results(folders: Sequence[Path]) -> None:
    """Raise UsageError if a folder has results of an earlier run."""
    for folder, name in product(folders, (TABLE, SHEET, PAGE)):
        if (folder / name).exists():
            raise click.UsageError(
                f"{folder} has earlier results ({name}): name another folder, or "
                "replace them with --force"
            )


@contextmanager
def create_folders(folders: Sequence[Path]) -> Iterator[None]:
    """Make folders to write into; at the end, remove new ones that stayed empty."""
    paths = {path for folder in folders for path in (folder, *folder.parents)}
    missing = [path for path in paths if not path.exists()]
    try:
        for folder in folders:
            _make_folder(folder)
        yield
    finally:
        for path in sorted(missing, reverse=True):
            with suppress(OSError):
                path.rmdir()


def _make_folder(folder: Path) -> None:
    """Make a folder if it is missing; raise UsageError if it cannot be written into."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder):
            pass
    except OSError as error:
        reason = error.strerror
        for path in (folder, *folder.parents):
            if path.exists() and not path.is_dir():
                reason = f"{path} is a file"
        raise click.UsageError(f"cannot write into {folder}: {reason}") from None


def check_template(
    context: click.Context, parameter: click.Parameter, value: str
) -> str:
    """Return a template of picture names, or raise BadParameter: a click callback."""
    if _TEMPLATE.fullmatch(value) is None:
        raise click.BadParameter(
            f"{value!r} is not a name for pictures: write a file name that ends in "
            ".jpg or .png, with the fields {name}, {n}, {frame} or {time}, and a form "
            "as in {n:03d} if you like"
        )
    try:
        sample = value.format(name="clip", n=1, frame=0, time=0.0)
    except ValueError as error:
        raise click.BadParameter(f"{value!r}: {error}") from error
    if not sample.isprintable() or len(sample.encode()) > _LONGEST_FILE:
        raise click.BadParameter(f"{value!r} gives names that a file cannot have")
    return value


def check_template_distinguishes(template: str, most: int | None) -> None:
    """Raise UsageError if a template names all pictures alike, unless ``most`` is 1."""
    if most != 1 and not re.search(r"\{(?:n|frame|time)\b", template):
        raise click.UsageError(
            f"--template {template!r} gives all pictures one name; add {{n}}, "
            "{frame} or {time}"
        )


def picture_names(template: str, job: Job, summary: VideoSummary) -> list[str]:
    """Return a file name for each key frame, from the template.

    Raise UsageError if two are equal (ignoring case), if one is the name of another
    output file, or if one is too long.
    """
    names = [
        template.format(name=job.name, n=n, frame=keyframe.number, time=keyframe.time)
        for n, keyframe in enumerate(summary.keyframes, 1)
    ]
    taken = {name.casefold() for name in (SHEET, PAGE, TABLE)}
    for name in names:
        if name.casefold() in taken:
            raise click.UsageError(
                f"--template {template!r} gives the name {name} twice; add "
                "{n} or {frame}"
            )
        if len(name.encode()) > _LONGEST_FILE:
            raise click.UsageError(
                f"--template {template!r} gives a name that is too long for "
                f"a file: {name:.40}..."
            )
        taken.add(name.casefold())
    return names


def keyframe_table(video: Path, rows: Sequence[Mapping[str, Any]]) -> bytes:
    """Return the table of key frames as CSV; ``rows`` lack only the video's name."""
    text = io.StringIO()
    writer = csv.DictWriter(text, _COLUMNS, lineterminator="\n")
    writer.writeheader()
    writer.writerows({"video": video.name, **row} for row in rows)
    # A name need not be text that UTF-8 can hold.
    return text.getvalue().encode(errors="replace")


def write_results(
    folder: Path, contents: Mapping[str, Content], force: bool, sources: Sequence[Path]
) -> None:
    """Write files by their names in order, all or none, and none over ``sources``.

    With ``force``, the results of an earlier run are removed before.
    """
    from variegate.files.atomic import write_atomic

    for name in contents:
        if not force and (folder / name).exists():
            raise click.ClickException(
                f"{folder / name} is already there: name another folder or --template, "
                "or replace it with --force"
            )
        output.refuse_to_replace(folder / name, "-o", sources, force)
    if force:
        _remove_results(folder, sources)
    written: list[Path] = []
    try:
        for name, content in contents.items():
            data = content() if callable(content) else content
            write_atomic(folder / name, data)
            written.append(folder / name)
    except BaseException:
        for path in written:
            path.unlink(missing_ok=True)
        raise


def _remove_results(folder: Path, sources: Sequence[Path]) -> None:
    """Remove the files of an earlier run: pictures that its table lists, then the rest.

    The table goes last: it lists the files to remove.  ``sources`` are kept.
    """
    listed: list[str] = []
    with suppress(OSError, csv.Error):
        text = (folder / TABLE).read_text(encoding="utf-8", errors="replace")
        rows = csv.DictReader(io.StringIO(text, newline=""))
        listed = [row.get("file") or "" for row in rows]
    pictures = [
        name
        for name in listed
        if name.lower().endswith(_PICTURES) and not re.search(r"[/\\\0:]", name)
    ]
    for name in (*pictures, SHEET, PAGE, TABLE):
        path = folder / name
        if path.is_file() and not any(path.samefile(source) for source in sources):
            path.unlink()

"""``variegate keyframes``, ``evaluate-keyframes`` and ``fit-keyframes``."""

from __future__ import annotations

import csv
import io
import json
import math
import os
import re
import shutil
import string
import sys
import tempfile
import time
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import click

from variegate.cli.errors import Interrupted
from variegate.cli.progress import _PATIENCE, progress_bar
from variegate.cli.summarize import _MODEL, _OUTPUT, _output, _refuse_to_replace

if TYPE_CHECKING:
    from variegate._typing import FloatArray
    from variegate.video.evaluation import KeyframeScore
    from variegate.video.matching import Matching
    from variegate.video.picker import KeyframePicker
    from variegate.video.summary import VideoSummary

#: What lies beside the pictures.  The table is written last: where it is, all is.
_SHEET, _PAGE, _TABLE = "storyboard.png", "keyframes.html", "keyframes.csv"

_COLUMNS = ("video", "frame", "time", "probability", "file")
_PICTURES = (".jpg", ".jpeg", ".png")
_JPEG_QUALITY = 92

#: What a template can say, with values to try it.
_FIELDS: Mapping[str, Any] = {"name": "clip", "n": 1, "frame": 0, "time": 0.0}

#: Bytes of a video's name that go into the names of files and folders.
_LONGEST_NAME = 100

#: Bytes of a file's name; file systems take 255, of which some are for writing it.
_LONGEST_FILE = 200

_PATH = click.Path(path_type=Path)

#: Called with the number and the time of each frame.
_Position = Callable[[int, float], None]


class _Number(click.FloatRange):
    """A range of numbers, without "nan" and "inf"."""

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> Any:
        number = super().convert(value, param, ctx)
        if not math.isfinite(number):
            self.fail(f"{value!r} is not a finite number.", param, ctx)
        return number


_EVERY = click.option(
    "--every",
    type=_Number(min=0.001),
    default=0.5,
    show_default=True,
    metavar="SECONDS",
    help="Time between the frames that are looked at.",
)


def _template(context: click.Context, parameter: click.Parameter, value: str) -> str:
    """Refuse what cannot name a picture."""
    known = ", ".join(f"{{{name}}}" for name in _FIELDS)
    try:
        for _, field, form, _ in string.Formatter().parse(value):
            if field is not None and field not in _FIELDS:
                raise ValueError(f"there is no {{{field}}}, only {known}")
            if re.search(r"\{|[0-9]{4}", form or ""):
                raise ValueError(f"{form!r} is not a form for {{{field}}}")
        sample = value.format(**_FIELDS)
    except ValueError as error:
        raise click.BadParameter(f"{value!r}: {error}") from None
    if re.search(r"[/\\]|\.\.", value):
        raise click.BadParameter(
            f"{value!r} is a path; all pictures lie in the folder that -o names"
        )
    if not value.lower().endswith(_PICTURES):
        raise click.BadParameter(f"{value!r} must end in .jpg or .png")
    if not sample.isprintable() or len(sample.encode()) > _LONGEST_FILE:
        raise click.BadParameter(f"{value!r} gives names that a file cannot have")
    return value


@click.command(
    epilog="\b\nvariegate keyframes holiday.mp4 -o frames\n"
    "variegate keyframes *.mp4 -o frames --max 10 --omega 0.5"
)
@click.argument("videos", nargs=-1, required=True, type=_PATH, metavar="VIDEO...")
@click.option(
    "-o",
    "--out",
    type=_PATH,
    required=True,
    metavar="DIR",
    help="Folder for the results; with several videos, each has a folder in it.",
)
@click.option(
    "--omega",
    type=float,
    help="Smaller is precise and few, larger is complete and many, within the range "
    "the model was learned for.  [default: the model's]",
)
@click.option(
    "--max",
    "max_frames",
    type=click.IntRange(min=1),
    show_default="the model decides",
    metavar="N",
    help="The most frames to choose.",
)
@_EVERY
@click.option("--model", type=_MODEL, help="As fit-keyframes writes it.")
@click.option(
    "--template",
    callback=_template,
    default="{name}-{n:03d}-{time:08.2f}s.jpg",
    show_default=True,
    help="Names of the pictures, .jpg or .png: {name} of the video, {n} counts from "
    "1, {frame} is its number in the video, {time} in seconds.",
)
@click.option("--json", "as_json", is_flag=True, help="JSON, with every candidate.")
@click.option("--force", is_flag=True, help="Replace earlier results in the folder.")
@click.option(
    "--storyboard/--no-storyboard",
    default=True,
    help=f"One picture of all key frames, {_SHEET}.  [default: on]",
)
@click.option(
    "--html/--no-html",
    default=True,
    help=f"A page that shows where they come from, {_PAGE}.  [default: on]",
)
@click.pass_context
def keyframes(
    context: click.Context,
    videos: tuple[Path, ...],
    out: Path,
    omega: float | None,
    max_frames: int | None,
    every: float,
    model: Path | None,
    template: str,
    as_json: bool,
    force: bool,
    storyboard: bool,
    html: bool,
) -> None:
    """Choose the frames that tell what is in a video.

    Writes a picture of each, keyframes.csv with their times, a storyboard and a page,
    and prints a line for each: file, time, and the probability that the model
    includes the frame.
    """
    _need_opencv()
    _check_distinct(template, max_frames)
    jobs = _jobs(videos, out)
    for job in jobs:
        if not force:
            _refuse_results(job.folder)
    with _folders([job.folder for job in jobs]):
        picker = _load(model)
        _check_omega(picker, omega)
        run = _Run(jobs, template, storyboard, html, force, as_json)
        reports = run.all_videos(
            lambda video, progress: picker.pick(
                video,
                omega=omega,
                max_frames=max_frames,
                every=every,
                progress=progress,
            )
        )
    if as_json and reports:
        click.echo(json.dumps(reports, indent=1, ensure_ascii=False))
    if len(reports) < len(jobs):
        context.exit(2)


def _need_opencv() -> None:
    from variegate.video.reading import require_cv2

    # FFmpeg would write to standard error on its own what is said here in words.
    os.environ.setdefault("OPENCV_FFMPEG_LOGLEVEL", "-8")
    require_cv2()


def _load(model: Path | None) -> KeyframePicker:
    from variegate.video import KeyframePicker, load_default

    return load_default() if model is None else KeyframePicker.load(model)


def _check_omega(picker: KeyframePicker, omega: float | None) -> None:
    """Say once what every video would fail by."""
    from variegate.omega import resolve_omega

    resolve_omega(picker.omegas_, omega, picker.default_omega)


def _check_distinct(template: str, max_frames: int | None) -> None:
    fields = {field for _, field, _, _ in string.Formatter().parse(template)}
    if max_frames != 1 and not fields & {"n", "frame", "time"}:
        raise click.UsageError(
            f"--template {template!r} gives all pictures one name; add {{n}}, "
            "{frame} or {time}"
        )


# Where things go ------------------------------------------------------------------


@dataclass(frozen=True)
class _Job:
    """A video, the name it has in the names of pictures, and its folder."""

    video: Path
    name: str
    folder: Path


def _jobs(videos: Sequence[Path], out: Path) -> list[_Job]:
    """Return what is to be done, or refuse all if a file is missing."""
    distinct: dict[Path, Path] = {}
    for video in videos:
        if video.is_dir():
            raise click.UsageError(f"{video} is a folder; name the videos in it")
        if not video.exists():
            raise click.UsageError(f"there is no file {video}; check the path")
        distinct.setdefault(video.resolve(), video)
    if len(distinct) == 1:
        return [_Job(videos[0], _plain_name(videos[0]), out)]
    jobs = []
    taken: set[str] = set()
    for video in distinct.values():
        name = folder = _plain_name(video)
        count = 1
        # Some file systems take capital and small letters for the same.
        while folder.casefold() in taken:
            count += 1
            folder = f"{name}-{count}"
        taken.add(folder.casefold())
        jobs.append(_Job(video, name, out / folder))
    return jobs


def _plain_name(video: Path) -> str:
    """Return the name of a video, without what no name of a file should have."""
    name = "".join(c if c.isprintable() and c != "\\" else "_" for c in video.stem)
    name = name.encode()[:_LONGEST_NAME].decode(errors="ignore")
    return name.strip(". ") or "video"


def _refuse_results(folder: Path) -> None:
    for name in (_TABLE, _SHEET, _PAGE):
        if (folder / name).exists():
            raise click.UsageError(
                f"{folder} has earlier results ({name}): name another folder, or "
                "replace them with --force"
            )


@contextmanager
def _folders(folders: Sequence[Path]) -> Iterator[None]:
    """Make folders to write into, and remove those that stay empty."""
    made: list[Path] = []
    try:
        for folder in folders:
            _make(folder, made)
        yield
    finally:
        for folder in reversed(made):
            with suppress(OSError):
                folder.rmdir()


def _make(folder: Path, made: list[Path]) -> None:
    missing = [path for path in (folder, *folder.parents) if not path.exists()]
    try:
        for path in reversed(missing):
            path.mkdir()
            made.append(path)
        with tempfile.TemporaryFile(dir=folder):
            pass
    except OSError as error:
        reason = error.strerror
        for path in (folder, *folder.parents):
            if path.exists() and not path.is_dir():
                reason = f"{path} is a file"
        raise click.UsageError(f"cannot write into {folder}: {reason}") from None


# Doing it -------------------------------------------------------------------------


@dataclass(frozen=True)
class _Run:
    """Videos one after the other, and what is written for each."""

    jobs: Sequence[_Job]
    template: str
    storyboard: bool
    html: bool
    force: bool
    as_json: bool

    def all_videos(
        self, pick: Callable[[Path, _Position | None], VideoSummary]
    ) -> list[dict[str, Any]]:
        """Return what was done, and report on standard error what failed."""
        reports: list[dict[str, Any]] = []
        # What is no video is said at once, not after hours with the others.
        videos = [job for job in self.jobs if _is_video(job.video)]
        for count, job in enumerate(videos, 1):
            label = job.video.name
            if len(videos) > 1:
                label = f"{count}/{len(videos)} {label}"
            try:
                with _notes(), _position(label, job.video) as progress:
                    summary = pick(job.video, progress)
                reports.append(self.write(job, summary))
            except (OSError, ValueError, click.ClickException) as error:
                _report_failure(job.video, error)
                continue
            except KeyboardInterrupt:
                if len(self.jobs) == 1:
                    raise
                raise Interrupted(
                    f"{len(reports)} of {len(self.jobs)} videos are done; name only "
                    "the others to go on"
                ) from None
            self.say(job, reports[-1])
        return reports

    def write(self, job: _Job, summary: VideoSummary) -> dict[str, Any]:
        """Write all files of a video, and return what they are."""
        report = summary.as_dict()
        for row, name in zip(
            report["keyframes"], self.names(job, summary), strict=True
        ):
            row["file"] = name
        contents = self.contents(job, summary, report)
        _write_results(job.folder, contents, self.force, self.jobs)
        report["folder"] = str(job.folder)
        report["table"] = _TABLE
        report["storyboard"] = _SHEET if _SHEET in contents else None
        report["html"] = _PAGE if _PAGE in contents else None
        return report

    def say(self, job: _Job, report: Mapping[str, Any]) -> None:
        """Print a line for each key frame, and say what was written."""
        from variegate.video.storyboard import time_label

        rows = report["keyframes"]
        if not self.as_json:
            for row in rows:
                file, when = job.folder / row["file"], time_label(row["time"])
                click.echo(f"{file}\t{when}\t{row['probability']:.3f}")
        if not rows:
            _note(f"{job.video}: the model chose no frame; a larger --omega gives more")
        written = [f"{len(rows)} picture{'s' * (len(rows) != 1)}"]
        written += [report[kind] for kind in ("table", "storyboard", "html")]
        names = ", ".join(filter(None, written))
        click.echo(f"written: {job.folder}: {names}", err=True)

    def names(self, job: _Job, summary: VideoSummary) -> list[str]:
        """Return the names of the pictures, all different."""
        names = [
            self.template.format(
                name=job.name, n=n, frame=keyframe.number, time=keyframe.time
            )
            for n, keyframe in enumerate(summary.keyframes, 1)
        ]
        taken = {name.casefold() for name in (_SHEET, _PAGE, _TABLE)}
        for name in names:
            if name.casefold() in taken:
                raise click.UsageError(
                    f"--template {self.template!r} gives the name {name} twice; add "
                    "{n} or {frame}"
                )
            if len(name.encode()) > _LONGEST_FILE:
                raise click.UsageError(
                    f"--template {self.template!r} gives a name that is too long for "
                    f"a file: {name:.40}..."
                )
            taken.add(name.casefold())
        return names

    def contents(
        self, job: _Job, summary: VideoSummary, report: Mapping[str, Any]
    ) -> dict[str, bytes]:
        """Return the files to write by name, the table last."""
        from variegate.video.report import html_report
        from variegate.video.storyboard import encode_jpeg, encode_png, storyboard

        contents: dict[str, bytes] = {}
        for row, keyframe in zip(report["keyframes"], summary.keyframes, strict=True):
            if row["file"].lower().endswith(".png"):
                contents[row["file"]] = encode_png(keyframe.image)
            else:
                contents[row["file"]] = encode_jpeg(keyframe.image, _JPEG_QUALITY)
        if self.storyboard and summary.keyframes:
            contents[_SHEET] = encode_png(storyboard(summary.keyframes))
        if self.html:
            page = html_report(summary, f"Key frames of {job.video.name}")
            contents[_PAGE] = page.encode()
        contents[_TABLE] = _table_of(job.video, report["keyframes"])
        return contents


def _table_of(video: Path, rows: Sequence[Mapping[str, Any]]) -> bytes:
    text = io.StringIO()
    writer = csv.DictWriter(text, _COLUMNS, lineterminator="\n")
    writer.writeheader()
    for row in rows:
        writer.writerow({"video": video.name, **row})
    # A name need not be text that UTF-8 can hold.
    return text.getvalue().encode(errors="replace")


def _write_results(
    folder: Path, contents: Mapping[str, bytes], force: bool, jobs: Sequence[_Job]
) -> None:
    """Write all files in order, or none."""
    from variegate._files import write_atomic

    sources = [job.video for job in jobs]
    for name in contents:
        if not force and (folder / name).exists():
            raise click.ClickException(
                f"{folder / name} is already there: name another folder or --template, "
                "or replace it with --force"
            )
        _refuse_to_replace(folder / name, "-o", sources)
    if force:
        _remove_results(folder, sources)
    written: list[Path] = []
    try:
        for name, content in contents.items():
            write_atomic(folder / name, content)
            written.append(folder / name)
    except BaseException:
        for path in written:
            path.unlink(missing_ok=True)
        raise


def _remove_results(folder: Path, sources: Sequence[Path]) -> None:
    """Remove what an earlier run wrote, so that no old picture stays among the new.

    The table goes last: it says what there is to remove.
    """
    for name in (*_listed_pictures(folder / _TABLE), _SHEET, _PAGE, _TABLE):
        path = folder / name
        if path.is_file() and not any(path.samefile(source) for source in sources):
            path.unlink()


def _listed_pictures(table: Path) -> list[str]:
    """Return the pictures that an old table names, if they are in its folder."""
    try:
        text = table.read_text(encoding="utf-8", errors="replace")
        rows = list(csv.DictReader(io.StringIO(text, newline="")))
    except (OSError, csv.Error):
        return []
    names = [row.get("file") or "" for row in rows]
    return [
        name
        for name in names
        if name.lower().endswith(_PICTURES) and not re.search(r"[/\\\0:]", name)
    ]


# What is said meanwhile -----------------------------------------------------------


def _note(text: str) -> None:
    click.echo(f"variegate: note: {' '.join(text.split())}", err=True)


@contextmanager
def _notes() -> Iterator[None]:
    """Say the warnings of what is done within, each in one line, if it succeeds."""
    from variegate.video.reading import TruncatedVideoWarning

    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        yield
    texts = []
    for warning in caught:
        text = str(warning.message)
        if not issubclass(warning.category, TruncatedVideoWarning):
            # The sentence that follows advises what these commands have no option for.
            text = text.split(". ")[0]
        texts.append(text)
    for text in dict.fromkeys(texts):
        _note(text)


def _is_video(path: Path) -> bool:
    from variegate.video.reading import VideoError, promised_duration

    try:
        promised_duration(path)
    except VideoError as error:
        _report_failure(path, error)
        return False
    return True


def _report_failure(video: Path, error: Exception) -> None:
    text = str(error)
    if isinstance(error, click.ClickException):
        text = error.format_message()
    text = " ".join(text.split())
    where = "" if str(video) in text else f"{video}: "
    click.echo(f"variegate: {where}{text}", err=True)


@contextmanager
def _position(label: str, video: Path) -> Iterator[_Position | None]:
    """Yield a callback that shows how far a video is read, where one is watching."""
    if not sys.stderr.isatty():
        yield None
        return
    from variegate.video.reading import promised_duration

    duration = promised_duration(video)
    started = time.monotonic()
    drawn = -math.inf

    def show(number: int, seconds: float) -> None:
        nonlocal drawn
        now = time.monotonic()
        if now - started < _PATIENCE or now - drawn < 0.1:
            return
        drawn = now
        line = _position_line(label, seconds, duration, (number + 1) / (now - started))
        click.echo(f"\r{line}", nl=False, err=True)

    try:
        yield show
    finally:
        if drawn > started:
            click.echo(f"\r{' ' * _width()}\r", nl=False, err=True)


def _position_line(
    label: str, seconds: float, duration: float | None, rate: float
) -> str:
    """Return a line as wide as the terminal."""
    from variegate.video.storyboard import time_label

    label = label if len(label) <= 30 else f"{label[:29]}…"
    line = f"{label}  {time_label(max(seconds, 0.0))}"
    if duration is not None:
        share = min(1.0, seconds / duration)
        bar = ("#" * round(20 * share)).ljust(20, "-")
        line = f"{label}  [{bar}] {share:4.0%}  {time_label(seconds)}"
        line += f" of {time_label(duration)}"
    line += f"  {rate:.0f} frames/s"
    return line[: _width()].ljust(_width())


def _width() -> int:
    return max(20, shutil.get_terminal_size().columns - 1)


# Evaluation -----------------------------------------------------------------------


@click.command(
    "evaluate-keyframes",
    epilog="\b\nvariegate evaluate-keyframes frames anna/ ben/\n"
    "variegate evaluate-keyframes frames/keyframes.csv picks.csv --video holiday.mp4",
)
@click.argument("chosen", type=_PATH)
@click.argument("users", nargs=-1, type=_PATH, metavar="USER...")
@click.option(
    "--video",
    type=_PATH,
    help="The video that the tables are about: the frame of a time is the first at or "
    "after it.",
)
@click.option(
    "--matching",
    type=click.Choice(["maximum", "vsumm"]),
    default="maximum",
    show_default=True,
    help="As many pairs of frames as there can be, or one after the other, as VSUMM's "
    "evaluator does.",
)
@click.option(
    "--threshold",
    type=_Number(min=0.0, max=2.0, min_open=True),
    default=0.5,
    show_default=True,
    help="Frames match whose histograms of hues differ by less, from 0 to 2.",
)
@click.option("--json", "as_json", is_flag=True, help="JSON instead of a table.")
def evaluate_keyframes(
    chosen: Path,
    users: tuple[Path, ...],
    video: Path | None,
    matching: str,
    threshold: float,
    as_json: bool,
) -> None:
    """Compare chosen frames with those that people chose, as VSUMM does.

    CHOSEN and each USER are folders of pictures (JPEG or PNG), or tables (CSV) with a
    column "time" and perhaps "user" and "video".  CUSa is the matched and CUSe the
    unmatched part of the chosen frames, for each frame of the user.
    """
    if not users:
        raise click.UsageError(
            f"there is nothing to compare {chosen} with: name the folder or table of "
            "at least one user"
        )
    _need_opencv()
    system, people = _choices(chosen, users, video)
    from variegate.video.evaluation import KeyframeScore, score_against_user

    rule = cast("Matching", matching)
    rows = [
        (label, len(frames), score_against_user(frames, system, threshold, rule))
        for label, frames in people
    ]
    columns = zip(*(score for _, _, score in rows), strict=True)
    mean = KeyframeScore(*(math.fsum(column) / len(rows) for column in columns))
    if not as_json:
        click.echo(_score_table(rows, mean))
        return
    result = {
        "chosen": str(chosen),
        "frames": len(system),
        "matching": matching,
        "threshold": threshold,
        "users": [
            {"user": label, "frames": count, **score._asdict()}
            for label, count, score in rows
        ],
        "mean": mean._asdict(),
    }
    click.echo(json.dumps(result, indent=1, ensure_ascii=False))


#: Whose frames these are, and their histograms.
_Choice = tuple[str, "list[FloatArray]"]


def _choices(
    chosen: Path, users: Sequence[Path], video: Path | None
) -> tuple[list[FloatArray], list[_Choice]]:
    """Read all frames: of each folder the pictures, and the video once."""
    from variegate.video.picks import read_choices

    paths = list(dict.fromkeys([chosen, *users]))
    tables: dict[Path, dict[str, tuple[float, ...]]] = {}
    for path in paths:
        if not path.exists():
            raise click.UsageError(f"there is no folder or table {path}")
        if path.is_dir():
            continue
        if video is None:
            raise click.UsageError(
                f"{path} is no folder; for a table of times, name its --video too"
            )
        tables[path] = read_choices(path, video)
    if len(tables.get(chosen, ())) > 1:
        raise click.UsageError(
            f"{chosen} has the choices of several users; CHOSEN is only one"
        )
    if video is not None and not tables:
        _note("--video does nothing where all frames are pictures")
    shown = _shown(video, tables) if video is not None and tables else {}
    choices: dict[Path, list[_Choice]] = {}
    for path in paths:
        if path in tables:
            choices[path] = _of_table(path, tables[path], shown)
        else:
            choices[path] = [(str(path), _of_folder(path))]
    system = choices[chosen][0][1]
    return system, [one for path in dict.fromkeys(users) for one in choices[path]]


def _of_folder(folder: Path) -> list[FloatArray]:
    from variegate.video.hue import hue_histogram
    from variegate.video.picks import read_pictures

    return [hue_histogram(image) for _, image in read_pictures(folder)]


def _shown(
    video: Path, tables: Mapping[Path, Mapping[str, Sequence[float]]]
) -> dict[float, tuple[int, FloatArray]]:
    """Return the number of the frame at each time, and its histogram."""
    from variegate.video.hue import hue_histogram
    from variegate.video.picks import frames_at

    times = {
        moment: path
        for path, users in tables.items()
        for chosen in users.values()
        for moment in chosen
    }
    with _notes(), _position(video.name, video) as progress:
        shown = {
            moment: (frame.number, hue_histogram(frame.image))
            for moment, frame in frames_at(video, times, progress)
        }
        late = min(times.keys() - shown.keys(), default=None)
        if late is not None:
            raise click.UsageError(
                f"{times[late]}: the time {late:g} is after the last frame of {video}"
            )
    return shown


def _of_table(
    path: Path,
    users: Mapping[str, Sequence[float]],
    shown: Mapping[float, tuple[int, FloatArray]],
) -> list[_Choice]:
    choices = []
    for user, times in users.items():
        # Two times may be of one frame.
        frames = dict(shown[moment] for moment in times)
        label = f"{path}: {user}" if user else str(path)
        choices.append((label, list(frames.values())))
    return choices


def _score_table(
    rows: Sequence[tuple[str, int, KeyframeScore]], mean: KeyframeScore
) -> str:
    cells = [("user", "frames", "precision", "recall", "F", "CUSa", "CUSe")]
    for label, count, score in rows:
        cells.append((label, str(count), *_decimals(score)))
    if len(rows) > 1:
        cells.append(("mean", "", *_decimals(mean)))
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    return "\n".join(
        "  ".join(
            [row[0].ljust(widths[0])]
            + [c.rjust(w) for c, w in zip(row[1:], widths[1:], strict=True)]
        )
        for row in cells
    )


def _decimals(score: KeyframeScore) -> tuple[str, str, str, str, str]:
    precision, recall, f, cus_a, cus_e = (f"{value:.3f}" for value in score)
    return precision, recall, f, cus_a, cus_e


# Learning -------------------------------------------------------------------------


@click.command(
    "fit-keyframes",
    epilog="\b\nvariegate fit-keyframes videos picks.csv -o model.json\n"
    "variegate keyframes holiday.mp4 -o frames --model model.json",
)
@click.argument("folder", type=_PATH)
@click.argument("picks", type=_PATH)
@click.option(
    "-o",
    "--out",
    callback=_output,
    type=_OUTPUT,
    required=True,
    metavar="FILE",
    help="Where the model is written, as JSON.",
)
@click.option(
    "--lam",
    type=_Number(min=0.0),
    default=6.0,
    show_default=True,
    help="Weight of the margin; 0 is maximum likelihood.",
)
@click.option(
    "--omega",
    "omegas",
    type=_Number(min=0.0, min_open=True),
    multiple=True,
    default=(1.0,),
    show_default=True,
    help="What a missed frame costs against one too many; repeat to learn for several, "
    "and keyframes takes any value between them.",
)
@_EVERY
@click.option(
    "--max-iter",
    type=click.IntRange(min=1),
    default=200,
    show_default=True,
    help="When to stop learning at the latest.",
)
def fit_keyframes(
    folder: Path,
    picks: Path,
    out: Path,
    lam: float,
    omegas: tuple[float, ...],
    every: float,
    max_iter: int,
) -> None:
    """Learn to choose key frames from those that people chose.

    PICKS is a table (CSV) with the columns "video", the name of a file in FOLDER,
    "time", in seconds or as m:ss, and perhaps "user".  A keyframes.csv will do, once
    its rows are corrected.
    """
    from variegate.video import KeyframePicker
    from variegate.video.picks import read_picks
    from variegate.video.reading import promised_duration

    _need_opencv()
    videos = read_picks(picks, folder)
    _refuse_to_replace(out, "-o", [picks, *(video.path for video in videos)])
    for video in videos:
        promised_duration(video.path)  # refuses what is no video before the work

    picker = KeyframePicker(
        lam=lam,
        omega=omegas if len(omegas) > 1 else omegas[0],
        max_iter=max_iter,
    )
    with _notes(), progress_bar("fitting") as progress:
        picker.fit(videos, every=every, progress=progress)
        picker.save(out)
    click.echo(_training_report(picker))
    click.echo(f"written: {out}", err=True)


def _training_report(picker: KeyframePicker) -> str:
    training = picker.training_
    omegas = ", ".join(f"{omega:g}" for omega in picker.omegas_)
    return (
        f"videos: {training['n_videos']:,}\n"
        f"candidates: {training['n_candidates']:,}\n"
        f"users: {training['n_users']:,}\n"
        f"learned for ω = {omegas}\n"
        f"best choice of candidates: F {training['oracle_f']:.3f} against the picks"
    )

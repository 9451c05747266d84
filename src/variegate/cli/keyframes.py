"""``variegate keyframes`` and ``variegate fit-keyframes``."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from variegate import video
from variegate._progress import Progress
from variegate.cli import keyframe_files as files
from variegate.cli import options, output
from variegate.cli.keyframe_files import PAGE, SHEET, TABLE, Job
from variegate.cli.options import option
from variegate.cli.progress import show_progress, video_note
from variegate.report.wording import count, shorten_middle
from variegate.video.reading import (
    EVERY,
    TruncatedVideoWarning,
    VideoError,
    promised_duration,
    time_label,
)

if TYPE_CHECKING:
    from variegate.video import Keyframe, VideoSummary

_JPEG_QUALITY = 92
_MOST_SHOWN = 1000  # key frames on a storyboard and a page


@click.command(
    epilog="\b\nvariegate keyframes holiday.mp4 -o frames\n"
    "variegate keyframes clips -o frames --max 10 --omega 0.5\n"
    "variegate keyframes talk.mp4 -o frames --per-shot\n"
    "variegate keyframes film.mkv -o frames --sequential --max 60"
)
@click.argument(
    "videos", nargs=-1, required=True, type=options.PATH, metavar="VIDEO..."
)
@option(
    "-o --out DIR", "Folder for the results; several videos each have a folder in it.",
    options.PATH, required=True,
)  # fmt: skip
@option(
    "--omega W", "Omega of the model: smaller gives few frames and precise, larger "
    "many and complete.", float,
)  # fmt: skip
@option("--max N", "Most frames.", options.COUNT, name="max_frames")
@option("--count N", "Exact number of frames.", options.COUNT)
@option(
    "--per-shot",
    "Choose the likeliest frame of each shot, in place of --max or --count.",
)
@option(
    "--sequential", "For long films: choose in segments, each beside the key frames of "
    "the one before, in constant memory.",
)  # fmt: skip
@options.every_option(show_default="that of the model")
@options.model_option("Model of 'variegate fit-keyframes'.")
@option(
    "--template NAME", "Names of the pictures, .jpg or .png: {name} of the video, {n} "
    "from 1, {frame} number in the video, {time} in seconds.",
    default="{name}-{n:03d}-{time:08.2f}s.jpg", callback=files.check_template,
)  # fmt: skip
@options.json_option("Print JSON, with every candidate.")
@option("--force", "Replace earlier results in the folder.")
@option(
    "--storyboard/--no-storyboard",
    f"Write one picture of all key frames, {SHEET}.  [default: on]",
    default=True, show_default=False,
)  # fmt: skip
@option(
    "--page/--no-page",
    f"Write a page of the video with its key frames, {PAGE}.  [default: on]",
    default=True, show_default=False, name="html",
)  # fmt: skip
def keyframes(
    videos: tuple[Path, ...],
    out: Path,
    model: Path | None,
    template: str,
    storyboard: bool,
    html: bool,
    force: bool,
    as_json: bool,
    **choice: Any,
) -> None:
    """Choose the frames that show the content of a video.

    A folder stands for the videos in it and in its folders.  Writes a picture of each
    frame, keyframes.csv with their times, a storyboard and a page, and prints a line
    for each: file, time, and the probability that the model includes the frame.
    """
    options.require_opencv()
    given = options.given_options()
    amounts = [given[n] for n in ("max_frames", "count", "per_shot") if n in given]
    if len(amounts) > 1:
        raise click.UsageError(
            f"{' and '.join(amounts)} each say how many frames to choose; give one of "
            "them"
        )
    if choice["sequential"] and {"count", "per_shot"} & given.keys():
        raise click.UsageError(
            f"{amounts[0]} needs all candidates at once: give --max with --sequential, "
            "or leave --sequential out"
        )
    jobs = files.make_jobs(videos, out)
    sources = [job.video for job in jobs]
    most = choice["count"] or choice["max_frames"]
    files.check_template_distinguishes(template, most)
    folders = [job.folder for job in jobs]
    if not force:
        files.refuse_results(folders)
    with files.create_folders(folders):
        load = video.KeyframePicker.load
        picker = video.load_default() if model is None else load(model)
        # An omega out of range is one error, not one for every video.
        picker.family_.resolve(choice["omega"])

        def pick_and_write(job: Job, progress: Progress) -> dict[str, Any]:
            """Choose the frames of a video, write its files, and return its report."""
            summary = picker.pick(
                job.video, folder=job.folder, progress=progress, **choice
            )
            contents, report = _make_outputs(job, summary, template, storyboard, html)
            files.write_results(job.folder, contents, force, sources)
            return report

        reports = _process_videos(jobs, pick_and_write, as_json)
    if as_json and reports:
        output.print_json(reports)
    if len(reports) < len(jobs):
        sys.exit(2)


def _process_videos(
    jobs: Sequence[Job], work: Callable[[Job, Progress], dict[str, Any]], as_json: bool
) -> list[dict[str, Any]]:
    """Call ``work`` for each video, print and return the reports that it returns.

    A video that fails has no report: the error is printed, and the others follow.
    """
    reports: list[dict[str, Any]] = []
    # A file that is not a video fails at once, not after hours with the others.
    videos = [job for job in jobs if _check_video(job.video)]
    for number, job in enumerate(videos, 1):
        label = job.video.name
        if len(videos) > 1:
            label = f"{number}/{len(videos)} {label}"
        try:
            with (
                output.print_warnings_as_notes(TruncatedVideoWarning),
                show_progress(shorten_middle(label, 30), video_note()) as progress,
            ):
                reports.append(work(job, progress))
        except (OSError, ValueError, click.ClickException) as error:
            _report_failure(job.video, error)
            continue
        except KeyboardInterrupt:
            if len(jobs) == 1:
                raise
            raise output.Interrupted(
                f"{len(reports)} of {len(jobs)} videos are done; name only the others "
                "to go on"
            ) from None
        _print_report(job, reports[-1], as_json)
    return reports


def _make_outputs(
    job: Job, summary: VideoSummary, template: str, with_sheet: bool, with_page: bool
) -> tuple[dict[str, files.Content], dict[str, Any]]:
    """Return the contents of files by their names, and a video's report for JSON.

    Pictures are encoded when they are written.
    """
    from variegate.video.keyframe_page import html_report
    from variegate.video.storyboard import encode_png, storyboard

    report = summary.as_dict()
    contents: dict[str, files.Content] = {}
    names = files.picture_names(template, job, summary)
    rows = zip(report["keyframes"], summary.keyframes, names, strict=True)
    for row, keyframe, name in rows:
        row["file"] = name
        contents[name] = partial(_encode_picture, keyframe, name)
    n_chosen = len(summary.keyframes)
    if n_chosen > _MOST_SHOWN and (with_sheet or with_page):
        output.print_note(
            f"{job.video}: no storyboard and no page, which hold at most "
            f"{_MOST_SHOWN:,} key frames, not {n_chosen:,}; give --max for fewer"
        )
        with_sheet = with_page = False
    if with_sheet and summary.keyframes:
        contents[SHEET] = encode_png(storyboard(summary.keyframes))
    if with_page:
        page = html_report(summary, f"Key frames of {job.video.name}")
        contents[PAGE] = page.encode()
    contents[TABLE] = files.keyframe_table(job.video, report["keyframes"])
    others = {"storyboard": SHEET, "html": PAGE}
    found = {kind: name if name in contents else None for kind, name in others.items()}
    return contents, report | {"folder": str(job.folder), "table": TABLE} | found


def _encode_picture(keyframe: Keyframe, name: str) -> bytes:
    """Return the picture of a key frame as the bytes of a file of this name."""
    from variegate.video.storyboard import encode_jpeg, encode_png

    if name.lower().endswith(".png"):
        return encode_png(keyframe.image)
    return encode_jpeg(keyframe.image, _JPEG_QUALITY)


def _print_report(job: Job, report: Mapping[str, Any], as_json: bool) -> None:
    """Print a line for each key frame, unless ``as_json``, and the files written."""
    rows = report["keyframes"]
    for row in [] if as_json else rows:
        file, when = job.folder / row["file"], time_label(row["time"])
        output.print_text(f"{file}\t{when}\t{row['probability']:.3f}")
    if not rows:
        output.print_note(
            f"{job.video}: the model chose no frame; a larger --omega gives more"
        )
    kinds = ("table", "storyboard", "html")
    names = [count(len(rows), "picture"), *filter(None, map(report.get, kinds))]
    output.print_text(f"written: {job.folder}: {', '.join(names)}", err=True)


def _check_video(path: Path) -> bool:
    """Return whether a file can be opened as a video; if not, print the reason."""
    try:
        promised_duration(path)
    except VideoError as error:
        _report_failure(path, error)
        return False
    return True


def _report_failure(video: Path, error: Exception) -> None:
    """Print in one line why a video failed."""
    text = " ".join(str(error).split())
    where = "" if str(video) in text else f"{video}: "
    output.print_text(f"variegate: {where}{text}", err=True)


@click.command(
    "fit-keyframes",
    epilog="\b\nvariegate fit-keyframes videos picks.csv -o model.json\n"
    "variegate keyframes holiday.mp4 -o frames --model model.json",
)
@click.argument("folder", type=options.PATH)
@click.argument("picks", type=options.PATH)
@options.OUT
@options.learning_options(6.0, 1000, "frame", "keyframes")
@options.every_option(default=EVERY)
@options.FORCE
def fit_keyframes(
    folder: Path, picks: Path, out: Path, every: float, force: bool, **parameters: Any
) -> None:
    """Learn to choose key frames from frames that people chose.

    PICKS is a table (CSV) with the columns "video", the name of a file in FOLDER,
    "time", in seconds or as m:ss, and perhaps "user".  A keyframes.csv will do, once
    its rows are corrected.
    """
    from variegate.video.candidates import REACH

    options.require_opencv()
    videos = video.read_picks(picks, folder)
    output.refuse_to_replace(out, "-o", [picks, *(v.path for v in videos)], force)
    for one in videos:
        promised_duration(one.path)  # refuses files that are not videos at once
    picker = video.KeyframePicker(**parameters)
    with (
        output.print_warnings_as_notes(TruncatedVideoWarning),
        show_progress() as progress,
    ):
        picker.fit(videos, every=every, progress=progress)
        picker.save(out)
    n_lost = int(picker.training_["n_lost"])
    if n_lost:
        noun, were = ("picks are", "were") if n_lost > 1 else ("pick is", "was")
        output.print_note(
            f"{n_lost:,} {noun} more than {REACH:g} s from any frame worth looking at "
            f"and {were} left out"
        )
    output.print_text(picker.describe_training())
    output.print_written(out)

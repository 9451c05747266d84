"""``variegate keyframes`` and ``variegate fit-keyframes``."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from variegate import video
from variegate.cli import options, output
from variegate.cli.keyframe_files import (
    PAGE,
    SHEET,
    TABLE,
    Job,
    as_jobs,
    check_distinct,
    check_template,
    made_folders,
    picture_names,
    refuse_results,
    table_of,
    write_results,
)
from variegate.cli.progress import show_progress, video_note
from variegate.report.wording import shortened
from variegate.video.reading import (
    EVERY,
    TruncatedVideoWarning,
    VideoError,
    promised_duration,
    time_label,
)

if TYPE_CHECKING:
    from variegate.video import VideoSummary

_JPEG_QUALITY = 92


@click.command(
    epilog="\b\nvariegate keyframes holiday.mp4 -o frames\n"
    "variegate keyframes clips -o frames --max 10 --omega 0.5\n"
    "variegate keyframes talk.mp4 -o frames --per-shot"
)
@click.argument(
    "videos", nargs=-1, required=True, type=options.PATH, metavar="VIDEO..."
)
@click.option(
    "-o", "--out", type=options.PATH, required=True, metavar="DIR",
    help="Folder for the results; several videos each have a folder in it.",
)  # fmt: skip
@click.option(
    "--omega", type=float, metavar="W",
    help="Omega of the model: smaller gives few frames and precise, larger many and "
    "complete.",
)  # fmt: skip
@click.option(
    "--max", "max_frames", type=options.COUNT, metavar="N", help="Most frames."
)
@click.option(
    "--count", type=options.COUNT, metavar="N", help="Exact number of frames."
)
@click.option(
    "--per-shot", is_flag=True,
    help="Choose the likeliest frame of each shot, in place of --max or --count.",
)  # fmt: skip
@options.every_option(show_default="that of the model")
@options.MODEL(help="Model of 'variegate fit-keyframes'.")
@click.option(
    "--template", callback=check_template, show_default=True, metavar="NAME",
    default="{name}-{n:03d}-{time:08.2f}s.jpg",
    help="Names of the pictures, .jpg or .png: {name} of the video, {n} from 1, "
    "{frame} number in the video, {time} in seconds.",
)  # fmt: skip
@options.json_option(help="Print JSON, with every candidate.")
@click.option("--force", is_flag=True, help="Replace earlier results in the folder.")
@click.option(
    "--storyboard/--no-storyboard", default=True,
    help=f"Write one picture of all key frames, {SHEET}.  [default: on]",
)  # fmt: skip
@click.option(
    "--page/--no-page", "html", default=True,
    help=f"Write a page of the video with its key frames, {PAGE}.  [default: on]",
)  # fmt: skip
@click.pass_context
def keyframes(
    context: click.Context,
    /,
    videos: tuple[Path, ...],
    out: Path,
    omega: float | None,
    max_frames: int | None,
    count: int | None,
    per_shot: bool,
    every: float | None,
    model: Path | None,
    **how: Any,
) -> None:
    """Choose the frames that tell what is in a video.

    A folder stands for the videos in it and in its folders.  Writes a picture of each
    frame, keyframes.csv with their times, a storyboard and a page, and prints a line
    for each: file, time, and the probability that the model includes the frame.
    """
    options.need_opencv()
    _check_amount({"--max": max_frames, "--count": count, "--per-shot": per_shot})
    run = _Run(as_jobs(videos, out), **how)
    check_distinct(run.template, count or max_frames)
    folders = [job.folder for job in run.jobs]
    if not run.force:
        refuse_results(folders)
    with made_folders(folders):
        picker = (
            video.load_default() if model is None else video.KeyframePicker.load(model)
        )
        # An omega out of range is one error, not one for every video.
        picker.family_.resolve(omega, picker.default_omega)
        pick = partial(
            picker.pick,
            omega=omega,
            max_frames=max_frames,
            count=count,
            per_shot=per_shot,
            every=every,
        )
        reports = run.all_videos(pick)
    if run.as_json and reports:
        output.echo_json(reports)
    if len(reports) < len(run.jobs):
        context.exit(2)


def _check_amount(options: Mapping[str, object]) -> None:
    given = [name for name, value in options.items() if value]
    if len(given) > 1:
        raise click.UsageError(
            f"{' and '.join(given)} each say how many frames to choose; give one of "
            "them"
        )


@dataclass(frozen=True)
class _Run:
    """Videos to work on one after the other, and the files to write for each."""

    jobs: Sequence[Job]
    template: str
    storyboard: bool
    html: bool
    force: bool
    as_json: bool

    def all_videos(self, pick: Callable[..., VideoSummary]) -> list[dict[str, Any]]:
        """Return a report of each video, and print the failures."""
        reports: list[dict[str, Any]] = []
        # A file that is not a video fails at once, not after hours with the others.
        videos = [job for job in self.jobs if _is_video(job.video)]
        for count, job in enumerate(videos, 1):
            label = job.video.name
            if len(videos) > 1:
                label = f"{count}/{len(videos)} {label}"
            try:
                with (
                    output.notes(TruncatedVideoWarning),
                    show_progress(shortened(label, 30), video_note()) as progress,
                ):
                    summary = pick(job.video, progress=progress)
                reports.append(self.write(job, summary))
            except (OSError, ValueError, click.ClickException) as error:
                _report_failure(job.video, error)
                continue
            except KeyboardInterrupt:
                if len(self.jobs) == 1:
                    raise
                raise output.Interrupted(
                    f"{len(reports)} of {len(self.jobs)} videos are done; name only "
                    "the others to go on"
                ) from None
            self.tell(job, reports[-1])
        return reports

    def write(self, job: Job, summary: VideoSummary) -> dict[str, Any]:
        """Write all files of a video, and return their names and the frames."""
        report = summary.as_dict()
        names = picture_names(self.template, job, summary)
        for row, name in zip(report["keyframes"], names, strict=True):
            row["file"] = name
        contents = self.contents(job, summary, report)
        sources = [each.video for each in self.jobs]
        write_results(job.folder, contents, self.force, sources)
        report["folder"] = str(job.folder)
        report["table"] = TABLE
        report["storyboard"] = SHEET if SHEET in contents else None
        report["html"] = PAGE if PAGE in contents else None
        return report

    def tell(self, job: Job, report: Mapping[str, Any]) -> None:
        """Print a line for each key frame, and say what was written."""
        rows = report["keyframes"]
        if not self.as_json:
            for row in rows:
                file, when = job.folder / row["file"], time_label(row["time"])
                output.say(f"{file}\t{when}\t{row['probability']:.3f}")
        if not rows:
            output.note(
                f"{job.video}: the model chose no frame; a larger --omega gives more"
            )
        written = [f"{len(rows)} picture{'s' * (len(rows) != 1)}"]
        written += [report[kind] for kind in ("table", "storyboard", "html")]
        names = ", ".join(filter(None, written))
        output.say(f"written: {job.folder}: {names}", err=True)

    def contents(
        self, job: Job, summary: VideoSummary, report: Mapping[str, Any]
    ) -> dict[str, bytes]:
        """Return the files to write by name, the table last."""
        from variegate.video.keyframe_page import html_report
        from variegate.video.storyboard import encode_jpeg, encode_png, storyboard

        contents: dict[str, bytes] = {}
        for row, keyframe in zip(report["keyframes"], summary.keyframes, strict=True):
            if row["file"].lower().endswith(".png"):
                contents[row["file"]] = encode_png(keyframe.image)
            else:
                contents[row["file"]] = encode_jpeg(keyframe.image, _JPEG_QUALITY)
        if self.storyboard and summary.keyframes:
            contents[SHEET] = encode_png(storyboard(summary.keyframes))
        if self.html:
            page = html_report(summary, f"Key frames of {job.video.name}")
            contents[PAGE] = page.encode()
        contents[TABLE] = table_of(job.video, report["keyframes"])
        return contents


def _is_video(path: Path) -> bool:
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
    output.say(f"variegate: {where}{text}", err=True)


@click.command(
    "fit-keyframes",
    epilog="\b\nvariegate fit-keyframes videos picks.csv -o model.json\n"
    "variegate keyframes holiday.mp4 -o frames --model model.json",
)
@click.argument("folder", type=options.PATH)
@click.argument("picks", type=options.PATH)
@options.OUT
@options.learning_options(6.0, 1000, "frame", "keyframes")
@options.every_option(default=EVERY, show_default=True)
@options.FORCE
def fit_keyframes(
    folder: Path, picks: Path, out: Path, every: float, force: bool, **parameters: Any
) -> None:
    """Learn to choose key frames from those that people chose.

    PICKS is a table (CSV) with the columns "video", the name of a file in FOLDER,
    "time", in seconds or as m:ss, and perhaps "user".  A keyframes.csv will do, once
    its rows are corrected.
    """
    from variegate.video.candidates import REACH

    options.need_opencv()
    videos = video.read_picks(picks, folder)
    output.refuse_to_replace(out, "-o", [picks, *(one.path for one in videos)])
    output.refuse_existing(force, out)
    for one in videos:
        promised_duration(one.path)  # refuses files that are not videos at once
    picker = video.KeyframePicker(**parameters)
    with output.notes(TruncatedVideoWarning), show_progress() as progress:
        picker.fit(videos, every=every, progress=progress)
        picker.save(out)
    n_lost = int(picker.training_["n_lost"])
    if n_lost:
        what, were = ("picks are", "were") if n_lost > 1 else ("pick is", "was")
        output.note(
            f"{n_lost:,} {what} more than {REACH:g} s from any frame worth looking at "
            f"and {were} left out"
        )
    output.say(picker.describe_training())
    output.say_written(out)

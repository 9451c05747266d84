"""``variegate keyframes``: the frames that tell what is in a video."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from variegate import video
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
from variegate.cli.notes import note, notes
from variegate.cli.paths import MODEL, PATH
from variegate.cli.progress import video_progress
from variegate.cli.results import Interrupted, echo_json, json_option, say
from variegate.cli.video_options import every_option, need_opencv
from variegate.video.reading import (
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
@click.argument("videos", nargs=-1, required=True, type=PATH, metavar="VIDEO...")
@click.option(
    "-o",
    "--out",
    type=PATH,
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
@click.option(
    "--count",
    type=click.IntRange(min=1),
    metavar="N",
    help="Choose exactly so many frames, however like each other they are.",
)
@click.option(
    "--per-shot",
    is_flag=True,
    help="Choose the likeliest frame of each shot, and no other.  Of --max, --count "
    "and --per-shot only one can be given; --omega goes with all.",
)
@every_option(show_default="as the model was learned")
@click.option("--model", type=MODEL, help="As fit-keyframes writes it.")
@click.option(
    "--template",
    callback=check_template,
    default="{name}-{n:03d}-{time:08.2f}s.jpg",
    show_default=True,
    help="Names of the pictures, .jpg or .png: {name} of the video, {n} counts from "
    "1, {frame} is its number in the video, {time} in seconds.",
)
@json_option(help="JSON, with every candidate.")
@click.option("--force", is_flag=True, help="Replace earlier results in the folder.")
@click.option(
    "--storyboard/--no-storyboard",
    default=True,
    help=f"One picture of all key frames, {SHEET}.  [default: on]",
)
@click.option(
    "--page/--no-page",
    "html",
    default=True,
    help=f"A page that shows where they come from, {PAGE}.  [default: on]",
)
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
    need_opencv()
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
        # Said once, what every video would fail by.
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
        echo_json(reports)
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
    """Videos one after the other, and what is written for each."""

    jobs: Sequence[Job]
    template: str
    storyboard: bool
    html: bool
    force: bool
    as_json: bool

    def all_videos(self, pick: Callable[..., VideoSummary]) -> list[dict[str, Any]]:
        """Return what was done, and report on standard error what failed."""
        reports: list[dict[str, Any]] = []
        # What is no video is said at once, not after hours with the others.
        videos = [job for job in self.jobs if _is_video(job.video)]
        for count, job in enumerate(videos, 1):
            label = job.video.name
            if len(videos) > 1:
                label = f"{count}/{len(videos)} {label}"
            try:
                with (
                    notes(TruncatedVideoWarning),
                    video_progress(label, job.video) as progress,
                ):
                    summary = pick(job.video, progress=progress)
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
            self.tell(job, reports[-1])
        return reports

    def write(self, job: Job, summary: VideoSummary) -> dict[str, Any]:
        """Write all files of a video, and return what they are."""
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
                say(f"{file}\t{when}\t{row['probability']:.3f}")
        if not rows:
            note(f"{job.video}: the model chose no frame; a larger --omega gives more")
        written = [f"{len(rows)} picture{'s' * (len(rows) != 1)}"]
        written += [report[kind] for kind in ("table", "storyboard", "html")]
        names = ", ".join(filter(None, written))
        say(f"written: {job.folder}: {names}", err=True)

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
    say(f"variegate: {where}{text}", err=True)

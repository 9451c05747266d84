"""``variegate evaluate-keyframes``: chosen frames against frames of people."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import get_args

import click

from variegate._typing import FloatArray
from variegate.cli import options, output
from variegate.cli.options import option
from variegate.cli.progress import show_progress, video_note
from variegate.report.terminal import align_columns
from variegate.report.wording import shorten_middle
from variegate.video.evaluation import (
    THRESHOLD,
    KeyframeScore,
    Matching,
    score_against_user,
)
from variegate.video.picks import frames_at, read_choices, read_pictures
from variegate.video.picture import hue_histogram
from variegate.video.reading import TruncatedVideoWarning

#: The name of a user or file, and the histograms of the chosen frames, (16,) each.
_Choice = tuple[str, list[FloatArray]]


@click.command(
    "evaluate-keyframes",
    epilog="\b\nvariegate evaluate-keyframes frames anna/ ben/\n"
    "variegate evaluate-keyframes frames/keyframes.csv picks.csv --video holiday.mp4",
)
@click.argument("chosen", type=options.PATH)
@click.argument("users", nargs=-1, type=options.PATH, metavar="USER...")
@option("--video FILE", "Video that the tables are about.", options.PATH)
@option(
    "--matching", "Pair as many frames as possible, or one after the other as VSUMM "
    "does.", get_args(Matching), default="maximum",
)  # fmt: skip
@option(
    "--threshold D", "Largest difference of hue histograms of frames that match, from "
    "0 to 2.", options.NumberType(min=0.0, max=2.0, min_open=True), default=THRESHOLD,
)  # fmt: skip
@options.JSON
def evaluate_keyframes(
    chosen: Path,
    users: tuple[Path, ...],
    video: Path | None,
    matching: Matching,
    threshold: float,
    as_json: bool,
) -> None:
    """Compare chosen frames with frames that people chose, as VSUMM does.

    CHOSEN and each USER are folders of pictures (JPEG or PNG), or tables (CSV) with a
    column "time" and perhaps "user" and "video"; the frame of a time is the first at
    or after it.  CUSa is the matched and CUSe the unmatched part of the chosen frames,
    for each frame of the user.
    """
    if not users:
        raise click.UsageError(
            f"there is nothing to compare {chosen} with: name the folder or table of "
            "at least one user"
        )
    options.require_opencv()
    system, people = _read_system_and_users(chosen, users, video)
    rows = [
        (label, len(frames), score_against_user(frames, system, threshold, matching))
        for label, frames in people
    ]
    mean = KeyframeScore.mean([score for _, _, score in rows])
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
    output.print_result(as_json, result, lambda: _score_table(rows, mean))


def _read_system_and_users(
    chosen: Path, users: Sequence[Path], video: Path | None
) -> tuple[list[FloatArray], list[_Choice]]:
    """Return hue histograms of the frames in ``chosen``, and the users' choices."""
    paths = dict.fromkeys([chosen, *users])
    for path in paths:
        if not path.exists():
            raise click.UsageError(f"there is no folder or table {path}")
        if video is None and not path.is_dir():
            raise click.UsageError(
                f"{path} is not a folder; for a table of times, name its --video too"
            )
    if video is not None and all(path.is_dir() for path in paths):
        output.print_note("--video does nothing where all frames are pictures")
    choices = {path: _read_choices(path, video) for path in paths}
    if len(choices[chosen]) > 1:
        raise click.UsageError(
            f"{chosen} has the choices of several users; CHOSEN is only one"
        )
    ((_, system),) = choices[chosen]
    return system, [one for path in dict.fromkeys(users) for one in choices[path]]


def _read_choices(path: Path, video: Path | None) -> list[_Choice]:
    """Read a folder's pictures as one choice, or a choice of each user in a table."""
    if video is None or path.is_dir():
        return [(str(path), [hue_histogram(image) for _, image in read_pictures(path)])]
    users = read_choices(path, video)
    times = {time for chosen in users.values() for time in chosen}
    with (
        output.print_warnings_as_notes(TruncatedVideoWarning),
        show_progress(shorten_middle(video.name, 30), video_note()) as progress,
    ):
        shown = {
            time: (frame.number, hue_histogram(frame.image))
            for time, frame in frames_at(video, times, progress)
        }
        if late := times - shown.keys():
            raise click.UsageError(
                f"{path}: the time {min(late):g} is after the last frame of {video}"
            )
    return [
        # Two times may be of one frame.
        (
            f"{path}: {user}" if user else str(path),
            list(dict(shown[time] for time in chosen).values()),
        )
        for user, chosen in users.items()
    ]


def _score_table(
    rows: Sequence[tuple[str, int, KeyframeScore]], mean: KeyframeScore
) -> str:
    """Return a line of scores for each user, and of several one for their mean."""
    cells: list[tuple[str, ...]] = [
        ("user", "frames", "precision", "recall", "F", "CUSa", "CUSe")
    ]
    means = [("mean", "", mean)] if len(rows) > 1 else []
    for label, count, score in [*rows, *means]:
        cells.append((label, str(count), *(f"{value:.3f}" for value in score)))
    return align_columns(cells, numbers=range(1, len(cells[0])))

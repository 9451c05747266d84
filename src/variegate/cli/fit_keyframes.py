"""``variegate fit-keyframes``: learn from the frames that people chose."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from variegate.cli.learning_options import (
    OUT,
    lam_option,
    max_iter_option,
    omega_option,
)
from variegate.cli.notes import note, notes
from variegate.cli.paths import FORCE, PATH, refuse_existing, refuse_to_replace
from variegate.cli.progress import progress_bar
from variegate.cli.results import say, say_written
from variegate.cli.video_options import every_option, need_opencv
from variegate.video.reading import EVERY, TruncatedVideoWarning, promised_duration


@click.command(
    "fit-keyframes",
    epilog="\b\nvariegate fit-keyframes videos picks.csv -o model.json\n"
    "variegate keyframes holiday.mp4 -o frames --model model.json",
)
@click.argument("folder", type=PATH)
@click.argument("picks", type=PATH)
@OUT
@lam_option(6.0)
@omega_option("frame", "keyframes")
@every_option(default=EVERY, show_default=True)
@max_iter_option(1000)
@FORCE
def fit_keyframes(
    folder: Path, picks: Path, out: Path, every: float, force: bool, **parameters: Any
) -> None:
    """Learn to choose key frames from those that people chose.

    PICKS is a table (CSV) with the columns "video", the name of a file in FOLDER,
    "time", in seconds or as m:ss, and perhaps "user".  A keyframes.csv will do, once
    its rows are corrected.
    """
    from variegate.video import KeyframePicker, read_picks

    need_opencv()
    videos = read_picks(picks, folder)
    refuse_to_replace(out, "-o", [picks, *(video.path for video in videos)])
    refuse_existing(force, out)
    for video in videos:
        promised_duration(video.path)  # refuses what is no video before the work
    picker = KeyframePicker(**parameters)
    with notes(TruncatedVideoWarning), progress_bar("fitting") as progress:
        picker.fit(videos, every=every, progress=progress)
        picker.save(out)
    _note_lost(int(picker.training_["n_lost"]))
    say(picker.describe_training())
    say_written(out)


def _note_lost(count: int) -> None:
    from variegate.video.candidates import REACH

    if count:
        what, were = ("picks are", "were") if count > 1 else ("pick is", "was")
        note(
            f"{count:,} {what} more than {REACH:g} s from any frame worth looking at "
            f"and {were} left out"
        )

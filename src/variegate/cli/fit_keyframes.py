"""``variegate fit-keyframes``: learn from the frames that people chose."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from variegate.cli.notes import note, notes
from variegate.cli.paths import OUTPUT, PATH, output, refuse_to_replace
from variegate.cli.progress import progress_bar
from variegate.cli.values import Number
from variegate.cli.video_options import every_option, need_opencv
from variegate.video.candidates import EVERY

if TYPE_CHECKING:
    from variegate.video.picker import KeyframePicker


@click.command(
    "fit-keyframes",
    epilog="\b\nvariegate fit-keyframes videos picks.csv -o model.json\n"
    "variegate keyframes holiday.mp4 -o frames --model model.json",
)
@click.argument("folder", type=PATH)
@click.argument("picks", type=PATH)
@click.option(
    "-o",
    "--out",
    callback=output,
    type=OUTPUT,
    required=True,
    metavar="FILE",
    help="Where the model is written, as JSON.",
)
@click.option(
    "--lam",
    type=Number(min=0.0),
    default=6.0,
    show_default=True,
    help="Weight of the margin; 0 is maximum likelihood.",
)
@click.option(
    "--omega",
    "omegas",
    type=Number(min=0.0, min_open=True),
    multiple=True,
    default=(1.0,),
    show_default=True,
    help="What a missed frame costs against one too many; repeat to learn for several, "
    "and keyframes takes any value between them.",
)
@every_option(default=EVERY, show_default=True)
@click.option(
    "--max-iter",
    type=click.IntRange(min=1),
    default=1000,
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
    from variegate.video.reading import TruncatedVideoWarning, promised_duration

    need_opencv()
    videos = read_picks(picks, folder)
    refuse_to_replace(out, "-o", [picks, *(video.path for video in videos)])
    for video in videos:
        promised_duration(video.path)  # refuses what is no video before the work

    picker = KeyframePicker(
        lam=lam,
        omega=omegas if len(omegas) > 1 else omegas[0],
        max_iter=max_iter,
    )
    with notes(TruncatedVideoWarning), progress_bar("fitting") as progress:
        picker.fit(videos, every=every, progress=progress)
        picker.save(out)
    _note_lost(int(picker.training_["n_lost"]))
    click.echo(_training_report(picker))
    click.echo(f"written: {out}", err=True)


def _note_lost(count: int) -> None:
    from variegate.video.picker import REACH

    if count:
        what, were = ("picks are", "were") if count > 1 else ("pick is", "was")
        note(
            f"{count:,} {what} more than {REACH:g} s from any frame worth looking at "
            f"and {were} left out"
        )


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

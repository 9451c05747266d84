"""What the commands about videos have in common: options, and what they need."""

from __future__ import annotations

import os

import click

from variegate.cli.values import Number

EVERY = click.option(
    "--every",
    type=Number(min=0.001),
    default=0.5,
    show_default=True,
    metavar="SECONDS",
    help="Time between the frames that are looked at.",
)


def need_opencv() -> None:
    """Refuse to start without OpenCV, and keep its libraries silent."""
    from variegate.video.reading import require_cv2

    # FFmpeg would write to standard error on its own what is said here in words.
    os.environ.setdefault("OPENCV_FFMPEG_LOGLEVEL", "-8")
    require_cv2()

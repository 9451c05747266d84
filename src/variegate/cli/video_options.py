"""What the commands about videos have in common: options, and what they need."""

from __future__ import annotations

import os
from functools import partial

import click

from variegate.cli.values import Number

every_option = partial(
    click.option,
    "--every",
    type=Number(min=0.001),
    metavar="SECONDS",
    help="Time between the frames that are looked at.",
)


def need_opencv() -> None:
    """Refuse to start without OpenCV, and keep its libraries silent."""
    from variegate.video.reading import require_cv2

    # FFmpeg would write to standard error on its own what is said here in words.
    os.environ.setdefault("OPENCV_FFMPEG_LOGLEVEL", "-8")
    require_cv2()

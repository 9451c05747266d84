"""The Chromium of this machine: where it is, and how it is started."""

from __future__ import annotations

import os
import shutil

#: Chromium asks nobody anything, and needs neither a GPU nor a sandbox of its own.
ARGUMENTS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]
_NAMES = ("chromium", "chromium-browser", "google-chrome")


def chromium_path() -> str | None:
    """Return where Chromium is: what VARIEGATE_CHROMIUM says, or on the path."""
    named = os.environ.get("VARIEGATE_CHROMIUM")
    return named or next(filter(None, map(shutil.which, _NAMES)), None)

"""Resident memory of this process."""

from __future__ import annotations

import re
from pathlib import Path


def resident(field: str) -> float | None:
    """Return a field of /proc/self/status in MiB, or None where there is none."""
    status = Path("/proc/self/status")
    lines = status.read_text() if status.exists() else ""
    found = re.search(rf"^{field}:\s*(\d+)", lines, re.M)
    return int(found[1]) / 1024.0 if found else None


def forget_peak() -> bool:
    """Start the peak of resident memory anew; return whether that is possible."""
    try:
        Path("/proc/self/clear_refs").write_text("5")
    except OSError:
        return False
    return True

"""Times of a video as people write them."""

from __future__ import annotations

import math

__all__ = ["time_label"]


def time_label(seconds: float) -> str:
    """Return a time as minutes, seconds and tenths, or from an hour on without tenths.

    Rounded, not cut off: 59.96 is "1:00.0", and 3599.99 is "1:00:00".
    """
    if not (math.isfinite(seconds) and seconds >= 0.0):
        raise ValueError(f"a time is a number of seconds from 0 on, got {seconds}")
    tenths = round(10.0 * seconds)
    if tenths >= 36_000:
        whole = round(seconds)
        return f"{whole // 3600}:{whole // 60 % 60:02d}:{whole % 60:02d}"
    return f"{tenths // 600}:{tenths // 10 % 60:02d}.{tenths % 10}"

"""What the paper says about videos, and what we measured."""

from __future__ import annotations

from typing import Any

from variegate.experiments.outcome import Claim
from variegate.experiments.video.rows import HERO

__all__ = ["PAPER", "claims"]

#: Table 2 of the paper: precision, recall and F on its 50 videos.
PAPER: dict[tuple[str, float | None], tuple[float, float, float]] = {
    ("VSUMM1", None): (70.57, 75.77, 70.25),
    ("VSUMM2", None): (73.14, 69.14, 68.20),
    ("MLE+MKR", None): (68.40, 82.51, 72.94),
    ("LME+MKR", 1 / 64): (74.00, 72.71, 71.25),
    ("LME+MKR", 1.0): (69.68, 81.39, 73.46),
    ("LME+MKR", 64.0): (67.19, 83.24, 72.39),
}


def claims(results: dict[str, Any]) -> list[Claim]:
    """Return the claims of section 4.3."""
    pairs = {
        (c["method"], c["omega"], c["less"], c["less_omega"]): c
        for c in results["comparisons"]
    }
    omegas = [row["omega"] for row in results["rows"] if row["method"] == "LME+MKR"]
    low, high = min(omegas), max(omegas)
    one: tuple[str, float | None] = ("LME+MKR", 1.0)
    candidates = (
        (
            "a small ω gives precision: +4.32 at 1/64 over ω = 1",
            pairs.get(("LME+MKR", low, *one)),
            "precision",
            f"ω = {fraction(low)} less ω = 1",
        ),
        (
            "a large ω gives recall: +1.85 at 64 over ω = 1",
            pairs.get(("LME+MKR", high, *one)),
            "recall",
            f"ω = {fraction(high)} less ω = 1",
        ),
        (
            "large margin beats maximum likelihood: +0.52 F",
            pairs.get((HERO, None, "MLE+MKR", None)),
            "f",
            "ω chosen in training",
        ),
        (
            "large margin beats VSUMM1: +3.21 F",
            pairs.get((HERO, None, "VSUMM1", None)),
            "f",
            "ω chosen in training",
        ),
        (
            "large margin beats VSUMM2: +5.26 F",
            pairs.get((HERO, None, "VSUMM2", None)),
            "f",
            "ω chosen in training",
        ),
    )
    return [
        Claim(said, f"{how}: {interval(c, score)}", _verdict(c, score))
        for said, c, score, how in candidates
        if c is not None
    ]


def interval(comparison: dict[str, Any], score: str) -> str:
    """Return a difference with its 95% interval, in points."""
    return (
        f"{100 * comparison['difference'][score]:+.1f} "
        f"[{100 * comparison['low'][score]:+.1f}, "
        f"{100 * comparison['high'][score]:+.1f}]"
    )


def fraction(omega: float) -> str:
    """Return a power of two as people write it."""
    return f"{omega:g}" if omega >= 1 else f"1/{1 / omega:g}"


def _verdict(comparison: dict[str, Any], score: str) -> str:
    if comparison["low"][score] > 0.0:
        return "yes"
    return "no" if comparison["high"][score] < 0.0 else "not told apart"

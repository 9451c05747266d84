"""What the paper says about videos, and what we measured."""

from __future__ import annotations

from typing import Any

from paper.experiment import Claim, Results, interval, verdict
from paper.video.rows import HERO
from paper.video.settings import Setup
from variegate.tuning.path import format_omega

#: Table 2 of the paper: precision, recall and F on its 50 videos.
PAPER: dict[tuple[str, float | None], tuple[float, float, float]] = {
    ("VSUMM1", None): (70.57, 75.77, 70.25),
    ("VSUMM2", None): (73.14, 69.14, 68.20),
    ("MLE+MKR", None): (68.40, 82.51, 72.94),
    ("LME+MKR", 1 / 64): (74.00, 72.71, 71.25),
    ("LME+MKR", 1.0): (69.68, 81.39, 73.46),
    ("LME+MKR", 64.0): (67.19, 83.24, 72.39),
}


def claims(setup: Setup, results: Results) -> list[Claim]:
    """Return the claims of section 4.3."""
    pairs = {
        (c["method"], c["omega"], c["less"], c["less_omega"]): c
        for c in results["comparisons"]
    }
    omegas = [row["omega"] for row in results["rows"] if row["method"] == "LME+MKR"]
    low, high = min(omegas, default=1.0), max(omegas, default=1.0)
    candidates: list[tuple[str, tuple[Any, ...], str, str]] = [
        (
            "a small ω gives precision: +4.32 at 1/64 over ω = 1",
            ("LME+MKR", low, "LME+MKR", 1.0),
            "precision",
            f"ω = {format_omega(low)} less ω = 1",
        ),
        (
            "a large ω gives recall: +1.85 at 64 over ω = 1",
            ("LME+MKR", high, "LME+MKR", 1.0),
            "recall",
            f"ω = {format_omega(high)} less ω = 1",
        ),
    ]
    for other, name, gain in (
        ("MLE+MKR", "maximum likelihood", 0.52),
        ("VSUMM1", "VSUMM1", 3.21),
        ("VSUMM2", "VSUMM2", 5.26),
    ):
        said = f"large margin beats {name}: {gain:+.2f} F"
        how = "ω chosen in training"
        candidates.append((said, (HERO, None, other, None), "f", how))
    return [
        Claim(said, f"{how}: {interval(c, score, 1)}", verdict(c, score))
        for said, key, score, how in candidates
        if (c := pairs.get(key)) is not None
    ]

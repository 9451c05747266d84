"""From the scores of single videos to the rows of the tables."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from variegate._typing import FloatArray
from variegate.experiments.statistics import named, paired_bootstrap, standard_errors
from variegate.experiments.video.settings import Settings

__all__ = ["HERO", "SCORES", "choices", "comparisons", "rows_of"]

#: What a run holds, in order.
SCORES = ("precision", "recall", "f")

#: The method that the others are compared with.
HERO = "LME+MKR, chosen ω"

Record = dict[str, Any]
_Key = tuple[str, float | None]


def rows_of(records: Sequence[Record], kind: str) -> list[dict[str, Any]]:
    """Return one row for each method and ω: means over videos and runs.

    ``se`` is the standard error over the runs of methods that draw samples, as in the
    paper; ``None`` where every run gives the same.
    """
    rows = []
    for (method, omega), of_method in _grouped(records, kind).items():
        runs = np.mean([record["runs"] for record in of_method], axis=0)
        rows.append(
            {
                "method": method,
                "omega": omega,
                **named(SCORES, runs.mean(axis=0)),
                "se": standard_errors(SCORES, runs),
                "n_frames": float(np.mean([r["n_frames"] for r in of_method])),
                "n_videos": len(of_method),
            }
        )
    return rows


def comparisons(settings: Settings, records: Sequence[Record]) -> list[dict[str, Any]]:
    """Return the hero less every other, with paired bootstrap intervals over videos.

    Values of ω are compared with ω = 1 too: what they add to precision and to recall.
    """
    groups = _grouped(records, "table")
    pairs: list[tuple[_Key, _Key]] = [
        ((HERO, None), key) for key in groups if key != (HERO, None)
    ]
    one: _Key = ("LME+MKR", 1.0)
    if one in groups:
        pairs += [(key, one) for key in groups if key[0] == one[0] and key != one]
    return [
        {
            "method": first[0],
            "omega": first[1],
            "less": second[0],
            "less_omega": second[1],
            **_paired(settings, groups[first], groups[second]),
        }
        for first, second in pairs
        if first in groups
    ]


def choices(records: Sequence[Record]) -> list[dict[str, Any]]:
    """Return what was chosen for each set of held-out videos."""
    found: dict[str, dict[str, Any]] = {}
    for record in records:
        if "chosen" in record:
            name = "LME+MKR" if record["method"].startswith("LME") else "MLE+MKR"
            key = f"{name} {sorted(record['chosen'].items())}"
            entry = found.setdefault(
                key, {"method": name, **record["chosen"], "videos": []}
            )
            if record["video"] not in entry["videos"]:
                entry["videos"].append(record["video"])
    return list(found.values())


def _grouped(records: Sequence[Record], kind: str) -> dict[_Key, list[Record]]:
    groups: dict[_Key, list[Record]] = {}
    for record in records:
        if record["kind"] == kind:
            key = (record["method"], record["omega"])
            groups.setdefault(key, []).append(record)
    return groups


def _paired(
    settings: Settings, first: Sequence[Record], second: Sequence[Record]
) -> dict[str, dict[str, float]]:
    def means(records: Sequence[Record]) -> dict[str, FloatArray]:
        return {r["video"]: np.mean(r["runs"], axis=0) for r in records}

    return paired_bootstrap(
        SCORES,
        means(first),
        means(second),
        settings.n_bootstrap,
        settings.seed,
    )

"""From the scores of single videos to the rows of the tables."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from paper.experiment import Record, Results
from paper.held_out import compare, grouped, means_of_runs
from paper.video.settings import Settings, Setup
from variegate.tuning.path import format_omega

__all__ = ["HERO", "SCORES", "choices", "comparisons", "label", "results", "rows_of"]

#: What a run holds, in order.
SCORES = ("precision", "recall", "f")

#: The method that the others are compared with.
HERO = "LME+MKR, chosen ω"

_Key = tuple[str, float | None]


def label(method: str, omega: float | None) -> str:
    """Return how a row is named."""
    return method if omega is None else f"{method}, ω = {format_omega(omega)}"


def results(setup: Setup, records: Sequence[Record]) -> Results:
    """Return the content of ``results.json``."""
    return {
        "settings": setup.settings.as_dict(),
        "test_data": setup.test_data is not None,
        "rows": rows_of(records, "table"),
        "comparisons": comparisons(setup.settings, records),
        "steps": rows_of(records, "steps"),
        "chosen": choices(records),
        "storyboard": min(record["judged"] for record in records),
    }


def rows_of(records: Sequence[Record], kind: str) -> list[Record]:
    """Return one row for each method and ω: means over videos and runs."""
    return [
        {
            "method": method,
            "omega": omega,
            **means_of_runs(SCORES, members),
            "n_frames": float(np.mean([record["n_frames"] for record in members])),
            "n_videos": len(members),
        }
        for (method, omega), members in _tables(records, kind).items()
    ]


def comparisons(settings: Settings, records: Sequence[Record]) -> list[Record]:
    """Return the hero less every other, with paired bootstrap intervals over videos.

    Values of ω are compared with ω = 1 too: what they add to precision and to recall.
    """
    resampling = settings.n_bootstrap, settings.seed
    groups = _tables(records, "table")
    hero: _Key = (HERO, None)
    one: _Key = ("LME+MKR", 1.0)
    pairs = [(hero, key) for key in groups if hero in groups and key != hero]
    if one in groups:
        pairs += [(key, one) for key in groups if key[0] == one[0] and key != one]
    return [
        {
            "method": first[0],
            "omega": first[1],
            "less": second[0],
            "less_omega": second[1],
            **compare(SCORES, groups[first], groups[second], *resampling),
        }
        for first, second in pairs
    ]


def choices(records: Sequence[Record]) -> list[Record]:
    """Return what was chosen for each set of held-out videos."""
    found: dict[str, dict[str, Any]] = {}
    for record in records:
        if "chosen" in record:
            name = "LME+MKR" if record["method"] == HERO else record["method"]
            key = f"{name} {sorted(record['chosen'].items())}"
            start = {"method": name, **record["chosen"], "videos": []}
            videos = found.setdefault(key, start)["videos"]
            if record["judged"] not in videos:
                videos.append(record["judged"])
    return list(found.values())


def _tables(records: Sequence[Record], kind: str) -> dict[_Key, list[Record]]:
    of_kind = (record for record in records if record["kind"] == kind)
    return grouped(of_kind, lambda record: (record["method"], record["omega"]))

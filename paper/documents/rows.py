"""From the scores of single summaries to the rows of the tables."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from paper.documents.claims import ORDERS
from paper.documents.methods import HERO
from paper.documents.settings import Settings, Setup
from paper.experiment import Record, Results
from paper.held_out import (
    compare,
    finite,
    grouped,
    mean_and_error,
    means_of_runs,
)

#: What a row holds, in the order of the pieces.
SCORES = tuple(f"rouge_{n}_{letter}" for n in (1, 2) for letter in "fpr")

#: The test sets that have a figure, and what their numbers are.
ABOUT = {
    "duc 2004 665b": "The paper's protocol: learned on DUC 2003, tested on 2004.",
    "multiling english 250w": "ROUGE-1.5.5 without stemming, as published.",
    "multiling english 665b": "ROUGE-1.5.5 with stemming, 665 bytes, as for DUC 2004.",
    "multiling all languages 250w": "ROUGE for Unicode, as ROUGE-1.5.5 reads English.",
    "fewsum 300c": "Reviews: learned on the training part, tested on the test part.",
}


def sets_of(record: Record) -> list[str]:
    """Return the names of the test sets that a record belongs to."""
    kind, language = record["kind"], record["language"]
    if kind == "duc":
        return ["duc 2004 665b"]
    if kind == "reviews":
        return ["fewsum 300c"]
    if kind == "short":
        return ["multiling english 665b"] if language == "english" else []
    own = f"multiling {language} 250w"
    # The official summaries are in English only.
    if record["method"].startswith("official "):
        return [own]
    return [own, "multiling all languages 250w"]


def results(setup: Setup, records: Sequence[Record]) -> Results:
    """Return the content of ``results.json``."""
    return {
        "settings": setup.settings.as_dict(),
        "rows": table_rows(records),
        "comparisons": comparisons(setup.settings, records),
        "paired": paired_rows(setup.settings, records, ORDERS),
        "omega": omega_rows(records),
        "chosen": choices(records),
        "own_choices": own_choices(records),
    }


def table_rows(records: Sequence[Record]) -> list[Record]:
    """Return one row for each set and method: means over clusters and runs."""
    return [
        {"set": name, "method": method, **means_of_runs(SCORES, members)}
        | {"n_clusters": len(members)}
        for name, methods in _tables(records).items()
        for method, members in methods.items()
        if finite(members)
    ]


def comparisons(settings: Settings, records: Sequence[Record]) -> list[Record]:
    """Return LME+MKR less every other method, with paired bootstrap intervals."""
    return [
        {"set": name, "method": method}
        | compare(SCORES, methods[HERO], others, settings.n_bootstrap, settings.seed)
        for name, methods in _tables(records).items()
        for method, others in methods.items()
        if method != HERO and finite(others)
    ]


def paired_rows(
    settings: Settings, records: Sequence[Record], pairs: Sequence[tuple[str, str]]
) -> list[Record]:
    """Return the same for pairs of methods, the first less the second."""
    resampling = settings.n_bootstrap, settings.seed
    return [
        {"set": name, "first": first, "second": second}
        | compare(SCORES, methods[first], methods[second], *resampling)
        for name, methods in _tables(records).items()
        for first, second in pairs
        if first in methods and second in methods
    ]


def omega_rows(records: Sequence[Record]) -> list[Record]:
    """Return precision, recall and length for each ω, over all clusters."""
    without_budget = (record for record in records if record["kind"] == "omega")
    by_omega = grouped(without_budget, lambda record: float(record["omega"]))
    return [
        {
            "omega": omega,
            **mean_and_error(SCORES, np.array([r["runs"][0] for r in members])),
            "words": float(np.mean([record["words"] for record in members])),
            "n_clusters": len(members),
        }
        for omega, members in sorted(by_omega.items())
    ]


def choices(records: Sequence[Record]) -> list[Record]:
    """Return what was chosen on the training topics of each held-out cluster."""
    chosen = {
        (record["kind"], _held_out(record)): record["chosen"]
        for record in records
        if record["method"] == HERO and "chosen" in record
    }
    return [
        {"kind": kind, "held_out": held_out, "learner": learner, **choice}
        for (kind, held_out), both in sorted(chosen.items())
        for learner, choice in both.items()
    ]


def own_choices(records: Sequence[Record]) -> list[Record]:
    """Return the same for the settings that a method has of its own."""
    chosen = {
        (record["kind"], _held_out(record), record["method"]): record["own"]
        for record in records
        if "own" in record
    }
    return [
        {"kind": kind, "held_out": held_out, "method": method, **choice}
        for (kind, held_out, method), choice in sorted(chosen.items())
    ]


def _held_out(record: Record) -> str:
    """Return the topic that was held out; all reviews are judged after one fit."""
    return "" if record["kind"] == "reviews" else str(record["judged"].split(".")[0])


def _tables(records: Sequence[Record]) -> dict[str, dict[str, list[Record]]]:
    """Return the records of the tables by set and method."""
    of_sets: dict[str, list[Record]] = {}
    for record in records:
        if record["kind"] != "omega":
            for name in sets_of(record):
                of_sets.setdefault(name, []).append(record)
    return {
        name: grouped(members, lambda record: str(record["method"]))
        for name, members in of_sets.items()
    }

"""From the scores of single summaries to the rows of the tables."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from variegate._typing import FloatArray
from variegate.experiments.documents.settings import Settings
from variegate.experiments.statistics import named, paired_bootstrap, standard_errors

__all__ = ["SCORES", "comparisons", "omega_rows", "paired_rows", "table_rows"]

#: What a row holds, in the order of the pieces.
SCORES = tuple(f"rouge_{n}_{letter}" for n in (1, 2) for letter in "fpr")

_HERO = "LME+MKR"

Record = dict[str, Any]


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


def table_rows(records: Sequence[Record]) -> list[dict[str, Any]]:
    """Return one row for each set and method: means over clusters and runs.

    ``se`` is the standard error over the runs of methods that draw samples, as in the
    paper; ``None`` where every run gives the same.
    """
    rows = []
    for name, methods in _tables(records).items():
        for method, of_method in methods.items():
            if not _finite(of_method):
                continue
            runs = _over_runs(of_method)
            rows.append(
                {
                    "set": name,
                    "method": method,
                    **named(SCORES, runs.mean(axis=0)),
                    "se": standard_errors(SCORES, runs),
                    "n_clusters": len(of_method),
                }
            )
    return rows


def comparisons(settings: Settings, records: Sequence[Record]) -> list[dict[str, Any]]:
    """Return LME+MKR less every other method, with paired bootstrap intervals."""
    return [
        {"set": name, "method": method, **_paired(settings, methods[_HERO], others)}
        for name, methods in _tables(records).items()
        for method, others in methods.items()
        if method != _HERO and _finite(others)
    ]


def paired_rows(
    settings: Settings, records: Sequence[Record], pairs: Sequence[tuple[str, str]]
) -> list[dict[str, Any]]:
    """Return the same for pairs of methods, the first less the second."""
    return [
        {
            "set": name,
            "first": first,
            "second": second,
            **_paired(settings, methods[first], methods[second]),
        }
        for name, methods in _tables(records).items()
        for first, second in pairs
    ]


def _paired(
    settings: Settings, first: Sequence[Record], second: Sequence[Record]
) -> dict[str, dict[str, float]]:
    def means(records: Sequence[Record]) -> dict[str, FloatArray]:
        return {r["cluster"]: np.mean(r["runs"], axis=0) for r in records}

    return paired_bootstrap(
        SCORES,
        means(first),
        means(_finite(second)),
        settings.n_bootstrap,
        settings.seed,
    )


def omega_rows(records: Iterable[Record]) -> list[dict[str, Any]]:
    """Return precision, recall and length for each ω, over all clusters."""
    by_omega: dict[float, list[Record]] = {}
    for record in records:
        if record["kind"] == "omega":
            by_omega.setdefault(record["omega"], []).append(record)
    rows = []
    for omega, of_omega in sorted(by_omega.items()):
        scores = np.array([record["runs"][0] for record in of_omega])
        rows.append(
            {
                "omega": omega,
                **named(SCORES, scores.mean(axis=0)),
                "se": standard_errors(SCORES, scores),
                "words": float(np.mean([record["words"] for record in of_omega])),
                "n_clusters": len(of_omega),
            }
        )
    return rows


def _tables(records: Iterable[Record]) -> dict[str, dict[str, list[Record]]]:
    """Return the records of the tables by set and method."""
    grouped: dict[str, dict[str, list[Record]]] = {}
    for record in records:
        if record["kind"] == "omega":
            continue
        for name in sets_of(record):
            grouped.setdefault(name, {}).setdefault(record["method"], []).append(record)
    return grouped


def _finite(records: Sequence[Record]) -> list[Record]:
    """Return the records that have scores: a lone person agrees with nobody."""
    return [record for record in records if np.isfinite(record["runs"]).all()]


def _over_runs(records: Sequence[Record]) -> FloatArray:
    """Return the mean over clusters of each run, (runs, 6)."""
    return np.asarray(np.mean([record["runs"] for record in _finite(records)], axis=0))

"""From the records of all draws to means, standard errors and paired differences."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from paper.experiment import Record, Results
from paper.held_out import grouped
from paper.synthetic.settings import Settings

#: What tells apart the rows of a figure, besides the method.
AXES = {
    "fig1a": "n_train",
    "fig1b": "sigma",
    "fig1b_intercept": "sigma",
    "fig1c": "n_train",
    "fig1c_no_intercept": "n_train",
    "fig1c_anchored": "n_train",
    "clean": "n_train",
    "gap": "variant",
}
METRICS = ("f", "precision", "recall")


def mean_and_error(values: Sequence[float]) -> dict[str, float]:
    """Return the mean over draws and its standard error."""
    array = np.asarray(values, dtype=np.float64)
    error = array.std(ddof=1) / np.sqrt(len(array)) if len(array) > 1 else np.nan
    return {"mean": float(array.mean()), "se": float(error)}


def summarize(settings: Settings, records: Sequence[Record]) -> Results:
    """Return the content of ``results.json``.

    One list of rows a figure; each row has the value of the figure's axis, the
    method, and for every metric the mean over draws and its standard error, against
    the test subsets as observed (``f``, ``precision``, ``recall``) and before the
    noise (``against_clean``).  ``differences`` holds large margin less maximum
    likelihood, paired by draw.
    """
    results: Results = {"settings": settings.as_dict()}
    figures = grouped(records, lambda record: record["figure"])
    for figure, axis in AXES.items():
        if figure not in figures:
            continue
        of_figure = sorted(figures[figure], key=lambda record: record["draw"])
        rows = grouped(of_figure, lambda record: (record["value"], record["method"]))
        results[figure] = [
            {axis: value, "method": method, **_row(members)}
            for (value, method), members in rows.items()
        ]
        results.setdefault("differences", {})[figure] = [
            {axis: value, **_difference(rows[value, "lme"], rows[value, "mle"])}
            for value in dict.fromkeys(value for value, _ in rows)
        ]
    return results


def _row(records: list[Record]) -> dict[str, Any]:
    def means(truth: str) -> dict[str, Any]:
        return {
            name: mean_and_error([record[truth][name] for record in records])
            for name in METRICS
        }

    row = {**means("noisy"), "against_clean": means("clean"), "lam": None}
    if records[0]["lam"] is not None:
        chosen = [record["lam"] for record in records]
        row["lam"] = {**mean_and_error(chosen), "chosen": chosen}
        for name in ("theta_cosine", "theta_length"):
            row[name] = mean_and_error([record[name] for record in records])
    row["f_by_draw"] = [record["noisy"]["f"] for record in records]
    return row


def _difference(first: list[Record], second: list[Record]) -> dict[str, Any]:
    return {
        f"{name}_lme_minus_mle": mean_and_error(
            [
                a["noisy"][name] - b["noisy"][name]
                for a, b in zip(first, second, strict=True)
            ]
        )
        for name in METRICS
    }


def row_of(results: dict[str, Any], figure: str, value: Any, method: str) -> Any:
    """Return the row of a figure at a value of its axis."""
    for row in results[figure]:
        if row[AXES[figure]] == value and row["method"] == method:
            return row
    raise KeyError(f"no row {value!r}, {method!r} in {figure}")


def paired(first: dict[str, Any], second: dict[str, Any]) -> dict[str, float]:
    """Return the difference in F-score of two rows, paired by draw."""
    return mean_and_error(np.subtract(first["f_by_draw"], second["f_by_draw"]).tolist())

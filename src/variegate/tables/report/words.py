"""Sentences that the report has in common as a page and as Markdown."""

from __future__ import annotations

import json
import shlex
from collections import Counter

from variegate.application.description.parts import one_line
from variegate.report.html import count
from variegate.tables.evaluation import Evaluation, Interval
from variegate.tables.report.examples import ExampleGroup, ExampleRow

__all__ = [
    "ABOUT_CURVE",
    "ABOUT_EXAMPLES",
    "ABOUT_KERNEL",
    "ABOUT_SCORES",
    "ABOUT_WEIGHTS",
    "SCORE_NAMES",
    "about_comparison",
    "about_differences",
    "commands",
    "fate",
    "tally",
    "title",
    "verdict",
]

#: What scores are called, in the order in which they are shown.
SCORE_NAMES = {
    "precision": "Precision",
    "recall": "Recall",
    "f": "F-score",
    "size": "Rows chosen",
}

ABOUT_SCORES = (
    "Means over groups. An interval holds the mean of 95 % of samples that are drawn "
    "from these groups with replacement."
)

ABOUT_CURVE = (
    "This is the first of the models; those for other ω have curves of their own."
)

ABOUT_WEIGHTS = (
    "A row has the quality exp(weights · features + intercept). Numbers are "
    "standardised, so that their weights can be compared: one standard deviation more "
    "multiplies the quality by exp(weight). A category counts as 1 or 0."
)

ABOUT_KERNEL = (
    "How alike two rows are is a weighted mean of these similarities. A Gaussian of a "
    "small σ calls only near copies alike, one of a large σ all that is related; the "
    "linear part goes by the angle between vectors."
)

ABOUT_EXAMPLES = (
    "Rows that the model chose, from the first, then wanted rows that it missed, then "
    "the most probable of the others. The probability is that with which a set drawn "
    "from the model holds the row."
)


def title(table: str) -> str:
    """Return the heading of the report."""
    return f"What was learned from {one_line(table)}"


def commands(model: str) -> str:
    """Return how rows are chosen with the model, from a shell and from Python."""
    quoted, name = shlex.quote(model), json.dumps(model, ensure_ascii=False)
    return (
        f"variegate select new.parquet --model {quoted} -o chosen.parquet\n"
        f"variegate describe {quoted}\n\n"
        "import variegate as vg\n"
        f'chosen = vg.load({name}).select("new.parquet")'
    )


def about_differences(model: str) -> str:
    """Return what the table of differences shows."""
    return (
        f"By how much “{one_line(model)}” is above each of the others, group by group: "
        "▲ above and ▼ below with some certainty, ≈ where the 95 % interval holds 0."
    )


def about_comparison(comparison: Evaluation) -> str:
    """Return what the table of ways to choose shows."""
    return (
        f"On the same {count(comparison.n_groups, 'group')}, where "
        f"{comparison.wanted_size:.3g} rows a group are wanted on average, with 95 % "
        "intervals."
    )


def verdict(interval: Interval) -> str:
    """Return a mark for a difference: above, below, or not certain."""
    if interval.low > 0.0:
        return "▲"
    return "▼" if interval.high < 0.0 else "≈"


def fate(row: ExampleRow) -> str:
    """Return what became of a row of an example, in a word or two."""
    if row.rank:
        return "right" if row.is_wanted else "wrong"
    return "missed" if row.is_wanted else "left out"


def tally(group: ExampleGroup) -> str:
    """Return how many rows of an example are right, wrong and missed."""
    found = Counter(map(fate, group.rows))
    return ", ".join(f"{found[word]} {word}" for word in ("right", "wrong", "missed"))

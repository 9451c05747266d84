"""Facts about a fitted selector, for pages, terminals and JSON."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from variegate.application.model_facts import Weight
from variegate.report.wording import (
    abbreviate_runs,
    count,
    find_numbered_runs,
    one_line,
    shorten_middle,
)
from variegate.tables.columns import Columns
from variegate.tables.derived import AGE
from variegate.tables.encoding import BOOSTED_SCORE, FeatureColumn
from variegate.tables.evaluation import Evaluation, Interval
from variegate.tuning.path import PathPoint, format_omega

if TYPE_CHECKING:
    from variegate.tables.selector import TableSelector

#: Names of scores, in the order in which they are shown.
SCORE_NAMES = {
    "precision": "Precision",
    "recall": "Recall",
    "f": "F-score",
    "size": "Rows chosen",
}

#: A vector column with more numbers than this has one weight on show: their length.
LONG_VECTOR = 8

#: Values of a category, or unreadable files, that are listed.
_LISTED = 12

#: Treatments of empty cells.
EMPTY_CELLS = {
    "error": "An empty cell is an error.",
    "mean": "An empty cell counts as the mean of its column, or in a category as none "
    "of the values.",
    "indicator": "An empty cell counts as the mean of its column, or in a category as "
    "none of the values. A column with empty cells in training has one more feature "
    "that marks them.",
}

# Weights and columns ------------------------------------------------------------------


def weights(selector: TableSelector, joins_vectors: bool = True) -> list[Weight]:
    """Return the weights of the quality, those of the largest effect first.

    With ``joins_vectors``, a vector column of more than eight numbers has one weight,
    the norm of its weights; so have more than eight numbered columns (e1, e2, ...).
    """
    values = selector.model_.theta_.tolist()
    found: list[Weight] = []
    for name, columns in group_numbered(selector.encoding_.quality):
        size = sum(column.size for column in columns)
        part, values = values[:size], values[size:]
        is_vector = columns[0].kind == "vector" or len(columns) > 1
        if is_vector and joins_vectors and size > LONG_VECTOR:
            found.append(Weight(name, math.hypot(*part), size))
            continue
        names = [name for column in columns for name in column.names]
        named = list(map(Weight, names, part))
        n_rows = selector.training_["n_learned_rows"]
        for place, n in enumerate(columns[0].counts):
            spread = math.sqrt(n * (n_rows - n)) / n_rows
            named[place] = replace(named[place], n_rows=n, spread=spread)
        found += named
    found += [Weight(BOOSTED_SCORE, value) for value in values]
    return sorted(found, key=lambda weight: -abs(weight.effect))


def group_numbered(
    columns: Sequence[FeatureColumn],
) -> list[tuple[str, Sequence[FeatureColumn]]]:
    """Return pairs of a name and its columns: one, or consecutively numbered ones.

    Numbered columns (e1, e2, ...) have the name "e1 … e9".
    """
    # Only columns of numbers can form a run.
    names = [c.name if c.kind == "number" else "" for c in columns]
    found: list[tuple[str, Sequence[FeatureColumn]]] = []
    for first, end in find_numbered_runs(names):
        name, several = columns[first].name, columns[first:end]
        if len(several) > 1:
            name = f"{name} … {several[-1].name}"
        found.append((name, several))
    return found


def about_columns(selector: TableSelector) -> list[tuple[str, str, str]]:
    """Return role, name and treatment of every column, as texts."""
    columns = selector.columns_
    single = (
        ("group", columns.group, "rows with the same value form a group"),
        ("label", columns.label, "1 in rows that were chosen"),
        ("item", columns.item, "identifies a row in its group"),
        ("cost", columns.cost, "for budgets"),
        ("relevance", columns.relevance, "for untrained methods"),
        ("given", columns.given, "1 in rows that are there already"),
        ("segment", columns.segment, "cuts a group into segments, in their order"),
    )
    rows = [(role, name, how) for role, name, how in single if name is not None]
    encoding = selector.encoding_
    encoded = [("quality", encoding.quality)]
    encoded += [("similarity", block) for block in encoding.blocks.values()]
    for role, features in encoded:
        rows += [
            (role, n, _encoding_text(some, columns))
            for n, some in group_numbered(features)
        ]
        if role == "quality" and encoding.boosting is not None:
            n_trees = len(encoding.boosting.trees)
            text = f"log-odds by {count(n_trees, 'tree')} of the other quality features"
            rows.append((role, BOOSTED_SCORE, text))
    if not encoding.blocks:
        rows.append(("similarity", "", "the quality features are used for both"))
    return rows


def _encoding_text(several: Sequence[FeatureColumn], columns: Columns) -> str:
    """Return a text on how a column, or a run of numbered ones, becomes features."""
    column = several[0]
    size = len(column.mean)
    date = columns.ages.get(column.name.removeprefix(AGE))
    if len(several) > 1:
        text = f"{count(len(several), 'number')}, each standardised"
    elif column.kind == "category":
        listed = abbreviate_list([shorten_middle(level, 24) for level in column.levels])
        text = f"{len(column.levels) + len(column.rare):,} categories: {listed}"
        text += f"; {len(column.rare):,} rare ones count as one" * bool(column.rare)
    elif column.kind == "number":
        days = "" if date is None else f"days before {date}, a "
        text = (
            f"{days}number, standardised (mean {column.mean[0]:.4g}, standard "
            f"deviation {column.scale[0]:.4g})"
        )
    elif column.kind == "vector":
        text = f"vector of {count(size, 'number')}, each standardised"
    else:
        text = f"vector of {count(size, 'number')}, scaled to unit length"
    if column.name in columns.vectors:
        text += f": {', '.join(abbreviate_runs(columns.vectors[column.name]))}"
    has_indicator = any(column.has_indicator for column in several)
    return text + "; one more feature marks empty cells" * has_indicator


def abbreviate_list(names: Sequence[str]) -> str:
    """Join the first ``_LISTED`` names with commas; add the number of the others."""
    rest = len(names) - _LISTED
    return ", ".join(names[:_LISTED]) + (f" and {rest:,} more" if rest > 0 else "")


# Data and training --------------------------------------------------------------------


def about_data(selector: TableSelector) -> dict[str, str]:
    """Return numbers of rows and groups, and names of skipped files, by title."""
    record = selector.training_
    facts = {
        "Rows": f"{record['n_rows']:,}",
        "Groups": f"{record['n_groups']:,}",
        "Rows a group": _range_text(record["group_sizes"]),
        "Chosen a group": _range_text(record["chosen_sizes"]),
        "Fitted on": count(record["n_learned_from"], "group"),
        "Held out": count(record["n_held_out"], "group"),
    }
    if record["n_left_out"]:
        left_out = count(record["n_left_out"], "group")
        facts["Skipped"] = f"{left_out} with nothing chosen"
    if record["unreadable"]:
        names = abbreviate_list(
            [shorten_middle(name, 40) for name in record["unreadable"]]
        )
        facts["Files skipped"] = f"{names}: they could not be read"
    if record["n_judged"] < record["n_held_out"]:
        facts["Scored on"] = (
            f"{record['n_judged']:,} of the held-out groups, drawn at random"
        )
    return facts


def _range_text(sizes: Mapping[str, float]) -> str:
    """Return "MEAN (SMALLEST to LARGEST)", or the one size, as text."""
    if sizes["smallest"] == sizes["largest"]:
        return f"{sizes['largest']:,}"
    return f"{sizes['mean']:.3g} ({sizes['smallest']:,} to {sizes['largest']:,})"


def about_training(selector: TableSelector) -> dict[str, str]:
    """Return the settings of the training and how it ended, as text by title."""
    record, model = selector.training_, selector.model_
    result = model.solver_result_
    n_tuned, n_compared = record["n_tuned"], record["n_compared"]
    tuned = f", chosen by cross-validation on {count(n_tuned, 'group')}"
    given = ", as given"
    if n_compared:
        given = f", by comparison on {count(n_compared, 'group')}"
    facts = {
        "λ (weight of the margin)": f"{selector.lam_:g}{tuned if n_tuned else given}"
        + (": maximum likelihood" if selector.lam_ == 0.0 else ""),
        "ω (cost of a missed row relative to a wrong one)": format_omega(
            selector.omega_
        )
        + (tuned if n_tuned else ""),
    }
    facts["Kernel"] = type(model.kernel_).__name__
    if record["n_sample"]:
        facts["Sample"] = f"learned from {count(record['n_sample'], 'group')}"
    facts |= {
        "Rows are chosen": str(selector.policy_),
        "Penalty on the weights": f"{model.l2:g}",
        "Ended": result.status,
        "Iterations": f"{result.n_iterations:,}",
        "Objective": f"{result.objective:.5g}",
    }
    if result.remedy:
        facts["Remedy"] = result.remedy
    return facts


# Scores -------------------------------------------------------------------------------


def held_out_scores(selector: TableSelector) -> dict[str, Interval]:
    """Return held-out scores by a key of ``SCORE_NAMES``; {} if none were held out."""
    found = selector.training_["validation"] or {}
    return {name: Interval(*values) for name, values in found.items()}


def score_text(name: str, value: float) -> str:
    """Return a score or error as text, of 2 decimals for "size" and "kinds", else 3."""
    return f"{value:.{2 if name in ('size', 'kinds') else 3}f}"


def interval_text(name: str, interval: Interval) -> str:
    """Return "LOW to HIGH" for the interval of the score ``name``."""
    return f"{score_text(name, interval.low)} to {score_text(name, interval.high)}"


def scores_in_words(selector: TableSelector) -> str:
    """Return in a sentence or two how well the model does on new groups."""
    record = selector.training_
    means = {
        name: interval.mean for name, interval in held_out_scores(selector).items()
    }
    if means:
        groups = count(record["n_judged"], "group")
        return (
            f"On {groups} that the model did not learn from, {_performance_text(means)}"
        )
    if record["tuned"] is not None:
        groups = count(record["n_tuned"], "group")
        return (
            f"In cross-validation on {groups}, "
            f"{_performance_text(record['tuned'])} λ and ω "
            "were chosen by these scores; new groups may score slightly lower."
        )
    return (
        "No groups were held out, so this training does not show how well the model "
        "does on new groups."
    )


def verdict(selector: TableSelector, comparison: Evaluation | None) -> list[str]:
    """Return sentences on the model's scores, better methods, and what to mend."""
    sentences = [scores_in_words(selector)]
    if comparison is not None and len(comparison.scores) > 1:
        sentences.append(_comparison_text(comparison))
    if remedy := selector.model_.solver_result_.remedy:
        sentences.append(f"Learning did not converge. {remedy}.")
    return sentences


def _comparison_text(comparison: Evaluation) -> str:
    """Return sentences on whether the best other method is worse than the model."""
    means = {n: found["f"].mean for n, found in comparison.intervals().items()}
    others = comparison.differences(comparison.reference)
    best = max(others, key=lambda name: means[name])
    less = others[best]["f"]
    how = "is not clearly better or worse"
    if less.low > 0.0:
        how = "is clearly worse"
    elif less.high < 0.0:
        how = "is clearly better: use it, or give more groups or other columns"
    return (
        f"The best other method, {one_line(best)}, {how}. Its F-score is "
        f"{means[best]:.3f}; that of the model is {means[comparison.reference]:.3f} "
        f"(difference {less.mean:+.3f}, 95 % interval {less.low:+.3f} to "
        f"{less.high:+.3f})."
    )


def _performance_text(means: Mapping[str, float]) -> str:
    """Return size, precision and recall in two sentences."""
    return (
        f"it chose {means['size']:.3g} rows a group. Of these, "
        f"{100.0 * means['precision']:.0f} % was wanted (precision). Of the wanted "
        f"rows it chose {100.0 * means['recall']:.0f} % (recall)."
    )


def path_points(selector: TableSelector) -> tuple[PathPoint, ...]:
    """Return held-out scores, one point for each omega; () if nothing was held out."""
    return () if selector.path_ is None else selector.path_.points


def about_path(selector: TableSelector) -> str:
    """Return sentences on the meaning of omega, and the origin of scores by omega."""
    rule = str(selector.policy_)
    groups = count(selector.training_["n_judged"], "held-out group")
    return (
        "ω is the cost of a missed row relative to a wrong one. By default, ω = "
        f"{format_omega(selector.omega_)}, the model chooses {rule}. Another ω moves "
        "the end of this ranking: a larger one chooses the same rows and more. "
        f"Scores on {groups}."
    )

"""The description of a fitted selector, for terminals, notebooks and JSON."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from itertools import compress
from typing import TYPE_CHECKING, Any, NamedTuple

from variegate.application.description import (
    Description,
    DescriptionSection,
    kinds_in_words,
    lower_first_letter,
    model_numbers,
)
from variegate.application.model_facts import (
    LearnedKernel,
    alike_in_words,
    learned_parts,
    metric_shares,
)
from variegate.kernels import Kinds, Metric
from variegate.report.wording import count, one_line, percent, shorten_middle
from variegate.tables.encoding import FeatureColumn
from variegate.tables.report import facts
from variegate.tuning.kernel_search import BOOSTED
from variegate.tuning.path import format_omega

if TYPE_CHECKING:
    from variegate.tables.selector import TableSelector

#: Parts of a training record that have a place of their own among the numbers.
_APART = ("history", "kinds", "path", "validation", "tuned", "omega")

#: A gain of F-score that is not worth mentioning.
_LEVEL = 0.005

_REGRESSION = "logistic regression"

#: Kinds with less of the rows are not shown one by one.
_RARE = 0.005

#: Parts of a mixture with less weight are not shown at all.
_SLIGHT = 0.005

#: Kinds that are shown one by one, at most.
_MOST_KINDS = 32

#: Features of a metric that are shown.
MOST_FEATURES = 12

#: Typical rows of a kind that are shown; the record has more.
_SHOWN = 3

_TITLE = "learned similarity"


def describe(selector: TableSelector) -> Description:
    """Return the data, scores, weights and settings of a fitted selector."""
    return Description(
        selector.model_,
        facts.weights(selector),
        [
            _score_section(selector),
            _path_section(selector),
            _comparison_section(selector),
        ],
        _description_numbers(selector),
        [
            *_similarity_sections(selector),
            DescriptionSection("training data", facts.about_data(selector)),
            DescriptionSection("training", facts.about_training(selector)),
            DescriptionSection(
                "columns",
                rows=facts.about_columns(selector),
                words=[facts.EMPTY_CELLS[selector.encoding_.missing]],
                longest=(30, 30, 110),
            ),
        ],
    )


def _score_section(selector: TableSelector) -> DescriptionSection:
    """Return the section of held-out scores, without rows if there are none."""
    rows = [
        (
            lower_first_letter(facts.SCORE_NAMES[name]),
            facts.score_text(name, interval.mean),
            facts.interval_text(name, interval),
        )
        for name, interval in facts.held_out_scores(selector).items()
    ]
    at = f"omega = {format_omega(selector.omega_)}"
    if selector.k_ is not None:
        at = f"k = {selector.k_}"
    title = f"on {selector.training_['n_judged']:,} held-out groups, at {at}"
    return DescriptionSection(
        title, rows=[("", "mean", "95 % interval"), *rows] if rows else []
    )


def _path_section(selector: TableSelector) -> DescriptionSection:
    """Return the section on precision and recall by omega, empty if not measured."""
    words = []
    if facts.path_points(selector):
        words = [facts.about_path(selector), *str(selector.path_).splitlines()]
    return DescriptionSection("precision and recall by omega", words=words)


# Candidates that were compared --------------------------------------------------------


def _comparison_section(selector: TableSelector) -> DescriptionSection:
    """Return the section of candidates, their F-scores, and why the first won."""
    compared = selector.training_["compared"]
    kernels = list(compared.get("kernels", []))
    others = [
        entry | {"name": f"… {entry['name']}"}
        for entry in compared.get("settings", [])
        if entry["name"] != "as it is"
    ]
    rows = [
        (
            str(entry["name"]),
            _rule_text(entry),
            f"{entry['f']:.3f}",
            _margin_text(entry) if entry["behind"] else "",
            f"{entry['n_groups']:,}",
        )
        for entry in kernels + others
    ]
    heads = [("", "decoder", "F", "behind", "groups")] if rows else []
    words = [" ".join(_explain_choice(selector, kernels))] if kernels else []
    return DescriptionSection("compared models", rows=[*heads, *rows], words=words)


def _explain_choice(
    selector: TableSelector, kernels: list[dict[str, Any]]
) -> list[str]:
    """Return sentences on why the first candidate was chosen."""
    first = kernels[0]
    is_regression = first["name"].removesuffix(BOOSTED) == _REGRESSION
    named = f"“{first['name']}” ({_rule_text(first)})"
    if is_regression:
        named = f"a logistic regression followed by {_rule_text(first)}"
    n_groups = selector.training_["n_compared"]
    words = [
        f"In cross-validation on {count(n_groups, 'group')}, {named} did best: "
        f"F {first['f']:.3f}."
    ]
    rival = next((e for e in kernels if e["name"] == _REGRESSION), None)
    if is_regression:
        words.append(
            "Learning a similarity did not pay here. The model starts from the "
            "regression: it has the regression's weights, and the similarity of the "
            "unweighted features."
        )
    elif rival is not None:
        error, rule = 1.96 * (rival["error"] or 0.0), _rule_text(rival)
        if rival["behind"] < max(_LEVEL, error):
            words.append(
                "This is not a clear gain over a logistic regression followed by "
                f"{rule}: {_margin_text(rival, 1.96)} above it."
            )
        else:
            words.append(
                f"This is {_margin_text(rival, 1.96)} above a logistic regression "
                f"followed by {rule}."
            )
    if selector.encoding_.boosting is not None:
        words.append("The quality has a boosted score, the log-odds of boosted trees.")
    elif selector.quality_model == "auto":
        words.append("A boosted score was tried too, without a clear gain.")
    if selector.policy_.fallback is not None:
        words.append(
            "A second model without learned kinds serves groups unlike these: groups "
            "further from the learned kinds than random rows."
        )
    return words


def _rule_text(entry: Mapping[str, Any]) -> str:
    """Return the decoder or method of a candidate, with k if that is fixed."""
    how = str(entry["how"])
    return how if entry["k"] is None else f"{how}, k = {entry['k']}"


def _margin_text(entry: Mapping[str, Any], factor: float = 1.0) -> str:
    """Return how far F is behind the first, ± its standard error times a factor."""
    if entry["error"] is None:
        return f"{entry['behind']:.3f}"
    return f"{entry['behind']:.3f} ± {factor * entry['error']:.3f}"


# Numbers ------------------------------------------------------------------------------


def _description_numbers(selector: TableSelector) -> dict[str, Any]:
    """Return the facts of the description as plain values, for JSON."""
    result = selector.model_.solver_result_
    record = selector.training_
    encoding = selector.encoding_
    scores = facts.held_out_scores(selector)
    found = {name: interval._asdict() for name, interval in scores.items()}
    return {
        "data": {name: value for name, value in record.items() if name not in _APART},
        "columns": {
            **asdict(selector.columns_),
            "encoded": {
                "quality": [_column_numbers(column) for column in encoding.quality],
                "has_boosted_score": encoding.boosting is not None,
                "similarity": {
                    name: [_column_numbers(column) for column in block]
                    for name, block in encoding.blocks.items()
                },
            },
        },
        "lam": selector.lam_,
        "omega": selector.omega_,
        "k": selector.k_,
        "ordering": selector.policy_.encode()["ordering"],
        "has_fallback": selector.policy_.fallback is not None,
        "validation": found or record["validation"],
        "path": record["path"],
        "weights": selector.weights_,
        **model_numbers(selector.model_),
        **_similarity_numbers(selector),
        "history": record["history"],
        "training": {
            "stop": result.stop.value,
            "status": result.status,
            "remedy": result.remedy,
            "objective": result.objective,
            "n_iterations": result.n_iterations,
        },
    }


def _column_numbers(column: FeatureColumn) -> dict[str, Any]:
    """Return an encoded column as values for JSON."""
    return {
        "name": column.name,
        "kind": column.kind,
        "n_features": column.size,
        "levels": list(column.levels),
        "rare": list(column.rare),
        "counts": list(column.counts),
        "has_indicator": column.has_indicator,
    }


# The learned similarity --------------------------------------------------------------


class KindTable(NamedTuple):
    """The common kinds of a training record, and sentences about all of them.

    A row is the number of a kind, its share of the rows, how many are in a group and
    how many of these are chosen, what its rows have in common, and records of typical
    rows.
    """

    block: str | None
    words: str
    rows: list[tuple[str, float, str, str, str, list[dict[str, Any]]]]

    @property
    def has_traits(self) -> bool:
        """Whether any kind has something in common."""
        return any(common for *_, common, _ in self.rows)


def kind_tables(selector: TableSelector) -> list[KindTable]:
    """Return a table for each kernel of kinds, without slight ones and rare kinds."""
    tables = []
    for record in selector.training_.get("kinds", ()):
        if record["weight"] < _SLIGHT:
            continue
        n_rows, n_groups = record["n_rows"], record["n_groups"]
        kinds = sorted(enumerate(record["kinds"]), key=lambda kind: -kind[1]["share"])
        rows = [
            (
                str(number),
                kind["share"],
                f"{kind['share'] * n_rows / n_groups:.2f}",
                f"{kind['chosen']:.2f}",
                ", ".join(map(_trait_text, kind["traits"])),
                kind["typical"][:_SHOWN],
            )
            for number, kind in kinds
            # A kind without typical rows is not the most probable one of any row.
            if kind["share"] >= _RARE and kind["typical"]
        ][:_MOST_KINDS]
        words = " ".join(_about_kinds(record, len(rows)))
        tables.append(KindTable(record["block"], words, rows))
    return tables


def _trait_text(trait: Mapping[str, Any]) -> str:
    """Return "NAME MEAN (all: MEAN)" of a feature in a kind, shares for a category."""
    write = percent if trait["is_share"] else "{:.4g}".format
    mean, overall = write(trait["mean"]), write(trait["overall"])
    return f"{one_line(trait['name'])} {mean} (all: {overall})"


def _about_kinds(record: Mapping[str, Any], n_shown: int) -> list[str]:
    """Return sentences on how many kinds are used and not shown, and how alike."""
    n_kinds = len(record["kinds"])
    n_groups = count(record["n_groups"], "group")
    seen = f"{count(record['n_rows'], 'training row')} of {n_groups}"
    words = [
        f"About {record['effective']:.3g} of {count(n_kinds, 'kind')} are in use (the "
        f"exponential of the entropy of their shares), measured on {seen}."
    ]
    rest = n_kinds - n_shown
    if rest:
        words.append(
            f"{count(rest, 'kind')} with hardly any rows "
            f"{'is' if rest == 1 else 'are'} not shown."
        )
    words.append(alike_in_words(record["epsilon"]))
    if record["weight"] < 1.0 - _SLIGHT:
        words.append(
            f"The kinds are {percent(record['weight'])} of the similarity; its other "
            "parts may differ."
        )
    return words


def row_name(row: Mapping[str, Any]) -> str:
    """Return the name of a typical row: item, or row number, and group if any."""
    name = f"row {row['row']:,}" if row["item"] is None else one_line(row["item"])
    return name if row["group"] is None else f"{name} ({one_line(row['group'])})"


def metric_tables(
    selector: TableSelector,
) -> list[tuple[str | None, list[tuple[str, float]]]]:
    """Return for each metric its block, None if single, and (feature, share) pairs."""
    return [
        (metric.kernel.block, _feature_shares(selector, metric))
        for metric in learned_parts(selector.model_, Metric)
        if metric.weight >= _SLIGHT
    ]


def _feature_shares(
    selector: TableSelector, metric: LearnedKernel[Metric]
) -> list[tuple[str, float]]:
    """Return pairs of a feature and its share in a metric, the largest first.

    Those of a vector column of more than eight numbers are taken together, unless it
    is the only one.
    """
    encoding, block = selector.encoding_, metric.kernel.block
    columns = encoding.quality
    if encoding.blocks:
        columns = encoding.blocks[block or next(iter(encoding.blocks))]
    shares = metric_shares(metric).tolist()
    found = []
    for name, several in facts.group_numbered(columns):
        size = sum(column.size for column in several)
        part, shares = shares[:size], shares[size:]
        is_long = several[0].kind != "category" and size > facts.LONG_VECTOR
        if is_long and len(columns) > len(several):
            found.append((f"{name} ({size} numbers)", sum(part)))
        else:
            names = [name for column in several for name in column.names]
            found += zip(names, part, strict=True)
    return sorted(found, key=lambda share: -share[1])


def _similarity_numbers(selector: TableSelector) -> dict[str, Any]:
    """Return "kinds" and "metrics" as values for JSON, each only if there are any."""
    metrics = [
        {
            "block": metric.kernel.block,
            "weight": metric.weight,
            "features": dict(_feature_shares(selector, metric)),
        }
        for metric in learned_parts(selector.model_, Metric)
    ]
    found = {"kinds": selector.training_.get("kinds"), "metrics": metrics}
    return {name: several for name, several in found.items() if several}


def _similarity_sections(selector: TableSelector) -> list[DescriptionSection]:
    """Return the sections on learned kinds and metrics."""
    found = []
    if "kinds" not in selector.training_:
        for kinds in learned_parts(selector.model_, Kinds):
            found.append(
                DescriptionSection(_TITLE, words=[kinds_in_words(kinds, "row")])
            )
    for table in kind_tables(selector):
        rows: list[tuple[str, ...]] = [
            ("kind", "share", "in a group", "chosen", "in common", "most typical")
        ]
        for number, kind_share, offered, chosen, common, typical in table.rows:
            names = ", ".join(shorten_middle(row_name(row), 30) for row in typical)
            # The number of a row says nothing where something else does.
            names = "" if common and selector.columns_.item is None else names
            rows.append((number, percent(kind_share), offered, chosen, common, names))
        # Without the columns that say nothing about any kind.
        said = [any(cells[1:]) for cells in zip(*rows, strict=True)]
        rows = [tuple(compress(row, said)) for row in rows]
        title = _TITLE if table.block is None else f"{_TITLE}: kinds of {table.block}"
        found.append(DescriptionSection(title, rows=rows, words=[table.words]))
    for _, shares in metric_tables(selector):
        rows = [(shorten_middle(name, 40), percent(share)) for name, share in shares]
        left = len(rows) - MOST_FEATURES
        rest = [f"{count(left, 'more feature')} not shown."] if left > 0 else []
        title = f"{_TITLE}: features of the metric"
        found.append(DescriptionSection(title, rows=rows[:MOST_FEATURES], words=rest))
    return found

"""The description of a fitted selector, for terminals, notebooks and JSON."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from variegate.application.description import (
    Description,
    DescriptionSection,
    in_a_line,
    model_numbers,
)
from variegate.report.wording import count
from variegate.tables.encoding import FeatureColumn
from variegate.tables.report import facts, similarity
from variegate.tuning.path import omega_name

if TYPE_CHECKING:
    from variegate.tables.selector import TableSelector

#: Parts of a training record that have a place of their own among the numbers.
_APART = ("history", "kinds", "path", "validation", "omega")

#: A gain of F-score that is not worth mentioning.
_LEVEL = 0.005

_REGRESSION = "logistic regression"


def describe(selector: TableSelector) -> Description:
    """Return the data, scores, weights and settings of a fitted selector."""
    return Description(
        selector.model_,
        facts.weights(selector),
        [_scores(selector), _path(selector), _compared(selector)],
        _numbers(selector),
        [
            *similarity.sections(selector),
            DescriptionSection("learned from", facts.about_data(selector)),
            DescriptionSection("training", facts.about_training(selector)),
            DescriptionSection(
                "columns",
                rows=facts.about_columns(selector),
                words=[facts.EMPTY_CELLS[selector.encoding_.missing]],
                longest=(30, 30, 110),
            ),
        ],
    )


def _scores(selector: TableSelector) -> DescriptionSection:
    rows = [
        (
            in_a_line(facts.SCORE_NAMES[name]),
            facts.score(name, interval.mean),
            facts.between(name, interval),
        )
        for name, interval in facts.validation(selector).items()
    ]
    at = f"omega = {omega_name(selector.omega_)}"
    if selector.k_ is not None:
        at = f"k = {selector.k_}"
    title = f"on {selector.training_['n_judged']:,} held-out groups, at {at}"
    return DescriptionSection(
        title, rows=[("", "mean", "95 % interval"), *rows] if rows else []
    )


def _path(selector: TableSelector) -> DescriptionSection:
    words = []
    if facts.path_points(selector):
        words = [facts.about_path(selector), *str(selector.path_).splitlines()]
    return DescriptionSection("from precision to recall", words=words)


# Candidates that were compared --------------------------------------------------------


def _compared(selector: TableSelector) -> DescriptionSection:
    """Return the F-scores of the candidates, and why the first was chosen."""
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
            _rule(entry),
            f"{entry['f']:.3f}",
            _margin(entry) if entry["behind"] else "",
            f"{entry['n_groups']:,}",
        )
        for entry in kernels + others
    ]
    heads = [("", "chosen by", "F", "behind", "groups")] if rows else []
    words = [" ".join(_why(selector, kernels))] if kernels else []
    return DescriptionSection("what was compared", rows=[*heads, *rows], words=words)


def _why(selector: TableSelector, kernels: list[dict[str, Any]]) -> list[str]:
    """Return sentences on what won, and by how much."""
    first = kernels[0]
    is_regression = first["name"] == _REGRESSION
    named = f"“{first['name']}” ({_rule(first)})"
    if is_regression:
        named = f"a logistic regression followed by {_rule(first)}"
    n_groups = selector.training_["n_compared"]
    words = [
        f"On {count(n_groups, 'group')}, held out in turn, "
        f"these were compared, and {named} did best: F {first['f']:.3f}."
    ]
    rival = next((e for e in kernels if e["name"] == _REGRESSION), None)
    if is_regression:
        words.append(
            "Learning a similarity did not pay here. The model starts from the "
            "regression: it has its weights, and the similarity of the features as "
            "they are."
        )
    elif rival is not None:
        error, rule = 1.96 * (rival["error"] or 0.0), _rule(rival)
        if rival["behind"] < max(_LEVEL, error):
            words.append(
                "That is no clear gain over a logistic regression followed by "
                f"{rule}: {_margin(rival, 1.96)} above it."
            )
        else:
            words.append(
                f"That is {_margin(rival, 1.96)} above a logistic regression followed "
                f"by {rule}."
            )
    if selector.policy_.fallback is not None:
        words.append(
            "Groups that are unlike all of these, further from the learned kinds than "
            "rows at random, are chosen from by a second model without learned kinds."
        )
    return words


def _rule(entry: Mapping[str, Any]) -> str:
    how = str(entry["how"])
    return how if entry["k"] is None else f"{how}, k = {entry['k']}"


def _margin(entry: Mapping[str, Any], factor: float = 1.0) -> str:
    """Return the distance to the first, ± its standard error times a factor."""
    if entry["error"] is None:
        return f"{entry['behind']:.3f}"
    return f"{entry['behind']:.3f} ± {factor * entry['error']:.3f}"


# Numbers ------------------------------------------------------------------------------


def _numbers(selector: TableSelector) -> dict[str, Any]:
    result = selector.model_.solver_result_
    record = selector.training_
    encoding = selector.encoding_
    scores = facts.validation(selector)
    found = {name: interval._asdict() for name, interval in scores.items()}
    return {
        "data": {name: value for name, value in record.items() if name not in _APART},
        "columns": {
            **asdict(selector.columns_),
            "encoded": {
                "quality": [_column_numbers(column) for column in encoding.quality],
                "similarity": {
                    name: [_column_numbers(column) for column in block]
                    for name, block in encoding.blocks.items()
                },
            },
        },
        "lam": selector.lam_,
        "omega": selector.omega_,
        "omegas": list(selector.omegas_),
        "k": selector.k_,
        "ordering": selector.policy_.encode()["ordering"],
        "has_fallback": selector.policy_.fallback is not None,
        "validation": found or record["validation"],
        "path": record["path"],
        "weights": selector.weights_,
        **model_numbers(selector.model_),
        **similarity.similarity_numbers(selector),
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
    return {
        "name": column.name,
        "kind": column.kind,
        "n_features": column.size,
        "levels": list(column.levels),
        "has_indicator": column.has_indicator,
    }

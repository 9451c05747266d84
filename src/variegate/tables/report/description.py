"""What there is to say about a fitted selector, for a terminal and for programs."""

from __future__ import annotations

import textwrap
from collections.abc import Mapping
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from variegate.application.description.model import (
    Description,
    Section,
    model_numbers,
)
from variegate.report.words import shortened
from variegate.tables.encoding import FeatureColumn
from variegate.tables.report import facts, similarity
from variegate.tables.report.choice import compared_rows, compared_words

if TYPE_CHECKING:
    from variegate.tables.selector import TableSelector

__all__ = ["describe"]

#: What of a training record has a place of its own among the numbers.
_APART = ("history", "kinds", "path", "validation", "omega")


def describe(selector: TableSelector) -> Description:
    """Return what a selector was learned from, how well it does, and its weights."""
    columns = [
        (part, shortened(name, 30), shortened(how, 110))
        for part, name, how in facts.about_columns(selector)
    ]
    return Description(
        selector.model_,
        facts.weights(selector),
        [_scores(selector), _path(selector), _compared(selector)],
        _numbers(selector),
        [
            *similarity.sections(selector),
            Section("learned from", _rows(facts.about_data(selector))),
            Section("training", _rows(facts.about_training(selector))),
            Section(
                "columns", columns, [facts.EMPTY_CELLS[selector.encoding_.missing]]
            ),
        ],
    )


def _rows(about: Mapping[str, str]) -> list[tuple[str, str]]:
    return [(_within_a_line(name), value) for name, value in about.items()]


def _within_a_line(name: str) -> str:
    """Return a name without its capital, unless that is a letter by itself."""
    return name if name[1:2] == "-" else name[:1].lower() + name[1:]


def _compared(selector: TableSelector) -> Section:
    rows = compared_rows(selector)
    lines = textwrap.wrap(compared_words(selector), 86)
    heads = [("", "chosen by", "F", "behind", "groups")] if rows else []
    return Section("what was compared", [*heads, *rows], lines)


def _scores(selector: TableSelector) -> Section:
    found = facts.validation(selector)
    groups = facts.n_judged(selector.training_)
    rows = [("", "mean", "95 % interval")] if found else []
    for name, interval in found.items():
        label = _within_a_line(facts.SCORE_NAMES[name])
        rows.append(
            (label, facts.score(name, interval.mean), facts.between(name, interval))
        )
    at = f"omega = {facts.omega_name(selector.omega_)}"
    if selector.k_ is not None:
        at = f"k = {selector.k_}"
    return Section(f"on {groups:,} held-out groups, at {at}", rows)


def _path(selector: TableSelector) -> Section:
    lines = []
    if facts.path_points(selector):
        lines = textwrap.wrap(facts.about_path(selector), 86)
        lines += str(selector.path_).splitlines()
    return Section("from precision to recall", lines=lines)


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
        "ordering": selector.ordering_ and asdict(selector.ordering_),
        "has_elsewhere": selector.fallback_ is not None,
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

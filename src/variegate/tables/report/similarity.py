"""The learned similarity of a selector: its kinds, and the features of a metric."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from variegate.application.description import DescriptionSection, kinds_in_words
from variegate.application.model_facts import (
    LearnedKernel,
    alike_in_words,
    learned_kinds,
    learned_metrics,
    metric_shares,
)
from variegate.kernels import Metric
from variegate.report.page import Cell, Row
from variegate.report.wording import count, one_line, percent, shortened
from variegate.tables.report import facts

if TYPE_CHECKING:
    from variegate.tables.selector import TableSelector

#: Kinds with less of the rows are not shown one by one.
_RARE = 0.005

#: Parts of a mixture with less weight are not shown at all.
_SLIGHT = 0.005

#: Kinds that are shown one by one, at most.
_MOST_KINDS = 32

#: Features of a metric that are shown.
_MOST_FEATURES = 12

#: Typical rows of a kind that are shown; the record has more.
_SHOWN = 3

_TITLE = "what the model takes for the same"


# Facts --------------------------------------------------------------------------------


def records(selector: TableSelector) -> list[dict[str, Any]]:
    """Return the records of the kinds that count, if any were learned."""
    found = selector.training_.get("kinds", ())
    return [record for record in found if record["weight"] >= _SLIGHT]


def _metrics(selector: TableSelector) -> list[LearnedKernel[Metric]]:
    metrics = learned_metrics(selector.model_)
    return [metric for metric in metrics if metric.weight >= _SLIGHT]


def typical(selector: TableSelector) -> list[int]:
    """Return the rows of the training table that a report shows of kinds, from 0."""
    return sorted(
        {
            row["row"] - 1
            for record in records(selector)
            for _, kind in _common(record)
            for row in kind["typical"][:_SHOWN]
        }
    )


def _common(record: Mapping[str, Any]) -> list[tuple[int, Mapping[str, Any]]]:
    """Return kinds with their numbers, the most common first.

    Without rare ones, and those that no row is of more than of another.
    """
    kinds = sorted(enumerate(record["kinds"]), key=lambda kind: -kind[1]["share"])
    return [
        (number, kind)
        for number, kind in kinds
        if kind["share"] >= _RARE and kind["typical"]
    ][:_MOST_KINDS]


def _about_kinds(record: Mapping[str, Any]) -> list[str]:
    """Return sentences about the kinds of a record."""
    kinds = record["kinds"]
    seen = f"{count(record['n_rows'], 'row')} of {count(record['n_groups'], 'group')}"
    words = [
        f"Of {count(len(kinds), 'kind')}, about {record['effective']:.3g} are in use "
        f"(the exponential of the entropy of their shares), as {seen} that the model "
        "learned from show."
    ]
    rest = len(kinds) - len(_common(record))
    if rest:
        words.append(
            f"{count(rest, 'kind')} with hardly any rows "
            f"{'is' if rest == 1 else 'are'} left out."
        )
    words.append(alike_in_words(record["apart"]))
    if record["weight"] < 1.0 - _SLIGHT:
        words.append(
            f"The kinds are {percent(record['weight'])} of the similarity; other parts "
            "of it may say otherwise."
        )
    return words


def feature_shares(
    selector: TableSelector, metric: LearnedKernel[Metric]
) -> list[tuple[str, float]]:
    """Return the share of each feature in a metric, the largest first.

    Those of a vector column of more than eight numbers are taken together, unless it
    is the only one.
    """
    encoding, block = selector.encoding_, metric.kernel.block
    columns = encoding.quality
    if encoding.blocks:
        columns = encoding.blocks[block or next(iter(encoding.blocks))]
    shares = metric_shares(metric).tolist()
    found = []
    for name, several in facts.together(columns):
        size = sum(column.size for column in several)
        part, shares = shares[:size], shares[size:]
        is_long = several[0].kind != "category" and size > facts.LONG_VECTOR
        if is_long and len(columns) > len(several):
            found.append((f"{name} ({size} numbers)", sum(part)))
        else:
            names = [name for column in several for name in column.names]
            found += zip(names, part, strict=True)
    return sorted(found, key=lambda share: -share[1])


def similarity_numbers(selector: TableSelector) -> dict[str, Any]:
    """Return kinds and metrics for programs, nothing for other kernels."""
    metrics = [
        {
            "block": metric.kernel.block,
            "weight": metric.weight,
            "features": dict(feature_shares(selector, metric)),
        }
        for metric in learned_metrics(selector.model_)
    ]
    found = {"kinds": selector.training_.get("kinds"), "metrics": metrics}
    return {name: several for name, several in found.items() if several}


# On a terminal ------------------------------------------------------------------------


def sections(selector: TableSelector) -> list[DescriptionSection]:
    """Return kinds and metrics as a terminal shows them."""
    found = []
    if "kinds" not in selector.training_:
        for kinds in learned_kinds(selector.model_):
            found.append(
                DescriptionSection(_TITLE, words=[kinds_in_words(kinds, "row")])
            )
    for record in records(selector):
        rows: list[tuple[str, ...]] = [
            ("kind", "share", "in a group", "chosen", "most typical")
        ]
        for number, kind in _common(record):
            names = [shortened(_name(row), 30) for row in kind["typical"][:_SHOWN]]
            rows.append((str(number), *_amounts(record, kind), ", ".join(names)))
        block = record["block"]
        title = _TITLE if block is None else f"{_TITLE}: kinds of {block}"
        words = [" ".join(_about_kinds(record))]
        found.append(DescriptionSection(title, rows=rows, words=words))
    for metric in _metrics(selector):
        shares = feature_shares(selector, metric)
        rows = [(shortened(name, 40), percent(share)) for name, share in shares]
        left = len(rows) - _MOST_FEATURES
        rest = [f"{count(left, 'more feature')} left out."] if left > 0 else []
        title = f"{_TITLE}: the features that the metric goes by"
        found.append(DescriptionSection(title, rows=rows[:_MOST_FEATURES], words=rest))
    return found


def _name(row: Mapping[str, Any]) -> str:
    """Return the name of a typical row: its item and group, or its place."""
    name = f"row {row['row']:,}" if row["item"] is None else one_line(row["item"])
    return name if row["group"] is None else f"{name} ({one_line(row['group'])})"


def _amounts(
    record: Mapping[str, Any], kind: Mapping[str, Any]
) -> tuple[str, str, str]:
    """Return the share of a kind, and how many are in a group and chosen from it."""
    offered = kind["share"] * record["n_rows"] / record["n_groups"]
    return percent(kind["share"]), f"{offered:.2f}", f"{kind['chosen']:.2f}"


# On a page ----------------------------------------------------------------------------


def contents(
    selector: TableSelector, cells: Mapping[int, Sequence[str]]
) -> dict[str, Any]:
    """Return kinds and metrics for a page, with the cells of typical rows."""
    return {
        "kinds": [
            {
                "title": one_line(record["block"] or ""),
                "words": " ".join(_about_kinds(record)),
                "rows": _page_rows(record, cells),
            }
            for record in records(selector)
        ],
        "metrics": [
            {
                "title": one_line(metric.kernel.block or ""),
                "rows": [
                    Row([one_line(name), Cell(percent(share), share=share)])
                    for name, share in feature_shares(selector, metric)[:_MOST_FEATURES]
                ],
            }
            for metric in _metrics(selector)
        ],
    }


def _page_rows(
    record: Mapping[str, Any], cells: Mapping[int, Sequence[str]]
) -> list[Row]:
    """Return for every kind some typical rows, the first with its amounts."""
    rows = []
    for number, kind in _common(record):
        share, offered, chosen = _amounts(record, kind)
        before: list[Cell | str] = [
            str(number),
            Cell(share, share=kind["share"]),
            offered,
            chosen,
        ]
        shown = [
            cells.get(row["row"] - 1, (_name(row),)) for row in kind["typical"][:_SHOWN]
        ]
        for row in shown:
            rows.append(Row([*before, *row], "" if before[0] else "more"))
            before = ["", "", "", ""]
    return rows

"""Why the model is what it is: what was compared, and by how much it won."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from variegate.report.words import count

if TYPE_CHECKING:
    from variegate.tables.selector import TableSelector

__all__ = ["compared_rows", "compared_words", "how_chosen"]

#: A gain that a reader would not call one.
_LEVEL = 0.005


def how_chosen(selector: TableSelector) -> str:
    """Return how many rows are chosen, and by what, if nothing is asked for."""
    decoder = selector.model_.decoder
    by = decoder if isinstance(decoder, str) else type(decoder).__name__
    ordering = selector.ordering_
    if ordering is not None:
        by = (
            f"{ordering.method} (trade-off {ordering.trade_off:g}) on learned relevance"
        )
    if selector.k_ is None:
        return f"as many as the model finds right, by {by}"
    return f"{count(selector.k_, 'row')} of each group, by {by}"


def compared_rows(selector: TableSelector) -> list[tuple[str, str, str, str, str]]:
    """Return name, way to choose, F-score, how far behind, and groups of each."""
    entries = _section(selector, "kernels") + [
        entry | {"name": f"… {entry['name']}"}
        for entry in _section(selector, "settings")
        if entry["name"] != "as it is"
    ]
    return [
        (
            str(entry["name"]),
            _rule(entry),
            f"{entry['f']:.3f}",
            _behind(entry),
            f"{entry['n_groups']:,}",
        )
        for entry in entries
    ]


def compared_words(selector: TableSelector) -> str:
    """Return in a few sentences what won, and by how much; empty if nothing raced."""
    entries = _section(selector, "kernels")
    if not entries:
        return ""
    first = entries[0]
    n_groups = selector.training_["n_compared"]
    is_sample = ", a sample from all files," * ("folder" in selector.training_)
    words = [
        f"On {count(n_groups, 'group')}{is_sample or ','} held out in turn, "
        f"these were compared, and {_named(first)} did best: F {first['f']:.3f}."
    ]
    rival = next((e for e in entries if e["name"] == _REGRESSION), None)
    if first["name"] == _REGRESSION:
        words.append(
            "Learning a similarity did not pay here. The model starts from the "
            "regression: it has its weights, and the similarity of the features as "
            "they are."
        )
    elif rival is not None:
        words.append(_against(rival))
    if selector.fallback_ is not None:
        words.append(
            "Groups that are unlike all of these, further from the learned kinds than "
            "rows at random, are chosen from by a second model without learned kinds."
        )
    return " ".join(words)


_REGRESSION = "logistic regression"


def _section(selector: TableSelector, name: str) -> list[dict[str, Any]]:
    compared = selector.training_["compared"]
    return list(compared.get(name, []))


def _against(rival: Mapping[str, Any]) -> str:
    """Say by how much the winner is above the regression."""
    margin = f"{rival['behind']:.3f}"
    if rival["error"] is not None:
        margin += f" ± {1.96 * rival['error']:.3f}"
    if rival["behind"] < max(_LEVEL, 1.96 * (rival["error"] or 0.0)):
        return (
            "That is no clear gain over a logistic regression followed by "
            f"{_rule(rival)}: {margin} above it."
        )
    return f"That is {margin} above a logistic regression followed by {_rule(rival)}."


def _named(entry: Mapping[str, Any]) -> str:
    name = str(entry["name"])
    if name == _REGRESSION:
        return f"a logistic regression followed by {_rule(entry)}"
    return f"“{name}” ({_rule(entry)})"


def _rule(entry: Mapping[str, Any]) -> str:
    how = str(entry["how"])
    return how if entry["k"] is None else f"{how}, k = {entry['k']}"


def _behind(entry: Mapping[str, Any]) -> str:
    if not entry["behind"]:
        return ""
    error = "" if entry["error"] is None else f" ± {entry['error']:.3f}"
    return f"{entry['behind']:.3f}{error}"

"""What a measure gives: precision, recall and F."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import NamedTuple, Protocol

from variegate.text.rouge.tokens import Text

__all__ = ["Measure", "Pool", "Ratios", "Score", "mean_scores", "ratio"]


class Ratios(NamedTuple):
    """Precision and recall; where the best reference decides, ``merit`` finds it."""

    precision: float
    recall: float
    merit: float


class Score(NamedTuple):
    """Precision, recall and their harmonic mean."""

    precision: float
    recall: float
    f: float

    @classmethod
    def of(cls, ratios: Ratios, digits: int | None) -> Score:
        """Return a score, every number rounded as soon as it is known."""
        precision, recall, _ = ratios
        if digits is not None:
            precision, recall = round(precision, digits), round(recall, digits)
        f = ratio(2.0 * precision * recall, precision + recall)
        return cls(precision, recall, f if digits is None else round(f, digits))


class Pool(Protocol):
    """References made ready for one measure, taken together."""

    def ratios(self, summary: Text) -> Ratios:
        """Return the precision and recall of a summary."""
        ...


class Measure(NamedTuple):
    """The key of a score, like ``rouge-1``, and what makes references ready for it."""

    name: str
    pool: Callable[[Sequence[Text]], Pool]


def ratio(part: float, whole: float) -> float:
    """Return ``part / whole``, or 0 where there is nothing to take a part of."""
    return part / whole if whole else 0.0


def mean_scores(scores: Iterable[Mapping[str, Score]]) -> dict[str, Score]:
    """Return the mean of every number over several summaries.

    ROUGE-1.5.5 prints the mean of bootstrap samples, which varies from run to run
    around this mean.  The F here is the mean of the F's, as it is there.
    """
    rows = list(scores)
    if not rows:
        raise ValueError("no scores to take the mean of")
    for row in rows:
        if row.keys() != rows[0].keys():
            raise ValueError(
                f"scores of different measures: {', '.join(rows[0])} and "
                f"{', '.join(row)}; score all summaries with one Rouge object"
            )
    return {
        name: Score(*(sum(column) / len(rows) for column in columns))
        for name in rows[0]
        if (columns := list(zip(*(row[name] for row in rows), strict=True)))
    }

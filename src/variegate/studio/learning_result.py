"""Results of learning from the picks so far."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from variegate.tuning.family import OmegaFamily
from variegate.tuning.path import PathPoint

__all__ = ["CurvePoint", "Kind", "LearningResult", "verdict_on"]

#: The fewest groups for a verdict.
_FEWEST_JUDGED = 4


@dataclass(frozen=True)
class CurvePoint:
    """Mean F-score on held-out groups after ``n`` groups, learned and untrained."""

    n: int
    f: float
    untrained_f: float


@dataclass(frozen=True)
class Kind:
    """A learned kind: its share of all items, and groups and items typical of it."""

    name: str
    share: float
    description: str
    typical: tuple[tuple[int, int], ...] = ()


@dataclass(frozen=True, eq=False)
class LearningResult:
    """A family of models, and its scores.

    Attributes
    ----------
    n_groups : int
        Groups that were learned from.
    family : OmegaFamily
        One model, whose odds are multiplied by omega
        (:func:`variegate.studio.kernel_candidates.over_omega`).
    decoder : str
        See :meth:`variegate.LEnsemble.decode`.
    weights : tuple of (name, weight)
        Of the quality features, at omega 1, the strongest first.
    kinds : tuple of Kind
        The most common first; empty where the similarity has none.
    curve : tuple of CurvePoint
        Scores on held-out groups, by number of groups learned from.
    path : tuple of PathPoint
        Scores on held-out groups, from small to large omega.
    confidence : mapping from group to float
        The F-score that the model expects of its own proposals, in groups to be done.
    comparison : str or None
        The result of the last comparison of similarities, in a sentence.
    """

    n_groups: int
    family: OmegaFamily
    decoder: str = "greedy"
    weights: tuple[tuple[str, float], ...] = ()
    kinds: tuple[Kind, ...] = ()
    curve: tuple[CurvePoint, ...] = ()
    path: tuple[PathPoint, ...] = ()
    confidence: Mapping[int, float] = field(default_factory=dict)
    comparison: str | None = None

    def to_json(self) -> dict[str, Any]:
        """Return the fields that the page shows, as plain values."""
        names = ("omega", "precision", "recall", "size", "f")
        return {
            "n_groups": self.n_groups,
            "curve": [asdict(point) for point in self.curve],
            "verdict": verdict_on(self.curve),
            "weights": [{"name": name, "weight": w} for name, w in self.weights],
            "kinds": [asdict(kind) for kind in self.kinds],
            "path": [{n: getattr(point, n) for n in names} for point in self.path],
            "comparison": self.comparison,
        }


def verdict_on(curve: Sequence[CurvePoint]) -> str:
    """Return a sentence on whether learning pays, by the last point of a curve.

    Scores that are the same in two digits are not called better.
    """
    if not curve or curve[-1].n < _FEWEST_JUDGED:
        return f"Whether learning pays is said from {_FEWEST_JUDGED} groups on."
    f, untrained = round(curve[-1].f, 2), round(curve[-1].untrained_f, 2)
    agree = "agree" if f > untrained else "do not yet agree"
    return (
        f"Learned proposals {agree} better with your picks (F {f:.2f}) than untrained "
        f"ones ({untrained:.2f}), on groups held out in turn."
    )

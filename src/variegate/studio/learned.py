"""What the studio has learned from the picks so far."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from variegate.tuning.family import OmegaFamily

__all__ = ["CurvePoint", "Kind", "Learned", "PathPoint", "verdict_on"]

#: Groups from which on it is said whether learning pays.
_FEWEST_JUDGED = 4


@dataclass(frozen=True)
class CurvePoint:
    """Mean F-score on held-out groups after ``n`` groups, learned and untrained."""

    n: int
    f: float
    untrained_f: float


@dataclass(frozen=True)
class PathPoint:
    """What is to be expected at one omega: means over held-out groups."""

    omega: float
    precision: float
    recall: float
    size: float
    f: float


@dataclass(frozen=True)
class Kind:
    """A learned kind: its share of all items, and which are typical of it.

    ``typical`` are groups and items; the description names them.
    """

    name: str
    share: float
    description: str
    typical: tuple[tuple[int, int], ...] = ()


@dataclass(frozen=True, eq=False)
class Learned:
    """A family of models, and what is known about it.

    Attributes
    ----------
    n_groups : int
        Groups that were learned from.
    family : OmegaFamily
        What the knob does, from end to end, and anywhere between: one model, whose odds
        are multiplied by omega (:func:`variegate.studio.lessons.over_omega`).
    decoder : str
        How a set is chosen: see :meth:`variegate.LEnsemble.decode`.
    weights : tuple of (name, weight)
        Of the quality features, at omega 1, the strongest first.
    kinds : tuple of Kind
        The most common first; empty where the similarity has none.
    curve : tuple of CurvePoint
        How well held-out groups are chosen from, by groups learned from.
    path : tuple of PathPoint
        From small to large omega, on held-out groups.
    sureness : mapping from group to float
        Of groups that were not done: how sure the model is of its proposal.
    comparison : str or None
        What a thorough comparison of similarities came to, in a sentence.
    """

    n_groups: int
    family: OmegaFamily
    decoder: str = "greedy"
    weights: tuple[tuple[str, float], ...] = ()
    kinds: tuple[Kind, ...] = ()
    curve: tuple[CurvePoint, ...] = ()
    path: tuple[PathPoint, ...] = ()
    sureness: Mapping[int, float] = field(default_factory=dict)
    comparison: str | None = None

    def to_json(self) -> dict[str, Any]:
        """Return what the page shows, as plain values."""
        return {
            "n_groups": self.n_groups,
            "curve": [asdict(point) for point in self.curve],
            "verdict": verdict_on(self.curve),
            "weights": [{"name": name, "weight": w} for name, w in self.weights],
            "kinds": [asdict(kind) for kind in self.kinds],
            "path": [asdict(point) for point in self.path],
            "comparison": self.comparison,
        }


def verdict_on(curve: Sequence[CurvePoint]) -> str:
    """Return in words whether learning pays, by the last point of a curve.

    What two digits do not tell apart is not called better.
    """
    if not curve or curve[-1].n < _FEWEST_JUDGED:
        return f"Whether learning pays is said from {_FEWEST_JUDGED} groups on."
    f, untrained = round(curve[-1].f, 2), round(curve[-1].untrained_f, 2)
    agree = "agree" if f > untrained else "do not yet agree"
    return (
        f"Learned proposals {agree} better with your picks (F {f:.2f}) than untrained "
        f"ones ({untrained:.2f}), on groups held out in turn."
    )

"""Why an item is proposed, and a map of its group."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass

import numpy as np

from variegate._typing import FloatArray, IntArray
from variegate.application.description.learned import learned_kinds
from variegate.baselines.learned import embeddings_of
from variegate.ensemble import LEnsemble
from variegate.estimator import LargeMarginDPP
from variegate.ground_set import GroundSet
from variegate.linalg.cosine import unit_rows

__all__ = ["Likeness", "Map", "QualityPart", "Why", "map_of", "most_alike", "parts_of"]

#: Parts of the quality that are named, at most.
_MOST_PARTS = 12


@dataclass(frozen=True)
class QualityPart:
    """What a feature adds to the log-quality of an item, above the group's mean."""

    name: str
    value: float
    part: float


@dataclass(frozen=True)
class Likeness:
    """An item, and the similarity to it, from 0 to 1."""

    n: int
    similarity: float


@dataclass(frozen=True)
class Why:
    """Why an item is proposed, or not.

    Attributes
    ----------
    probability : float
    quality : tuple of QualityPart
        The largest parts first.
    like : Likeness or None
        The chosen item that is most similar, of all others.
    """

    probability: float
    quality: tuple[QualityPart, ...]
    like: Likeness | None


@dataclass(frozen=True, eq=False)
class Map:
    """Where the items of a group lie: ``kind`` is "components" or "kinds".

    By components, ``x`` and ``y`` are the first two principal components of the
    similarity features, scaled to [-1, 1].  By kinds, ``x`` is the column and ``y``,
    from 0 to 1, the probability of that kind; ``columns`` are the names.
    """

    kind: str
    x: FloatArray
    y: FloatArray
    columns: tuple[str, ...] | None = None


def parts_of(
    model: LargeMarginDPP | None,
    ground_set: GroundSet,
    item: int,
    names: Sequence[str],
) -> tuple[QualityPart, ...]:
    """Return what features add to the log-quality above the mean of the group."""
    if model is None:
        return ()
    x = ground_set.quality
    added = model.theta_ * (x[item] - x.mean(axis=0))
    order = np.argsort(-np.abs(added), kind="stable")[:_MOST_PARTS]
    return tuple(
        QualityPart(str(names[j]), float(x[item, j]), float(added[j])) for j in order
    )


def most_alike(
    ensemble: LEnsemble, item: int, chosen: Collection[int]
) -> Likeness | None:
    """Return the chosen item that is most similar to an item, of all others."""
    others = np.array(sorted(set(chosen) - {item}), dtype=np.intp)
    if not len(others):
        return None
    S = ensemble.representation.submatrix(np.append(others, item))
    beside = np.clip(S[-1, :-1], 0.0, 1.0)
    return Likeness(int(others[np.argmax(beside)]), float(beside.max()))


def map_of(model: LargeMarginDPP | None, ground_set: GroundSet) -> Map:
    """Return a map by the kinds of a model, or by components where it has none."""
    kinds = [] if model is None else learned_kinds(model)
    if not kinds:
        return _components(ground_set)
    weightiest = max(kinds, key=lambda one: one.weight)
    return _by_kinds(weightiest.kernel.kinds(ground_set, weightiest.parameters))


def _by_kinds(p: FloatArray) -> Map:
    """Return a map whose columns are the kinds there are, the most common first."""
    kind: IntArray = p.argmax(axis=1)
    present, counts = np.unique(kind, return_counts=True)
    present = present[np.argsort(-counts, kind="stable")]
    column = {int(k): place for place, k in enumerate(present)}
    x = np.array([column[int(k)] for k in kind], dtype=np.float64)
    return Map("kinds", x, p.max(axis=1), tuple(f"kind {k + 1}" for k in present))


def _components(ground_set: GroundSet) -> Map:
    """Return a map of the first two principal components, from -1 to 1."""
    F = unit_rows(embeddings_of(ground_set))
    F = F - F.mean(axis=0)
    places = np.zeros((len(F), 2))
    # From the smaller of the two Gram matrices.
    if F.shape[1] <= len(F):
        axes = np.linalg.eigh(F.T @ F)[1][:, ::-1][:, :2]
        places[:, : axes.shape[1]] = F @ axes
    else:
        squares, axes = np.linalg.eigh(F @ F.T)
        lengths = np.sqrt(np.maximum(squares[::-1][:2], 0.0))
        places[:, : len(lengths)] = axes[:, ::-1][:, :2] * lengths
    farthest = np.abs(places).argmax(axis=0)
    largest = places[farthest, [0, 1]]
    places = places / np.where(largest == 0.0, 1.0, largest)
    return Map("components", places[:, 0], places[:, 1])

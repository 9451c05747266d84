"""Why an item is proposed, and a map of its group."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from variegate._typing import FloatArray, IntArray
from variegate.application.model_facts import learned_kinds
from variegate.baselines.learned import embeddings_of
from variegate.ensemble import LEnsemble
from variegate.estimator import LargeMarginDPP
from variegate.ground_set import GroundSet
from variegate.linalg.cosine import unit_rows

#: Parts of the quality that are named, at most.
_MOST_PARTS = 12


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


def explain(
    item: int,
    chosen: Collection[int],
    ground_set: GroundSet,
    ensemble: LEnsemble,
    model: LargeMarginDPP | None,
    names: Sequence[str],
) -> dict[str, Any]:
    """Return ``quality`` and ``like`` of an item: see ``Proposer.why``."""
    quality = []
    if model is not None:
        x = ground_set.quality
        added = model.theta_ * (x[item] - x.mean(axis=0))
        for j in np.argsort(-np.abs(added), kind="stable")[:_MOST_PARTS]:
            value, part = float(x[item, j]), float(added[j])
            quality.append({"name": str(names[j]), "value": value, "part": part})
    like = None
    others = np.array(sorted(set(chosen) - {item}), dtype=np.intp)
    if len(others):
        S = ensemble.representation.submatrix(np.append(others, item))
        beside = np.clip(S[-1, :-1], 0.0, 1.0)
        best = int(np.argmax(beside))
        like = {"n": int(others[best]), "similarity": float(beside[best])}
    return {"quality": quality, "like": like}


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

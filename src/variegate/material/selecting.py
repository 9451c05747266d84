"""Choose items of new data by a model of the studio or of the fit commands."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from threadpoolctl import threadpool_limits

from variegate._progress import Progress, ignore
from variegate._typing import FloatArray, IntArray
from variegate.application.base import best_by_quality
from variegate.decoding.residuals import rank_members
from variegate.estimator import LargeMarginDPP
from variegate.ground_set import GroundSet
from variegate.material.base import Material, most_items
from variegate.material.opening import open_material
from variegate.tuning.family import multiply_odds

#: Items of a larger group that are candidates: those of the highest quality.
_MOST_CANDIDATES = 2000


@dataclass(frozen=True, eq=False)
class SelectedItems:
    """Items chosen from each group of a material.

    Attributes
    ----------
    material : Material
    chosen : dict
        From the number of a group to its chosen items, best first.
    probability : list of arrays
        For each group, the probability of every item to be chosen; NaN for items of a
        large group that are not candidates.
    """

    material: Material
    chosen: dict[int, IntArray]
    probability: list[FloatArray]

    def table(self) -> Any:
        """Return an Arrow table with a row for each chosen item.

        Columns are the group, the file and the position in it, or those of an opened
        table, and ``selection_rank`` in the group and ``inclusion_probability``.
        """
        return self.material.chosen_table(self.chosen, self.probability)


def select_items(
    path: str | Path,
    model: Any,
    *,
    k: int | None = None,
    omega: float | None = None,
    at_most: Sequence[int] = (),
    per: Sequence[str] = (),
    progress: Progress = ignore,
) -> SelectedItems:
    """Return items chosen from each group of pictures, documents, videos or a table.

    The groups are folders of pictures, folders of documents or single ones, and videos.
    Their features are those that the model was learned with, and items are chosen as
    the studio proposes them, by greedy search.

    Parameters
    ----------
    path : path
        A file or folder of new data, of the kind that the model was learned from.
    model : application
        :class:`~variegate.material.picture_selector.PictureSelector`,
        :class:`variegate.text.Summarizer` or :class:`variegate.video.KeyframePicker`.
    k : int, optional
        Items to choose from each group; by default the model decides.
    omega : float, optional
        Below 1 few and precise, above 1 many and complete; by default 1.
    at_most, per : sequences of int and str, optional
        The largest number of items of a group with the same value in each ``per``: the
        "document" of sentences, the "shot" of frames, or a column.
    progress : callable, optional
        Called with "opening" or "choosing", and the numbers of finished and all steps.
    """
    material = open_material(path, model=model, page=0, progress=progress)
    material.limit(at_most, per)
    if model._type == "picture-selector":  # one model
        by_model = multiply_odds(model.model_, 1.0 if omega is None else omega)
    else:
        by_model = model.family_.at(model.family_.resolve(omega))
    chosen, probability = {}, []
    with threadpool_limits(1, user_api="blas"):
        for group in range(len(material.sizes)):
            limits = material.limits(group)
            ground_set = material.ground_set(group)
            order, chances = _choose_items(by_model, ground_set, k, limits)
            chosen[group] = order
            probability.append(chances)
            progress("choosing", group + 1, len(material.sizes))
    return SelectedItems(material, chosen, probability)


def _choose_items(
    model: LargeMarginDPP, ground_set: GroundSet, k: int | None, limits: dict[str, Any]
) -> tuple[IntArray, FloatArray]:
    """Return the chosen item numbers, best first, and each item's probability.

    Of more than ``_MOST_CANDIDATES`` items, those of the highest quality are
    candidates; the probabilities (N,) of others, and of given items, are NaN.  With
    ``k`` None the model decides how many; ``limits`` are those of ``Material.limits``.
    """
    size, given = len(ground_set), ground_set.given
    best = best_by_quality(model, ground_set.candidate_quality, _MOST_CANDIDATES)
    rows = ground_set.candidates[best]
    if limits:
        labels = [[values[place] for place in best] for values in limits["per"]]
        limits = limits | {"per": labels}
    if len(rows) + len(given) < size:
        considered = np.union1d(rows, given)
        ground_set = ground_set.take(considered, np.isin(considered, given))
    if k is not None:
        k = min(k, most_items(len(rows), limits))
    ensemble = model.ensemble(ground_set)
    selection = ensemble.decode("greedy", k=k, **limits)
    order = rank_members(ensemble, selection.indices)
    probability = np.full(size, np.nan)
    probability[rows] = ensemble.marginals()
    return rows[order], probability

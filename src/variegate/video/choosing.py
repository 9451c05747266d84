"""The choice of key frames among candidates, and why likelier ones were refused."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.random import Generator

from variegate._typing import BoolArray, FloatArray
from variegate.decoding import Constraint
from variegate.ensemble import LEnsemble
from variegate.selection import Selection
from variegate.video.amount import Amount, fill_up, likeliest_of_each
from variegate.video.decoding import too_similar, video_decoder
from variegate.video.view import VideoView

__all__ = ["Choice", "Refusal", "choose_frames"]

#: Frames of different shots can be matched if their learned similarity is above this.
_ONE_SCENE = 0.8


@dataclass(frozen=True)
class Refusal:
    """Why a candidate was not chosen that is likelier than a chosen one.

    Attributes
    ----------
    beside : int
        The chosen candidate that it is most like: of all chosen ones, that which
        lowers most what the refused one adds to the log-probability of a set, by
        ``-log(1 - s²)`` with the similarity ``s`` of the two.
    similarity : float
        Learned, from 0 to 1.
    why : {"too like", "adds too little beside", "is of the shot of"}
    """

    beside: int
    similarity: float
    why: str


@dataclass(frozen=True, eq=False)
class Choice:
    """Which candidates were chosen by an ensemble, and which likelier ones not."""

    ensemble: LEnsemble
    selection: Selection
    refusals: Mapping[int, Refusal]


def choose_frames(
    ensemble: LEnsemble,
    view: VideoView,
    settings: Mapping[str, Any],
    max_similarity: float,
    amount: Amount,
    generator: Generator,
) -> Choice:
    """Choose among the candidates of a view.

    Parameters
    ----------
    ensemble : LEnsemble
        Over the candidates.
    view : VideoView
    settings : mapping
        The decoder, as :func:`~variegate.video.decoding.video_decoder` takes it.
    max_similarity : float
    amount : Amount
    generator : numpy.random.Generator
    """
    limit = amount.most(len(view))
    # By colours alone, a shot would stand for others that have nothing else in common.
    matched = view.alike & (view.same_shot | too_similar(ensemble, _ONE_SCENE))
    same = too_similar(ensemble, max_similarity)
    if amount.per_shot:
        selection = likeliest_of_each(ensemble, view.shots)
        refused = "is of the shot of", view.same_shot
    else:
        decode = video_decoder(**settings, alike=matched, same=same)
        constraint = Constraint(None, limit, np.ones(len(view)))
        selection = decode(ensemble, constraint, generator)
        if amount.count is not None:
            selection = fill_up(ensemble, selection, amount.count)
        refused = "too like", matched | same
    return Choice(ensemble, selection, _refusals(ensemble, selection, *refused))


def _refusals(
    ensemble: LEnsemble, selection: Selection, why: str, related: BoolArray
) -> dict[int, Refusal]:
    """Return why each candidate is not chosen that is likelier than a chosen one.

    It is for ``why``, where it is ``related`` (N, N) to a chosen one.
    """
    chosen, probability = selection.indices, ensemble.marginals()
    if not len(chosen):
        return {}
    similarity = _similarity(ensemble)
    likelier = probability > probability[chosen].min()
    likelier[chosen] = False
    refusals = {}
    for place in np.flatnonzero(likelier):
        is_related = related[place, chosen]
        nearest = np.where(is_related, 2.0, 0.0) + similarity[place, chosen]
        beside = int(chosen[np.argmax(nearest)])
        reason = why if is_related.any() else "adds too little beside"
        refusals[int(place)] = Refusal(beside, similarity[place, beside], reason)
    return refusals


def _similarity(ensemble: LEnsemble) -> FloatArray:
    lengths = np.sqrt(np.diagonal(ensemble.S))
    return np.asarray(np.clip(ensemble.S / np.outer(lengths, lengths), 0.0, 1.0))

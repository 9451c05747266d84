"""How many key frames are wanted, and the choice of so many."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np

from variegate._typing import FloatArray, IntArray
from variegate._validation import check_count, check_flag
from variegate.decoding.residuals import Residuals
from variegate.ensemble import LEnsemble
from variegate.selection import Selection

__all__ = ["Amount", "fill_up", "likeliest_of_each"]


@dataclass(frozen=True)
class Amount:
    """How many frames to choose: what the model decides, or one of these.

    Attributes
    ----------
    max_frames : int or None
        The most.
    count : int or None
        The exact number.
    per_shot : bool
        One for each shot.
    """

    max_frames: int | None = None
    count: int | None = None
    per_shot: bool = False

    def __post_init__(self) -> None:
        check_flag("per_shot", self.per_shot)
        for name in ("max_frames", "count"):
            if getattr(self, name) is not None:
                check_count(name, getattr(self, name))
        given = [
            name for name in vars(self) if getattr(self, name) not in (None, False)
        ]
        if len(given) > 1:
            raise ValueError(
                f"{' and '.join(given)} each say how many frames to choose; give one "
                "of them"
            )

    def most(self, n_candidates: int) -> int:
        """Return the most frames of so many; refuse a count that is larger."""
        if self.count is not None and self.count > n_candidates:
            raise ValueError(
                f"{self.count} frames were asked for, but there are only "
                f"{n_candidates} to choose from; ask for fewer, or look more often "
                "(every)"
            )
        return min(n_candidates, self.count or self.max_frames or n_candidates)


def fill_up(ensemble: LEnsemble, selection: Selection, count: int) -> Selection:
    """Add frames to a choice until there are so many.

    Each is the one that raises the probability of the set most, or lowers it least;
    where the similarity leaves none possible, the likeliest.
    """
    state = Residuals(ensemble.representation)
    chosen = selection.indices.tolist()
    for item in chosen:
        _add(state, item)
    likely = ensemble.marginals()
    while len(chosen) < count:
        gain = state.gain()
        if gain.max() == -np.inf:
            gain = likely.copy()
        gain[chosen] = -np.inf
        chosen.append(int(np.argmax(gain)))
        _add(state, chosen[-1])
    if len(chosen) == len(selection):
        return selection
    indices = np.sort(np.array(chosen, dtype=np.intp))
    reason = (
        f"{selection.stop_reason}; to {count} frames, those were added that raise the "
        "probability most"
    )
    return Selection(indices, partial(ensemble.log_prob, indices), reason)


def _add(state: Residuals, item: int) -> None:
    if state.gain()[item] > -np.inf:
        state.add(item)
    state.available[item] = False


def likeliest_of_each(ensemble: LEnsemble, shots: Sequence[int]) -> Selection:
    """Return the likeliest frame of every shot."""
    probabilities: FloatArray = ensemble.marginals()
    numbers = np.array(shots)
    chosen = [
        members[np.argmax(probabilities[members])]
        for members in (np.flatnonzero(numbers == s) for s in np.unique(numbers))
    ]
    indices: IntArray = np.sort(np.array(chosen, dtype=np.intp))
    reason = f"the likeliest frame of each of {len(indices)} shots"
    return Selection(indices, partial(ensemble.log_prob, indices), reason)

"""How key frames are chosen from a model of them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np

from variegate._typing import BoolArray, FloatArray, IntArray
from variegate.decoding import MBR
from variegate.ensemble import LEnsemble
from variegate.video.matching import n_matches

__all__ = ["VIDEO_DECODERS", "Task"]

#: Samples that may be chosen, where only samples may.
_N_CANDIDATES = 150


@dataclass(frozen=True, eq=False)
class Task:
    """What to choose from, and how much.

    Attributes
    ----------
    ensemble : LEnsemble over N frames
    alike : array of shape (N, N)
        Which frames count as the same.
    same : array of shape (N, N)
        Of which frames only one may be chosen.
    limit : int
        The most frames that may be chosen.
    n_samples : int
    beta : float
        What recall counts in the F-score of matched frames, of the search.
    generator : numpy.random.Generator
    """

    ensemble: LEnsemble
    alike: BoolArray
    same: BoolArray
    limit: int
    n_samples: int
    beta: float
    generator: np.random.Generator


def _mbr(task: Task) -> IntArray:
    """Search for the subset with the best expected F-score of matched frames.

    Sets drawn from the ensemble stand for what people would choose; frames are added
    greedily while the mean F-score of their maximum matching with those sets grows.
    """
    from variegate.compiled.matching import choose_by_matching

    samples = task.ensemble.sample(task.n_samples, random_state=task.generator)
    sets, counts = np.unique(samples, axis=0, return_counts=True)
    sets, counts = sets[sets.any(axis=1)], counts[sets.any(axis=1)]
    if not len(sets):  # all samples were empty; a summary is not
        return np.array([int(np.argmax(task.ensemble.marginals()))], dtype=np.intp)
    sizes = sets.sum(axis=1)
    members = np.zeros((len(sets), int(sizes.max())), dtype=np.int64)
    for row, (chosen, size) in enumerate(zip(sets, sizes, strict=True)):
        members[row, :size] = np.flatnonzero(chosen)
    items, _ = choose_by_matching(
        task.alike,
        task.same,
        members,
        sizes,
        counts / counts.sum(),
        task.limit,
        task.beta,
    )
    return np.sort(items.astype(np.intp))


def _mbr_samples(task: Task) -> IntArray:
    """Take the sample with the best expected F-score of matched frames."""

    def matching_f(candidates: BoolArray, voters: BoolArray) -> FloatArray:
        return pairwise_matching_f(candidates, voters, task.alike)

    decoder = MBR(task.n_samples, _N_CANDIDATES, matching_f)
    return _trimmed(task, decoder)


def _mbr_items(task: Task) -> IntArray:
    """Take the sample with the best expected F-score of equal frames, as the paper."""
    return _trimmed(task, MBR(task.n_samples))


def _trimmed(task: Task, decoder: MBR) -> IntArray:
    chosen = task.ensemble.decode(decoder, random_state=task.generator).indices
    if len(chosen) <= task.limit:
        return chosen
    likeliest = np.argsort(-task.ensemble.marginals()[chosen], kind="stable")
    return np.sort(chosen[likeliest[: task.limit]])


def _greedy(task: Task) -> IntArray:
    """Add what raises the probability most, to as many as a sample has on average."""
    size = max(1, round(task.ensemble.expected_size()))
    return task.ensemble.decode("greedy", k=min(size, task.limit)).indices


def pairwise_matching_f(A: BoolArray, B: BoolArray, alike: BoolArray) -> FloatArray:
    """Return the F-score of each subset in ``A`` matched with each in ``B``."""
    others = [np.flatnonzero(row) for row in B]
    values = np.zeros((len(A), len(B)))
    for i, row in enumerate(A):
        one = np.flatnonzero(row)
        for j, other in enumerate(others):
            if len(one) and len(other):
                matches = n_matches(alike[np.ix_(one, other)])
                values[i, j] = 2.0 * matches / (len(one) + len(other))
    return values


#: The ways of choosing, by name.
VIDEO_DECODERS: Mapping[str, Callable[[Task], IntArray]] = {
    "mbr": _mbr,
    "mbr-samples": _mbr_samples,
    "mbr-items": _mbr_items,
    "greedy": _greedy,
}

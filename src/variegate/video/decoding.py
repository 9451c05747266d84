"""How key frames are chosen from a model of them."""

from __future__ import annotations

from functools import partial

import numpy as np

from variegate._typing import BoolArray
from variegate.decoding import MBR, Constraint, Decoder, Greedy, GreedySearch
from variegate.decoding.base import Ensemble
from variegate.ensemble import LEnsemble
from variegate.selection import Selection
from variegate.video.agreement import MatchingAgreement

__all__ = [
    "CONSENSUS",
    "SEARCHES",
    "VIDEO_DECODERS",
    "too_similar",
    "video_decoder",
]

VIDEO_DECODERS = ("mbr", "greedy")

#: Where "mbr" looks for the frames that agree best.
SEARCHES = ("greedy", "samples")

#: What agreement is the F-score of: frames that can be matched, or the same frames.
CONSENSUS = ("matched", "equal")

#: Samples that may be chosen where each must be matched with all others.
_N_CANDIDATES = 150


def video_decoder(
    decoder: str,
    search: str,
    consensus: str,
    beta: float,
    n_samples: int,
    alike: BoolArray,
    same: BoolArray,
) -> Decoder:
    """Return what chooses frames, as many as a budget allows.

    For "mbr", sets drawn from the ensemble stand for what people would choose.  Frames
    are added while the mean agreement with those sets grows, or one of the sets is
    taken, as in the paper.  Frames that are ``alike`` (N, N) can be matched; of those
    that are the ``same`` (N, N) a search chooses only one.
    """
    if decoder == "greedy":
        return choose_expected_number
    if search == "greedy":
        matched = alike if consensus == "matched" else np.eye(len(alike), dtype=bool)
        agreement = MatchingAgreement(matched, beta, same)
        return MBR(n_samples, None, agreement, GreedySearch(nonempty=True))
    if consensus == "equal":
        return partial(choose_and_trim, MBR(n_samples))
    agreement = MatchingAgreement(alike, beta)
    return partial(choose_and_trim, MBR(n_samples, _N_CANDIDATES, agreement))


def too_similar(ensemble: LEnsemble, limit: float) -> BoolArray:
    """Return which pairs have a similarity above a limit; all have with themselves."""
    S = ensemble.S
    lengths = np.sqrt(np.diagonal(S))
    above = np.outer(lengths, lengths) * min(limit, 1.0) < S
    if limit >= 1.0:  # up to rounding, none is
        above[:] = False
    np.fill_diagonal(above, True)
    return np.asarray(above)


def choose_and_trim(
    decoder: Decoder,
    ensemble: Ensemble,
    constraint: Constraint,
    generator: np.random.Generator,
) -> Selection:
    """Choose from all samples; of more frames than allowed, the likeliest."""
    selection = decoder(ensemble, Constraint(None, None, constraint.costs), generator)
    limit = int(constraint.largest_cost())
    if len(selection) <= limit:
        return selection
    likeliest = np.argsort(-ensemble.marginals()[selection.indices], kind="stable")
    indices = np.sort(selection.indices[likeliest[:limit]])
    reason = f"{selection.stop_reason}; of its frames the {limit} likeliest"
    return Selection(indices, partial(ensemble.log_prob, indices), reason)


def choose_expected_number(
    ensemble: Ensemble, constraint: Constraint, generator: np.random.Generator
) -> Selection:
    """Add what raises the probability most, to as many as a sample has on average."""
    size = max(1, round(ensemble.expected_size()))
    k = min(size, int(constraint.largest_cost()))
    return Greedy()(ensemble, Constraint(k, None, constraint.costs), generator)

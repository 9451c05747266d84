"""How the sentences of a summary are chosen from a model of summaries."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial

import numpy as np
from scipy import sparse
from scipy.special import expit

from variegate._typing import BoolArray, FloatArray
from variegate.decoding import MBR, Constraint, Decoder, GreedySearch
from variegate.decoding.base import Ensemble
from variegate.decoding.growing import grow
from variegate.decoding.residuals import Residuals
from variegate.ensemble import LEnsemble
from variegate.selection import Selection
from variegate.text.agreement import WordAgreement

__all__ = ["CONSENSUS", "OLD_DECODERS", "SEARCHES", "TEXT_DECODERS", "text_decoder"]

TEXT_DECODERS = ("mbr", "greedy")

#: Where "mbr" looks for the summary that agrees best.
SEARCHES = ("greedy", "samples")

#: Up to so many words in a row are compared.
CONSENSUS = {"rouge-1": 1, "rouge-1+2": 2}

#: What names of the first version stand for.
OLD_DECODERS: Mapping[str, dict[str, str]] = {
    "mbr-samples": {"decoder": "mbr", "search": "samples", "consensus": "rouge-1"},
}

#: Samples that may be chosen, where only samples may.
_N_CANDIDATES = 200

#: Logarithms of factors that are tried, and how often the interval is halved.
_WIDEST_SCALE = 50.0
_BISECTIONS = 60


def text_decoder(
    decoder: str,
    search: str,
    n_samples: int,
    counts: Sequence[sparse.csr_array],
    fill: bool,
) -> Decoder:
    """Return what chooses sentences.

    With the search "greedy", "mbr" adds sentences for the mean agreement with the
    samples, gained for their cost; with "samples", one of them is taken, as in the
    paper.  Summaries are compared by ``counts``, how often each word, and each pair of
    words, is in each sentence, (N, W) each.  With ``fill``, a budget is filled; else a
    search stops where agreement would fall.
    """
    if decoder == "greedy":
        return fill_greedily
    mbr = partial(MBR, n_samples, _N_CANDIDATES, WordAgreement(counts))
    if search == "samples":
        return mbr("samples")
    return mbr(GreedySearch(fill, nonempty=True), draw_near_budget)


def fill_greedily(
    ensemble: Ensemble, constraint: Constraint, generator: np.random.Generator
) -> Selection:
    """Add the sentence that raises the probability most, or lowers it least.

    While any fits the budget, or until as many are chosen as a sample has on average.
    The most probable subset of all would hold next to nothing: single sentences are
    all improbable.
    """
    if constraint.budget is None:
        size = max(1.0, float(np.round(ensemble.expected_size())))
        constraint = Constraint(None, size, np.ones(len(ensemble)))
    state = Residuals(ensemble.representation)
    chosen, reason = grow(state, constraint, fill=True, per_cost=False)
    indices = np.sort(np.array(chosen, dtype=np.intp))
    return Selection(indices, partial(ensemble.log_prob, indices), reason)


def draw_near_budget(
    ensemble: LEnsemble,
    constraint: Constraint,
    n_samples: int,
    generator: np.random.Generator,
) -> BoolArray:
    """Draw sets; with a budget, the ones nearest to it of twice as many."""
    if constraint.budget is None:
        return ensemble.sample(n_samples, random_state=generator)
    scaled = scaled_to_cost(ensemble, constraint.costs, constraint.budget)
    samples = scaled.sample(2 * n_samples, random_state=generator)
    distance = np.abs(samples @ constraint.costs - constraint.budget)
    return samples[np.argsort(distance, kind="stable")[:n_samples]]


def scaled_to_cost(ensemble: LEnsemble, costs: FloatArray, total: float) -> LEnsemble:
    """Return the ensemble of ``c L`` whose sets cost ``total`` on average.

    A model that learned summaries of one length is so asked for those of another.  The
    eigenvectors do not depend on ``c``, so that one decomposition gives the expected
    cost for all: ``Σ_m c λ_m / (1 + c λ_m) Σ_i v_mi² costs_i``.
    """
    log_values, vectors = ensemble.representation.eigenpairs()
    weight = vectors.all() ** 2 @ costs
    low, high = -_WIDEST_SCALE, _WIDEST_SCALE
    for _ in range(_BISECTIONS):
        middle = 0.5 * (low + high)
        if expit(log_values + middle) @ weight < total:
            low = middle
        else:
            high = middle
    return LEnsemble.from_quality(ensemble.S, ensemble.log_scale + 0.5 * low)

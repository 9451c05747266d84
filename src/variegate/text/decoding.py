"""How the sentences of a summary are chosen from a model of summaries."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

import numpy as np
from scipy import sparse

from variegate.decoding import MBR, Constraint, Decoder, GreedySearch
from variegate.decoding.agreement import grow
from variegate.decoding.base import Ensemble
from variegate.decoding.residuals import Residuals
from variegate.selection import Selection
from variegate.text.agreement import WordAgreement
from variegate.text.voters import draw_near_budget

__all__ = ["CONSENSUS", "SEARCHES", "TEXT_DECODERS", "text_decoder"]

TEXT_DECODERS = ("mbr", "greedy")

#: Where "mbr" looks for the summary that agrees best.
SEARCHES = ("greedy", "samples")

#: Up to so many words in a row are compared.
CONSENSUS = {"rouge-1": 1, "rouge-1+2": 2}

#: Samples that may be chosen, where only samples may.
_N_CANDIDATES = 200


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

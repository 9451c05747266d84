"""Decoders of summaries that only the tables compare, and the summarizer with them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, ClassVar

import numpy as np
from scipy import sparse

from variegate._typing import BoolArray, FloatArray
from variegate.decoding import MBR, Constraint, Decoder
from variegate.decoding.agreement import grow_subset
from variegate.decoding.residuals import Residuals
from variegate.selection import Ensemble, Selection
from variegate.text import Summarizer
from variegate.text.consensus import WordAgreement, summary_decoder, word_bags

__all__ = ["CONSENSUS", "PaperSummarizer"]

#: The longest runs of words by which summaries are compared.
CONSENSUS = {"rouge-1": 1, "rouge-1+2": 2}

#: Samples of which the paper's decoder takes the best.
_N_CANDIDATES = 200


class PaperSummarizer(Summarizer):
    """A summarizer with the paper's decoders, to compare with that of the library.

    Parameters
    ----------
    decoder : {"mbr", "mbr-samples", "greedy"}
        Whether to add sentences one by one for the best expected agreement with
        samples, as the library does, to take the best of the samples, as the paper
        does, which need not fill a budget, or to choose greedily by probability.
    consensus : {"rouge-1+2", "rouge-1"}
        Agreement of "mbr": of words and pairs of words, or of words.
    **parameters
        As for :class:`variegate.text.Summarizer`.
    """

    _type = "paper-summarizer"
    _choices: ClassVar[Mapping[str, Iterable[str]]] = {
        **Summarizer._choices,
        "decoder": ("mbr", "mbr-samples", "greedy"),
        "consensus": CONSENSUS,
    }

    def __init__(
        self, decoder: str = "mbr", consensus: str = "rouge-1+2", **parameters: Any
    ) -> None:
        super().__init__(**parameters)
        self.decoder = decoder
        self.consensus = consensus

    @classmethod
    def _get_param_names(cls) -> list[str]:
        return sorted(["decoder", "consensus", *Summarizer._get_param_names()])

    def _decoder(self, counts: Sequence[sparse.csr_array], fill: bool) -> Decoder:
        if self.decoder == "greedy":
            return fill_greedily
        counts = counts[: CONSENSUS[self.consensus]]
        if self.decoder == "mbr":
            return summary_decoder(self.n_samples, counts, fill)
        return MBR(self.n_samples, _N_CANDIDATES, PairwiseAgreement(counts))


class PairwiseAgreement(WordAgreement):
    """The same agreement of all pairs of summaries, to choose among samples."""

    def gains(self, candidates: BoolArray, voters: BoolArray) -> FloatArray:
        """Return the agreement of every candidate with every voter."""
        total = np.zeros((len(candidates), len(voters)))
        for counts in self.counts:
            A, B = word_bags(candidates, counts), word_bags(voters, counts)
            total += pairwise_rouge_f(A, B)
        return total


def pairwise_rouge_f(A: FloatArray, B: FloatArray) -> FloatArray:
    """Return the F-score of the units of each row of ``A`` with each of ``B``."""
    hits = np.empty((len(A), len(B)))
    for row, bag in enumerate(A):
        used = np.flatnonzero(bag)
        hits[row] = np.minimum(bag[used], B[:, used]).sum(axis=1)
    total = A.sum(axis=1)[:, None] + B.sum(axis=1)
    return np.asarray(2.0 * hits / np.maximum(total, 1.0))


def fill_greedily(
    ensemble: Ensemble, constraint: Constraint, generator: np.random.Generator
) -> Selection:
    """Add the sentence that raises the probability most, or lowers it least.

    While any fits the budget, or up to the mean size of samples.  The most probable
    subset would be nearly empty: single sentences are all improbable.
    """
    if constraint.budget is None:
        size = max(1.0, float(np.round(ensemble.expected_size())))
        constraint = Constraint(None, size, np.ones(len(ensemble)))
    state = Residuals(ensemble.representation)
    chosen, reason = grow_subset(state, constraint, fill=True, per_cost=False)
    return Selection.from_items(ensemble, chosen, reason)

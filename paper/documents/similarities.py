"""Rows beyond the paper: similarities that learn their features, and expected F.

A learned similarity needs features that mean the same in every cluster, and words do
not: topics differ in theirs, and languages share none.  Two kinds of features do:
"roles", the quality features of a sentence (where it stands, how long it is, how much
of it others say), and "words", the tf-idf vector with every word put into one of a
fixed number of buckets.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from zlib import crc32

import numpy as np
from scipy import sparse

from paper.documents.decoders import CONSENSUS
from paper.documents.settings import Settings
from paper.held_out import Choice
from paper.learned import (
    DECODERS,
    ROWS,
    SIMILARITIES,
    best_choices,
    expected_f,
    kernel_choices,
    kernel_of,
)
from variegate._typing import FloatArray
from variegate.decoding import Constraint, Decoder
from variegate.ensemble import LEnsemble
from variegate.estimator import LargeMarginDPP
from variegate.ground_set import GroundSet
from variegate.kernels import Linear
from variegate.text import Budget, ClusterView, Rouge
from variegate.text.consensus import scaled_to_cost, summary_decoder
from variegate.text.training_set import TrainingSet
from variegate.text.words import used_only

#: Buckets of words.
N_BUCKETS = 256

#: The distribution over the summaries of a cluster.
Ensembles = Callable[[ClusterView], LEnsemble]
#: Of a cluster, with a seed: the summary.
Write = Callable[[ClusterView, int], str]


def ground_set(view: ClusterView) -> GroundSet:
    """Return the features of the candidates, those to compare them by in blocks."""
    quality = view.quality("full")
    blocks = {"tf-idf": view.similarity(), "roles": quality, "words": bucketed(view)}
    return GroundSet(quality, blocks)


def bucketed(view: ClusterView) -> FloatArray:
    """Return tf-idf vectors with words put into buckets, half of them negated.

    So that the product of two vectors is on average what it was (feature hashing).
    """
    vectors = view.vectors
    words = sorted(view.counts.vocabulary.items(), key=lambda entry: entry[1])
    codes = np.array([crc32(word.encode()) for word, _ in words], dtype=np.int64)
    signs = 1.0 - 2.0 * ((codes // N_BUCKETS) % 2)
    to_buckets = sparse.csr_array(
        (signs, (np.arange(len(codes)), codes % N_BUCKETS)),
        shape=(vectors.shape[1], N_BUCKETS),
    )
    return np.asarray((vectors @ to_buckets).toarray())


@dataclass(frozen=True)
class Learner:
    """What learns from some clusters, and writes summaries within a budget.

    ``chosen`` are the λ, l2 and consensus of the rows of the paper; ``parts`` of the
    topics are held out in turn to choose the rest.
    """

    settings: Settings
    training: TrainingSet
    budget: Budget
    chosen: Choice
    parts: Sequence[Sequence[int]]

    def rows(
        self, names: Iterable[str], of_paper: Ensembles
    ) -> Iterator[tuple[str, Choice, Write]]:
        """Yield the rows that are asked for: what was chosen, and what writes.

        ``of_paper`` are the ensembles of "MKR", whose decoder is chosen with the
        cosine, as the settings of the paper's rows are.
        """
        settings, everything = self.settings, range(len(self.training))
        wanted = [(name, *ROWS[name]) for name in names]
        for similarity in dict.fromkeys(row[1] for row in wanted):
            best = self._best(similarity)
            for name, of, decoder in wanted:
                if of == similarity:
                    choice, ensembles = best[decoder], of_paper
                    if similarity in SIMILARITIES:
                        steps = settings.max_iter
                        ensembles = self._fit(similarity, choice, everything, steps)
                    write = partial(self._write, ensembles, choice, settings.n_samples)
                    yield name, choice, write

    def _best(self, similarity: str) -> dict[str, Choice]:
        """Return the best settings for each decoder, parts held out in turn."""
        settings = self.settings
        kernels: list[Choice] = [{}]
        if similarity in SIMILARITIES:
            kernels = kernel_choices(
                settings.blocks, settings.sizes, settings.penalties
            )
        totals = np.zeros((len(kernels), len(DECODERS)))
        for part in self.parts:
            inside = [i for i in range(len(self.training)) if i not in part]
            for row, kernel in enumerate(kernels):
                steps = settings.n_inner_steps
                ensembles = self._fit(similarity, kernel, inside, steps)
                for view in (self.training.views[i] for i in part):
                    totals[row] += self._held_out_scores(ensembles(view), view)
        return best_choices(kernels, totals)

    def _held_out_scores(self, ensemble: LEnsemble, view: ClusterView) -> list[float]:
        """Return F of ROUGE-1 and ROUGE-2, added, of a cluster for each decoder."""
        rouge = Rouge(n=(1, 2), unicode=True, digits=None)
        found = []
        for decoder in DECODERS:
            n_samples = self.settings.n_inner_samples
            text = self._write(lambda _: ensemble, decoder, n_samples, view, 0)
            scores = rouge.score(text, list(view.cluster.references))
            found.append(scores["rouge-1"].f + scores["rouge-2"].f)
        return found

    def _fit(
        self, similarity: str, choice: Choice, members: Iterable[int], steps: int
    ) -> Ensembles:
        """Learn, "MKR" with the cosine alone."""
        learned = similarity in SIMILARITIES
        model = LargeMarginDPP(
            lam=self.chosen["lam"],
            kernel=kernel_of(similarity, choice) if learned else Linear(block="tf-idf"),
            l2=self.chosen["l2"],
            max_iter=steps,
        )
        members = list(members)
        model.fit(
            [ground_set(self.training.views[i]) for i in members],
            [self.training.targets[i] for i in members],
        )
        return lambda view: model.ensemble(ground_set(view))

    def _write(
        self,
        ensembles: Ensembles,
        choice: Choice,
        n_samples: int,
        view: ClusterView,
        seed: int,
    ) -> str:
        """Summarize by "expected-f" if its settings were chosen, or else by MBR."""
        costs = self.budget.costs(view.texts)
        constraint = Constraint(None, self.budget.limit, costs)
        ensemble = ensembles(view)
        decode: Decoder | None = expected_f(choice)
        if decode is not None:
            # As for MBR, of sets that cost the budget on average.
            ensemble = scaled_to_cost(ensemble, costs, self.budget.limit)
        else:
            units = view.units()[: CONSENSUS[self.chosen["consensus"]]]
            counts = [used_only(matrix) for matrix in units]
            decode = summary_decoder(n_samples, counts, fill=True)
        selection = decode(ensemble, constraint, np.random.default_rng(seed))
        return "\n".join(view.texts[i] for i in selection.indices)

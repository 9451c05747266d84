"""Clusters to learn from, and the sentences that agree best with their references."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np

from variegate._progress import Progress, ignore
from variegate._typing import IntArray
from variegate.decoding import Constraint
from variegate.decoding.agreement import grow_subset
from variegate.files.model_format import COUNT
from variegate.files.schema import Number, Record
from variegate.text.budget import Budget
from variegate.text.cluster_view import ClusterView
from variegate.text.consensus import GrowingSummary
from variegate.text.documents import Cluster
from variegate.text.languages import as_language
from variegate.text.rouge import Rouge, mean_scores
from variegate.text.words import count_words, words

TRAINING = Record(  # of a model file
    {
        **dict.fromkeys(("n_clusters", "n_sentences"), COUNT),
        **dict.fromkeys(("oracle_rouge_1_f", "oracle_rouge_2_f"), Number(least=0)),
    }
)


@dataclass(frozen=True, eq=False)
class TrainingSet:
    """Prepared clusters, and the oracle summary of each as positions of candidates."""

    views: list[ClusterView]
    targets: list[IntArray]  # sorted

    @classmethod
    def from_clusters(
        cls, clusters: Sequence[Cluster], budget: Budget, progress: Progress = ignore
    ) -> TrainingSet:
        """Split clusters into sentences and find their oracle summaries."""
        if not clusters:
            raise ValueError("there are no clusters to learn from")
        for number, cluster in enumerate(clusters):
            as_language(cluster.language)
            name, references = _cluster_name(number, cluster), cluster.references
            if isinstance(references, str):
                raise TypeError(
                    f"{name}: references must be a list of summaries, not one text"
                )
            if not any(words(reference) for reference in references):
                raise ValueError(f"{name} has no reference summary")
        training = cls([], [])
        for number, cluster in enumerate(clusters):
            view = ClusterView.from_cluster(cluster)
            if budget.costs(view.texts).min() > budget.limit:
                raise ValueError(
                    f"{_cluster_name(number, cluster)}: no sentence fits the budget of "
                    f"{budget.describe()}"
                )
            training.views.append(view)
            training.targets.append(oracle_summary(view, budget))
            progress("fitting", number + 1, len(clusters))
        return training

    def __len__(self) -> int:
        return len(self.views)

    @property
    def names(self) -> list[str]:
        """The name of each cluster in messages."""
        return [_cluster_name(i, view.cluster) for i, view in enumerate(self.views)]

    def describe(self) -> dict[str, float]:
        """Return the numbers of clusters and candidates, and oracles' mean ROUGE F."""
        rouge = Rouge(n=(1, 2), unicode=True, digits=None)
        scores = mean_scores(
            rouge.score("\n".join(view.texts[i] for i in it), view.cluster.references)
            for view, it in zip(self.views, self.targets, strict=True)
        )
        return {
            "n_clusters": len(self),
            "n_sentences": int(np.sum([len(view) for view in self.views])),
            "oracle_rouge_1_f": scores["rouge-1"].f,
            "oracle_rouge_2_f": scores["rouge-2"].f,
        }


def _cluster_name(number: int, cluster: Cluster) -> str:
    """Return the number and the id of a cluster, for messages."""
    return f"cluster {number}" + (f" ({cluster.id})" if cluster.id else "")


def oracle_summary(view: ClusterView, budget: Budget) -> IntArray:
    """Return the sorted positions of candidates chosen for agreement with references.

    A greedy search raises the sum of ROUGE-1 F and ROUGE-2 F, as fractions: with
    ROUGE-1 F alone it stops earlier, at a lower ROUGE-1 F.  It ends where the sum would
    not rise, or when nothing fits the budget.
    """
    references = [words(reference) for reference in view.cluster.references]
    if not any(references):
        raise ValueError("an oracle needs at least one reference summary with words")
    kinds: list[tuple[Any, Any]] = [
        (view.words, references),
        (view.pairs, [list(pairwise(tokens)) for tokens in references]),
    ]
    counts = [count_words([*ours, *theirs]).matrix for ours, theirs in kinds]
    summary = GrowingSummary(
        [matrix[: len(view)] for matrix in counts],
        [matrix[len(view) :].toarray() for matrix in counts],
        np.full(len(references), 1.0 / len(references)),
    )
    constraint = Constraint(None, budget.limit, budget.costs(view.texts))
    chosen, _ = grow_subset(summary, constraint, per_cost=False)
    return np.sort(np.array(chosen, dtype=np.intp))

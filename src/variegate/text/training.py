"""Clusters made ready to learn from."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from variegate._progress import Progress, ignore
from variegate._typing import IntArray
from variegate.model_format import COUNT
from variegate.schema import Number, Record
from variegate.text.budget import Budget
from variegate.text.documents import Cluster
from variegate.text.languages import as_language
from variegate.text.oracle import oracle_summary
from variegate.text.rouge import Rouge, mean_scores
from variegate.text.tfidf import CorpusFrequencies
from variegate.text.view import ClusterView
from variegate.text.words import words

__all__ = ["TRAINING", "TrainingSet"]

#: What a model file holds of it.
TRAINING = Record(
    {
        "n_clusters": COUNT,
        "n_sentences": COUNT,
        "oracle_rouge_1_f": Number(least=0),
        "oracle_rouge_2_f": Number(least=0),
    }
)


@dataclass(frozen=True, eq=False)
class TrainingSet:
    """Clusters, and the sentences that agree best with people's summaries of them.

    Targets are sorted candidate numbers; the corpus is what words are weighed by.
    """

    views: list[ClusterView]
    targets: list[IntArray]
    corpus: CorpusFrequencies | None = None

    @classmethod
    def of(
        cls,
        clusters: Sequence[Cluster],
        budget: Budget,
        corpus: CorpusFrequencies | None = None,
        progress: Progress = ignore,
    ) -> TrainingSet:
        """Split clusters into sentences and find their oracle summaries."""
        _check_references(clusters)
        views, targets = [], []
        for number, cluster in enumerate(clusters):
            view = ClusterView.of(cluster, corpus)
            if budget.costs(view.texts).min() > budget.limit:
                raise ValueError(
                    f"{_name(number, cluster)}: no sentence fits the budget of "
                    f"{budget.describe()}"
                )
            views.append(view)
            targets.append(oracle_summary(view, budget))
            progress("fitting", number + 1, len(clusters))
        return cls(views, targets, corpus)

    def __len__(self) -> int:
        return len(self.views)

    @property
    def names(self) -> list[str]:
        """What each cluster is called in messages."""
        return [_name(i, view.cluster) for i, view in enumerate(self.views)]

    def only(self, wanted: Callable[[Cluster], bool]) -> TrainingSet:
        """Return the part of some clusters."""
        kept = [i for i, view in enumerate(self.views) if wanted(view.cluster)]
        return TrainingSet(
            [self.views[i] for i in kept],
            [self.targets[i] for i in kept],
            self.corpus,
        )

    def describe(self) -> dict[str, float]:
        """Return its size, and how well the oracle summaries agree with people's."""
        rouge = Rouge(n=(1, 2), unicode=True, digits=None)
        scores = mean_scores(
            rouge.score(
                "\n".join(view.texts[i] for i in target), view.cluster.references
            )
            for view, target in zip(self.views, self.targets, strict=True)
        )
        return {
            "n_clusters": len(self),
            "n_sentences": int(np.sum([len(view) for view in self.views])),
            "oracle_rouge_1_f": scores["rouge-1"].f,
            "oracle_rouge_2_f": scores["rouge-2"].f,
        }


def _check_references(clusters: Sequence[Cluster]) -> None:
    if not clusters:
        raise ValueError("there are no clusters to learn from")
    for number, cluster in enumerate(clusters):
        as_language(cluster.language)
        if isinstance(cluster.references, str):
            raise TypeError(
                f"{_name(number, cluster)}: references must be a list of summaries, "
                "not one text"
            )
        if not any(words(reference) for reference in cluster.references):
            raise ValueError(f"{_name(number, cluster)} has no reference summary")


def _name(number: int, cluster: Cluster) -> str:
    return f"cluster {number}" + (f" ({cluster.id})" if cluster.id else "")

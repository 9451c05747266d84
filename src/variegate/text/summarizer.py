"""From clusters with reference summaries to a model, from documents to a summary."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, Self

import numpy as np
from scipy import sparse
from sklearn.utils.validation import check_is_fitted

from variegate._progress import Progress, ignore
from variegate._typing import IntArray, RandomState
from variegate.application.base import (
    FamilyApplication,
    best_by_quality,
    packaged_model,
)
from variegate.decoding import Constraint, Decoder
from variegate.ensemble import LEnsemble
from variegate.files.schema import FLAG, Shape
from variegate.ground_set import GroundSet
from variegate.kernels import Kernel, Linear, MultipleKernel
from variegate.selection import Selection
from variegate.text.budget import Budget, as_budget
from variegate.text.cluster_view import FEATURE_SETS, ClusterView, Embed, feature_names
from variegate.text.consensus import summary_decoder
from variegate.text.documents import Cluster, Document, as_documents
from variegate.text.languages import language_of
from variegate.text.summary import MarkedSentence, Summary
from variegate.text.training_set import TRAINING, TrainingSet
from variegate.text.words import used_only

MAX_CANDIDATES = 1000  # of more sentences, the ones of the highest quality
SIMILARITIES = ("mkr", "cos")


@dataclass(eq=False, repr=False)
class Summarizer(FamilyApplication):
    """Extractive summaries of clusters of documents (section 4.2 of the paper).

    Sentences are the items of a determinantal point process whose quality and
    similarity are learned from clusters that people have summarized.

    Parameters
    ----------
    lam : float, default=1.0
        Weight of the margin; 0 is maximum likelihood.
    omega : float or several, default=1.0
        Cost of a missed sentence relative to one too many.  Of several, a model is
        learned for each, and :meth:`summarize` takes any value between them.
    similarity : {"mkr", "cos"}
        A learned combination of Gaussians and the cosine, or the cosine.
    features : {"full", "paper"}
        Quality features: see ``variegate.text.cluster_view``.
    budget : length of the training summaries, a str or Budget
    n_samples : int, default=500
        Samples with which a summary must agree: minimum Bayes risk decoding.
    l2, max_iter : as for ``LargeMarginDPP``
    embed : callable, optional
        From a list of sentences to an array with one vector each, in place of tf-idf
        for the similarity.  It is not stored in a file.
    random_state : None, int or numpy.random.Generator
    verbose : bool, default=False
        Whether ``fit`` prints its progress on standard error.

    Attributes
    ----------
    family_ : OmegaFamily
        The models; also as ``models_``, one for each of ``omegas_``, which is sorted.
    training_ : dict
        Numbers of clusters and sentences, and the agreement of oracle summaries with
        people's.

    Examples
    --------
    >>> from variegate.text import Cluster, Document, Summarizer
    >>> text = "Rain fell in Oslo today. It was the first rain in weeks. Cats sleep."
    >>> cluster = Cluster([Document(text)], references=["Rain fell in Oslo."])
    >>> model = Summarizer(budget="1s").fit([cluster])
    >>> print(model.summarize([text], budget="1s"))
    Rain fell in Oslo today.
    """

    _type = "summarizer"
    _noun = "summarizer"
    _not_stored = ("embed", "verbose")
    _choices: ClassVar[Mapping[str, Iterable[str]]] = {
        "similarity": SIMILARITIES,
        "features": FEATURE_SETS,
    }
    _count_nouns = ("clusters", "sentences")
    _sections: ClassVar[Mapping[str, Shape]] = {
        "training": TRAINING,
        "embedded": FLAG,
    }

    lam: float = 1.0
    omega: float | Sequence[float] = 1.0
    similarity: str = "mkr"
    features: str = "full"
    budget: str | Budget = "250w"
    n_samples: int = 500
    l2: float = 1e-2
    max_iter: int = 200
    embed: Embed | None = None
    random_state: RandomState = 0
    verbose: bool = False

    def fit(
        self, clusters: Sequence[Cluster], progress: Progress | None = None
    ) -> Self:
        """Learn from clusters with reference summaries, and return the summarizer."""
        self._check_parameters()
        clusters = list(clusters)
        reading, learning = self._progress_parts(progress, len(clusters))
        training = TrainingSet.from_clusters(clusters, as_budget(self.budget), reading)
        return self.fit_prepared(training, learning)

    def fit_prepared(self, training: TrainingSet, progress: Progress = ignore) -> Self:
        """Learn from prepared clusters, so that several fits can share them."""
        self._check_parameters()
        kernel: Kernel = Linear()
        if self.similarity == "mkr":
            bandwidths = [2.0**q for q in range(-6, 7)]
            kernel = MultipleKernel(bandwidths=bandwidths, linear=True)
        ground_sets = [self._ground_set(view) for view in training.views]
        names = training.names
        self._fit_family(kernel, ground_sets, training.targets, names, progress)
        self.training_ = training.describe()
        self.embedded_ = self.embed is not None
        return self

    def _check_parameters(self) -> None:
        """Raise ValueError for invalid parameters of the constructor."""
        super()._check_parameters()
        as_budget(self.budget)

    def _ground_set(self, view: ClusterView, rows: IntArray | None = None) -> GroundSet:
        """Return the features of the candidates ``rows``, by default of all."""
        quality, similarity = view.quality(self.features), view.similarity(self.embed)
        if rows is None:
            return GroundSet(quality, similarity)
        return GroundSet(quality[rows], similarity[rows])

    @property
    def feature_names_(self) -> list[str]:
        """Names of the quality features."""
        return feature_names(self.features)

    def _oracle_text(self) -> str:
        """Return text on the ROUGE F of oracle summaries, for a description."""
        return (
            f"best choice of sentences within {as_budget(self.budget).describe()}: "
            f"ROUGE-1 F {self.training_['oracle_rouge_1_f']:.3f}, "
            f"ROUGE-2 F {self.training_['oracle_rouge_2_f']:.3f}"
        )

    def summarize(
        self,
        documents: Sequence[Document | str],
        budget: str | Budget | None = None,
        omega: float | None = None,
        language: str | None = None,
        random_state: RandomState = None,
    ) -> Summary:
        """Choose the sentences that represent some documents.

        Parameters
        ----------
        documents : sequence of Document or str
        budget : str or Budget, optional
            The most a summary may hold, such as ``"250w"``, ``"665c"`` or ``"5s"``; it
            is filled as far as sentences fit.  By default the model decides.
        omega : float, optional
            Below 1 precise and short, above 1 complete and long; between the values
            that were learned.  By default 1, or the nearest to it.
        language : str, optional
            Of the documents; for abbreviations, function words and pronouns.  "none"
            for a language without word lists; by default it is detected.
        random_state : None, int or numpy.random.Generator; by default the model's
        """
        check_is_fitted(self, "family_")
        checked = as_documents(documents)
        cluster = Cluster(checked, language=language_of(checked, language))
        view = ClusterView.from_cluster(cluster)
        return self.summarize_view(view, budget, omega, random_state)

    def summarize_view(
        self,
        view: ClusterView,
        budget: str | Budget | None = None,
        omega: float | None = None,
        random_state: RandomState = None,
    ) -> Summary:
        """Summarize a prepared cluster: see :meth:`summarize`."""
        check_is_fitted(self, "family_")
        self._check_parameters()
        if self.embedded_ != (self.embed is not None):
            raise ValueError(
                "this model was learned with vectors of your own: set embed to the "
                "same function, as in Summarizer.load(path, embed=...)"
                if self.embedded_
                else "this model was learned without embed: learn again to use one"
            )
        limit = None if budget is None else as_budget(budget)
        omega = self.family_.resolve(omega)
        model = self.family_.at(omega)
        rows = best_by_quality(model, view.quality(self.features), MAX_CANDIDATES)
        ensemble = model.ensemble(self._ground_set(view, rows))
        rng = self._make_generator(random_state)
        selection = self._choose_rows(view, rows, ensemble, limit, rng)
        places = np.array(view.candidates, dtype=np.intp)[rows]  # among all sentences
        chosen = selection.renumber(places)
        taken = set(chosen.indices.tolist())
        probability = dict(
            zip(places.tolist(), ensemble.marginals().tolist(), strict=True)
        )
        marked = [
            MarkedSentence(sentence, probability.get(place), place in taken)
            for place, sentence in enumerate(view.sentences)
        ]
        said, cluster = None if limit is None else str(limit), view.cluster
        return Summary(cluster.documents, marked, said, omega, cluster.language, chosen)

    def _choose_rows(
        self,
        view: ClusterView,
        rows: IntArray,
        ensemble: LEnsemble,
        budget: Budget | None,
        rng: np.random.Generator,
    ) -> Selection:
        """Return the choice among candidates ``rows``, by positions in ``rows``.

        The ensemble is over these rows.
        """
        texts = [view.texts[row] for row in rows]
        if budget is None:
            costs = Budget(1, "words").costs(texts)
        else:
            costs = budget.affordable_costs(texts)
        counts = [used_only(unit[rows]) for unit in view.units()]
        limit = None if budget is None else budget.limit
        decode = self._decoder(counts, fill=budget is not None)
        return decode(ensemble, Constraint(None, limit, costs), rng)

    def _decoder(self, counts: Sequence[sparse.csr_array], fill: bool) -> Decoder:
        """Return a decoder that compares summaries: see ``summary_decoder``."""
        return summary_decoder(self.n_samples, counts, fill)

    @classmethod
    def load(cls, path: str | Path, embed: Embed | None = None) -> Self:
        """Read a model that :meth:`save` wrote; ``embed`` as in training."""
        model = super().load(path)
        model.embed = embed
        return model

    def _encode_rest(self) -> dict[str, Any]:
        """Return the section of a model file that only summarizers have."""
        return {"embedded": self.embedded_}

    def _decode_rest(self, document: Mapping[str, Any]) -> None:
        """Set ``embedded_`` from a model file: see :meth:`_encode_rest`."""
        self.embedded_ = document["embedded"]


def load_default() -> Summarizer:
    """Return the summarizer that comes with the package: see ``models/news.md``."""
    model: Summarizer = packaged_model("variegate.text", "news.json")
    return model

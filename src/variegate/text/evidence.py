"""From a question and texts to the sentences that answer it."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from pathlib import Path
from textwrap import shorten
from typing import Any, ClassVar, Self

import numpy as np
from joblib import delayed
from sklearn.utils.validation import check_is_fitted

from variegate._processes import parallel_processes
from variegate._progress import Progress, ignore
from variegate._random import as_generator
from variegate._typing import IntArray
from variegate._validation import check_choice, check_count, check_number
from variegate.application.base import Application, packaged_model
from variegate.ensemble import LEnsemble
from variegate.estimator import LargeMarginDPP
from variegate.files.schema import Shape
from variegate.selection import Selection, Subsets
from variegate.text.budget import Budget, as_budget
from variegate.text.cluster_view import Embed
from variegate.text.documents import Document
from variegate.text.evidence_model import (
    MAX_CANDIDATES,
    QUALITY,
    TRAINING,
    VECTORS,
    EvidenceQuality,
    MarkedQuestion,
    choose_evidence,
    compare_quality_models,
    evidence_ensemble,
    learn_evidence,
)
from variegate.text.question_input import ViewBuilder, as_passages, as_wanted
from variegate.text.question_view import QuestionView
from variegate.text.summary import Evidence, MarkedSentence
from variegate.text.word_vectors import WORDLLAMA
from variegate.tuning.family import OmegaFamily

QUALITY_MODELS = ("auto", "linear", "boosting")

_TOLERANCE = 0.005  # of the F-score: with copies, boosting gains more
_AT_ONCE = 50  # questions that a process gets at a time


class EvidenceWarning(UserWarning):
    """No sentence has a word of the question."""


@dataclass(eq=False, repr=False)
class EvidenceSelector(Application):
    """Sentences that answer a question, learned from sentences that people marked.

    Sentences are the items of a determinantal point process.  Two of them are alike if
    they cover the same words of the question, if they are alike as texts, or if they
    are close to each other; how much each counts is learned.

    Parameters
    ----------
    embed : {None, "wordllama"} or callable, optional
        Vectors for the similarity and the quality: those of the package wordllama
        (``pip install 'variegate[vectors]'``), which also compare single words; or a
        callable, from a list of texts to one vector each, which no file stores.
    quality_model : {"auto", "linear", "boosting"}
        Whether boosted trees add a quality feature.  "auto" compares F-scores on
        questions that were held out, without copies, and is "boosting" unless that
        loses more than 0.005.  With fewer than three groups it is "linear".
    lam : float, default=0.0
        Weight of the margin.  0 is maximum likelihood: the choice averages over
        probabilities, which a margin distorts.
    l2 : float, default=0.1
        Weight of the squared norm of the quality weights.
    n_copies : int, default=3
        Copies of each question to learn from, in which some of the sentences that are
        not wanted are left out.
    max_iter : int, default=200
    random_state : int, default=0

    Attributes
    ----------
    family_ : OmegaFamily, of one model
    quality_ : EvidenceQuality
        The quality features, standardized as in training.
    training_ : dict
        Numbers of questions and sentences and, with "auto", the held-out F-scores.

    Examples
    --------
    >>> from variegate.text import EvidenceSelector
    >>> sentences = [
    ...     "The pump is cleaned once a month.",
    ...     "Unplug the pump before you clean it.",
    ...     "The tank holds ten litres.",
    ... ]
    >>> model = EvidenceSelector.pretrained()
    >>> print(model.select("How much does the tank hold?", sentences, budget="1s"))
    The tank holds ten litres.
    """

    _type = "evidence-selector"
    _noun = "evidence selector"
    _not_stored = ("embed",)
    _sections: ClassVar[Mapping[str, Shape]] = {
        "training": TRAINING,
        "quality": QUALITY,
        "vectors": VECTORS,
    }

    embed: str | Embed | None = None
    quality_model: str = QUALITY_MODELS[0]
    lam: float = 0.0
    l2: float = 0.1
    n_copies: int = 3
    max_iter: int = 200
    random_state: int | None = 0

    # Learning -------------------------------------------------------------------------

    def fit(
        self,
        questions: Sequence[str],
        sentences: Sequence[Sequence[str]],
        wanted: Sequence[Any],
        *,
        titles: Sequence[Sequence[str]] | None = None,
        embeddings: Sequence[Any] | None = None,
        groups: Sequence[Any] | None = None,
        progress: Progress = ignore,
    ) -> Self:
        """Learn from questions whose wanted sentences are known.

        Parameters
        ----------
        questions : sequence of str
        sentences : sequence of lists of str
            Those to choose from, for each question.  Of more than 200, the 200 with the
            best BM25 scores are used, the wanted ones among them.
        wanted : sequence of lists of int
            For each question, positions from 0, or a mask, of sentences that answer it.
        titles : sequence of lists of str, optional
            Title of the document of each sentence, or the heading above it.
        embeddings : sequence of arrays of shape (1 + N, D), optional
            Of each question (row 0) and its sentences, in place of ``embed``.
        groups : sequence, optional
            Group of each question, such as its text; whole groups are held out.
        progress : callable, optional
        """
        self._check_parameters()
        views = ViewBuilder(self.embed).views(questions, sentences, titles, embeddings)
        if len(views) != len(wanted):
            raise ValueError(f"{len(views)} questions, but {len(wanted)} lists wanted")
        if groups is None:
            groups = range(len(views))
        elif isinstance(groups, str):
            raise TypeError("groups must be a list with one for each question")
        elif len(groups) != len(views):
            raise ValueError(f"{len(views)} questions, but {len(groups)} groups")
        numbers = np.unique([str(one) for one in groups], return_inverse=True)[1]
        marked = [
            MarkedQuestion(
                view, as_wanted(number, members, len(view)), int(group)
            ).limit_sentences(MAX_CANDIDATES)
            for number, (view, members, group) in enumerate(
                zip(views, wanted, numbers, strict=True)
            )
        ]
        return self.fit_prepared(marked, progress)

    def fit_prepared(
        self, questions: Sequence[MarkedQuestion], progress: Progress = ignore
    ) -> Self:
        """Learn from questions as :meth:`fit` makes them; set all fitted attributes."""
        rng = as_generator(self.random_state)
        examples = [[one, *one.copies(self.n_copies, rng)] for one in questions]
        estimator = LargeMarginDPP(lam=self.lam, l2=self.l2, max_iter=self.max_iter)
        best, scores = self.quality_model, dict[str, float]()
        if best == "auto":
            scores = compare_quality_models(
                examples, estimator, QUALITY_MODELS[1:], progress
            )
            loss = scores.get("linear", 1.0) - scores.get("boosting", 0.0)
            best = "boosting" if loss <= _TOLERANCE else "linear"
        self.quality_, model = learn_evidence(examples, estimator, best == "boosting")
        self.family_ = OmegaFamily((1.0,), (model,))
        first = questions[0].view
        kind, size = first.kind_of_vectors, first.vector_size
        self.vectors_: dict[str, Any] = {"kind": kind, "size": size}
        self.training_ = {
            "n_questions": len(questions),
            "n_sentences": sum(len(one.view) for one in questions),
            "n_wanted": sum(len(one.wanted) for one in questions),
            "held_out_f": scores,
        }
        return self

    def _check_parameters(self) -> None:
        """Raise unless the parameters can be used."""
        check_choice("quality_model", self.quality_model, QUALITY_MODELS)
        for name in ("lam", "l2"):
            check_number(name, getattr(self, name))
        check_count("max_iter", self.max_iter)
        check_count("n_copies", self.n_copies, least=0)
        if self.embed is not None and not callable(self.embed):
            check_choice("embed", self.embed, (WORDLLAMA,))

    @property
    def feature_names_(self) -> list[str]:
        """Names of the quality features."""
        return self.quality_.names

    # Choosing -------------------------------------------------------------------------

    def predict(
        self,
        questions: Sequence[str],
        sentences: Sequence[Sequence[str]],
        budget: str | Budget | None = None,
        omega: float | None = None,
        *,
        titles: Sequence[Sequence[str]] | None = None,
        embeddings: Sequence[Any] | None = None,
        n_jobs: int = 1,
    ) -> list[IntArray]:
        """Return the sorted positions of the sentences chosen for each question.

        Parameters are as for :meth:`fit` and :meth:`select`; positions are from 0.
        ``n_jobs`` is the number of processes that share the questions.
        """
        check_is_fitted(self, "family_")
        check_count("n_jobs", n_jobs)
        limit = None if budget is None else as_budget(budget)
        views = ViewBuilder(self.embed).views(questions, sentences, titles, embeddings)
        if n_jobs == 1:
            return Subsets(self._choose_for_each(views, limit, omega))
        parts = [views[k : k + _AT_ONCE] for k in range(0, len(views), _AT_ONCE)]
        found = parallel_processes(n_jobs)(
            delayed(self._choose_for_each)(part, limit, omega) for part in parts
        )
        return Subsets(chain.from_iterable(found))

    def _choose_for_each(
        self, views: Sequence[QuestionView], budget: Budget | None, omega: float | None
    ) -> list[IntArray]:
        """Return the sorted positions of the sentences chosen for each view."""
        # Copies of views, so that words and terms are freed question by question.
        found = (self._choose_from(replace(view), budget, omega) for view in views)
        return [selection.indices for selection, _, _ in found]

    def select(
        self,
        question: str,
        texts: Sequence[str] | Sequence[Document],
        budget: str | Budget | None = None,
        omega: float | None = None,
        *,
        titles: Sequence[str] | None = None,
        embeddings: Any = None,
        language: str | None = None,
        given: Sequence[str] = (),
    ) -> Evidence:
        """Choose the sentences that answer a question.

        Parameters
        ----------
        question : str
        texts : sequence of str or of Document
            Texts are sentences or passages, chosen or left out as a whole; documents
            are split into sentences.
        budget : str or Budget, optional
            The most that is chosen, such as ``"120w"``, ``"5s"`` or ``"800t"``, tokens
            (see :class:`Budget`).  It is filled as far as sentences fit, unless
            ``omega`` is given.  By default the model decides.
        omega : float, optional
            Cost of a missed sentence relative to a wrong one: below 1 few and precise,
            above 1 many and complete.  Default 1.
        titles : sequence of str, optional
            Title of the document of each text, or the heading above it; or of each
            document, until its first heading.
        embeddings : array of shape (1 + N, D), optional
            Of the question and the texts, in place of ``embed``; not for documents.
        language : str, optional
            Of documents, by name or code ("fr"); by default detected.
        given : sequence of str
            Texts of the prompt.  Sentences that stand there are not chosen, and others
            are less likely if they are similar, or have the same words of the question.
            Their quality is that without the prompt.
        """
        check_is_fitted(self, "family_")
        limit = None if budget is None else as_budget(budget)
        passages = as_passages(texts, titles, language, given)
        builder = ViewBuilder(self.embed)
        view = builder.view(
            question, passages.texts, passages.titles, passages.sections, embeddings
        )
        prompt = builder.prompt_view(view, given, passages.language)
        selection, ensemble, rows = self._choose_from(view, limit, omega, prompt)
        shown = dict(zip(rows.tolist(), ensemble.marginals().tolist(), strict=True))
        chosen = selection.renumber(passages.candidates)
        marked = [MarkedSentence(one, None, False) for one in passages.sentences]
        taken = set(selection.indices.tolist())
        for row, place in enumerate(passages.candidates):
            sentence = passages.sentences[place]
            marked[place] = MarkedSentence(sentence, shown.get(row), row in taken)
        reasons = [self._reason(view, row) for row in selection.indices]
        said = None if limit is None else str(limit)
        return Evidence(
            passages.documents, marked, said, 1.0 if omega is None else omega,
            passages.language, chosen, question, reasons,
        )  # fmt: skip

    def _choose_from(
        self,
        view: QuestionView,
        budget: Budget | None,
        omega: float | None,
        prompt: QuestionView | None = None,
    ) -> tuple[Selection, LEnsemble, IntArray]:
        """Choose among the 200 best rows of a view; return a selection of rows.

        Returns also the ensemble of the 200, beside the ``prompt``, and their rows.
        """
        self._check_view(view)
        if omega is not None:
            check_number("omega", omega, positive=True)
        rows = view.best_rows(MAX_CANDIDATES)
        if len(rows) < len(view):
            view = view.take(rows)
        ensemble = evidence_ensemble(view, self.quality_, self.models_[0], prompt)
        selection = choose_evidence(ensemble, omega, budget, view.sentences)
        return selection.renumber(rows), ensemble, rows

    def _check_view(self, view: QuestionView) -> None:
        """Raise ValueError for vectors not as in training; warn if no word matches."""
        view.check_vectors(**self.vectors_)
        if not view.has.any():
            warnings.warn(
                "no sentence has a word of the question "
                f"{shorten(view.question, 60)!r}: is it in the language of the texts?",
                EvidenceWarning,
                stacklevel=4,
            )

    # Explaining -----------------------------------------------------------------------

    def _reason(self, view: QuestionView, row: int) -> str:
        """Return why a row was chosen: its words of the question, else a feature."""
        shared = view.describe_shared_words(row)
        if shared:
            return shared
        effects = self.quality_.of(view)[row] * self.models_[0].theta_
        return f"largest effect: {self.quality_.names[int(effects.argmax())]}"

    def describe_training(self) -> str:
        """Return the size of the training data, and held-out scores, as text."""
        check_is_fitted(self, "family_")
        counts = [f"{noun}: {self.training_[f'n_{noun}']:,}"
                  for noun in ("questions", "sentences", "wanted")]  # fmt: skip
        scores = [f"held-out F, {kind} quality: {score:.3f}"
                  for kind, score in self.training_["held_out_f"].items()]  # fmt: skip
        return "\n".join([*counts, *scores])

    # Keeping --------------------------------------------------------------------------

    @classmethod
    def load(cls, path: str | Path, embed: str | Embed | None = None) -> Self:
        """Return the model that :meth:`save` wrote; pass a callable ``embed`` again."""
        model = super().load(path)
        if embed is not None:
            model.embed = embed
        return model

    @classmethod
    def pretrained(cls, embed: str | None = None) -> EvidenceSelector:
        """Return a selector that has learned already: see ``models/evidence.md``.

        ``embed`` may be "wordllama", for the model with word vectors.
        """
        if embed is not None:
            check_choice("embed", embed, (WORDLLAMA,))
        name = "evidence" if embed is None else f"evidence-{embed}"
        return packaged_model("variegate.text", f"{name}.json")  # type: ignore[no-any-return]

    def _encode_rest(self) -> dict[str, Any]:
        """Return the sections "quality" and "vectors" of a model file."""
        return {"quality": self.quality_.encode(), "vectors": self.vectors_}

    def _decode_rest(self, document: Mapping[str, Any]) -> None:
        """Set ``quality_``, ``vectors_`` and ``embed`` from a file's sections."""
        self.quality_ = EvidenceQuality.decode(document["quality"])
        self.vectors_ = dict(document["vectors"])
        if self.vectors_["kind"] == WORDLLAMA:
            self.embed = WORDLLAMA

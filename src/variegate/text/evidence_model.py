"""Learn from questions with marked sentences, and choose sentences by the model."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning

from variegate._progress import Progress, ignore
from variegate._typing import BoolArray, FloatArray, IntArray
from variegate.decoding import Constraint, ExpectedF
from variegate.ensemble import LEnsemble
from variegate.estimator import BoostedQuality, LargeMarginDPP
from variegate.files.model_format import COUNT, ModelFileError
from variegate.files.schema import ANYTHING, ListOf, Maybe, Number, Record, String
from variegate.ground_set import GroundSet
from variegate.kernels import Gaussian, Kernel, Linear, Mixture
from variegate.metrics import f_score
from variegate.selection import Selection
from variegate.text.budget import Budget
from variegate.text.question_features import quality_features
from variegate.text.question_view import QuestionView
from variegate.text.word_vectors import WORDLLAMA

#: Of a model file: the features of the quality, and the facts about training.
QUALITY = Record(
    {
        "names": ListOf(String(), least=1),
        "mean": ListOf(Number()),
        "scale": ListOf(Number(least=0, is_above=True)),
        "boosted": Maybe(ANYTHING),
    }
)
VECTORS = Record(  # where they are from, and their length
    {"kind": String(("none", WORDLLAMA, "given")), "size": COUNT}
)
TRAINING = Record(
    dict.fromkeys(("n_questions", "n_sentences", "n_wanted"), COUNT),
    {"held_out_f": Record({}, dict.fromkeys(("linear", "boosting"), Number()))},
)

#: Sentences that the model learns and chooses from: of more, those with the best BM25
#: scores, and wanted ones.  Of a prompt, as many are given.
MAX_CANDIDATES = 200

#: Omega with which a budget is filled.
_FILLING = 256.0

_LEAST_SHARE = 0.01  # weight of a similarity that is kept
_N_FOLDS = 5  # of questions, to compare quality models

_ROUNDING = 1e-9  # of features: smaller differences are rounding

#: Shares of other documents, and of other sentences, that copies keep at least.
_LEAST_DOCUMENTS, _LEAST_SENTENCES = 0.5, 0.75


@dataclass(frozen=True, eq=False)
class MarkedQuestion:
    """A question whose wanted sentences are known.

    ``wanted`` are numbers of sentences; questions of one ``group`` stay together when
    questions are held out.
    """

    view: QuestionView
    wanted: IntArray
    group: int

    @property
    def is_wanted(self) -> BoolArray:
        """Whether each sentence is wanted, (N,)."""
        mask = np.zeros(len(self.view), dtype=bool)
        mask[self.wanted] = True
        return mask

    def limit_sentences(self, most: int) -> Self:
        """Return the question with at most ``most`` sentences, or all wanted if more.

        The wanted ones are kept, and then those with the best BM25 scores.
        """
        if len(self.view) <= most:
            return self
        rows = self.view.best_rows(most, self.wanted)
        wanted = np.searchsorted(rows, self.wanted)
        return type(self)(self.view.take(rows), wanted, self.group)

    def copies(self, n_copies: int, rng: np.random.Generator) -> Iterator[Self]:
        """Yield copies without random documents and sentences that are not wanted.

        The terms that are rare and the sentences that rank high differ from copy to
        copy, so a model that learns from them relies less on either.
        """
        needed = set(self.view.documents[self.wanted].tolist())
        others = [one for one in np.unique(self.view.documents) if one not in needed]
        for _ in range(n_copies):
            dropped = rng.random(len(others)) > rng.uniform(_LEAST_DOCUMENTS, 1.0)
            gone = np.isin(self.view.documents, np.array(others)[dropped])
            gone |= rng.random(len(self.view)) > rng.uniform(_LEAST_SENTENCES, 1.0)
            gone &= ~self.is_wanted
            if gone.sum() + len(self.wanted) == len(self.view):
                gone[:] = False  # nothing would be left to choose from
            kept = self.is_wanted[~gone]
            view = self.view.leave_out(np.flatnonzero(gone))
            yield type(self)(view, np.flatnonzero(kept), self.group)


@dataclass(frozen=True, eq=False)
class EvidenceQuality:
    """The quality features of sentences, standardized as in training.

    Attributes
    ----------
    names : list of str
    mean, scale : arrays of shape (d,)
        Over the sentences learned from; a feature is less its mean, over its scale.
    boosted : BoostedQuality or None
        Adds its log-odds, and these standardized within a question, as two features.
    """

    names: list[str]
    mean: FloatArray
    scale: FloatArray
    boosted: BoostedQuality | None

    @classmethod
    def learn(
        cls, questions: Sequence[MarkedQuestion], boosting: bool
    ) -> tuple[Self, list[FloatArray]]:
        """Learn means, scales and, if ``boosting``, trees from questions.

        Returns also the features (N, d) of each, by trees that did not see its group.
        """
        columns = [quality_features(one.view) for one in questions]
        names = list(columns[0])
        found = [np.column_stack(list(one.values())) for one in columns]
        boosted = None
        if boosting:
            groups = np.repeat(
                [one.group for one in questions], [len(one) for one in found]
            )
            wanted = np.concatenate([one.is_wanted for one in questions])
            boosted, scores = BoostedQuality.fit_out_of_fold(
                np.vstack(found), wanted, groups
            )
            ends = np.cumsum([len(one) for one in found])[:-1]
            found = [
                _with_score(rows, score)
                for rows, score in zip(found, np.split(scores, ends), strict=True)
            ]
            names += ["boosted score", "boosted score, standardized"]
        rows = np.vstack(found)
        scale = rows.std(axis=0)
        scale[scale < _ROUNDING] = 1.0
        learned = cls(names, rows.mean(axis=0), scale, boosted)
        return learned, [learned._standardize(rows) for rows in found]

    def of(self, view: QuestionView) -> FloatArray:
        """Return the standardized features of a question's sentences, (N, d)."""
        found = quality_features(view)
        if (
            list(found)
            != self.names[: len(self.names) - 2 * (self.boosted is not None)]
        ):
            raise ValueError(
                "this model was learned with other quality features: learn it again "
                "with this version, or use the version that learned it"
            )
        rows = np.column_stack(list(found.values()))
        if self.boosted is not None:
            rows = _with_score(rows, self.boosted.scores(rows))
        return self._standardize(rows)

    def _standardize(self, rows: FloatArray) -> FloatArray:
        """Return features less the mean, over the scale; sizes below 1e-9 become 0.

        Otherwise the solver would take rounding of equal values for a feature.
        """
        standard = (rows - self.mean) / self.scale
        return np.where(np.abs(standard) < _ROUNDING, 0.0, standard)

    def encode(self) -> dict[str, Any]:
        """Return the features as plain values."""
        return {
            "names": self.names,
            "mean": self.mean.tolist(),
            "scale": self.scale.tolist(),
            "boosted": None if self.boosted is None else self.boosted.encode(),
        }

    @classmethod
    def decode(cls, document: Mapping[str, Any]) -> Self:
        """Return the features of :meth:`encode`; ModelFileError if sizes differ."""
        names = list(document["names"])
        mean, scale = np.array(document["mean"]), np.array(document["scale"])
        if not len(mean) == len(scale) == len(names):
            raise ModelFileError(
                f"{len(names)} names of features, but {len(mean)} means and "
                f"{len(scale)} scales"
            )
        boosted = document["boosted"]
        if boosted is not None:
            boosted = BoostedQuality.decode(boosted, "quality.boosted")
            if boosted.n_features != len(names) - 2:
                raise ModelFileError(
                    f"trees of {boosted.n_features} features among {len(names)}"
                )
        return cls(names, mean, scale, boosted)


def _with_score(rows: FloatArray, scores: FloatArray) -> FloatArray:
    """Return features (N, d) and two columns: scores (N,), and these standardized."""
    spread = float(scores.std())
    standard = (scores - scores.mean()) / (spread if spread > 1e-12 else np.inf)
    return np.column_stack([rows, scores, standard])


def evidence_kernel(blocks: Sequence[str]) -> Mixture:
    """Return a mixture to learn over the named blocks of :class:`QuestionView`.

    It is linear on all but "place", with Gaussians on "place", "words", "embedding".
    """
    parts: list[Kernel] = [Linear(block=name) for name in blocks if name != "place"]
    parts.append(Gaussian(2.0, block="place"))
    parts += [
        Gaussian(0.5, block=name) for name in ("words", "embedding") if name in blocks
    ]
    return Mixture(parts)


def as_ground_set(
    view: QuestionView,
    quality: FloatArray,
    kernel: Mixture | None = None,
    prompt: QuestionView | None = None,
) -> GroundSet:
    """Return a ground set of sentences, with features ``quality`` of shape (N, d).

    It has all blocks of similarity features, or those that a ``kernel`` reads.  After
    the N sentences, those of a ``prompt`` are given: the 200 with the best BM25 scores.
    """
    names = None if kernel is None else {part.block for part in kernel.kernels}
    if prompt is None:
        return GroundSet.from_checked_arrays(quality, view.blocks(names))
    candidates = np.arange(len(view))
    both = view.join(prompt)
    both = both.take(both.best_rows(len(view) + MAX_CANDIDATES, candidates))
    given = np.arange(len(view), len(both))
    quality = np.concatenate([quality, np.zeros((len(given), quality.shape[1]))])
    return GroundSet.from_checked_arrays(quality, both.blocks(names), given=given)


def learn_evidence(
    examples: Sequence[Sequence[MarkedQuestion]],
    estimator: LargeMarginDPP,
    boosting: bool,
) -> tuple[EvidenceQuality, LargeMarginDPP]:
    """Learn quality features and a model from lists of a question and its copies.

    ``boosting`` adds scores of trees to the features; the ``estimator`` is cloned.
    Similarities whose weight is below 0.01, but for "place", are dropped, and the
    others learned again: choosing then computes fewer.  Returns the features, to be
    computed for other questions too, and the fitted model.
    """
    questions = [one for copies in examples for one in copies]
    quality, features = EvidenceQuality.learn(questions, boosting)
    ground_sets = [
        as_ground_set(one.view, rows)
        for one, rows in zip(questions, features, strict=True)
    ]
    subsets = [one.wanted for one in questions]
    kernel = evidence_kernel(list(ground_sets[0].blocks))
    model: LargeMarginDPP = clone(estimator).set_params(kernel=kernel)
    model.fit(ground_sets, subsets)
    used = model.kernel_parameters_ >= _LEAST_SHARE
    # "place" has full rank, so that any two sentences can be wanted together.
    used |= [part.block == "place" for part in kernel.kernels]
    if not used.all():
        parts = [one for one, kept in zip(kernel.kernels, used, strict=True) if kept]
        model.set_params(kernel=Mixture(parts), warm_start=False)
        model.fit(ground_sets, subsets)
    return quality, model


def evidence_ensemble(
    view: QuestionView,
    quality: EvidenceQuality,
    model: LargeMarginDPP,
    prompt: QuestionView | None = None,
) -> LEnsemble:
    """Return the ensemble of a question's sentences by a fitted model.

    Sentences of a ``prompt`` are given: their similarity to the others counts.
    """
    return model.ensemble(as_ground_set(view, quality.of(view), model.kernel_, prompt))


def compare_quality_models(
    examples: Sequence[Sequence[MarkedQuestion]],
    estimator: LargeMarginDPP,
    names: Sequence[str],
    progress: Progress = ignore,
) -> dict[str, float]:
    """Return mean F-scores of "linear" and "boosting" on questions held out by group.

    ``examples`` are lists of a question and copies, which are not used.  Empty if trees
    cannot be learned: there are fewer than three groups, or the questions outside a
    fold lack sentences that are wanted, or others.
    """
    groups = np.array([copies[0].group for copies in examples])
    distinct, number = np.unique(groups, return_inverse=True)
    n_folds = min(_N_FOLDS, len(distinct))
    folds = np.random.default_rng(0).permutation(len(distinct))[number] % n_folds
    if n_folds < 3 or not _have_both_kinds(examples, folds):
        return {}
    scores: dict[str, float] = {}
    for name in names:
        found = []
        for fold in range(n_folds):
            kept = [
                one[:1] for one, f in zip(examples, folds, strict=True) if f != fold
            ]
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", ConvergenceWarning)
                quality, model = learn_evidence(kept, estimator, name == "boosting")
            for place in np.flatnonzero(folds == fold).tolist():
                question = examples[place][0]
                ensemble = evidence_ensemble(question.view, quality, model)
                chosen = choose_evidence(ensemble, 1.0)
                found.append(f_score(chosen.indices, question.wanted))
            n_done = len(scores) * n_folds + fold + 1
            progress("comparing", n_done, n_folds * len(names))
        scores[name] = float(np.mean(found))
    return scores


def _have_both_kinds(
    examples: Sequence[Sequence[MarkedQuestion]], folds: IntArray
) -> bool:
    """Whether outside each of ``folds`` (n,) are both wanted and other sentences."""
    n_wanted = np.array([len(copies[0].wanted) for copies in examples])
    n_others = np.array([len(copies[0].view) for copies in examples]) - n_wanted
    outside = [folds != fold for fold in np.unique(folds)]
    return all(n_wanted[one].any() and n_others[one].any() for one in outside)


def choose_evidence(
    ensemble: LEnsemble,
    omega: float | None,
    budget: Budget | None = None,
    texts: Sequence[str] = (),
) -> Selection:
    """Choose the set of sentences with the largest expected F-score, within a budget.

    ``omega`` is the weight of recall, beta squared; by default 1.  With a budget for
    ``texts`` it is by default so large that recall alone counts, and the most probable
    of the other sentences that fit fill the budget.
    """
    constraint = Constraint(None, None, np.ones(len(ensemble)))
    default = 1.0
    if budget is not None:
        constraint = Constraint(None, budget.limit, budget.affordable_costs(texts))
        default = _FILLING
    decode = ExpectedF(float(np.sqrt(default if omega is None else omega)))
    selection = decode(ensemble, constraint, np.random.default_rng(0))
    if budget is None or omega is not None:
        return selection
    return _fill_budget(selection, ensemble, constraint.costs, budget.limit)


def _fill_budget(
    selection: Selection, ensemble: LEnsemble, costs: FloatArray, limit: float
) -> Selection:
    """Return the selection with the most probable other items that fit the limit."""
    chosen = selection.indices.tolist()
    left = limit - costs[chosen].sum()
    added = 0
    for item in np.argsort(-ensemble.marginals(), kind="stable").tolist():
        if item not in chosen and costs[item] <= left:
            chosen.append(item)
            left -= costs[item]
            added += 1
    if not added:
        return selection
    reason = f"{selection.stop_reason}; then the {added} most probable others that fit"
    return Selection.from_items(ensemble, chosen, reason)

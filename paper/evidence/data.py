"""Questions and reviews with sentences that people marked, as items of a model."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.kernel_ridge import KernelRidge

from variegate._typing import FloatArray, IntArray
from variegate.linalg.cosine import unit_rows
from variegate.text.question_input import ViewBuilder
from variegate.text.question_view import APART, QuestionView
from variegate.text.word_vectors import WORDLLAMA

SETS = ("hotpotqa", "multirc", "oposum")

#: By which scores are multiplied, so that their variance is about 1.
_SPREAD = 10.0

_N_FOLDS = 5  # of training products, for scores out of fold


@dataclass(frozen=True, eq=False)
class Question:
    """Sentences to choose from, and those that each of several people wanted.

    Reviews have no question: their view has the words that most reviews use instead.
    Questions of one ``group`` are held out together.
    """

    id: str
    group: str
    view: QuestionView
    wanted: list[IntArray]


def load_set(folder: str, name: str) -> list[Question]:
    """Read a set of questions from a folder of JSON lines."""
    lines = (Path(folder) / f"{name}.jsonl").read_text("utf-8").splitlines()
    records = [json.loads(line) for line in lines]
    read = _read_review if name == "oposum" else _read_question
    return [read(f"{name} {number}", record) for number, record in enumerate(records)]


def _read_question(name: str, record: dict[str, Any]) -> Question:
    """Return the question of a record of MultiRC or HotpotQA."""
    texts = list(record["sentences"])
    titles = list(record.get("titles") or [""] * len(texts))
    view = ViewBuilder(WORDLLAMA).view(
        record["question"], texts, titles, _numbers_of(titles)
    )
    wanted = [np.array(sorted(record["wanted"]))]
    group = str(record.get("text", record["id"]))
    return Question(name, group, view, wanted)


def _read_review(name: str, record: dict[str, Any]) -> Question:
    """Return the reviews of a product, a review as a document."""
    segments, reviews = list(record["segments"]), record["review"]
    question = " ".join(_frequent_words(segments, reviews))
    view = ViewBuilder(WORDLLAMA).view(
        question, segments, [""] * len(segments), _numbers_of(reviews)
    )
    wanted = [np.array(sorted(one)) for one in record["wanted"]]
    return Question(name, str(record["id"]), view, wanted)


def _frequent_words(segments: Sequence[str], reviews: Sequence[str]) -> list[str]:
    """Return the twelve words that most of the reviews have."""
    words = set()
    for segment, review in zip(segments, reviews, strict=True):
        words |= {(review, word) for word in segment.lower().split() if word.isalpha()}
    counts = Counter(word for _, word in sorted(words) if len(word) > 3)
    return [word for word, _ in counts.most_common(12)]


def _numbers_of(names: Sequence[str]) -> IntArray:
    """Return the number of each name, in order of first appearance."""
    number = {name: k for k, name in enumerate(dict.fromkeys(names))}
    return np.array([number[name] for name in names], dtype=np.intp)


# Quality of review segments -----------------------------------------------------------


@dataclass(frozen=True, eq=False)
class ReviewFeatures:
    """Quality features of review segments, standardized on the training products.

    Place, length, wording and likeness to the other segments, and a score by kernel
    ridge regression on these and the embedding: which opinions people keep is in the
    words.
    """

    mean: FloatArray
    scale: FloatArray
    centre: FloatArray
    regression: KernelRidge

    @classmethod
    def learn(
        cls, questions: Sequence[Question]
    ) -> tuple[ReviewFeatures, list[FloatArray]]:
        """Learn features; return also those of the products learned from.

        Their scores are by regressions on other products.
        """
        views = [one.view for one in questions]
        rows = np.vstack([_wording(view) for view in views])
        vectors = np.vstack([_unit_embeddings(view) for view in views])
        centre = vectors.mean(axis=0)
        scale = rows.std(axis=0)
        scale[scale < 1e-9] = 1.0
        n_features = rows.shape[1] + vectors.shape[1]
        regression = KernelRidge(alpha=1.0, kernel="rbf", gamma=1.0 / n_features)
        learned = cls(rows.mean(axis=0), scale, centre, regression)
        inputs = [learned._regression_inputs(view) for view in views]
        targets = [_share_wanting(one) for one in questions]
        scores: list[FloatArray] = [np.zeros(0)] * len(views)
        folds = np.random.default_rng(0).permutation(len(views)) % _N_FOLDS
        for fold in range(_N_FOLDS):
            kept = np.flatnonzero(folds != fold)
            model = clone(regression).fit(
                np.vstack([inputs[k] for k in kept]),
                np.concatenate([targets[k] for k in kept]),
            )
            for place in np.flatnonzero(folds == fold):
                scores[place] = model.predict(inputs[place])
        regression.fit(np.vstack(inputs), np.concatenate(targets))
        pairs = zip(views, scores, strict=True)
        return learned, [learned._join(view, score) for view, score in pairs]

    def of(self, view: QuestionView) -> FloatArray:
        """Return the features of the segments of a product (N, d)."""
        return self._join(view, self.regression.predict(self._regression_inputs(view)))

    def _regression_inputs(self, view: QuestionView) -> FloatArray:
        """Return wording and embedding, all of about unit variance (N, d)."""
        turned = _unit_embeddings(view) - self.centre
        scale = np.sqrt(turned.shape[1])  # of vectors of unit length
        return np.column_stack([self._standard_wording(view), scale * turned])

    def _standard_wording(self, view: QuestionView) -> FloatArray:
        """Return features of the wording less the mean, over the scale (N, d)."""
        return np.asarray((_wording(view) - self.mean) / self.scale)

    def _join(self, view: QuestionView, scores: FloatArray) -> FloatArray:
        """Return wording and scores (N, d)."""
        return np.column_stack([self._standard_wording(view), _SPREAD * scores])


def _share_wanting(question: Question) -> FloatArray:
    """Return the share of people who wanted each segment (N,)."""
    share = np.zeros(len(question.view))
    for wanted in question.wanted:
        share[wanted] += 1.0 / len(question.wanted)
    return share


def _unit_embeddings(view: QuestionView) -> FloatArray:
    """Return the embeddings of the segments, of unit length."""
    assert view.embeddings is not None
    return unit_rows(view.embeddings[1:])


def _wording(view: QuestionView) -> FloatArray:
    """Return features of place, length, marks and likeness to other segments (N, d)."""
    unit = _unit_embeddings(view)
    likeness = unit @ unit.T
    mean = unit_rows(unit.mean(axis=0)[None])[0]
    length = np.log1p([len(words) for words in view.words])
    place = view.places % APART
    n_in_review = np.bincount(view.documents)[view.documents]
    columns = [
        unit @ mean,
        likeness.mean(axis=1),
        np.sort(likeness, axis=1)[:, -6:-1].mean(axis=1),
        view.coverage,
        view.bm25,
        length,
        length**2,
        np.log1p(place),
        place == 0.0,
        np.log(n_in_review),
        [segment[:1].isupper() for segment in view.sentences],
        [segment.endswith((".", "!", "?")) for segment in view.sentences],
    ]
    columns += [[mark in segment for segment in view.sentences] for mark in "!?"]
    for words in (("i", "my", "me"), ("not", "no", "never", "t", "dont")):
        columns.append(
            [any(word.lower() in words for word in one) for one in view.words]
        )
    return np.column_stack([np.asarray(column, dtype=np.float64) for column in columns])

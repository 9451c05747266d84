"""One piece of work: learn on some questions, choose for the others by every method."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from typing import TypeVar

import numpy as np

from paper.evidence.data import SETS, Question, ReviewFeatures, load_set
from paper.evidence.rivals import (
    Item,
    best_rule,
    boosting_scores,
    dpp_rules,
    logistic_scores,
    mean_f,
    mmr_rules,
    order_by_mmr,
    top_rules,
)
from paper.evidence.settings import GROWTH, OURS, Setup
from paper.experiment import Record
from variegate._typing import FloatArray, IntArray
from variegate.estimator import LargeMarginDPP
from variegate.ground_set import GroundSet
from variegate.kernels import Gaussian, Kernel, Linear, Mixture
from variegate.metrics import precision, recall
from variegate.text import Budget, EvidenceSelector
from variegate.text.evidence_model import (
    EvidenceQuality,
    MarkedQuestion,
    choose_evidence,
    evidence_kernel,
)
from variegate.text.question_view import QuestionView

_BUDGET = Budget(120, "words")

#: Penalty of the quality of reviews.
_L2_REVIEWS = 0.03

#: From the name of a method, its choices and the share of the training questions to
#: their scores.
Judge = Callable[..., Iterator[Record]]

#: From questions to learn from, and to judge, to the log-odds of their sentences.
Scorer = Callable[
    [Sequence[Item], Sequence[Item]], tuple[list[FloatArray], list[FloatArray]]
]

_Example = TypeVar("_Example", Item, MarkedQuestion)


def work_list(setup: Setup) -> list[tuple[str, int]]:
    """Return the pieces: a set, and the fold that is held out; 0 with test data."""
    folds = [0] if setup.test_data else range(setup.settings.n_folds)
    return [(name, fold) for name in SETS for fold in folds]


def compute_piece(setup: Setup, name: str, fold: int) -> list[Record]:
    """Return the scores of every method on every question that is held out."""
    train, test = _split(setup, name, fold)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        records = list(_all_methods(setup, name, train, test))
    return [{"set": name, **record} for record in records]


def _split(setup: Setup, name: str, fold: int) -> tuple[list[Question], list[Question]]:
    """Return the questions to learn from, and those to judge."""
    known = load_set(setup.data, name)
    if setup.test_data:
        return known, load_set(setup.test_data, name)
    groups = sorted({one.group for one in known})
    order = np.random.default_rng(setup.settings.seed).permutation(len(groups))
    number = {
        group: order[k] % setup.settings.n_folds for k, group in enumerate(groups)
    }
    train = [one for one in known if number[one.group] != fold]
    return train, [one for one in known if number[one.group] == fold]


def _all_methods(
    setup: Setup, name: str, train: list[Question], test: list[Question]
) -> Iterator[Record]:
    """Yield the scores of all methods on the questions to judge."""
    learner = _Reviews if name == "oposum" else _Questions
    task = learner(setup, train, test)
    judge = partial(_records, test)
    yield from task.own_methods(judge)
    items, judged = task.items()
    for classifier, scorer in (
        ("logistic", logistic_scores),
        ("boosting", boosting_scores),
    ):
        known, scores = scorer(items, judged)
        for how, rules, block in (
            ("top k", top_rules(items), None),
            ("MMR of embeddings", mmr_rules(items), "embedding"),
            ("MMR of coverage", mmr_rules(items), "terms"),
            ("DPP of coverage", dpp_rules(), "terms"),
        ):
            rule = best_rule(rules, items, known, block)
            chosen = [
                rule(score, one.blocks[block] if block else one.X)
                for score, one in zip(scores, judged, strict=True)
            ]
            yield from judge(f"{classifier}, {how}", chosen)
        yield from _growth(setup, f"{classifier}, top k", scorer, items, judged, judge)
        if name != "oposum":
            order = [
                _fill(np.argsort(-s), q) for s, q in zip(scores, test, strict=True)
            ]
            yield from judge(f"{classifier} order, 120 words", order)
    rule = best_rule(top_rules(items), items, [one.bm25 for one in items], None)
    yield from judge("BM25, top k", [rule(one.bm25, one.X) for one in judged])
    if name != "oposum":
        yield from _simple_budgets(judged, test, judge)


def _growth(
    setup: Setup,
    method: str,
    scorer: Scorer,
    items: Sequence[Item],
    judged: Sequence[Item],
    judge: Judge,
) -> Iterator[Record]:
    """Yield the scores of a classifier's best learned from parts of the questions."""
    for share in GROWTH:
        part = _share(items, share, setup.settings.seed)
        known, scores = scorer(part, judged)
        rule = best_rule(top_rules(part), part, known, None)
        chosen = [rule(s, one.X) for s, one in zip(scores, judged, strict=True)]
        yield from judge(method, chosen, share)


def _share(examples: Sequence[_Example], share: float, seed: int) -> list[_Example]:
    """Return the examples of a share of the groups."""
    groups = np.unique([one.group for one in examples])
    rng = np.random.default_rng(seed)
    kept = set(rng.permutation(groups)[: max(5, round(share * len(groups)))].tolist())
    return [one for one in examples if one.group in kept]


def _simple_budgets(
    judged: Sequence[Item], test: Sequence[Question], judge: Judge
) -> Iterator[Record]:
    """Yield the sentences that simple orders keep within 120 words."""
    yield from judge(
        "first sentences, 120 words",
        [_fill(np.arange(len(one.X)), q) for one, q in zip(judged, test, strict=True)],
    )
    yield from judge(
        "BM25 order, 120 words",
        [_fill(np.argsort(-one.bm25), q) for one, q in zip(judged, test, strict=True)],
    )
    yield from judge(
        "MMR of BM25, 120 words",
        [
            _fill(order_by_mmr(_standard(one.bm25), one.blocks["embedding"], 0.7), q)
            for one, q in zip(judged, test, strict=True)
        ],
    )


def _standard(values: FloatArray) -> FloatArray:
    """Return values with mean 0 and variance 1."""
    return np.asarray((values - values.mean()) / max(float(values.std()), 1e-9))


def _fill(order: IntArray, question: Question) -> IntArray:
    """Return sentences in an order, those that still fit 120 words."""
    costs = _BUDGET.costs(question.view.sentences)
    chosen, spent = [], 0.0
    for place in order:
        if spent + costs[place] <= _BUDGET.limit:
            chosen.append(int(place))
            spent += costs[place]
    return np.array(chosen, dtype=np.intp)


def _records(
    test: Sequence[Question],
    method: str,
    chosen: Sequence[IntArray],
    share: float = 1.0,
) -> Iterator[Record]:
    """Yield the scores of what a method chose."""
    for question, indices in zip(test, chosen, strict=True):
        wanted = question.wanted
        yield {
            "method": method,
            "share": share,
            "question": question.id,
            "group": question.group,
            "f": mean_f(indices, wanted),
            "precision": float(np.mean([precision(indices, w) for w in wanted])),
            "recall": float(np.mean([recall(indices, w) for w in wanted])),
            "size": len(indices),
        }


class _Questions:
    """Our methods on questions, with the features of ``EvidenceSelector``."""

    def __init__(
        self, setup: Setup, train: list[Question], test: list[Question]
    ) -> None:
        self.setup, self.test = setup, test
        numbers = {g: k for k, g in enumerate(sorted({one.group for one in train}))}
        self.marked = [
            MarkedQuestion(one.view, one.wanted[0], numbers[one.group]) for one in train
        ]

    def items(self) -> tuple[list[Item], list[Item]]:
        """Return the questions to learn from and to judge, as numbers."""
        quality, rows = EvidenceQuality.learn(self.marked, boosting=False)
        known = [
            Item(X, one.view.blocks(), [one.wanted], one.group, one.view.bm25)
            for one, X in zip(self.marked, rows, strict=True)
        ]
        return known, [
            Item(quality.of(one.view), one.view.blocks(), one.wanted, -1, one.view.bm25)
            for one in self.test
        ]

    def own_methods(self, judge: Judge) -> Iterator[Record]:
        """Yield the scores of our methods."""
        ours = EvidenceSelector(embed="wordllama")
        yield from self._judge_selector(OURS, ours, judge)
        for label, settings in (
            ("linear quality", {"quality_model": "linear"}),
            ("boosted quality", {"quality_model": "boosting"}),
            ("linear quality, λ = 4", {"quality_model": "linear", "lam": 4.0}),
            (
                "linear quality, without copies",
                {"quality_model": "linear", "n_copies": 0},
            ),
        ):
            selector = EvidenceSelector(embed="wordllama", **settings)
            yield from self._judge_selector(f"DPP, {label}", selector, judge)
        linear = EvidenceSelector(quality_model="linear")
        plain = [replace(one, view=_without_vectors(one.view)) for one in self.marked]
        model = linear.fit_prepared(plain)
        chosen = [model._choose_from(_without_vectors(one.view), None, 1.0)[0].indices
                  for one in self.test]  # fmt: skip
        yield from judge("DPP, linear quality, without word vectors", chosen)
        for label, kernel in _single_kernels():
            known, judged = self.items()
            yield from judge(
                f"DPP, linear quality, {label}", _fit_and_choose(known, judged, kernel)
            )
        for share in GROWTH:
            part = _share(self.marked, share, self.setup.settings.seed)
            selector = EvidenceSelector(embed="wordllama", quality_model="linear")
            selector.fit_prepared(part)
            chosen = [selector._choose_from(one.view, None, 1.0)[0].indices
                      for one in self.test]  # fmt: skip
            yield from judge("DPP, linear quality", chosen, share)

    def _judge_selector(
        self, method: str, selector: EvidenceSelector, judge: Judge
    ) -> Iterator[Record]:
        """Yield the scores of a selector, and those within 120 words."""
        selector.fit_prepared(self.marked)
        for label, budget in ((method, None), (f"{method}, 120 words", _BUDGET)):
            chosen = [
                selector._choose_from(one.view, budget, None)[0].indices
                for one in self.test
            ]
            yield from judge(label, chosen)


def _without_vectors(view: QuestionView) -> QuestionView:
    """Return a view without embeddings and vectors of words."""
    return replace(view, embeddings=None, word_vectors=None)


class _Reviews:
    """Our methods on reviews, whose quality is learned from their words."""

    def __init__(
        self, setup: Setup, train: list[Question], test: list[Question]
    ) -> None:
        features, known = ReviewFeatures.learn(train)

        def as_item(number: int, one: Question, X: FloatArray) -> Item:
            """Return the segments of a product as numbers."""
            return Item(X, one.view.blocks(), one.wanted, number, one.view.bm25)

        self.setup = setup
        self.train = list(map(as_item, range(len(train)), train, known))
        self.test = [as_item(-1, one, features.of(one.view)) for one in test]

    def items(self) -> tuple[list[Item], list[Item]]:
        """Return the products to learn from and to judge."""
        return self.train, self.test

    def own_methods(self, judge: Judge) -> Iterator[Record]:
        """Yield the scores of our methods."""
        kernel = evidence_kernel(list(self.train[0].blocks))
        yield from judge(
            OURS, _fit_and_choose(self.train, self.test, kernel, _L2_REVIEWS)
        )
        known, scores = boosting_scores(self.train, self.test)
        boosted = [
            [_with_feature(*pair) for pair in zip(items, found, strict=True)]
            for items, found in ((self.train, known), (self.test, scores))
        ]
        chosen = _fit_and_choose(boosted[0], boosted[1], kernel, _L2_REVIEWS)
        yield from judge("DPP, boosted quality", chosen)
        yield from judge(
            "DPP, linear quality, λ = 4",
            _fit_and_choose(self.train, self.test, kernel, _L2_REVIEWS, lam=4.0),
        )
        for label, single in _single_kernels():
            chosen = _fit_and_choose(self.train, self.test, single, _L2_REVIEWS)
            yield from judge(f"DPP, linear quality, {label}", chosen)
        for share in GROWTH:
            part = _share(self.train, share, self.setup.settings.seed)
            chosen = _fit_and_choose(part, self.test, kernel, _L2_REVIEWS)
            yield from judge(OURS, chosen, share)


def _with_feature(item: Item, values: FloatArray) -> Item:
    """Return an item with one more quality feature."""
    return replace(item, X=np.column_stack([item.X, values / 2.0]))


def _single_kernels() -> Iterator[tuple[str, Kernel]]:
    """Yield each similarity beside the identity, and the identity alone."""
    identity = Gaussian(0.01, block="place")  # no two sentences have one place
    for block in ("words", "embedding", "terms", "near terms"):
        yield f"only {block}", Mixture([Linear(block=block), identity])
    yield "only place", Mixture([Gaussian(2.0, block="place"), identity])
    yield "no similarity", identity


def _fit_and_choose(
    train: Sequence[Item],
    test: Sequence[Item],
    kernel: Kernel,
    l2: float = 0.1,
    lam: float = 0.0,
) -> list[IntArray]:
    """Learn from each person's choice, and choose for the test questions."""
    pairs = [(one, wanted) for one in train for wanted in one.wanted]
    model = LargeMarginDPP(lam=lam, kernel=kernel, l2=l2, max_iter=200).fit(
        [GroundSet(one.X, one.blocks) for one, _ in pairs],
        [wanted for _, wanted in pairs],
    )
    ensembles = (model.ensemble(GroundSet(one.X, one.blocks)) for one in test)
    return [choose_evidence(ensemble, 1.0).indices for ensemble in ensembles]

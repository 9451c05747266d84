"""One piece of work: learn on some topics, summarize the others, score everything."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Sequence
from functools import partial
from itertools import chain
from pathlib import Path

import numpy as np

from paper.documents.data import (
    held_out_parts,
    load_corpus,
    read_year,
    rouge_for,
    topic_of,
)
from paper.documents.decoders import CONSENSUS
from paper.documents.methods import all_methods, new_summarizer
from paper.documents.settings import Settings, Setup
from paper.experiment import Record
from paper.held_out import Choice, choose
from variegate.text import Budget, Cluster, ClusterView, Rouge
from variegate.text.training_set import TrainingSet

Clusters = Sequence[Cluster]


def work_list(setup: Setup) -> list[tuple[str, str]]:
    """Return the pieces: a kind of summary, and the topic that is held out.

    With test data there is one fold, called "all": learn on everything.
    """
    train = load_corpus(setup.data)
    test = load_corpus(setup.test_data) if setup.test_data else None
    folds = ["all"] if test is not None else train.topics()
    kinds = ("news",) if setup.settings.rows else ("news", "omega")
    work = [(kind, fold) for fold in folds for kind in kinds]
    judged = test.reviews if test else train.reviews.get("val")
    if train.reviews.get("train") and judged:
        work.append(("reviews", "all"))
    if setup.duc:
        work.append(("duc", "all"))
    return work


def compute_piece(setup: Setup, kind: str, fold: str) -> list[Record]:
    """Return the scores of every method on every cluster that is held out."""
    with warnings.catch_warnings():
        # What stops a fit at its limit of steps is the same for all methods.
        warnings.simplefilter("ignore")
        learn, judge, systems = _split(setup, kind, fold)
        if kind == "omega":
            return list(_along_omega(setup, learn, judge))
        length = {"news": "long", "duc": "short"}.get(kind, kind)
        chosen = _choose_on_training(setup.settings, learn, length)
        table = partial(_table, setup, learn=learn, chosen=chosen, systems=systems)
        records = table(length, judge=judge)
        english = [cluster for cluster in judge if cluster.language == "english"]
        if kind == "news" and english:
            # What is chosen for long summaries serves the short ones too.
            records += table("short", judge=english)
        return [r | {"kind": "duc"} for r in records] if kind == "duc" else records


def _split(
    setup: Setup, kind: str, fold: str
) -> tuple[Clusters, Clusters, dict[str, dict[str, str]]]:
    """Return what to learn from, what to judge, and the official summaries of it."""
    if kind == "duc":
        assert setup.duc is not None
        return read_year(setup.duc, "duc2003"), read_year(setup.duc, "duc2004"), {}
    train = load_corpus(setup.data)
    test = load_corpus(setup.test_data) if setup.test_data else None
    if kind == "reviews":
        if test is None:
            return train.reviews["train"], train.reviews["val"], {}
        learn = list(chain.from_iterable(train.reviews.values()))
        return learn, list(chain.from_iterable(test.reviews.values())), {}
    learn = train.news if test else [c for c in train.news if topic_of(c) != fold]
    judge = test.news if test else [c for c in train.news if topic_of(c) == fold]
    if setup.settings.only_english:
        learn = [c for c in learn if c.language == "english"]
        judge = [c for c in judge if c.language == "english"]
    return learn, judge, (test or train).systems


def _budget(settings: Settings, length: str) -> Budget:
    budgets = {
        "long": settings.long_budget,
        "short": settings.short_budget,
        "reviews": settings.review_budget,
    }
    return Budget.parse(budgets[length])


def _table(
    setup: Setup,
    length: str,
    learn: Clusters,
    judge: Clusters,
    chosen: dict[str, Choice],
    systems: dict[str, dict[str, str]],
) -> list[Record]:
    """Score every method, people and the official systems on each cluster."""
    settings, budget = setup.settings, _budget(setup.settings, length)
    training = TrainingSet.from_clusters(learn, budget)
    parts = _places(training, _inner_parts(settings, training))
    methods = list(all_methods(settings, training, budget, chosen, parts))
    seeds = range(settings.seed, settings.seed + settings.n_runs)
    records = []
    for cluster in judge:
        view = ClusterView.from_cluster(cluster)
        rouge = rouge_for(length, cluster, Path(setup.data))
        record = partial(_record, length, cluster)
        for method in methods:
            tried = seeds if method.is_random else seeds[:1]
            texts = [method.write(view, seed) for seed in tried]
            runs = [_scores(rouge, text, cluster.references) for text in texts]
            own = {"own": method.chosen} if method.chosen else {}
            records.append(record(method.name, runs) | {"chosen": chosen} | own)
        if settings.rows:
            continue
        records.append(record("human", [_human(rouge, cluster)]))
        for peer, of_topic in systems.items():
            text = of_topic.get(topic_of(cluster))
            if text is not None and cluster.language == "english":
                scores = _scores(rouge, text, cluster.references)
                records.append(record(f"official {peer}", [scores]))
    return records


def _choose_on_training(
    settings: Settings, learn: Clusters, length: str
) -> dict[str, Choice]:
    """Choose settings on the topics that are learned from, parts held out in turn.

    For large margins λ, l2 and consensus; for maximum likelihood (λ = 0) l2 and
    consensus.  With the cosine similarity, which is fitted in a fraction of the time,
    for both similarities.
    """
    any_likelihood = any(map(settings.wants, ("MLE+COS", "MLE+MKR")))
    choices = [
        {"lam": lam, "l2": l2, "consensus": consensus}
        for lam in ((0.0,) if any_likelihood else ()) + settings.lambdas
        for l2 in settings.ridges
        for consensus in CONSENSUS
    ]
    budget = _budget(settings, length)
    training = TrainingSet.from_clusters(learn, budget)
    parts = _inner_parts(settings, training)
    return choose(choices, parts, partial(_held_out_scores, settings, training, budget))


def _inner_parts(settings: Settings, training: TrainingSet) -> list[list[str]]:
    """Return the topics that are held out in turn to choose settings."""
    topics = sorted({topic_of(view.cluster) for view in training.views})
    if len(topics) < 2:
        raise ValueError("learning and choosing settings take at least 3 topics")
    return held_out_parts(topics, settings.n_inner)


def _places(training: TrainingSet, parts: Sequence[Sequence[str]]) -> list[list[int]]:
    """Return the numbers of the clusters of each part."""
    topics = [topic_of(view.cluster) for view in training.views]
    return [[i for i, topic in enumerate(topics) if topic in part] for part in parts]


def _only(training: TrainingSet, part: Sequence[str], inside: bool) -> TrainingSet:
    """Return the clusters whose topics are in a part, or those that are not."""
    places = [
        i
        for i, view in enumerate(training.views)
        if (topic_of(view.cluster) in part) == inside
    ]
    views, targets = training.views, training.targets
    return TrainingSet([views[i] for i in places], [targets[i] for i in places])


def _held_out_scores(
    settings: Settings,
    training: TrainingSet,
    budget: Budget,
    part: Sequence[str],
    choices: Sequence[Choice],
) -> Iterator[float]:
    """Yield how well each choice agrees with the references of the held-out topics."""
    outside = _only(training, part, inside=True)
    inside = _only(training, part, inside=False)
    model = new_summarizer(
        settings, budget=budget, similarity="cos", n_samples=settings.n_inner_samples
    )
    rouge = Rouge(n=(1, 2), unicode=True, digits=None)
    fitted = None
    for choice in choices:
        model.set_params(**choice)
        if fitted != (choice["lam"], choice["l2"]):
            fitted = (choice["lam"], choice["l2"])
            model.fit_prepared(inside)
        total = 0.0
        for view in outside.views:
            summary = model.summarize_view(view, budget)
            scores = _scores(rouge, summary.text, view.cluster.references)
            total += scores[0] + scores[3]  # F of ROUGE-1 and of ROUGE-2
        yield total


def _along_omega(setup: Setup, learn: Clusters, judge: Clusters) -> Iterator[Record]:
    """Let each model decide how much is worth saying, without a budget."""
    settings = setup.settings
    model = new_summarizer(
        settings,
        budget=_budget(settings, "long"),
        similarity="mkr",
        lam=settings.omega_lam,
        omega=settings.omegas,
    ).fit(learn)
    for cluster in judge:
        rouge = rouge_for("long", cluster, Path(setup.data))
        for omega in settings.omegas:
            text = model.summarize(
                cluster.documents, omega=omega, language=cluster.language or "none"
            ).text
            scores = _scores(rouge, text, cluster.references)
            words = {"omega": omega, "words": len(text.split())}
            yield _record("omega", cluster, "LME+MKR", [scores]) | words


def _record(
    kind: str, cluster: Cluster, method: str, runs: list[list[float]]
) -> Record:
    return {
        "kind": kind,
        "judged": cluster.id,
        "language": cluster.language,
        "method": method,
        "runs": runs,
    }


def _scores(rouge: Rouge, text: str, references: Sequence[str]) -> list[float]:
    """Return F, precision and recall of ROUGE-1, then of ROUGE-2."""
    scores = rouge.score(text, list(references))
    both = (scores["rouge-1"], scores["rouge-2"])
    return [
        value for score in both for value in (score.f, score.precision, score.recall)
    ]


def _human(rouge: Rouge, cluster: Cluster) -> list[float]:
    """Return the mean scores of one person's summary against the others'."""
    every = list(cluster.references)
    if len(every) < 2:
        return [float("nan")] * 6
    rows = [
        _scores(rouge, text, every[:k] + every[k + 1 :]) for k, text in enumerate(every)
    ]
    return [float(value) for value in np.mean(rows, axis=0)]

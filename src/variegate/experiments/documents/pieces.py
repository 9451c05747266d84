"""One piece of work: learn on some topics, summarize the others, score everything."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from functools import lru_cache, partial
from pathlib import Path
from typing import Any

import numpy as np

from variegate.experiments.documents.data import (
    Corpus,
    held_out_parts,
    load_corpus,
    rouge_for,
)
from variegate.experiments.documents.settings import Settings
from variegate.text import Budget, Cluster, ClusterView, Rouge, Summarizer
from variegate.text.baselines import BASELINES
from variegate.text.oracle import oracle_summary
from variegate.text.rouge import Score
from variegate.text.summarizer import CONSENSUS
from variegate.text.training import TrainingSet

__all__ = [
    "METHODS",
    "choices",
    "choose_on_training",
    "compute_piece",
    "table",
    "work_list",
]

#: The four rows of the paper's table 1.
METHODS = {
    "MLE+COS": ("cos", "MLE"),
    "LME+COS": ("cos", "LME"),
    "MLE+MKR": ("mkr", "MLE"),
    "LME+MKR": ("mkr", "LME"),
}

#: Other decoders of the last of them.
_DECODERS = ("mbr-samples", "greedy")

Record = dict[str, Any]


def work_list(train: Corpus, test: Corpus | None) -> list[tuple[str, str]]:
    """Return the pieces: a kind of summary, and the topic that is held out.

    With test data there is one fold, called "all": learn on everything.
    """
    folds = ["all"] if test is not None else train.topics()
    work = [(kind, fold) for fold in folds for kind in ("news", "omega")]
    judged = test.reviews if test else train.reviews.get("val")
    if train.reviews.get("train") and judged:
        work.append(("reviews", "all"))
    return work


def compute_piece(
    settings: Settings, data: str, test_data: str | None, kind: str, fold: str
) -> list[Record]:
    """Return the scores of every method on every cluster that is held out."""
    with warnings.catch_warnings():
        # What stops a fit at its limit of steps is the same for all methods.
        warnings.simplefilter("ignore")
        learn, judge, systems = _split(settings, data, test_data, kind, fold)
        if kind == "omega":
            return _along_omega(settings, learn, judge, Path(data))
        if kind == "reviews":
            budget = _budget(settings, kind)
            chosen = choose_on_training(settings, TrainingSet.of(learn, budget), budget)
            return table(settings, kind, learn, judge, chosen, {}, Path(data))
        # What is chosen for long summaries serves the short ones too.
        budget = _budget(settings, "long")
        chosen = choose_on_training(settings, TrainingSet.of(learn, budget), budget)
        records = table(settings, "long", learn, judge, chosen, systems, Path(data))
        english = [cluster for cluster in judge if cluster.language == "english"]
        if english:
            records += table(
                settings, "short", learn, english, chosen, systems, Path(data)
            )
        return records


@lru_cache(maxsize=4)
def _corpus(folder: str) -> Corpus:
    return load_corpus(Path(folder))


def _split(
    settings: Settings, data: str, test_data: str | None, kind: str, fold: str
) -> tuple[list[Cluster], list[Cluster], dict[str, dict[str, str]]]:
    train = _corpus(data)
    test = _corpus(test_data) if test_data else None
    if kind == "reviews":
        if test is None:
            return train.reviews["train"], train.reviews["val"], {}
        everything = [c for split in train.reviews.values() for c in split]
        return everything, [c for s in test.reviews.values() for c in s], {}
    learn = train.news if test else [c for c in train.news if _group(c) != fold]
    judge = test.news if test else [c for c in train.news if _group(c) == fold]
    if settings.only_english:
        learn = [c for c in learn if c.language == "english"]
        judge = [c for c in judge if c.language == "english"]
    return learn, judge, (test or train).systems


def _budget(settings: Settings, kind: str) -> Budget:
    budgets = {
        "long": settings.long_budget,
        "omega": settings.long_budget,
        "short": settings.short_budget,
        "reviews": settings.review_budget,
    }
    return Budget.parse(budgets[kind])


# The table ------------------------------------------------------------------------


def table(
    settings: Settings,
    kind: str,
    learn: Sequence[Cluster],
    judge: Sequence[Cluster],
    chosen: dict[str, dict[str, Any]],
    systems: dict[str, dict[str, str]],
    folder: Path,
) -> list[Record]:
    """Learn the four models and score them and everybody else on each cluster."""
    budget = _budget(settings, kind)
    training = TrainingSet.of(learn, budget)
    models = {}
    for name, (similarity, learner) in METHODS.items():
        model = _summarizer(settings, budget, similarity)
        models[name] = model.set_params(**chosen[learner]).fit_prepared(training)
    records: list[Record] = []
    for cluster in judge:
        rouge = rouge_for(kind, cluster, folder)
        for method, texts in _summaries(settings, models, cluster, budget).items():
            runs = [_scores(rouge, text, cluster.references) for text in texts]
            records.append(_record(kind, cluster, method, runs) | {"chosen": chosen})
        records.append(_record(kind, cluster, "human", [_human(rouge, cluster)]))
        if cluster.language == "english" and kind != "reviews":
            for peer, of_topic in systems.items():
                if _group(cluster) in of_topic:
                    scores = _scores(
                        rouge, of_topic[_group(cluster)], cluster.references
                    )
                    records.append(_record(kind, cluster, f"official {peer}", [scores]))
    return records


def _summarizer(settings: Settings, budget: Budget, similarity: str) -> Summarizer:
    return Summarizer(
        similarity=similarity,
        budget=budget,
        n_samples=settings.n_samples,
        max_iter=settings.max_iter,
    )


def choose_on_training(
    settings: Settings, training: TrainingSet, budget: Budget
) -> dict[str, dict[str, Any]]:
    """Choose settings on the topics that are learned from, parts held out in turn.

    For large margins λ, ridge and consensus; for maximum likelihood (λ = 0) ridge and
    consensus.  With the cosine similarity, which is fitted in a fraction of the time,
    for both similarities.
    """
    choices = [
        {"lam": lam, "l2": l2, "consensus": consensus}
        for lam in (0.0, *settings.lambdas)
        for l2 in settings.ridges
        for consensus in CONSENSUS
    ]
    groups = sorted({_group(view.cluster) for view in training.views})
    if len(groups) < 2:
        raise ValueError("learning and choosing settings take at least 3 topics")
    total = np.zeros(len(choices))
    for part in held_out_parts(groups, settings.n_inner):
        outside = training.only(partial(_is_among, part))
        inside = training.only(partial(_is_among, sorted(set(groups) - set(part))))
        model = _summarizer(settings, budget, "cos")
        model.set_params(n_samples=settings.n_inner_samples)
        fitted: tuple[Any, Any] | None = None
        for number, choice in enumerate(choices):
            model.set_params(**choice)
            if fitted != (choice["lam"], choice["l2"]):
                fitted = (choice["lam"], choice["l2"])
                model.fit_prepared(inside)
            for view in outside.views:
                total[number] += _agreement(model, view, budget)
    is_margin = np.array([choice["lam"] != 0.0 for choice in choices])
    return {
        name: choices[int(np.argmax(np.where(is_margin == margin, total, -np.inf)))]
        for name, margin in (("LME", True), ("MLE", False))
    }


def _group(cluster: Cluster) -> str:
    return cluster.group or cluster.id


def _is_among(groups: Sequence[str], cluster: Cluster) -> bool:
    return _group(cluster) in groups


def _agreement(model: Summarizer, view: ClusterView, budget: Budget) -> float:
    summary = model.summarize_view(view, budget)
    rouge = Rouge(n=(1, 2), unicode=True, digits=None)
    scores = rouge.score(summary.text, list(view.cluster.references))
    return scores["rouge-1"].f + scores["rouge-2"].f


def _summaries(
    settings: Settings,
    models: dict[str, Summarizer],
    cluster: Cluster,
    budget: Budget,
) -> dict[str, list[str]]:
    """Return the summaries of every method, one for each of its runs."""
    seeds = range(settings.seed, settings.seed + settings.n_runs)
    view = ClusterView.of(cluster)

    def run(model: Summarizer, seed: int) -> str:
        return model.summarize_view(view, budget, random_state=seed).text

    summaries = {
        name: [run(model, seed) for seed in seeds] for name, model in models.items()
    }
    last = models["LME+MKR"]
    decoder = last.decoder
    for other in _DECODERS:
        last.set_params(decoder=other)
        runs = seeds if other == "mbr-samples" else seeds[:1]
        summaries[f"LME+MKR, {other}"] = [run(last, seed) for seed in runs]
    last.set_params(decoder=decoder)
    summaries["oracle"] = [_text(view, oracle_summary(view, budget))]
    for name, baseline in BASELINES.items():
        runs = seeds if name in ("random", "k-means") else seeds[:1]
        summaries[name] = [
            _text(view, baseline(view, budget, np.random.default_rng(seed)))
            for seed in runs
        ]
    return summaries


def _text(view: ClusterView, chosen: Any) -> str:
    return "\n".join(view.texts[i] for i in chosen)


# Omega ----------------------------------------------------------------------------


def _along_omega(
    settings: Settings,
    learn: Sequence[Cluster],
    judge: Sequence[Cluster],
    folder: Path,
) -> list[Record]:
    """Let each model decide how much is worth saying, without a budget."""
    budget = _budget(settings, "omega")
    model = _summarizer(settings, budget, "mkr")
    model.set_params(lam=settings.omega_lam, omega=settings.omegas).fit(learn)
    records = []
    for cluster in judge:
        rouge = rouge_for("long", cluster, folder)
        for omega in settings.omegas:
            summary = model.summarize(
                cluster.documents, omega=omega, language=cluster.language
            )
            scores = _scores(rouge, summary.text, cluster.references)
            record = _record("omega", cluster, "LME+MKR", [scores])
            words = len(summary.text.split())
            records.append(record | {"omega": omega, "words": words})
    return records


# Scores ---------------------------------------------------------------------------


def _record(
    kind: str, cluster: Cluster, method: str, runs: list[list[float]]
) -> Record:
    return {
        "kind": kind,
        "cluster": cluster.id,
        "language": cluster.language,
        "method": method,
        "runs": runs,
    }


def _scores(rouge: Rouge, text: str, references: Sequence[str]) -> list[float]:
    """Return F, precision and recall of ROUGE-1, then of ROUGE-2."""
    scores = rouge.score(text, list(references))
    return [*_fpr(scores["rouge-1"]), *_fpr(scores["rouge-2"])]


def _fpr(score: Score) -> tuple[float, float, float]:
    return score.f, score.precision, score.recall


def _human(rouge: Rouge, cluster: Cluster) -> list[float]:
    """Return the mean scores of one person's summary against the others'."""
    every = list(cluster.references)
    if len(every) < 2:
        return [float("nan")] * 6
    rows = [
        _scores(rouge, text, every[:k] + every[k + 1 :]) for k, text in enumerate(every)
    ]
    return [float(value) for value in np.mean(rows, axis=0)]


def choices(records: Sequence[Record]) -> list[dict[str, Any]]:
    """Return what was chosen on the training topics of each held-out cluster."""
    chosen = {
        (r["kind"], "" if r["kind"] == "reviews" else r["cluster"].split(".")[0]): r[
            "chosen"
        ]
        for r in records
        if r["method"] == "LME+MKR" and "chosen" in r
    }
    return [
        {"kind": kind, "held_out": held_out, "learner": learner, **choice}
        for (kind, held_out), both in sorted(chosen.items())
        for learner, choice in both.items()
    ]

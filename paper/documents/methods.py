"""The rows of the tables: every method that writes a summary."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from copy import copy
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np

from paper.documents.baselines import BASELINES
from paper.documents.decoders import PaperSummarizer
from paper.documents.settings import Settings
from paper.documents.similarities import Learner
from paper.held_out import Choice
from paper.learned import ROWS
from variegate.ground_set import GroundSet
from variegate.text import Budget, ClusterView, Summarizer
from variegate.text.training_set import TrainingSet, oracle_summary

#: The method that the others are compared with.
HERO = "LME+MKR"

#: Who learns, by which similarity, and what chooses: the four rows of the paper's
#: table 1, and other decoders of the last of them, which share its fit.
LEARNED = (
    ("MLE", "cos", "mbr"),
    ("LME", "cos", "mbr"),
    ("MLE", "mkr", "mbr"),
    ("LME", "mkr", "mbr"),
    ("LME", "mkr", "mbr-samples"),
    ("LME", "mkr", "greedy"),
)


@dataclass(frozen=True)
class Method:
    """A name, how to write a summary with a seed, and whether the seed matters.

    ``chosen`` are settings of its own that were chosen on the training topics.
    """

    name: str
    write: Callable[[ClusterView, int], str]
    is_random: bool = False
    chosen: Choice = field(default_factory=dict)


def new_summarizer(settings: Settings, **parameters: Any) -> PaperSummarizer:
    """Return a summarizer that is not fitted yet."""
    common = {"n_samples": settings.n_samples, "max_iter": settings.max_iter}
    return PaperSummarizer(**(common | parameters))


def all_methods(
    settings: Settings,
    training: TrainingSet,
    budget: Budget,
    chosen: dict[str, Choice],
    parts: Sequence[Sequence[int]],
) -> Iterator[Method]:
    """Learn what is to be learned, and yield the methods in the order of the rows.

    ``parts`` of the training set are held out in turn for what is not chosen yet.
    """
    fitted: dict[str, PaperSummarizer] = {}
    for learner, similarity, decoder in LEARNED:
        label = _label(learner, similarity, decoder)
        if label != HERO and not settings.wants(label):
            continue
        name = f"{learner}+{similarity}"
        if name not in fitted:
            model = new_summarizer(settings, budget=budget, similarity=similarity)
            model.set_params(**chosen[learner])
            fitted[name] = model.fit_prepared(training)
        model = copy(fitted[name]).set_params(decoder=decoder)
        if decoder == "mbr-samples":
            model.set_params(consensus="rouge-1")  # as in the paper
        yield Method(label, partial(_summarize, model, budget), decoder != "greedy")
    paper = fitted["LME+mkr"].family_.at(1.0)
    beyond = Learner(settings, training, budget, chosen["LME"], parts).rows(
        [name for name in ROWS if name in settings.rows],
        lambda view: paper.ensemble(GroundSet(view.quality("full"), view.similarity())),
    )
    for name, choice, write in beyond:
        yield Method(name, write, "beta" not in choice, choice)
    others = {"oracle": _oracle, **BASELINES}
    for name, baseline in others.items():
        if settings.wants(name):
            write = partial(_baseline, baseline, budget)
            yield Method(name, write, name in ("random", "k-means"))


def row_names() -> list[str]:
    """Return the names of all methods."""
    return [*(_label(*row) for row in LEARNED), *ROWS, "oracle", *BASELINES]


def _label(learner: str, similarity: str, decoder: str) -> str:
    name = f"{learner}+{similarity.upper()}"
    return name if decoder == "mbr" else f"{name}, {decoder}"


def _oracle(view: ClusterView, budget: Budget, _: np.random.Generator) -> Any:
    return oracle_summary(view, budget)


def _summarize(model: Summarizer, budget: Budget, view: ClusterView, seed: int) -> str:
    return model.summarize_view(view, budget, random_state=seed).text


def _baseline(
    choose: Callable[..., Any], budget: Budget, view: ClusterView, seed: int
) -> str:
    return _text(view, choose(view, budget, np.random.default_rng(seed)))


def _text(view: ClusterView, chosen: Any) -> str:
    return "\n".join(view.texts[i] for i in chosen)

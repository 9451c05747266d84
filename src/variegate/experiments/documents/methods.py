"""The rows of the tables: every method that writes a summary."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from copy import copy
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from variegate.experiments.documents.settings import Settings
from variegate.experiments.holding_out import Choice
from variegate.text import Budget, ClusterView, Summarizer
from variegate.text.baselines import BASELINES
from variegate.text.oracle import oracle_summary
from variegate.text.training import TrainingSet

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
    """A name, how to write a summary with a seed, and whether the seed matters."""

    name: str
    write: Callable[[ClusterView, int], str]
    is_random: bool = False


def new_summarizer(settings: Settings, **parameters: Any) -> Summarizer:
    """Return a summarizer that is not fitted yet."""
    common = {"n_samples": settings.n_samples, "max_iter": settings.max_iter}
    return Summarizer(**(common | parameters))


def all_methods(
    settings: Settings,
    training: TrainingSet,
    budget: Budget,
    chosen: dict[str, Choice],
) -> Iterator[Method]:
    """Learn what is to be learned, and yield the methods in the order of the rows."""
    fitted: dict[str, Summarizer] = {}
    for learner, similarity, decoder in LEARNED:
        name = f"{learner}+{similarity.upper()}"
        if name not in fitted:
            model = new_summarizer(settings, budget=budget, similarity=similarity)
            model.set_params(**chosen[learner])
            fitted[name] = model.fit_prepared(training)
        model = copy(fitted[name]).set_params(decoder=decoder)
        name += "" if decoder == "mbr" else f", {decoder}"
        yield Method(name, partial(_summarize, model, budget), decoder != "greedy")
    yield Method("oracle", lambda view, _: _text(view, oracle_summary(view, budget)))
    for name, baseline in BASELINES.items():
        write = partial(_baseline, baseline, budget)
        yield Method(name, write, name in ("random", "k-means"))


def _summarize(model: Summarizer, budget: Budget, view: ClusterView, seed: int) -> str:
    return model.summarize_view(view, budget, random_state=seed).text


def _baseline(
    choose: Callable[..., Any], budget: Budget, view: ClusterView, seed: int
) -> str:
    return _text(view, choose(view, budget, np.random.default_rng(seed)))


def _text(view: ClusterView, chosen: Any) -> str:
    return "\n".join(view.texts[i] for i in chosen)

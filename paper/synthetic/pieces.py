"""Fits of one draw of the synthetic data: what each figure is made of.

A piece is one figure on one draw.  A record is a method at a value of the figure's
axis: the chosen ``lam``, and in ``noisy`` and ``clean`` the mean precision, recall and
F-score over the test pairs, against the subsets as observed and as they were before
the noise.  ``theta_cosine`` and ``theta_length`` compare the learned θ with the true
one, in direction and (as a ratio) in length.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from copy import copy
from functools import partial
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from paper.experiment import Record
from paper.synthetic.gap import variants
from paper.synthetic.settings import Case, Data, Settings
from variegate import metrics
from variegate.datasets import SyntheticData
from variegate.estimator import AllAlikeWarning, LargeMarginDPP
from variegate.kernels import Gaussian, Kernel, Linear, MultipleKernel


def work_list(settings: Settings) -> list[tuple[str, int]]:
    """Return the pieces: every figure on every draw."""
    figures = [name for name in FIGURES if name != "gap" or settings.with_gap]
    return [(figure, draw) for draw in range(settings.n_draws) for figure in figures]


def compute_piece(settings: Settings, figure: str, draw: int) -> list[Record]:
    """Return the records of one figure on one draw."""
    data = settings.data(draw, noise=0.0 if figure == "clean" else None)
    return [
        {"figure": figure, "draw": draw, "value": case.value, **record}
        for case in FIGURES[figure](settings)
        for record in _oracle_and_fits(settings, case, case.transform(data))
    ]


def _true_similarity(settings: Settings) -> list[Case]:
    return [
        Case(n, n, Linear(), {"fit_intercept": False}) for n in settings.train_sizes
    ]


def _wrong_similarity(settings: Settings, **options: Any) -> list[Case]:
    n_train = settings.bandwidth_train_size
    return [Case(s, n_train, Gaussian(s), options) for s in settings.bandwidths]


def _learned_similarity(
    settings: Settings, anchored: bool = False, **options: Any
) -> list[Case]:
    widths = list(settings.bandwidths)
    kernel = MultipleKernel(widths, linear=False, anchored=anchored)
    return [Case(n, n, kernel, options) for n in settings.train_sizes]


#: In the order in which they are computed: the dearest first, so that no core is left
#: with a long piece at the end.
FIGURES: dict[str, Callable[[Settings], list[Case]]] = {
    "gap": variants,
    "fig1c": _learned_similarity,
    "fig1c_no_intercept": partial(_learned_similarity, fit_intercept=False),
    "fig1c_anchored": partial(_learned_similarity, anchored=True),
    "fig1a": _true_similarity,
    "fig1b": partial(_wrong_similarity, fit_intercept=False),
    "fig1b_intercept": _wrong_similarity,
    "clean": _true_similarity,
}


def _oracle_and_fits(settings: Settings, case: Case, data: Data) -> Iterator[Record]:
    oracle = _scores(data.test.clean_subsets, data.test)
    yield {"method": "oracle", "lam": None, **oracle}
    models = fit_path(settings, data, case.n_train, case.kernel, **case.options)
    yield _record("mle", models[0], data)
    yield _record("lme", best_on_holdout(models, data), data)


def fit_path(
    settings: Settings, data: Data, n_train: int, kernel: Kernel, **options: Any
) -> list[LargeMarginDPP]:
    """Return one model for each ``λ`` of the grid, the first being maximum likelihood.

    The first keeps the best of several starts where a kernel is learned; each further
    fit starts where the one before it ended.
    """
    model = LargeMarginDPP(
        kernel=kernel,
        decoder="exact",
        n_starts=settings.n_starts,
        warm_start=True,
        tol=1e-4,
        random_state=settings.seed,
    ).set_params(**options)
    train = data.train
    models: list[LargeMarginDPP] = []
    for lam in settings.lambdas:
        model.set_params(lam=lam)
        if models:
            model.set_params(n_starts=1)
        with warnings.catch_warnings():
            # At large λ fits end at kinks of the hinge; the holdout judges them.
            warnings.simplefilter("ignore", ConvergenceWarning)
            # That wide Gaussians are constants is what figure 1c is about.
            warnings.simplefilter("ignore", AllAlikeWarning)
            model.fit(train.ground_sets[:n_train], train.subsets[:n_train])
        models.append(copy(model))
    return models


def best_on_holdout(models: list[LargeMarginDPP], data: Data) -> LargeMarginDPP:
    """Return the model with the best F-score on the holdout; of equals the first."""
    holdout = data.holdout
    scores = [model.score(holdout.ground_sets, holdout.subsets) for model in models]
    return models[int(np.argmax(scores))]


def _record(method: str, model: LargeMarginDPP, data: Data) -> Record:
    chosen = model.predict(data.test.ground_sets)
    truth = data.test.theta
    learned = model.theta_[: len(truth)]
    length = float(np.linalg.norm(learned) / np.linalg.norm(truth))
    return {
        "method": method,
        "lam": model.lam,
        **_scores(chosen, data.test),
        "theta_cosine": float(learned @ truth / (length * (truth @ truth))),
        "theta_length": length,
    }


def _scores(chosen: list[Any], test: SyntheticData) -> Record:
    return {
        "noisy": metrics.mean_scores(chosen, test.subsets),
        "clean": metrics.mean_scores(chosen, test.clean_subsets),
    }

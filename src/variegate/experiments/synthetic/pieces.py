"""Fits of one draw of the synthetic data: what each figure is made of.

A piece is one figure on one draw.  It returns records
``{"figure", "method", ..., "lam", "noisy": scores, "clean": scores}`` with the mean
precision, recall and F-score over the test pairs, against the subsets as observed and
as they were before the noise.  ``theta_cosine`` and ``theta_length`` compare the
learned θ with the true one, in direction and (as a ratio) in length.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from copy import copy
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from variegate import metrics
from variegate.datasets import SyntheticData
from variegate.estimator import LargeMarginDPP
from variegate.experiments.synthetic.gap import VARIANTS
from variegate.experiments.synthetic.settings import Data, Settings
from variegate.kernels import Gaussian, Kernel, Linear, MultipleKernel

Record = dict[str, Any]


def compute_piece(settings: Settings, figure: str, draw: int) -> list[Record]:
    """Return the records of one figure on one draw."""
    return [
        {"figure": figure, "draw": draw, **record}
        for record in FIGURES[figure](settings, draw)
    ]


def _fig1a(settings: Settings, draw: int) -> Iterator[Record]:
    """Learn ``θ`` with the true similarity."""
    data = settings.data(draw)
    for n_train in settings.train_sizes:
        for record in _oracle_and_fits(
            settings, data, n_train, Linear(), intercept=False
        ):
            yield {"n_train": n_train, **record}


def _fig1b(settings: Settings, draw: int) -> Iterator[Record]:
    """Learn ``θ`` with a similarity that is wrong."""
    yield from _misspecified(settings, draw, intercept=False)


def _fig1b_intercept(settings: Settings, draw: int) -> Iterator[Record]:
    """Figure 1b for a model that can also learn the scale of ``L``."""
    yield from _misspecified(settings, draw, intercept=True)


def _misspecified(settings: Settings, draw: int, intercept: bool) -> Iterator[Record]:
    data = settings.data(draw)
    for sigma in settings.bandwidths:
        for record in _oracle_and_fits(
            settings, data, settings.bandwidth_train_size, Gaussian(sigma), intercept
        ):
            yield {"sigma": sigma, **record}


def _fig1c(settings: Settings, draw: int) -> Iterator[Record]:
    """Learn ``θ`` and the similarity, with an intercept."""
    yield from _multiple_kernels(settings, draw, intercept=True)


def _fig1c_no_intercept(settings: Settings, draw: int) -> Iterator[Record]:
    """Learn ``θ`` and the similarity, as the paper writes the model."""
    yield from _multiple_kernels(settings, draw, intercept=False)


def _multiple_kernels(
    settings: Settings, draw: int, intercept: bool
) -> Iterator[Record]:
    data = settings.data(draw)
    kernel = MultipleKernel(list(settings.bandwidths), linear=False)
    for n_train in settings.train_sizes:
        for record in _oracle_and_fits(settings, data, n_train, kernel, intercept):
            yield {"n_train": n_train, **record}


def _clean(settings: Settings, draw: int) -> Iterator[Record]:
    """Figure 1a without noise."""
    data = settings.data(draw, noise=0.0)
    for n_train in settings.train_sizes:
        for record in _oracle_and_fits(
            settings, data, n_train, Linear(), intercept=False
        ):
            yield {"n_train": n_train, **record}


def _gap(settings: Settings, draw: int) -> Iterator[Record]:
    """Find what closes the gap between learned and true similarity in figure 1c."""
    data = settings.data(draw)
    for variant in VARIANTS:
        for record in _oracle_and_fits(
            settings,
            variant.transform(data),
            settings.bandwidth_train_size,
            variant.kernel(settings),
            **variant.options,
        ):
            yield {"variant": variant.name, **record}


#: In the order in which they are computed: the dearest first, so that no core is left
#: with a long piece at the end.
FIGURES: dict[str, Callable[[Settings, int], Iterator[Record]]] = {
    "gap": _gap,
    "fig1c": _fig1c,
    "fig1c_no_intercept": _fig1c_no_intercept,
    "fig1a": _fig1a,
    "fig1b": _fig1b,
    "fig1b_intercept": _fig1b_intercept,
    "clean": _clean,
}


def _oracle_and_fits(
    settings: Settings,
    data: Data,
    n_train: int,
    kernel: Kernel,
    intercept: bool,
    **options: Any,
) -> Iterator[Record]:
    yield {
        "method": "oracle",
        "lam": None,
        **_scores(data.test.clean_subsets, data.test),
    }
    models = fit_path(
        settings, data, n_train, kernel, fit_intercept=intercept, **options
    )
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

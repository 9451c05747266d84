"""Cross-validation in which each fit starts from its neighbour on the grid.

A walk begins at the smallest lambda and at the omega nearest to 1, where problems are
mild.  It goes up through the lambdas there, and from each of them outwards through the
omegas.  The same walk on all of the data leads to the model that is returned, so that
it ends in the same minimum as the models it was chosen by.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from joblib import delayed
from threadpoolctl import threadpool_limits

from variegate._processes import parallel_processes
from variegate._typing import FloatArray, IntArray
from variegate.decoding import MBR, Decoder, as_decoder
from variegate.estimator import LargeMarginDPP
from variegate.ground_set import map_positions_in_errors
from variegate.tuning.family import (
    GridStep,
    Place,
    fit_from_neighbour,
    grid_steps,
    order_outwards,
)
from variegate.tuning.held_out import SCORES, Fold, not_clearly_behind, scores_of
from variegate.tuning.path import OmegaPath, PathPoint

#: From a chosen and a wanted subset to a number; larger is better.
Scoring = Callable[[Any, Any], float]

#: The columns of the scores of a trial.
COLUMNS = (*SCORES, "score")

#: By place: a model fitted on a fold, and its scores (held-out sets, COLUMNS).
FittedPlaces = dict[Place, tuple[LargeMarginDPP, FloatArray]]


@dataclass(frozen=True, eq=False)
class Trial:
    """One lambda and omega, on every fold: scores are (held-out sets, COLUMNS)."""

    models: list[LargeMarginDPP]
    scores: list[FloatArray]

    def means(self) -> FloatArray:
        """Return the mean of every column over all held-out ground sets."""
        mean: FloatArray = np.concatenate(self.scores).mean(axis=0)
        return mean

    def errors(self, units: IntArray) -> FloatArray:
        """Return the standard errors of ``means``; NaN where there is one unit.

        ``units`` number the independent ground sets or groups (see :class:`Fold`): the
        variance of the sum of all scores is that of the units' sums.
        """
        table = np.concatenate(self.scores)
        labels, position = np.unique(units, return_inverse=True)
        if len(labels) < 2:
            return np.full(table.shape[1], np.nan)
        sums = np.zeros((len(labels), table.shape[1]))
        np.add.at(sums, position, table - table.mean(axis=0))
        correction = len(labels) / (len(labels) - 1)
        errors: FloatArray = np.sqrt(correction * (sums**2).sum(axis=0)) / len(table)
        return errors

    def n_unconverged(self) -> int:
        """Return the number of folds on which the solver did not converge."""
        return sum(bool(model.solver_result_.remedy) for model in self.models)


def _score_fold(model: LargeMarginDPP, fold: Fold, scoring: Scoring) -> FloatArray:
    """Return a row of ``COLUMNS`` for every held-out ground set."""
    with map_positions_in_errors(fold.held_out):
        predicted = model.predict(fold.judged)
    rows = [
        (*scores_of(chosen, wanted), scoring(chosen, wanted))
        for chosen, wanted in zip(predicted, fold.wanted, strict=True)
    ]
    return np.array(rows, dtype=np.float64)


def _fit_and_score(
    model: LargeMarginDPP, fold: Fold, steps: Sequence[GridStep], scoring: Scoring
) -> FittedPlaces:
    """Fit ``model`` on a fold at every place of ``steps``, and score each fit."""
    fitted: dict[Place | None, LargeMarginDPP] = {None: model}
    shared, found = fold.shared_examples(), {}
    for place, start in steps:
        with map_positions_in_errors(fold.learned):
            fitted[place] = fit_from_neighbour(fitted[start], shared, None, *place)
        found[place] = fitted[place], _score_fold(fitted[place], fold, scoring)
    return found


def _on_one_thread(compute: Callable[..., Any], *arguments: Any) -> Any:
    """Call a function with one BLAS thread."""
    with threadpool_limits(limits=1):
        return compute(*arguments)


@dataclass(eq=False)
class CrossValidation:
    """Trials by lambda and omega, and methods that add to them.

    ``model`` is not fitted, and has a seed, so that trials differ by their parameters
    only.  ``n_samples`` is the largest number of samples of an MBR decoder while many
    models are compared.
    """

    model: LargeMarginDPP
    folds: list[Fold]
    n_samples: int
    scoring: Scoring
    n_jobs: int | None
    trials: dict[Place, Trial] = field(default_factory=dict)

    def run_grid(
        self,
        lams: Sequence[float],
        omegas: Sequence[float],
        callback: Callable[[int, int], object] | None = None,
        drop_lams: bool = False,
    ) -> None:
        """Add trials of every lambda with every omega.

        ``callback`` is called with the numbers of finished and of all folds;
        ``drop_lams`` leaves out lambdas that are clearly behind on the first fold.
        """
        model = copy.copy(self.model)
        model.set_params(decoder=self._quick_decoder())
        steps, found = grid_steps(lams, omegas), []
        if drop_lams:
            found = self._fit_on_folds([model], steps, callback)
            lams = _leading_lams(found[0], lams)
            steps = grid_steps(lams, omegas)
        models = [model] * (len(self.folds) - len(found))
        found += self._fit_on_folds(models, steps, callback, len(found))
        self._add_trials(steps, found)
        # With lambda 0 omega plays no part: one fit stands for all.
        middle, sides = order_outwards(omegas)
        for lam in lams:
            if lam == 0.0:
                for omega in [*sides[0], *sides[1]]:
                    self.trials[lam, omega] = self.trials[lam, middle]

    def try_omega(self, lam: float, omega: float) -> None:
        """Add a trial, started from the nearest one of this lambda, nearer to 1."""
        known = self.omegas(lam)
        inwards = [o for o in known if abs(np.log(o)) <= abs(np.log(omega))]
        start = min(inwards or known, key=lambda o: abs(np.log(o / omega)))
        steps: list[GridStep] = [((lam, omega), None)]
        self._add_trials(
            steps, self._fit_on_folds(self.trials[lam, start].models, steps)
        )

    def _add_trials(
        self, steps: Sequence[GridStep], found: Sequence[FittedPlaces]
    ) -> None:
        """Add a trial for each place of ``steps``, from the fits on all folds."""
        for place, _ in steps:
            models, scores = zip(*(fits[place] for fits in found), strict=True)
            self.trials[place] = Trial(list(models), list(scores))

    def rescore_with_full_decoder(self, lam: float) -> None:
        """Score the trials of one lambda again, with the decoder of ``model``.

        Fewer samples choose slightly fewer items, and reported scores should be those
        of the final decoder.
        """
        decoder = self.model.decoder
        same = self._quick_decoder() == as_decoder(decoder)
        done: dict[int, Trial] = {}
        for omega in self.omegas(lam):
            trial = self.trials[lam, omega]
            if id(trial) not in done and trial.models[0].decoder != decoder:
                models = [
                    copy.copy(model).set_params(decoder=decoder)
                    for model in trial.models
                ]
                pairs = list(zip(models, self.folds, strict=True))
                scores = (
                    trial.scores if same else self._run_in_processes(_score_fold, pairs)
                )
                done[id(trial)] = Trial(models, scores)
            self.trials[lam, omega] = done.get(id(trial), trial)

    def omegas(self, lam: float) -> list[float]:
        """Return the omegas that were tried with ``lam``, sorted."""
        return sorted(omega for tried, omega in self.trials if tried == lam)

    def path(self, lam: float) -> OmegaPath:
        """Return the means and standard errors of one lambda's trials by omega."""
        summaries = [(omega, *self.summary(lam, omega)) for omega in self.omegas(lam)]
        points = [
            PathPoint(omega, *means[:4].tolist(), *errors[:4].tolist())
            for omega, means, errors in summaries
        ]
        return OmegaPath(lam, tuple(points))

    def summary(self, lam: float, omega: float) -> tuple[FloatArray, FloatArray]:
        """Return the means and standard errors of ``COLUMNS`` for one trial."""
        units = np.concatenate([fold.units for fold in self.folds])
        trial = self.trials[lam, omega]
        return trial.means(), trial.errors(units)

    def results(self) -> dict[str, FloatArray]:
        """Return the columns of ``cv_results_``, one row a trial, sorted."""
        places = sorted(self.trials)
        columns = {
            "lam": np.array([lam for lam, _ in places]),
            "omega": np.array([omega for _, omega in places]),
        }
        summaries = [self.summary(*place) for place in places]
        for k, name in enumerate(COLUMNS):
            columns[f"mean_{name}"] = np.array([mean[k] for mean, _ in summaries])
            columns[f"error_{name}"] = np.array([error[k] for _, error in summaries])
        for number in range(len(self.folds)):
            columns[f"split{number}_score"] = np.array(
                [self.trials[place].scores[number][:, -1].mean() for place in places]
            )
        columns["n_unconverged"] = np.array(
            [self.trials[place].n_unconverged() for place in places]
        )
        return columns

    def _quick_decoder(self) -> Decoder:
        """Return the model's decoder, with at most ``n_samples`` samples if MBR."""
        decoder = as_decoder(self.model.decoder)
        if isinstance(decoder, MBR) and decoder.n_samples > self.n_samples:
            return replace(decoder, n_samples=self.n_samples)
        return decoder

    def _fit_on_folds(
        self,
        models: Sequence[LargeMarginDPP],
        steps: Sequence[GridStep],
        callback: Callable[[int, int], object] | None = None,
        n_done: int = 0,
    ) -> list[FittedPlaces]:
        """Fit each model at the places of ``steps``, on a fold of its own.

        The first model on fold ``n_done``, which counts the folds finished before.
        """
        folds = self.folds[n_done : n_done + len(models)]
        arguments = [(*pair, steps) for pair in zip(models, folds, strict=True)]
        return self._run_in_processes(_fit_and_score, arguments, callback, n_done)

    def _run_in_processes(
        self,
        compute: Callable[..., Any],
        arguments: Sequence[tuple[Any, ...]],
        callback: Callable[[int, int], object] | None = None,
        n_done: int = 0,
    ) -> list[Any]:
        """Return ``compute(*each, scoring)`` for each of the arguments, in order."""
        parallel = parallel_processes(self.n_jobs, return_as="generator")
        results = []
        for result in parallel(
            delayed(_on_one_thread)(compute, *each, self.scoring) for each in arguments
        ):
            results.append(result)
            if callback is not None:
                callback(n_done + len(results), len(self.folds))
        return results


def _leading_lams(found: FittedPlaces, lams: Sequence[float]) -> list[float]:
    """Return the lambdas whose best scores on a fold are not clearly behind."""
    best: dict[float, FloatArray] = {}
    for (lam, _), (_, scores) in found.items():
        score = scores[:, -1]
        if lam not in best or score.mean() > best[lam].mean():
            best[lam] = score
    return sorted(not_clearly_behind(best), key=list(lams).index)

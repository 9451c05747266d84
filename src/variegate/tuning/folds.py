"""Cross-validation in which each fit starts from its neighbour on the grid.

A grid has pairs of a lambda and an omega.  The first fit is at the smallest lambda and
at the omega nearest to 1, where problems are mild.  Fits go up through the lambdas
there, and from each of them outwards through the omegas.  The same steps on all of the
data lead to the model that is returned, so that it ends in the same minimum as the
models it was chosen by.
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
    LamOmega,
    fit_from_neighbour,
    grid_steps,
    order_outwards,
)
from variegate.tuning.held_out import SCORES, Fold, not_clearly_behind, scores_of
from variegate.tuning.path import OmegaPath, PathPoint

#: A function of a chosen and a wanted subset (item numbers); larger is better.
Scoring = Callable[[Any, Any], float]

#: The columns of the scores of a trial; the last is the score to choose by.
COLUMNS = (*SCORES, "score")

#: By lambda and omega: a model fitted on one fold, and its scores (held-out ground
#: sets of the fold, COLUMNS).
FoldFits = dict[LamOmega, tuple[LargeMarginDPP, FloatArray]]


@dataclass(frozen=True, eq=False)
class Trial:
    """The models of one lambda and omega, one for each fold, and their scores."""

    models: list[LargeMarginDPP]
    #: Tables (held-out ground sets of the fold, COLUMNS).
    scores: list[FloatArray]

    def means(self) -> FloatArray:
        """Return the mean of each of COLUMNS over the held-out sets of all folds."""
        mean: FloatArray = np.concatenate(self.scores).mean(axis=0)
        return mean

    def standard_errors(self, units: IntArray) -> FloatArray:
        """Return the standard errors of ``means``, clustered by unit; NaN for one unit.

        ``units`` has a label for each row of the concatenated scores, equal for ground
        sets of one group (see :class:`Fold`).  The variance of the sum of all scores is
        that of the sums over each unit.
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
    """Return scores (held-out ground sets, COLUMNS) of a model fitted on a fold."""
    with map_positions_in_errors(fold.held_out):
        predicted = model.predict(fold.judged)
    rows = [
        (*scores_of(chosen, wanted), scoring(chosen, wanted))
        for chosen, wanted in zip(predicted, fold.wanted, strict=True)
    ]
    return np.array(rows, dtype=np.float64)


def _fit_and_score(
    model: LargeMarginDPP, fold: Fold, steps: Sequence[GridStep], scoring: Scoring
) -> FoldFits:
    """Return, by the pair of each step, a fitted copy of ``model`` and its scores."""
    fitted: dict[LamOmega | None, LargeMarginDPP] = {None: model}
    shared, found = fold.shared_examples(), {}
    for pair, start in steps:
        with map_positions_in_errors(fold.learned):
            fitted[pair] = fit_from_neighbour(fitted[start], shared, None, *pair)
        found[pair] = fitted[pair], _score_fold(fitted[pair], fold, scoring)
    return found


def _call_on_one_thread(compute: Callable[..., Any], *arguments: Any) -> Any:
    """Return ``compute(*arguments)``, computed with one BLAS thread."""
    with threadpool_limits(limits=1):
        return compute(*arguments)


@dataclass(eq=False)
class CrossValidation:
    """Trials by lambda and omega, and methods that add to them.

    ``model`` is not fitted, and has a seed, so that trials differ by their parameters
    only.  ``n_samples`` is the largest number of samples of a minimum-Bayes-risk
    decoder (``MBR``) while many models are compared.
    """

    model: LargeMarginDPP
    folds: list[Fold]
    n_samples: int
    scoring: Scoring
    n_jobs: int | None
    trials: dict[LamOmega, Trial] = field(default_factory=dict)

    def run_grid(
        self,
        lams: Sequence[float],
        omegas: Sequence[float],
        callback: Callable[[int, int], object] | None = None,
        drop_lams: bool = False,
    ) -> None:
        """Add trials of every lambda with every omega.

        ``callback`` is called with the numbers of finished and of all folds.  With
        ``drop_lams``, lambdas clearly behind on the first fold get no trial.
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
        """Add a trial; its fits start from those of the same lambda at another omega.

        That is the nearest omega not further from 1, or the nearest of all.
        """
        known = self.omegas(lam)
        inwards = [o for o in known if abs(np.log(o)) <= abs(np.log(omega))]
        start = min(inwards or known, key=lambda o: abs(np.log(o / omega)))
        steps: list[GridStep] = [((lam, omega), None)]
        self._add_trials(
            steps, self._fit_on_folds(self.trials[lam, start].models, steps)
        )

    def _add_trials(self, steps: Sequence[GridStep], found: Sequence[FoldFits]) -> None:
        """Add a trial for each step, from the fits on all folds."""
        for pair, _ in steps:
            models, scores = zip(*(fits[pair] for fits in found), strict=True)
            self.trials[pair] = Trial(list(models), list(scores))

    def rescore_with_full_decoder(self, lam: float) -> None:
        """Score the trials of one lambda again, in place, with the model's own decoder.

        Fewer samples choose slightly fewer items, and reported scores should be those
        of the final decoder.  Trials that have it are left.
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
        """Return the path of ``lam``: one point of means and errors for each omega."""
        summaries = [(omega, *self.summary(lam, omega)) for omega in self.omegas(lam)]
        points = [
            PathPoint(omega, *means[:4].tolist(), *errors[:4].tolist())
            for omega, means, errors in summaries
        ]
        return OmegaPath(lam, tuple(points))

    def summary(self, lam: float, omega: float) -> tuple[FloatArray, FloatArray]:
        """Return two arrays (COLUMNS,) of one trial: means and standard errors."""
        units = np.concatenate([fold.units for fold in self.folds])
        trial = self.trials[lam, omega]
        return trial.means(), trial.standard_errors(units)

    def results(self) -> dict[str, FloatArray]:
        """Return ``cv_results_``: arrays with an entry for each trial, sorted.

        Keys are "lam", "omega", "mean_*" and "error_*" of COLUMNS, "split<i>_score" of
        each fold, and "n_unconverged", a number of folds.
        """
        pairs = sorted(self.trials)
        columns = {
            "lam": np.array([lam for lam, _ in pairs]),
            "omega": np.array([omega for _, omega in pairs]),
        }
        summaries = [self.summary(*pair) for pair in pairs]
        for k, name in enumerate(COLUMNS):
            columns[f"mean_{name}"] = np.array([mean[k] for mean, _ in summaries])
            columns[f"error_{name}"] = np.array([error[k] for _, error in summaries])
        for number in range(len(self.folds)):
            columns[f"split{number}_score"] = np.array(
                [self.trials[pair].scores[number][:, -1].mean() for pair in pairs]
            )
        columns["n_unconverged"] = np.array(
            [self.trials[pair].n_unconverged() for pair in pairs]
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
    ) -> list[FoldFits]:
        """Return the fits for all ``steps`` on each fold, started from its model.

        There is one model for each fold, beginning with fold ``n_done``, the number of
        folds finished before.  ``callback`` is that of :meth:`run_grid`.
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
        """Return ``compute(*each, scoring)`` of all arguments, in order, in processes.

        ``callback`` is called with the numbers of finished folds, ``n_done`` of them
        before, and of all.
        """
        parallel = parallel_processes(self.n_jobs, return_as="generator")
        results = []
        for result in parallel(
            delayed(_call_on_one_thread)(compute, *each, self.scoring)
            for each in arguments
        ):
            results.append(result)
            if callback is not None:
                callback(n_done + len(results), len(self.folds))
        return results


def _leading_lams(found: FoldFits, lams: Sequence[float]) -> list[float]:
    """Return the lambdas whose best mean score on a fold is not clearly behind."""
    best: dict[float, FloatArray] = {}
    for (lam, _), (_, scores) in found.items():
        score = scores[:, -1]
        if lam not in best or score.mean() > best[lam].mean():
            best[lam] = score
    return sorted(not_clearly_behind(best), key=list(lams).index)

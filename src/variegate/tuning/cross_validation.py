"""Choose lambda and omega by cross-validation, or ask for a recall or a precision."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from dataclasses import replace
from numbers import Integral
from typing import Any, Literal, Self

import numpy as np
from sklearn.base import BaseEstimator, clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.validation import check_is_fitted

from variegate import metrics
from variegate._progress import ProgressPrinter
from variegate._random import as_generator, check_random_state
from variegate._typing import FloatArray, IntArray, RandomState
from variegate._validation import check_count, check_flag, check_number
from variegate.ensemble import LEnsemble
from variegate.estimator import LargeMarginDPP
from variegate.estimator.base import LearnedDisplay
from variegate.ground_set import GroundSet, check_ground_sets, check_subsets
from variegate.learning.problem import SharedExamples
from variegate.report.notebook import html_card
from variegate.tuning.choice import best_lam_omega, lam_omega_for_target
from variegate.tuning.family import fit_from_neighbour, order_outwards
from variegate.tuning.folds import CrossValidation
from variegate.tuning.held_out import Fold
from variegate.tuning.path import OmegaPath


class LargeMarginDPPCV(LearnedDisplay, BaseEstimator):  # type: ignore[misc]
    r"""A large-margin DPP with ``λ`` and ``ω`` chosen on held-out ground sets.

    Without a target, the pair with the best mean score on held-out data is chosen.
    With ``target_recall=r``, the path of every ``λ`` over ``ω`` is computed on held-out
    data.  Of the places where a path passes recall ``r``, that with the highest
    precision is taken, and ``ω`` is refined there by further fits until the held-out
    recall is within 0.005 of ``r``.  ``target_precision`` is the same with the two
    exchanged.  In the end one model is fitted on all of the data.

    Each fit starts from the solution of its neighbour on the grid.

    Parameters
    ----------
    estimator : LargeMarginDPP, optional
        All settings but ``lam`` and ``omega``; ``LargeMarginDPP()`` if none is given.
    lams : sequence of float, default=(0.0, 0.25, 1.0, 4.0, 16.0)
        Values of ``λ``.  ``ω`` has no effect with 0 and a strong one from about 4 on.
    omegas : sequence of float, optional
        Values of ``ω``; by default the eight of the paper, ``2⁻⁶, 2⁻⁴, ..., 2⁸``.
    cv : int, splitter or list of pairs, default=5
        The number of folds, a scikit-learn splitter, or pairs of arrays of positions to
        learn from and to judge by.
    scoring : "f" or callable, default="f"
        The score to maximize without a target: the mean F-score, or the mean of a
        function of a chosen and a wanted subset.
    target_precision, target_recall : float, optional
        Mean precision or recall on new ground sets to aim at; between 0 and 1, one of
        the two.
    n_samples : int, default=200
        Most samples of an "mbr" decoder while the grid is compared.  The path of the
        chosen ``λ`` is decoded again with as many as the estimator says.
    n_jobs : int, optional
        Folds to work on at a time, with one BLAS thread each.
    random_state : None, int or numpy.random.Generator
        For the folds, and for decoding where the estimator has no seed of its own.
    refit : bool, default=True
        Whether to learn from all of the data in the end.
    drop_lams : bool, default=False
        Whether to leave out of all other folds, and of the results, each ``λ`` that is
        clearly behind on the first one.  It saves time; not with a target.
    callback : callable, optional
        Called with the numbers of finished and of all folds while the grid is compared.
    verbose : bool, default=False
        Whether to print these numbers on standard error.

    Attributes
    ----------
    best_lam_, best_omega_ : float
    best_score_ : float
        The held-out score of the chosen pair.
    best_model_ : LargeMarginDPP
        Fitted on all of the data; ``best_model_.save("model.json")`` keeps it.  Not
        there with ``refit=False``.
    path_ : OmegaPath
        Held-out precision, recall and F by ``ω`` at the chosen ``λ``: ``print`` it, or
        ``path_.plot()``.
    paths_ : dict from float to OmegaPath
        The same for every ``λ``.
    cv_results_ : dict of arrays
        One row for each pair that was tried, as in scikit-learn.
    n_splits_ : int

    Examples
    --------
    >>> import variegate as vg
    >>> data = vg.datasets.make_synthetic(n_sets=60, random_state=0)
    >>> estimator = vg.LargeMarginDPP(kernel=vg.Linear(), decoder="exact")
    >>> model = vg.LargeMarginDPPCV(
    ...     estimator, lams=(1.0, 4.0), omegas=(0.25, 1.0, 4.0), cv=2, random_state=0
    ... )
    >>> model = model.fit(data.ground_sets, data.subsets)
    >>> model.best_lam_ in (1.0, 4.0), len(model.path_)
    (True, 3)
    """

    def __init__(
        self,
        estimator: LargeMarginDPP | None = None,
        lams: Sequence[float] = (0.0, 0.25, 1.0, 4.0, 16.0),
        omegas: Sequence[float] | None = None,
        cv: Any = 5,
        scoring: Any = "f",
        target_precision: float | None = None,
        target_recall: float | None = None,
        n_samples: int = 200,
        n_jobs: int | None = None,
        random_state: RandomState = None,
        refit: bool = True,
        drop_lams: bool = False,
        callback: Callable[[int, int], object] | None = None,
        verbose: bool = False,
    ) -> None:
        self.estimator = estimator
        self.lams = lams
        self.omegas = omegas
        self.cv = cv
        self.scoring = scoring
        self.target_precision = target_precision
        self.target_recall = target_recall
        self.n_samples = n_samples
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.refit = refit
        self.drop_lams = drop_lams
        self.callback = callback
        self.verbose = verbose

    # Learning ---------------------------------------------------------------------

    def fit(
        self,
        ground_sets: Sequence[GroundSet],
        subsets: Sequence[Any],
        groups: Any = None,
    ) -> Self:
        """Choose ``λ`` and ``ω``, learn from all of the data, and return itself.

        Parameters
        ----------
        ground_sets : list of GroundSet
        subsets : list
            For each ground set, the wanted item numbers or a boolean mask.
        groups : sequence, optional
            A label for each ground set; those of one label stay in one fold.
        """
        lams, omegas, target = self._check_parameters()
        ground_sets = check_ground_sets(ground_sets)
        members = check_subsets(subsets, ground_sets)
        rng = as_generator(self.random_state)
        fold_seed, model_seed = (int(seed) for seed in rng.integers(2**31, size=2))
        folds = self._folds(ground_sets, members, groups, fold_seed)
        base = clone(self.estimator or LargeMarginDPP())
        if not isinstance(base.random_state, Integral):
            base.set_params(random_state=model_seed)
        scoring = metrics.f_score if self.scoring == "f" else self.scoring
        trials = CrossValidation(base, folds, self.n_samples, scoring, self.n_jobs)
        drop_lams = self.drop_lams and target is None
        trials.run_grid(lams, omegas, self._progress_callback(), drop_lams)
        if target is None:
            lam, omega = best_lam_omega(trials)
        else:
            lam, omega = lam_omega_for_target(trials, lams, *target)
        self.n_splits_ = len(folds)
        self.best_lam_, self.best_omega_ = lam, omega
        self.best_score_ = float(trials.summary(lam, omega)[0][-1])
        self.cv_results_: dict[str, FloatArray] = trials.results()
        tried = sorted({tried for tried, _ in trials.trials})
        self.paths_: dict[float, OmegaPath] = {one: trials.path(one) for one in tried}
        self.path_ = replace(self.paths_[lam], chosen=omega, target=target)
        self.paths_[lam] = self.path_
        if self.refit:
            self.best_model_ = self._fit_on_all_data(base, ground_sets, members, omegas)
        elif hasattr(self, "best_model_"):
            del self.best_model_
        return self

    def _progress_callback(self) -> Callable[[int, int], object] | None:
        """Return a callback of finished and all folds, which prints if ``verbose``."""
        if not self.verbose:
            return self.callback
        tell = ProgressPrinter(type(self).__name__)

        def print_progress(done: int, total: int) -> None:
            """Print the number of finished folds, and call the callback."""
            tell(f"{done} of {total} folds", always=True)
            if self.callback is not None:
                self.callback(done, total)

        return print_progress

    def _fit_on_all_data(
        self,
        base: LargeMarginDPP,
        ground_sets: list[GroundSet],
        members: list[IntArray],
        omegas: Sequence[float],
    ) -> LargeMarginDPP:
        """Return a model of all data for the best pair, by the same steps as on folds.

        ``base`` is the unfitted estimator, and ``omegas`` the grid.  Steps go from the
        smallest lambda to the best at the omega nearest to 1, then to the best omega.
        """
        best = self.best_lam_, self.best_omega_
        middle, sides = order_outwards(omegas)
        low, high = sorted((middle, best[1]))
        steps = [(lam, middle) for lam in self.paths_ if lam <= best[0]]
        steps += [(best[0], o) for side in sides for o in side if low < o < high]
        steps += [best] * (steps[-1] != best)
        model, shared = base, SharedExamples(ground_sets, members)
        for step in steps:
            model = fit_from_neighbour(model, shared, None, *step, step == steps[-1])
        result = model.solver_result_
        if result.remedy:
            warnings.warn(
                f"{result.status}. {result.remedy}", ConvergenceWarning, stacklevel=3
            )
        given = self.estimator or LargeMarginDPP()
        seed = given.random_state
        if seed is None and self.random_state is not None:
            seed = base.random_state
        model.set_params(warm_start=given.warm_start, random_state=seed)
        return model

    def _folds(
        self, ground_sets: list[Any], members: list[Any], groups: Any, seed: int
    ) -> list[Fold]:
        """Return the folds of ``cv``, drawn by ``seed`` if that is their number.

        ``groups`` are labels of ground sets, or None; ValueError if ``cv`` is invalid.
        """
        n = len(ground_sets)
        labels = np.arange(n)
        if groups is not None:
            if len(groups) != n:
                raise ValueError(f"{len(groups)} groups for {n} ground sets")
            labels = np.unique(np.asarray(groups), return_inverse=True)[1]
        return [
            Fold(ground_sets, members, train, held_out, labels)
            for train, held_out in _make_splits(
                self.cv, labels, groups is not None, seed
            )
        ]

    def _check_parameters(
        self,
    ) -> tuple[list[float], list[float], tuple[str, float] | None]:
        """Check parameters of the constructor; return sorted lambdas, omegas, target.

        ValueError for an invalid one.  The target is ("precision" or "recall", value),
        or None.
        """
        if self.estimator is not None and not isinstance(
            self.estimator, LargeMarginDPP
        ):
            raise ValueError(
                f"estimator must be a LargeMarginDPP, got {self.estimator!r}"
            )
        omegas = 2.0 ** np.arange(-6, 9, 2) if self.omegas is None else self.omegas
        values = {}
        for name, given in (("lams", self.lams), ("omegas", omegas)):
            if not hasattr(given, "__len__") or len(given) == 0:
                raise ValueError(f"{name} must be a list of numbers, got {given!r}")
            for value in given:
                check_number(f"each of {name}", value, positive=name == "omegas")
            values[name] = sorted({float(value) for value in given})
        if self.scoring != "f" and not callable(self.scoring):
            raise ValueError(
                'scoring must be "f" or a function of a chosen and a wanted subset, '
                f"got {self.scoring!r}"
            )
        check_count("n_samples", self.n_samples)
        check_flag("refit", self.refit)
        check_flag("drop_lams", self.drop_lams)
        check_flag("verbose", self.verbose)
        if self.callback is not None and not callable(self.callback):
            raise ValueError(f"callback must be callable, got {self.callback!r}")
        check_random_state(self.random_state)
        return values["lams"], values["omegas"], self._check_target(values["lams"])

    def _check_target(self, lams: list[float]) -> tuple[str, float] | None:
        """Return (name, value) of the target, or None; ValueError if it is invalid."""
        targets = {"precision": self.target_precision, "recall": self.target_recall}
        asked = [(name, value) for name, value in targets.items() if value is not None]
        if not asked:
            return None
        if len(asked) == 2:
            raise ValueError(
                "give target_precision or target_recall, not both: one omega cannot "
                "meet two targets"
            )
        name, value = asked[0]
        check_number(f"target_{name}", value, positive=True)
        if value >= 1.0:
            raise ValueError(f"target_{name} must be between 0 and 1, got {value!r}")
        if lams[-1] == 0.0:
            raise ValueError(
                f"target_{name} is met by choosing omega, which has no effect with "
                "lambda 0: add some lams above 0, such as 1, 4 and 16"
            )
        return name, float(value)

    def _learned_html(self) -> str:
        """Return the chosen lambda and omega, the score and the best model as HTML."""
        check_is_fitted(self, "best_lam_")
        facts = {
            "best lambda": f"{self.best_lam_:g}",
            "best omega": f"{self.best_omega_:g}",
            "F on held-out ground sets": f"{self.best_score_:.3f}",
        }
        model = getattr(self, "best_model_", None)
        return html_card(
            "Chosen", facts, "" if model is None else model._learned_html()
        )

    # Choosing by the best model ---------------------------------------------------

    def predict(
        self,
        ground_sets: Sequence[GroundSet],
        k: int | None = None,
        budget: float | None = None,
        order: Literal["number", "importance"] = "number",
        *,
        at_most: Any = None,
        per: Sequence[Any] | None = None,
    ) -> list[IntArray]:
        """Return the item numbers that the best model chooses from each ground set.

        ``k`` items of each, within the ``budget``, sorted by number or importance, at
        most ``at_most`` of a label ``per`` item: see :meth:`LargeMarginDPP.predict`.
        """
        check_is_fitted(self, "best_model_")
        return self.best_model_.predict(
            ground_sets, k, budget, order, at_most=at_most, per=per
        )

    def score(self, ground_sets: Sequence[GroundSet], subsets: Sequence[Any]) -> float:
        """Return the mean F-score of the best model's choices against ``subsets``."""
        check_is_fitted(self, "best_model_")
        return self.best_model_.score(ground_sets, subsets)

    def ensemble(self, ground_set: GroundSet) -> LEnsemble:
        """Return the determinantal point process of a ground set by the best model."""
        check_is_fitted(self, "best_model_")
        return self.best_model_.ensemble(ground_set)


def _make_splits(
    cv: Any, labels: IntArray, grouped: bool, seed: int
) -> list[tuple[IntArray, IntArray]]:
    """Return a pair of position arrays for every fold: to learn from, and held out.

    ``labels`` has a label from 0 for each ground set, of its group if ``grouped``, else
    its own.  If ``cv`` is a number, sets of one label stay in one fold.  ValueError if
    ``cv`` is invalid.
    """
    from sklearn.model_selection import KFold, check_cv

    n_units = len(np.unique(labels))
    positions = np.arange(len(labels))
    if isinstance(cv, int | np.integer) and not isinstance(cv, bool):
        if cv < 2:
            raise ValueError(f"cv must be at least 2 folds, got {cv!r}")
        if n_units < cv:
            what = "groups" if grouped else "ground sets"
            raise ValueError(
                f"{n_units} {what} cannot be split into {cv} folds: give more data, "
                f"or cv={max(n_units, 2)} or fewer"
            )
        # Folds of whole groups; without groups each ground set is its own.
        splitter = KFold(int(cv), shuffle=True, random_state=seed)
        chosen = [units for _, units in splitter.split(np.arange(n_units))]
        masks = [np.isin(labels, units) for units in chosen]
        return [(positions[~mask], positions[mask]) for mask in masks]
    try:
        splitter = check_cv(cv)
        pairs = list(splitter.split(positions, groups=labels if grouped else None))
    except (TypeError, ValueError, AttributeError) as error:
        raise ValueError(
            "cv must be a number of folds, a scikit-learn splitter or pairs of "
            f"positions ({error})"
        ) from error
    checked = [(positions[train], positions[held_out]) for train, held_out in pairs]
    if not checked or any(len(part) == 0 for pair in checked for part in pair):
        raise ValueError("every fold of cv needs ground sets on both sides")
    return checked

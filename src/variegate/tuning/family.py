"""Models for several values of omega, and interpolated ones between them."""

from __future__ import annotations

import copy
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning

from variegate._progress import Progress, ignore
from variegate.estimator import AllAlikeWarning, DPPEstimator, LargeMarginDPP
from variegate.files import models as model_files
from variegate.files.model_format import MODELS
from variegate.files.models import ModelFileError, Own
from variegate.learning.problem import SharedExamples
from variegate.partitions.partition import hold_pairs

#: Omegas of :meth:`OmegaFamily.by_odds`, each also the factor of the odds.
ODDS_OMEGAS = (1 / 64, 1.0, 64.0)

#: Lambda and omega.
LamOmega = tuple[float, float]

#: The lambda and omega to fit for, and the pair whose fitted model the fit starts from,
#: None for the first.
GridStep = tuple[LamOmega, LamOmega | None]


def check_omegas(omega: Any) -> tuple[float, ...]:
    """Return one or several values of omega, sorted, once each; ValueError if bad."""
    omegas = np.atleast_1d(omega)
    if (
        omegas.dtype.kind not in "iuf"
        or omegas.ndim > 1
        or omegas.size == 0
        or not (np.isfinite(omegas) & (omegas > 0.0)).all()
    ):
        raise ValueError(f"omega must be one or more positive numbers, got {omega!r}")
    return tuple(sorted({float(value) for value in omegas}))


def order_outwards(omegas: Sequence[float]) -> tuple[float, list[list[float]]]:
    """Return the omega nearest to 1, and [smaller, larger] ones, nearest first."""
    ordered = sorted(omegas)
    start = int(np.argmin(np.abs(np.log(ordered))))
    return ordered[start], [ordered[:start][::-1], ordered[start + 1 :]]


def grid_steps(lams: Sequence[float], omegas: Sequence[float]) -> list[GridStep]:
    """Return the (lambda, omega) pairs of a grid, each with the pair it starts from.

    The latter always comes before.  At the omega nearest to 1, a lambda starts from the
    next smaller one, the smallest from None; other omegas start from their neighbour
    towards 1.  ``lam=0`` has one omega only, as omega does not matter there.
    """
    middle, sides = order_outwards(omegas)
    steps: list[GridStep] = []
    root: LamOmega | None = None
    for lam in sorted(lams):
        steps.append(((lam, middle), root))
        root = lam, middle
        for side in sides if lam > 0.0 else []:
            start = root
            for omega in side:
                steps.append(((lam, omega), start))
                start = lam, omega
    return steps


def fit_from_neighbour(
    model: LargeMarginDPP,
    ground_sets: Any,
    subsets: Any,
    lam: float,
    omega: float,
    is_kept: bool = False,
    **fit_arguments: Any,
) -> LargeMarginDPP:
    """Return a copy of ``model`` fitted for ``lam`` and ``omega``, started from it.

    ``model`` may be unfitted.  ``ConvergenceWarning`` is suppressed, and so is
    ``AllAlikeWarning`` unless ``is_kept``: the fit is a result, not only a start for
    others.  ``warm_start`` stays on in the copy.
    """
    following = copy.copy(model)
    # Only the first of a chain of fits has nothing to start from.
    starts = 1 if hasattr(model, "theta_") else model.n_starts
    following.set_params(lam=lam, omega=omega, warm_start=True, n_starts=starts)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        if not is_kept:
            warnings.simplefilter("ignore", AllAlikeWarning)
        following.fit(ground_sets, subsets, **fit_arguments)
    following.set_params(n_starts=model.n_starts)
    return following


def multiply_odds(model: LargeMarginDPP, odds: float) -> LargeMarginDPP:
    """Return a copy of ``model`` that multiplies every item's odds by ``odds``."""
    other = copy.copy(model)
    other.intercept_ = model.intercept_ + 0.5 * float(np.log(odds))
    return other


def fit_by_steps(
    estimator: LargeMarginDPP, omega: float, ground_sets: Any, subsets: Any
) -> LargeMarginDPP:
    """Return a model fitted for ``omega``, after fits at steps from 1 towards it.

    Far from 1 the objective has poor minima, such as to choose nothing.  So the first
    fit is at 1, and each of the others, at most a factor of 4 further, starts from the
    one before; with ``lam=0``, where omega has no effect, there is one fit.  Warnings
    are about the last.  ``subsets`` is None where ``ground_sets`` holds them too.
    """
    if subsets is not None:
        ground_sets = SharedExamples(ground_sets, subsets)
    n_steps = int(np.ceil(abs(np.log(omega)) / np.log(4.0))) if estimator.lam else 0
    steps = [float(omega ** (k / n_steps)) for k in range(n_steps)]
    model: LargeMarginDPP = clone(estimator)
    for step in [*steps, omega]:
        kept = step == omega
        model = fit_from_neighbour(model, ground_sets, None, estimator.lam, step, kept)
    result = model.solver_result_
    if result.remedy:
        text = f"{result.status}. {result.remedy}"
        warnings.warn(text, ConvergenceWarning, stacklevel=2)
    model.set_params(warm_start=estimator.warm_start, callback=None)
    return model


class _WarningsByOmega:
    """Collects warnings of the fits of a family, to issue each text once."""

    def __init__(self) -> None:
        # By category and text: the first such warning, and the omegas that gave it.
        self._found: dict[Any, tuple[warnings.WarningMessage, list[float]]] = {}

    @contextmanager
    def collecting(self, omega: float) -> Iterator[None]:
        """Collect the warnings of the block, which fits for ``omega``."""
        with warnings.catch_warnings(record=True) as caught:
            yield
        for one in caught:
            key = one.category, str(one.message)
            self._found.setdefault(key, (one, []))[1].append(omega)

    def issue(self, n_fits: int) -> None:
        """Issue each warning once, with its omegas if fewer than ``n_fits`` gave it."""
        for (category, text), (one, omegas) in self._found.items():
            if len(omegas) < n_fits:
                text = (
                    f"for omega {', '.join(f'{v:g}' for v in sorted(omegas))}, {text}"
                )
            warnings.warn_explicit(text, category, one.filename, one.lineno)


@dataclass(frozen=True, eq=False)
class OmegaFamily:
    """One model for each of several values of omega, and for any between them.

    The first is fitted at the omega nearest to 1, where the problem is mildest; each
    of the others starts from its neighbour on that side.  So neighbours lie in the
    same valley of the objective, and models between them may be interpolated.

    Attributes
    ----------
    omegas : tuple of float
        Sorted.
    models : tuple of LargeMarginDPP
        One for each; a single one may be of another class.

    Examples
    --------
    >>> import variegate as vg
    >>> from variegate.tuning import OmegaFamily
    >>> data = vg.datasets.make_synthetic(n_sets=60, random_state=0)
    >>> estimator = vg.LargeMarginDPP(lam=4.0, kernel=vg.Linear(), l2=0.01)
    >>> family = OmegaFamily.fit(
    ...     estimator, (0.25, 1.0, 4.0), data.ground_sets, data.subsets
    ... )
    >>> sizes = [
    ...     family.at(omega).ensemble(data.ground_sets[0]).expected_size()
    ...     for omega in (0.25, 0.5, 4.0)
    ... ]
    >>> sizes == sorted(sizes)
    True
    """

    omegas: tuple[float, ...]
    models: tuple[LargeMarginDPP, ...]

    @classmethod
    def fit(
        cls,
        estimator: LargeMarginDPP,
        omegas: Any,
        ground_sets: Any,
        subsets: Any = None,
        *,
        progress: Progress = ignore,
        **fit_arguments: Any,
    ) -> OmegaFamily:
        """Return the family of models fitted for each omega.

        Parameters
        ----------
        estimator : LargeMarginDPP
            All settings but ``omega``.  Its ``callback`` sees the steps of every fit.
        omegas : float or sequence of float
        ground_sets, subsets
            Lists, or pairs and no subsets, as for :meth:`variegate.LargeMarginDPP.fit`;
            a generator is read once.
        progress : callable, optional
            Called with "fitting" and the numbers of finished and of all fits.
        **fit_arguments
            Further arguments of :meth:`variegate.LargeMarginDPP.fit`.
        """
        if not isinstance(estimator, LargeMarginDPP):
            raise ValueError(
                "a family is of LargeMarginDPPs, whose parameters can be mixed, not of "
                f"a {type(estimator).__name__}"
            )
        omegas = check_omegas(omegas)
        if subsets is None and isinstance(ground_sets, Iterator):
            ground_sets = hold_pairs(ground_sets, 1.0)
            if isinstance(ground_sets, list):
                subsets = [example.members for example in ground_sets]
                ground_sets = [example.ground_set for example in ground_sets]
        if subsets is not None and not fit_arguments:
            ground_sets, subsets = SharedExamples(ground_sets, subsets), None
        lam, unfitted = estimator.lam, clone(estimator)
        fitted: dict[float, LargeMarginDPP] = {}
        held_back = _WarningsByOmega()
        for (_, omega), start in grid_steps([lam], omegas):
            model = unfitted if start is None else fitted[start[1]]
            with held_back.collecting(omega):
                fitted[omega] = fit_from_neighbour(
                    model, ground_sets, subsets, lam, omega, True, **fit_arguments
                )
            progress("fitting", len(fitted), len(omegas))
        held_back.issue(len(fitted))
        first = next(iter(fitted.values()))
        for omega in omegas:
            if omega not in fitted:  # with lambda 0 omega plays no part
                fitted[omega] = copy.copy(first).set_params(omega=omega)
                progress("fitting", len(fitted), len(omegas))
        models = [fitted[omega] for omega in omegas]
        for model in models:
            model.set_params(warm_start=estimator.warm_start, callback=None)
            result = model.solver_result_
            which = f"for omega {model.omega:g}, learning " if len(omegas) > 1 else ""
            if result.remedy:
                warnings.warn(
                    f"{which}{result.status}. {result.remedy}",
                    ConvergenceWarning,
                    stacklevel=2,
                )
        return cls(omegas, tuple(models))

    def resolve(self, omega: float | None, default: float = 1.0) -> float:
        """Return ``omega``, or raise ValueError outside the range that was learned.

        For None, return ``default``, moved to the nearest end if outside the range.
        """
        low, high = self.omegas[0], self.omegas[-1]
        if omega is None:
            return float(np.clip(default, low, high))
        if not low <= omega <= high:
            known = f"{low:g} to {high:g}"
            if len(self.omegas) == 1:
                known = f"{low:g} only; learn several to choose between"
            raise ValueError(f"omega={omega:g}, but this model was learned for {known}")
        return float(omega)

    def at(self, omega: float) -> LargeMarginDPP:
        """Return the model for an omega in the range that was learned.

        Between two that were learned, their parameters are mixed in proportion to the
        distance in ``log(omega)``.
        """
        omega = self.resolve(omega)
        if omega in self.omegas:
            return self.models[self.omegas.index(omega)]
        after = int(np.searchsorted(self.omegas, omega))
        low, high = np.log(self.omegas[after - 1 : after + 1])
        share = (np.log(omega) - low) / (high - low)
        one, other = self.models[after - 1 : after + 1]
        mixed = copy.copy(one)
        for name in ("theta_", "intercept_", "kernel_parameters_"):
            value = (1.0 - share) * getattr(one, name) + share * getattr(other, name)
            setattr(mixed, name, value)
        return mixed

    @classmethod
    def by_odds(cls, model: LargeMarginDPP) -> OmegaFamily:
        """Return a family of copies of ``model``, with odds times ``ODDS_OMEGAS``."""
        models = (
            multiply_odds(model, omega).set_params(omega=omega) for omega in ODDS_OMEGAS
        )
        return cls(ODDS_OMEGAS, tuple(models))

    # Keeping ----------------------------------------------------------------------

    def encode(self) -> list[dict[str, Any]]:
        """Return the models as values that JSON can hold, one dict for each omega."""
        return [
            {"omega": omega, **model.encode()}
            for omega, model in zip(self.omegas, self.models, strict=True)
        ]

    @classmethod
    def decode(
        cls, document: Mapping[str, Any], own: Own, n_features: int
    ) -> OmegaFamily:
        """Return the family of the list "models" of a document, as ``encode`` gave it.

        ``own`` has the user's classes that the file names.  ModelFileError if the
        models do not go together, or have other than ``n_features``.
        """
        MODELS.check(document.get("models"), "models")
        entries = sorted(document["models"], key=lambda entry: float(entry["omega"]))
        models = tuple(
            model_files.read_nested_model(LargeMarginDPP, entry, own)
            for entry in entries
        )
        for model in models:
            if not isinstance(model, DPPEstimator):
                raise ModelFileError(f"a {type(model).__name__} among the models")
            if model.n_features_in_ != n_features:
                raise ModelFileError(
                    f"{model.n_features_in_} weights for {n_features} features"
                )
        omegas = tuple(float(entry["omega"]) for entry in entries)
        if len(set(omegas)) < len(omegas):
            raise ModelFileError("there are two models for one omega")
        if len(models) > 1:
            if not all(isinstance(model, LargeMarginDPP) for model in models):
                raise ModelFileError(
                    "a model without a kernel is the only one in a file"
                )
            kernels = [model.kernel_ for model in models]
            if len({(type(kernel), kernel.domain.size) for kernel in kernels}) > 1:
                raise ModelFileError("the models have different kernels")
        return cls(omegas, models)

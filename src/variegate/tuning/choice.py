"""Choose lambda and omega by their scores on held-out data.

``name`` and ``value`` are the target: the held-out score to reach, such as "recall"
and 0.85.  ``trials`` hold the held-out scores of every pair of lambda and omega that
was tried; the functions here add pairs to them by further fits.
"""

from __future__ import annotations

import logging
import warnings
from collections.abc import Sequence

import numpy as np

from variegate.tuning.family import order_outwards
from variegate.tuning.folds import CrossValidation

logger = logging.getLogger(__name__)

#: Distance at which a target is met: about half the standard error of a mean recall
#: or precision of 300 ground sets.
TOLERANCE = 0.005
#: Further omegas between two of the grid; then the nearest is taken.
MAX_REFINEMENTS = 6
#: How often the grid is made longer when a target is beyond its end.
MAX_EXTENSIONS = 3


class TargetNotReachedWarning(UserWarning):
    """No lambda and omega gave the target recall or precision."""


def best_lam_omega(trials: CrossValidation) -> tuple[float, float]:
    """Return the pair with the best score; of equals, small lambda and omega near 1.

    The best lambda's trials are scored again with the full decoder, in place, before
    its omega is chosen.
    """

    def merit(lam: float, omega: float) -> tuple[float, float, float]:
        """Return a sort key, larger for better pairs: score, -lambda, -|log omega|."""
        score = float(trials.summary(lam, omega)[0][-1])
        return score, -lam, -abs(float(np.log(omega)))

    lam, _ = max(trials.trials, key=lambda pair: merit(*pair))
    trials.rescore_with_full_decoder(lam)
    omega = max(trials.omegas(lam), key=lambda omega: merit(lam, omega))
    return lam, omega


def lam_omega_for_target(
    trials: CrossValidation, lams: Sequence[float], name: str, value: float
) -> tuple[float, float]:
    """Return the (lambda, omega) that meets a target and has the best other score.

    ``value`` is the target of ``name``, "precision" or "recall"; the other of the two
    is the other score.  ``trials`` gain omegas beyond the grid if no lambda of ``lams``
    meets the target, and between those of the grid at the chosen lambda.  If the target
    is still missed, warn and return the nearest pair.
    """
    for attempt in range(MAX_EXTENSIONS + 1):
        crossings = [
            (lam, crossing)
            for lam in lams
            for crossing in trials.path(lam).crossings(name, value, TOLERANCE)
        ]
        if crossings:
            break
        if attempt < MAX_EXTENSIONS:
            _extend_omegas(trials, lams, name, value)
    crossings.sort(key=lambda found: (-found[1].other, found[0]))
    for lam in dict.fromkeys(lam for lam, _ in crossings):
        # With all samples, a short path may just miss the target.
        trials.rescore_with_full_decoder(lam)
        if trials.path(lam).crossings(name, value, TOLERANCE):
            return lam, refine_omega(trials, lam, name, value)
    return _nearest_lam_omega(trials, lams, name, value)


def _extend_omegas(
    trials: CrossValidation, lams: Sequence[float], name: str, value: float
) -> None:
    """Add a trial for each lambda above 0, at one omega beyond those tried.

    It lies at the end of large omegas where recall has to rise to ``value``, or
    precision to fall, else at the end of small ones.
    """
    for lam in lams:
        if lam == 0.0:
            continue
        path = trials.path(lam)
        is_short = float(getattr(path, name).max()) < value
        at_end = is_short == (name == "recall")
        ratio = max(path.omega[-1] / path.omega[0], 4.0) ** (
            1.0 / max(len(path) - 1, 1)
        )
        # Twice as far as the grid steps, so that three of them go far.
        omega = path.omega[-1] * ratio**2 if at_end else path.omega[0] / ratio**2
        logger.info("%s %g is out of reach: omega %g is next", name, value, omega)
        trials.try_omega(lam, float(omega))


def _nearest_lam_omega(
    trials: CrossValidation, lams: Sequence[float], name: str, value: float
) -> tuple[float, float]:
    """Warn that no pair meets the target, and return the nearest (lambda, omega).

    The trials of this lambda are scored again with the full decoder, in place.
    """
    paths = {lam: trials.path(lam) for lam in lams}
    gaps = {
        (lam, point.omega): abs(getattr(point, name) - value)
        for lam, path in paths.items()
        for point in path
    }
    lam = min(gaps, key=lambda pair: gaps[pair])[0]
    trials.rescore_with_full_decoder(lam)
    path = trials.path(lam)
    nearest = int(np.argmin(np.abs(getattr(path, name) - value)))
    reached = np.concatenate([getattr(paths[one], name) for one in paths])
    tried = np.concatenate([paths[one].omega for one in paths])
    warnings.warn(
        f"target_{name}={value:g} was not reached: held-out {name} went from "
        f"{reached.min():.3f} to {reached.max():.3f} for lambda up to {max(lams):g} "
        f"and omega from {tried.min():.3g} to {tried.max():.3g}. The nearest is taken, "
        f"{getattr(path, name)[nearest]:.3f}. Ask for a {name} within this range, or "
        f"try larger lams, such as {4 * max(lams):g}, with which omega acts more "
        "strongly",
        TargetNotReachedWarning,
        stacklevel=4,
    )
    return lam, float(path.omega[nearest])


def refine_omega(trials: CrossValidation, lam: float, name: str, value: float) -> float:
    """Return an omega whose score ``name`` is within ``TOLERANCE`` of ``value``.

    At most ``MAX_REFINEMENTS`` omegas between those tried are added to ``trials``.  If
    the score jumps over the target, return the omega beside the jump with the higher
    score; for ``lam=0``, which omega does not influence, the one nearest to 1.
    """
    if lam == 0.0:
        return order_outwards(trials.omegas(lam))[0]
    for attempt in range(MAX_REFINEMENTS + 1):
        path = trials.path(lam)
        reached = dict(zip(path.omega.tolist(), getattr(path, name), strict=True))
        found = path.crossings(name, value, TOLERANCE)
        # Where a very small omega leaves nothing to choose, precision falls again.
        best = max(found, key=lambda crossing: crossing.other)
        gaps = {omega: abs(reached[omega] - value) for omega in (best.low, best.high)}
        nearest = min(gaps, key=lambda omega: gaps[omega])
        if gaps[nearest] <= TOLERANCE:
            return nearest
        if attempt < MAX_REFINEMENTS:
            # Interpolation is fast on a smooth path, halving is safe on a rough one.
            middle = float(np.sqrt(best.low * best.high))
            trials.try_omega(lam, middle if attempt % 3 == 2 else best.omega)
            logger.info("refined:\n%s", path)
    # The path jumps over the target: rather above it than below.
    return max(gaps, key=lambda omega: float(reached[omega]))

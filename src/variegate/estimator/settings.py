"""The settings of an estimator, checked before the work."""

from __future__ import annotations

from typing import TYPE_CHECKING

from variegate._random import check_random_state
from variegate._validation import check_count, check_flag, check_number
from variegate.decoding import as_decoder
from variegate.kernels import Kernel
from variegate.learning.device_name import device_named
from variegate.solvers import as_solver

if TYPE_CHECKING:
    from variegate.estimator.large_margin import LargeMarginDPP

__all__ = ["check_settings"]


def check_settings(model: LargeMarginDPP) -> None:
    """Refuse what cannot be, and say what is wrong with it."""
    for name in ("lam", "omega", "l2", "jitter", "tol"):
        check_number(name, getattr(model, name))
    for name in ("max_iter", "n_starts"):
        check_count(name, getattr(model, name))
    for name in ("fit_intercept", "warm_start", "verbose"):
        check_flag(name, getattr(model, name))
    if model.kernel is not None and not isinstance(model.kernel, Kernel):
        raise ValueError(
            f"kernel must be a Kernel such as MultipleKernel(), got {model.kernel!r}"
        )
    if model.callback is not None and not callable(model.callback):
        raise ValueError(f"callback must be callable, got {model.callback!r}")
    check_random_state(model.random_state)
    if model.n_jobs not in (None, -1):
        check_count("n_jobs", model.n_jobs)
    device_named(model.device)
    as_solver(model.solver, model.max_iter, model.tol)
    as_decoder(model.decoder)

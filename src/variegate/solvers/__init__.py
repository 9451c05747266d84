"""Solvers: one algorithm a file; ``result.py`` is the contract."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

from variegate.files.run_store import CheckpointError
from variegate.solvers.lbfgs import LBFGS
from variegate.solvers.minibatch import MiniBatch
from variegate.solvers.result import Callback, Problem, SolverResult, Step, Stop

__all__ = [
    "LBFGS",
    "SOLVERS",
    "Callback",
    "CheckpointError",
    "MiniBatch",
    "Problem",
    "SolverResult",
    "Step",
    "Stop",
    "as_solver",
]

#: The names that the estimator takes.
#:
#: :meta hide-value:
SOLVERS: Mapping[str, type[Any]] = MappingProxyType(
    {"lbfgs": LBFGS, "minibatch": MiniBatch}
)


def as_solver(solver: Any, max_iter: int, tol: float) -> Any:
    """Return a solver object: a new one for a name, or the given object itself.

    "lbfgs" takes ``max_iter`` and ``tol``; "minibatch" and objects ignore them.
    ValueError for other names, classes, and objects without a method ``solve``.
    """
    if isinstance(solver, str):
        if solver not in SOLVERS:
            raise ValueError(
                f"unknown solver {solver!r}; there are {', '.join(sorted(SOLVERS))}"
            )
        if solver == "minibatch":  # which counts passes, and has no tolerance
            return MiniBatch()
        return SOLVERS[solver](max_iter=max_iter, tol=tol)
    if isinstance(solver, type) or not hasattr(solver, "solve"):
        raise ValueError(
            f"a solver is a name or an object like LBFGS(), got {solver!r}"
        )
    return solver

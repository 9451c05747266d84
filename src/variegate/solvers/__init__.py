"""Solvers: one algorithm a file; :mod:`variegate.solvers.result` is the contract."""

from __future__ import annotations

from variegate.solvers.alternating import AlternatingSubgradient
from variegate.solvers.lbfgs import LBFGS
from variegate.solvers.result import Callback, Problem, SolverResult, Step

__all__ = [
    "LBFGS",
    "AlternatingSubgradient",
    "Callback",
    "Problem",
    "SolverResult",
    "Step",
]

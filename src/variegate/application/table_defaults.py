"""What tables are learned with if nothing else is said, and what may be said.

Here and not in :mod:`variegate.tables`, so that commands can show it without pyarrow
or scikit-learn.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from variegate.estimator import LargeMarginDPP

#: Names of kernels; the first is the default.
KERNELS = ("auto", "multiple", "kinds", "metric", "linear")

#: What to do where a cell is empty; the first is the default.
MISSING = ("error", "mean", "indicator")

#: What to do with groups from which nothing was chosen; the first is the default.
EMPTY_GROUPS = ("error", "keep", "drop")

#: Weight of the margin.
LAM = 4.0

#: Bytes of features that are held in memory.
MEMORY = 512 * 2**20

#: Methods that learn nothing, to compare with.
UNTRAINED = ("dpp", "mmr", "top")


def default_estimator() -> LargeMarginDPP:
    """Return what is learned with."""
    from variegate.estimator import LargeMarginDPP

    return LargeMarginDPP(lam=LAM, l2=1e-4, decoder="greedy", max_iter=200, tol=1e-2)

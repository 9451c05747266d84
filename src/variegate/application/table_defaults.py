"""Defaults and choices of the parameters for tables.

Here and not in :mod:`variegate.tables`, so that commands can show it without pyarrow
or scikit-learn.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from variegate.estimator import LargeMarginDPP

# Choices, of which the first is the default: names of kernels, how quality is computed,
# what to do where a cell is empty, and with groups from which nothing was chosen.
KERNELS = ("auto", "multiple", "kinds", "metric", "linear")
QUALITY_MODELS = ("auto", "linear", "boosting")
MISSING = ("error", "mean", "indicator")
EMPTY_GROUPS = ("error", "keep", "drop")

LAM = 4.0  # weight of the margin
MEMORY = 512 * 2**20  # bytes of features that are held in memory

#: Methods that learn nothing, to compare with.
UNTRAINED = ("dpp", "mmr", "top")


def default_estimator() -> LargeMarginDPP:
    """Return the estimator, not fitted, that tables use by default."""
    from variegate.estimator import LargeMarginDPP

    return LargeMarginDPP(lam=LAM, l2=1e-4, decoder="greedy", max_iter=1000, tol=1e-2)

"""Shares of a diagonal entry below which a pivot is rounding error."""

from __future__ import annotations

#: A squared residual below this share of the item's own diagonal is rounding error:
#: the item lies in the span of those before it, and the determinant is zero.
RANK_TOLERANCE = 1e-12

#: Where no order of items can be chosen, rounding in a pivot is divided by those
#: before it.  A share of the diagonal below the root of rounding is then in doubt, and
#: a loss that depends on it is refused.
DOUBTFUL_PIVOT = 1e-8

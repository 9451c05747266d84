"""The estimator: learn from selections, then select."""

from variegate.estimator.alike import AllAlikeWarning
from variegate.estimator.large_margin import LargeMarginDPP

__all__ = ["AllAlikeWarning", "LargeMarginDPP"]

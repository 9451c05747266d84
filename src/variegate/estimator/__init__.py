"""The estimator: learn from selections, then select."""

from variegate.estimator.large_margin import LargeMarginDPP

__all__ = ["LargeMarginDPP"]

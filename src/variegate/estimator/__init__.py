"""The estimator: learn from selections, then select."""

from variegate.estimator.alike import AllAlikeWarning
from variegate.estimator.base import DPPEstimator
from variegate.estimator.large_margin import LargeMarginDPP

__all__ = ["AllAlikeWarning", "DPPEstimator", "LargeMarginDPP"]

"""The estimator: learn from selections, then select."""

from variegate.estimator.alike import AllAlikeWarning
from variegate.estimator.base import DPPEstimator
from variegate.estimator.boosted_quality import BoostedQuality
from variegate.estimator.large_margin import LargeMarginDPP

__all__ = ["AllAlikeWarning", "BoostedQuality", "DPPEstimator", "LargeMarginDPP"]

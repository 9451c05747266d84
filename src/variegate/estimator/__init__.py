"""The estimator: learn from selections, then select."""

from variegate.estimator.alike import AllAlikeWarning
from variegate.estimator.base import DPPEstimator
from variegate.estimator.boosted_quality import BoostedQuality
from variegate.estimator.large_margin import LargeMarginDPP
from variegate.estimator.sequential import SegmentStream, SequentialDPP

__all__ = [
    "AllAlikeWarning",
    "BoostedQuality",
    "DPPEstimator",
    "LargeMarginDPP",
    "SegmentStream",
    "SequentialDPP",
]

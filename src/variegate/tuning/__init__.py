"""Choose lambda and omega on held-out data, and trade precision for recall."""

from variegate.tuning.choice import TargetNotReachedWarning
from variegate.tuning.cross_validation import LargeMarginDPPCV
from variegate.tuning.family import OmegaFamily
from variegate.tuning.path import OmegaPath, PathPoint

__all__ = [
    "LargeMarginDPPCV",
    "OmegaFamily",
    "OmegaPath",
    "PathPoint",
    "TargetNotReachedWarning",
]

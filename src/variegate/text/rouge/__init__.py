"""ROUGE: how much of reference summaries a summary has, as ROUGE-1.5.5 counts it.

C.-Y. Lin, 2004, "ROUGE: a package for automatic evaluation of summaries".
"""

from __future__ import annotations

from variegate.text.rouge.scorer import (
    PreparedReferences,
    Rouge,
    Score,
    mean_scores,
)
from variegate.text.rouge.tokens import Text, read_exceptions

__all__ = [
    "PreparedReferences",
    "Rouge",
    "Score",
    "Text",
    "mean_scores",
    "read_exceptions",
]

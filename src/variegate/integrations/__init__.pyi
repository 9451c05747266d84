from .core import ContextSelector, ContextWarning
from .documents import Candidates, Found, count_words
from .evidence import EvidenceExtractor, Extract
from .learned_models import training_table

__all__ = [
    "Candidates",
    "ContextSelector",
    "ContextWarning",
    "EvidenceExtractor",
    "Extract",
    "Found",
    "count_words",
    "training_table",
]

from .candidates import Candidates, Found, count_words
from .core import ContextSelector, ContextWarning
from .learned import training_table

__all__ = [
    "Candidates",
    "ContextSelector",
    "ContextWarning",
    "Found",
    "count_words",
    "training_table",
]

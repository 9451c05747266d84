"""How an ensemble holds its kernel: one representation a file, one interface."""

from variegate.representations.base import Representation
from variegate.representations.dense import Dense
from variegate.representations.factored import Factored

__all__ = ["Dense", "Factored", "Representation"]

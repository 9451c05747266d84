"""How an ensemble holds its kernel: one representation a file, one interface."""

from variegate.linalg.representations.base import Representation
from variegate.linalg.representations.dense import Dense
from variegate.linalg.representations.factored import Factored
from variegate.linalg.representations.graded import Graded

__all__ = ["Dense", "Factored", "Graded", "Representation"]

"""Choosing without a determinantal point process that was learned."""

from variegate.baselines.methods import METHODS
from variegate.baselines.selecting import select

__all__ = ["METHODS", "select"]

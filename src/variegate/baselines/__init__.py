"""Choosing without training data."""

from variegate.baselines.selecting import METHODS, select

__all__ = ["METHODS", "select"]

"""Choosing without a determinantal point process that was learned."""

from variegate.baselines.selecting import METHODS, select

__all__ = ["METHODS", "select"]

"""What to say of a ground set whose loss is infinite."""

from __future__ import annotations

from variegate.learning.parameters import InfeasibleError

__all__ = ["not_definite", "zero_probability"]


def zero_probability(position: int, jitter: float) -> InfeasibleError:
    """Return what to raise where a wanted subset has probability zero."""
    return InfeasibleError(
        position,
        "its subset has probability zero, because the similarity of its items "
        "is singular (more items than the similarity has rank, or an item "
        f"twice). Raise jitter (now {jitter:g}), a ridge on the "
        "similarity, or drop items from the subset",
    )


def not_definite(position: int, jitter: float) -> InfeasibleError:
    """Return what to raise where ``L + I`` cannot be factored."""
    return InfeasibleError(
        position,
        "L + I is not positive definite. The similarity is singular or not "
        "positive semidefinite, or the qualities are extreme; raise jitter "
        f"(now {jitter:g})",
    )

"""How sure a model is of what it proposes."""

from __future__ import annotations

from variegate._typing import FloatArray, IntArray

__all__ = ["expected_f"]


def expected_f(probability: FloatArray, chosen: IntArray) -> float:
    r"""Return about which F-score a model expects of a choice.

    .. math:: \frac{2 \sum_{i \in A} p_i}{|A| + \sum_i p_i}

    with ``p`` the probabilities of items to be wanted: twice the expected number of
    wanted items in the choice ``A`` over the expected sum of both sizes.  1 where
    nothing is chosen and nothing wanted.
    """
    total = len(chosen) + float(probability.sum())
    if total <= 0.0:
        return 1.0
    return 2.0 * float(probability[chosen].sum()) / total

"""The result of a decoder, and the protocol of ensembles that it chooses from."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from variegate._typing import (
    AnyArray,
    BoolArray,
    FloatArray,
    IntArray,
    RandomState,
    SubsetLike,
)

if TYPE_CHECKING:
    from variegate.linalg.representations import Representation

__all__ = ["Ensemble", "Selection", "Subsets", "check_found_enough"]

#: Items that a notebook shows.
_SHOWN = 30


class Subsets(list[IntArray]):
    """A list of subsets, which NumPy converts to an array with one entry a subset.

    scikit-learn's ``cross_val_predict`` joins predictions as arrays.
    """

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> AnyArray:
        """Return an array of objects, each the item numbers of a subset."""
        array = np.empty(len(self), dtype=object)
        for position, subset in enumerate(self):
            array[position] = subset
        return array


class Selection:
    """A chosen subset, its log-probability, and why the search ended.

    Parameters
    ----------
    indices : sorted item numbers
    log_prob : float, or a function that returns it
        The normalizer of a large ensemble costs more than a greedy search; a function
        is called at first use.
    stop_reason : str
        Why the search ended, as a sentence.
    upper_bound : float, or a function that returns it
        No feasible subset has a larger log-probability; infinite where the decoder
        gives no bound.
    """

    def __init__(
        self,
        indices: IntArray,
        log_prob: float | Callable[[], float],
        stop_reason: str,
        upper_bound: float | Callable[[], float] = np.inf,
    ) -> None:
        self.indices = indices
        self.stop_reason = stop_reason
        self._given = log_prob
        self._given_bound = upper_bound

    @classmethod
    def from_items(
        cls, ensemble: Ensemble, items: Sequence[int], stop_reason: str
    ) -> Selection:
        """Return the selection of items, in any order, from an ensemble."""
        indices = np.sort(np.array(items, dtype=np.intp))
        return cls(indices, partial(ensemble.log_prob, indices), stop_reason)

    @cached_property
    def log_prob(self) -> float:
        """``log P(indices)`` under the ensemble."""
        return float(self._given() if callable(self._given) else self._given)

    @cached_property
    def upper_bound(self) -> float:
        """No feasible subset has a larger log-probability than this."""
        bound = self._given_bound
        return float(bound() if callable(bound) else bound)

    @property
    def gap(self) -> float:
        """``upper_bound - log_prob``: the best subset is at most this much better."""
        if self.upper_bound == np.inf:
            return np.inf
        return max(self.upper_bound - self.log_prob, 0.0)

    @property
    def is_optimal(self) -> bool:
        """Whether the subset is proven to be the most probable, with a gap of zero."""
        return self.gap == 0.0

    def renumber(self, places: IntArray) -> Selection:
        """Return a copy with item ``i`` named ``places[i]``; ``places`` must ascend."""
        chosen = places[self.indices]
        return Selection(chosen, self._given, self.stop_reason, self._given_bound)

    def ending(self) -> dict[str, str | float | bool | None]:
        """Return ``stop_reason``, ``gap`` (or None) and ``is_optimal`` as a dict."""
        gap = self.gap
        return {
            "stop_reason": self.stop_reason,
            "gap": None if gap == np.inf else gap,
            "is_optimal": gap == 0.0,
        }

    def __len__(self) -> int:
        return len(self.indices)

    def __repr__(self) -> str:
        return f"<Selection: {self.indices.tolist()}, {self.stop_reason}>"

    def _repr_html_(self) -> str:
        """Return the items and the end of the search as HTML."""
        from variegate.report.notebook import format_number, hidden_rows_note, html_card

        shown = ", ".join(map(str, self.indices[:_SHOWN].tolist()))
        rest = hidden_rows_note(_SHOWN, len(self), "items")
        facts = {"items": f"{shown} {rest}", "why it ended": self.stop_reason}
        gap = self.gap  # which takes the log-probability, if there is a bound
        if "log_prob" in vars(self) or not callable(self._given):
            facts["log-probability"] = format_number(self.log_prob)
        if gap < np.inf:
            facts["gap to the best"] = f"at most {format_number(gap)}"
        return html_card(f"Selection of {len(self):,} items", facts)


def check_found_enough(count: int, k: int | None, reason: str) -> None:
    """Raise ValueError if ``count`` is below ``k``; ``reason`` ends the message."""
    if k is not None and count < k:
        raise ValueError(f"no subset of {k} items was found: {reason}")


class Ensemble(Protocol):
    """The methods that decoders call: see :class:`variegate.LEnsemble`."""

    @property
    def representation(self) -> Representation:
        """The kernel ``L`` as a matrix, a factor or rows."""

    def __len__(self) -> int: ...

    def log_prob(self, subset: SubsetLike) -> float:
        """Return ``log P(subset)``."""

    def expected_size(self) -> float:
        """Return the expected number of chosen items."""

    def marginals(self) -> FloatArray:
        """Return the probability that each item is chosen."""

    def sample(self, n: int = 1, random_state: RandomState = None) -> BoolArray:
        """Draw ``n`` subsets, as a boolean array (n, N)."""

    def sample_k(
        self, k: int, n: int = 1, random_state: RandomState = None
    ) -> BoolArray:
        """Draw ``n`` subsets of ``k`` items, as a boolean array (n, N)."""

    def decode(self, method: Any = "greedy", k: int | None = None) -> Selection:
        """Choose one subset, of ``k`` items if given, by a decoder or its name."""

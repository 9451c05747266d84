"""The seams between the parts of the studio: who teaches, and who proposes."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from variegate._typing import FloatArray, IntArray
from variegate.studio.learned import Learned
from variegate.studio.material.base import Picks

__all__ = ["Map", "Part", "Proposal", "Proposing", "Teaching", "Why"]


@dataclass(frozen=True, eq=False)
class Proposal:
    """A choice in one group.

    Attributes
    ----------
    omega : float
        That which it was made for, within what was learned.
    chosen : array of int
        Sorted items.
    probability : array of shape (N,)
        Of each item to be chosen.
    """

    omega: float
    chosen: IntArray
    probability: FloatArray


@dataclass(frozen=True)
class Part:
    """What a feature adds to the log-quality of an item, above the group's mean."""

    name: str
    value: float
    part: float


@dataclass(frozen=True)
class Why:
    """Why an item is proposed, or not.

    Attributes
    ----------
    probability : float
    quality : tuple of Part
        The largest parts first.
    like : int or None
        The chosen item that it is most like, of all others.
    similarity : float
        To that item, from 0 to 1.
    """

    probability: float
    quality: tuple[Part, ...]
    like: int | None
    similarity: float


@dataclass(frozen=True, eq=False)
class Map:
    """Where the items of a group lie: ``kind`` is "components" or "kinds".

    By components, ``x`` and ``y`` are the first two principal components of what the
    model sees, scaled to [-1, 1].  By kinds, ``x`` is the column and ``y``, from 0 to
    1, how surely an item is of that kind; ``columns`` are the names.
    """

    kind: str
    x: FloatArray
    y: FloatArray
    columns: tuple[str, ...] | None = None


class Teaching(Protocol):
    """Learns from picks elsewhere, and never makes anybody wait."""

    @property
    def learned(self) -> Learned | None:
        """What was learned last."""
        ...

    @property
    def is_learning(self) -> bool:
        """Whether something is to come for what was taught last."""
        ...

    @property
    def problem(self) -> str | None:
        """Why learning last failed, in words; None if it did not."""
        ...

    def teach(self, examples: Sequence[tuple[int, Any]]) -> None:
        """Learn from groups and their picks, in the order in which they were done.

        Returns at once.  What was taught before and is not learned yet is dropped.
        """
        ...

    def wait(self, timeout: float | None = None) -> bool:
        """Wait until nothing more is to come; return whether that is so."""
        ...

    def close(self) -> None:
        """End the process that learns."""
        ...


class Proposing(Protocol):
    """Chooses in the group at hand, quickly enough to follow a slider."""

    def use(self, learned: Learned | None, picks: Picks) -> None:
        """Propose by this from now on, or untrained; ``picks`` are what was done."""
        ...

    def omegas(self) -> tuple[float, float]:
        """Return the smallest and the largest omega."""
        ...

    def choose(self, group: int, omega: float = 1.0) -> IntArray:
        """Choose in a group; an omega beyond what was learned is the nearest to it."""
        ...

    def propose(self, group: int, omega: float = 1.0) -> Proposal:
        """Choose in a group, and say how likely every item is to be chosen."""
        ...

    def why(
        self, group: int, item: int, chosen: Collection[int], omega: float = 1.0
    ) -> Why:
        """Explain an item beside those that are chosen."""
        ...

    def outline(self, group: int) -> Map:
        """Return a map of a group."""
        ...

    def next_group(self, done: Collection[int], order: str = "unsure") -> int | None:
        """Return the group to show next: that of least sureness, or the next given."""
        ...

    def omega_for(self, name: str, value: float) -> float:
        """Return the omega at which "precision" or "recall" is expected to be so."""
        ...

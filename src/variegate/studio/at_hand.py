"""The proposal of the group at hand, which does not change under a person's eyes."""

from __future__ import annotations

import time

__all__ = ["AtHand"]


class AtHand:
    """What is proposed in the group that is shown, as it was when it was looked at.

    For :attr:`SECONDS` after a group is first shown, its proposal follows what is
    learned: most often that is the model of the group that was done just before.  Then
    it stays, but for one change: what is untrained gives way to the first that is
    learned, however late.
    """

    SECONDS = 2.0

    def __init__(self) -> None:
        self._group: int | None = None
        self._since = 0.0
        self._chosen: list[int] | None = None
        self._is_learned = False

    def seen(self, group: int, chosen: list[int], is_learned: bool) -> list[int]:
        """Return what is shown in a group where ``chosen`` is what is proposed now."""
        now = time.monotonic()
        if group != self._group:
            self._group, self._since, self._chosen = group, now, None
        if (
            self._chosen is None
            or now - self._since < self.SECONDS
            or (is_learned and not self._is_learned)
        ):
            self._chosen, self._is_learned = chosen, is_learned
        return self._chosen

    def choose_again(self) -> None:
        """Show what is proposed now: the person asked for it."""
        self._chosen = None

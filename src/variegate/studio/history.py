"""The picks of all groups, from events in the order in which they happened.

====  ==========================================================================
pick  a person took an item, or took it away: ``group``, ``item``, ``picked``;
      the first one in a group has the proposal it was made on, ``base``
base  a group in which items were picked has another proposal: ``group``, ``base``
done  a group is finished: ``group``, ``picks``, the ``proposal``, and the ``next``
go    another group is shown: ``group``
undo  the pick or the end of a group numbered ``undone`` never was; ``base``, where
      the picks of that group were a proposal
====  ==========================================================================

Picks of a group are its proposal, but for the items that a person decided on.  While a
group has neither events nor an end, its picks are the proposal that is shown.
"""

from __future__ import annotations

import time
from collections.abc import Collection
from dataclasses import dataclass, field

from variegate.studio.store import Event


@dataclass(frozen=True)
class GroupPicks:
    """The picks of one group, which was done ``n_ends`` times."""

    #: The proposal that picks started from; None before the first pick, while the
    #: newest proposal is shown.
    base: frozenset[int] | None = None
    #: Items that a person took (True) or took away (False) since.
    decided: dict[int, bool] = field(default_factory=dict)
    n_ends: int = 0
    #: Whether it is done, and the first time its picks were just the proposal.
    is_unchanged: bool = False

    @property
    def is_done(self) -> bool:
        """Whether the group is finished."""
        return self.n_ends > 0

    def apply_to(self, proposal: Collection[int]) -> frozenset[int]:
        """Return the picked items: ``base``, or else ``proposal``, with ``decided``."""
        base = frozenset(proposal) if self.base is None else self.base
        taken = {item for item, picked in self.decided.items() if picked}
        return (base | taken) - (self.decided.keys() - taken)


class History:
    """The picks of all groups; :meth:`add` takes events in the order they happened."""

    def __init__(self) -> None:
        #: The number of the group that is shown; None before the first event.
        self.current: int | None = None
        #: Events that can be undone, in order: the last is undone first.
        self._undoable: list[Event] = []
        self._of_group: dict[int, list[Event]] = {}
        self._picks: dict[int, GroupPicks] = {}

    def group_picks(self, number: int) -> GroupPicks:
        """Return the picks of a group, empty ones if it has no events."""
        return self._picks.get(number, GroupPicks())

    @property
    def last(self) -> Event | None:
        """The event that is undone next, None if there is none."""
        return self._undoable[-1] if self._undoable else None

    @property
    def done(self) -> list[int]:
        """Numbers of the finished groups, in the order of their first "done" event."""
        first = {
            next(e.seq for e in self._of_group[number] if e.kind == "done"): number
            for number, picks in self._picks.items()
            if picks.is_done
        }
        return [first[seq] for seq in sorted(first)]

    @property
    def n_unchanged(self) -> int:
        """The number of finished groups whose proposal was accepted unchanged."""
        return sum(picks.is_unchanged for picks in self._picks.values())

    def add(self, event: Event) -> None:
        """Add the next event, and update the picks of its group and the current one."""
        body = event.body
        if event.kind == "go":
            self.current = body["group"]
            return
        if event.kind == "undo":
            undone = self._undoable.pop()
            assert undone.seq == body["undone"], "undone out of order"
            number = self.current = undone.body["group"]
            self._of_group[number].remove(undone)
            if "base" in body:
                self._of_group[number].append(event)
        else:
            number = body["group"]
            self._of_group.setdefault(number, []).append(event)
            if event.kind in ("pick", "done"):
                self._undoable.append(event)
            if event.kind == "done":
                self.current = body["next"]
        self._picks[number] = _picks_after(self._of_group[number])


def _picks_after(events: list[Event]) -> GroupPicks:
    """Return the picks of a group after all of its events."""
    base: frozenset[int] | None = None
    decided: dict[int, bool] = {}
    n_ends, is_unchanged = 0, False
    for event in events:
        body = event.body
        if "base" in body:
            base = frozenset(body["base"])
        if event.kind == "pick":
            decided[body["item"]] = body["picked"]
        elif event.kind == "done":
            base, decided = frozenset(body["picks"]), {}
            if not n_ends:
                is_unchanged = base == frozenset(body["proposal"])
            n_ends += 1
    return GroupPicks(base, decided, n_ends, is_unchanged)


class ShownProposal:
    """The proposal of the group that is shown, which does not change under the eyes.

    For :attr:`SECONDS` after a group is first shown, its proposal follows the models:
    most often that of the group that was done just before.  Then it stays, but for one
    change: an untrained proposal gives way to the first learned one, however late.
    """

    SECONDS = 2.0

    def __init__(self) -> None:
        self._group: int | None = None
        self._since = 0.0
        self._chosen: list[int] | None = None
        self._is_learned = False

    def update(self, group: int, chosen: list[int], is_learned: bool) -> list[int]:
        """Return the items to show as the proposal of the group that is shown.

        ``chosen`` is the newest proposal, of a learned model if ``is_learned``; earlier
        items are returned where the proposal stays.
        """
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

    def reset(self) -> None:
        """Drop the kept items, so that ``update`` returns the newest proposal next."""
        self._chosen = None

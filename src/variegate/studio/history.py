"""The picks of all groups, from events in the order in which they happened.

Groups and items are numbers, or the keys and identities of files; the kinds of events
are those of :mod:`~variegate.studio.events`.  Here, a "done" event may also have
``is_changed``: the items of the group are not those that it was finished with.

Picks of a group are its proposal, but for the items that a person decided on.  While a
group has neither events nor an end, its picks are the proposal that is shown.
"""

from __future__ import annotations

import time
from collections.abc import Collection, Hashable, Iterable
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar

from variegate.studio.events import Event, EventError

#: Numbers, or keys and identities.
K = TypeVar("K", bound=Hashable)


@dataclass(frozen=True)
class GroupPicks(Generic[K]):
    """The picks of one group, which was done ``n_ends`` times."""

    #: The proposal that picks started from; None before the first pick, while the
    #: newest proposal is shown.
    base: frozenset[K] | None = None
    #: Items that a person took (True) or took away (False) since.
    decided: dict[K, bool] = field(default_factory=dict)
    n_ends: int = 0
    #: Whether it was done, and then its items changed, or a change of it was lost.
    is_reopened: bool = False
    #: Whether it is done, and the first time its picks were just the proposal.
    is_unchanged: bool = False

    @property
    def is_done(self) -> bool:
        """Whether the group is finished."""
        return self.n_ends > 0 and not self.is_reopened

    def apply_to(self, proposal: Collection[K]) -> frozenset[K]:
        """Return the picked items: ``base``, or else ``proposal``, with ``decided``."""
        base = frozenset(proposal) if self.base is None else self.base
        taken = {item for item, picked in self.decided.items() if picked}
        return (base | taken) - (self.decided.keys() - taken)


class History(Generic[K]):
    """The picks of all groups; :meth:`add` takes events in the order they happened."""

    def __init__(self, events: Iterable[Event] = ()) -> None:
        #: The group that is shown; None before the first event.
        self.current: K | None = None
        #: Events that can be undone, in order: the last is undone first.
        self._undoable: list[Event] = []
        self._of_group: dict[K, list[Event]] = {}
        self._picks: dict[K, GroupPicks[K]] = {}
        for event in events:
            self.add(event)

    def group_picks(self, group: K) -> GroupPicks[K]:
        """Return the picks of a group, empty ones if it has no events."""
        return self._picks.get(group, GroupPicks())

    @property
    def groups(self) -> list[K]:
        """The groups with events, in the order of their first."""
        return list(self._of_group)

    def ended_at(self, group: K) -> int:
        """Return the number of the event that finished a group; 0 if it is not."""
        ends = [e.seq for e in self._of_group.get(group, ()) if e.kind == "done"]
        return ends[-1] if self.group_picks(group).is_done else 0

    @property
    def last(self) -> Event | None:
        """The event that is undone next, None if there is none."""
        return self._undoable[-1] if self._undoable else None

    @property
    def done(self) -> list[K]:
        """The finished groups, in the order of their first "done" event."""
        first = {
            next(e.seq for e in self._of_group[number] if e.kind == "done"): number
            for number, picks in self._picks.items()
            if picks.is_done
        }
        return [first[seq] for seq in sorted(first)]

    @property
    def n_unchanged(self) -> int:
        """The number of finished groups whose proposal was accepted unchanged."""
        return sum(p.is_done and p.is_unchanged for p in self._picks.values())

    def add(self, event: Event) -> None:
        """Add the next event, and update the picks of its group and the current one.

        EventError for an undo of an event that is not there, or was undone.
        """
        body = event.body
        group = body["group"]
        if event.kind == "go":
            self.current = group
            return
        if event.kind == "undo":
            undone = self._take_undoable(event)
            self.current = group
            self._of_group[group].remove(undone)
        if event.kind != "undo" or "base" in body:
            self._of_group.setdefault(group, []).append(event)
        if event.kind in ("pick", "done"):
            self._undoable.append(event)
        if event.kind == "done":
            self.current = body["next"]
        if event.kind == "moved" and body["source"] is not None:
            source = self._of_group.setdefault(body["source"], [])
            items = body.get("left", body["picks"])
            source.append(Event(event.seq, "left", {"items": items}))
            self._picks[body["source"]] = _picks_after(source)
        self._picks[group] = _picks_after(self._of_group[group])

    def _take_undoable(self, event: Event) -> Event:
        """Remove and return the event that ``event`` takes back, or raise EventError.

        It is the last one, unless that was of a group that is not in DATA now.
        """
        number = event.body["undone"]
        for undone in reversed(self._undoable):
            if undone.seq == number and undone.body["group"] == event.body["group"]:
                self._undoable.remove(undone)
                return undone
        raise EventError(
            f"event {event.seq} takes back event {number} of "
            f"{event.body['group']!r}, which cannot be undone"
        )


def _picks_after(events: list[Event]) -> GroupPicks[Any]:
    """Return the picks of a group after all of its events."""
    base: frozenset[Any] | None = None
    decided: dict[Any, bool] = {}
    n_ends, is_unchanged, is_reopened = 0, False, False
    for event in events:
        body = event.body
        if "base" in body:
            base = frozenset(body["base"])
        if event.kind == "pick" and body["item"] is not None:
            decided[body["item"]] = body["picked"]
        elif event.kind == "moved":
            base = frozenset() if base is None else base
            decided |= dict.fromkeys(body["picks"], True)
        elif event.kind == "left":
            decided |= dict.fromkeys(body["items"], False)
        elif event.kind == "reopen":
            is_reopened = True
            base = frozenset() if base is None else base
        elif event.kind == "done":
            base, decided = frozenset(body["picks"]), {}
            if not n_ends:
                is_unchanged = base == frozenset(body["proposal"])
            n_ends += 1
            is_reopened = body.get("is_changed", False)
        if is_reopened and n_ends and event.kind in ("done", "reopen"):
            assert base is not None
            # Another proposal must not replace what a person has finished with.
            decided = dict.fromkeys(base, True) | decided
            base = frozenset()
    return GroupPicks(base, decided, n_ends, is_reopened, is_unchanged)


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

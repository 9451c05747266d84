"""A session: the current group, its picks and proposal, and the last learning result.

Every change is in the store before it is true here, and here before listeners are
notified.  Requests never wait for learning: the picks that are done go to a teacher,
and proposals are made by its results as soon as they are there.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from threading import RLock
from typing import Any, Self

import numpy as np

from variegate._typing import IntArray
from variegate.material.base import Material
from variegate.studio.changes import Changes
from variegate.studio.events import ORDERS
from variegate.studio.group_learner import LearningResult
from variegate.studio.history import GroupPicks, History, ShownProposal
from variegate.studio.matching import DataChanges, Matching
from variegate.studio.proposals import Proposer
from variegate.studio.store import Store, StoreError
from variegate.studio.teacher import Teacher

#: More changes than one run of the studio makes.  Numbers of changes start at a
#: multiple, so that a page that was open before finds a higher one.
_CHANGES_OF_A_RUN = 10**9


class SessionError(ValueError):
    """A request that cannot be fulfilled, for a reason that the message says."""


class NoSuchError(SessionError):
    """A group or an item that does not exist."""


class ChangedError(SessionError):
    """The picks are not those that a request expects."""


@dataclass(frozen=True)
class Preferences:
    """The slider's omega or a target for it, and the order of the groups."""

    #: The cost of a missed item against one too many; unused with a target.
    omega: float = 1.0
    #: ``{"recall": 0.9}`` or ``{"precision": 0.9}``: the omega at which that is
    #: expected is taken instead.
    target: dict[str, float] | None = None
    order: str = ORDERS[0]

    def with_changes(self, changes: Mapping[str, Any]) -> Self:
        """Return a copy with new values of fields by name; SessionError for bad ones.

        A new omega without a target sets the target to None.
        """
        if not changes or changes.keys() - asdict(self).keys():
            raise SessionError("give omega, target or order")
        values = dict(changes)
        if "omega" in changes:
            values = {"target": None, **values, "omega": as_omega(changes["omega"])}
        if values.get("target") is not None:
            values["target"] = _check_target(values["target"])
        if values.get("order", self.order) not in ORDERS:
            raise SessionError(f"order is one of {', '.join(ORDERS)}")
        return replace(self, **values)


def as_omega(value: Any) -> float:
    """Return a value of JSON as an omega; SessionError unless a positive number."""
    if not _is_number(value) or not value > 0.0:
        raise SessionError("omega is a positive number")
    return float(value)


def _check_target(value: Any) -> dict[str, float]:
    """Return ``{"precision": share}`` or "recall", share in (0, 1]; or SessionError."""
    if isinstance(value, dict) and len(value) == 1:
        ((name, share),) = value.items()
        is_known = name in ("precision", "recall")
        if is_known and _is_number(share) and 0.0 < share <= 1.0:
            return {name: float(share)}
    raise SessionError('a target is {"recall": 0.9}, {"precision": 0.9} or null')


def _is_number(value: Any) -> bool:
    """Return whether a value is a finite number, not a boolean."""
    # An integer may be too large for a float.
    return type(value) in (int, float) and abs(value) < 1e300


class Session:
    """The picks of one store, over one material; may be used from several threads.

    :meth:`start` resumes from the store, :meth:`close` ends the teacher and the store
    as well.  ``changes`` notifies of "picks", also where another group is shown,
    "done", "learning", "learned" and "settings".
    """

    def __init__(
        self, material: Material, store: Store, teacher: Teacher, proposer: Proposer
    ) -> None:
        self.material, self.store = material, store
        self.teacher, self.proposer = teacher, proposer
        self.changes = Changes()
        self._lock = RLock()
        self._history: History[int] = History()
        self._matching = Matching(material)
        self._shown_proposal = ShownProposal()
        self._preferences = Preferences()
        #: The last result.
        self.learned: LearningResult | None = None
        self._was_learning = False
        teacher.listener = self._take_result

    def start(self, **preferences: Any) -> DataChanges:
        """Resume from the store, begin to learn, and go to a group if none is current.

        ``preferences``, new values of fields of ``Preferences``, replace stored ones.
        Return the changes of DATA since the picks; StoreError for other DATA.
        """
        known, events = self.store.settings(), self.store.events()
        self._matching = Matching(self.material, events)
        data_changes = self._matching.changes()
        if data_changes.is_other_data:
            raise StoreError(
                f"{self.store.path} holds picks from other data ({known['data']}), of "
                "which nothing is in DATA now: name another file with --store"
            )
        self.changes.seq = known["runs"] * _CHANGES_OF_A_RUN
        kept = {name: known[name] for name in asdict(Preferences()) if name in known}
        if kept:
            self._preferences = self._preferences.with_changes(kept)
        if preferences:
            self._preferences = self._preferences.with_changes(preferences)
            self.store.set(**asdict(self._preferences))
        for event in events:
            if (numbered := self._matching.numbered(event)) is not None:
                self._history.add(numbered)
        with self._lock:
            for body in data_changes.moved:
                self._record("moved", body)
            self._teach()
            if self._history.current is None:
                self._record("go", {"group": self._next_group(default=0)})
        return data_changes

    def close(self) -> None:
        """End learning, and close the store."""
        self.teacher.close()
        self.store.close()

    # State ---------------------------------------------------------------------------

    def state(self) -> dict[str, Any]:
        """Return the state that the page shows, as values for JSON."""
        self.choice(self.current)
        with self._lock, self._locked_group(self.current) as (mine, proposal):
            history = self._history
            n_done, n_groups = len(history.done), len(self.material.names)
            all_done = "All groups are done." if n_done == n_groups else None
            message = self.store.problem or self.teacher.problem or all_done
            return {
                "seq": self.changes.seq,
                "kind": self.material.kind,
                "nouns": list(self.material.nouns),
                "n_groups": n_groups,
                "n_done": n_done,
                "group": self._summary(self.current),
                "picks": sorted(mine.apply_to(proposal)),
                "proposal": proposal,
                **asdict(self._preferences),
                "omega": self.omega,
                "omegas": list(self.proposer.omegas()),
                "accepted": {"unchanged": history.n_unchanged, "of": n_done},
                "learning": self.teacher.is_learning,
                "learned_from": 0 if self.learned is None else self.learned.n_groups,
                "can_undo": history.last is not None,
                "message": message,
            }

    @property
    def current(self) -> int:
        """The number of the group that is shown."""
        assert self._history.current is not None, "the session was not started"
        return self._history.current

    @property
    def omega(self) -> float:
        """The omega of proposals, that of the target if there is one."""
        return self._omega_of(self._preferences)

    def done_picks(self) -> dict[int, IntArray]:
        """Return sorted picked items by group, in the order groups were done.

        Items that were picked before they were given are left out.
        """
        with self._lock:
            picks = {n: self._history.group_picks(n) for n in self._history.done}
        given = self.material.given
        return {
            n: np.array(sorted(p.apply_to(()) - {*given(n)}), np.intp)
            for n, p in picks.items()
        }

    def groups(self, start: int, count: int) -> list[dict[str, Any]]:
        """Return number, name, n_items and done of ``count`` groups from ``start``."""
        end = min(start + count, len(self.material.names))
        with self._lock:
            return [self._summary(number) for number in range(start, end)]

    def choice(self, group: int, omega: float | None = None) -> list[int]:
        """Return the sorted items that are proposed in a group now.

        ``omega`` is that of the session by default.  It never waits for learning.
        """
        chosen = self.proposer.choose(group, self.omega if omega is None else omega)
        return [int(item) for item in chosen]

    def picks(self, group: int) -> frozenset[int]:
        """Return the items that are picked in a group now."""
        with self._locked_group(group) as (mine, proposal):
            return mine.apply_to(proposal)

    def check(self, group: int, item: int | None = None) -> None:
        """Raise NoSuchError unless the group exists, and the item in it if given."""
        sizes, noun = self.material.sizes, self.material.nouns[0]
        if not 0 <= group < len(sizes):
            problem = f"there is no group {group}: there are {len(sizes)}, from 0"
            raise NoSuchError(problem)
        if item is not None and not 0 <= item < sizes[group]:
            raise NoSuchError(
                f"there is no {noun} {item} in group {group}, which has "
                f"{sizes[group]}, from 0"
            )

    # Actions -------------------------------------------------------------------------

    def pick(self, group: int, item: int, picked: bool) -> None:
        """Record an item as taken, or left (``picked`` False), if that is a change."""
        self.check(group, item)
        if picked and item in self.material.given(group):
            raise SessionError(
                f"{self.material.nouns[0]} {item} of group {group} is there already: "
                "pick others"
            )
        with self._locked_group(group) as (mine, proposal):
            if (item in mine.apply_to(proposal)) == picked:
                return
            body: dict[str, Any] = {"group": group, "item": item, "picked": picked}
            if mine.base is None:
                body["base"] = proposal
            self._record("pick", body)
            if mine.is_done:
                self._teach()
            self.changes.notify("picks")

    def done(self, group: int, picks: Collection[int] | None = None) -> None:
        """Record a group as done with its picks, and show the next if it is current.

        ``picks`` are the items picked on the page, None to skip this check: where the
        picks here differ, :class:`~variegate.studio.session.ChangedError` is raised.  A
        group that is done and has no new decisions is not recorded again.
        """
        with self._locked_group(group) as (mine, proposal):
            now = mine.apply_to(proposal)
            if picks is not None and frozenset(picks) != now:
                raise ChangedError("the picks have changed meanwhile: look again")
            following = self.current
            if group == following:
                following = self._next_group(group, default=group)
            if not mine.is_done or mine.decided:
                ended = {"picks": sorted(now), "proposal": proposal}
                self._record("done", {"group": group, **ended, "next": following})
                self._teach()
            elif following != self.current:
                self._record("go", {"group": following})
            else:
                return
            self.changes.notify("done")

    def undo(self) -> None:
        """Take back the last pick or end of a group, if any, and show that group."""
        with self._lock:
            last = self._history.last
            if last is None:
                return
            body = {"group": last.body["group"], "undone": last.seq}
            before = self._history.group_picks(last.body["group"])
            is_end = last.kind == "done"
            if is_end and before.n_ends == 1:
                # The proposal that was seen is seen again, not a newer one.
                body["base"] = last.body["proposal"]
            self._record("undo", body)
            if before.is_done:
                self._teach()
            self.changes.notify("done" if is_end else "picks")

    def go(self, group: int) -> None:
        """Make ``group`` the current one, which the page shows."""
        self.check(group)
        with self._lock:
            if group != self.current:
                self._record("go", {"group": group})
                self.changes.notify("picks")

    def set(self, changes: Mapping[str, Any]) -> None:
        """Change and store omega, target or order, as in ``Preferences.with_changes``.

        A new omega replaces the proposal that picks of the current group started from,
        unless the group is done; items that a person decided on stay as they are.
        """
        new = self._preferences.with_changes(changes)
        omega = self._omega_of(new)
        self.choice(self.current, omega)
        with self._lock:
            mine = self._history.group_picks(self.current)
            is_other = omega != self.omega
            if mine.base is not None and not mine.is_done and is_other:
                body = {"group": self.current, "base": self.choice(self.current, omega)}
                self._record("base", body, **asdict(new))
            else:
                self.store.set(**asdict(new))
            if is_other:
                self._shown_proposal.reset()
            self._preferences = new
            self.changes.notify("settings")

    # Details -------------------------------------------------------------------------

    @contextmanager
    def _locked_group(self, group: int) -> Iterator[tuple[GroupPicks[int], list[int]]]:
        """Hold the lock in a with block; yield a group's picks and base proposal."""
        self.check(group)
        self.choice(group)  # without the lock: it may take a while in a large group
        with self._lock:
            yield self._history.group_picks(group), self._base_proposal(group)

    def _record(self, kind: str, body: Mapping[str, Any], **settings: Any) -> None:
        """Write an event, with settings, to the store, then add it to the history."""
        stored = self._matching.stored(kind, body)
        event = self._matching.numbered(self.store.record(kind, stored, settings))
        assert event is not None
        self._history.add(event)

    def _next_group(self, *also_done: int, default: int) -> int:
        """Return the next group not done and not ``also_done``; ``default`` if none."""
        done = {*self._history.done, *also_done}
        found = self.proposer.next_group(done, self._preferences.order)
        return default if found is None else found

    def _summary(self, number: int) -> dict[str, Any]:
        """Return ``number``, ``name``, ``n_items`` and whether ``done`` of a group."""
        return {
            "number": number,
            "name": self.material.names[number],
            "n_items": self.material.sizes[number],
            "done": self._history.group_picks(number).is_done,
        }

    def _omega_of(self, preferences: Preferences) -> float:
        """Return the omega of preferences, or the one at which their target is met."""
        if preferences.target is None:
            return preferences.omega
        ((name, share),) = preferences.target.items()
        return self.proposer.omega_for(name, share)

    def _base_proposal(self, group: int) -> list[int]:
        """Return the sorted proposed items that picks of a group are changes to.

        They are stored with its first pick.  Before, and in a group that is done, they
        are the present choice; for the current group, that choice is recorded as shown,
        or an earlier one that is shown stays.  Call it with the lock held.
        """
        mine = self._history.group_picks(group)
        if mine.base is not None and not mine.is_done:
            return sorted(mine.base)
        chosen = self.choice(group)
        if group != self.current or mine.is_done:
            return chosen
        return self._shown_proposal.update(group, chosen, self.learned is not None)

    def _teach(self) -> None:
        """Learn from all done groups; drop the result without any; needs the lock."""
        picks = self.done_picks()
        self.learned = self.learned if picks else None
        self.proposer = self.proposer.using(self.learned, picks)
        self.teacher.teach(picks)
        self._was_learning = self.teacher.is_learning

    def _take_result(self) -> None:
        """Propose by the teacher's new result, if any, and notify of it.

        Also notify where learning began or ended.  Called by the teacher's threads.
        """
        with self._lock:
            learned, is_learning = self.teacher.learned, self.teacher.is_learning
            picks = self.done_picks()
            if picks and learned is not None and learned is not self.learned:
                self.learned = learned
                self.proposer = self.proposer.using(learned, picks)
                self._was_learning = is_learning
                self.changes.notify("learned")
            elif is_learning != self._was_learning:
                self._was_learning = is_learning
                self.changes.notify("learning")

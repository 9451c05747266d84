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
from variegate.studio.group_learner import LearningResult
from variegate.studio.history import GroupPicks, History, ShownProposal
from variegate.studio.proposals import Proposer
from variegate.studio.store import Store
from variegate.studio.teacher import Teacher

#: A number no run reaches: a page that comes back to a later run finds a higher one.
_CHANGES_OF_A_RUN = 10**9

#: Orders of groups: that of least confidence next, or as in DATA.
ORDERS = ("unsure", "given")


class SessionError(ValueError):
    """A request that cannot be fulfilled, for a reason that the message says."""


class NoSuchError(SessionError):
    """A group or an item that does not exist."""


class ChangedError(SessionError):
    """The picks are not those that a request expects."""


@dataclass(frozen=True)
class Preferences:
    """The knob or a target for it, and the order of the groups."""

    #: The cost of a missed item against one too many.
    omega: float = 1.0
    #: ``{"recall": 0.9}`` or ``{"precision": 0.9}``: the omega at which that is
    #: expected is taken instead.
    target: dict[str, float] | None = None
    order: str = ORDERS[0]

    def changed(self, changes: Mapping[str, Any]) -> Self:
        """Return checked preferences with some changed; omega ends a target."""
        if not changes or changes.keys() - asdict(self).keys():
            raise SessionError("give omega, target or order")
        values = dict(changes)
        if "omega" in changes:
            values = {"target": None, **values, "omega": as_omega(changes["omega"])}
        if values.get("target") is not None:
            values["target"] = _target(values["target"])
        if values.get("order", self.order) not in ORDERS:
            raise SessionError(f"order is one of {', '.join(ORDERS)}")
        return replace(self, **values)


def as_omega(value: Any) -> float:
    """Return a value that can be an omega, or refuse it."""
    if not _is_number(value) or not value > 0.0:
        raise SessionError("omega is a positive number")
    return float(value)


def _target(value: Any) -> dict[str, float]:
    """Return a target that can be expected, or refuse it."""
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
        self._history = History()
        self._shown_proposal = ShownProposal()
        self._preferences = Preferences()
        #: The last result.
        self.learned: LearningResult | None = None
        self._was_learning = False
        teacher.listener = self._take_result

    def start(self, **changes: Any) -> None:
        """Resume from the store, with some preferences changed."""
        known = self.store.settings()
        self.changes.seq = known["runs"] * _CHANGES_OF_A_RUN
        kept = {name: known[name] for name in asdict(Preferences()) if name in known}
        if kept or changes:
            self._preferences = self._preferences.changed({**kept, **changes})
        if changes:
            self.store.set(**asdict(self._preferences))
        for event in self.store.events():
            self._history.add(event)
        with self._lock:
            self._teach()
            if self._history.current is None:
                self._record("go", {"group": self._next(default=0)})

    def close(self) -> None:
        """End learning, and close the store."""
        self.teacher.close()
        self.store.close()

    # State ---------------------------------------------------------------------------

    def state(self) -> dict[str, Any]:
        """Return the state that the page shows, as plain values."""
        self.choice(self.current)
        with self._lock, self._looking_at(self.current) as (mine, proposal):
            history = self._history
            n_done, n_groups = len(history.done), len(self.material.names)
            all_done = "All groups are done." if n_done == n_groups else None
            return {
                "seq": self.changes.seq,
                "kind": self.material.kind,
                "nouns": list(self.material.nouns),
                "n_groups": n_groups,
                "n_done": n_done,
                "group": self._summary(self.current),
                "picks": sorted(mine.on(proposal)),
                "proposal": proposal,
                **asdict(self._preferences),
                "omega": self.omega,
                "omegas": list(self.proposer.omegas()),
                "accepted": {"unchanged": history.n_unchanged, "of": n_done},
                "learning": self.teacher.is_learning,
                "learned_from": 0 if self.learned is None else self.learned.n_groups,
                "can_undo": history.last is not None,
                "message": self.teacher.problem or all_done,
            }

    @property
    def current(self) -> int:
        """The current group."""
        assert self._history.current is not None, "the session was not started"
        return self._history.current

    @property
    def omega(self) -> float:
        """The omega of proposals, that of the target if there is one."""
        return self._omega_of(self._preferences)

    def done_picks(self) -> dict[int, IntArray]:
        """Return the picks of the groups that are done, in the order they were."""
        with self._lock:
            return {
                number: np.array(sorted(self._history.group(number).on(())), np.intp)
                for number in self._history.done
            }

    def groups(self, start: int, count: int) -> list[dict[str, Any]]:
        """Return the names and sizes of some groups, and whether they are done."""
        end = min(start + count, len(self.material.names))
        with self._lock:
            return [self._summary(number) for number in range(start, end)]

    def choice(self, group: int, omega: float | None = None) -> list[int]:
        """Return the newest proposal in a group, without waiting for learning."""
        chosen = self.proposer.choose(group, self.omega if omega is None else omega)
        return [int(item) for item in chosen]

    def picks(self, group: int) -> frozenset[int]:
        """Return the picks of a group as they are now."""
        with self._looking_at(group) as (mine, proposal):
            return mine.on(proposal)

    def check(self, group: int, item: int | None = None) -> None:
        """Refuse the numbers of a group and an item that are not there."""
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
        """Take an item, or leave it (``picked`` False), where that is a change."""
        self.check(group, item)
        with self._looking_at(group) as (mine, proposal):
            if (item in mine.on(proposal)) == picked:
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

        ``picks`` are the items on the page of a person, unchecked if None: where picks
        differ now, :class:`~variegate.studio.session.ChangedError` is raised.  A group
        that is done and has no new decisions is not recorded again.
        """
        with self._looking_at(group) as (mine, proposal):
            now = mine.on(proposal)
            if picks is not None and frozenset(picks) != now:
                raise ChangedError("the picks have changed meanwhile: look again")
            following = self.current
            if group == following:
                following = self._next(group, default=group)
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
        """Take back the last pick or end of a group, and show that group."""
        with self._lock:
            last = self._history.last
            if last is None:
                return
            body: dict[str, Any] = {"undone": last.seq}
            before = self._history.group(last.body["group"])
            is_end = last.kind == "done"
            if is_end and before.n_ends == 1:
                # The proposal that was seen is seen again, not a newer one.
                body["base"] = last.body["proposal"]
            self._record("undo", body)
            if before.is_done:
                self._teach()
            self.changes.notify("done" if is_end else "picks")

    def go(self, group: int) -> None:
        """Show another group."""
        self.check(group)
        with self._lock:
            if group != self.current:
                self._record("go", {"group": group})
                self.changes.notify("picks")

    def set(self, changes: Mapping[str, Any]) -> None:
        """Change omega, target or order; a new omega keeps the items decided on."""
        new = self._preferences.changed(changes)
        omega = self._omega_of(new)
        self.choice(self.current, omega)
        with self._lock:
            mine = self._history.group(self.current)
            is_other = omega != self.omega
            if mine.base is not None and not mine.is_done and is_other:
                base = self.choice(self.current, omega)
                body = {"group": self.current, "base": base}
                self._record("base", body, **asdict(new))
            else:
                self.store.set(**asdict(new))
            if is_other:
                self._shown_proposal.reset()
            self._preferences = new
            self.changes.notify("settings")

    # Details -------------------------------------------------------------------------

    @contextmanager
    def _looking_at(self, group: int) -> Iterator[tuple[GroupPicks, list[int]]]:
        """Yield the picks and the proposal of a group, holding the lock."""
        self.check(group)
        self.choice(group)  # without the lock: it may take a while in a large group
        with self._lock:
            yield self._history.group(group), self._shown(group)

    def _record(self, kind: str, body: Mapping[str, Any], **settings: Any) -> None:
        """Keep an event with settings in the store, then in the history."""
        self._history.add(self.store.record(kind, body, settings))

    def _next(self, *also_done: int, default: int) -> int:
        """Return the next group, or ``default`` when all are done."""
        done = {*self._history.done, *also_done}
        found = self.proposer.next_group(done, self._preferences.order)
        return default if found is None else found

    def _summary(self, number: int) -> dict[str, Any]:
        """Return the number, name, size and state of a group."""
        return {
            "number": number,
            "name": self.material.names[number],
            "n_items": self.material.sizes[number],
            "done": self._history.group(number).is_done,
        }

    def _omega_of(self, preferences: Preferences) -> float:
        """Return the omega of preferences, or the one that meets their target."""
        if preferences.target is None:
            return preferences.omega
        ((name, share),) = preferences.target.items()
        return self.proposer.omega_for(name, share)

    def _shown(self, group: int) -> list[int]:
        """Return the proposal that picks stand on, or will.  Called with the lock."""
        mine = self._history.group(group)
        if mine.base is not None and not mine.is_done:
            return sorted(mine.base)
        chosen = self.choice(group)
        if group != self.current or mine.is_done:
            return chosen
        return self._shown_proposal.update(group, chosen, self.learned is not None)

    def _teach(self) -> None:
        """Propose and teach by the picks that are done now."""
        picks = self.done_picks()
        self.learned = self.learned if picks else None
        self.proposer = self.proposer.using(self.learned, picks)
        self.teacher.teach(picks)
        self._was_learning = self.teacher.is_learning

    def _take_result(self) -> None:
        """Propose by a result of the teacher, and notify of it."""
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

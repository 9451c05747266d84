"""Killed at random moments, the studio has lost nothing that it acknowledged."""

import http.client
import os
import random
import signal
import threading
import time
from contextlib import closing, suppress

import pytest
from studio_fakes import FakeMaterial
from studio_process import N_GROUPS, N_ITEMS

from variegate.studio.history import History
from variegate.studio.matching import Matching
from variegate.studio.store import Store

pytestmark = [
    pytest.mark.faults,
    pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork"),
]


class Page(threading.Thread):
    """Picks in groups of its own, and knows what was acknowledged.

    ``picks`` are the picks of its groups as the last answer was to have them,
    ``asked`` is the pick on its way, if one is.
    """

    def __init__(self, server, groups, picks, seed):
        super().__init__()
        self.server, self.groups = server, groups
        self.picks = {group: set(picks[group]) for group in groups}
        self.asked = None
        self.n_acknowledged = 0
        self.generator = random.Random(seed)

    def run(self):
        with (
            suppress(OSError, http.client.HTTPException),  # it was killed
            closing(self.server.connect()) as connection,
        ):
            while True:
                self.pick(connection)

    def pick(self, connection):
        group = self.generator.choice(self.groups)
        item = self.generator.randrange(N_ITEMS)
        picked = item not in self.picks[group]
        self.asked = group, item, picked
        body = {"group": group, "item": item, "picked": picked}
        answer = self.server.request("POST", "/api/pick", body, connection=connection)
        assert answer.status == 200, answer.content
        self.acknowledge()

    def acknowledge(self):
        group, item, picked = self.asked
        (self.picks[group].add if picked else self.picks[group].discard)(item)
        self.asked = None
        self.n_acknowledged += 1

    def may_be(self, group, picks):
        """Whether picks are what was acknowledged, perhaps with that on its way."""
        if picks == self.picks[group]:
            return True
        return (
            self.asked is not None
            and self.asked[0] == group
            and (picks == self.picks[group] ^ {self.asked[1]})
        )


def kept_in(path):
    """Open a store that was left by a kill; return picks, and the number of events."""
    store = Store(path, "data.csv")
    events = store.events()
    matching = Matching(FakeMaterial(N_GROUPS, N_ITEMS), events)
    history = History(map(matching.numbered, events))
    assert [event.seq for event in events] == list(range(1, len(events) + 1))
    store.close()
    picks = {
        group: history.group_picks(group).apply_to((0, 1)) for group in range(N_GROUPS)
    }
    return picks, len(events)


def check_kills(start, path, rounds):
    """Kill a server again and again while two pages pick in one store."""
    picks = {group: {0, 1} for group in range(N_GROUPS)}
    n_acknowledged = 0
    for seed in range(rounds):
        server = start(path)
        server.enter()
        for group in range(N_GROUPS):
            server.request("POST", "/api/go", {"group": group})
            assert set(server.state()["picks"]) == picks[group], seed
        pages = [
            Page(server, [0, 1, 2], picks, 2 * seed),
            Page(server, [3, 4, 5], picks, 2 * seed + 1),
        ]
        for page in pages:
            page.start()
        time.sleep(random.Random(seed).uniform(0.0, 0.3))
        server.kill()
        for page in pages:
            page.join(timeout=30)
            assert not page.is_alive()
        picks, n_events = kept_in(path)
        for page in pages:
            n_acknowledged += page.n_acknowledged
            for group in page.groups:
                assert page.may_be(group, picks[group]), (seed, group)
        assert n_events >= n_acknowledged
    return n_acknowledged


def test_a_few_kills_lose_nothing(start, tmp_path):
    assert check_kills(start, tmp_path / "picks.sqlite", 4) > 4


@pytest.mark.slow
def test_two_hundred_kills_lose_nothing(start, tmp_path):
    n_acknowledged = check_kills(start, tmp_path / "picks.sqlite", 200)
    print(f"{n_acknowledged} picks acknowledged in 200 rounds, none lost")
    assert n_acknowledged > 1000


@pytest.mark.slow
def test_kills_while_a_store_is_made(start, tmp_path):
    for seed in range(50):
        path = tmp_path / f"{seed}.sqlite"
        start.process.stdin.write(f"{path}\n")
        start.process.stdin.flush()
        pid = None
        deadline = time.monotonic() + random.Random(seed).uniform(0.0, 0.05)
        while pid is None or time.monotonic() < deadline:
            pid = child_of(start.process.pid)
        os.kill(pid, signal.SIGKILL)
        while child_of(start.process.pid) is not None:
            time.sleep(0.01)
        kept_in(path)


def child_of(pid):
    with open(f"/proc/{pid}/task/{pid}/children") as file:
        children = file.read().split()
    return int(children[-1]) if children else None


def test_the_studio_ends_when_it_is_interrupted(start, tmp_path):
    for number in (signal.SIGINT, signal.SIGTERM):
        server = start(tmp_path / "picks.sqlite")
        server.enter()
        # A page that listens must not keep it.
        stream = server.connect()
        stream.request("GET", "/api/events", headers={"cookie": server.cookie})
        answer = stream.getresponse()
        assert answer.readline() == b"retry: 1000\n"
        server.request("POST", "/api/pick", {"group": 0, "item": 7, "picked": True})
        began = time.monotonic()
        server.signal(number)
        assert start.process.stdout.readline() == "ended\n"
        assert time.monotonic() - began < 10.0
        answer.close()
        stream.close()
    picks, _ = kept_in(tmp_path / "picks.sqlite")
    assert picks[0] == {0, 1, 7}

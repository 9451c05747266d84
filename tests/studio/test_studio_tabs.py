"""Two tabs that pick at once, and each follows what the other does."""

import http.client
import json
import os
import random
import threading
import time
from contextlib import closing, suppress

import pytest
from studio_process import N_GROUPS, N_ITEMS

pytestmark = [
    pytest.mark.faults,
    pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork"),
]


class Tab:
    """Knows the state as a page does: from answers, and when it is told of changes."""

    def __init__(self, server, seed):
        self.server = server
        self.generator = random.Random(seed)
        self.lock = threading.Lock()
        self.seen = server.state()
        self.n_done = 0
        self.stream = server.connect(timeout=60)
        self.stream.request("GET", "/api/events", headers={"cookie": server.cookie})
        self.events = self.stream.getresponse()
        self.follower = threading.Thread(target=self.follow, daemon=True)
        self.follower.start()

    def take(self, state):
        """Take a state, unless it is older than what is known."""
        with self.lock:
            if state["seq"] >= self.seen["seq"]:
                self.seen = state

    def follow(self):
        with suppress(OSError, http.client.HTTPException, AttributeError):
            while line := self.events.readline():
                if line.startswith(b"data: "):
                    change = json.loads(line.removeprefix(b"data: "))
                    if change["seq"] > self.seen["seq"]:
                        self.take(self.server.state())

    def work(self, seconds):
        """Pick, finish groups, go elsewhere and undo, as fast as it goes."""
        end = time.monotonic() + seconds
        with closing(self.server.connect()) as connection:
            while time.monotonic() < end:
                path, body = self.something()
                answer = self.server.request("POST", path, body, connection=connection)
                # Another tab may have changed what this one has seen.
                assert answer.status in (200, 409), answer.content
                if answer.status == 200:
                    self.take(json.loads(answer.content))
                    self.n_done += 1

    def something(self):
        seen, draw = self.seen, self.generator.random()
        group = seen["group"]["number"]
        if draw < 0.8:
            item = self.generator.randrange(N_ITEMS)
            picked = item not in seen["picks"]
            return "/api/pick", {"group": group, "item": item, "picked": picked}
        if draw < 0.87:
            return "/api/done", {"group": group, "picks": seen["picks"]}
        if draw < 0.93:
            return "/api/undo", {}
        if draw < 0.97:
            return "/api/go", {"group": self.generator.randrange(N_GROUPS)}
        return "/api/settings", {"omega": self.generator.choice([0.5, 1.0, 2.0])}

    def close(self):
        self.events.close()
        self.stream.close()


def check_tabs(server, seconds):
    """Let two tabs work; both know the same in the end, without being reloaded."""
    server.enter()
    tabs = [Tab(server, seed) for seed in (0, 1)]
    threads = [threading.Thread(target=tab.work, args=(seconds,)) for tab in tabs]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    deadline = time.monotonic() + 20
    while not tabs[0].seen == tabs[1].seen == server.state():
        assert time.monotonic() < deadline, "the tabs do not see the same"
        time.sleep(0.05)
    for tab in tabs:
        tab.close()
    assert all(tab.n_done for tab in tabs)
    return sum(tab.n_done for tab in tabs)


def test_two_tabs_see_the_same(start, tmp_path):
    server = start(tmp_path / "picks.sqlite")
    assert check_tabs(server, 2.0) > 10
    server.kill()


@pytest.mark.slow
def test_two_tabs_for_a_minute_see_the_same(start, tmp_path):
    server = start(tmp_path / "picks.sqlite")
    n_done = check_tabs(server, 60.0)
    print(f"{n_done} changes by two tabs in a minute")
    server.kill()

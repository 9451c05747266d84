"""A disk that is full while somebody picks, and has room again later."""

import json
import os

import pytest
from test_studio_kills import kept_in

resource = pytest.importorskip(
    "resource", reason="needs limits of a process, to fill a disk up"
)

pytestmark = [
    pytest.mark.faults,
    pytest.mark.skipif(
        not (hasattr(resource, "prlimit") and hasattr(os, "fork")),
        reason="needs prlimit and fork",
    ),
]


def toggle(server, picks, item):
    body = {"group": 0, "item": item, "picked": item not in picks}
    answer = server.request("POST", "/api/pick", body)
    return answer.status, json.loads(answer.content)


def test_the_loop_goes_on_when_there_is_room_again(start, tmp_path):
    path = tmp_path / "picks.sqlite"
    server = start(path)
    server.enter()
    picks = set(server.state()["picks"])
    # Files of that process may have no byte more than the log has now.
    unlimited = resource.prlimit(server.pid, resource.RLIMIT_FSIZE)
    size = os.path.getsize(f"{path}-wal")
    resource.prlimit(server.pid, resource.RLIMIT_FSIZE, (size, unlimited[1]))
    refused = 0
    for item in range(40):
        status, answer = toggle(server, picks, item)
        if status == 200:
            picks ^= {item}
        else:
            assert status == 507, answer
            assert "this was not kept" in answer["error"]
            refused += 1
        assert set(server.state()["picks"]) == picks
    assert refused
    assert server.request("POST", "/api/done", {"group": 0}).status == 507
    assert server.request("POST", "/api/undo", {}).status in (200, 507)
    before = server.state()
    resource.prlimit(server.pid, resource.RLIMIT_FSIZE, unlimited)
    picks = set(before["picks"])
    for item in (41, 42):
        assert toggle(server, picks, item)[0] == 200
        picks ^= {item}
    assert server.request("POST", "/api/done", {"group": 0}).status == 200
    server.kill()
    kept, _ = kept_in(path)
    assert kept[0] == picks

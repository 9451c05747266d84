"""What strangers try: all of it is refused, and the server lives."""

import json
import os
import socket
import time
from contextlib import closing, suppress

import pytest
from studio_fakes import TOKEN, open_client
from studio_process import Server

from variegate.studio.security import Access
from variegate.studio.serving import Connection

pytestmark = [
    pytest.mark.faults,
    pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork"),
]


@pytest.fixture(scope="module")
def running(start, tmp_path_factory):
    server = start(tmp_path_factory.mktemp("store") / "picks.sqlite")
    server.enter()
    return server


@pytest.fixture
def server(running):
    """A server that must have the same state, and answer, after each attack."""
    before = running.state()
    yield running
    assert running.state() == before


@pytest.fixture
def stranger(server):
    """The same server for somebody without a cookie."""
    return Server(server.pid, server.address)


PICK = {"group": 0, "item": 9, "picked": True}


# Without the token -------------------------------------------------------------------


@pytest.mark.parametrize(
    "path",
    [
        *("/", "/api/state", "/api/groups/0", "/api/events", "/static/studio.js"),
        *("/image/0/0", "/export/picks.csv", "/nothing"),
    ],
)
def test_nothing_without_the_token(stranger, path):
    answer = stranger.request("GET", path)
    assert answer.status == 403
    assert b"open the address that 'variegate studio' printed" in answer.content
    assert answer.getheader("set-cookie") is None
    assert stranger.request("POST", path, PICK).status == 403


@pytest.mark.parametrize(
    "path",
    [
        "/?token=",
        "/?token=guess",
        f"/?token={TOKEN[:-1]}",
        f"/?token={TOKEN}x",
        f"/?token={TOKEN.upper()}",
        "/?token=%00%ff%ff",
        f"/api/state?token={TOKEN}",
        f"/?Token={TOKEN}",
    ],
)
def test_no_other_token(stranger, path):
    assert stranger.request("GET", path).status == 403


@pytest.mark.parametrize(
    "headers",
    [
        {"cookie": "studio=guess"},
        {"cookie": f"{Access(TOKEN).cookie}=guess"},
        {"cookie": f"{Access(TOKEN).cookie}="},
        {"cookie": f"token={TOKEN}"},
        {"cookie": "=" * 1000 + ";" * 1000},
        {"authorization": f"Bearer {TOKEN}"},
    ],
)
def test_no_other_cookie(stranger, headers):
    assert stranger.request("GET", "/api/state", headers=headers).status == 403


def test_the_token_becomes_a_cookie_that_scripts_and_others_do_not_see(stranger):
    answer = stranger.enter()
    cookie = answer.getheader("set-cookie").lower()
    assert "httponly" in cookie
    assert "samesite=strict" in cookie
    assert "domain" not in cookie
    assert answer.getheader("location") == "/"
    assert answer.getheader("referrer-policy") == "no-referrer"
    assert stranger.state()["n_groups"]


# From other pages --------------------------------------------------------------------


@pytest.mark.parametrize(
    "host",
    [
        "evil.example",
        "evil.example:{port}",
        "127.0.0.1.evil.example:{port}",
        "localhost.evil.example",
        "127.0.0.1:{port}@evil.example",
        "evil.example#localhost",
        "192.168.1.7:{port}",
        "0.0.0.0:{port}",
        "2130706433",
        "localhost..:{port}",
        ".localhost:{port}",
        "evil.localhost:{port}",
        "localhost:{port}:{port}",
        "localhost:http",
        "localhost :{port}",
        "[::1",
        "[evil]:{port}",
        "[localhost]:{port}",
        "[127.0.0.1]:{port}",
        "::1",
        "",
    ],
)
def test_names_made_to_lead_here_lead_nowhere(server, host):
    # DNS rebinding: the browser of the person sends the name of the foreign page.
    headers = {"host": host.format(port=server.port)}
    answer = server.request("GET", "/api/state", headers=headers)
    assert answer.status in (400, 421)
    assert b"picks" not in answer.content
    way_in = server.request("GET", f"/?token={TOKEN}", headers=headers)
    assert way_in.status in (400, 421)


#: Names of this machine in every spelling; the port is that of a tunnel, or missing.
NAMES = ["127.0.0.1", "127.0.0.1.", "localhost", "LocalHost", "localhost.", "[::1]"]


@pytest.mark.parametrize("port", [":{port}", ":1", ":", ""])
@pytest.mark.parametrize("name", [*NAMES, "[0:0:0:0:0:0:0:1]"])
def test_names_of_this_machine_at_any_port(server, name, port):
    host = name + port.format(port=server.port)
    assert server.request("GET", "/api/state", headers={"host": host}).status == 200
    # The page itself must come from the same name and port.
    own = {"host": host, "origin": f"http://{host}"}
    assert server.request("GET", "/api/state", headers=own).status == 200
    other = {"host": host, "origin": f"http://{name}:2"}
    assert server.request("GET", "/api/state", headers=other).status == 403


@pytest.mark.parametrize(
    "origin",
    [
        "http://evil.example",
        "null",
        "http://127.0.0.1:1",
        "https://127.0.0.1:{port}",
        "http://127.0.0.1:{port}.evil.example",
        "http://localhost:{port}",
    ],
)
def test_other_pages_change_nothing(server, origin):
    headers = {"origin": origin.format(port=server.port)}
    answer = server.request("POST", "/api/pick", PICK, headers=headers)
    assert answer.status == 403
    assert answer.getheader("access-control-allow-origin") is None
    assert server.request("GET", "/api/state", headers=headers).status == 403


@pytest.mark.parametrize("site", ["cross-site", "same-site"])
def test_other_pages_show_nothing(server, site):
    headers = {"sec-fetch-site": site, "sec-fetch-mode": "no-cors"}
    for path in ("/image/0/0", "/static/studio.js", "/api/state", "/"):
        assert server.request("GET", path, headers=headers).status == 403


@pytest.mark.parametrize(
    "kind", [None, "text/plain", "multipart/form-data; boundary=x"]
)
def test_forms_of_other_pages_change_nothing(server, kind):
    body = json.dumps(PICK).encode()
    answer = server.request("POST", "/api/pick", body, {"content-type": kind})
    assert answer.status == 415


@pytest.mark.parametrize(
    "method", ["PUT", "DELETE", "PATCH", "OPTIONS", "TRACE", "FOO"]
)
def test_other_methods(server, method):
    answer = server.request(method, "/api/state")
    assert answer.status == 405
    assert answer.getheader("access-control-allow-methods") is None


@pytest.mark.parametrize(
    "path", ["/", "/api/state", "/nothing", "/image/0/0", "/export/picks.csv"]
)
def test_every_answer_forbids_what_is_not_ours(server, stranger, path):
    for one in (server, stranger):
        answer = one.request("GET", path)
        policy = answer.getheader("content-security-policy")
        assert "default-src 'none'" in policy
        assert "unsafe" not in policy
        assert answer.getheader("x-content-type-options") == "nosniff"
        assert answer.getheader("x-frame-options") == "DENY"
        assert answer.getheader("cross-origin-resource-policy") == "same-origin"
        assert answer.getheader("access-control-allow-origin") is None
        assert answer.getheader("server") is None


# Paths, sizes and nonsense -----------------------------------------------------------


@pytest.mark.parametrize(
    "folder", ["static", "image", "image/0", "export", "api/groups"]
)
@pytest.mark.parametrize(
    "path",
    [
        "../../../../../../etc/passwd",
        "..%2f..%2f..%2f..%2f..%2f..%2fetc%2fpasswd",
        "%2e%2e/%2e%2e/%2e%2e/app.py",
        "..%5c..%5capp.py",
        "%2fetc%2fpasswd",
        "..%00/studio.js",
        "..%c0%af..%c0%afetc/passwd",
        "file:///etc/passwd",
    ],
)
def test_no_way_out_of_the_folder(server, folder, path):
    answer = server.request("GET", f"/{folder}/{path}")
    assert answer.status in (400, 404)
    assert b"root:" not in answer.content
    assert b"studio_app" not in answer.content


def raw(server, *pieces, pause=0.0, timeout=20):
    """Send bytes as they are; return what comes back until the connection ends."""
    with closing(socket.create_connection(("127.0.0.1", server.port), timeout)) as link:
        try:
            for piece in pieces:
                link.sendall(piece)
                time.sleep(pause)
        except ConnectionError:
            pass  # closed before all was sent
        answer = b""
        try:
            while piece := link.recv(65536):
                answer += piece
        except ConnectionError:
            pass
        return answer


def head(server, *lines, first="POST /api/pick HTTP/1.1"):
    ours = [first, f"Host: 127.0.0.1:{server.port}", f"Cookie: {server.cookie}"]
    kind = "Content-Type: application/json"
    return "\r\n".join([*ours, kind, *lines, "", ""]).encode()


def status(answer):
    return int(answer.split()[1])


@pytest.mark.parametrize("length", ["65537", "9" * 18, "9" * 30])
def test_a_body_that_says_it_is_too_large(server, length):
    answer = raw(server, head(server, f"Content-Length: {length}"))
    assert status(answer) in (400, 413)


def test_a_body_that_is_too_large_and_does_not_say_so(server):
    chunk = b"4000\r\n" + b"x" * 0x4000 + b"\r\n"
    answer = raw(server, head(server, "Transfer-Encoding: chunked"), *[chunk] * 50)
    assert status(answer) == 413


def test_a_large_body_of_a_stranger_is_not_read(stranger):
    began = time.monotonic()
    answer = raw(stranger, head(stranger, "Content-Length: 1000000000"), b"x" * 100_000)
    assert status(answer) == 403
    assert time.monotonic() - began < 10.0


@pytest.mark.parametrize("length", ["-1", "1e3", "0x10", "+5", "5, 6"])
def test_a_length_that_is_none(server, length):
    assert status(raw(server, head(server, f"Content-Length: {length}"), b"{}")) == 400


def test_two_lengths_and_smuggled_requests(server):
    both = head(server, "Content-Length: 2", "Transfer-Encoding: chunked")
    smuggled = b"0\r\n\r\nGET /api/state HTTP/1.1\r\n\r\n"
    answer = raw(server, both, smuggled)
    assert b"200 OK" not in answer
    twice = head(server, "Content-Length: 2", "Content-Length: 3")
    assert status(raw(server, twice, b"{}")) == 400


@pytest.mark.parametrize(
    "first",
    [
        "GET /" + "x" * 200_000 + " HTTP/1.1",
        "GET /?token=" + "x" * 60_000 + " HTTP/1.1",
    ],
    ids=["path", "query"],
)
def test_an_address_that_is_too_long(server, first):
    assert status(raw(server, head(server, first=first))) in (400, 414)


def test_headers_that_are_too_long(server):
    many = [f"X-{n}: {'x' * 1000}" for n in range(200)]
    assert status(raw(server, head(server, *many))) in (400, 431)


@pytest.mark.parametrize(
    "content",
    [
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + b"\0" * 300,
        b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
        b"GET / HTTP/9.9\r\n\r\n",
        b"GET / HTTP/1.0\r\n\r\n",
        b"GET / HTTP/1.1\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost: localhost\r\nCookie: \x00\x01\r\n\r\n",
        b"\r\n" * 50_000,
        bytes(range(256)) * 100,
    ],
    ids=[
        "TLS",
        "HTTP/2",
        "HTTP/9",
        "HTTP/1.0",
        "no host",
        "two",
        "zero",
        "lines",
        "all",
    ],
)
def test_nonsense(server, content):
    answer = raw(server, content)
    assert not answer or status(answer) in (400, 403, 421)


def test_sockets_of_the_web_are_not_spoken(server):
    key = ("Upgrade: websocket", "Connection: Upgrade", "Sec-WebSocket-Version: 13")
    key = (*key, "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==", "Connection: close")
    answer = raw(server, head(server, *key, first="GET /api/events2 HTTP/1.1"))
    assert status(answer) == 404


def test_headers_cannot_be_put_into_answers(server):
    for path in ("/?token=a%0d%0aSet-Cookie:%20x=y", "/export/a%0d%0aX-A:%20b"):
        answer = server.request("GET", path)
        assert answer.getheader("x-a") is None
        assert "x=y" not in (answer.getheader("set-cookie") or "")


# Many and slow -----------------------------------------------------------------------


def test_a_thousand_connections(server):
    links = []
    try:
        for number in range(1000):
            link = socket.create_connection(("127.0.0.1", server.port), 20)
            links.append(link)
            if number % 2:
                link.sendall(b"GET / HTTP/1.1\r\nHost: ")
            if number % 100 == 0:
                assert server.state()["n_groups"]
        assert server.state()["n_groups"]
        open_files = len(os.listdir(f"/proc/{server.pid}/fd"))
        assert open_files < Connection.MOST + 200
    finally:
        for link in links:
            link.close()


def test_a_head_that_comes_slowly(server):
    began = time.monotonic()
    answer = raw(server, *[b"x"] * 100, pause=0.1)
    assert answer == b""
    assert time.monotonic() - began < 15.0
    # Nor may the second request of a connection.
    with closing(server.connect()) as connection:
        server.request("GET", "/api/state", connection=connection)
        connection.sock.sendall(b"GET /")
        with suppress(ConnectionError):
            assert connection.sock.recv(1) == b""


def test_a_body_that_comes_slowly(server):
    answer = raw(server, head(server, "Content-Length: 50"), *[b"{"] * 40, pause=0.1)
    assert status(answer) == 408
    assert b"too long to arrive" in answer


def test_an_answer_that_nobody_takes(server):
    link = socket.socket()
    link.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    with closing(link):
        link.connect(("127.0.0.1", server.port))
        ask = head(server, first="GET /api/groups/0 HTTP/1.1")
        link.settimeout(5.0)
        with pytest.raises((TimeoutError, ConnectionError)):
            link.sendall(ask * 100_000)
        assert server.state()["n_groups"]


def test_streams_that_nobody_takes(server):
    links = []
    try:
        for _ in range(100):
            link = socket.create_connection(("127.0.0.1", server.port), 20)
            link.sendall(head(server, first="GET /api/events HTTP/1.1"))
            links.append(link)
        time.sleep(0.5)
        answers = [link.recv(12) for link in links]
        assert answers.count(b"HTTP/1.1 200") <= 64
        assert b"HTTP/1.1 503" in answers
        assert server.state()["n_groups"]
    finally:
        for link in links:
            link.close()
    deadline = time.monotonic() + 20
    while server.request("HEAD", "/api/events").status != 200:
        assert time.monotonic() < deadline
        time.sleep(0.1)


# Elsewhere than on the loopback address ----------------------------------------------


def test_another_host_is_asked_for_by_its_name_or_in_numbers(session):
    client = open_client(session, hosts={"studio.lan"}, any_address=True)
    for host, expected in {
        "studio.lan:80": 200,
        "192.168.1.7:8000": 200,
        "[fe80::1]:8000": 200,
        "evil.example": 421,
        "192.168.1.7.evil.example": 421,
    }.items():
        assert client.get("/api/state", headers={"host": host}).status == expected
    del client.headers["cookie"]
    assert client.get("/api/state", headers={"host": "studio.lan"}).status == 403

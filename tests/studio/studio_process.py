"""Servers of the studio over fakes, in processes that can be killed.

Run as a program, this reads names of stores, forks a server for each, and prints its
number and address: what takes long, to import everything, is done once.
"""

import http.client
import json
import os
import signal
import subprocess
import sys
import time
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from urllib.parse import urlsplit

N_GROUPS, N_ITEMS = 6, 50


def serve_forked(path):
    from studio_fakes import TOKEN, FakeMaterial, open_session

    from variegate.studio import security
    from variegate.studio.serving import Connection, serve

    # Patience of a test.
    security.BODY_SECONDS = Connection.REQUEST_SECONDS = Connection.ANSWER_SECONDS = 1.0
    session = open_session(path, FakeMaterial(N_GROUPS, N_ITEMS))

    def started(address):
        print(os.getpid(), address, flush=True)

    serve(session, token=TOKEN, on_start=started)
    session.close()
    print("ended", flush=True)


def main():
    import variegate.studio.serving  # noqa: F401

    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    for line in sys.stdin:
        if os.fork() == 0:
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            signal.signal(signal.SIGINT, signal.default_int_handler)
            serve_forked(line.strip())
            os._exit(0)


class Server:
    """A server that runs: ask it, interrupt it, or kill it."""

    def __init__(self, pid, address):
        self.pid = pid
        self.address = address
        self.port = urlsplit(address).port
        self.cookie = None

    def connect(self, timeout=20):
        return http.client.HTTPConnection("127.0.0.1", self.port, timeout=timeout)

    def enter(self):
        """Come in by the address, and keep the cookie."""
        answer = self.request("GET", f"/?{urlsplit(self.address).query}")
        assert answer.status == 303, answer.status
        self.cookie = answer.getheader("set-cookie").partition(";")[0]
        return answer

    def request(self, method, path, body=None, headers=None, connection=None):
        """Return an answer, with its content as ``.content``."""
        if connection is None:
            with closing(self.connect()) as connection:
                return self.request(method, path, body, headers, connection)
        given = {"cookie": self.cookie} if self.cookie else {}
        if body is not None and not isinstance(body, bytes):
            body = json.dumps(body).encode()
            given["content-type"] = "application/json"
        given |= headers or {}
        given = {name: value for name, value in given.items() if value is not None}
        connection.request(method, path, body, given)
        answer = connection.getresponse()
        answer.content = answer.read()
        return answer

    def state(self):
        answer = self.request("GET", "/api/state")
        assert answer.status == 200
        return json.loads(answer.content)

    def kill(self):
        """Kill it, and wait until it is gone, with what it held."""
        while True:
            try:
                os.kill(self.pid, signal.SIGKILL)
            except ProcessLookupError:
                return
            time.sleep(0.01)

    def signal(self, number):
        with suppress(ProcessLookupError):
            os.kill(self.pid, number)


@contextmanager
def servers():
    """Yield what starts a server for a store; all end at the end."""
    environment = os.environ | {"OPENBLAS_NUM_THREADS": "1"}
    process = subprocess.Popen(
        [sys.executable, __file__],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env=environment,
    )
    started = []

    def start(path):
        process.stdin.write(f"{path}\n")
        process.stdin.flush()
        line = process.stdout.readline()
        while line == "ended\n":
            line = process.stdout.readline()
        pid, address = line.split()
        started.append(Server(int(pid), address))
        return started[-1]

    start.process = process
    try:
        yield start
    finally:
        for server in started:
            server.signal(signal.SIGKILL)
        process.kill()
        process.stdin.close()
        process.stdout.close()
        process.wait()


if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).parent))
    main()

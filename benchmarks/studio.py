"""How long one waits in the studio: for a pick, for the knob, and for learning.

    python -m benchmarks.studio                   100 groups of 50 rows, 8 of them done
    python -m benchmarks.studio --rows 2000 --groups 4 --done 1

``variegate studio`` runs on a table that was made for it, as it would for a person, and
is asked over HTTP: an answer counts from the first byte of the request to the last of
the answer.  A pick is answered when it is on the disk.
"""

from __future__ import annotations

import argparse
import http.client
import json
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from urllib.parse import urlsplit

import numpy as np

from variegate.tables import make_table, write_table

COLUMNS = (
    *("--group", "query", "--item", "item"),
    *("--quality", "score,freshness", "--similarity", "embedding"),
)


class Page:
    """Asks as the page does, and knows how long each answer took."""

    def __init__(self, address):
        parts = urlsplit(address)
        self._link = http.client.HTTPConnection(parts.hostname, parts.port, timeout=120)
        self._link.request("GET", f"/?{parts.query}")
        answer = self._link.getresponse()
        answer.read()
        self._cookie = answer.getheader("set-cookie").partition(";")[0]

    def ask(self, method, path, body=None):
        """Return an answer, and the seconds it took."""
        headers = {"cookie": self._cookie, "content-type": "application/json"}
        content = None if body is None else json.dumps(body)
        started = time.perf_counter()
        self._link.request(method, path, content, headers)
        answer = self._link.getresponse()
        found = json.loads(answer.read())
        seconds = time.perf_counter() - started
        assert answer.status == 200, found
        return found, seconds

    def state(self):
        """Return the state of the page."""
        return self.ask("GET", "/api/state")[0]

    def toggle(self, generator):
        """Take a row or take it away; return the seconds."""
        state = self.state()
        group, picks = state["group"], set(state["picks"])
        item = int(generator.integers(group["n_items"]))
        body = {"group": group["number"], "item": item, "picked": item not in picks}
        return self.ask("POST", "/api/pick", body)[1]

    def learn(self, generator):
        """Finish a group; return the seconds to the answer, and to the model.

        Picks go on meanwhile, and are timed as well.
        """
        state = self.state()
        body = {"group": state["group"]["number"]}
        started = time.perf_counter()
        _, answered = self.ask("POST", "/api/done", body)
        picks = []
        while True:
            learned = self.state()["learned_from"]
            if learned > state["n_done"]:
                return answered, time.perf_counter() - started, picks
            picks.append(self.toggle(generator))
            time.sleep(0.02)


def line(name, seconds):
    """Print a row of times."""
    values = 1e3 * np.array(seconds)
    middle, high, most = np.median(values), np.quantile(values, 0.95), values.max()
    print(f"| {name} | {len(values)} | {middle:.1f} | {high:.1f} | {most:.1f} |")


def measure(page, n_done, n_picks, generator):
    """Print how long picks and learning take."""
    print("| what | times | median, ms | 95 %, ms | most, ms |")
    print("|---|---|---|---|---|")
    line("a pick", [page.toggle(generator) for _ in range(n_picks)])
    answered, learned, meanwhile = [], [], []
    for _ in range(n_done):
        first, model, picks = page.learn(generator)
        answered.append(first)
        learned.append(model)
        meanwhile += picks
    line("a group done: the next is shown", answered)
    line("a group done: learned from", learned)
    if meanwhile:
        line("a pick while it learns", meanwhile)
    group = page.state()["group"]["number"]
    omegas = np.exp(generator.uniform(np.log(0.1), np.log(10.0), 30))
    for name, path in (("the knob", "choice"), ("its probabilities", "proposal")):
        asked = [f"/api/groups/{group}/{path}?omega={omega:.5f}" for omega in omegas]
        line(name, [page.ask("GET", one)[1] for one in asked])


def main():
    """Start a studio, and measure it."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--groups", type=int, default=100)
    parser.add_argument("--rows", type=int, default=50)
    parser.add_argument("--dimension", type=int, default=16)
    parser.add_argument("--done", type=int, default=8)
    parser.add_argument("--picks", type=int, default=200)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        table = Path(folder) / "table.parquet"
        made = make_table(given.groups, given.rows, given.dimension, random_state=0)
        write_table(made.drop_columns(["chosen"]), table)
        command = [sys.executable, "-m", "variegate", "studio", str(table), *COLUMNS]
        started = time.perf_counter()
        server = subprocess.Popen(
            [*command, "--no-browser"], stdout=subprocess.PIPE, text=True
        )
        try:
            page = Page(server.stdout.readline().strip())
            page.state()
            print(f"the first proposal after {time.perf_counter() - started:.1f} s")
            measure(page, given.done, given.picks, np.random.default_rng(0))
        finally:
            server.send_signal(signal.SIGINT)
            server.wait()


if __name__ == "__main__":
    main()

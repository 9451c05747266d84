"""How long a new user waits: from the command to the first proposal, with screenshots.

``python scripts/studio_first.py DATA [DATA ...] [--out FOLDER]`` starts the studio on
each DATA, prints when the address was there and when the first proposal was seen in a
real browser, does one group as it stands, and says how long the model took to come.
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from studio_browser import chromium, studio

VIEWS = {
    "wide": {"width": 1280, "height": 800},
    "narrow": {"width": 390, "height": 844},
}


def main() -> None:
    """Try every DATA."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("data", nargs="+", type=Path)
    parser.add_argument("--out", type=Path, default=Path("out") / "studio")
    options = parser.parse_args()
    options.out.mkdir(parents=True, exist_ok=True)
    with chromium() as browser:
        for data in options.data:
            first_minutes(browser, data, options.out)


def first_minutes(browser: Any, data: Path, out: Path) -> None:
    """Open the studio on DATA as somebody would for the first time."""
    with TemporaryDirectory() as name:
        start = time.perf_counter()
        with studio(data, "--store", Path(name) / "picks.sqlite") as address:
            there = time.perf_counter() - start
            page = browser.new_page(viewport=VIEWS["wide"], color_scheme="light")
            page.goto(address)
            page.wait_for_selector("[role=option][aria-selected=true]")
            seen = time.perf_counter() - start
            page.focus("#items")
            done = time.perf_counter()
            page.keyboard.press("Enter")
            ask = "() => fetch('/api/state').then(a => a.json())"
            while page.evaluate(ask)["learned_from"] == 0:
                time.sleep(0.05)
            learned = time.perf_counter() - done
            print(
                f"{data.name}: address after {there:.1f} s, first proposal after "
                f"{seen:.1f} s, the first learned one {learned:.1f} s after the first "
                "group",
                flush=True,
            )
            page.close()
            for size, view in VIEWS.items():
                for colours in ("light", "dark"):
                    page = browser.new_page(viewport=view, color_scheme=colours)
                    page.goto(address)
                    page.wait_for_selector("[role=option][aria-selected=true]")
                    page.wait_for_timeout(1500)
                    page.screenshot(path=out / f"{data.stem}-{size}-{colours}.png")
                    page.close()


if __name__ == "__main__":
    main()

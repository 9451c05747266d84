"""A person in front of the studio: pictures, a browser, and a rule that nobody knows.

What ``studio_first.py``, ``studio_person.py`` and ``studio_screenshots.py`` share.
``make test-browser`` installs what they need, but for Chromium.
"""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import cv2
import numpy as np
from installed_chromium import ARGUMENTS, chromium_path

PAGE = 20

Rule = Callable[[int], set[int]]


def write_digits(folder: Path, n_pages: int, seed: int = 0) -> Rule:
    """Write pages of handwritten digits, blurred more or less.

    Returns what a person picks of a page: of every digit on it the sharpest picture.
    """
    from sklearn.datasets import load_digits

    digits = load_digits()
    rng = np.random.default_rng(seed)
    drawn = rng.permutation(len(digits.images))[: PAGE * n_pages]
    blur = rng.uniform(0.3, 3.3, len(drawn))
    folder.mkdir(parents=True, exist_ok=True)
    for place, (which, sigma) in enumerate(zip(drawn, blur, strict=True)):
        grey = (255 - digits.images[which] * (255 / 16)).astype(np.uint8)
        large = cv2.resize(grey, (96, 96), interpolation=cv2.INTER_CUBIC)
        large = cv2.GaussianBlur(large, (0, 0), 1.5 * sigma)
        cv2.imwrite(str(folder / f"{place:04d}.png"), large)
    kinds = digits.target[drawn]

    def wanted(page: int) -> set[int]:
        here = np.arange(PAGE * page, PAGE * (page + 1))
        best = (here[kinds[here] == k] for k in np.unique(kinds[here]))
        return {int(same[np.argmin(blur[same])]) - PAGE * page for same in best}

    return wanted


@contextmanager
def studio(*arguments: str | Path) -> Iterator[str]:
    """Run ``variegate studio``; yields the address that it prints."""
    command = [sys.executable, "-m", "variegate", "studio", *map(str, arguments)]
    running = subprocess.Popen(
        [*command, "--no-browser"], stdout=subprocess.PIPE, text=True
    )
    assert running.stdout is not None
    try:
        address = running.stdout.readline().strip()
        if not address:
            raise RuntimeError(f"{' '.join(command)} ended at once")
        yield address
    finally:
        running.terminate()
        running.wait(timeout=120)
        running.stdout.close()


@contextmanager
def chromium() -> Iterator[Any]:
    """Start the Chromium that VARIEGATE_CHROMIUM names, or that is on the path."""
    from playwright.sync_api import sync_playwright

    path = chromium_path()
    if path is None:
        raise SystemExit("there is no Chromium: apt-get install chromium")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path, args=ARGUMENTS)
        try:
            yield browser
        finally:
            browser.close()


def f_score(chosen: set[int], wanted: set[int]) -> float:
    """Return the harmonic mean of precision and recall."""
    return 2 * len(chosen & wanted) / (len(chosen) + len(wanted))


class Person:
    """Goes from group to group in a page, and makes each what the rule says."""

    def __init__(self, page: Any, rule: Rule) -> None:
        self.page = page
        self.rule = rule

    def ask(self, path: str) -> Any:
        """Return what the page's server answers."""
        return self.page.evaluate("path => fetch(path).then(a => a.json())", path)

    def until(self, is_so: Callable[[], bool], seconds: float = 180.0) -> None:
        """Wait for something in the page."""
        end = time.monotonic() + seconds
        while not is_so():
            if time.monotonic() > end:
                raise TimeoutError("the page does not get there")
            time.sleep(0.03)

    def selected(self) -> set[int]:
        """Return what the page shows as chosen."""
        found = self.page.query_selector_all("[role=option][aria-selected=true]")
        return {int(node.get_attribute("data-n")) for node in found}

    def arrive(self) -> dict[str, Any]:
        """Wait until the page shows the group at hand, after all groups that are done.

        Comparisons of similarities, which go on for longer, are not waited for.
        """
        state: dict[str, Any] = {}

        def is_there() -> bool:
            state.update(self.ask("/api/state"))
            has_learned = state["learned_from"] == state["n_done"]
            return (
                (has_learned or not state["learning"])
                and self.selected() == set(state["picks"])
                and self.page.inner_text("#name") == state["group"]["name"]
            )

        self.until(is_there)
        return state

    def correct(self, state: dict[str, Any]) -> None:
        """Press on every item that is not as the rule says.

        One after the other, by what the page shows: until the first is pressed, what
        is learned meanwhile may change the proposal.
        """
        wanted = self.rule(state["group"]["number"])

        def is_right() -> bool:
            wrong = self.selected() ^ wanted
            if wrong:
                self.page.click(f"#item-{min(wrong)}")
            return not wrong

        self.until(is_right)

    def finish(self) -> tuple[int, set[int]]:
        """Do a group; returns its number and what was proposed."""
        state = self.arrive()
        self.correct(state)
        name = state["group"]["name"]
        self.page.focus("#items")
        self.page.keyboard.press("Enter")
        self.until(lambda: self.page.inner_text("#name") != name)
        return state["group"]["number"], set(state["proposal"])

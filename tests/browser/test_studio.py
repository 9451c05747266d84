"""The studio as a new user starts it, in a real browser: nothing is made up here."""

import random
import time
from pathlib import Path

import pytest
import studio_browser
from steps import selected, until


@pytest.fixture(scope="module")
def digits(tmp_path_factory):
    folder = tmp_path_factory.mktemp("digits") / "digits"
    return folder, studio_browser.write_digits(folder, 8)


@pytest.fixture
def started(digits, tmp_path):
    """Return a function that runs the command, each time with the same store."""

    def start():
        return studio_browser.studio(digits[0], "--store", tmp_path / "picks.sqlite")

    return start


def test_a_person_picks_learns_ends_and_goes_on(digits, started, new_page):
    with started() as address:
        page = new_page(address)
        person = studio_browser.Person(page, digits[1])
        done = [person.finish()[0] for _ in range(4)]
        assert len(set(done)) == 4
        state = person.arrive()
        assert state["n_done"] == 4
        assert "4 of 8 done" in page.inner_text("#progress")
        until(lambda: page.is_enabled("#omega"))
        page.keyboard.press("]")
        until(lambda: person.ask("/api/state")["omega"] > 1.0)
        until(lambda: selected(page) == person.ask("/api/state")["picks"])
        page.click("#tab-learned")
        until(lambda: "untrained" in page.inner_text("#curve-note"), seconds=180)
        until(
            lambda: page.inner_text("#verdict") == person.ask("/api/learned")["verdict"]
        )
        page.click("#tab-why")
        until(lambda: page.query_selector("#why-body .bars"))
        page.click("#open-export")
        with page.expect_download() as download:
            page.click("a[href='/export/picks.csv']")
        lines = Path(download.value.path()).read_text().splitlines()
        assert len(lines) == 1 + 4 * studio_browser.PAGE
    with started() as address:
        page = new_page(address)
        again = studio_browser.Person(page, digits[1]).ask("/api/state")
        assert again["n_done"] == 4
        assert again["group"] == state["group"]
        page.keyboard.press("u")
        until(lambda: "3 of 8 done" in page.inner_text("#progress"))


def test_two_tabs_that_pick_at_once_end_in_the_same_state(digits, started, new_page):
    rng = random.Random(0)
    with started() as address:
        one = new_page(address)
        two = new_page(address.partition("?")[0], context=one.context)
        end = time.monotonic() + 15.0
        while time.monotonic() < end:
            page = rng.choice((one, two))
            page.focus("#items")
            for _ in range(rng.randrange(4)):
                page.keyboard.press("ArrowRight")
            page.keyboard.press(rng.choice(["Space", "Space", "Space", "u"]))
            if rng.random() < 0.05:
                page.keyboard.press("Enter")
        for page in (one, two):
            until(lambda page=page: page.inner_text("#saved") == "All saved")
        person = studio_browser.Person(one, digits[1])
        until(lambda: not person.ask("/api/state")["learning"], seconds=180)

        def agree():
            # Asked anew each time: the last keys may reach a busy page late.
            state = person.ask("/api/state")
            seen = [(page.inner_text("#name"), selected(page)) for page in (one, two)]
            return seen == [(state["group"]["name"], state["picks"])] * 2

        until(agree)

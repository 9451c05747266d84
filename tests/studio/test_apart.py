"""Calls in a process of their own."""

import math
import os
import threading
import time
from functools import partial

import pytest

from variegate.studio.apart import Apart, ApartError


def test_a_call_is_made_in_another_process():
    apart = Apart()
    assert apart.call(os.getpid) != os.getpid()
    assert apart.call(partial(divmod, 17, 5)) == (3, 2)


def test_it_gives_way_to_the_page():
    assert Apart().call(partial(os.nice, 0)) >= min(19, os.nice(0) + 10)


def test_what_goes_wrong_is_said_in_words():
    with pytest.raises(ApartError, match=r"^ValueError: "):
        Apart().call(partial(math.sqrt, -1))


def test_a_process_that_ends_by_itself_is_said_in_words():
    with pytest.raises(ApartError, match="ended too early"):
        Apart().call(partial(os._exit, 0))


def test_what_is_printed_is_no_answer(capfd):
    assert Apart().call(partial(print, "hello")) is None
    assert "hello" in capfd.readouterr().err


def test_to_close_ends_what_is_being_called():
    apart = Apart()
    problems = []

    def wait():
        with pytest.raises(ApartError) as caught:
            apart.call(partial(time.sleep, 600))
        problems.append(str(caught.value))

    thread = threading.Thread(target=wait)
    thread.start()
    while not apart._running:
        time.sleep(0.01)
    apart.close()
    thread.join(timeout=30)
    assert problems == ["the process that was to do this ended too early"]
    with pytest.raises(ApartError, match="the studio is ending"):
        apart.call(os.getpid)

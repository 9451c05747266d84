"""What a worker keeps: bounded, in memory and in a file, and never wrong."""

import threading
import time

import numpy as np
import pytest

from variegate.partitions import Limits
from variegate.partitions.cache import Cache

MB = 2**20


def array(number):
    return np.full(MB // 8, float(number))


class Maker:
    """Counts what is made."""

    def __init__(self):
        self.made = []

    def __call__(self, number):
        self.made.append(number)
        return array(number)


def go_through(cache, limits, maker, n, work="a"):
    for number in range(n):
        value = cache.get(work, number, lambda number=number: maker(number), limits)
        np.testing.assert_array_equal(value, array(number))


@pytest.mark.parametrize(
    ("memory", "disk", "made_again"),
    [(10, 0, 0), (3, 10, 0), (0, 10, 0), (3, 0, 4), (3, 2, 2), (0, 0, 7)],
)
def test_what_fits_is_kept_and_the_rest_is_made_again(memory, disk, made_again):
    # A little more than whole numbers, for what is beside the numbers themselves.
    limits = Limits(memory * MB + 100_000, disk * MB + 100_000)
    cache, maker = Cache(), Maker()
    for _ in range(3):
        go_through(cache, limits, maker, 7)
    assert len(maker.made) == 7 + 2 * made_again
    in_memory, on_disk = cache.bytes_kept()
    assert in_memory <= limits.memory
    assert on_disk <= limits.disk


def test_bytes_are_counted_honestly():
    cache = Cache()
    value = {"a": array(1), "b": [array(2), array(3)[::2].copy()]}
    cache.get("a", 0, lambda: value, Limits())
    assert 2.5 * MB <= cache.bytes_kept()[0] <= 2.5 * MB + 10_000


def test_views_and_nothing_are_kept_too():
    cache, limits = Cache(), Limits(memory=0)
    for _ in range(2):
        strided = cache.get("a", 0, lambda: array(5)[::3], limits)
        np.testing.assert_array_equal(strided, array(5)[::3])
        assert cache.get("a", 1, lambda: None, limits) is None
        assert len(cache.get("a", 2, lambda: np.zeros(0), limits)) == 0


def test_other_work_makes_room_when_it_was_not_used_for_long():
    cache, maker = Cache(), Maker()
    limits = Limits(memory=4 * MB, disk=0)
    go_through(cache, limits, maker, 3, work="old")
    go_through(cache, limits, maker, 3, work="new")
    assert len(maker.made) == 6
    go_through(cache, limits, maker, 3, work="old")  # what was there stays
    assert len(maker.made) == 6
    for _ in range(70):
        go_through(cache, limits, maker, 3, work="new")
    maker.made.clear()
    go_through(cache, limits, maker, 3, work="new")
    assert maker.made == []


def test_a_full_disk_is_no_error(monkeypatch, caplog):
    caplog.set_level("WARNING")  # whatever a cluster of other tests has set

    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("variegate.partitions.cache._Spill.add", full)
    cache, maker = Cache(), Maker()
    for _ in range(2):
        go_through(cache, Limits(memory=0), maker, 2)
    assert maker.made == [0, 1, 0, 1]
    assert "No space left" in caplog.text


def test_threads_that_want_the_same_wait_for_the_one_that_makes_it():
    cache, made = Cache(), []

    def make():
        made.append(1)
        time.sleep(0.05)
        return array(1)

    def ask():
        found.append(cache.get("a", 0, make, Limits()))

    found = []
    threads = [threading.Thread(target=ask) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(made) == 1
    assert len(found) == 8


def test_what_cannot_be_made_is_asked_for_again():
    cache = Cache()
    with pytest.raises(ZeroDivisionError):
        cache.get("a", 0, lambda: 1 / 0, Limits())
    assert cache.get("a", 0, lambda: 7, Limits()) == 7


def test_threads_read_a_file_at_once():
    cache, limits = Cache(), Limits(memory=0)
    go_through(cache, limits, Maker(), 6)
    wrong = []

    def read(start):
        for k in range(60):
            number = (start + k) % 6
            if cache.get("a", number, refuse, limits)[0] != number:
                wrong.append(number)

    def refuse():
        wrong.append("made")

    threads = [threading.Thread(target=read, args=(k,)) for k in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []


def test_what_nobody_asks_for_any_more_is_not_kept(monkeypatch):
    monkeypatch.setattr("variegate.partitions.cache._IDLE", 0.3)
    cache, limits, maker = Cache(), Limits(memory=3 * MB), Maker()
    for _ in range(5):  # asked for now and then, it stays
        go_through(cache, limits, maker, 5)
        time.sleep(0.1)
    assert maker.made == [0, 1, 2, 3, 4]
    assert all(cache.bytes_kept())
    until = time.monotonic() + 30.0
    while any(cache.bytes_kept()):
        assert time.monotonic() < until
        time.sleep(0.05)
    go_through(cache, limits, maker, 5)
    assert maker.made == 2 * [0, 1, 2, 3, 4]

"""Partitions, the tree of sums, and the engine that others are compared with."""

import os
import pickle
from threading import Barrier

import pytest
from hypothesis import given
from hypothesis import strategies as st

from variegate.partitions import (
    Partition,
    PartitionChangedError,
    Serial,
    Threads,
    UnreadablePartitionError,
)
from variegate.partitions.engine import (
    FAN_IN,
    split_into_bundles,
    sum_bundle,
    tree_reduce,
)


def listed(tmp_path, content=b"abc"):
    path = tmp_path / "a.bin"
    path.write_bytes(content)
    return path, Partition.from_path(path)


def test_a_partition_is_small_and_the_same_after_a_journey(tmp_path):
    _, partition = listed(tmp_path)
    there = pickle.loads(pickle.dumps(partition))
    assert there == partition
    assert hash(there) == hash(partition)
    assert len(pickle.dumps(partition)) < 400
    there.check_unchanged()


def test_a_file_of_another_size_is_refused_by_its_name(tmp_path):
    path, partition = listed(tmp_path)
    path.write_bytes(b"abcd")
    with pytest.raises(PartitionChangedError, match=r"a\.bin has changed .* 3 bytes"):
        partition.check_unchanged()


def test_a_file_written_again_is_refused_even_at_the_same_size(tmp_path):
    path, partition = listed(tmp_path)
    os.utime(path, ns=(0, partition.modified_ns + 1))
    with pytest.raises(PartitionChangedError) as caught:
        partition.check_unchanged()
    assert caught.value.path == str(path)


def test_a_file_that_is_gone_is_named(tmp_path):
    path, partition = listed(tmp_path)
    path.unlink()
    with pytest.raises(UnreadablePartitionError, match=r"a\.bin cannot be read: No"):
        partition.check_unchanged()
    with pytest.raises(UnreadablePartitionError, match="cannot be read"):
        Partition.from_path(path)


def test_errors_keep_their_parts_on_a_journey():
    for kind in (PartitionChangedError, UnreadablePartitionError):
        error = pickle.loads(pickle.dumps(kind("x.parquet", "is odd")))
        assert type(error) is kind
        assert str(error) == "x.parquet is odd"
        assert (error.path, error.problem) == ("x.parquet", "is odd")


# The tree ---------------------------------------------------------------------------


def join(left, right):
    return f"{left}+{right}"


@given(st.integers(1, 700))
def test_summands_that_come_one_by_one_are_added_as_level_by_level(n):
    leaves = [(str(k),) for k in range(n)]
    level = leaves
    while len(level) > 1:
        level = [sum_bundle(nest, b) for b in split_into_bundles(level)]
    assert tree_reduce(nest, iter(leaves)) == level[0]


def nest(left, right):
    return (left, right)


@given(st.lists(st.integers(-(10**9), 10**9), min_size=1, max_size=300))
def test_the_tree_adds_everything_once(numbers):
    assert tree_reduce(lambda a, b: a + b, numbers) == sum(numbers)


def test_eight_neighbours_at_a_time():
    assert FAN_IN == 8
    assert tree_reduce(join, list("abc")) == "a+b+c"
    parts = [chr(97 + k) for k in range(17)]
    assert list(map("".join, split_into_bundles("".join(parts)))) == [
        "abcdefgh",
        "ijklmnop",
        "q",
    ]


def test_the_order_matters_and_is_kept():
    # 1e16 + 1 - 1e16 loses the one; the tree adds the first eight before the others.
    numbers = [1e16] + [1.0] * 7 + [-1e16] + [1.0] * 7
    left = sum_bundle(lambda a, b: a + b, numbers[:8])
    right = sum_bundle(lambda a, b: a + b, numbers[8:])
    assert tree_reduce(lambda a, b: a + b, numbers) == left + right


def test_nothing_cannot_be_added_up():
    with pytest.raises(ValueError, match="there is nothing to add up"):
        tree_reduce(lambda a, b: a + b, [])


# The serial engine ------------------------------------------------------------------


def test_results_come_in_order_one_at_a_time():
    called, told = [], []

    def square(x):
        called.append(x)
        return x * x

    results = Serial().map(square, [1, 2, 3], lambda *done: told.append(done))
    assert called == []
    assert next(results) == 1
    assert called == [1]
    assert list(results) == [4, 9]
    assert told == [(1, 3), (2, 3), (3, 3)]


@pytest.mark.parametrize(
    "engine", [Serial(), Threads(1), Threads(3)], ids=["serial", "one", "three"]
)
def test_sums_follow_the_tree(engine):
    items = [0.1 * 3.0**k for k in range(100)]
    expected = tree_reduce(lambda a, b: a + b, [1 / x for x in items])
    assert engine.tree_sum(lambda x: 1 / x, items, lambda a, b: a + b) == expected


@pytest.mark.parametrize("engine", [Serial(), Threads(3)], ids=["serial", "threads"])
def test_an_error_is_passed_on(engine):
    with pytest.raises(ZeroDivisionError):
        engine.tree_sum(lambda x: 1 / x, [1, 0], lambda a, b: a + b)


# Threads ----------------------------------------------------------------------------


def test_threads_work_at_the_same_time_and_results_come_in_order():
    both = Barrier(2, timeout=10)
    told = []

    def wait(x):
        both.wait()
        return x

    found = Threads(2).map(wait, [1, 2, 3, 4], lambda *done: told.append(done))
    assert list(found) == [1, 2, 3, 4]
    assert told == [(1, 4), (2, 4), (3, 4), (4, 4)]


def test_few_items_are_begun_before_results_are_taken():
    begun = []
    results = Threads(2).map(begun.append, range(50))
    next(results)
    assert len(begun) <= 3
    results.close()
    assert len(begun) <= 3

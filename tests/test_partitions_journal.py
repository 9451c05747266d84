"""Answers that are written down, and what is left of them after a crash."""

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from variegate.partitions import Journal
from variegate.solvers import CheckpointError


def refuse():
    raise AssertionError("asked again")


def answers(count):
    return {f"question {k}": bytes([k]) * (3 * k) for k in range(count)}


def written(path, count, run=None):
    with Journal(path, run) as journal:
        for key, value in answers(count).items():
            journal.remember(key, lambda value=value: value)
    return path.read_bytes()


def test_an_answer_is_made_once_and_known_after_opening_again(tmp_path):
    path = tmp_path / "run.journal"
    written(path, 4)
    with Journal(path) as journal:
        assert len(journal) == 4
        for key, value in answers(4).items():
            assert journal.remember(key, refuse) == value


def test_without_a_file_answers_live_as_long_as_the_journal():
    journal = Journal()
    assert journal.remember("a", lambda: b"1") == b"1"
    assert journal.remember("a", refuse) == b"1"


def test_a_tail_torn_at_any_byte_is_dropped_and_the_rest_goes_on(tmp_path):
    path = tmp_path / "run.journal"
    run = {"data": "abc"}
    whole = written(path, 3, run)
    ends = {len(whole): 3}
    for count in (0, 1, 2):
        other = tmp_path / f"{count}.journal"
        ends[len(written(other, count, run))] = count
    for size in range(len(whole) + 1):
        path.write_bytes(whole[:size])
        known = max((n for end, n in ends.items() if end <= size), default=0)
        with Journal(path, run) as journal:
            assert len(journal) == known, size
            for key, value in answers(3).items():
                assert journal.remember(key, lambda value=value: value) == value
        assert path.read_bytes() == whole


@settings(max_examples=60, deadline=None)
@given(data=st.data())
def test_a_changed_byte_is_never_believed(tmp_path_factory, data):
    path = tmp_path_factory.mktemp("journal") / "run.journal"
    whole = bytearray(written(path, 3))
    first = whole.index(b"\n") + 1
    place = data.draw(st.integers(first, len(whole) - 1))
    whole[place] ^= data.draw(st.integers(1, 255))
    path.write_bytes(whole)
    with Journal(path) as journal:
        assert len(journal) < 3
        for key, value in answers(3).items():
            assert journal.remember(key, lambda value=value: value) == value
        assert len(journal) == 3


def test_the_journal_of_another_run_is_refused(tmp_path):
    path = tmp_path / "run.journal"
    written(path, 1, {"lam": 1.0, "data": "abc"})
    with pytest.raises(
        CheckpointError, match=r"another run \(lam was 1.0 and is 2.0\)"
    ):
        Journal(path, {"lam": 2.0, "data": "abc"})


@pytest.mark.parametrize("content", [b"no journal\n", b"{}\n", b"[1]\nx", b"\x00" * 50])
def test_what_is_not_a_journal_is_refused_and_left_as_it_is(tmp_path, content):
    path = tmp_path / "run.journal"
    path.write_bytes(content)
    with pytest.raises(CheckpointError, match="is not a journal of variegate"):
        Journal(path)
    assert path.read_bytes() == content


def test_another_version_of_the_format_is_refused(tmp_path):
    path = tmp_path / "run.journal"
    document = {"format": "variegate-journal", "version": 9, "run": {}}
    path.write_text(json.dumps(document) + "\n")
    with pytest.raises(CheckpointError, match="format version 9, but this"):
        Journal(path)


def test_a_journal_in_use_is_refused(tmp_path):
    pytest.importorskip("fcntl", reason="needs locks on files")
    path = tmp_path / "run.journal"
    with Journal(path), pytest.raises(CheckpointError, match="in use by another"):
        Journal(path)
    Journal(path).close()


def test_a_folder_that_is_not_there_is_named(tmp_path):
    with pytest.raises(FileNotFoundError, match="there is no folder"):
        Journal(tmp_path / "nowhere" / "run.journal")


def test_removed_at_the_end(tmp_path):
    path = tmp_path / "run.journal"
    Journal(path).remove()
    assert not path.exists()

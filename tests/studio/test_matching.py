"""Groups and items of edited DATA, found again by keys and identities."""

import pytest
from studio_fakes import FakeMaterial, open_session, start_session

from variegate.material.identity import unique_texts
from variegate.studio.matching import Matching
from variegate.studio.store import Store, StoreError


class Edited(FakeMaterial):
    """Groups of items by name, with copies where a letter repeats."""

    def __init__(self, groups, are_files=False):
        self.groups = {name: list(items) for name, items in groups.items()}
        self.names = list(groups)
        self.sizes = [len(items) for items in groups.values()]
        self.groups_are_files = are_files

    def identities(self, group):
        letters = self.groups[self.names[group]]
        return unique_texts(letters, letters)

    def item_name(self, group, item):
        return self.groups[self.names[group]][item]

    def picks(self, session):
        """Return picked letters by group, of groups where something was decided."""
        found = {}
        for number, (name, letters) in enumerate(self.groups.items()):
            mine = session._history.group_picks(number)
            if mine.base is not None or mine.decided:
                found[name] = "".join(letters[n] for n in sorted(session.picks(number)))
        return found


@pytest.fixture
def again(tmp_path):
    """Return what opens groups, acts, closes, and returns picks and changes."""
    path = tmp_path / "picks.sqlite"

    def start(groups, act=lambda session: None, are_files=False):
        material = Edited(groups, are_files)
        session, changes = start_session(path, material)
        act(session)
        picks, done = material.picks(session), list(session.done_picks())
        session.close()
        return picks, [material.names[group] for group in done], changes

    return start


def pick_and_finish(session):
    """Pick the items 0, 1 and 3 of group 0, and finish it; 0, 1, 2 of group 1."""
    session.pick(0, 3, True)
    session.done(0)
    session.pick(1, 2, True)


def test_rows_in_another_order(again):
    again({"x": "abcde", "y": "fghij"}, pick_and_finish)
    picks, done, changes = again({"y": "jihgf", "x": "edcba"})
    assert picks == {"x": "dba", "y": "hgf"}
    assert done == ["x"]
    assert changes.notes(("row", "rows")) == []


def test_rows_that_are_gone_are_named(again):
    again({"x": "abcde", "y": "fghij"}, pick_and_finish)
    picks, done, changes = again({"x": "abce", "y": "fgij"})
    assert picks == {"x": "ab", "y": "fg"}
    assert done == []
    assert changes.lost == {"x": ["d"], "y": ["h"]}
    assert changes.reopened == ["x"]
    text = " ".join(changes.notes(("row", "rows")))
    assert "group 'x': 1 picked row cannot be found in DATA" in text
    assert "have changed since they were done, so they are open again: 'x'" in text


def test_data_that_come_back(again):
    again({"x": "abcde", "y": "fghij"}, pick_and_finish)
    again({"x": "abce"})
    picks, done, changes = again({"x": "abcde", "y": "fghij"})
    assert picks == {"x": "abd", "y": "fgh"}
    assert done == ["x"]
    assert not changes.notes(("row", "rows"))


def test_a_new_row_opens_a_group_and_keeps_its_picks(again):
    again({"x": "abcde", "y": "fghij"}, pick_and_finish)
    picks, done, _ = again(
        {"x": "zabcde", "y": "fghij"}, lambda session: session.set({"omega": 4.0})
    )
    assert (picks["x"], done) == ("abd", [])
    picks, done, _ = again({"x": "zabcde", "y": "fghij"}, lambda one: one.done(0))
    assert (picks["x"], done) == ("abd", ["x"])
    picks, done, _ = again({"x": "zabcde", "y": "fghij"})
    assert (picks["x"], done) == ("abd", ["x"])


def test_undo_goes_back_over_items_that_are_gone(again):
    again({"x": "abcde", "y": "fghij"}, pick_and_finish)

    def undo(session):
        while session.state()["can_undo"]:
            session.undo()

    # The end of a group is undone to the proposal that it was made on.
    picks, done, _ = again({"x": "abce"}, undo)
    assert (picks, done) == ({"x": "ab"}, [])
    picks, done, _ = again({"x": "abcde", "y": "fghij"})
    assert picks["y"] == "fgh"
    assert done == []


def test_a_key_of_a_column_is_never_another(again):
    again({"x": "abcde", "y": "fghij"}, pick_and_finish)
    picks, _, changes = again({"z": "abcde", "y": "fghij"})
    assert picks == {"y": "fgh"}
    assert changes.lost == {"x": ["a", "b", "d"]}
    assert changes.renamed == {}


def test_a_file_that_was_renamed(again):
    again({"x": "abcde", "y": "fghij"}, pick_and_finish, True)
    files = {"z": "edcba", "y": "fghij"}
    picks, done, changes = again(files, lambda one: one.pick(0, 0, True), True)
    assert picks == {"z": "edba", "y": "fgh"}
    assert done == ["z"]
    assert changes.notes(("row", "rows")) == ["group 'x' is called 'z' now"]
    assert again(files, are_files=True)[0] == picks


def test_files_that_changed_names(again):
    again({"x": "abcde", "y": "fghij"}, pick_and_finish, True)
    picks, done, _ = again({"x": "fghij", "y": "abcde"}, pick_in_new, True)
    assert (picks, done) == ({"x": "fghi", "y": "abd"}, ["y"])
    picks, done, _ = again({"x": "fghij", "y": "abcde"}, are_files=True)
    assert (picks, done) == ({"x": "fghi", "y": "abd"}, ["y"])


def pick_in_new(session):
    session.pick(0, 3, True)


def test_a_new_file_of_an_old_name(again):
    again({"x": "abcde", "y": "fghij"}, pick_and_finish, True)
    files = {"x": "klmno", "y": "fghij", "z": "abcde"}
    picks, done, _ = again(files, pick_in_new, True)
    assert (picks, done) == ({"x": "kln", "y": "fgh", "z": "abd"}, ["z"])
    assert again(files, are_files=True)[:2] == (picks, done)


def test_two_files_that_fit_are_not_guessed(again):
    again({"x": "abcde", "y": "fghij"}, pick_and_finish, True)
    picks, _, changes = again(
        {"z": "abcde", "w": "abcde", "y": "fghij"}, are_files=True
    )
    assert picks == {"y": "fgh"}
    assert changes.lost == {"x": ["a", "b", "d"]}


def test_copies_keep_their_picks_while_they_are_as_many(again):
    def pick_copy(session):
        session.pick(0, 2, True)
        session.done(0)

    again({"x": "abbbc"}, pick_copy)
    picks, _, changes = again({"x": "bcabb"})
    assert (picks, changes.lost) == ({"x": "bab"}, {})
    picks, _, changes = again({"x": "bcab"})
    assert (picks, changes.lost) == ({"x": "a"}, {"x": ["b", "b"]})


def test_items_that_moved_to_another_page(again):
    pages = {"page 1": "abcde", "page 2": "fghij"}
    again(pages, pick_and_finish, True)
    later = {"page 1": "zabcd", "page 2": "efghi", "page 3": "j"}
    picks, done, changes = again(later, are_files=True)
    assert (picks, done) == ({"page 1": "abd", "page 2": "fgh"}, [])
    assert changes.lost == {}
    later = {"page 1": "yzabc", "page 2": "defgh", "page 3": "ij"}
    picks, _, changes = again(later, lambda one: one.pick(1, 0, False), True)
    assert picks == {"page 1": "ab", "page 2": "fgh"}
    # The decision is the last one, wherever the item is.
    picks, _, changes = again(pages, are_files=True)
    assert picks == {"page 1": "ab", "page 2": "fgh"}
    assert changes.lost == {}


def test_a_pick_that_moved_is_said_once(again):
    again({"page 1": "abcde", "page 2": "fghij"}, pick_and_finish, True)
    later = {"page 1": "zyabc", "page 2": "defgh", "page 3": "ij"}
    path_picks = again(later, are_files=True)[0]
    picks, _, changes = again(later, are_files=True)
    assert picks == path_picks == {"page 1": "ab", "page 2": "dfgh"}
    assert changes.moved == []


def test_moved_picks_are_counted(tmp_path):
    path = tmp_path / "picks.sqlite"
    session = open_session(path, Edited({"page 1": "abcde", "page 2": "fghij"}, True))
    pick_and_finish(session)
    session.close()
    later = Edited({"page 1": "zyabc", "page 2": "defgh", "page 3": "ij"}, True)
    with Store(path, "data.csv") as store:
        notes = Matching(later, store.events()).changes().notes(("row", "rows"))
    assert notes[0] == "1 picked row moved to other pages with their picks"


def test_an_item_on_two_pages_is_not_guessed(again):
    again({"page 1": "abcde", "page 2": "fghij"}, pick_and_finish, True)
    later = {"page 1": "zyxbc", "page 2": "defgh", "page 3": "aaj"}
    picks, _, changes = again(later, are_files=True)
    assert picks == {"page 1": "b", "page 2": "dfgh"}
    assert changes.lost == {"page 1": ["a"]}


def test_other_data_are_refused(again):
    again({"x": "abcde", "y": "fghij"}, pick_and_finish)
    with pytest.raises(
        StoreError, match=r"picks from other data \(data.csv\), of which"
    ):
        again({"x": "klmno", "y": "pqrst"})
    with pytest.raises(StoreError, match=r"picks from other data"):
        again({"z": "abcde"})

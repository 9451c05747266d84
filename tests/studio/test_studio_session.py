"""A person at work: picks, proposals, ends of groups, undo, and starting again."""

import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from studio_fakes import FakeMaterial, open_session, settle

from variegate.studio.session import ChangedError, NoSuchError, SessionError
from variegate.studio.store import StoreFullError


def seen(session):
    """What a person sees and can lose: all but numbers of changes."""
    state = session.state()
    for name in ("seq", "learning", "learned_from", "message"):
        del state[name]
    state["of groups"] = [
        (n, sorted(session.picks(n)), session.groups(n, 1)[0]["done"])
        for n in range(state["n_groups"])
    ]
    state["learned from"] = [(g, list(p)) for g, p in session.done_picks().items()]
    return state


def test_a_group_starts_from_its_proposal(session):
    state = session.state()
    assert (state["group"]["number"], state["group"]["name"]) == (0, "group 0")
    assert state["picks"] == state["proposal"] == [0, 1]
    assert (state["kind"], state["nouns"]) == ("table", ["row", "rows"])
    assert (state["n_groups"], state["n_done"], state["can_undo"]) == (6, 0, False)


def test_picks_change_what_was_proposed(session):
    session.pick(0, 4, True)
    session.pick(0, 0, False)
    state = session.state()
    assert (state["picks"], state["proposal"]) == ([1, 4], [0, 1])
    assert state["can_undo"]


def test_what_is_so_already_is_no_change(session):
    seq = session.changes.seq
    session.pick(0, 0, True)
    session.pick(0, 4, False)
    assert session.changes.seq == seq
    assert not session.state()["can_undo"]


def test_what_is_done_is_taught_and_the_next_group_comes(session):
    session.pick(0, 3, True)
    session.done(0)
    state = settle(session)
    assert session.teacher.taught[-1] == [(0, [0, 1, 3])]
    assert (state["group"]["number"], state["n_done"]) == (1, 1)
    assert state["learned_from"] == 1
    session.done(1)
    settle(session)
    assert session.teacher.taught[-1] == [(0, [0, 1, 3]), (1, [0, 1])]


def test_proposals_accepted_as_they_stood_are_counted(session):
    session.done(0)
    session.pick(1, 3, True)
    session.done(1)
    session.pick(2, 3, True)
    session.pick(2, 3, False)
    session.done(2)
    assert session.state()["accepted"] == {"unchanged": 2, "of": 3}
    session.undo()
    assert session.state()["accepted"] == {"unchanged": 1, "of": 2}


def test_the_next_group_is_that_of_least_confidence_or_as_given(session):
    session.set({"order": "unsure"})
    session.done(0)
    assert session.state()["group"]["number"] == 5
    session.set({"order": "given"})
    session.done(5)
    assert session.state()["group"]["number"] == 1


def test_when_all_are_done_it_is_said(session):
    for number in range(6):
        assert session.state()["message"] is None
        session.done(number)
    state = settle(session)  # after which nothing happens by itself
    assert state["message"] == "All groups are done."
    assert state["group"]["number"] == 5
    seq = session.changes.seq
    session.done(5)
    assert session.changes.seq == seq


def test_a_group_that_is_done_can_be_corrected(session):
    session.done(0)
    session.go(0)
    session.pick(0, 4, True)
    assert session.teacher.taught[-1] == [(0, [0, 1, 4])]
    assert session.state()["group"]["done"]
    session.done(0)
    assert session.state()["group"]["number"] == 1
    assert session.state()["accepted"] == {"unchanged": 1, "of": 1}
    session.undo()
    session.undo()
    assert session.teacher.taught[-1] == [(0, [0, 1])]


def test_learning_renews_the_proposal_of_a_group_that_was_not_touched(tmp_path):
    session = open_session(tmp_path / "picks.sqlite", follows=True)
    session.teacher.gate.clear()
    session.done(0)
    assert session.state()["picks"] == [0, 1]
    assert session.state()["learning"]
    session.teacher.gate.set()
    assert settle(session)["picks"] == [0, 1, 2]
    session.pick(1, 4, True)
    session.go(2)
    session.done(2)
    settle(session)
    session.go(1)
    # What was decided on keeps the proposal that it was decided on.
    assert session.state()["picks"] == [0, 1, 2, 4]
    session.close()


def test_the_knob_chooses_anew_and_keeps_what_was_decided(session):
    session.set({"omega": 4.0})
    assert session.state()["picks"] == [0, 1, 2, 3]
    session.pick(0, 0, False)
    session.set({"omega": 0.5})
    state = session.state()
    assert (state["proposal"], state["picks"], state["omega"]) == ([0], [], 0.5)
    session.set({"omega": 2.0})
    assert session.state()["picks"] == [1, 2]


def test_a_target_turns_the_knob(session):
    session.set({"target": {"recall": 0.9}})
    state = session.state()
    assert (state["target"], state["omega"]) == ({"recall": 0.9}, 2.0)
    assert state["picks"] == [0, 1, 2]
    session.set({"omega": 0.5})
    assert session.state()["target"] is None
    session.set({"target": {"precision": 0.8}})
    session.set({"target": None})
    assert session.state()["omega"] == 0.5


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({}, "give omega, target or order"),
        ({"omega": 1.0, "token": "x"}, "give omega, target or order"),
        ({"omega": 0}, "omega is a positive number"),
        ({"omega": "1"}, "omega is a positive number"),
        ({"omega": True}, "omega is a positive number"),
        ({"omega": float("nan")}, "omega is a positive number"),
        ({"omega": 10**400}, "omega is a positive number"),
        ({"target": {"recall": 1.5}}, "a target is"),
        ({"target": {"speed": 0.5}}, "a target is"),
        ({"target": {"recall": 0.5, "precision": 0.5}}, "a target is"),
        ({"target": 0.9}, "a target is"),
        ({"order": "random"}, "order is one of unsure, given"),
        ({"order": ["unsure"]}, "order is one of unsure, given"),
    ],
)
def test_settings_that_make_no_sense(session, changes, words):
    before = seen(session)
    with pytest.raises(SessionError, match=words):
        session.set(changes)
    assert seen(session) == before


def test_what_is_not_there(session):
    with pytest.raises(NoSuchError, match="there is no group 6: there are 6, from 0"):
        session.pick(6, 0, True)
    with pytest.raises(NoSuchError, match="there is no row 5 in group 0, which has 5"):
        session.pick(0, 5, True)
    for act in (session.done, session.go, session.picks):
        with pytest.raises(NoSuchError, match="there is no group -1"):
            act(-1)


def test_picks_that_changed_since_they_were_seen_are_not_accepted(session):
    session.pick(0, 4, True)
    with pytest.raises(ChangedError, match="look again"):
        session.done(0, [0, 1])
    assert session.state()["n_done"] == 0
    session.done(0, [4, 0, 1])
    assert session.state()["n_done"] == 1


def test_two_pages_that_finish_the_same_group(session):
    session.done(0)
    session.done(0)
    state = session.state()
    assert (state["group"]["number"], state["n_done"]) == (1, 1)


def test_learning_that_fails_is_said_and_ends_nothing(session):
    session.teacher.gate.clear()
    session.teacher.problem = "the picks are all alike"
    session.done(0)
    assert session.state()["message"] == "the picks are all alike"
    session.pick(1, 3, True)
    assert session.state()["picks"] == [0, 1, 3]


def test_a_full_disk_changes_nothing(session, monkeypatch):
    session.pick(0, 3, True)
    before = seen(session), session.changes.seq

    def full(*arguments, **settings):
        raise StoreFullError("the disk is full")

    with monkeypatch.context() as patch:
        patch.setattr(session.store, "record", full)
        patch.setattr(session.store, "set", full)
        acts = [
            lambda: session.pick(0, 4, True),
            lambda: session.done(0),
            session.undo,
            lambda: session.go(3),
            lambda: session.set({"omega": 4.0}),
            lambda: session.set({"order": "unsure"}),
        ]
        for act in acts:
            with pytest.raises(StoreFullError):
                act()
            assert (seen(session), session.changes.seq) == before
    session.pick(0, 4, True)
    assert session.state()["picks"] == [0, 1, 3, 4]


# Starting again, and undo ------------------------------------------------------------

ACTS = st.one_of(
    st.tuples(st.just("pick"), st.integers(0, 2), st.integers(0, 4), st.booleans()),
    st.tuples(st.just("done"), st.integers(0, 2)),
    st.tuples(st.just("go"), st.integers(0, 2)),
    st.tuples(st.just("undo")),
    st.tuples(st.just("omega"), st.sampled_from([0.5, 1.0, 2.0, 4.0])),
)


def act(session, what, *details):
    if what == "omega":
        session.set({"omega": details[0]})
    else:
        getattr(session, what)(*details)


@settings(max_examples=30)
@given(acts=st.lists(ACTS, max_size=25))
def test_a_session_goes_on_from_its_store(acts, tmp_path_factory):
    path = tmp_path_factory.mktemp("store") / "picks.sqlite"
    material = FakeMaterial(3)
    session = open_session(path, material)
    for each in acts:
        act(session, *each)
    before, seq = seen(session), session.changes.seq
    session.close()
    session = open_session(path, material)
    assert seen(session) == before
    assert session.changes.seq > seq
    session.close()


@settings(max_examples=30)
@given(acts=st.lists(ACTS.filter(lambda act: act[0] != "omega"), max_size=25))
def test_undo_goes_back_through_every_state(acts, tmp_path_factory):
    # A model of it: the picks, and which groups are done, before each change.
    path = tmp_path_factory.mktemp("store") / "picks.sqlite"
    session = open_session(path, FakeMaterial(3))

    def facts():
        state = seen(session)
        return state["of groups"], state["learned from"], state["accepted"]

    before = []
    for each in acts:
        was = facts()
        if each[0] == "undo":
            act(session, *each)
            assert facts() == (before.pop() if before else was)
            continue
        could_undo = session._history.last
        act(session, *each)
        if session._history.last is not could_undo:
            before.append(was)
    while before:
        assert session.state()["can_undo"]
        session.undo()
        assert facts() == before.pop()
    assert not session.state()["can_undo"]
    session.undo()
    session.close()


def test_undo_without_limit_and_over_a_restart(tmp_path):
    path = tmp_path / "picks.sqlite"
    generator = random.Random(0)
    session = open_session(path)
    first = seen(session)
    for _ in range(200):
        number = generator.randrange(6)
        item = generator.randrange(5)
        session.pick(number, item, item not in session.picks(number))
    session.done(2)
    session.close()
    session = open_session(path)
    for _ in range(201):
        assert session.state()["can_undo"]
        session.undo()
    state = seen(session)
    assert not state["can_undo"]
    assert state["of groups"] == first["of groups"]
    session.close()


def test_undo_shows_the_group_as_it_was(tmp_path):
    session = open_session(tmp_path / "picks.sqlite", follows=True)
    session.pick(0, 4, True)
    session.pick(0, 0, False)
    session.done(0)
    settle(session)
    session.undo()
    state = session.state()
    assert state["group"] == {**state["group"], "number": 0, "done": False}
    assert (state["proposal"], state["picks"]) == ([0, 1], [1, 4])
    session.undo()
    assert session.state()["picks"] == [0, 1, 4]
    session.close()


def test_the_end_of_an_untouched_group_undone_shows_what_was_seen(tmp_path):
    session = open_session(tmp_path / "picks.sqlite", follows=True)
    session.teacher.gate.clear()
    session.done(0)
    session.done(1, [0, 1])
    session.teacher.gate.set()
    settle(session)
    session.undo()
    # Three are proposed by now, but two were seen.
    assert session.state()["group"]["number"] == 1
    assert session.state()["picks"] == [0, 1]
    session.close()


def test_the_order_asked_for_at_the_start_counts(tmp_path):
    session = open_session(tmp_path / "picks.sqlite", order="unsure")
    assert session.state()["order"] == "unsure"
    session.close()


def test_close_ends_the_teacher(tmp_path):
    session = open_session(tmp_path / "picks.sqlite")
    session.close()
    assert session.teacher.is_closed


def test_listeners_are_told_in_order_what_happened(session):
    told = []
    leave = session.changes.listen(told.append)
    session.pick(0, 4, True)
    session.done(0)
    session.set({"omega": 2.0})
    session.go(3)
    settle(session)
    whats = [change["what"] for change in told]
    assert [what for what in whats if what != "learned"] == [
        "picks",
        "done",
        "settings",
        "picks",
    ]
    assert "learned" in whats
    numbers = [change["seq"] for change in told]
    assert numbers == list(range(numbers[0], numbers[0] + len(told)))
    leave()
    session.go(1)
    assert len(told) == len(whats)

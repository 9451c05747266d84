"""A proposal that was looked at stays as it is."""

import pytest
from studio_fakes import open_session, settle

from variegate.studio.history import ShownProposal


@pytest.mark.parametrize(("seconds", "then"), [(0.0, [0, 1, 2]), (60.0, [0, 1, 2, 3])])
def test_a_proposal_does_not_change_under_the_eyes(
    tmp_path, monkeypatch, seconds, then
):
    monkeypatch.setattr(ShownProposal, "SECONDS", seconds)
    session = open_session(tmp_path / "picks.sqlite", follows=True)
    session.done(0)
    assert settle(session)["proposal"] == [0, 1, 2]
    session.done(3)  # by another page; group 1 stays at hand
    state = settle(session)
    assert (state["group"]["number"], state["learned_from"]) == (1, 2)
    assert state["proposal"] == state["picks"] == then
    # What was seen is what is accepted; the next group is proposed by what is newest.
    session.teacher.gate.clear()
    session.done(1, then)
    assert session.state()["accepted"] == {"unchanged": 3, "of": 3}
    assert session.state()["proposal"] == [0, 1, 2, 3]
    session.close()


def test_an_untrained_proposal_gives_way_to_the_first_that_is_learned(
    tmp_path, monkeypatch
):
    monkeypatch.setattr(ShownProposal, "SECONDS", 0.0)
    session = open_session(tmp_path / "picks.sqlite", follows=True)
    session.teacher.gate.clear()
    session.done(0)
    assert session.state()["proposal"] == [0, 1]
    session.teacher.gate.set()
    assert settle(session)["proposal"] == [0, 1, 2]
    session.close()


def test_the_knob_chooses_by_what_is_newest(tmp_path, monkeypatch):
    monkeypatch.setattr(ShownProposal, "SECONDS", 0.0)
    session = open_session(tmp_path / "picks.sqlite", follows=True)
    session.done(0)
    settle(session)
    session.done(3)
    settle(session)
    session.set({"order": "unsure"})
    assert session.state()["proposal"] == [0, 1, 2]
    session.set({"omega": 2.0})
    assert session.state()["proposal"] == [0, 1, 2, 3, 4]
    session.close()

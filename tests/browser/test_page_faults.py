"""The page when its server refuses, is slow, or is gone."""

from fake_material import pictures
from steps import posts, selected, until


def test_a_refused_pick_is_taken_back_and_said(serve, new_page):
    server = serve(pictures())
    page = new_page(server.address)
    before = selected(page)
    server.studio.refusals = [(507, "there is no room left on the disk")]
    page.click("#item-0")
    page.wait_for_selector(".message :text('no room left')")
    until(lambda: selected(page) == before)
    page.click("#item-0")  # the loop goes on when there is room
    until(lambda: server.studio.picks(0) == sorted(set(before) ^ {0}))
    until(lambda: page.query_selector(".message") is None)


def test_a_pick_is_shown_before_it_is_answered_and_said_to_be_unsaved(serve, new_page):
    server = serve(pictures(), delay=1.0)
    page = new_page(server.address)
    before = selected(page)
    page.click("#item-0")
    assert selected(page) == sorted(set(before) ^ {0})
    until(lambda: page.inner_text("#saved") == "Saving …")
    until(lambda: page.inner_text("#saved") == "All saved")
    assert selected(page) == server.studio.picks(0)


def test_fast_picks_arrive_in_order(serve, new_page):
    server = serve(pictures(), delay=0.05)
    page = new_page(server.address)
    page.focus("#items")
    for _ in range(7):
        page.keyboard.press("Space")
    page.keyboard.press("Enter")
    until(lambda: 0 in server.studio.done)
    first = posts(server, "/api/pick")[0]["picked"]
    picked = [body["picked"] for body in posts(server, "/api/pick")]
    assert picked == [first, not first] * 3 + [first]
    assert posts(server, "/api/done")[0]["picks"] == server.studio.picks(0)


def test_a_server_that_is_away_is_said_and_what_was_picked_is_sent_later(
    serve, new_page
):
    server = serve(pictures())
    page = new_page(server.address)
    before = selected(page)
    server.stop()
    page.wait_for_selector(".message :text('does not answer')")
    page.click("#item-0")
    assert selected(page) == sorted(set(before) ^ {0})
    until(lambda: page.inner_text("#saved") == "Not saved yet")
    server.start()
    until(lambda: server.studio.picks(0) == sorted(set(before) ^ {0}), seconds=20.0)
    until(lambda: page.query_selector(".message") is None, seconds=20.0)
    until(lambda: page.inner_text("#saved") == "All saved")
    server.studio.post("/api/pick", {"group": 0, "item": 1, "picked": True})
    until(lambda: 1 in selected(page))  # and follows events again


def test_a_server_that_counts_anew_is_followed(serve, new_page):
    server = serve(pictures(), seq=500)
    page = new_page(server.address)
    server.stop()
    server.studio.seq = 0
    server.studio.group = 3
    server.start()
    until(lambda: page.inner_text("#name") == "Page 4", seconds=20.0)


def test_one_who_is_not_let_in_is_told_what_to_do(serve, new_page):
    server = serve(pictures())
    page = new_page(server.address)
    server.studio.refusals = [(403, "no token")]
    page.click("#item-0")
    page.wait_for_selector(".message :text('Open the address')")


def test_done_on_picks_that_changed_meanwhile_is_refused_and_shown_again(
    serve, new_page
):
    server = serve(pictures())
    page = new_page(server.address)
    server.studio.refusals = [(409, "the picks have changed meanwhile: look again")]
    page.keyboard.press("Enter")
    page.wait_for_selector(".message :text('look again')")
    assert page.inner_text("#name") == "Page 1"
    page.wait_for_selector("#done:enabled")
    page.keyboard.press("Enter")
    until(lambda: page.inner_text("#name") == "Page 2")

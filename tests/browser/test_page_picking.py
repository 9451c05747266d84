"""The studio's page in a real browser, in front of a made-up server."""

import re
from itertools import pairwise

import pytest
from fake_material import documents, pictures, rows
from steps import active, go_to, posts, selected, until

EVIL = "<script>window.owned=1</script><img src=x onerror='window.owned=1'>\u202e&amp;"


def test_several_groups_by_keys_alone(serve, new_page):
    server = serve(pictures())
    page = new_page(server.address)
    studio = server.studio
    seen = []

    def finish(number):
        until(lambda: page.inner_text("#name") == f"Page {number + 1}")
        until(lambda: selected(page) == studio.picks(number))
        wanted = sorted(set(studio.picks(number)) ^ {1, 8})
        for item in (1, 8):
            go_to(page, item)
            page.keyboard.press("Space")
        assert selected(page) == wanted
        until(lambda: studio.picks(number) == wanted)
        page.keyboard.press("Enter")
        until(lambda: number in studio.done)
        seen.append((number, wanted))

    for number in range(4):
        finish(number)
    ended = [(body["group"], body["picks"]) for body in posts(server, "/api/done")]
    assert ended == seen


def test_arrows_move_in_rows_and_columns(serve, new_page):
    page = new_page(serve(pictures()).address)
    across = page.evaluate(
        "(() => { const tops = [...document.querySelectorAll('.item')]"
        ".map(node => node.getBoundingClientRect().top);"
        "return tops.filter(top => top === tops[0]).length })()"
    )
    assert across > 2
    for key, place in [
        ("ArrowRight", 1),
        ("ArrowDown", 1 + across),
        ("ArrowLeft", across),
        ("ArrowUp", 0),
        ("ArrowUp", 0),
        ("ArrowLeft", 0),
        ("End", 19),
        ("ArrowRight", 19),
        ("Home", 0),
    ]:
        page.keyboard.press(key)
        assert active(page) == place, key


def test_undo_goes_back_through_groups(serve, new_page):
    server = serve(pictures())
    page = new_page(server.address)
    assert page.is_disabled("#undo")
    first = server.studio.picks(0)
    page.keyboard.press("Space")
    page.keyboard.press("Enter")
    until(lambda: page.inner_text("#name") == "Page 2")
    page.keyboard.press("Space")
    until(lambda: len(server.studio.past) == 3)
    for _ in range(3):
        until(lambda: page.is_enabled("#undo"))
        page.keyboard.press("u")
        until(lambda: page.inner_text("#saved") == "All saved")
    until(lambda: page.inner_text("#name") == "Page 1")
    until(lambda: selected(page) == first)
    assert server.studio.done == {}
    until(lambda: page.is_disabled("#undo"))


def test_the_mouse_chooses_and_asks_why(serve, new_page):
    server = serve(pictures(), learned_from=2)
    page = new_page(server.address)
    before = selected(page)
    page.click("#item-5")
    assert selected(page) == sorted(set(before) ^ {5})
    until(lambda: server.studio.picks(0) == selected(page))
    page.hover("#item-9")
    page.click("#item-9 .ask")
    until(lambda: page.inner_text("#why-title") == "digit 9")
    page.wait_for_selector("#why-body :text('sharpness')")
    assert selected(page) == sorted(set(before) ^ {5})  # asking chooses nothing


def test_a_finger_chooses_and_holding_it_asks_why(serve, new_page):
    server = serve(pictures(), learned_from=2)
    page = new_page(server.address, width=390, height=844, has_touch=True)
    before = selected(page)
    page.tap("#item-4")
    until(lambda: server.studio.picks(0) == sorted(set(before) ^ {4}))
    page.evaluate(
        "document.getElementById('item-1').dispatchEvent(new PointerEvent("
        "'pointerdown', {bubbles: true, pointerType: 'touch'}))"
    )
    until(lambda: page.is_visible("#why-title"))
    assert page.inner_text("#why-title") == "digit 1"
    page.tap("#show-panels")
    until(lambda: page.is_visible("#item-4"))
    page.tap("#done")
    until(lambda: 0 in server.studio.done)


def test_letters_can_be_turned_off(serve, new_page):
    server = serve(pictures())
    page = new_page(server.address)
    page.keyboard.press("?")
    assert page.is_visible("#help")
    page.uncheck("#letters")
    page.keyboard.press("Escape")
    assert not page.is_visible("#help")
    page.focus("#items")
    page.keyboard.press("?")
    assert not page.is_visible("#help")
    page.keyboard.press("Space")  # goes on to be a key
    until(lambda: posts(server, "/api/pick"))


def test_two_tabs_stay_in_step(serve, new_page):
    server = serve(pictures())
    one = new_page(server.address)
    two = new_page(server.address, context=one.context)
    one.click("#item-2")
    until(lambda: selected(two) == selected(one))
    two.click("#item-11")
    until(lambda: selected(one) == selected(two))
    assert {2, 11} <= set(server.studio.decided[0])
    two.click("#done")
    for page in (one, two):
        until(lambda page=page: page.inner_text("#name") == "Page 2")
        until(lambda page=page: "1 of 12" in page.inner_text("#progress"))
        until(lambda page=page: "Learned from 1" in page.inner_text("#learning"))


def test_the_knob_chooses_at_once_and_keeps_what_was_decided(serve, new_page):
    server = serve(pictures(), learned_from=3)
    page = new_page(server.address)
    studio = server.studio
    until(lambda: page.is_enabled("#omega"))
    dropped = studio.picks(0)[0]
    page.click(f"#item-{dropped}")
    until(lambda: dropped not in studio.picks(0))
    few = len(selected(page))
    assert page.inner_text("#precision") == "0.70"  # at omega 1, by the fake's path
    page.focus("#omega")
    for _ in range(12):
        page.keyboard.press("ArrowRight")
    # A quarter of the way from the middle to the end: between omega 1 and 16.
    until(lambda: studio.omega == pytest.approx(4.0, rel=1e-3))
    until(lambda: selected(page) == studio.picks(0))
    assert len(selected(page)) > few
    assert dropped not in selected(page)
    assert page.inner_text("#recall") == "0.79"
    assert "expected precision 0.60" in page.get_attribute("#omega", "aria-valuetext")


def test_dragging_the_knob_previews_before_it_is_let_go(serve, new_page):
    server = serve(pictures(), learned_from=3)
    page = new_page(server.address)
    until(lambda: page.is_enabled("#omega"))
    before = len(selected(page))
    box = page.locator("#omega").bounding_box()
    middle = box["y"] + box["height"] / 2
    page.mouse.move(box["x"] + box["width"] / 2, middle)
    page.mouse.down()
    page.mouse.move(box["x"] + box["width"] * 0.9, middle, steps=5)
    until(lambda: len(selected(page)) > before)
    assert posts(server, "/api/settings") == []
    page.mouse.up()
    until(lambda: len(posts(server, "/api/settings")) == 1)
    until(lambda: selected(page) == server.studio.picks(0))


def test_a_target_is_set_and_a_bad_one_is_refused_in_words(serve, new_page):
    server = serve(pictures(), learned_from=3)
    page = new_page(server.address)
    until(lambda: page.is_enabled("#omega"))
    page.click("summary")
    page.select_option("#target", "recall")
    until(lambda: server.studio.target == {"recall": 0.9})
    page.fill("#target-value", "7")
    page.press("#target-value", "Enter")
    page.wait_for_selector(".message :text('at most 1')")
    page.select_option("#target", "")
    until(lambda: server.studio.target is None)


def test_2000_rows_scroll_with_few_nodes(serve, new_page):
    server = serve(rows(size=2000))
    page = new_page(server.address)
    count = "document.getElementsByTagName('*').length"
    assert page.evaluate("document.querySelectorAll('[role=option]').length") < 60
    seen = set()
    page.evaluate("document.getElementById('tab-map').click()")
    for _ in range(40):
        page.keyboard.press("PageDown")
        seen.add(active(page))
        assert page.evaluate(count) < 1500
    page.keyboard.press("End")
    assert active(page) == 1999
    last = page.locator("#item-1999")
    assert last.get_attribute("aria-setsize") == "2000"
    assert last.get_attribute("aria-posinset") == "2000"
    inside, around = last.bounding_box(), page.locator("#items").bounding_box()
    assert inside["y"] + inside["height"] <= around["y"] + around["height"] + 1
    page.keyboard.press("Space")
    until(lambda: 1999 in server.studio.decided.get(0, {}))
    assert page.evaluate(count) < 1500
    page.mouse.move(400, 400)
    page.mouse.wheel(0, -30_000)
    until(lambda: page.query_selector("#item-1999") is None)
    page.keyboard.press("ArrowUp")  # the keys lead back to where they were
    assert active(page) == 1998
    assert page.locator("#item-1998").is_visible()


def test_rows_of_different_height_never_overlap(serve, new_page):
    page = new_page(serve(documents()).address, width=390, height=844)
    for _ in range(12):
        page.evaluate("document.getElementById('items').scrollTop += 300")
        page.wait_for_timeout(30)
        boxes = page.evaluate(
            "[...document.querySelectorAll('.item')].map(node => {"
            "const box = node.getBoundingClientRect(); return [box.top, box.bottom] })"
        )
        boxes.sort()
        for (_, bottom), (top, _) in pairwise(boxes):
            assert bottom <= top


def test_scripts_in_names_and_cells_are_text(serve, new_page):
    server = serve(rows(evil=EVIL), learned_from=5)
    learned = server.studio.learned()
    learned["weights"] = [{"name": EVIL, "weight": 1.0}]
    learned["kinds"] = [{"name": EVIL, "share": 0.5, "description": EVIL}]
    learned["comparison"] = learned["verdict"] = EVIL
    server.studio.learned = lambda: learned
    server.studio.refusals = [(409, EVIL)]
    page = new_page(server.address)
    page.keyboard.press("Space")
    page.wait_for_selector(".message")
    for tab in ("why", "map", "learned"):
        page.click(f"#tab-{tab}")
        page.wait_for_timeout(200)
    page.click("#open-groups")
    page.wait_for_selector("#group-sheet li")
    assert page.evaluate("window.owned") is None
    assert (
        page.evaluate("document.querySelectorAll('main img, main script').length") == 0
    )
    assert EVIL[:20] in page.inner_text("#name")
    assert "<script>" in page.inner_text("#item-0")
    assert "<script>" in page.inner_text("#group-sheet")
    assert "<script>" in page.inner_text(".message")


def test_thumbnails_are_asked_for_when_they_come_into_sight(serve, new_page):
    server = serve(pictures(n_groups=1, size=600))
    page = new_page(server.address)

    def asked():
        return {p for kind, p, _ in server.studio.requests if p.startswith("/image/")}

    until(lambda: "/image/0/0" in asked())
    page.wait_for_timeout(300)
    assert len(asked()) < 120
    page.keyboard.press("End")
    until(lambda: "/image/0/599" in asked())
    assert len(asked()) < 300


def test_colours_follow_the_system_and_the_switch(serve, new_page):
    server = serve(pictures())
    background = "getComputedStyle(document.body).backgroundColor"
    dark = new_page(server.address, color_scheme="dark")
    light = new_page(server.address, color_scheme="light")
    night, day = dark.evaluate(background), light.evaluate(background)
    assert night != day
    assert dark.get_attribute("#theme", "aria-pressed") == "true"
    light.click("#theme")
    assert light.evaluate(background) == night
    light.reload()  # and the switch is remembered
    light.wait_for_selector("[role=option]")
    assert light.evaluate(background) == night


def test_groups_are_listed_and_gone_to(serve, new_page):
    server = serve(rows(n_groups=900, size=5))
    page = new_page(server.address)
    page.keyboard.press("g")
    page.wait_for_selector("#group-sheet [aria-current]")
    assert page.evaluate("document.querySelectorAll('#group-sheet li').length") < 60
    page.keyboard.press("ArrowDown")
    page.keyboard.press("ArrowDown")
    page.keyboard.press("Enter")
    until(lambda: page.inner_text("#name") == "query 3")
    page.keyboard.press("g")
    page.evaluate("document.getElementById('group-list').scrollTop = 1e6")
    page.click("#group-sheet li[data-n='899'] button")
    until(lambda: page.inner_text("#name") == "query 900")
    page.click("#open-groups")
    page.select_option("#order", "given")
    until(lambda: server.studio.order == "given")


def test_exports_are_downloaded_and_refusals_are_said(serve, new_page):
    page = new_page(serve(pictures()).address)
    page.click("#open-export")
    with page.expect_download() as download:
        page.click("a[href='/export/picks.csv']")
    assert download.value.suggested_filename == "picks.csv"
    page.click("a[href='/export/model.json']")
    until(lambda: "no such page" in page.inner_text("#exporting"))
    page.keyboard.press("Escape")
    assert not page.is_visible("#export")
    assert page.evaluate("document.activeElement.id") == "open-export"


def test_nothing_moves_while_it_learns(serve, new_page):
    server = serve(pictures())
    page = new_page(server.address)
    page.click("#tab-learned")
    page.wait_for_timeout(300)
    page.evaluate(
        "window.moved = 0; new PerformanceObserver(list => {"
        "for (const entry of list.getEntries()) window.moved += entry.value"
        "}).observe({type: 'layout-shift', buffered: false})"
    )
    frames = "['#items', '#done', '#omega', '#accepted', '#weights'].map(where => {"
    frames += "const box = document.querySelector(where).getBoundingClientRect();"
    frames += "return [box.x, box.y] })"
    places = page.evaluate(frames)
    for number in range(3):
        page.keyboard.press("Enter")
        until(lambda number=number: server.studio.learned_from == number + 1)
        text = f"Learned from {number + 1}"
        until(lambda text=text: text in page.inner_text("#learning"))
        page.wait_for_timeout(200)
        assert page.evaluate(frames) == places
    assert page.evaluate("window.moved") < 0.01


def test_what_changed_is_shown_after_learning(serve, new_page):
    server = serve(pictures())
    page = new_page(server.address)
    page.click("#tab-learned")
    for _ in range(2):
        name = page.inner_text("#name")
        page.focus("#items")
        page.keyboard.press("Enter")
        until(lambda name=name: page.inner_text("#name") != name)
        until(lambda: not server.studio.learning)
    until(lambda: "0.60 after 2 groups (0.40 before)" in page.inner_text("#curve-note"))
    assert re.search(r"sharpness\s+was \+0\.50", page.inner_text("#weights"))
    assert page.inner_text("#accepted b") == "2 of 2"
    assert "untrained 0.42" in page.get_attribute("#curve", "aria-label")
    assert page.inner_text("#verdict") == server.studio.learned()["verdict"]

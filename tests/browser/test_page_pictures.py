"""Pictures are as large as wanted, and nothing that is shown is cut off."""

import pytest
from fake_material import FakeMaterial, documents, pictures, rows
from steps import active, selected, until


def width_of(page, selector):
    return page.eval_on_selector(selector, "node => node.getBoundingClientRect().width")


def asked_widths(server):
    """Return the widths of pictures that were asked for, by item."""
    found = {}
    for _, path, query in server.studio.requests:
        if path.startswith("/image/0/"):
            item = int(path.split("/")[-1])
            found.setdefault(item, set()).add(int(query["width"]))
    return found


def test_a_picture_is_enlarged_by_key_mouse_and_why(serve, new_page):
    server = serve(pictures(), learned_from=2)
    page = new_page(server.address)
    before = selected(page)
    page.keyboard.press("ArrowRight")
    page.keyboard.press("z")
    page.wait_for_selector("#zoom[open]")
    assert page.inner_text("#zoom-title") == "digit 1"
    until(lambda: max(asked_widths(server).get(1, {0})) >= 1280)
    assert width_of(page, "#zoom-picture") > 1000
    page.keyboard.press("ArrowRight")
    until(lambda: page.inner_text("#zoom-title") == "digit 2")
    page.keyboard.press("Space")
    until(lambda: selected(page) == sorted(set(before) ^ {2}))
    is_chosen = page.get_attribute("#zoom-pick", "aria-pressed")
    assert is_chosen == str(2 not in before).lower()
    page.keyboard.press("Escape")
    assert not page.is_visible("#zoom")
    assert active(page) == 2
    page.hover("#item-7")
    page.click("#item-7 .zoom")
    until(lambda: page.inner_text("#zoom-title") == "digit 7")
    page.click("#zoom-picture")
    assert not page.is_visible("#zoom")
    page.click("#why-body .shown")
    page.wait_for_selector("#zoom[open]")
    assert selected(page) == sorted(set(before) ^ {2})  # to look at it chooses nothing


def test_texts_have_nothing_to_enlarge(serve, new_page):
    page = new_page(serve(documents()).address)
    page.keyboard.press("z")
    assert not page.is_visible("#zoom")
    assert not page.is_visible("#larger")


def test_the_size_of_pictures_is_set_and_remembered(serve, new_page):
    address = serve(pictures()).address
    page = new_page(address)
    widths = [width_of(page, "#item-0")]
    for _ in range(3):
        page.click("#larger")
        widths.append(width_of(page, "#item-0"))
    assert widths == sorted(set(widths))
    again = new_page(address, context=page.context)
    assert width_of(again, "#item-0") == widths[-1]
    for _ in range(12):
        page.click("#larger")
    assert width_of(page, "#item-0") > 700  # one beside no other
    page.click("#smaller")
    assert width_of(page, "#item-0") < 450
    for _ in range(20):
        page.click("#smaller")
    assert 60 < width_of(page, "#item-0") < widths[0]


def test_pictures_of_rows_grow_too(serve, new_page):
    made = rows(size=4)
    for item in made.items[0]:
        item["image"] = True
    made.picture = pictures(1).picture
    page = new_page(serve(made).address)
    before = width_of(page, "#item-0 .picture")
    page.click("#larger")
    assert width_of(page, "#item-0 .picture") > before


def test_no_probability_is_shown_before_anything_is_learned(serve, new_page):
    server = serve(pictures(), learned_from=0)
    page = new_page(server.address)
    page.wait_for_selector("#why-body h3")
    assert page.inner_text("#item-0 .chance") == ""
    assert "probability" not in page.inner_text("#why-body")
    assert "Nothing is learned yet" in page.inner_text("#why-body")
    page = new_page(serve(pictures(), learned_from=2).address)
    until(lambda: page.inner_text("#item-0 .chance").endswith("%"))
    until(lambda: "probability" in page.inner_text("#why-body"))
    assert "31 %" in page.inner_text("#why-body")  # a value as DATA has it


def long_rows():
    """Rows with more and longer columns than a narrow page has room for."""
    fields = [[f"column {k}", f"value {k} of a long table"] for k in range(12)]
    text = "A sentence that goes on for a while before it ends. " * 12
    item = {"title": "A title of a row " * 4, "text": text, "fields": fields}
    items = [[item | {"image": False} for _ in range(5)]]
    return FakeMaterial("table", ("row", "rows"), ["a query of many words " * 3], items)


def long_names():
    """Pictures with names as cameras and telephones give them."""
    made = pictures(1)
    for n, item in enumerate(made.items[0]):
        item["title"] = f"IMG_20240612_1234{n:02d}~2.jpg"
    return made


#: Elements with content that is larger than they are, and hides what is over.
CUT = """() => [...document.querySelectorAll(
    'h1, .facts, .title, .item .text, .item .field, .item .fields *, .foot, .foot *, '
    + '.actions *, .knob dd, .knob dt, .learning span')]
  .filter(node => node.checkVisibility({ visibilityProperty: true }))
  .filter(node => {
    const style = getComputedStyle(node);
    return style.position !== 'absolute' && style.fontSize !== '0px';
  })
  .filter(node => node.clientWidth && node.scrollWidth > node.clientWidth + 1
    || node.clientHeight && node.scrollHeight > node.clientHeight + 2
    && getComputedStyle(node).overflow !== 'visible'
    || node.getBoundingClientRect().right > innerWidth)
  .map(node => `${node.tagName}.${node.className}: ${node.textContent.slice(0, 40)}`)"""


@pytest.mark.parametrize("make", [long_rows, long_names, documents, rows])
def test_nothing_is_cut_on_a_narrow_page(serve, new_page, make):
    server = serve(make(), learned_from=3)
    page = new_page(server.address, width=390, height=844)
    until(lambda: page.is_enabled("#omega"))
    until(lambda: page.inner_text("#item-0 .chance").endswith("%"))
    assert page.evaluate(CUT) == []
    if make is long_rows:
        shown = page.inner_text("#item-0")
        assert all(f"value {k} of a long table" in shown for k in range(12))
    page.evaluate(
        "Object.assign(document.querySelector('#item-0 .title').style, "
        "{width: '40px', overflow: 'hidden', whiteSpace: 'nowrap', display: 'block'})"
    )
    assert len(page.evaluate(CUT)) == 1  # the check notices

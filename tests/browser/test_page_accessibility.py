"""The page can be used by those who do not see it, see it badly, or have no mouse."""

import pytest
from accessibility import violations
from fake_material import documents, pictures, rows
from steps import until

MATERIALS = {"pictures": pictures, "documents": documents, "rows": rows}
SIZES = {"wide": (1280, 800), "narrow": (390, 844)}


@pytest.mark.parametrize("colours", ["light", "dark"])
@pytest.mark.parametrize("size", list(SIZES))
@pytest.mark.parametrize("material", list(MATERIALS))
def test_nothing_is_found(serve, new_page, material, size, colours):
    server = serve(MATERIALS[material](), learned_from=5)
    width, height = SIZES[size]
    page = new_page(server.address, width, height, color_scheme=colours)
    until(lambda: page.is_enabled("#omega"))
    page.keyboard.press("Space")
    page.wait_for_selector("#why-body h3", state="attached")
    assert violations(page) == []
    if size == "narrow":
        page.click("#show-panels")
    page.click("summary")
    for tab in ("why", "map", "learned"):
        page.click(f"#tab-{tab}")
        page.wait_for_timeout(200)
        assert violations(page, with_focus=tab == "learned") == []


@pytest.mark.parametrize("colours", ["light", "dark"])
def test_nothing_is_found_in_dialogs_and_messages(serve, new_page, colours):
    server = serve(pictures(), learned_from=5, done={0: True})
    page = new_page(server.address, color_scheme=colours)
    page.keyboard.press("?")
    assert violations(page, with_focus=False) == []
    page.keyboard.press("Escape")
    page.keyboard.press("z")
    page.wait_for_selector("#zoom[open]")
    assert violations(page, with_focus=False) == []
    page.keyboard.press("Escape")
    page.keyboard.press("g")
    page.wait_for_selector("#group-sheet [aria-current]")
    assert violations(page, with_focus=False) == []
    page.keyboard.press("Escape")
    page.click("#open-export")
    assert violations(page, with_focus=False) == []
    page.keyboard.press("Escape")
    server.studio.refusals = [(507, "there is no room left on the disk")]
    page.click("#item-3")
    page.wait_for_selector(".message")
    assert violations(page) == []


def test_it_fits_a_page_that_is_enlarged_fourfold(serve, new_page):
    page = new_page(serve(rows(), learned_from=5).address, width=320, height=640)
    assert violations(page, with_focus=False) == []


#: Ways to spoil the page, and the rule that must notice.
SPOILS = {
    "contrast: p facts": "document.getElementById('facts').style.color = '#bbb'",
    "contrast: at its edge": "document.getElementById('undo').disabled = false;"
    "document.getElementById('undo').style.borderColor = '#eee'",
    "target": "document.getElementById('theme').style.cssText = "
    "'height:20px;min-height:0'",
    "role: button": "document.querySelector('.item').append("
    "document.createElement('button'))",
    "role: is not in a": "document.querySelector('main').append("
    "document.querySelector('.item'))",
    "reference: leads to no": "document.getElementById('sheet').id = 'other'; "
    "document.getElementById('tab-why').setAttribute('aria-controls', 'nothing')",
    "reference: two are": "document.getElementById('count').id = 'changes'",
    "name: a button": "document.getElementById('theme').removeAttribute('aria-label');"
    "document.getElementById('theme').removeAttribute('title')",
    "name: a slider": "document.getElementById('omega')"
    ".removeAttribute('aria-labelledby')",
    "page: has no language": "document.documentElement.lang = ''",
    "page: is wider": "document.body.style.width = '3000px'",
    "landmark: there is not one main": "document.body.append("
    "document.createElement('main'))",
    "landmark: is in no": "document.body.append(document.createElement('p'))",
    "heading: h4 follows": "document.getElementById('knob-title').outerHTML = "
    "'<h4 id=knob-title>Precise</h4>'",
    "live: there are no alerts": "document.getElementById('messages')"
    ".removeAttribute('role')",
    "focus: went": "document.getElementById('open-help').onfocus = () => "
    "document.getElementById('open-groups').focus()",
    "focus: nothing shows": "document.getElementById('done').style.outline = 'none'",
}


@pytest.mark.parametrize("finding", list(SPOILS))
def test_the_check_notices(serve, new_page, finding):
    page = new_page(serve(pictures(), learned_from=5).address)
    until(lambda: page.is_enabled("#omega"))
    page.wait_for_timeout(200)
    page.evaluate(SPOILS[finding])
    rule, _, words = finding.partition(": ")
    found = [line.replace("#", "") for line in violations(page)]
    assert any(line.startswith(rule) and words in line for line in found), found

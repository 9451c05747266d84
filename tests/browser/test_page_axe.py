"""What axe-core finds on the page: nothing.

The rules of our own in accessibility.py go further where they go at all (what is drawn,
the order of focus); axe-core has all those that are usual.
"""

import pytest
from axe_playwright_python.sync_playwright import Axe
from fake_material import documents, pictures, rows
from steps import until

MATERIALS = {"pictures": pictures, "documents": documents, "rows": rows}
VIEWS = {"wide, light": (1280, 800, "light"), "narrow, dark": (390, 844, "dark")}


def found(page):
    """Return the violations, each with the first piece of the page that has it."""
    violations = Axe().run(page).response["violations"]
    return [
        f"{one['impact']}: {one['help']}: {one['nodes'][0]['html']}"
        for one in violations
    ]


@pytest.mark.parametrize("view", VIEWS)
@pytest.mark.parametrize("material", MATERIALS)
def test_axe_finds_nothing(serve, new_page, material, view):
    server = serve(MATERIALS[material](), learned_from=5)
    width, height, colours = VIEWS[view]
    page = new_page(server.address, width, height, color_scheme=colours)
    until(lambda: page.is_enabled("#omega"))
    page.wait_for_selector("#why-body h3", state="attached")
    assert found(page) == []
    if width < 500:
        page.click("#show-panels")
    for tab in ("map", "learned"):
        page.click(f"#tab-{tab}")
        page.wait_for_timeout(200)
        assert found(page) == []


def test_axe_finds_what_is_wrong(serve, new_page):
    page = new_page(serve(pictures(), learned_from=5).address)
    page.evaluate("document.getElementById('omega').removeAttribute('aria-labelledby')")
    page.evaluate("document.querySelectorAll('label').forEach(one => one.remove())")
    assert any("label" in one for one in found(page))

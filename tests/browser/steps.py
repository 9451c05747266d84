"""What the tests do and see in the page."""

import time


def until(check, *arguments, seconds=30.0):
    """Wait until something is so; fail if it does not come to be."""
    end = time.monotonic() + seconds
    while not (found := check(*arguments)):
        assert time.monotonic() < end, "waited in vain"
        time.sleep(0.03)
    return found


def selected(page):
    """Return the items that the page shows as chosen, of those it has."""
    return page.evaluate(
        "[...document.querySelectorAll('[role=option][aria-selected=true]')]"
        ".map(node => Number(node.dataset.n)).sort((a, b) => a - b)"
    )


def active(page):
    node = page.get_attribute("#items", "aria-activedescendant")
    return int(node.removeprefix("item-"))


def posts(server, path):
    return [
        body
        for kind, at, body in server.studio.requests
        if (kind, at) == ("POST", path)
    ]


def go_to(page, item):
    """Go to an item by the arrows alone."""
    while (here := active(page)) != item:
        page.keyboard.press("ArrowRight" if here < item else "ArrowLeft")

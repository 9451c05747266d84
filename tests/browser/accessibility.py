"""A check of accessibility in a real browser, where axe-core is not to be had.

Each rule says what WCAG 2.2 (levels A and AA) asks for:

contrast   text has 4.5 : 1 to what is behind it, large text 3 : 1; edges of controls
           and the ring and tick of what is chosen 3 : 1 (1.4.3, 1.4.11)
target     controls are 24 pixels wide and high, and 40 high in the bars of a narrow
           page (2.5.8)
role       roles are those that the page is made of, items in their list, tabs in
           theirs, states said, no control within a control, none hidden (4.1.2)
reference  what labels, describes or is controlled is there, once (1.3.1, 4.1.2)
name       what Chromium takes for a control, a list, a dialog, a picture or a landmark
           has a name (4.1.2, 1.1.1, 3.3.2)
page       language, title, enlarging, no scrolling sideways (3.1.1, 2.4.2, 1.4.4,
           1.4.10)
landmark   one main, one banner, everything in a landmark, names that differ (1.3.1,
           2.4.1)
heading    one h1, no level left out (1.3.1)
live       there are places for what is announced and for alerts (4.1.3)
focus      Tab comes to every control that is in sight, once, in the order of the page,
           with a visible outline, and leaves again (2.1.1, 2.1.2, 2.4.3, 2.4.7)

``violations`` returns sentences; an empty list is what a page must have.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

SCRIPT = (Path(__file__).parent / "accessibility.js").read_text()

#: What must have a name, as Chromium computes it for those who listen to a page.
NAMED = {
    "button",
    "checkbox",
    "combobox",
    "complementary",
    "dialog",
    "image",
    "link",
    "listbox",
    "option",
    "region",
    "slider",
    "spinbutton",
    "tab",
    "tablist",
    "tabpanel",
    "textbox",
}

#: What Tab should come to, as far as it is in sight: tabs of a row count as one.
_STOPS = """() => [...document.querySelectorAll(
  "a[href], button:not(:disabled), input:not(:disabled), select:not(:disabled), "
  + "summary, [tabindex]")]
  .filter(e => e.tabIndex >= 0 && e.checkVisibility({visibilityProperty: true}))
  .map(e => e.id || e.textContent.trim())"""

_HERE = """() => { const e = document.activeElement;
  if (!e || e === document.body) return null;
  const item = e.id === 'items' ? document.querySelector('.item.active') : e;
  const style = getComputedStyle(item ?? e);
  return [e.id || e.textContent.trim(),
          style.outlineStyle !== 'none' && parseFloat(style.outlineWidth) >= 2] }"""

#: Waits until nothing in the page has changed for 300 ms, five seconds at most.
_QUIET = """() => new Promise(resolve => {
  const observer = new MutationObserver(restart);
  const end = () => { observer.disconnect(); resolve() };
  let timer = setTimeout(end, 300);
  function restart() { clearTimeout(timer); timer = setTimeout(end, 300) }
  const what = {subtree: true, childList: true, attributes: true, characterData: true};
  observer.observe(document.body, what);
  setTimeout(end, 5000);
})"""


def violations(page: Any, with_focus: bool = True) -> list[str]:
    """Return what is wrong with a page, in sentences."""
    page.evaluate(_QUIET)
    found = list(page.evaluate(SCRIPT))
    found += nameless(page)
    if with_focus:
        # Focus on an item changes the panel beside it, perhaps while Tab is pressed.
        wrong = focus_order(page)
        for _ in range(2):
            if wrong:
                page.evaluate(_QUIET)
                wrong = focus_order(page)
        found += wrong
    return found


def nameless(page: Any) -> list[str]:
    """Return the nodes of Chromium's accessibility tree that have no name."""
    session = page.context.new_cdp_session(page)
    nodes = session.send("Accessibility.getFullAXTree")["nodes"]
    session.detach()
    found = []
    for node in nodes:
        role = node.get("role", {}).get("value")
        if node.get("ignored") or role not in NAMED:
            continue
        if not node.get("name", {}).get("value", "").strip():
            found.append(f"name: a {role} has none")
    return found


def focus_order(page: Any) -> list[str]:
    """Press Tab around the page, and return where that goes wrong."""
    page.evaluate("document.activeElement?.blur(); window.scrollTo(0, 0)")
    expected = page.evaluate(_STOPS)
    # Focus starts at the top, wherever it was.
    page.evaluate(
        "(() => { const top = document.createElement('span'); top.tabIndex = -1;"
        "document.body.prepend(top); top.focus(); top.remove() })()"
    )
    visited, found = [], []
    for _ in range(len(expected) + 3):
        page.keyboard.press("Tab")
        here = page.evaluate(_HERE)
        if here is None or (visited and here[0] == visited[0]):
            break
        name, outlined = here
        visited.append(name)
        if not outlined:
            found.append(f"focus: nothing shows that {name!r} has it")
    if visited != expected:
        found.append(f"focus: went {visited}, the page has {expected}")
    return found

"""Make the screenshots of the documentation, in a real browser.

``python scripts/studio_screenshots.py [FOLDER]``, by default into ``docs/images``.  A
scripted person picks the sharpest of each digit on a few pages first, so that there is
something to see.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from studio_browser import Person, chromium, studio, write_digits

ROOT = Path(__file__).parent.parent
WIDE = {"width": 1280, "height": 800}
NARROW = {"width": 390, "height": 844}

#: Groups that the person does first.
LEARNED_FROM = 8


def main(into: Path) -> None:
    """Take all of them."""
    into.mkdir(parents=True, exist_ok=True)
    with TemporaryDirectory() as name, chromium() as browser:
        folder = Path(name)
        rule = write_digits(folder / "digits", 16)
        with studio(folder / "digits", "--store", folder / "p.sqlite") as address:
            first = _open(browser, address, WIDE, "light")
            person = Person(first, rule)
            for _ in range(LEARNED_FROM):
                person.finish()
            state = person.arrive()
            wrong = set(state["picks"]) ^ rule(state["group"]["number"])
            for item in sorted(wrong)[:2]:
                first.click(f"#item-{item}")
            first.close()
            for size, view in (("wide", WIDE), ("narrow", NARROW)):
                for colours in ("light", "dark"):
                    page = _open(browser, address, view, colours)
                    _shoot(page, into / f"studio-{size}-{colours}.png")
                    if size == "wide" and colours == "light":
                        _panels(page, into)
                    page.close()
            _contact_sheet(browser, address, folder, into)


def _open(browser: Any, address: str, view: dict[str, int], colours: str) -> Any:
    page = browser.new_page(
        viewport=view, color_scheme=colours, reduced_motion="reduce"
    )
    page.goto(address)
    page.wait_for_selector("[role=option][aria-selected=true]")
    return page


def _panels(page: Any, into: Path) -> None:
    for name in ("map", "learned"):
        page.click(f"#tab-{name}")
        _shoot(page, into / f"studio-{name}.png")
    page.click("#tab-why")
    page.focus("#items")
    page.keyboard.press("z")
    _shoot(page, into / "studio-zoom.png")
    page.keyboard.press("Escape")


def _contact_sheet(browser: Any, address: str, folder: Path, into: Path) -> None:
    """Choose from new pictures by the model of the studio."""
    page = _open(browser, address, WIDE, "light")
    text = page.evaluate("fetch('/export/model.json').then(answer => answer.text())")
    page.close()
    (folder / "model.json").write_text(text)
    write_digits(folder / "new", 1, seed=1)
    sheet = folder / "chosen.html"
    command = [sys.executable, "-m", "variegate", "select", folder / "new"]
    command += ["--model", folder / "model.json", "-o", folder / "chosen.csv"]
    subprocess.run([*map(str, command), "--html", str(sheet)], check=True)
    page = browser.new_page(viewport=WIDE)
    page.goto(sheet.as_uri())
    _shoot(page, into / "studio-contact-sheet.png")
    page.close()


def _shoot(page: Any, path: Path) -> None:
    page.wait_for_timeout(1500)  # pictures, and why
    page.mouse.move(0, 0)
    page.screenshot(path=path)
    print(path)


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else ROOT / "docs" / "images")

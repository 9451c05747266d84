"""``variegate studio``: pick, and watch it learn."""

from __future__ import annotations

import os
import sys
import webbrowser
from contextlib import closing
from functools import partial
from pathlib import Path
from threading import Thread
from typing import TYPE_CHECKING, Any

import click

from variegate.cli import options
from variegate.cli.options import option
from variegate.cli.output import print_note, print_text, print_warnings_as_notes
from variegate.cli.progress import show_progress
from variegate.report.wording import count

if TYPE_CHECKING:
    from variegate.material.base import Material
    from variegate.studio.session import Session


@click.command(
    epilog="\b\nvariegate studio items.csv --group query\n"
    "variegate studio photos/\n"
    "variegate studio holiday.mp4 --store holiday-picks.sqlite"
)
@click.argument("data", type=options.PATH, metavar="DATA")
@options.model_option("A model to propose before the first pick.")
@options.output_option(
    "--store FILE", "The file of picks; by default beside DATA, with .studio.sqlite "
    "after its name. An existing file is resumed.",
)  # fmt: skip
@option(
    "--order", "The next group: that of which the model is least sure, or as in DATA. "
    "By default as last time, unsure at first.", ("unsure", "given"),
)  # fmt: skip
@option(
    "--page N", "The number of pictures of a folder, or rows of a table without "
    "--group, in a group.", click.IntRange(min=2),
)  # fmt: skip
@options.column_options(
    "group", "label", "item", "quality", "categorical", "similarity", "given", "missing"
)
@option(
    "--show A,B,...", "Columns of a table to show, in place of those named as quality "
    "and similarity.", options.NAMES, default=(), show_default=False,
)  # fmt: skip
@options.LIMITS
@option(
    "--host ADDRESS", "The address to listen on. Any but the default can be reached "
    "from other machines.", default="127.0.0.1",
)  # fmt: skip
@option(
    "--port N", "The port to listen on; by default one that is free.",
    click.IntRange(0, 65535), default=0, show_default=False,
)  # fmt: skip
@option("--no-browser", "Print the address and open nothing.")
@option(
    "--repair", "Write the picks that can be read from a damaged file of picks to a "
    "new one beside it, and end.",
)  # fmt: skip
def studio(
    data: Path,
    model: Path | None,
    store: Path | None,
    order: str | None,
    host: str,
    port: int,
    no_browser: bool,
    repair: bool,
    at_most: tuple[int, ...],
    per: tuple[str, ...],
    roles: dict[str, Any],
    **shown: Any,
) -> None:
    """Pick on a page of your own machine, and watch a model learn from it.

    DATA is a table, a folder of documents, a video or a folder of them, or a folder of
    images. A page opens that shows one group after the other; your picks are kept at
    once, and a model learns from them to propose items of the next group. The page can
    be reached from this machine alone, by the address that is printed. Ctrl-C ends it,
    and the same command resumes it.
    """
    import variegate.studio  # noqa: F401 - says what to install
    from variegate.material.opening import open_material
    from variegate.studio.serving import serve

    place = data.resolve()
    store = store or place.with_name(f"{place.name}.studio.sqlite")
    if repair:
        _repair(store)
        return
    with print_warnings_as_notes(), show_progress("opening") as progress:
        known = None if model is None else options.load_model(model)
        shown |= {"columns": roles, "model": known, "progress": progress}
        material = open_material(data, **shown)
        material.limit(at_most, per)
        for note in material.notes:
            print_note(note)
        session = _open_session(material, store, str(data))
    with closing(session):
        changes = session.start(**({} if order is None else {"order": order}))
        for note in changes.notes(material.nouns):
            print_note(note)
        print_text(f"{_size_text(session)}; picks are kept in {store}", err=True)
        show = partial(_announce_address, host, not no_browser)
        serve(session, host, port, on_start=show)
        session.store.check_file()
    print_text(f"the picks are in {store}", err=True)


def _repair(store: Path) -> None:
    """Write what can be read from a file of picks to a new one; print what cannot."""
    from variegate.studio.repair import repair

    done = repair(store)
    for note in done.notes():
        print_note(note)
    print_text(
        f"{count(done.n_events, 'event')} of {store} saved; continue with --store "
        f"{done.path}",
        err=True,
    )


def _size_text(session: Session) -> str:
    """Return text on the numbers of groups, of items, and of groups done."""
    material, n_done = session.material, len(session.done_picks())
    n_items = sum(material.sizes)
    items = f"{n_items:,} {material.nouns[n_items != 1]}"
    so_far = f", {n_done:,} of them done" if n_done else ""
    return f"{count(len(material.names), 'group')} of {items}{so_far}"


def _open_session(material: Material, path: Path, data: str) -> Session:
    """Open the file of picks at ``path``, or make it, and return a session on it.

    ``data`` is the name of the data in messages; close the session to close the file.
    """
    from variegate.studio.proposals import Proposer
    from variegate.studio.session import Session
    from variegate.studio.store import Store
    from variegate.studio.teacher import Teacher

    store = Store(path, data)
    try:
        return Session(material, store, Teacher(material), Proposer(material))
    except BaseException:
        store.close()
        raise


def _announce_address(host: str, opens_browser: bool, address: str) -> None:
    """Print the address, note if others can reach it, and open a browser if asked."""
    from variegate.studio.serving import is_loopback

    if not is_loopback(host):
        print_note(
            f"listening on {host}: whoever can reach this machine and knows the "
            "address with its token sees DATA and can change the picks, and nothing is "
            "encrypted on the way"
        )
    print_text(address)
    print_text("Ctrl-C ends the studio", err=True)
    if opens_browser and can_open_browser():
        # The server is about to answer.
        Thread(target=webbrowser.open, args=(address,), daemon=True).start()


def can_open_browser() -> bool:
    """Whether there is a screen for a browser to open on, by the environment."""
    if os.environ.get("BROWSER") or sys.platform in ("darwin", "win32"):
        return True
    return bool(os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY"))

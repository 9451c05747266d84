"""``variegate select`` for pictures, documents and videos."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from variegate.cli import options, output
from variegate.cli.progress import show_progress
from variegate.report.wording import count

if TYPE_CHECKING:
    from variegate.material.selecting import SelectedItems

#: Parameters of ``variegate select`` that say something about items without columns.
_KNOWN = {
    "table", "model", "out", "html", "k", "omega", "at_most", "per", "force", "as_json",
}  # fmt: skip


def is_for_items(model: Any) -> bool:
    """Whether a model, or None, chooses from pictures, documents or videos."""
    known = ("picture-selector", "summarizer", "keyframe-picker")
    return getattr(model, "_type", None) in known


def refuse_other_data(path: Path, model: Any, html: Path | None) -> None:
    """Raise UsageError for --html, or a table's model with a folder of other files."""
    from variegate.files.folders import files_below
    from variegate.tables.reading import FORMATS

    if html is not None:
        raise click.UsageError("--html is for pictures, documents and videos")
    is_for_tables = getattr(model, "_type", None) == "table-selector"
    if not is_for_tables or not path.is_dir():
        return
    suffixes = {file.suffix.lower() for file in files_below(path)}
    if suffixes and not suffixes & FORMATS.keys():
        raise click.UsageError(
            f"{path} holds no tables, but the model was learned from a table: give a "
            "table, or a model that was learned from such data"
        )


def choose_items(
    path: Path, model: Any, out: Path, html: Path | None, force: bool, as_json: bool,
    **limits: Any,
) -> None:  # fmt: skip
    """Write a table ``out`` of the items that a model chooses, and print counts.

    ``html`` is a page of their pictures or texts, if not None; ``limits`` are ``k``,
    ``omega``, ``at_most`` and ``per``.
    """
    from variegate.files.atomic import write_atomic
    from variegate.material.contact_sheet import contact_sheet
    from variegate.material.selecting import select_items
    from variegate.tables.output import write_table
    from variegate.tables.reading import format_of

    given = options.given_options()
    unused = [given[name] for name in given if name not in _KNOWN]
    if unused:
        raise click.UsageError(
            f"{', '.join(unused)}: only for tables, and {path} is opened as pictures, "
            "documents or videos because of --model"
        )
    format_of(out)
    for target, name in ((out, "-o"), (html, "--html")):
        output.refuse_to_replace(target, name, [path], force)
    with output.print_warnings_as_notes(), show_progress("opening") as progress:
        found = select_items(path, model, progress=progress, **limits)
    write_table(found.table(), out)
    if html is not None:
        title = f"Chosen from {path.resolve().name}"
        shown = found.chosen, found.probability
        page = contact_sheet(found.material, *shown, title=title)
        write_atomic(html, page)
    numbers = _item_numbers(found, out)
    output.print_result(as_json, numbers, lambda: _summary_text(found), indent=None)
    output.print_written(out, html)


def _item_numbers(found: SelectedItems, out: Path) -> dict[str, Any]:
    """Return numbers of items, groups and chosen items, and the file ``out``, for JSON.

    "chosen_by_group" has the number of chosen items by the name of each group.
    """
    names = found.material.names
    return {
        "items": sum(found.material.sizes),
        "groups": len(names),
        "empty_groups": sum(not len(items) for items in found.chosen.values()),
        "chosen": sum(map(len, found.chosen.values())),
        "file": str(out),
        "chosen_by_group": {names[g]: len(items) for g, items in found.chosen.items()},
    }


def _summary_text(found: SelectedItems) -> str:
    """Return the numbers of chosen and of all items, and of groups, as text."""
    material = found.material
    chosen, n_items = sum(map(len, found.chosen.values())), sum(material.sizes)
    n_groups = count(len(material.names), "group")
    nouns = material.nouns[n_items != 1]
    return f"{chosen:,} of {n_items:,} {nouns} chosen from {n_groups}"

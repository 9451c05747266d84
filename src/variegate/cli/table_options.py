"""What the commands about tables have in common: options, and how they are read."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from inspect import signature
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from variegate.application import table_defaults
from variegate.baselines import select
from variegate.cli.paths import FILE
from variegate.cli.results import json_option
from variegate.cli.values import NAMES, SIZE, Number

if TYPE_CHECKING:
    from variegate.tables.columns import Columns
    from variegate.tables.selector import TableSelector
    from variegate.tables.table import Table

_Command = TypeVar("_Command", bound=Callable[..., Any])

#: Options that name columns, by the part they name.
_PARTS: dict[str, tuple[Any, str, str]] = {
    "group": (str, "COLUMN", "Rows with the same value form a group, and something is "
              "chosen from each; without it, all rows are one group."),
    "label": (str, "COLUMN", "1 in rows that were chosen, 0 in others."),
    "item": (str, "COLUMN", "Identifies a row in its group; values must differ."),
    "quality": (NAMES, "A,B,...", "What tells good rows from bad ones; * stands for "
                "anything, age:published for the age of a date. By default every "
                "column of numbers without another part."),
    "categorical": (NAMES, "A,B,...", "Columns whose values are names of kinds."),
    "similarity": (NAMES, "A,B,...", "What tells whether rows are alike: a column of "
                   "vectors (embeddings), columns of numbers, or 'embedding=e*' for "
                   "one vector of several columns."),
    "relevance": (str, "COLUMN", "How good a row is, for methods that learn nothing."),
    "cost": (str, "COLUMN", "What choosing a row costs, for a budget."),
}  # fmt: skip


def column_options(*parts: str) -> Callable[[_Command], _Command]:
    """Add the options that name some parts of a table, and the file for all."""

    def add(command: _Command) -> _Command:
        command = click.option(
            "--columns",
            "columns_file",
            type=FILE,
            metavar="FILE",
            help='A TOML file with lines such as group = "query", in place of these '
            "options or beside them.",
        )(command)
        for part in reversed(parts):
            kind, metavar, text = _PARTS[part]
            command = click.option(f"--{part}", type=kind, metavar=metavar, help=text)(
                command
            )
        return command

    return add


MEMORY = click.option(
    "--memory",
    type=SIZE,
    default=f"{table_defaults.MEMORY >> 20}MB",
    show_default=True,
    metavar="SIZE",
    help="Most memory for features; a table that takes more is worked on in pieces.",
)

JOBS = click.option(
    "--jobs",
    "n_jobs",
    type=click.IntRange(min=1),
    callback=lambda context, parameter, value: value or -1,
    metavar="N",
    help="Threads or processes that work at a time; by default one a core.",
)

SEPARATOR = click.option(
    "--separator",
    metavar="CHAR",
    callback=lambda context, parameter, value: "\t" if value == "\\t" else value,
    help="What is between the cells of a CSV file, such as ';' or \\t; a comma by "
    "default.",
)

#: What to do with groups of which no row was chosen.
empty_groups = partial(
    click.option, "--empty-groups", type=click.Choice(table_defaults.EMPTY_GROUPS)
)

#: From relevance to diversity, for methods that learn nothing.
trade_off = partial(
    click.option,
    "--trade-off",
    type=Number(min=0.0, max=1.0),
    default=signature(select).parameters["trade_off"].default,
    show_default=True,
)

JSON = json_option(help="JSON instead of text.")


def columns_of(columns_file: Path | None, **given: Any) -> Columns:
    """Return the columns that a file names, with those of the options in place."""
    from variegate.tables.columns import Columns

    columns = Columns() if columns_file is None else Columns.from_toml(columns_file)
    return columns.updated(given)


def open_table(path: Path, separator: str | None) -> Table:
    """Return a table, a file or the files of a folder; a separator is for CSV."""
    from variegate.tables.reading import TableFile
    from variegate.tables.table import as_table

    if path.is_dir():
        if separator is not None:
            raise click.UsageError(
                f"{path} is a folder of Parquet or Arrow files, which need no "
                "--separator"
            )
        return as_table(path)
    return TableFile(path, separator)


def load_selector(path: Path, memory: int, n_jobs: int) -> TableSelector:
    """Read a model that is about tables, to be used on this machine."""
    from variegate.files.models import load
    from variegate.tables.selector import TableSelector

    model = load(path)
    if not isinstance(model, TableSelector):
        raise click.UsageError(
            f"{path} holds a {type(model).__name__}, which is not about tables: "
            "'variegate fit' writes models that are"
        )
    model.set_params(memory=memory, n_jobs=n_jobs)
    return model


def need_tables() -> None:
    """Refuse to start without what tables need."""
    import variegate.tables  # noqa: F401 - says what to install

"""Options that commands share, the values they take, and how they are read."""

from __future__ import annotations

import math
import os
import re
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from inspect import signature
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from variegate.application import table_defaults
from variegate.baselines import select
from variegate.cli.output import check_writable

if TYPE_CHECKING:
    from variegate.tables.columns import Columns
    from variegate.tables.selector import TableSelector
    from variegate.tables.table import Table

_Command = TypeVar("_Command", bound=Callable[..., Any])
_Decorator = Callable[[Any], Any]

# Values -------------------------------------------------------------------------------


class NumberType(click.FloatRange):
    """A range of numbers, without "nan" and "inf"."""

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> Any:
        """Return the number."""
        number = super().convert(value, param, ctx)
        if not math.isfinite(number):
            self.fail(f"{value!r} is not a finite number.", param, ctx)
        return number


class Parsed(click.ParamType):  # type: ignore[type-arg]
    """A value that ``parse`` reads; its ValueError is the message to the user."""

    def __init__(self, name: str, parse: Callable[[str], Any]) -> None:
        self.name = name
        self.parse = parse

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> Any:
        """Return the value."""
        try:
            return self.parse(value) if isinstance(value, str) else value
        except ValueError as error:
            self.fail(str(error), param, ctx)


def _names(text: str) -> tuple[str, ...]:
    names = tuple(name.strip() for name in text.split(","))
    if not all(names):
        raise ValueError(f"{text!r} has nothing between two commas.")
    return names


_UNITS = {"": 1, "K": 2**10, "M": 2**20, "G": 2**30, "T": 2**40}


def _size(text: str) -> int:
    number = r"(\d+\.?\d*|\.\d+)"
    match = re.fullmatch(rf"{number}\s*([KMGT]?)(?:i?B)?", text.strip(), re.I)
    if match is None or float(match[1]) <= 0.0:
        raise ValueError(f"{text!r} is not an amount of memory such as 512MB.")
    return max(1, int(float(match[1]) * _UNITS[match[2].upper()]))


def _role(text: str) -> Path | tuple[str, str]:
    """Return the path of a TOML file of roles, or one role and its columns."""
    role, equals, names = text.partition("=")
    if not equals or Path(text).exists():
        return Path(FILE.convert(text, None, None))
    if role not in ROLES:
        known = ", ".join(ROLES)
        raise ValueError(f"{role!r} is not a role of columns; there are {known}.")
    return role, names


NAMES = Parsed("names", _names)
SIZE = Parsed("size", _size)
POSITIVE = NumberType(min=0.0, min_open=True)
COUNT = click.IntRange(min=1)

#: A path that the command itself checks, a file to read, and a folder to write.
PATH = click.Path(path_type=Path)
FILE = click.Path(exists=True, dir_okay=False, path_type=Path)
FOLDER = click.Path(file_okay=False, path_type=Path)


# Files and results --------------------------------------------------------------------


def _writable(
    context: click.Context, parameter: click.Parameter, value: Path | None
) -> Path | None:
    """Refuse before the work a file that could not be written after it."""
    if value is not None:
        check_writable(value)
    return value


#: An option that names a file to write.
output_option = partial(
    click.option,
    callback=_writable,
    type=click.Path(dir_okay=False, path_type=Path),
    metavar="FILE",
)
OUT = output_option("-o", "--out", required=True, help="File to write the model to.")
MODEL = partial(click.option, "--model", type=FILE, metavar="FILE")
FORCE = click.option("--force", is_flag=True, help="Replace files that exist.")
json_option = partial(click.option, "--json", "as_json", is_flag=True)
JSON = json_option(help="Print JSON instead of text.")
encoding_option = partial(
    click.option, "--encoding", default="utf-8", show_default=True, metavar="NAME"
)

# Estimators ---------------------------------------------------------------------------


def parameter(
    name: str, default: Any, choices: Iterable[str] | None = None, **settings: Any
) -> _Decorator:
    """Return the option for a parameter of an estimator, with its default.

    The default and the choices are written again rather than read from the estimator,
    which takes long to import; a test compares them.
    """
    if choices is not None:
        settings["type"] = click.Choice(list(choices))
    option = f"--{name.replace('_', '-')}"
    return click.option(option, name, default=default, show_default=True, **settings)


LAM_HELP = "Weight of the margin; 0 is maximum likelihood."
MAX_ITER_HELP = "Most iterations of the solver."


def learning_options(
    lam: float, max_iter: int, item: str, command: str
) -> Callable[[_Command], _Command]:
    """Add --lam, --omega and --max-iter to a command that trains a model."""
    options = [
        parameter("lam", lam, type=NumberType(min=0.0), metavar="L", help=LAM_HELP),
        click.option(
            "--omega", type=POSITIVE, multiple=True, default=(1.0,), metavar="W",
            show_default=True,
            callback=lambda context, option, value: value if value[1:] else value[0],
            help=f"Cost of a missed {item} relative to a wrong one. Repeat to train "
            f"several; {command} takes any value between them.",
        ),
        parameter("max_iter", max_iter, type=COUNT, metavar="N", help=MAX_ITER_HELP),
    ]  # fmt: skip

    def add(command: _Command) -> _Command:
        for option in reversed(options):
            command = option(command)
        return command

    return add


# Tables -------------------------------------------------------------------------------

#: Options for roles of columns: the type of value, its name, and the help.
_ROLE_OPTIONS: dict[str, tuple[Any, str, str]] = {
    "group": (str, "COLUMN", "Column whose equal values form a group; without it, all "
              "rows are one group."),
    "label": (str, "COLUMN", "Column with 1 in chosen rows and 0 in others."),
    "item": (str, "COLUMN", "Column that identifies a row in its group."),
    "quality": (NAMES, "A,B,...", "Columns that say how good a row is; * matches "
                "anything, age:COLUMN is the age of a date in days.  [default: every "
                "numeric column without another role]"),
    "categorical": (NAMES, "A,B,...", "Columns whose values are categories."),
    "similarity": (NAMES, "A,B,...", "Columns by which rows are compared: "
                   "vectors or numbers; 'embedding=e*' joins several into one vector."),
    "relevance": (str, "COLUMN", "Column of relevance, for untrained methods."),
    "cost": (str, "COLUMN", "Column of costs, for --budget."),
}  # fmt: skip

#: Roles of columns in ``--columns``.
ROLES = (*_ROLE_OPTIONS, "missing")


def column_options(*roles: str) -> Callable[[_Command], _Command]:
    """Add options for some roles of columns, and ``--columns`` for all."""
    others = [role for role in ROLES if role not in roles]

    def add(command: _Command) -> _Command:
        command = click.option(
            "--columns", "column_roles", type=Parsed("roles", _role), multiple=True,
            metavar="FILE|ROLE=COLUMN",
            help="Role of a column, such as cost=tokens (roles without an option: "
            f"{', '.join(others)}), or a TOML file with lines such as "
            "group = \"query\". Repeat for several.",
        )(command)  # fmt: skip
        for role in reversed(roles):
            kind, metavar, text = _ROLE_OPTIONS[role]
            option = click.option(f"--{role}", type=kind, metavar=metavar, help=text)
            command = option(command)
        return command

    return add


def columns_of(column_roles: Sequence[Path | tuple[str, str]], **given: Any) -> Columns:
    """Return columns by the entries of ``--columns``, replaced by those ``given``."""
    from variegate.tables.columns import Columns

    columns = Columns()
    for path in column_roles:
        if isinstance(path, Path):
            read = Columns.from_toml(path)
            columns = columns.updated({r: getattr(read, r) or None for r in ROLES})
    for entry in column_roles:
        if isinstance(entry, tuple):
            role, names = entry
            is_list = isinstance(getattr(columns, role), tuple)
            value = _names(names) if is_list else names
            columns = columns.updated({role: value})
    return columns.updated(given)


memory_option = partial(
    click.option, "--memory", type=SIZE, default=f"{table_defaults.MEMORY >> 20}MB",
    show_default=True, metavar="SIZE",
)  # fmt: skip
MEMORY = memory_option(help="Memory for features; a larger table is read in parts.")

JOBS = click.option(
    "--jobs", "n_jobs", type=COUNT, metavar="N",
    callback=lambda context, option, value: value or -1,
    help="Threads or processes to run.  [default: one a core]",
)  # fmt: skip

SEPARATOR = click.option(
    "--separator", metavar="CHAR",
    callback=lambda context, option, value: "\t" if value == "\\t" else value,
    help="Separator of the cells of a CSV file, such as ';' or \\t.  [default: ,]",
)  # fmt: skip

BUDGET = click.option(
    "--budget", type=POSITIVE, metavar="COST",
    help="Most that the rows of a group may cost together.",
)  # fmt: skip

empty_groups = partial(
    click.option, "--empty-groups", type=click.Choice(table_defaults.EMPTY_GROUPS)
)

TRADE_OFF = click.option(
    "--trade-off", type=NumberType(min=0.0, max=1.0), metavar="T",
    default=signature(select).parameters["trade_off"].default, show_default=True,
    help="For untrained methods: 0 is relevance only, 1 diversity only.",
)  # fmt: skip


def open_table(
    path: Path, separator: str | None, skip_unreadable: bool = False
) -> Table:
    """Open a table: a file, or a folder of files; a separator is for CSV."""
    from variegate.tables.reading import TableFile
    from variegate.tables.table import as_table

    if path.is_dir():
        if separator is not None:
            raise click.UsageError(
                f"{path} is a folder of Parquet or Arrow files, which need no "
                "--separator"
            )
        return as_table(path, skip_unreadable)
    return as_table(path) if separator is None else TableFile(path, separator)


def load_selector(path: Path, memory: int, n_jobs: int) -> TableSelector:
    """Load a model for tables, to be used on this machine."""
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
    """Refuse to start without the packages that tables need."""
    import variegate.tables  # noqa: F401 - says what to install


# Videos -------------------------------------------------------------------------------

every_option = partial(
    click.option,
    "--every",
    type=NumberType(min=0.001),
    metavar="SECONDS",
    help="Time between the frames to look at.",
)


def need_opencv() -> None:
    """Refuse to start without OpenCV, and keep FFmpeg silent."""
    from variegate.video.reading import require_cv2

    # FFmpeg would print to standard error what messages of commands say already.
    os.environ.setdefault("OPENCV_FFMPEG_LOGLEVEL", "-8")
    require_cv2()

"""Options that commands share, the values they take, and how they are read."""

from __future__ import annotations

import math
import os
import re
from collections.abc import Callable, Sequence
from functools import partial, reduce, wraps
from inspect import signature
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from click.core import ParameterSource

from variegate._validation import check_choice
from variegate.application import table_defaults
from variegate.baselines import select
from variegate.cli.output import check_writable

if TYPE_CHECKING:
    from variegate.tables.selector import TableSelector
    from variegate.tables.table import Table

Decorator = Callable[[Any], Any]

# Values -------------------------------------------------------------------------------


class NumberType(click.FloatRange):
    """A range of numbers, without "nan" and "inf"."""

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> Any:
        """Return the number of a text, or fail if it is not finite or not in range."""
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
        """Return the value parsed from a text, or fail; other values stay."""
        try:
            return self.parse(value) if isinstance(value, str) else value
        except ValueError as error:
            self.fail(str(error), param, ctx)


def _parse_names(text: str) -> tuple[str, ...]:
    """Return the names between commas, without spaces around them."""
    names = tuple(name.strip() for name in text.split(","))
    if not all(names):
        raise ValueError(f"{text!r} has nothing between two commas.")
    return names


def _parse_size(text: str) -> int:
    """Return the number of bytes in "512MB", "4G" or "1000"; K is 1024."""
    number = r"(\d+\.?\d*|\.\d+)"
    match = re.fullmatch(rf"{number}\s*([KMGT]?)(?:i?B)?", text.strip(), re.I)
    if match is None or float(match[1]) <= 0.0:
        raise ValueError(f"{text!r} is not an amount of memory such as 512MB.")
    power = " KMGT".index(match[2].upper() or " ")
    return max(1, int(float(match[1]) * 1024**power))


def _parse_role(text: str) -> Path | dict[str, Any]:
    """Return ``{role: columns}`` for a value "ROLE=COLUMNS" of --columns.

    Columns are a tuple of names for roles in ``_LISTS``, else one name.  The name of a
    file, and a value without "=", are returned as the path of a TOML file.
    """
    role, equals, names = text.partition("=")
    if not equals or Path(text).exists():
        return Path(FILE.convert(text, None, None))
    if role not in ROLES:
        known = ", ".join(ROLES)
        raise ValueError(f"{role!r} is not a role of columns; there are {known}.")
    if role == "missing":
        check_choice("treatment of missing values", names, table_defaults.MISSING)
    return {role: _parse_names(names) if role in _LISTS else names}


NAMES = Parsed("names", _parse_names)
POSITIVE = NumberType(min=0.0, min_open=True)
FRACTION = NumberType(min=0.0, max=1.0)
COUNT = click.IntRange(min=1)
SEED = click.IntRange(min=0)

#: A path that the command itself checks, a file to read, and a folder to write.
PATH = click.Path(path_type=Path)
FILE = click.Path(exists=True, dir_okay=False, path_type=Path)
FOLDER = click.Path(file_okay=False, path_type=Path)

# Options ------------------------------------------------------------------------------


def option(names: str, help: str, type: Any = None, **settings: Any) -> Decorator:
    """Return a click option by its names and that of its value: ``"-o --out FILE"``.

    Without the name of a value it is a flag, unless ``type`` is a sequence of words to
    choose from.  A default is shown.  ``name``, one of click's ``settings``, is the
    parameter of the command, if it is not named as the option.
    """
    words = names.split()
    if not words[-1].startswith("-"):
        settings["metavar"] = words.pop()
    elif type is None:
        settings["is_flag"] = True
    if isinstance(type, Sequence):
        type = click.Choice(type)
    settings.setdefault("show_default", "default" in settings)
    words += filter(None, [settings.pop("name", None)])
    return click.option(*words, help=help, type=type, **settings)


def combine_options(*options: Decorator) -> Decorator:
    """Return a decorator that adds several options, in this order."""
    return lambda command: reduce(lambda f, add: add(f), reversed(options), command)


def merge_options(
    options: Sequence[Decorator], make: Callable[..., Any], name: str, *parts: str
) -> Decorator:
    """Return a decorator that adds options, and merges their values into one.

    ``make`` takes the parameters ``parts`` of these options by name.  The command gets
    its result as the parameter ``name``.
    """

    def decorate(command: Callable[..., Any]) -> Any:
        """Return a command that takes the options."""

        @wraps(command)
        def call_with_merged(**given: Any) -> Any:
            """Call the command with the result of ``make`` in place of the parts."""
            made = make(**{part: given.pop(part) for part in parts})
            return command(**{name: made}, **given)

        return combine_options(*options)(call_with_merged)

    return decorate


def given_options() -> dict[str, str]:
    """Return by parameter the options on the command line: ``{"n_jobs": "--jobs"}``."""
    context = click.get_current_context()
    return {
        str(option.name): option.opts[-1]
        for option in context.command.params
        if context.get_parameter_source(str(option.name)) is ParameterSource.COMMANDLINE
    }


#: An option that names a file to write, which is checked before the work.
output_option = partial(
    option,
    callback=lambda context, option, path: path and check_writable(path),
    type=click.Path(dir_okay=False, path_type=Path),
)
OUT = output_option("-o --out FILE", "File to write the model to.", required=True)
FORCE = option("--force", "Replace files that exist.")
json_option = partial(option, "--json", name="as_json")
JSON = json_option("Print JSON instead of text.")


def encoding_option(of: str) -> Decorator:
    """Return a decorator that adds --encoding; ``of`` names the files in its help."""
    return option("--encoding NAME", f"Encoding of {of}.", default="utf-8")


model_option = partial(option, "--model FILE", type=FILE)


# Training -----------------------------------------------------------------------------

LAM_HELP = "Weight of the margin; 0 is maximum likelihood."
MAX_ITER_HELP = "Most iterations of the solver."


def omega_option(item: str, command: str, note: str = "", **more: Any) -> Decorator:
    """Return --omega of a command that trains; its value is a tuple.

    In the help, ``item`` is the noun for an item, ``command`` the one that applies the
    model, and ``note`` the end.  ``more`` are settings of :func:`option`.
    """
    text = (
        f"Cost of a missed {item} relative to a wrong one. Repeat to train several; "
        f"{command} takes any value between them.{note}"
    )
    return option("--omega W", text, POSITIVE, multiple=True, **more)


def learning_options(lam: float, max_iter: int, item: str, command: str) -> Decorator:
    """Return a decorator that adds --lam, --omega and --max-iter.

    ``lam`` and ``max_iter`` are defaults: estimators, which have them, take long to
    import.  For ``item`` and ``command`` see :func:`omega_option`.
    """

    def unpack_single(_: object, __: object, value: tuple[float, ...]) -> Any:
        """Return a tuple of several values, or the only value."""
        return value if value[1:] else value[0]

    return combine_options(
        option("--lam L", LAM_HELP, NumberType(min=0.0), default=lam),
        omega_option(item, command, default=(1.0,), callback=unpack_single),
        option("--max-iter N", MAX_ITER_HELP, COUNT, default=max_iter),
    )


# Tables -------------------------------------------------------------------------------

#: Roles of columns that have an option, with its help.
_ROLE_HELP = {
    "group": "Column whose equal values form a group; without it, all rows are one "
             "group.",
    "label": "Column with 1 in chosen rows and 0 in others.",
    "item": "Column that identifies a row in its group.",
    "quality": "Columns that say how good a row is; * matches anything, age:COLUMN is "
               "the age of a date in days.  [default: every numeric column without "
               "another role]",
    "categorical": "Columns whose values are categories.",
    "similarity": "Columns by which rows are compared: vectors or numbers; "
                  "'embedding=e*' joins several into one vector.",
    "relevance": "Column of relevance, for untrained methods.",
    "cost": "Column of costs, for --budget.",
    "given": "Column with 1 in rows that are there already, such as a first page, and "
             "0 in others; rows are chosen beside the former.",
    "segment": "Column that cuts a group into segments, in the order of their first "
               "rows; rows are chosen beside those of the segments before.",
    "missing": "An empty cell: an error, the mean of its column, or the mean and a "
               "feature of its own.",
}  # fmt: skip

#: Roles of columns in ``--columns``, and those of several columns.
ROLES = tuple(_ROLE_HELP)
_LISTS = ("quality", "categorical", "similarity")


def role_option(role: str, default: str = "") -> Decorator:
    """Return the option for a role of columns; ``default`` ends its help."""
    text = _ROLE_HELP[role] + default
    if role == "missing":
        return option("--missing", text, table_defaults.MISSING)
    names, kind = ("A,B,...", NAMES) if role in _LISTS else ("COLUMN", None)
    return option(f"--{role} {names}", text, kind)


def column_options(*roles: str) -> Decorator:
    """Return a decorator that adds an option for each role, and --columns for all.

    The command gets ``roles``, a dictionary from each given role to its column or, for
    roles of several columns, a tuple.
    """
    others = ", ".join(role for role in ROLES if role not in roles)
    text = (
        f"Role of a column, such as cost=tokens (roles without an option: {others}), "
        'or a TOML file with lines such as group = "query". Repeat for several.'
    )
    kind = Parsed("roles", _parse_role)
    columns = option("--columns FILE|ROLE=COLUMN", text, kind, multiple=True)
    options = [*map(role_option, roles), columns]
    return merge_options(options, _merge_roles, "roles", "columns", *roles)


def _merge_roles(
    columns: Sequence[Path | dict[str, Any]], **given: Any
) -> dict[str, Any]:
    """Return columns by role from values of --columns and from options of roles.

    Options override --columns ROLE=COLUMN, which override files.
    """
    roles: dict[str, Any] = {}
    for part in sorted(columns, key=lambda part: isinstance(part, dict)):
        if isinstance(part, dict):
            roles |= part
            continue
        from variegate.tables.columns import Columns

        read = Columns.from_toml(part)
        roles |= {role: getattr(read, role) for role in ROLES if getattr(read, role)}
    return roles | {role: names for role, names in given.items() if names}


memory_option = partial(
    option,
    "--memory SIZE",
    type=Parsed("size", _parse_size),
    default=f"{table_defaults.MEMORY >> 20}MB",
)
MEMORY = memory_option("Memory for features; a larger table is read in parts.")
JOBS = option(
    "--jobs N", "Threads or processes to run.  [default: one a core]", COUNT,
    callback=lambda context, option, value: value or -1, name="n_jobs",
)  # fmt: skip
SEPARATOR = option(
    "--separator CHAR",
    "Separator of the cells of a CSV file, such as ';' or \\t.  [default: ,]",
    callback=lambda context, option, value: "\t" if value == "\\t" else value,
)
OMEGA = option(
    "--omega W", "Cost of a missed row relative to a wrong one: a smaller one chooses "
    "fewer rows, a larger one more.  [default: that of the model]", POSITIVE,
)  # fmt: skip
BUDGET = option(
    "--budget COST", "Most that the rows of a group may cost together.", POSITIVE
)
LIMITS = combine_options(
    option(
        "--at-most N", "Most items to choose from a group with the same value of "
        "--per. Repeat both for several limits.", COUNT, multiple=True,
    ),
    option(
        "--per NAME", 'Column of --at-most, such as a brand; or the "document" of '
        'sentences, or the "shot" of frames.', multiple=True,
    ),
)  # fmt: skip
empty_groups = partial(option, "--empty-groups", type=table_defaults.EMPTY_GROUPS)
DIVERSITY = option(
    "--diversity T", "For untrained methods: 0 is relevance only, 1 diversity only.",
    FRACTION, default=signature(select).parameters["diversity"].default,
)  # fmt: skip


def open_table(
    path: Path, separator: str | None, skip_unreadable: bool = False
) -> Table:
    """Return the table in a file or a folder of files; only CSV takes a separator.

    With ``skip_unreadable``, files of a folder that cannot be read are left out.
    """
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


def load_model(path: Path) -> Any:
    """Load a model of any kind from its file."""
    from variegate.files.models import load

    return load(path)


def load_selector(path: Path, memory: int, n_jobs: int) -> TableSelector:
    """Load a model for tables from its file, and set it up by :func:`as_selector`."""
    import variegate.tables.selector  # noqa: F401 - says what to install

    return as_selector(load_model(path), path, memory, n_jobs)


def as_selector(model: Any, path: Path, memory: int, n_jobs: int) -> TableSelector:
    """Set ``memory`` (bytes) and ``n_jobs`` of a model in place, and return it.

    Raises UsageError, which names the file ``path``, if it is not about tables.
    """
    from variegate.tables.selector import TableSelector

    if not isinstance(model, TableSelector):
        raise click.UsageError(
            f"{path} holds a {type(model).__name__}, which is not about tables: "
            "'variegate fit' writes models that are"
        )
    model.set_params(memory=memory, n_jobs=n_jobs)
    return model


# Videos -------------------------------------------------------------------------------

every_option = partial(
    option,
    "--every SECONDS",
    "Time between the frames to look at.",
    NumberType(min=0.001),
)


def require_opencv() -> None:
    """Raise ImportError without OpenCV; set the variable that silences FFmpeg."""
    from variegate.video.reading import require_cv2

    # FFmpeg would repeat the messages of commands on standard error.
    os.environ.setdefault("OPENCV_FFMPEG_LOGLEVEL", "-8")
    require_cv2()

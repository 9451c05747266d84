"""Errors about tables, and messages about files that cannot be read."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from variegate.application.refusal import RefusalError, Setting
from variegate.partitions import UnreadablePartitionError

#: What formats are called.
NAMES = {
    "parquet": "a Parquet file",
    "csv": "a CSV file",
    "jsonl": "a file of JSON lines",
    "arrow": "an Arrow file",
}

#: Of text, no row may be longer; Arrow reads 32 blocks ahead.
BLOCK_BYTES = 4 * 2**20


def repeated_names(names: Sequence[str]) -> str:
    """Return the names that several columns have, joined by commas; "" for none."""
    return ", ".join(repr(n) for n, times in Counter(names).items() if times > 1)


class TableError(RefusalError):
    """A table does not hold what was asked of it."""


class TableFileError(RefusalError):
    """A file that cannot be read as a table."""


#: Errors of files that are left out where that is asked.
UNREADABLE = (TableFileError, UnreadablePartitionError)


def refuse_other_separator(path: Path, header: str) -> None:
    """Refuse a CSV file whose only column, ``header``, has a semicolon, tab or bar."""
    for separator in ";\t|":
        if separator in header:
            name = "a tab" if separator == "\t" else repr(separator)
            given = Setting("separator", separator)
            raise TableFileError(
                f"{path}: its columns seem to be separated by {name}: give ",
                given,
                fixes=[given],
            )


def explain_read_error(path: Path, file_format: str, error: BaseException) -> str:
    """Return the problem of a file and its remedy; ``file_format`` is in ``NAMES``."""
    said = " ".join(str(error).split())
    if len(said) > 200:
        said = said[:200] + " ..."
    if isinstance(error, UnicodeDecodeError) or "UTF8" in said:
        return (
            f"{path} holds text that is not UTF-8; convert it (for example with iconv)"
        )
    if "straddl" in said:
        return (
            f"{path} has a row of more than {BLOCK_BYTES >> 20} MB, or a "
            "quote that is never closed"
        )
    if file_format == "csv":
        said = said.removeprefix("CSV parse error: ")
        return (
            f"{path}: {said}; every row needs a cell for each column, in "
            "quotes if it holds the separator"
        )
    if file_format == "jsonl":
        return _explain_json_error(path, said)
    return f"{path} is not {NAMES[file_format]}, or is damaged ({said}); write it again"


def _explain_json_error(path: Path, said: str) -> str:
    """Return the problem of a JSON-lines file, and its remedy, from Arrow's message."""
    if "nested more than" in said:
        return f"{path} has a row in which {said}; write such a cell as text"
    # The reader counts rows from where it began a block, which is of no use.
    said = said.removeprefix("JSON parse error: ").split(" in row ")[0]
    if "specified twice" in said:
        return f"{path}: {said}; rename one of them"
    contradicts = ("changed from", "convert", "unexpected field")
    if "Column()" not in said and any(sign in said for sign in contradicts):
        return (
            f"{path}: a row contradicts the types of the first rows ({said}); "
            "convert the file to Parquet, which states its types"
        )
    return f"{path} is not a file of JSON objects, one a line ({said})"

"""A table as material: rows of groups, encoded as ``TableSelector`` does it."""

from __future__ import annotations

import hashlib
import shlex
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

import numpy as np
import pyarrow as pa

from variegate._typing import AnyArray, IntArray
from variegate.kernels import Kernel, Mixture
from variegate.studio.material.base import Item, Material, MaterialError, Picks
from variegate.studio.material.pictures import is_picture, read_picture
from variegate.tables.cells import abbreviate_value
from variegate.tables.columns import Columns, is_list, is_text
from variegate.tables.encoding import Encoding
from variegate.tables.groups import Groups
from variegate.tables.selector import TableSelector
from variegate.tables.survey import learn_encoding, resolve_columns, survey_table
from variegate.tables.table import MemoryTable
from variegate.tables.training import MAX_ROWS, kernel_for

#: Numbers of kinds that are learned; the first is the default.
_N_KINDS = (16, 8, 32)

#: A column of text this long on average is running text.
_RUNNING = 40

#: The longest value that is shown as a field, the longest text, and the rows that say
#: what a column holds.
_LONGEST = 200
_LONGEST_TEXT = 20_000
_SAMPLED_ROWS = 200


class TableMaterial(Material):
    """Groups of rows of a table in memory.

    ``columns`` are not resolved yet, and have no label; ``name`` is that of the file,
    for the command line.  Pictures that the table names are in ``folder``; no others
    are ever read.  The encoding is that of ``prior``, if there is one; columns that are
    ``hidden`` are not shown.
    """

    def __init__(
        self,
        table: pa.Table,
        columns: Columns,
        name: str,
        folder: Path,
        prior: TableSelector | None,
        kind: str = "table",
        nouns: tuple[str, str] = ("row", "rows"),
        hidden: Sequence[str] = (),
    ) -> None:
        self.kind, self.nouns = kind, nouns
        self._name, self._table = name, table
        source = MemoryTable(table)
        self._columns = resolve_columns(source, columns)
        self._given = columns
        self.prior = None if prior is None else prior.family_
        found = survey_table(source, replace(self._columns, label=None, relevance=None))
        encoding = learn_encoding(found) if prior is None else prior.encoding_
        self.kernels = _kernels(encoding)
        self.feature_names = encoding.names
        self._groups = list(Groups(found, encoding, memory=0))
        self._ground_sets = [group.ground_set for group in self._groups]
        self.names = [str(group.name) for group in self._groups]
        self.sizes = [len(group) for group in self._groups]
        largest = int(np.argmax(self.sizes))
        if self.sizes[largest] > MAX_ROWS:
            raise MaterialError(
                f"group {self.names[largest]!r} has {self.sizes[largest]:,} rows: "
                f"divide groups of more than {MAX_ROWS:,}"
            )
        self._display = RowDisplay(table, self._columns, folder, hidden)
        digest = hashlib.sha256(repr((self.kind, self.names, self.sizes)).encode())
        for group in self._groups:
            for array in (group.rows, group.quality, *group.blocks.values()):
                digest.update(array.tobytes())
        self.fingerprint = digest.hexdigest()

    def _items(self, group: int) -> Sequence[Item]:
        return self._display.items(self._groups[group].rows)

    def _picture(self, group: int, item: int) -> AnyArray:
        path = self._display.picture(int(self._groups[group].rows[item]))
        if path is None:
            raise MaterialError("there is no picture of this row")
        return read_picture(path)

    @property
    def label(self) -> str:
        """The column of exported picks that says which rows were picked."""
        return unused_name("picked", self._table)

    def picks_table(self, picks: Picks) -> pa.Table:
        """Return all rows of the groups, with a column that says which were picked."""
        flags = np.full(self._table.num_rows, -1, dtype=np.int8)
        for group, chosen in picks.items():
            rows = self._groups[group].rows
            flags[rows] = 0
            flags[rows[chosen]] = 1
        done = np.flatnonzero(flags >= 0)
        some = self._table.take(pa.array(done))
        return some.append_column(self.label, pa.array(flags[done]))

    def learner(self, picks: Picks) -> Callable[[], TableSelector]:
        """Return a function that learns a selector from picks, as ``fit`` does."""
        selector = TableSelector(**self._settings(), empty_groups="keep")
        return partial(selector.fit, self.picks_table(picks))

    def _settings(self) -> dict[str, Any]:
        columns, given = self._columns, self._given
        # Vectors of several columns and ages of dates by the names that make them.
        quality = given.quality if columns.vectors or columns.ages else columns.quality
        named = {
            "group": columns.group,
            "item": columns.item,
            "quality": tuple(n for n in quality if n not in columns.categorical),
            "categorical": columns.categorical,
            "similarity": given.similarity or columns.similarity,
            "label": self.label,
            "missing": columns.missing,
        }
        return {name: value for name, value in named.items() if value}

    def command_line(self, picks: Picks) -> str:
        """Return the commands that learn the same from a file of picks."""
        options = []
        for role, names in self._settings().items():
            value = names if isinstance(names, str) else ",".join(names)
            if role in ("group", "label", "quality", "similarity"):
                options.append(f"--{role} {shlex.quote(value)}")
            else:
                options.append(f"--columns {shlex.quote(f'{role}={value}')}")
        options += ["--empty-groups keep", "--validation 0", "-o model.json"]
        learned = " \\\n    ".join(["variegate fit picks.parquet", *options])
        chosen = f"variegate select {shlex.quote(self._name)} --model model.json"
        return f"{learned}\n{chosen} -o chosen.parquet\n"


def _kernels(encoding: Encoding) -> Mapping[str, Kernel]:
    """Return candidates: kinds first for vectors, and Gaussians first for numbers."""
    kinds = {f"{n} kinds": _kinds(n, encoding) for n in _N_KINDS}
    others = {
        "Gaussians": kernel_for("multiple", encoding),
        "linear": kernel_for("linear", encoding),
    }
    columns = chain.from_iterable(encoding.blocks.values())
    has_vectors = any(column.kind == "direction" for column in columns)
    return kinds | others if has_vectors else others | kinds


def _kinds(n: int, encoding: Encoding) -> Kernel:
    kernel = kernel_for("kinds", encoding)
    for part in kernel.kernels if isinstance(kernel, Mixture) else [kernel]:
        # Closer to their start than usual: the first groups are few.
        part.set_params(n_kinds=n, penalty=1e-2)
    return kernel


def unused_name(name: str, table: pa.Table) -> str:
    """Return a name that is not one of the columns."""
    while name in table.schema.names:
        name += "_"
    return name


class RowDisplay:
    """Which columns of a table are shown as what.

    The picture is a column of text with names of files in ``folder``; the title is the
    item, or the first short text; the text is the longest; all else are fields, but for
    vectors and ``hidden`` columns.
    """

    def __init__(
        self,
        table: pa.Table,
        columns: Columns,
        folder: Path,
        hidden: Sequence[str] = (),
    ) -> None:
        self._table, self._folder = table, folder
        names = [f.name for f in table.schema if is_text(f.type)]
        cells = {n: table.column(n).slice(0, _SAMPLED_ROWS).to_pylist() for n in names}
        lengths = {n: np.mean([len(cell or "") for cell in cells[n]]) for n in names}
        self._picture = next((n for n in names if _names_pictures(cells[n])), None)
        running = [n for n in names if lengths[n] > _RUNNING and n != self._picture]
        self._text = max(running, key=lengths.__getitem__, default=None)
        short = [n for n in names if n not in (self._text, columns.group)]
        self._title = columns.item or next(iter(short), None)
        others = {self._text, self._picture, columns.group, self._title, *hidden}
        self._fields = [
            field.name
            for field in table.schema
            if field.name not in others and not is_list(field.type)
        ]

    def items(self, rows: IntArray) -> Sequence[Item]:
        """Return some rows as items."""
        some = self._table.take(pa.array(rows)).to_pylist()
        return [
            self._item(row, cells)
            for row, cells in zip(rows.tolist(), some, strict=True)
        ]

    def _item(self, row: int, cells: dict[str | None, Any]) -> Item:
        title, text = (
            abbreviate_value(cells.get(self._title), _LONGEST),
            cells.get(self._text),
        )
        if self._title == self._picture:
            title = Path(_as_path(title)).name
        return Item(
            title or f"row {row + 1}",
            None if text is None else str(text)[:_LONGEST_TEXT],
            tuple(
                (name, abbreviate_value(cells[name], _LONGEST)) for name in self._fields
            ),
            bool(cells.get(self._picture)),
        )

    def picture(self, row: int) -> Path | None:
        """Return the file with the picture of a row, if it is one of the folder."""
        if self._picture is None:
            return None
        cell = self._table.column(self._picture)[row].as_py()
        return None if not cell else _within(self._folder, _as_path(cell))


def _names_pictures(cells: Sequence[str | None]) -> bool:
    names = [cell for cell in cells if cell]
    return bool(names) and all(is_picture(Path(_as_path(name))) for name in names)


def _within(folder: Path, name: str) -> Path | None:
    """Return a file of a folder, or None where the name leads out of it."""
    try:
        path = (folder / name).resolve()
        is_inside = path.is_relative_to(folder.resolve()) and path.is_file()
    except (OSError, ValueError):
        return None
    return path if is_inside and is_picture(path) else None


def _as_path(cell: str) -> str:
    """Return the path in a cell, which may be the URL of a local file."""
    return unquote(urlsplit(cell).path) if cell.startswith("file:") else cell

"""A table as material: rows of groups, encoded as ``TableSelector`` does it."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from variegate._typing import AnyArray, IntArray
from variegate.kernels import Kernel, Mixture
from variegate.material.base import Item, Material, MaterialError, Picks
from variegate.material.identity import paged_file, row_digests, unique_texts
from variegate.material.picture_selector import PictureSelector
from variegate.material.pictures import PICTURE_NAMES, read_picture, statistic_texts
from variegate.material.row_display import RowDisplay, value_text
from variegate.tables.columns import Columns, check_column_exists
from variegate.tables.derived import AGE
from variegate.tables.encoding import Encoding, FeatureColumn
from variegate.tables.groups import Groups
from variegate.tables.model_file import NOUNS, training_record
from variegate.tables.policy import Policy
from variegate.tables.selector import TableSelector
from variegate.tables.survey import learn_encoding, resolve_columns, survey_table
from variegate.tables.table import MemoryTable
from variegate.tables.training import MAX_ROWS, Learned, kernel_for
from variegate.tuning.family import OmegaFamily
from variegate.tuning.path import OmegaPath, PathPoint

#: Numbers of kinds that are learned; the first is the default.
_N_KINDS = (16, 8, 32)


@dataclass(frozen=True, eq=False)
class TableSource:
    """A table in memory, and how it came about.

    ``columns`` are roles as they were given, before defaults and checks, without a
    label; ``name`` is that of the file, for commands.  Pictures that the table names
    are in ``folder``; no others are ever read.  ``computed`` columns describe pictures;
    ``pages`` is a column of groups that the file did not have.  ``show`` are the
    columns to show: by default features, if some were named (``is_named``), or all.
    """

    table: pa.Table
    columns: Columns
    name: str
    folder: Path
    computed: Sequence[str] = ()
    #: Columns by which rows are known again; by default those of ``table``.
    original: pa.Table | None = None
    pages: str | None = None
    show: Sequence[str] = ()
    is_named: bool = False
    notes: Sequence[str] = ()


class TableMaterial(Material):
    """Groups of rows of a table; the encoding is that of ``prior``, if there is one."""

    def __init__(
        self,
        source: TableSource,
        prior: TableSelector | None,
        kind: str = "table",
        nouns: tuple[str, str] = ("row", "rows"),
    ) -> None:
        self.kind, self.nouns, self.notes = kind, nouns, source.notes
        self._source, self._table = source, source.table
        rows = MemoryTable(self._table)
        # Picks are made from whole groups.
        self.columns = resolve_columns(rows, replace(source.columns, segment=None))
        self.prior = None if prior is None else OmegaFamily.by_odds(prior.model_)
        found = survey_table(rows, replace(self.columns, label=None, relevance=None))
        self._encoding = learn_encoding(found) if prior is None else prior.encoding_
        self.kernels = _candidate_kernels(self._encoding)
        self.feature_names = self._encoding.names
        groups = Groups(found, self._encoding, memory=0)
        self._groups = [group for group in groups if len(group.candidates)]
        if not self._groups:
            raise MaterialError(
                f"all rows are given by column {self.columns.given!r}: leave at least "
                "one to pick"
            )
        self._ground_sets = [group.ground_set for group in self._groups]
        self.names = [str(group.name) for group in self._groups]
        self.sizes = [len(group) for group in self._groups]
        largest = int(np.argmax(self.sizes))
        if self.sizes[largest] > MAX_ROWS:
            raise MaterialError(
                f"group {self.names[largest]!r} has {self.sizes[largest]:,} rows: "
                f"divide groups of more than {MAX_ROWS:,}"
            )
        shown = [n for n in self._shown_columns() if n not in source.computed]
        self._display = RowDisplay(self._table, self.columns, source.folder, shown)
        self.groups_are_files = source.pages is not None
        if self.groups_are_files:
            self._page_identities  # noqa: B018 - now, or the first pick waits for it

    def identities(self, group: int) -> Sequence[str]:
        """Return a text for each row: its item, or a digest of its cells without one.

        On pages, it differs from those of all other rows of the file or folder.
        """
        if self.groups_are_files:
            return self._page_identities[group]
        return self._row_texts(self._groups[group].rows)

    @cached_property
    def _page_identities(self) -> dict[int, Sequence[str]]:
        """The texts of the rows of all groups, unique in a file or folder."""
        files: dict[str, list[int]] = {}
        for group, name in enumerate(self.names):
            file = paged_file(name)
            files.setdefault(name if file is None else f"{file}, ", []).append(group)
        texts: dict[int, Sequence[str]] = {}
        for groups in files.values():
            rows = [self._groups[group].rows for group in groups]
            found = self._row_texts(np.concatenate(rows))
            ends = np.cumsum([len(some) for some in rows]).tolist()
            starts = [0, *ends[:-1]]
            for group, start, end in zip(groups, starts, ends, strict=True):
                texts[group] = found[start:end]
        return texts

    def _row_texts(self, rows: IntArray) -> list[str]:
        """Return unique texts of some rows, by their positions in the table."""
        source, item = self._source, self.columns.item
        original = self._table if source.original is None else source.original
        some = original.take(pa.array(rows))
        names = some.schema.names
        ids = some.column(item).to_pylist() if item in names else [None] * len(rows)
        is_empty = [one in (None, "") or one != one for one in ids]
        if not any(is_empty) and len({*map(str, ids)}) == len(ids):
            return [f"={one}" for one in ids]
        contents = row_digests(some)
        primary = [
            f"#{content}" if empty else f"={one}"
            for one, content, empty in zip(ids, contents, is_empty, strict=True)
        ]
        return unique_texts(primary, contents)

    def _shown_columns(self) -> list[str]:
        """Return the names of the columns to show: ``show``, named features, or all."""
        source, names = self._source, self._table.schema.names
        for name in source.show or ():
            check_column_exists(name, names)
        features = [name.removeprefix(AGE) for name in self.columns.features()]
        shown = source.show or (features if source.is_named else names)
        return [name for name in dict.fromkeys(shown) if name in names]

    def _items(self, group: int) -> Sequence[Item]:
        """Return the rows of a group, as ``RowDisplay`` shows them."""
        return self._display.items(self._groups[group].rows)

    def _picture(self, group: int, item: int) -> AnyArray:
        """Return the RGB picture that a row names; MaterialError if it has none."""
        path = self._display.picture(int(self._groups[group].rows[item]))
        if path is None:
            raise MaterialError("there is no picture of this row")
        return read_picture(path)

    def values(self, group: int, item: int) -> Sequence[str]:
        """Return the value of each quality feature of a row as text, not scaled."""
        row = self._table.slice(int(self._groups[group].rows[item]), 1).to_pylist()[0]
        if set(PICTURE_NAMES) <= set(self._source.computed):
            numbers = np.array([row[name] for name in PICTURE_NAMES])
            row |= zip(PICTURE_NAMES, statistic_texts(numbers), strict=True)
        features = self._ground_sets[group].quality[item]
        texts: list[str] = []
        for column in self._encoding.quality:
            texts += _feature_texts(column, features[len(texts) :], row)
        return texts + [value_text(score) for score in features[len(texts) :]]

    def _labels(self, per: str, group: int) -> Sequence[Any]:
        """Return the value of the column ``per`` of every row of a group."""
        check_column_exists(per, self._table.schema.names)
        return list(
            self._table.column(per).take(pa.array(self._groups[group].rows)).to_pylist()
        )

    @property
    def label(self) -> str:  # type: ignore[override]
        """The column of exported picks that says which rows were picked."""
        return unused_name("picked", self._table)

    def places_table(self, chosen: Picks, with_features: bool = False) -> pa.Table:
        """Return the rows of chosen items; computed columns only ``with_features``."""
        rows = [self._groups[group].rows[items] for group, items in chosen.items()]
        table = self._table.take(pa.array(np.concatenate(rows)))
        return table if with_features else table.drop_columns(self._source.computed)

    def model(
        self, family: OmegaFamily, picks: Picks, path: Sequence[PathPoint]
    ) -> TableSelector:
        """Return a fitted selector with the model of omega 1, learned from the picks.

        ``path`` are the scores of this model on held-out groups by omega.
        """
        table, model = self.picks_table(picks), family.at(1.0)
        roles = self._roles() | {"omega": 1.0, "lam": model.lam}
        of_pictures = bool(self._source.computed)
        selector = (PictureSelector if of_pictures else TableSelector)(
            **roles, l2=model.l2, empty_groups="keep"
        )
        found = survey_table(
            MemoryTable(table), replace(self.columns, label=self.label, relevance=None)
        )
        all_groups = np.arange(len(found))
        learned = Learned(Policy(model))
        scores = OmegaPath(model.lam, tuple(path), 1.0, nouns=NOUNS) if path else None
        group = None if self._source.pages else self.columns.group
        selector.columns_ = replace(self.columns, group=group, label=self.label)
        selector.encoding_, selector.seed_ = self._encoding, 0
        selector.policy_, selector.family_ = learned.policy, learned.policy.family
        selector.path_ = scores
        selector._set_names(table.schema.names)
        selector.training_ = training_record(
            found, learned, scores, None, all_groups, all_groups[:0]
        ) | {"n_judged": 0}
        return selector

    def _roles(self) -> dict[str, Any]:
        """Return columns by role, as arguments of ``TableSelector``; no empty roles."""
        columns, given = self.columns, self._source.columns
        # Vectors of several columns and ages of dates by the names that make them.
        quality = given.quality if columns.vectors or columns.ages else columns.quality
        named = {
            "group": columns.group,
            "item": columns.item,
            "quality": tuple(n for n in quality if n not in columns.categorical),
            "categorical": columns.categorical,
            "similarity": given.similarity or columns.similarity,
            "given": columns.given,
            "label": self.label,
            "missing": columns.missing,
        }
        return {name: value for name, value in named.items() if value}

    def fit_command(self, picks: Picks) -> str:
        """Return the shell command that learns a selector from ``picks.parquet``."""
        options = []
        for role, names in self._roles().items():
            value = names if isinstance(names, str) else ",".join(names)
            if role in ("group", "label", "quality", "similarity", "given"):
                options.append(f"--{role} {shlex.quote(value)}")
            else:
                options.append(f"--columns {shlex.quote(f'{role}={value}')}")
        options += ["--empty-groups keep", "--validation 0", "-o fitted.json"]
        return " \\\n    ".join(["variegate fit picks.parquet", *options])


def _feature_texts(
    column: FeatureColumn, features: AnyArray, row: Mapping[str, Any]
) -> list[str]:
    """Return the features of a row made from one column, each as text.

    ``features`` are encoded values of the row that start with those of ``column``;
    ``row`` has its cells by column.  Text is the cell if the table has it, else the
    encoded value without its scaling.
    """
    cell = row.get(column.name, row.get(column.name.removeprefix(AGE), column))
    values = features[: column.size]
    if cell is None or cell != cell:
        texts = ["empty"] * column.size
    elif column.kind == "category":
        texts = ["yes" if value else "no" for value in values]
    elif column.kind == "number" and column.name in row:
        texts = [value_text(cell)]
    else:
        size = len(column.mean)
        numbers = values[:size] * column.scale + column.mean
        days = " days" if column.name.startswith(AGE) else ""
        texts = [f"{number:.4g}{days}" for number in numbers]
    if column.has_indicator:
        texts = [*texts[: column.size - 1], "yes" if values[-1] else "no"]
    return texts


def _candidate_kernels(encoding: Encoding) -> Mapping[str, Kernel]:
    """Return kernels by name, the default first: kinds for vectors, or Gaussians."""
    kinds = {f"{n} kinds": _kinds_kernel(n, encoding) for n in _N_KINDS}
    others = {
        "Gaussians": kernel_for("multiple", encoding),
        "linear": kernel_for("linear", encoding),
    }
    columns = chain.from_iterable(encoding.blocks.values())
    has_vectors = any(column.kind == "direction" for column in columns)
    return kinds | others if has_vectors else others | kinds


def _kinds_kernel(n: int, encoding: Encoding) -> Kernel:
    """Return a kernel with ``n`` learned kinds of items, for each block of features."""
    kernel = kernel_for("kinds", encoding)
    for part in kernel.kernels if isinstance(kernel, Mixture) else [kernel]:
        # Closer to their start than usual: the first groups are few.
        part.set_params(n_kinds=n, penalty=1e-2)
    return kernel


def unused_name(name: str, table: pa.Table) -> str:
    """Return ``name``, followed by underscores until no column has this name."""
    while name in table.schema.names:
        name += "_"
    return name

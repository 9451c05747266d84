"""A table as material: rows of groups, encoded as ``TableSelector`` does it."""

from __future__ import annotations

import hashlib
import shlex
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import lru_cache, partial
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from variegate._typing import AnyArray, IntArray
from variegate.application.table_defaults import MEMORY
from variegate.ground_set import GroundSet
from variegate.kernels import Kernel, Kinds, Linear, Mixture, MultipleKernel
from variegate.studio.material.base import Item, MaterialError, Picks
from variegate.studio.material.cells import Shown
from variegate.studio.material.pictures import Thumbnails, read_picture
from variegate.tables.columns import Columns
from variegate.tables.derived import derive
from variegate.tables.groups import Group, Groups
from variegate.tables.selector import TableSelector
from variegate.tables.survey import learn_encoding, survey
from variegate.tables.table import MemoryTable, Table
from variegate.tables.training import MAX_ROWS
from variegate.tuning.family import OmegaFamily

__all__ = ["LABEL", "TableMaterial"]

#: The column of exported picks that says what was picked.
LABEL = "picked"

#: Numbers of kinds that are learned; the first is the default.
_N_KINDS = (16, 8, 32)


class TableMaterial:
    """Groups of rows of a table in memory.

    Parameters
    ----------
    table : pyarrow.Table
    columns : Columns
        What columns are for, not resolved yet; no label.
    name : str
        Of the file, for the command line.
    folder : Path, optional
        Where pictures that the table names are; no others are ever read.
    prior : TableSelector, optional
        A model to propose by before anything is picked; its encoding is used.
    kind, nouns : as in :class:`~variegate.studio.material.base.Material`
    hidden : sequence of str
        Columns that are not shown.
    """

    def __init__(
        self,
        table: pa.Table,
        columns: Columns,
        name: str,
        folder: Path | None = None,
        prior: TableSelector | None = None,
        kind: str = "table",
        nouns: tuple[str, str] = ("row", "rows"),
        hidden: Sequence[str] = (),
    ) -> None:
        self.kind, self.nouns = kind, nouns
        self._name, self._table = name, table
        made, wanted = derive(MemoryTable(table), columns)
        self._columns = wanted.resolve(made.schema)
        self._given = columns
        self._prior = prior
        groups = self._grouped(made)
        self._encoding = groups.encoding
        self._groups = list(groups)
        self.names = [str(group.name) for group in self._groups]
        self.sizes = [len(group) for group in self._groups]
        self._refuse_large_groups()
        self._shown = Shown(table, self._columns, folder, hidden)
        self._thumbnails = Thumbnails()
        self.feature_names = self._encoding.names
        self.fingerprint = self._digest()
        self.items = lru_cache(maxsize=64)(self._items)

    def _grouped(self, table: Table) -> Groups:
        found = survey(table, replace(self._columns, label=None, relevance=None))
        if self._prior is None:
            encoding = learn_encoding(table, found)
        else:
            encoding = self._prior.encoding_
        return Groups(table, found, encoding, memory=MEMORY)

    def _refuse_large_groups(self) -> None:
        largest = int(np.argmax(self.sizes))
        if self.sizes[largest] > MAX_ROWS:
            raise MaterialError(
                f"group {self.names[largest]!r} has {self.sizes[largest]:,} rows: "
                f"divide groups of more than {MAX_ROWS:,}"
            )

    def _digest(self) -> str:
        digest = hashlib.sha256(repr((self.kind, self.names, self.sizes)).encode())
        for group in self._groups:
            digest.update(group.rows.tobytes())
            digest.update(group.quality.tobytes())
            for block in group.blocks.values():
                digest.update(block.tobytes())
        return digest.hexdigest()

    # What is learned from ---------------------------------------------------------

    @property
    def kernels(self) -> Mapping[str, Kernel]:
        """Kinds first where rows are vectors, and Gaussians where they are numbers."""
        kinds = {f"{n} kinds": self._of_blocks(_kinds(n)) for n in _N_KINDS}
        blocks = list(self._encoding.blocks)
        others = {
            "Gaussians": MultipleKernel(blocks=blocks if len(blocks) > 1 else None),
            "linear": self._of_blocks(lambda block: Linear(block=block)),
        }
        return kinds | others if self._has_vectors() else others | kinds

    def _has_vectors(self) -> bool:
        return any(
            column.kind == "direction"
            for block in self._encoding.blocks.values()
            for column in block
        )

    def _of_blocks(self, make: Callable[[str | None], Kernel]) -> Kernel:
        blocks = list(self._encoding.blocks)
        if len(blocks) < 2:
            return make(None)
        return Mixture([make(block) for block in blocks])

    @property
    def prior(self) -> OmegaFamily | None:
        """The models that were given, if any were."""
        return None if self._prior is None else self._prior.family_

    def ground_set(self, group: int) -> GroundSet:
        """Return the features of a group."""
        return self._groups[group].ground_set

    # What is shown ----------------------------------------------------------------

    def _items(self, group: int) -> Sequence[Item]:
        return self._shown.items(self._groups[group].rows)

    def image(self, group: int, item: int, width: int) -> tuple[bytes, str]:
        """Return a picture of a row, at most so wide, and its MIME type."""
        row = int(self._groups[group].rows[item])
        path = self._shown.picture(row)
        if path is None:
            raise MaterialError("there is no picture of this row")

        def read() -> AnyArray:
            return read_picture(path)

        return self._thumbnails.of(row, width, read)

    # What comes out ---------------------------------------------------------------

    @property
    def label(self) -> str:
        """The column of exported picks that says what was picked."""
        name = LABEL
        while name in self._table.schema.names:
            name += "_"
        return name

    def picks_table(self, picks: Picks) -> pa.Table:
        """Return all rows of the groups, and a column that says which were picked."""
        rows, labels = [], []
        for group, chosen in picks.items():
            own: Group = self._groups[group]
            flags = np.zeros(len(own), dtype=np.int8)
            flags[chosen] = 1
            rows.append(own.rows)
            labels.append(flags)
        if not rows:
            return self._table.slice(0, 0).append_column(
                self.label, pa.array([], pa.int8())
            )
        where: IntArray = np.concatenate(rows)
        order = np.argsort(where, kind="stable")
        some = self._table.take(pa.array(where[order]))
        return some.append_column(self.label, pa.array(np.concatenate(labels)[order]))

    def learner(self, picks: Picks) -> Callable[[], TableSelector]:
        """Return what learns a selector from picks, as ``variegate fit`` does."""
        columns, named = self._columns, self._named()
        selector = TableSelector(
            **named, missing=columns.missing, label=self.label, empty_groups="keep"
        )
        return partial(selector.fit, self.picks_table(picks))

    def _named(self) -> dict[str, Any]:
        """Return which column is what, spelt out, as settings of a selector."""
        columns, given = self._columns, self._given
        # Vectors of several columns and ages of dates by the names that make them.
        quality = given.quality if columns.vectors or columns.ages else columns.quality
        named = {
            "group": columns.group,
            "item": columns.item,
            "quality": tuple(n for n in quality if n not in columns.categorical),
            "categorical": columns.categorical,
            "similarity": given.similarity or columns.similarity,
        }
        return {name: value for name, value in named.items() if value}

    def command_line(self, picks_file: str, picks: Picks) -> str:
        """Return the commands that learn the same from a file of picks."""
        roles = self._named()
        roles |= {"label": self.label, "missing": self._columns.missing}
        options = []
        for role, names in roles.items():
            value = names if isinstance(names, str) else ",".join(names)
            if role in ("group", "label", "quality", "similarity"):
                options.append(f"--{role} {shlex.quote(value)}")
            else:
                options.append(f"--columns {shlex.quote(f'{role}={value}')}")
        options += ["--empty-groups keep", "--validation 0", "-o model.json"]
        learned = " \\\n    ".join([f"variegate fit {picks_file}", *options])
        chosen = f"variegate select {shlex.quote(self._name)} --model model.json"
        return f"{learned}\n{chosen} -o chosen.parquet\n"


def _kinds(n: int) -> Callable[[str | None], Kernel]:
    """Return what makes kinds that are held closer to their start than usual."""
    # The first groups are few, and what is learned from them is gone on from.
    return lambda block: Kinds(n, penalty=1e-2, block=block)

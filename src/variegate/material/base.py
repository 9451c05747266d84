"""The interface of materials: groups of items with features."""

from __future__ import annotations

import shlex
from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from variegate._typing import AnyArray, FloatArray, IntArray
from variegate.application.base import Application
from variegate.decoding.at_most import AtMost
from variegate.ground_set import GroundSet
from variegate.kernels import Kernel
from variegate.tuning.family import OmegaFamily
from variegate.tuning.path import PathPoint

#: The widest pictures that are kept in memory.
_KEPT = 640

#: From the number of a group to the items that were chosen from it.
Picks = Mapping[int, IntArray]


class MaterialError(ValueError):
    """DATA cannot be shown or learned from, for a reason that the message says."""


def is_any(path: Path, suffixes: Collection[str]) -> bool:
    """Return whether a path is a file with one of the suffixes, and not hidden."""
    is_known = path.suffix.lower() in suffixes and not path.name.startswith(".")
    return is_known and path.is_file()


def most_items(n_items: int, limits: Mapping[str, Any]) -> int:
    """Return the largest number of items that limits allow."""
    within = AtMost.of(n_items, **limits) if limits else None
    return n_items if within is None else within.largest_size()


@dataclass(frozen=True)
class Item:
    """A row, sentence, frame or image, as it is shown.

    ``title`` is one line, ``text`` running text, ``fields`` are names and values.
    """

    title: str
    text: str | None = None
    fields: tuple[tuple[str, str], ...] = ()
    has_image: bool = False


class Material(ABC):
    """Groups of items with features, computed once when DATA is opened.

    All methods may be called from several threads.
    """

    #: "table", "documents", "video" or "images".
    kind: str
    #: The word for one item, and for several.
    nouns: tuple[str, str]
    #: The name and the number of items of each group, in the order of DATA.
    names: Sequence[str]
    sizes: Sequence[int]
    #: Differs for other DATA, and for other groups or columns of the same.
    fingerprint: str
    #: Of the columns of ``ground_set(group).quality``.
    feature_names: Sequence[str]
    #: Candidates for the similarity; the first is the default.
    kernels: Mapping[str, Kernel]
    #: Models for these features from before the first pick.
    prior: OmegaFamily | None
    #: Remarks about DATA, such as on empty cells.
    notes: Sequence[str] = ()
    _ground_sets: Sequence[GroundSet]
    _limits: Sequence[tuple[int, str]] = ()

    @cached_property
    def items(self) -> Callable[[int], Sequence[Item]]:
        """A function that returns the items of a group."""
        return lru_cache(maxsize=64)(self._items)

    @abstractmethod
    def _items(self, group: int) -> Sequence[Item]: ...

    def ground_set(self, group: int) -> GroundSet:
        """Return quality and similarity features of the items of a group."""
        return self._ground_sets[group]

    @abstractmethod
    def values(self, group: int, item: int) -> Sequence[str]:
        """Return the value of every quality feature as DATA has it, as text."""

    @cached_property
    def image(self) -> Callable[[int, int, int], tuple[bytes, str]]:
        """A function of a group, an item and a width: a picture and its MIME type.

        Only of files of DATA.  It raises :class:`MaterialError` where there is none.
        """
        from variegate.material.pictures import thumbnail

        def show(group: int, item: int, width: int) -> tuple[bytes, str]:
            """Return a picture at most ``width`` wide, and its MIME type."""
            return thumbnail(self._picture(group, item), width)

        kept = lru_cache(maxsize=512)(show)
        return lambda group, item, width: (kept if width <= _KEPT else show)(
            group, item, width
        )

    def _picture(self, group: int, item: int) -> AnyArray:
        """Return the picture (height, width, 3) of an item, or raise."""
        raise MaterialError(f"{self.nouns[1]} have no pictures")

    # Limits ---------------------------------------------------------------------------

    def limit(self, at_most: Sequence[int], per: Sequence[str]) -> None:
        """Allow ``at_most`` items of a group with the same value of each ``per``."""
        if len(at_most) != len(per):
            raise MaterialError(
                "give a number at_most for each per, of which the values are counted: "
                f"there are {len(at_most)} and {len(per)}"
            )
        for name in per:
            self._labels(name, 0)
        self._limits = list(zip(at_most, per, strict=True))

    def limits(self, group: int) -> dict[str, Any]:
        """Return the limits on choices from a group, as arguments of ``decode``."""
        if not self._limits:
            return {}
        labels = [self._labels(per, group) for _, per in self._limits]
        return {"at_most": [most for most, _ in self._limits], "per": labels}

    def limit_options(self) -> list[str]:
        """Return the limits as options of commands."""
        return [f"--at-most {n} --per {shlex.quote(per)}" for n, per in self._limits]

    def _labels(self, per: str, group: int) -> Sequence[Any]:
        """Return the value of ``per`` of every item of a group."""
        fields = [dict(item.fields) for item in self.items(group)]
        if not all(per in values for values in fields):
            known = ", ".join(fields[0]) or "nothing to name"
            raise MaterialError(
                f"{self.nouns[1]} have no {per!r}, of which to choose at most a "
                f"number: there is {known}"
            )
        return [values[per] for values in fields]

    # Results --------------------------------------------------------------------------

    #: Names and types of the columns that say where an item is.
    _place_columns: ClassVar[tuple[tuple[str, str], ...]] = ()

    def _places(self, group: int) -> Sequence[tuple[Any, ...]]:
        """Return the values of ``_place_columns`` for every item of a group."""
        raise NotImplementedError

    def places_table(self, chosen: Picks, with_features: bool = False) -> Any:
        """Return where some items are, in their order, as an Arrow table.

        For tables their rows, ``with_features`` that were computed for them.
        """
        import pyarrow as pa

        rows: list[tuple[Any, ...]] = []
        for group, items in chosen.items():
            places = self._places(group)
            rows += [places[item] for item in items.tolist()]
        schema = pa.schema([pa.field(*column) for column in self._place_columns])
        named = [dict(zip(schema.names, row, strict=True)) for row in rows]
        return pa.Table.from_pylist(named, schema)

    #: The column of ``picks_table`` that says which items were picked.
    label = "picked"

    def picks_table(self, picks: Picks) -> Any:
        """Return every item of the picked groups, labelled 1 if picked, as Arrow."""
        import pyarrow as pa

        everything = {group: np.arange(self.sizes[group]) for group in sorted(picks)}
        flags = [np.isin(items, picks[group]) for group, items in everything.items()]
        table = self.places_table(everything, with_features=True)
        picked = np.concatenate(flags).astype(np.int8)
        return table.append_column(self.label, pa.array(picked))

    def chosen_table(self, chosen: Picks, probability: Sequence[FloatArray]) -> Any:
        """Return chosen items as an Arrow table, with their ranks and probabilities."""
        import pyarrow as pa

        table = self.places_table(chosen)
        ranks = [np.arange(1, len(items) + 1) for items in chosen.values()]
        own = [p[items] for p, items in zip(probability, chosen.values(), strict=True)]
        table = table.append_column("selection_rank", pa.array(np.concatenate(ranks)))
        return table.append_column(
            "inclusion_probability", pa.array(np.concatenate(own))
        )

    def picks_text(self, name: str, picks: Picks) -> str | None:
        """Return the export ``name`` in a format of its own, or None for a table."""
        return None

    @abstractmethod
    def model(
        self, family: OmegaFamily, picks: Picks, path: Sequence[PathPoint]
    ) -> Application:
        """Return learned models as an application, for the usual commands.

        ``picks`` are those that they were learned from; ``path`` are their scores on
        held-out groups.
        """

    @abstractmethod
    def fit_command(self, picks: Picks) -> str:
        """Return the command that learns a model from a file of picks."""

"""The interface of materials: groups of items with features.

Groups are numbered from 0 in the order of DATA, the user's file or folder, and items
from 0 in their group.
"""

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

#: The width, in pixels, up to which pictures are kept in memory.
_KEPT = 640

#: The most characters of a text that stand for it in messages.
_NAMED = 60

#: From the number of a group to the numbers of the items chosen from it.
Picks = Mapping[int, IntArray]


class MaterialError(ValueError):
    """DATA cannot be shown or learned from, for a reason that the message says."""


def has_suffix(path: Path, suffixes: Collection[str]) -> bool:
    """Return whether a path is a file, not hidden, with a suffix such as ".pdf"."""
    is_known = path.suffix.lower() in suffixes and not path.name.startswith(".")
    return is_known and path.is_file()


def most_items(n_items: int, limits: Mapping[str, Any]) -> int:
    """Return how many of ``n_items`` may be chosen: see :meth:`Material.limits`."""
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
    #: Whether groups are files, folders, or pages of them, which are known again by
    #: their items; others, such as those of a column, by their names alone.
    groups_are_files = True
    #: Names of the columns of ``ground_set(group).quality``.
    feature_names: Sequence[str]
    #: Candidates for the similarity; the first is the default.
    kernels: Mapping[str, Kernel]
    #: Models for these features from before the first pick.
    prior: OmegaFamily | None
    #: Remarks about DATA, such as on empty cells.
    notes: Sequence[str] = ()
    _ground_sets: Sequence[GroundSet]
    #: Pairs of ``at_most`` and ``per``: see :meth:`limit`.
    _limits: Sequence[tuple[int, str]] = ()

    @cached_property
    def items(self) -> Callable[[int], Sequence[Item]]:
        """A function from the number of a group to its items; caches 64 groups."""
        return lru_cache(maxsize=64)(self._items)

    @abstractmethod
    def identities(self, group: int) -> Sequence[str]:
        """Return a text for each item of a group that identifies it in the group.

        It is the same whenever DATA is opened, and wherever the item then is: see
        :mod:`~variegate.material.identity`.
        """

    def item_name(self, group: int, item: int) -> str:
        """Return the name of an item for messages: its title, or else its text."""
        one = self.items(group)[item]
        return one.title if one.text is None else f"{one.title}: {one.text[:_NAMED]}"

    @abstractmethod
    def _items(self, group: int) -> Sequence[Item]:
        """Return the items of a group as they are shown, not cached."""

    def ground_set(self, group: int) -> GroundSet:
        """Return quality and similarity features of the items of a group."""
        return self._ground_sets[group]

    def given(self, group: int) -> IntArray:
        """Return the numbers of the items that are there already, and not picked."""
        return self.ground_set(group).given

    @abstractmethod
    def values(self, group: int, item: int) -> Sequence[str]:
        """Return the value of each quality feature of an item as text, as in DATA."""

    @cached_property
    def image(self) -> Callable[[int, int, int], tuple[bytes, str]]:
        """A function from group, item and width to a picture and its MIME type.

        The picture is the bytes of a file, at most ``width`` pixels wide.  Where DATA
        has none, :class:`MaterialError` is raised.
        """
        from variegate.material.pictures import thumbnail

        def make_thumbnail(group: int, item: int, width: int) -> tuple[bytes, str]:
            """Return an item's picture, scaled, as bytes of a file and MIME type."""
            return thumbnail(self._picture(group, item), width)

        kept = lru_cache(maxsize=512)(make_thumbnail)
        return lambda group, item, width: (kept if width <= _KEPT else make_thumbnail)(
            group, item, width
        )

    def _picture(self, group: int, item: int) -> AnyArray:
        """Return the picture (height, width, 3) of an item, or raise MaterialError."""
        raise MaterialError(f"{self.nouns[1]} have no pictures")

    # Limits ---------------------------------------------------------------------------

    def limit(self, at_most: Sequence[int], per: Sequence[str]) -> None:
        """Limit how many items with the same value may be chosen from a group.

        ``per`` are names of columns or fields, with one number ``at_most`` for each.
        """
        if len(at_most) != len(per):
            raise MaterialError(
                "give a number at_most for each per, of which the values are counted: "
                f"there are {len(at_most)} and {len(per)}"
            )
        for name in per:
            self._labels(name, 0)
        self._limits = list(zip(at_most, per, strict=True))

    def limits(self, group: int) -> dict[str, Any]:
        """Return the limits on choices from a group, as arguments of ``decode``.

        They are numbers ``at_most`` and, for each of them, in ``per`` the values of the
        items of the group that are not given; {} without limits.
        """
        if not self._limits:
            return {}
        candidates = self.ground_set(group).candidates.tolist()
        every = [self._labels(per, group) for _, per in self._limits]
        labels = [[values[item] for item in candidates] for values in every]
        return {"at_most": [most for most, _ in self._limits], "per": labels}

    def limit_options(self) -> list[str]:
        """Return the limits as options of the command line, one text for each."""
        return [f"--at-most {n} --per {shlex.quote(per)}" for n, per in self._limits]

    def _labels(self, per: str, group: int) -> Sequence[Any]:
        """Return the value of field ``per`` of every item; MaterialError without it."""
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
        """Return an Arrow table with a row for each chosen item: where it is in DATA.

        Of a table, it has the chosen rows, and computed columns if ``with_features``.
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
        """Return all items of the groups as Arrow table; ``label`` is 1 for picks."""
        import pyarrow as pa

        everything = {group: np.arange(self.sizes[group]) for group in sorted(picks)}
        flags = [np.isin(items, picks[group]) for group, items in everything.items()]
        table = self.places_table(everything, with_features=True)
        picked = np.concatenate(flags).astype(np.int8)
        return table.append_column(self.label, pa.array(picked))

    def chosen_table(self, chosen: Picks, probability: Sequence[FloatArray]) -> Any:
        """Return chosen items as an Arrow table, with their ranks and probabilities.

        ``chosen`` are items best first; ``probability`` has an array for each of its
        groups in the same order, of all items of the group.
        """
        import pyarrow as pa

        table = self.places_table(chosen)
        ranks = [np.arange(1, len(items) + 1) for items in chosen.values()]
        own = [p[items] for p, items in zip(probability, chosen.values(), strict=True)]
        table = table.append_column("selection_rank", pa.array(np.concatenate(ranks)))
        return table.append_column(
            "inclusion_probability", pa.array(np.concatenate(own))
        )

    def picks_text(self, name: str, picks: Picks) -> str | None:
        """Return the text of the export ``name``; None if it is ``picks_table``."""
        return None

    @abstractmethod
    def model(
        self, family: OmegaFamily, picks: Picks, path: Sequence[PathPoint]
    ) -> Application:
        """Return learned models as the application that the commands use.

        ``family`` has one for every omega, learned from ``picks``; ``path`` are scores
        on held-out groups by omega.
        """

    @abstractmethod
    def fit_command(self, picks: Picks) -> str:
        """Return the shell command that learns a model from exported picks."""

"""The material of a session: groups of items to be shown and learned from."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Any, ClassVar

from variegate._typing import AnyArray, IntArray
from variegate.ground_set import GroundSet
from variegate.kernels import Kernel
from variegate.tuning.family import OmegaFamily

#: From the number of a group to the sorted items that were chosen from it.
Picks = Mapping[int, IntArray]


class MaterialError(ValueError):
    """DATA cannot be shown or learned from, for a reason that the message says."""


def is_any(path: Path, suffixes: Collection[str]) -> bool:
    """Return whether a path is a file with one of the suffixes, and not hidden."""
    is_known = path.suffix.lower() in suffixes and not path.name.startswith(".")
    return is_known and path.is_file()


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
    _ground_sets: Sequence[GroundSet]

    @cached_property
    def items(self) -> Callable[[int], Sequence[Item]]:
        """A function that returns the items of a group."""
        return lru_cache(maxsize=64)(self._items)

    @abstractmethod
    def _items(self, group: int) -> Sequence[Item]: ...

    def ground_set(self, group: int) -> GroundSet:
        """Return the features of a group."""
        return self._ground_sets[group]

    @cached_property
    def image(self) -> Callable[[int, int, int], tuple[bytes, str]]:
        """A function of a group, an item and a width: a picture and its MIME type.

        Only of files of DATA.  It raises :class:`MaterialError` where there is none.
        """
        from variegate.studio.material.pictures import thumbnail

        return lru_cache(maxsize=512)(
            lambda group, item, width: thumbnail(self._picture(group, item), width)
        )

    @abstractmethod
    def _picture(self, group: int, item: int) -> AnyArray: ...

    def picks_table(self, picks: Picks) -> Any:
        """Return picks as an Arrow table: a row for every item of the groups."""
        import pyarrow as pa

        schema = pa.schema([pa.field(*column) for column in self._columns_of_picks])
        return pa.table(list(zip(*self._rows(picks), strict=True)), schema)

    #: Names and types of the columns of ``picks_table``.
    _columns_of_picks: ClassVar[tuple[tuple[str, str], ...]] = ()

    def _rows(self, picks: Picks) -> list[tuple[Any, ...]]:
        raise NotImplementedError

    def picks_text(self, name: str, picks: Picks) -> str | None:
        """Return a file of picks that has its own format, or None for a table."""
        return None

    @abstractmethod
    def learner(self, picks: Picks) -> Callable[[], Any]:
        """Return a function that returns the usual estimator, learned from picks.

        It can be called in another process.
        """

    @abstractmethod
    def command_line(self, picks: Picks) -> str:
        """Return the commands that learn the same from a file of picks."""

"""What the studio shows and learns from, whatever it is made of."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from variegate._typing import IntArray
from variegate.ground_set import GroundSet
from variegate.kernels import Kernel
from variegate.tuning.family import OmegaFamily

__all__ = ["Item", "Material", "MaterialError", "Picks"]

#: What was chosen from which groups: the number of a group, and sorted items of it.
Picks = Mapping[int, IntArray]


class MaterialError(ValueError):
    """DATA cannot be shown or learned from, for a reason that the message says."""


@dataclass(frozen=True)
class Item:
    """What is shown of one row, sentence, frame or image.

    Attributes
    ----------
    key : str
        What it is called in exported picks; differs from all others of its group.
    title : str
        One line: a name, a time.
    text : str or None
        Running text, where there is some.
    fields : tuple of (name, value)
        What else is known, as text.
    has_image : bool
        Whether :meth:`Material.image` has a picture of it.
    """

    key: str
    title: str
    text: str | None = None
    fields: tuple[tuple[str, str], ...] = ()
    has_image: bool = False


class Material(Protocol):
    """Groups of items with features, settled once when DATA is opened.

    All methods may be called from several threads.
    """

    @property
    def kind(self) -> str:
        """What it is: "table", "documents", "video" or "images"."""
        ...

    @property
    def nouns(self) -> tuple[str, str]:
        """What one item is called, and several."""
        ...

    @property
    def names(self) -> Sequence[str]:
        """The names of the groups, in the order of DATA."""
        ...

    @property
    def sizes(self) -> Sequence[int]:
        """The number of items of each group."""
        ...

    @property
    def fingerprint(self) -> str:
        """Differs for other DATA, and for other groups or columns of the same."""
        ...

    @property
    def feature_names(self) -> Sequence[str]:
        """What the columns of ``ground_set(group).quality`` are called."""
        ...

    @property
    def kernels(self) -> Mapping[str, Kernel]:
        """The similarities that may be learned, by name; the first is the default."""
        ...

    @property
    def prior(self) -> OmegaFamily | None:
        """Models for these features from before the first pick, if there are any."""
        ...

    def items(self, group: int) -> Sequence[Item]:
        """Return what is shown of a group."""
        ...

    def ground_set(self, group: int) -> GroundSet:
        """Return the features of a group."""
        ...

    def image(self, group: int, item: int, width: int) -> tuple[bytes, str]:
        """Return a picture of an item, at most so wide, and its MIME type.

        Only of files of DATA.  Raises :class:`MaterialError` where there is none.
        """
        ...

    def picks_table(self, picks: Picks) -> Any:
        """Return picks as an Arrow table: a row for every item of the groups."""
        ...

    def learner(self, picks: Picks) -> Callable[[], Any]:
        """Return what, called, returns the usual estimator, learned from picks.

        It can be called in another process.
        """
        ...

    def command_line(self, picks_file: str, picks: Picks) -> str:
        """Return the commands that learn the same from a file of picks."""
        ...

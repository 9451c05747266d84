"""The selector of tables whose columns are computed from pictures."""

from __future__ import annotations

from variegate.tables.selector import TableSelector


class PictureSelector(TableSelector):
    """A :class:`variegate.tables.TableSelector` that knows its rows by their pictures.

    The studio makes it; ``variegate select`` computes the columns of new pictures, and
    chooses among them.
    """

    _type = "picture-selector"
    _noun = "picture selector"

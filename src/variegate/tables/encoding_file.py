"""The encoding of columns in a model file."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

import numpy as np

from variegate.estimator import BoostedQuality
from variegate.files.model_format import COUNT, POSITIVE
from variegate.files.models import ModelFileError
from variegate.files.schema import (
    ANYTHING,
    FLAG,
    ListOf,
    MapOf,
    Maybe,
    Number,
    Record,
    String,
)
from variegate.tables.encoding import Encoding, FeatureColumn

_COLUMN = Record(
    {
        "name": String(),
        "kind": String(("number", "category", "vector", "direction")),
        "mean": ListOf(Number()),
        "scale": ListOf(POSITIVE),
        "levels": ListOf(String()),
        "rare": ListOf(String()),
        "counts": ListOf(COUNT),
        "has_indicator": FLAG,
        "is_single": FLAG,
    }
)
_LISTED = ("levels", "rare", "counts")

#: The shape of an encoding; that of the trees is checked by ``BoostedQuality``.
ENCODING = Record(
    {
        "quality": ListOf(_COLUMN, least=1),
        "blocks": MapOf(ListOf(_COLUMN, least=1)),
    },
    {"boosting": Maybe(ANYTHING)},
)


def encode_encoding(encoding: Encoding) -> dict[str, Any]:
    """Return an encoding as values for JSON, of the shape ``ENCODING``."""
    return {
        "quality": list(map(_encode_column, encoding.quality)),
        "blocks": {n: list(map(_encode_column, b)) for n, b in encoding.blocks.items()},
        "boosting": encoding.boosting and encoding.boosting.encode(),
    }


def decode_encoding(section: Mapping[str, Any], missing: str) -> Encoding:
    """Return or refuse an encoding from a file; ``missing`` is as in ``Encoding``."""
    quality = tuple(map(_decode_column, section["quality"]))
    blocks = {n: tuple(map(_decode_column, b)) for n, b in section["blocks"].items()}
    boosting, known = None, section.get("boosting")
    if known is not None:
        boosting = BoostedQuality.decode(known, "encoding.boosting")
        n_features = sum(column.size for column in quality)
        if boosting.n_features != n_features:
            raise ModelFileError(
                f'"encoding.boosting" is for {boosting.n_features} features, but the '
                f"quality columns have {n_features}"
            )
    return Encoding(quality, blocks, missing, boosting)


def _encode_column(column: FeatureColumn) -> dict[str, Any]:
    """Return a feature column as values for JSON."""
    numbers = {"mean": column.mean.tolist(), "scale": column.scale.tolist()}
    listed = {name: list(getattr(column, name)) for name in _LISTED}
    return asdict(column) | numbers | listed


def _decode_column(section: Mapping[str, Any]) -> FeatureColumn:
    """Return the feature column of a section, or refuse a contradictory one."""
    kind, name = section["kind"], section["name"]
    mean, scale = (np.array(section[k], dtype=np.float64) for k in ("mean", "scale"))
    if section["has_indicator"] and kind == "direction":
        raise ModelFileError(f"column {name!r} of kind {kind} has no indicator")
    if len(mean) != len(scale) or (kind == "number" and len(mean) != 1):
        raise ModelFileError(f"the scale of column {name!r} makes no sense")
    listed = {part: tuple(section[part]) for part in _LISTED}
    column = FeatureColumn(**{**section, "mean": mean, "scale": scale, **listed})
    if kind == "category" and len(column.counts) != column.size - column.has_indicator:
        raise ModelFileError(f"the counts of column {name!r} do not fit its levels")
    return column

"""What a file of a selector holds beside settings and models.

The format is that of :mod:`variegate.persistence`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import numpy as np

from variegate.persistence import ModelFileError
from variegate.tables.columns import Columns
from variegate.tables.encoding import Encoding, FeatureColumn
from variegate.tables.ways import encode_elsewhere, encode_rule

if TYPE_CHECKING:
    from variegate.tables.selector import TableSelector

__all__ = ["decode_rest", "encode_rest"]

_KINDS = ("number", "category", "vector", "direction")


def encode_rest(selector: TableSelector) -> dict[str, Any]:
    """Return columns, encoding, omega and seed of a selector as plain values."""
    encoding = selector.encoding_
    return {
        "columns": asdict(selector.columns_),
        "encoding": {
            "quality": list(map(_encode_column, encoding.quality)),
            "blocks": {
                n: list(map(_encode_column, b)) for n, b in encoding.blocks.items()
            },
        },
        "omega": selector.omega_,
        **encode_rule(selector.way_),
        "elsewhere": encode_elsewhere(selector.elsewhere_),
        "seed": selector.seed_,
        "table": [str(name) for name in selector.feature_names_in_],
    }


def decode_rest(selector: TableSelector, document: Mapping[str, Any]) -> None:
    """Give a selector what :func:`encode_rest` has put into a file."""
    columns = Columns.of(**document["columns"])
    section = document["encoding"]
    encoding = Encoding(
        tuple(map(_decode_column, section["quality"])),
        {str(n): tuple(map(_decode_column, b)) for n, b in section["blocks"].items()},
        columns.missing,
    )
    similarity = [column for block in encoding.blocks.values() for column in block]
    for features, wanted in (
        (encoding.quality, columns.quality),
        (similarity, columns.similarity),
    ):
        if sorted(column.name for column in features) != sorted(wanted):
            raise ModelFileError('"encoding" and "columns" do not fit together')
    selector.columns_, selector.encoding_ = columns, encoding
    selector.seed_ = int(document.get("seed", 0))
    names = [str(name) for name in document["table"]]
    selector.feature_names_in_ = np.array(names, dtype=object)
    selector.n_features_in_ = len(names)


def _encode_column(column: FeatureColumn) -> dict[str, Any]:
    numbers = {"mean": column.mean.tolist(), "scale": column.scale.tolist()}
    return asdict(column) | numbers | {"levels": list(column.levels)}


def _decode_column(section: Mapping[str, Any]) -> FeatureColumn:
    kind = section["kind"]
    if kind not in _KINDS:
        raise ModelFileError(f"unknown kind of column {kind!r}")
    mean, scale = (np.array(section[k], dtype=np.float64) for k in ("mean", "scale"))
    if (
        mean.shape != scale.shape
        or mean.ndim != 1
        or (kind == "number" and len(mean) != 1)
        or not (np.isfinite(mean) & np.isfinite(scale) & (scale > 0.0)).all()
    ):
        raise ModelFileError(f"the scale of column {section['name']!r} makes no sense")
    return FeatureColumn(
        str(section["name"]),
        str(kind),
        mean,
        scale,
        tuple(str(level) for level in section.get("levels", ())),
        bool(section.get("has_indicator", False)),
        bool(section.get("is_single", False)),
    )

"""What a file of a selector holds beside settings and models.

The format is that of :mod:`variegate.files.models`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import numpy as np

from variegate.estimator import DPPEstimator, LargeMarginDPP
from variegate.files.model_format import COUNT, POSITIVE
from variegate.files.models import ModelFileError, Own
from variegate.files.schema import (
    Anything,
    Flag,
    ListOf,
    MapOf,
    Maybe,
    Number,
    Record,
    Shape,
    Text,
)
from variegate.ground_set import GroundSet
from variegate.tables.columns import Columns
from variegate.tables.encoding import Encoding, FeatureColumn
from variegate.tables.policy import FALLBACK, RULE, Fallback, Policy
from variegate.tables.record import RECORD

if TYPE_CHECKING:
    from variegate.tables.selector import TableSelector

__all__ = [
    "SECTIONS",
    "decode_encoding",
    "decode_policy",
    "decode_rest",
    "encode_encoding",
    "encode_rest",
]

_COLUMN = Record(
    {
        "name": Text(),
        "kind": Text(("number", "category", "vector", "direction")),
        "mean": ListOf(Number()),
        "scale": ListOf(POSITIVE),
        "levels": ListOf(Text()),
        "has_indicator": Flag(),
        "is_single": Flag(),
    }
)
#: What a file of a selector holds beside settings and models.
SECTIONS: dict[str, Shape] = {
    "columns": MapOf(Anything()),
    "encoding": Record(
        {"quality": ListOf(_COLUMN, least=1), "blocks": MapOf(ListOf(_COLUMN, least=1))}
    ),
    "omega": POSITIVE,
    "table": ListOf(Text()),
    "seed": COUNT,
    "elsewhere": Maybe(FALLBACK),
    "training": RECORD,
    **RULE,
}


def encode_rest(selector: TableSelector) -> dict[str, Any]:
    """Return columns, encoding, omega and seed of a selector as plain values."""
    return {
        "columns": asdict(selector.columns_),
        "encoding": encode_encoding(selector.encoding_),
        "omega": selector.omega_,
        **selector.policy_.encode_rule(),
        "elsewhere": selector.fallback_ and selector.fallback_.encode(),
        "seed": selector.seed_,
        "table": [str(name) for name in selector.feature_names_in_],
    }


def decode_rest(selector: TableSelector, document: Mapping[str, Any]) -> None:
    """Give a selector what :func:`encode_rest` has put into a file."""
    columns = Columns.of(**document["columns"])
    encoding = decode_encoding(document["encoding"], columns.missing)
    similarity = [column for block in encoding.blocks.values() for column in block]
    for features, wanted in (
        (encoding.quality, columns.quality),
        (similarity, columns.similarity),
    ):
        if sorted(column.name for column in features) != sorted(wanted):
            raise ModelFileError('"encoding" and "columns" do not fit together')
    for column in encoding.columns():
        parts = columns.vectors.get(column.name)
        if parts is not None and len(parts) != len(column.mean):
            raise ModelFileError(f"the columns of vector {column.name!r} do not fit")
    selector.columns_, selector.encoding_ = columns, encoding
    selector.seed_ = document["seed"]
    names = document["table"]
    selector.feature_names_in_ = np.array(names, dtype=object)
    selector.n_features_in_ = len(names)


def decode_policy(
    selector: TableSelector, document: Mapping[str, Any], own: Own
) -> None:
    """Give a selector with models the policies that a file holds."""
    selector.omega_ = selector.family_.resolve(document["omega"])
    selector.k_, selector.ordering_ = Policy.decode_rule(document)
    fallback = document["elsewhere"]
    selector.fallback_ = Fallback.decode(fallback, selector.models_[0], own)
    _check_models(selector)


def _check_models(selector: TableSelector) -> None:
    """Refuse models that cannot be used on the features of the columns."""
    encoding = selector.encoding_
    rng = np.random.default_rng(0)
    blocks = {
        name: rng.normal(size=(2, sum(column.size for column in block)))
        for name, block in encoding.blocks.items()
    }
    items = GroundSet(rng.normal(size=(2, len(encoding.names))), blocks or None)
    models = selector.family_.models
    if selector.fallback_ is not None:
        models += selector.fallback_.policy.family.models
    for model in models:
        _check_model(model, items)


def _check_model(model: DPPEstimator, items: GroundSet) -> None:
    if not isinstance(model, LargeMarginDPP):
        model.ensemble(items)
        return
    S = model.kernel_.value(model.kernel_.prepare(items), model.kernel_parameters_)
    if not np.isfinite(S).all():
        raise ModelFileError("the kernel gives no similarity")


def encode_encoding(encoding: Encoding) -> dict[str, Any]:
    """Return how columns become features as plain values."""
    return {
        "quality": list(map(_encode_column, encoding.quality)),
        "blocks": {n: list(map(_encode_column, b)) for n, b in encoding.blocks.items()},
    }


def decode_encoding(section: Mapping[str, Any], missing: str) -> Encoding:
    """Return what :func:`encode_encoding` wrote."""
    return Encoding(
        tuple(map(_decode_column, section["quality"])),
        {n: tuple(map(_decode_column, b)) for n, b in section["blocks"].items()},
        missing,
    )


def _encode_column(column: FeatureColumn) -> dict[str, Any]:
    numbers = {"mean": column.mean.tolist(), "scale": column.scale.tolist()}
    return asdict(column) | numbers | {"levels": list(column.levels)}


def _decode_column(section: Mapping[str, Any]) -> FeatureColumn:
    kind, name = section["kind"], section["name"]
    mean, scale = (np.array(section[k], dtype=np.float64) for k in ("mean", "scale"))
    if section["has_indicator"] and kind == "direction":
        raise ModelFileError(f"column {name!r} of kind {kind} has no indicator")
    if len(mean) != len(scale) or (kind == "number" and len(mean) != 1):
        raise ModelFileError(f"the scale of column {name!r} makes no sense")
    return FeatureColumn(
        name,
        kind,
        mean,
        scale,
        tuple(section["levels"]),
        section["has_indicator"],
        section["is_single"],
    )

"""Selectors in files: the format of :mod:`variegate.persistence`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np

from variegate import persistence
from variegate.application.settings import decode_settings, encode_settings
from variegate.kernels import Kernel
from variegate.persistence import ModelFileError
from variegate.tables.columns import Columns
from variegate.tables.encoding import Encoding, FeatureColumn
from variegate.tables.record import path_of_record
from variegate.tables.selector import TableSelector
from variegate.tuning import OmegaFamily
from variegate.tuning.omega import resolve_omega

__all__ = ["decode", "save"]

_TYPE = "table-selector"

#: The kernel is stored with the models, and the rest is about the machine.
_NOT_STORED = ("kernel", "decoder", "n_jobs", "memory")

_KINDS = ("number", "category", "vector", "direction")


def save(selector: TableSelector, path: str | Path) -> None:
    """Write a fitted selector."""
    encoding = selector.encoding_
    content = {
        "type": _TYPE,
        "settings": encode_settings(selector.get_params(deep=False), _NOT_STORED),
        "columns": asdict(selector.columns_),
        "encoding": {
            "quality": [_encode_column(column) for column in encoding.quality],
            "blocks": {
                name: [_encode_column(column) for column in block]
                for name, block in encoding.blocks.items()
            },
        },
        "omega": selector.omega_,
        "seed": selector.seed_,
        "table": [str(name) for name in selector.feature_names_in_],
        "models": OmegaFamily(selector.omegas_, selector.models_).encode(),
        "training": selector.training_,
    }
    persistence.write_document(content, path)


def _encode_column(column: FeatureColumn) -> dict[str, Any]:
    return {
        "name": column.name,
        "kind": column.kind,
        "mean": column.mean.tolist(),
        "scale": column.scale.tolist(),
        "levels": list(column.levels),
        "has_indicator": column.has_indicator,
        "is_single": column.is_single,
    }


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


def decode(
    document: Mapping[str, Any], kernels: Sequence[type[Kernel]] = ()
) -> TableSelector:
    """Return the selector that a file describes."""
    known = set(TableSelector().get_params(deep=False)) - set(_NOT_STORED)
    selector = TableSelector(**decode_settings(document, sorted(known)))
    columns = Columns.of(**document["columns"])
    section = document["encoding"]
    encoding = Encoding(
        tuple(_decode_column(column) for column in section["quality"]),
        {
            str(name): tuple(_decode_column(column) for column in block)
            for name, block in section["blocks"].items()
        },
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
    family = OmegaFamily.decode(document, kernels, "the table", len(encoding.names))
    selector.omegas_, selector.models_ = family.omegas, family.models
    model = selector.models_[0]
    selector.lam_, selector.decoder = model.lam, model.decoder
    selector.set_params(kernel=model.kernel)
    selector.omega_ = resolve_omega(selector.omegas_, float(document["omega"]))
    selector.seed_ = int(document.get("seed", 0))
    selector._check_parameters()
    names = [str(name) for name in document["table"]]
    selector.feature_names_in_ = np.array(names, dtype=object)
    selector.n_features_in_ = len(names)
    selector.training_ = dict(document.get("training", {}))
    selector.path_ = path_of_record(selector.training_)
    return selector

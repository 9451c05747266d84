"""What there is to say about a fitted selector, for programs."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from variegate.application.description.parts import kernel_parts
from variegate.tables.encoding import FeatureColumn

if TYPE_CHECKING:
    from variegate.tables.selector import TableSelector

__all__ = ["as_json"]

#: What has a place of its own.
_APART = ("history", "path", "validation", "omega")


def as_json(selector: TableSelector) -> dict[str, Any]:
    """Return all that :func:`variegate.tables.report.text` prints, for programs."""
    result = selector.model_.solver_result_
    record = selector.training_
    validation = record.get("validation")
    encoding = selector.encoding_
    return {
        "data": {name: value for name, value in record.items() if name not in _APART},
        "columns": {
            **asdict(selector.columns_),
            "encoded": {
                "quality": [_column_json(column) for column in encoding.quality],
                "similarity": {
                    name: [_column_json(column) for column in block]
                    for name, block in encoding.blocks.items()
                },
            },
        },
        "lam": selector.lam_,
        "omega": selector.omega_,
        "omegas": list(selector.omegas_),
        "validation": validation
        and {
            name: dict(zip(("mean", "low", "high"), values, strict=True))
            for name, values in validation.items()
        },
        "path": record.get("path"),
        "weights": selector.weights_,
        "intercept": selector.model_.intercept_,
        "kernel": {
            "name": type(selector.model_.kernel_).__name__,
            "parts": [asdict(part) for part in kernel_parts(selector.model_)],
        },
        "history": record.get("history"),
        "training": {
            "stop": result.stop.value,
            "status": result.status,
            "remedy": result.remedy,
            "objective": result.objective,
            "n_iterations": result.n_iterations,
        },
    }


def _column_json(column: FeatureColumn) -> dict[str, Any]:
    return {
        "name": column.name,
        "kind": column.kind,
        "n_features": column.size,
        "levels": list(column.levels),
        "has_indicator": column.has_indicator,
    }

"""The paper's own protocol, for those who hold the licence of its data.

Learn from DUC 2003, summarize DUC 2004 in 665 bytes, score by ROUGE-1.5.5 with
stemming.  The folder holds ``duc2003`` and ``duc2004``, each with ``docs`` and
``models`` as NIST distributes them.
"""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

from variegate.experiments.documents import pieces
from variegate.experiments.documents.settings import Settings
from variegate.text import Budget, Cluster, read_duc
from variegate.text.training import TrainingSet

__all__ = ["check_duc", "compute_duc", "work_list"]


def work_list() -> list[tuple[str, str]]:
    """Return the one piece of work."""
    return [("duc", "all")]


def compute_duc(
    settings: Settings, folder: str, data: str, kind: str, fold: str
) -> list[dict[str, Any]]:
    """Return the scores of every method on every cluster of 2004."""
    learn, judge = _year(Path(folder), "duc2003"), _year(Path(folder), "duc2004")
    budget = Budget.parse(settings.short_budget)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        training = TrainingSet.of(learn, budget)
        chosen = pieces.choose_on_training(settings, training, budget)
        records = pieces.table(settings, "short", learn, judge, chosen, {}, Path(data))
    return [record | {"kind": kind} for record in records]


def check_duc(folder: Path) -> None:
    """Refuse a folder of another shape before any work is done."""
    for year in ("duc2003", "duc2004"):
        for part in ("docs", "models"):
            if not (folder / year / part).is_dir():
                raise ValueError(
                    f"no folder {year}/{part} in {folder}: --duc DIR expects duc2003 "
                    "and duc2004, each with docs and models as NIST distributes them"
                )


def _year(folder: Path, year: str) -> list[Cluster]:
    return read_duc(folder / year / "docs", folder / year / "models")

"""The paper's section 4.3: key frames of videos.

The road: :mod:`settings`, :mod:`pool` → :mod:`pieces` (learn on some videos, score the
others; :mod:`similarities` are rows beyond the paper) → :mod:`rows` (means and
intervals) → :mod:`claims`, :mod:`figures`.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from paper.experiment import Experiment, Outcome
from paper.video import claims, figures, pieces, rows
from paper.video.pool import find_pool
from paper.video.settings import Settings, Setup

__all__ = ["EXPERIMENT", "Outcome", "Settings", "reproduce"]

EXPERIMENT = Experiment(
    pieces.work_list,
    pieces.compute_piece,
    rows.results,
    claims.claims,
    figures.draw_all,
    "video.md",
    {"hero": rows.HERO, "label": rows.label, "paper": claims.PAPER},
    ("the paper, its own frames", "measured here, the pool", "holds"),
)


def reproduce(
    out: Path,
    settings: Settings | None = None,
    data: Path | None = None,
    test_data: Path | None = None,
    command: str = "python -m paper video",
    **options: Any,
) -> Outcome:
    """Run the video experiments and write results, figures and report to ``out``.

    ``data`` is the folder of the pool: see :func:`pool.find_pool`.  With ``test_data``,
    learn from all of it and report on that folder instead of holding out parts in turn.
    The other options are those of :meth:`Experiment.reproduce`.
    """
    settings = settings or Settings()
    settings.check_rows(pieces.ROW_NAMES)
    setup = Setup.of(settings, find_pool, data, test_data)
    return EXPERIMENT.reproduce(out, setup, command, **options)

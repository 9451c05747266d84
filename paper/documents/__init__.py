"""The paper's section 4.2: summaries of clusters of documents.

The road: :mod:`settings`, :mod:`data` → :mod:`pieces` (learn on some topics, score the
others by :mod:`methods`; :mod:`similarities` are rows beyond the paper) → :mod:`rows`
(means and intervals) → :mod:`claims`, :mod:`figures`.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from paper.documents import claims, figures, methods, pieces, rows
from paper.documents.data import check_duc, find_data
from paper.documents.settings import Settings, Setup
from paper.experiment import Experiment, Outcome

__all__ = ["EXPERIMENT", "Outcome", "Settings", "reproduce"]

EXPERIMENT = Experiment(
    pieces.work_list,
    pieces.compute_piece,
    rows.results,
    claims.claims,
    figures.draw_all,
    "documents.md",
    {"about": rows.ABOUT, "paper": claims.PAPER, "scores": rows.SCORES},
)


def reproduce(
    out: Path,
    settings: Settings | None = None,
    data: Path | None = None,
    test_data: Path | None = None,
    duc: Path | None = None,
    command: str = "python -m paper documents",
    **options: Any,
) -> Outcome:
    """Run the document experiments and write results, figures and report to ``out``.

    ``data`` is the folder of the texts: see :func:`data.find_data`.  With
    ``test_data``, learn from all of it and report on that folder instead of leaving one
    topic out at a time.  With ``duc``, a folder with DUC 2003 and 2004, also run the
    paper's own protocol.  The other options are those of :meth:`Experiment.reproduce`.
    """
    settings = settings or Settings()
    settings.check_rows(methods.row_names())
    own = {"duc": str(check_duc(duc)) if duc else None}
    setup = Setup.of(settings, find_data, data, test_data, **own)
    return EXPERIMENT.reproduce(out, setup, command, **options)

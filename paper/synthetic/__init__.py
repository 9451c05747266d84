"""The paper's section 4.1: learning from synthetic ground sets.

The road: :mod:`settings` (settings and data) → :mod:`pieces` (fits of one draw) →
:mod:`summary` (means over draws) → :mod:`claims`, :mod:`figures`.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from paper.experiment import Experiment, Outcome
from paper.figures import NAMES
from paper.synthetic import claims, figures, pieces, summary
from paper.synthetic.settings import Settings

__all__ = ["EXPERIMENT", "Outcome", "Settings", "reproduce"]

EXPERIMENT = Experiment(
    pieces.work_list,
    pieces.compute_piece,
    summary.summarize,
    claims.claims,
    figures.draw_all,
    "synthetic.md",
    {
        "names": NAMES,
        "number": claims.number,
        "signed": claims.signed,
        "interval": claims.interval,
        "paired": summary.paired,
        "row_of": summary.row_of,
    },
)


def reproduce(
    out: Path,
    settings: Settings | None = None,
    command: str = "python -m paper synthetic",
    **options: Any,
) -> Outcome:
    """Run all synthetic experiments and write results, figures and report to ``out``.

    The other options are those of :meth:`Experiment.reproduce`.
    """
    return EXPERIMENT.reproduce(out, settings or Settings(), command, **options)

"""The paper's section 4.1: learning from synthetic ground sets.

The road: :mod:`settings` (settings and data) → :mod:`pieces` (fits of one draw) →
:mod:`summary` (means over draws) → :mod:`claims`, :mod:`figures`, :mod:`report`.
"""

from __future__ import annotations

import json
from functools import partial
from pathlib import Path

from variegate._files import write_atomic
from variegate.experiments.outcome import Outcome
from variegate.experiments.runner import (
    Progress,
    discard_pieces,
    fingerprint,
    run_pieces,
)
from variegate.experiments.synthetic import figures, pieces, report
from variegate.experiments.synthetic.claims import claims
from variegate.experiments.synthetic.settings import Settings
from variegate.experiments.synthetic.summary import summarize
from variegate.report.figures import to_png

__all__ = ["Outcome", "Settings", "reproduce"]


def reproduce(
    out: Path,
    settings: Settings | None = None,
    jobs: int = 1,
    progress: Progress | None = None,
    command: str = "variegate reproduce synthetic",
) -> Outcome:
    """Run all synthetic experiments and write results, figures and report to ``out``.

    Parameters
    ----------
    out : Path
        Created if it does not exist.
    settings : Settings, optional
    jobs : int
        Worker processes; the results do not depend on it.
    progress : callable, optional
        Called with the numbers of finished and of all pieces.
    command : str
        What the report says it was made by.
    """
    settings = settings or Settings()
    out.mkdir(parents=True, exist_ok=True)
    work = [
        (figure, draw)
        for draw in range(settings.n_draws)
        for figure in pieces.FIGURES
        if figure != "gap" or settings.with_gap
    ]
    mark = fingerprint(settings.as_dict())
    computed = run_pieces(
        partial(pieces.compute_piece, settings),
        work,
        out,
        mark,
        jobs,
        progress,
    )
    records = [record for piece in computed for record in piece]
    results = summarize(settings, records)
    found = claims(settings, results)
    files = {
        "results.json": json.dumps(results, indent=1) + "\n",
        "report.md": report.report(settings, results, found, command),
    }
    written = []
    for name, text in files.items():
        write_atomic(out / name, text)
        written.append(out / name)
    for name, figure in figures.draw_all(settings, results).items():
        path = out / f"{name}.png"
        write_atomic(path, to_png(figure))
        written.append(path)
    discard_pieces(out, mark)
    return Outcome(results, found, written)

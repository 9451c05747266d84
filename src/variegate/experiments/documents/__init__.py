"""The paper's section 4.2: summaries of clusters of documents.

The road: :mod:`settings`, :mod:`data` → :mod:`pieces` (learn on some topics, score the
others) → :mod:`rows` (means and intervals) → :mod:`claims`, :mod:`figures`,
:mod:`report`.
"""

from __future__ import annotations

import json
from functools import partial
from pathlib import Path

from variegate._files import write_atomic
from variegate.experiments.documents import figures, pieces, report
from variegate.experiments.documents.claims import ORDERS, claims
from variegate.experiments.documents.data import find_data, load_corpus
from variegate.experiments.documents.duc import check_duc, compute_duc
from variegate.experiments.documents.duc import work_list as duc_work
from variegate.experiments.documents.rows import (
    comparisons,
    omega_rows,
    paired_rows,
    table_rows,
)
from variegate.experiments.documents.settings import Settings
from variegate.experiments.outcome import Outcome
from variegate.experiments.runner import (
    Progress,
    discard_pieces,
    fingerprint,
    run_pieces,
)
from variegate.report.figures import to_png

__all__ = ["Outcome", "Settings", "reproduce"]


def reproduce(
    out: Path,
    settings: Settings | None = None,
    data: Path | None = None,
    test_data: Path | None = None,
    duc: Path | None = None,
    jobs: int = 1,
    progress: Progress | None = None,
    command: str = "variegate reproduce documents",
) -> Outcome:
    """Run the document experiments and write results, figures and report to ``out``.

    Parameters
    ----------
    out : Path
        Created if it does not exist.
    settings : Settings, optional
    data : Path, optional
        The folder of the texts: see :func:`data.find_data`.
    test_data : Path, optional
        Learn from all of ``data`` and report on this folder instead of leaving one
        topic out at a time.
    duc : Path, optional
        A folder with DUC 2003 and 2004: also run the paper's own protocol.
    jobs : int
        Worker processes; the results do not depend on it.
    progress : callable, optional
        Called with the numbers of finished and of all pieces.
    command : str
        What the report says it was made by.
    """
    settings = settings or Settings()
    if duc is not None:
        check_duc(duc)
    folder = find_data(data).resolve()
    test_folder = find_data(test_data, "--test-data").resolve() if test_data else None
    train = load_corpus(folder)
    test = load_corpus(test_folder) if test_folder else None
    out.mkdir(parents=True, exist_ok=True)
    where = (str(folder), str(test_folder) if test_folder else None)
    mark = fingerprint(settings.as_dict() | {"data": [*where, str(duc)]})
    computed = run_pieces(
        partial(pieces.compute_piece, settings, *where),
        pieces.work_list(train, test),
        out,
        mark,
        jobs,
        progress,
    )
    records = [record for piece in computed for record in piece]
    if duc is not None:
        compute = partial(compute_duc, settings, str(duc.resolve()), where[0])
        for piece in run_pieces(compute, duc_work(), out, mark, 1, progress):
            records += piece
    results = {
        "settings": settings.as_dict(),
        "rows": table_rows(records),
        "comparisons": comparisons(settings, records),
        "paired": paired_rows(settings, records, ORDERS),
        "omega": omega_rows(records),
        "chosen": pieces.choices(records),
    }
    found = claims(results)
    written = []
    for name, text in {
        "results.json": json.dumps(results, indent=1, allow_nan=False) + "\n",
        "report.md": report.report(settings, results, found, command),
    }.items():
        write_atomic(out / name, text)
        written.append(out / name)
    for name, figure in figures.draw_all(results).items():
        write_atomic(out / f"{name}.png", to_png(figure))
        written.append(out / f"{name}.png")
    discard_pieces(out, mark)
    return Outcome(results, found, written)

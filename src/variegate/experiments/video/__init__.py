"""The paper's section 4.3: key frames of videos.

The road: :mod:`settings`, :mod:`pool` → :mod:`pieces` (learn on some videos, score the
others) → :mod:`rows` (means and intervals) → :mod:`claims`, :mod:`figures`,
:mod:`report`.
"""

from __future__ import annotations

import json
from functools import partial
from pathlib import Path
from typing import Any

from variegate._files import write_atomic
from variegate.experiments.outcome import Outcome
from variegate.experiments.runner import (
    Progress,
    discard_pieces,
    fingerprint,
    run_pieces,
)
from variegate.experiments.video import figures, pieces, report
from variegate.experiments.video.claims import claims, fraction
from variegate.experiments.video.pool import find_pool, read_pool
from variegate.experiments.video.rows import choices, comparisons, rows_of
from variegate.experiments.video.settings import Settings
from variegate.report.figures import to_png
from variegate.video import Keyframe
from variegate.video.storyboard import encode_png, storyboard_rows

__all__ = ["Outcome", "Settings", "reproduce"]


def reproduce(
    out: Path,
    settings: Settings | None = None,
    data: Path | None = None,
    test_data: Path | None = None,
    jobs: int = 1,
    progress: Progress | None = None,
    command: str = "variegate reproduce video",
) -> Outcome:
    """Run the video experiments and write results, figures and report to ``out``.

    Parameters
    ----------
    out : Path
        Created if it does not exist.
    settings : Settings, optional
    data : Path, optional
        The folder of the pool: see :func:`pool.find_pool`.
    test_data : Path, optional
        Learn from all of ``data`` and report on this folder instead of holding out
        parts in turn.
    jobs : int
        Worker processes; the results do not depend on it.
    progress : callable, optional
        Called with the numbers of finished and of all pieces.
    command : str
        What the report says it was made by.
    """
    settings = settings or Settings()
    folder = find_pool(data).resolve()
    judged = find_pool(test_data, "--test-data").resolve() if test_data else None
    out.mkdir(parents=True, exist_ok=True)
    where = (str(folder), str(judged) if judged else None)
    mark = fingerprint(settings.as_dict() | {"data": list(where)})
    computed = run_pieces(
        partial(pieces.compute_piece, settings, *where),
        pieces.work_list(settings, judged is not None),
        out,
        mark,
        jobs,
        progress,
    )
    records = [record for piece in computed for record in piece]
    shown = min(record["video"] for record in records)
    results = {
        "settings": settings.as_dict(),
        "test_data": judged is not None,
        "rows": rows_of(records, "table"),
        "comparisons": comparisons(settings, records),
        "steps": rows_of(records, "steps"),
        "chosen": choices(records),
        "storyboard": shown,
    }
    found = claims(results)
    files: dict[str, str | bytes] = {
        "results.json": json.dumps(results, indent=1, allow_nan=False) + "\n",
        "report.md": report.report(settings, results, found, command),
        "figure-3.png": _storyboard(records, judged or folder, shown),
    }
    for name, figure in figures.draw_all(results).items():
        files[f"{name}.png"] = to_png(figure)
    for name, content in files.items():
        write_atomic(out / name, content)
    discard_pieces(out, mark)
    return Outcome(results, found, [out / name for name in files])


def _storyboard(records: list[dict[str, Any]], folder: Path, name: str) -> bytes:
    """Return figure 3: one video under the oracle, MLE and three values of ω."""
    video = next(video for video in read_pool(folder) if video.name == name)
    of_video = [r for r in records if r["video"] == name and r["kind"] == "table"]
    omegas = sorted(r["omega"] for r in of_video if r["method"] == "LME+MKR")
    wanted: list[tuple[str, float | None]] = [("oracle", None), ("MLE+MKR", None)]
    wanted += [("LME+MKR", omega) for omega in _three(omegas)]
    rows = []
    for method, omega in wanted:
        record = next(
            r for r in of_video if (r["method"], r["omega"]) == (method, omega)
        )
        text = method if omega is None else f"omega = {fraction(omega)}"
        keyframes = [
            Keyframe(
                video.frames[place],
                video.frames[place] / video.rate,
                1.0,
                video.image(place),
            )
            for place in record["frames"]
        ]
        rows.append((f"{text}: F {100 * record['runs'][0][2]:.0f}", keyframes))
    return encode_png(storyboard_rows(rows))


def _three(omegas: list[float]) -> list[float]:
    """Return the paper's 1/64, 1 and 64 where they are, or what comes nearest."""

    def nearest(wanted: float) -> float:
        return min(omegas, key=lambda omega: abs(omega / wanted - 1.0))

    return sorted({nearest(wanted) for wanted in (1 / 64, 1.0, 64.0)})

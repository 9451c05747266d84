"""What a selector remembers of its training, as plain values for file and report."""

from __future__ import annotations

from typing import Any

import numpy as np

from variegate._typing import IntArray
from variegate.baselines.ordering import Ordering
from variegate.files.model_format import COUNT, POSITIVE
from variegate.files.schema import Columns, ListOf, Maybe, Number, Pair, Record, Text
from variegate.tables.evaluation import SCORES, Evaluation
from variegate.tables.kinds import KINDS
from variegate.tables.survey import Survey
from variegate.tables.training import Learned
from variegate.tuning.path import OmegaPath, PathPoint
from variegate.tuning.race import Standing

__all__ = ["NOUNS", "RECORD", "path_of_record", "training_record", "validation_path"]

#: What paths call what is chosen, and from what.
NOUNS = ("row", "group")

#: Points of the learning curve that are kept.
_MAX_STEPS = 200

_AMOUNT = Number(least=0)
_SPREAD = Record({"mean": _AMOUNT, "smallest": COUNT, "largest": COUNT})
_CONTENDER = Record(
    {
        "name": Text(),
        "how": Text(),
        "k": Maybe(COUNT),
        "f": _AMOUNT,
        "behind": Number(),
        "error": Maybe(_AMOUNT),
        "n_groups": COUNT,
    }
)
_SEVERAL = ListOf(Maybe(Number()))
_PATH = Record(
    {
        "lam": _AMOUNT,
        "points": ListOf(
            Record(
                dict.fromkeys(PathPoint._fields, Maybe(Number())) | {"omega": POSITIVE}
            )
        ),
        "chosen": Maybe(POSITIVE),
        "target": Maybe(Pair(Text(("precision", "recall")), _AMOUNT)),
    }
)

#: The shape of a training record.
RECORD = Record(
    {
        "n_rows": COUNT,
        "n_groups": COUNT,
        "n_learned_from": COUNT,
        "n_held_out": COUNT,
        "n_left_out": COUNT,
        "group_sizes": _SPREAD,
        "chosen_sizes": _SPREAD,
        "n_tuned": COUNT,
        "n_compared": COUNT,
        "omega": POSITIVE,
        "compared": Record(
            {}, {"kernels": ListOf(_CONTENDER), "settings": ListOf(_CONTENDER)}
        ),
        "history": Columns(
            dict.fromkeys(("iteration", "objective", "n_seen", "expected_f"), _SEVERAL)
        ),
        "path": Maybe(_PATH),
        "validation": Maybe(Record(dict.fromkeys(SCORES, ListOf(Number(), 3, 3)))),
    },
    {
        "kinds": KINDS,
        "folder": Record(
            {
                "n_files": COUNT,
                "unreadable": ListOf(Text()),
                "n_sample": COUNT,
                "n_judged": COUNT,
            }
        ),
    },
)


def validation_path(judged: Evaluation | None, learned: Learned) -> OmegaPath | None:
    """Return what every omega gives on held-out groups."""
    if judged is None:
        return None
    points = []
    for omega, rows in judged.scores.items():
        if omega == "":  # what is chosen if no omega is asked for
            continue
        means, errors = rows.mean(axis=0), np.full(len(SCORES), np.nan)
        # Of a single group nobody knows how much chance there is in it.
        if len(rows) > 1:
            errors = rows.std(axis=0, ddof=1) / np.sqrt(len(rows))
        points.append(PathPoint(float(omega), *means.tolist(), *errors.tolist()))
    return OmegaPath(learned.lam, tuple(points), learned.policy.omega, nouns=NOUNS)


def training_record(
    survey: Survey,
    learned: Learned,
    path: OmegaPath | None,
    judged: Evaluation | None,
    learned_from: IntArray,
    held_out: IntArray,
) -> dict[str, Any]:
    """Return everything about a training that is worth keeping."""
    assert survey.n_chosen is not None  # there is no training without labels
    sizes = survey.index.sizes
    used = np.concatenate([learned_from, held_out])
    record = {
        "n_rows": survey.n_rows,
        "n_groups": len(sizes),
        "n_learned_from": len(learned_from),
        "n_held_out": len(held_out),
        "n_left_out": len(sizes) - len(used),
        "n_tuned": learned.n_tuned,
        "group_sizes": _spread(sizes),
        "chosen_sizes": _spread(survey.n_chosen[learned_from]),
        "omega": learned.policy.omega,
        "compared": _compared(learned),
        "n_compared": learned.n_compared,
        "history": _history(learned),
        "path": None if path is None else _encode_path(path),
        "validation": None,
    }
    if judged is not None:
        intervals = judged.intervals(names=[""])[""]
        record["validation"] = {name: list(intervals[name]) for name in SCORES}
    return record


def _compared(learned: Learned) -> dict[str, list[dict[str, Any]]]:
    """Return how contenders did on held-out groups, the winner first."""
    winner = learned.winner
    if winner is None or not winner.standings:
        return {}

    def plain(standing: Standing) -> dict[str, Any]:
        how, error = standing.rule.how, standing.behind_error
        if isinstance(how, Ordering):
            how = f"{how.method}, trade-off {how.trade_off:g}"
        return {
            "name": standing.name,
            "how": how if isinstance(how, str) else repr(how),
            "k": standing.rule.k,
            "f": standing.mean,
            "behind": standing.behind,
            "error": None if np.isnan(error) else error,
            "n_groups": len(standing.scores),
        }

    return {
        "kernels": [plain(standing) for standing in winner.standings],
        "settings": [plain(standing) for standing in winner.varied],
    }


def _spread(counts: IntArray) -> dict[str, float]:
    return {
        "mean": float(counts.mean()),
        "smallest": int(counts.min()),
        "largest": int(counts.max()),
    }


def _history(learned: Learned) -> dict[str, list[Any]]:
    steps = learned.history
    keep = np.unique(np.linspace(0, len(steps) - 1, _MAX_STEPS).astype(int))
    kept = [steps[i] for i in keep] if steps else []
    names = ("iteration", "objective", "n_seen", "expected_f")
    return {name: [getattr(step, name) for step in kept] for name in names}


def _encode_path(path: OmegaPath) -> dict[str, Any]:
    return {
        "lam": path.lam,
        "chosen": path.chosen,
        "target": None if path.target is None else list(path.target),
        "points": [
            {k: None if np.isnan(v) else v for k, v in point._asdict().items()}
            for point in path
        ],
    }


def path_of_record(record: dict[str, Any]) -> OmegaPath | None:
    """Return the path of a training record."""
    section = record["path"]
    if section is None:
        return None
    points = [
        PathPoint(**{k: np.nan if v is None else float(v) for k, v in point.items()})
        for point in section["points"]
    ]
    target = section["target"]
    return OmegaPath(
        section["lam"],
        tuple(points),
        section["chosen"],
        None if target is None else tuple(target),
        NOUNS,
    )

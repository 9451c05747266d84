"""The sections of a file of a selector, among them the record of its training.

The format is that of :mod:`variegate.files.models`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from variegate._typing import IntArray
from variegate.baselines.learned import Ordering
from variegate.files.model_format import COUNT, POSITIVE
from variegate.files.models import ModelFileError, Own
from variegate.files.schema import (
    ANYTHING,
    ListOf,
    MapOf,
    Maybe,
    Number,
    Pair,
    Record,
    Shape,
    String,
)
from variegate.files.schema import EqualLists as ColumnsShape
from variegate.ground_set import GroundSet
from variegate.tables.columns import Columns
from variegate.tables.encoding import Encoding
from variegate.tables.encoding_file import ENCODING, decode_encoding, encode_encoding
from variegate.tables.evaluation import Evaluation
from variegate.tables.fitted import is_network
from variegate.tables.kinds import KINDS
from variegate.tables.policy import POLICY, Policy
from variegate.tables.survey import Survey
from variegate.tables.training import Learned
from variegate.tuning.held_out import SCORES
from variegate.tuning.path import OmegaPath, PathPoint
from variegate.tuning.race import Standing

if TYPE_CHECKING:
    from variegate.tables.selector import TableSelector

#: Names of an item and of a ground set in paths.
NOUNS = ("row", "group")

#: Points of the learning curve that are kept, at most.
_MAX_STEPS = 200

_AMOUNT = Number(least=0)
_SPREAD = Record({"mean": _AMOUNT, "smallest": COUNT, "largest": COUNT})
_CONTENDER = Record(
    {
        "name": String(),
        "how": String(),
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
        "target": Maybe(Pair(String(("precision", "recall")), _AMOUNT)),
    }
)

#: The shape of a training record.
_RECORD = Record(
    {
        "n_rows": COUNT,
        "n_learned_rows": COUNT,
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
        "history": ColumnsShape(
            dict.fromkeys(("iteration", "objective", "n_seen"), _SEVERAL)
        ),
        "path": Maybe(_PATH),
        "validation": Maybe(Record(dict.fromkeys(SCORES, ListOf(Number(), 3, 3)))),
        "tuned": Maybe(Record(dict.fromkeys(SCORES, _AMOUNT))),
        "n_sample": COUNT,
        "n_judged": COUNT,
        "unreadable": ListOf(String()),
    },
    {"kinds": KINDS},
)

#: Sections of the file of a selector beside settings and models.
SECTIONS: dict[str, Shape] = {
    "columns": MapOf(ANYTHING),
    "encoding": ENCODING,
    "policy": POLICY,
    "table": ListOf(String()),
    "seed": COUNT,
    "training": _RECORD,
}


def encode_rest(selector: TableSelector) -> dict[str, Any]:
    """Return columns, encoding, policy, seed and column names as plain values.

    They are the sections of a selector's file but settings, models and training.
    """
    columns = asdict(selector.columns_)
    del columns["subtopics"], columns["per"]  # are of a call
    return {
        "columns": columns,
        "encoding": encode_encoding(selector.encoding_),
        "policy": selector.policy_.encode(),
        "seed": selector.seed_,
        "table": [str(name) for name in selector.feature_names_in_],
    }


def decode_rest(selector: TableSelector, document: Mapping[str, Any]) -> None:
    """Set columns, encoding, seed and names from a file's values, or refuse them."""
    columns = Columns.of(**document["columns"])
    encoding = decode_encoding(document["encoding"], columns.missing)
    similarity = [column for block in encoding.blocks.values() for column in block]
    for features, wanted in (
        (encoding.quality, columns.quality),
        (similarity, columns.similarity),
    ):
        if sorted(column.name for column in features) != sorted(wanted):
            raise ModelFileError('"encoding" and "columns" do not fit together')
    for column in encoding.columns():
        parts = columns.vectors.get(column.name)
        if parts is not None and len(parts) != len(column.mean):
            raise ModelFileError(f"the columns of vector {column.name!r} do not fit")
    selector.columns_, selector.encoding_ = columns, encoding
    selector.seed_ = document["seed"]
    selector._set_names(document["table"])


def decode_policy(
    selector: TableSelector, document: Mapping[str, Any], own: Own
) -> None:
    """Set the policy of a selector from a file's values, when its models are set.

    Models that do not fit the encoding are refused.  ``own`` has the user's classes.
    """
    selector.policy_ = Policy.decode(document["policy"], selector.family_, own)
    _check_models(selector, selector.encoding_)


def _check_models(selector: TableSelector, encoding: Encoding) -> None:
    """Refuse models that fail on two random rows with features of the encoding."""
    rng = np.random.default_rng(0)
    blocks = {
        name: rng.normal(size=(2, sum(column.size for column in block)))
        for name, block in encoding.blocks.items()
    }
    if encoding.boosting is not None and not blocks:
        blocks[""] = rng.normal(size=(2, len(encoding.names) - 1))
    items = GroundSet(rng.normal(size=(2, len(encoding.names))), blocks or None)
    policies = (selector.policy_, selector.policy_.fallback)
    for model in (policy.model for policy in policies if policy is not None):
        if is_network(model):
            model.ensemble(items)
            continue
        S = model.kernel_.value(model.kernel_.prepare(items), model.kernel_parameters_)
        if not np.isfinite(S).all():
            raise ModelFileError("the kernel gives no similarity")


# The record of a training -------------------------------------------------------------


def validation_path(judged: Evaluation | None, learned: Learned) -> OmegaPath | None:
    """Return mean held-out scores at each omega with their standard errors.

    Scores in ``judged`` have omegas for names.  None without held-out groups.
    """
    if judged is None:
        return None
    points = []
    for omega, rows in judged.scores.items():
        means, errors = rows.mean(axis=0), np.full(len(SCORES), np.nan)
        # One group tells nothing about the variation between groups.
        if len(rows) > 1:
            errors = rows.std(axis=0, ddof=1) / np.sqrt(len(rows))
        points.append(PathPoint(float(omega), *means.tolist(), *errors.tolist()))
    target = None if learned.path is None else learned.path.target
    model = learned.policy.model
    return OmegaPath(
        float(model.lam), tuple(points), learned.policy.omega, target, NOUNS
    )


def training_record(
    survey: Survey,
    learned: Learned,
    path: OmegaPath | None,
    judged: Evaluation | None,
    learned_from: IntArray,
    held_out: IntArray,
) -> dict[str, Any]:
    """Return the record of a training: sizes, comparison, history, path and scores.

    ``learned_from`` and ``held_out`` are numbers of groups.
    """
    assert survey.n_chosen is not None  # there is no training without labels
    sizes = survey.sizes
    used = np.concatenate([learned_from, held_out])
    record = {
        "n_rows": survey.n_rows,
        "n_learned_rows": int(sizes[learned_from].sum()),
        "n_groups": len(sizes),
        "n_learned_from": len(learned_from),
        "n_held_out": len(held_out),
        "n_left_out": len(sizes) - len(used),
        "n_tuned": learned.n_tuned,
        "group_sizes": _size_range(sizes),
        "chosen_sizes": _size_range(survey.n_chosen[learned_from]),
        "omega": learned.policy.omega,
        "compared": _comparison_record(learned),
        "n_compared": learned.n_compared,
        "history": _history_record(learned),
        "path": None if path is None else _encode_path(path),
        "validation": None,
        "tuned": _tuned_scores(learned),
        "n_sample": learned.n_sample,
        "unreadable": [Path(path).name for path in survey.unreadable],
    }
    if judged is not None:
        default = str(learned.policy.omega)
        intervals = judged.intervals(names=[default])[default]
        record["validation"] = {name: list(intervals[name]) for name in SCORES}
    return record


def _tuned_scores(learned: Learned) -> dict[str, float] | None:
    """Return cross-validation scores at the chosen omega by name; None if not tuned."""
    if learned.path is None:
        return None
    (point,) = (one for one in learned.path if one.omega == learned.path.chosen)
    return {name: getattr(point, name) for name in SCORES}


def _comparison_record(learned: Learned) -> dict[str, list[dict[str, Any]]]:
    """Return "kernels" and "settings", lists of ``_CONTENDER`` records, best first.

    "kernels" are all contenders, "settings" variations of the best; {} without any.
    """
    winner = learned.winner
    if winner is None or not winner.standings:
        return {}

    def standing_record(standing: Standing) -> dict[str, Any]:
        """Return the rule and scores of one candidate as plain values."""
        how, error = standing.rule.how, standing.behind_error
        text = how if isinstance(how, str) else repr(how)
        if isinstance(how, Ordering):
            text = f"{how.method}, diversity {how.diversity:g}"
        return {
            "name": standing.name,
            "how": text,
            "k": standing.rule.k,
            "f": standing.mean,
            "behind": standing.behind,
            "error": None if np.isnan(error) else error,
            "n_groups": len(standing.scores),
        }

    return {
        "kernels": [standing_record(standing) for standing in winner.standings],
        "settings": [standing_record(standing) for standing in winner.varied],
    }


def _size_range(counts: IntArray) -> dict[str, float]:
    """Return the "mean", "smallest" and "largest" count."""
    return {
        "mean": float(counts.mean()),
        "smallest": int(counts.min()),
        "largest": int(counts.max()),
    }


def _history_record(learned: Learned) -> dict[str, list[Any]]:
    """Return "iteration", "objective" and "n_seen" (groups), at most ``_MAX_STEPS``."""
    steps = learned.policy.model.history_
    keep = np.unique(np.linspace(0, len(steps) - 1, _MAX_STEPS).astype(int))
    kept = [steps[i] for i in keep] if steps else []
    names = ("iteration", "objective", "n_seen")
    return {name: [getattr(step, name) for step in kept] for name in names}


def _encode_path(path: OmegaPath) -> dict[str, Any]:
    """Return scores by omega as plain values, None for NaN."""
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
    """Return the scores by omega in a training record; None without any."""
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

"""Evidence: which sentences people wanted, of questions and of reviews.

Not an experiment of the paper: its learning on tasks where people marked sentences,
beside classifiers with maximal marginal relevance or fixed similarity.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from paper.evidence.data import SETS
from paper.evidence.pieces import compute_piece, work_list
from paper.evidence.settings import GROWTH, OURS, Settings, Setup
from paper.experiment import Claim, Experiment, Outcome, Record, Results
from paper.held_out import HoldingOut, find_folder, grouped
from variegate._progress import Progress
from variegate._typing import FloatArray
from variegate.report.figures import new_figure

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["Settings", "reproduce"]

_SCORES = ("f", "precision", "recall")
_WITHIN = ", 120 words"

#: F-scores of a study with fewer features, five folds: the rivals to beat.
STUDY = {
    "hotpotqa": {
        "boosting, DPP of coverage": 0.635,
        "logistic, its best rule": 0.615,
    },
    "multirc": {"logistic, DPP of coverage": 0.587, "boosting, top k": 0.581},
    "oposum": {"MMR": 0.345, "people among themselves": 0.373},
}
_STUDY_OURS = {"hotpotqa": 0.645, "multirc": 0.595, "oposum": 0.354}


def reproduce(
    out: Path,
    settings: Settings,
    command: str,
    data: Path | None = None,
    test_data: Path | None = None,
    jobs: int = 1,
    progress: Progress | None = None,
) -> Outcome:
    """Run the experiment and write its results, figure and report."""
    setup = HoldingOut.of(settings, _find, data, test_data)
    return EXPERIMENT.reproduce(out, setup, command, jobs, progress)


def _find(given: Path | None, option: str = "--data") -> Path:
    """Return the folder that holds the questions."""
    return find_folder(given, "hotpotqa.jsonl", ("evidence",), option)


def _results(setup: Setup, records: list[Record]) -> Results:
    """Return the mean scores of methods, and differences from ours."""
    rows, comparisons, growth = [], [], []
    for (name, method, share), found in grouped(records, _key).items():
        entry: Record = {"set": name, "method": method, **_means(found)}
        if share < 1.0:
            growth.append({**entry, "share": share})
            continue
        rows.append(entry)
        ours = OURS + _WITHIN * method.endswith(_WITHIN)
        if method != ours:
            mine = [one for one in records if _key(one) == (name, ours, 1.0)]
            score = "recall" if method.endswith(_WITHIN) else "f"
            difference = _difference(mine, found, score, setup.settings)
            comparisons.append(
                {"set": name, "method": ours, "less": method, "score": score}
                | difference
            )
    return {
        "settings": setup.settings.as_dict(),
        "test_data": setup.test_data is not None,
        "rows": rows,
        "comparisons": comparisons,
        "growth": growth,
    }


def _key(record: Record) -> tuple[str, str, float]:
    """Return the set, the method and the share of the training questions."""
    return record["set"], record["method"], record["share"]


def _means(records: Sequence[Record]) -> dict[str, float]:
    """Return the mean scores over questions, and how many there are."""
    means = {s: float(np.mean([one[s] for one in records])) for s in (*_SCORES, "size")}
    return {**means, "n_questions": len(records)}


def _difference(
    ours: Iterable[Record], other: Iterable[Record], score: str, settings: Settings
) -> dict[str, float]:
    """Return how much higher ours is, with a paired 95 % interval by groups.

    Groups of questions, such as those about one text, are drawn with replacement.
    """
    known = {one["question"]: one[score] for one in other}
    groups: dict[str, list[float]] = {}
    for one in ours:
        groups.setdefault(one["group"], []).append(one[score] - known[one["question"]])
    sums = np.array([sum(values) for values in groups.values()])
    counts = np.array([len(values) for values in groups.values()])
    rng = np.random.default_rng(settings.seed)
    drawn = rng.integers(len(sums), size=(settings.n_bootstrap, len(sums)))
    means: FloatArray = sums[drawn].sum(axis=1) / counts[drawn].sum(axis=1)
    low, high = np.quantile(means, (0.025, 0.975))
    return {
        "difference": float(sums.sum() / counts.sum()),
        "low": float(low),
        "high": float(high),
    }


def _claims(setup: Setup, results: Results) -> list[Claim]:
    """Return the study's scores beside ours."""
    claims = []
    f_of = {(row["set"], row["method"]): row["f"] for row in results["rows"]}
    for name in SETS:
        ours = f_of[name, OURS]
        rivals = STUDY[name]
        text = ", ".join(f"{rival} {score:.3f}" for rival, score in rivals.items())
        paper = f"{name}: ours {_STUDY_OURS[name]:.3f}; {text}"
        beaten = [one for one in results["comparisons"] if one["set"] == name
                  and _is_rival(one["less"])]  # fmt: skip
        above = sum(one["low"] > 0.0 for one in beaten)
        measured = (
            f"ours {ours:.3f}; above {above} of {len(beaten)} rivals by an interval"
        )
        holds = "yes" if above == len(beaten) else "in part"
        claims.append(Claim(paper, measured, holds))
    return claims


def _is_rival(method: str) -> bool:
    """Whether a row is a rival without a learned similarity, and without a budget."""
    return not method.startswith(("DPP", OURS)) and not method.endswith(_WITHIN)


def _pictures(
    setup: Setup, results: Results, records: list[Record]
) -> dict[str, Figure]:
    """Return the growth of F-scores with the number of training questions."""
    figure, panels = new_figure(10.0, 3.4, panels=len(SETS))
    for axes, name in zip(panels, SETS, strict=True):
        for method in ("boosting, top k", "logistic, top k", *_GROWN[name]):
            points = [(row["share"], row["f"]) for row in results["growth"]
                      if (row["set"], row["method"]) == (name, method)]  # fmt: skip
            whole = [row["f"] for row in results["rows"]
                     if (row["set"], row["method"]) == (name, method)]  # fmt: skip
            x, y = zip(*points, (1.0, whole[0]), strict=True)
            axes.plot(x, y, marker="o", label=method)
        axes.set_xscale("log", base=2)
        axes.set_xticks([*GROWTH, 1.0], ["1/8", "1/4", "1/2", "all"])
        axes.set_title(name)
        axes.set_xlabel("share of the training questions")
        axes.legend(fontsize=7)
    panels[0].set_ylabel("F")
    return {"growth": figure}


_GROWN = {name: (OURS if name == "oposum" else "DPP, linear quality",) for name in SETS}

EXPERIMENT: Experiment[Any] = Experiment(
    pieces=work_list,
    compute=compute_piece,
    results=_results,
    claims=_claims,
    pictures=_pictures,
    template="evidence.md",
    facts={"sets": SETS, "ours": OURS, "within": _WITHIN},
    claims_header=("a study", "what we measured", "ahead of every rival"),
)

"""Learn on some of a folder, judge the rest: shared by documents and videos.

Records of both hold ``judged``, the name of the held-out document cluster or video, and
``runs``, a list of scores for each run of a method.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Generic, Self, TypeVar

import numpy as np

from paper.experiment import Record, Settings
from variegate._typing import FloatArray
from variegate.application.base import bootstrap_means

__all__ = [
    "Choice",
    "HoldingOut",
    "RowSettings",
    "choose",
    "compare",
    "find_folder",
    "finite",
    "grouped",
    "mean_and_error",
    "means_of_runs",
]

#: Parameters of an estimator, ``lam`` among them.
Choice = dict[str, Any]
Part = TypeVar("Part")
S = TypeVar("S")
Key = TypeVar("Key", bound=Hashable)


@dataclass(frozen=True)
class RowSettings(Settings):
    """Settings of an experiment whose rows may be asked for one by one."""

    #: The rows of the tables to compute, beside the one that all are compared with;
    #: none stands for all but those beyond the paper, and for figures and studies.
    rows: tuple[str, ...] = ()

    def wants(self, row: str) -> bool:
        """Whether a row was asked for."""
        return not self.rows or row in self.rows

    def check_rows(self, known: Iterable[str]) -> None:
        """Refuse rows that there are not."""
        known = list(known)
        for row in self.rows:
            if row not in known:
                raise ValueError(f"there is no row {row!r}; there are {known}")


@dataclass(frozen=True)
class HoldingOut(Generic[S]):
    """The setup of an experiment on a folder, parts of which are held out in turn.

    With ``test_data``, another folder is judged, after learning from all of the first.
    """

    settings: S
    data: str
    test_data: str | None = None

    @classmethod
    def of(
        cls,
        settings: S,
        find: Callable[..., Path],
        data: Path | None,
        test_data: Path | None,
        **more: str | None,
    ) -> Self:
        """Return the setup with the folders that ``find`` finds."""
        judged = str(find(test_data, "--test-data")) if test_data else None
        return cls(settings, str(find(data)), judged, **more)


def find_folder(
    given: Path | None, file: str, below: Sequence[str], option: str = "--data"
) -> Path:
    """Return the folder that holds a file, absolute.

    It is looked for in the folder given, in ``$VARIEGATE_DATA``, or beside a checkout,
    and in the folders below it that are named.
    """
    place = given or Path(
        os.environ.get("VARIEGATE_DATA") or Path("..") / "shared" / "data"
    )
    for folder in (place, *(place / name for name in below)):
        if (folder / file).is_file():
            return folder.resolve()
    raise ValueError(
        f"no {file} in {place} or its folder{'s' * (len(below) > 1)} "
        f"{' and '.join(below)}: say where the data are with {option} DIR"
        f"{' or $VARIEGATE_DATA' if option == '--data' else ''}"
    )


def choose(
    choices: Sequence[Choice],
    parts: Iterable[Part],
    scores: Callable[[Part, Sequence[Choice]], Iterable[float]],
) -> dict[str, Choice]:
    """Return the best choices for "LME" and "MLE", parts held out in turn.

    Choices with ``lam`` 0 are maximum likelihood, the others large margin; of which
    there are none, none is chosen.  ``scores`` goes from a part and the choices to the
    score of each on that part, after learning on the rest of the training data.
    """
    total = np.sum([list(scores(part, choices)) for part in parts], axis=0)
    is_margin = np.array([choice["lam"] != 0.0 for choice in choices])
    return {
        learner: choices[int(np.argmax(np.where(allowed, total, -np.inf)))]
        for learner, allowed in (("LME", is_margin), ("MLE", ~is_margin))
        if allowed.any()
    }


def grouped(
    records: Iterable[Record], key: Callable[[Record], Key]
) -> dict[Key, list[Record]]:
    """Return records by a key, both in the order in which they come."""
    groups: dict[Key, list[Record]] = {}
    for record in records:
        groups.setdefault(key(record), []).append(record)
    return groups


def finite(records: Iterable[Record]) -> list[Record]:
    """Return the records that have scores: a lone person agrees with nobody."""
    return [record for record in records if np.isfinite(record["runs"]).all()]


def mean_and_error(scores: Sequence[str], rows: FloatArray) -> dict[str, Any]:
    """Return the means over rows, and in ``se`` their standard errors.

    Of a single row there is no standard error: None.
    """
    error: dict[str, Any] = dict.fromkeys(scores)
    if len(rows) > 1:
        error = _named(scores, rows.std(axis=0, ddof=1) / np.sqrt(len(rows)))
    return {**_named(scores, rows.mean(axis=0)), "se": error}


def means_of_runs(scores: Sequence[str], records: Iterable[Record]) -> dict[str, Any]:
    """Return the means over all that was judged and over runs.

    ``se`` is the standard error over the runs of methods that draw samples, as in the
    paper; None where every run gives the same.
    """
    runs = np.mean([record["runs"] for record in finite(records)], axis=0)
    return mean_and_error(scores, runs)


def compare(
    scores: Sequence[str],
    first: Iterable[Record],
    second: Iterable[Record],
    n_bootstrap: int,
    seed: int,
) -> Record:
    """Return how much higher the first scores, with 95% bootstrap intervals.

    Differences are paired: all that the second judged, the first judged too.
    """
    means = {r["judged"]: np.mean(r["runs"], axis=0) for r in first}
    difference = np.array(
        [means[r["judged"]] - np.mean(r["runs"], axis=0) for r in finite(second)]
    )
    samples = bootstrap_means(difference, n_bootstrap, seed)
    low, high = np.quantile(samples, [0.025, 0.975], axis=0)
    found = {"difference": difference.mean(axis=0), "low": low, "high": high}
    return {key: _named(scores, values) for key, values in found.items()}


def _named(scores: Sequence[str], values: FloatArray) -> dict[str, float]:
    return dict(zip(scores, values.tolist(), strict=True))

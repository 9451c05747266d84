"""What documents and videos share: learn on some of a folder, judge the others."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Generic, Self, TypeVar

import numpy as np

from variegate.experiments.frame import Settings

__all__ = ["Choice", "HoldingOut", "RowSettings", "choose", "find_folder"]

#: Parameters of an estimator, ``lam`` among them.
Choice = dict[str, Any]
Part = TypeVar("Part")
S = TypeVar("S")


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

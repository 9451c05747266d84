r"""``SequentialDPP``: items in order, segments chosen beside what was chosen before.

A sequence, such as the frames of a film, is cut into segments ``1, ..., T``.  With
``y_t`` the items chosen from segment ``t`` (Gong, Chao, Grauman and Sha, 2014),

.. math:: P(y_1, \ldots, y_T) = \prod_t P(y_t \mid y_{t-1}, \ldots, y_{t-m}),

every factor the conditional process of the segment beside the items chosen from the
last ``m`` segments, which are given (see :mod:`variegate.learning.objective`).  The
logarithm is a sum over segments, so that learning is one fit of an estimator to
conditional ground sets, with the wanted items of earlier segments given.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from inspect import signature
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple, Self

import numpy as np
from sklearn.base import BaseEstimator, clone
from sklearn.utils.validation import check_is_fitted

from variegate import metrics
from variegate._typing import IntArray
from variegate._validation import check_count, check_number
from variegate.estimator.base import DPPEstimator, LearnedDisplay
from variegate.estimator.large_margin import LargeMarginDPP
from variegate.estimator.sequence_search import SequenceSearch
from variegate.files import models as model_files
from variegate.files.model_format import SEQUENTIAL
from variegate.ground_set import (
    GroundSet,
    check_ground_sets,
    check_subsets,
    join_ground_sets,
    name_position_in_errors,
)
from variegate.selection import Subsets


class Segments(NamedTuple):
    """Segments of sequences as conditional ground sets, to learn from.

    ``ground_sets`` begin with the given items; ``subsets`` are the wanted ones, and
    ``sequence`` (n,) is the number of the sequence that each segment is from.
    """

    ground_sets: list[GroundSet]
    subsets: list[IntArray]
    sequence: IntArray


def conditional_segments(
    sequence: GroundSet, chosen: IntArray, bounds: Sequence[int], memory: int
) -> Iterator[tuple[GroundSet, IntArray]]:
    """Yield each segment beside earlier wanted items, and its own wanted items.

    ``chosen`` are all wanted items, sorted; those of the last ``memory`` segments come
    first and are given.  ``bounds`` are the first item numbers of segments, and the
    length.  Segments are skipped where all items are given.
    """
    for place, (start, end) in enumerate(pairwise(bounds)):
        items = np.arange(start, end)
        if np.isin(items, sequence.given).all():
            continue
        first = bounds[max(0, place - memory)]
        earlier = chosen[(chosen >= first) & (chosen < start)]
        both = np.concatenate([earlier, items])
        given = np.isin(both, sequence.given)
        given[: len(earlier)] = True
        here = chosen[(chosen >= start) & (chosen < end)]
        yield sequence.take(both, given), here - start + len(earlier)


class SequentialDPP(LearnedDisplay, BaseEstimator):  # type: ignore[misc]
    """Determinantal point process of sequences, chosen segment by segment.

    Items of one segment are diverse among themselves and beside what was chosen from
    the last ``memory`` segments, but may repeat what is further back.

    Parameters
    ----------
    estimator : LargeMarginDPP or LargeMarginDPPCV, optional
        Learns from segments; ``LargeMarginDPP()`` if not given.  Segments of one
        sequence stay in one fold of a LargeMarginDPPCV.
    segment : int, default=10
        Items of a segment, where no ``boundaries`` are given.
    memory : int, default=1
        Segments whose chosen items are given to the next one.
    beam : int, default=1
        Partial sequences that are kept while choosing.  With 1, the decoder of the
        estimator chooses each segment.  With more, choices of large joint probability
        are searched for, which reads every segment up to ``beam`` times.

    Attributes
    ----------
    estimator_ : the fitted estimator

    Examples
    --------
    >>> import numpy as np
    >>> import variegate as vg
    >>> rng = np.random.default_rng(0)
    >>> films = [vg.GroundSet(rng.standard_normal((40, 5))) for _ in range(20)]
    >>> wanted = [np.flatnonzero(film.quality[:, 0] > 1.0) for film in films]
    >>> model = vg.SequentialDPP(vg.LargeMarginDPP(kernel=vg.Linear()), segment=8)
    >>> model = model.fit(films[:15], wanted[:15])
    >>> [len(chosen) for chosen in model.predict(films[15:], k=4)]
    [4, 4, 4, 4, 4]
    """

    def __init__(
        self,
        estimator: Any = None,
        segment: int = 10,
        memory: int = 1,
        beam: int = 1,
    ) -> None:
        self.estimator = estimator
        self.segment = segment
        self.memory = memory
        self.beam = beam

    # Learning ---------------------------------------------------------------------

    def fit(
        self,
        sequences: Sequence[GroundSet],
        subsets: Sequence[Any],
        boundaries: Sequence[Any] | None = None,
    ) -> Self:
        """Learn from the wanted items of sequences.

        Parameters
        ----------
        sequences : list of GroundSet
            Items in order.  Items that a sequence holds as given are given to the
            segment that they are in.
        subsets : list
            For each sequence, the wanted item numbers or a boolean mask.
        boundaries : list of arrays, optional
            For each sequence, the first item numbers of its segments, in place of
            segments of ``segment`` items.
        """
        segments = self.make_segments(sequences, subsets, boundaries)
        estimator = (
            LargeMarginDPP() if self.estimator is None else clone(self.estimator)
        )
        options: dict[str, Any] = {}
        if "groups" in signature(estimator.fit).parameters:
            options["groups"] = segments.sequence
        self.estimator_ = estimator.fit(
            segments.ground_sets, segments.subsets, **options
        )
        return self

    def make_segments(
        self,
        sequences: Sequence[GroundSet],
        subsets: Sequence[Any],
        boundaries: Sequence[Any] | None = None,
    ) -> Segments:
        """Return the conditional ground sets that ``fit`` learns from.

        Segments are skipped where all items are given.
        """
        self._check_parameters()
        sequences = check_ground_sets(sequences)
        wanted = check_subsets(subsets, sequences)
        bounds = self._bounds(sequences, boundaries)
        ground_sets, members, numbers = [], [], []
        for number, (sequence, chosen) in enumerate(
            zip(sequences, wanted, strict=True)
        ):
            for ground_set, subset in conditional_segments(
                sequence, chosen, bounds[number], self.memory
            ):
                ground_sets.append(ground_set)
                members.append(subset)
                numbers.append(number)
        return Segments(ground_sets, members, np.array(numbers, dtype=np.intp))

    def _check_parameters(self) -> None:
        """Raise ValueError for invalid parameters of the constructor."""
        for name in ("segment", "memory", "beam"):
            check_count(name, getattr(self, name))

    def _bounds(
        self, sequences: Sequence[GroundSet], boundaries: Sequence[Any] | None
    ) -> list[list[int]]:
        """Return first item numbers of the segments of each sequence, then its length.

        ValueError for ``boundaries`` that do not begin with 0 and increase.
        """
        if boundaries is None:
            return [
                [*range(0, len(sequence), self.segment), len(sequence)]
                for sequence in sequences
            ]
        if len(boundaries) != len(sequences):
            raise ValueError(
                f"boundaries of {len(boundaries)} sequences, but there are "
                f"{len(sequences)}: give the first item numbers of segments for each"
            )
        found = []
        for number, (sequence, starts) in enumerate(
            zip(sequences, boundaries, strict=True)
        ):
            ends = [*np.asarray(starts).tolist(), len(sequence)]
            is_whole = all(isinstance(end, int) for end in ends)
            rises = is_whole and all(a < b for a, b in pairwise(ends))
            if not rises or ends[0] != 0:
                raise ValueError(
                    f"boundaries of sequence {number} must be item numbers that begin "
                    f"with 0 and increase, below {len(sequence)}, got {starts!r}"
                )
            found.append(ends)
        return found

    # Choosing ---------------------------------------------------------------------

    def predict(
        self,
        sequences: Sequence[GroundSet],
        k: int | None = None,
        budget: float | None = None,
        boundaries: Sequence[Any] | None = None,
    ) -> list[IntArray]:
        """Choose from every sequence; return arrays of sorted item numbers.

        Parameters
        ----------
        sequences : list of GroundSet
        k : int, optional
            Choose exactly ``k`` items of each sequence.
        budget : float, optional
            Choose items whose ``costs`` sum to at most this in each sequence.
        boundaries : list of arrays, optional
            As for :meth:`fit`.

        Notes
        -----
        With ``k`` or a budget, each segment is chosen greedily: an item is added while
        it raises the log-probability by more than a price times its cost (1 with
        ``k``).  The price is the same in all segments, and the smallest at which the
        items fit.  Of items in excess of ``k``, those of the smallest rise are dropped.
        """
        check_is_fitted(self, "estimator_")
        self._check_parameters()
        sequences = check_ground_sets(sequences)
        if k is not None and budget is not None:
            raise ValueError("give k or budget, not both")
        if k is not None:
            check_count("k", k, least=0)
        if budget is not None:
            check_number("budget", budget, positive=True)
        chosen = Subsets()
        for number, (sequence, bounds) in enumerate(
            zip(sequences, self._bounds(sequences, boundaries), strict=True)
        ):
            with name_position_in_errors(number):
                search = SequenceSearch(
                    self._best_model(), sequence, bounds, self.memory
                )
                if k is not None:
                    items = search.choose_k(int(k))
                elif budget is not None:
                    items = search.choose_within(float(budget))
                elif self.beam > 1:
                    items = search.choose_by_beam(self.beam)
                else:
                    items = search.choose_forward()
                chosen.append(np.sort(items))
        return chosen

    def score(
        self,
        sequences: Sequence[GroundSet],
        subsets: Sequence[Any],
        boundaries: Sequence[Any] | None = None,
    ) -> float:
        """Return the mean F-score of the predictions against wanted ``subsets``."""
        sequences = check_ground_sets(sequences)
        wanted = check_subsets(subsets, sequences)
        chosen = self.predict(sequences, boundaries=boundaries)
        return metrics.mean_scores(chosen, wanted)["f"]

    def stream(self) -> SegmentStream:
        """Return a chooser of segments that arrive one by one, in constant memory."""
        check_is_fitted(self, "estimator_")
        self._check_parameters()
        return SegmentStream(self._best_model(), self.memory)

    def _best_model(self) -> DPPEstimator:
        """Return the fitted estimator, or the best model of a search."""
        fitted: Any = self.estimator_
        model: DPPEstimator = getattr(fitted, "best_model_", fitted)
        return model

    def _learned_html(self) -> str:
        """Return the learned weights as HTML."""
        check_is_fitted(self, "estimator_")
        return str(self.estimator_._learned_html())

    # Keeping ----------------------------------------------------------------------

    def encode(self) -> dict[str, Any]:
        """Return settings and fitted estimator as plain values, as its file has them.

        Of a search over settings, the best model is kept.
        """
        settings = {name: getattr(self, name) for name in ("segment", "memory", "beam")}
        return {
            "type": "sequential",
            "settings": settings,
            "model": self._best_model().encode(),
        }

    def save(self, path: str | Path) -> None:
        """Write the fitted model to a JSON file; :func:`variegate.load` reads it."""
        check_is_fitted(self, "estimator_")
        model_files.save(self, path)

    @classmethod
    def decode(
        cls, document: Mapping[str, Any], own: model_files.Own = model_files.NOTHING
    ) -> Self:
        """Return the model of a parsed file, checked; ``own`` has the user's code."""
        SEQUENTIAL.check(document)
        fitted = model_files.read_nested_model(LargeMarginDPP, document["model"], own)
        model = cls(**document["settings"])
        model.estimator = fitted
        model.estimator_ = fitted
        return model


model_files.register_reader("sequential", SequentialDPP.decode)


class SegmentStream:
    """Chooses from segments as they arrive, beside its last choices.

    Holds the features of the items chosen from the last ``memory`` segments, and
    nothing else.  Made by :meth:`variegate.SequentialDPP.stream`.
    """

    def __init__(self, model: DPPEstimator, memory: int) -> None:
        self._model = model
        self._chosen: deque[GroundSet | None] = deque(maxlen=memory)

    def choose(self, segment: GroundSet) -> IntArray:
        """Return the item numbers chosen from the next segment, sorted."""
        earlier = [one for one in self._chosen if one is not None]
        n_given = sum(map(len, earlier))
        joined = join_ground_sets([*earlier, segment], given=range(n_given))
        chosen = self._model.predict([joined])[0] - n_given
        self._chosen.append(segment.take(chosen) if len(chosen) else None)
        return chosen

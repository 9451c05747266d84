"""Choices from groups that are sequences, segment by segment."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from variegate._typing import FloatArray, IntArray
from variegate.application.refusal import Setting
from variegate.estimator.sequence_search import SequenceSearch
from variegate.tables.choosing import MAX_CANDIDATES, ByModel, Choice
from variegate.tables.encoded import Group
from variegate.tables.errors import TableError


@dataclass(frozen=True, eq=False)
class BySegments:
    """Choose by a model from each segment of a group, beside its last choices.

    Rows chosen from the last ``memory`` segments are given to the next one.  The
    decoder of ``by_model`` chooses from each segment; a ``k`` or a budget is for the
    whole group, of which rows are chosen as by :meth:`variegate.SequentialDPP.predict`.
    Rows are ranked segment by segment, and their probabilities are beside the choices
    from the last segments.
    """

    by_model: ByModel
    memory: int

    def __post_init__(self) -> None:
        """Refuse limits that cannot be met over several segments."""
        limit = self.by_model.limit
        if limit.at_most:
            raise TableError(
                Setting("at_most"),
                " is for groups without segments: leave it out, or choose by a model "
                "that was learned without them",
            )
        if limit.budget is not None and limit.k is not None:
            raise TableError(
                "segments are chosen within one limit: leave out ",
                Setting("k"),
                " or ",
                Setting("budget"),
            )
        if limit.budget is not None and self.by_model.odds != 1.0:
            raise TableError(
                Setting("omega"),
                " does not change choices within a budget from segments: leave out ",
                Setting("omega"),
                " or ",
                Setting("budget"),
            )

    def __call__(self, group: Group) -> Choice:
        """Choose from one group."""
        order, bounds = group.segment_order()
        segments = [order[start:end] for start, end in pairwise(bounds)]
        if self.by_model.limit:
            return self._choose_within_limit(group, segments)
        probability = np.full(len(group), np.nan)
        chosen: list[IntArray] = []
        for rows in segments:
            earlier = self._last(chosen)
            choice = self.by_model(group.take_beside(rows, earlier))
            assert choice.probability is not None  # a model always tells
            probability[rows] = choice.probability[len(earlier) :]
            chosen.append(rows[choice.order - len(earlier)])
        return self._join(chosen, probability, "segments are chosen one by one")

    def _last(self, chosen: list[IntArray]) -> IntArray:
        """Return the positions chosen from the last segments."""
        return np.concatenate([np.zeros(0, dtype=np.intp), *chosen[-self.memory :]])

    def _join(
        self, chosen: list[IntArray], probability: FloatArray, reason: str
    ) -> Choice:
        """Return the choice of positions by segment, with the end of the search."""
        ending = {"stop_reason": reason, "gap": None, "is_optimal": False}
        return Choice(np.concatenate(chosen), probability, ending)

    def _choose_within_limit(self, group: Group, segments: list[IntArray]) -> Choice:
        """Choose ``k`` rows, or rows within a budget, from all segments together."""
        limit, model = self.by_model.limit, self.by_model.model
        largest = max(map(len, segments))
        if largest > MAX_CANDIDATES:
            raise TableError(
                f"a segment has {largest:,} rows, and a limit is met over segments of "
                f"at most {MAX_CANDIDATES:,}: cut the group into smaller segments"
            )
        order = np.concatenate(segments)
        bounds = np.append(0, np.cumsum([len(rows) for rows in segments]))
        search = SequenceSearch(model, group.take(order), bounds.tolist(), self.memory)
        k = limit.size(group)
        if k is not None:
            items = search.choose_k(min(k, len(group.candidates)))
        else:
            assert limit.budget is not None  # anything else is refused
            items = search.choose_within(limit.budget)
        place = np.searchsorted(bounds, items, side="right") - 1
        chosen = [order[items[place == number]] for number in range(len(segments))]
        probability = np.full(len(group), np.nan)
        for number, rows in enumerate(segments):
            earlier = self._last(chosen[:number])
            part = group.take_beside(rows, earlier)
            if len(part.candidates):
                ensemble = model.ensemble(part.ground_set)
                found = np.concatenate([earlier, rows])[ensemble.items]
                probability[found] = ensemble.marginals()
        reason = "segments are chosen at one price of a row"
        return self._join(chosen, probability, reason)

"""Choose key frames among candidates, and say why likelier ones were refused."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from variegate._typing import BoolArray, FloatArray, IntArray
from variegate._validation import check_count, check_flag
from variegate.decoding import Agreement, Constraint, Decoder
from variegate.decoding.residuals import Residuals
from variegate.ensemble import LEnsemble
from variegate.selection import Selection
from variegate.video.candidates import VideoView

_ONE_SCENE = 0.8  # learned similarity above which frames of different shots can match


@dataclass(frozen=True)
class Amount:
    """Number of frames to choose: at most, exactly, or one for each shot.

    By default the model decides.
    """

    max_frames: int | None = None
    count: int | None = None
    per_shot: bool = False

    def __post_init__(self) -> None:
        """Raise ValueError for an invalid field, or more than one given."""
        check_flag("per_shot", self.per_shot)
        given = [n for n, value in vars(self).items() if value not in (None, False)]
        for name in ("max_frames", "count"):
            if getattr(self, name) is not None:
                check_count(name, getattr(self, name))
        if len(given) > 1:
            raise ValueError(
                f"{' and '.join(given)} each say how many frames to choose; give one "
                "of them"
            )

    def most(self, n_candidates: int) -> int:
        """Return the most frames to choose; ``n_candidates`` if no number was given.

        Raises ValueError for a ``count`` above ``n_candidates``.
        """
        if self.count is not None and self.count > n_candidates:
            raise ValueError(
                f"{self.count} frames were asked for, but there are only "
                f"{n_candidates} to choose from; ask for fewer, or look more often "
                "(every)"
            )
        return min(n_candidates, self.count or self.max_frames or n_candidates)


@dataclass(frozen=True)
class Refusal:
    """Why a candidate was not chosen that is likelier than a chosen one.

    ``beside`` is the most similar chosen candidate: it lowers the gain in
    log-probability of the refused one by ``-log(1 - s²)``, with their learned
    ``similarity`` s from 0 to 1.  Numbers below 0 count back, from -1, in the key
    frames that were chosen earlier.  ``why`` is "too similar to", "adds too little
    beside" or "same shot as".
    """

    beside: int
    similarity: float
    why: str


@dataclass(frozen=True, eq=False)
class Choice:
    """The chosen candidates, and by number the refused ones that are likelier.

    Beside earlier key frames, the ensemble is the conditional one of the candidates.
    """

    ensemble: LEnsemble
    selection: Selection
    refusals: Mapping[int, Refusal]

    @property
    def probability(self) -> list[float]:
        """The probability of each candidate in a set drawn from the ensemble."""
        return list(map(float, self.ensemble.marginals()))


def choose_frames(
    ensemble: LEnsemble,
    view: VideoView,
    make_decoder: Callable[[BoolArray, BoolArray, bool], Decoder],
    max_similarity: float,
    amount: Amount,
    generator: np.random.Generator,
    n_earlier: int = 0,
) -> Choice:
    """Choose among the N candidates of a view, given the ensemble over them.

    The first ``n_earlier`` frames of the view are key frames that were chosen before;
    candidates are the others, which the choice numbers from 0.

    ``make_decoder`` takes two boolean arrays (N, N): which pairs of frames can be
    matched, and which count as the same, those more similar than ``max_similarity``, of
    which only one is chosen; and whether a frame must be chosen, as there is none yet.
    It is not called for one frame per shot, which needs ``n_earlier`` 0.
    """
    limit = amount.most(len(view) - n_earlier)
    lengths = np.sqrt(np.diagonal(ensemble.S))
    similarity = np.clip(ensemble.S / np.outer(lengths, lengths), 0.0, 1.0)
    # By colours alone, a shot would stand for others with nothing else in common.
    matched = view.alike & (view.same_shot | _pairs_above(similarity, _ONE_SCENE))
    same = _pairs_above(similarity, max_similarity)
    if amount.per_shot:
        selection = _likeliest_of_each_shot(ensemble, view.shots)
        why, related = "same shot as", view.same_shot
    else:
        why, related = "too similar to", matched | same
        repeats = np.asarray(same[:n_earlier].any(axis=0))
        ensemble, others = _condition_on_earlier(ensemble, repeats, n_earlier)
        if others is None:
            selection = Selection.from_items(ensemble, [], "all repeat key frames")
        else:
            pairs = np.ix_(others.items, others.items)
            constraint = Constraint(None, limit, np.ones(len(others)))
            decoder = make_decoder(matched[pairs], same[pairs], n_earlier == 0)
            selection = decoder(others, constraint, generator)
            if others is not ensemble:
                items = (others.items - n_earlier)[selection.indices].tolist()
                reason = selection.stop_reason
                selection = Selection.from_items(ensemble, items, reason)
            if amount.count is not None:
                selection = fill_up(ensemble, selection, amount.count)
    refusals = _find_refusals(
        ensemble.marginals(), selection, similarity, why, related, n_earlier
    )
    return Choice(ensemble, selection, refusals)


def _condition_on_earlier(
    ensemble: LEnsemble, repeats: BoolArray, n_earlier: int
) -> tuple[LEnsemble, LEnsemble | None]:
    """Return the ensemble given the first frames, and that without their ``repeats``.

    The second is None if all candidates repeat one of the ``n_earlier`` frames.
    """
    if n_earlier == 0:
        return ensemble, ensemble
    earlier = np.arange(n_earlier)
    rest = repeats.copy()
    rest[earlier] = False
    conditional = ensemble.condition(include=earlier)
    if rest.sum() == len(conditional):
        return conditional, None
    return conditional, ensemble.condition(include=earlier, exclude=rest)


def _pairs_above(similarity: FloatArray, limit: float) -> BoolArray:
    """Return a mask (N, N): pairs with a similarity above a limit, and the diagonal.

    For a limit of 1 or more, only the diagonal is True, whatever the rounding.
    """
    above = similarity > limit if limit < 1.0 else np.zeros(similarity.shape, bool)
    np.fill_diagonal(above, True)
    return np.asarray(above)


def fill_up(ensemble: LEnsemble, selection: Selection, count: int) -> Selection:
    """Return a selection with frames added until there are ``count``.

    Each is the one that raises the probability of the set most, or lowers it least;
    where all further sets have probability 0, the likeliest by itself.
    """
    if len(selection) >= count:
        return selection
    state = Residuals(ensemble.representation)
    likely = ensemble.marginals()
    chosen: list[int] = []
    while len(chosen) < count:
        gain = state.gain()
        if len(chosen) < len(selection):
            item = int(selection.indices[len(chosen)])
        else:
            score = likely.copy() if gain.max() == -np.inf else gain
            item = int(np.argmax(np.where(state.available, score, -np.inf)))
        if gain[item] > -np.inf:
            state.add(item)
        state.available[item] = False
        chosen.append(item)
    reason = (
        f"{selection.stop_reason}; to {count} frames, those were added that raise the "
        "probability most"
    )
    return Selection.from_items(ensemble, chosen, reason)


def _likeliest_of_each_shot(ensemble: LEnsemble, shots: Sequence[int]) -> Selection:
    """Select the likeliest candidate of each shot; ``shots`` has each one's shot."""
    numbers = np.array(shots)
    likeliest = np.argsort(-ensemble.marginals(), kind="stable")
    _, first = np.unique(numbers[likeliest], return_index=True)
    reason = f"the likeliest frame of each of {len(first)} shots"
    return Selection.from_items(ensemble, likeliest[first].tolist(), reason)


def _find_refusals(
    probability: FloatArray,
    selection: Selection,
    similarity: FloatArray,
    why: str,
    related: BoolArray,
    n_earlier: int,
) -> dict[int, Refusal]:
    """Return, by number, why candidates likelier than a chosen one were not chosen.

    The reason is ``why`` for a candidate ``related`` to any chosen one, else "adds too
    little beside".  ``probability`` (N,) are marginals of candidates; ``similarity``
    and ``related`` are of ``n_earlier`` key frames, then of candidates.
    """
    chosen = selection.indices
    likelier = probability > probability[chosen].min(initial=np.inf)
    likelier[chosen] = False
    keyframes = np.concatenate([np.arange(n_earlier), chosen + n_earlier])
    refusals = {}
    for place in np.flatnonzero(likelier):
        row = np.ix_([place + n_earlier], keyframes)
        is_related = related[row][0]
        nearest = np.where(is_related, 2.0, 0.0) + similarity[row][0]
        best = int(np.argmax(nearest))
        reason = why if is_related.any() else "adds too little beside"
        beside = int(keyframes[best]) - n_earlier
        refusals[int(place)] = Refusal(beside, similarity[row][0, best], reason)
    return refusals


@dataclass(frozen=True, eq=False)
class MatchingAgreement(Agreement):
    """The F-score of matched frames.

    With ``h`` of its ``a`` frames matched with a set of ``b``, a choice scores
    ``(1 + β²) h / (a + β² b)``.  Frames that are ``alike`` (N, N) can be matched; of
    frames that are the ``same`` (N, N, with a true diagonal), a search chooses one.
    """

    name = "F-score of matched frames"
    alike: BoolArray
    beta: float
    same: BoolArray

    def growing(self, voters: BoolArray, votes: IntArray) -> GrowingMatching:
        """Return an empty choice, to match boolean sets (T, N) of weights (T,)."""
        return GrowingMatching(self.alike, self.same, voters, votes, self.beta)


class GrowingMatching:
    """A choice of frames that grows, and its maximum matchings with T sets (T, N).

    The sets have ``votes`` (T,) as weights; ``alike``, ``same`` and ``beta`` are those
    of :class:`MatchingAgreement`.  Empty sets match nothing.

    Of set ``t``, ``_members[t]`` are the frames, ``_owner[t]`` the chosen frame that
    each is matched with (-1 for none) and ``_hits[t]`` the number matched.  ``_adds``
    (N, T) says which frames may still add a match, ``_free`` (N,) which may be chosen.
    """

    def __init__(
        self,
        alike: BoolArray,
        same: BoolArray,
        sets: BoolArray,
        votes: FloatArray | IntArray,
        beta: float,
    ) -> None:
        from variegate.linalg.compiled import read_only

        weights = votes / votes.sum()
        sets, self._weights = sets[sets.any(axis=1)], weights[sets.any(axis=1)]
        self._alike, self._same, self._beta = read_only(alike), same, beta
        self._sizes = sets.sum(axis=1)
        self._members = np.zeros((len(sets), self._sizes.max(initial=0)), dtype=int)
        for row, (chosen, size) in enumerate(zip(sets, self._sizes, strict=True)):
            self._members[row, :size] = np.flatnonzero(chosen)
        self._owner = np.full(self._members.shape, -1, dtype=int)
        self._adds = np.ones((len(alike), len(sets)), dtype=bool)
        self._free = np.ones(len(alike), dtype=bool)
        self._hits = np.zeros(len(sets))
        self._size = 0

    def _match_values(self, size: int) -> FloatArray:
        """Return the part of the mean F-score that one match with each set gives, (T,).

        ``size`` is the number of chosen frames.
        """
        square = self._beta**2
        totals = np.maximum(size + square * self._sizes, 1)
        return np.asarray((1.0 + square) * self._weights / totals)

    @property
    def value(self) -> float:
        """The weighted mean F-score of the choice with the sets."""
        return float(self._match_values(self._size) @ self._hits)

    def gain(self) -> FloatArray:
        """Return how much each frame would raise ``value``, (N,); ``-inf`` if not free.

        Only the largest is exact, others are upper bounds: frames cost the same, so
        that a search needs only the best.
        """
        from variegate.linalg.compiled.agreement import fill_matching_gains

        share = self._match_values(self._size + 1)
        added = np.empty(len(self._free))
        sets = self._members, self._sizes, self._owner, self._adds
        fill_matching_gains(self._alike, *sets, share, self._free, added)
        gain = added + (share @ self._hits - self.value)
        return np.where(self._free, gain, -np.inf)

    def add(self, item: int) -> None:
        """Add the candidate ``item``, in place; the ``same`` frames cannot follow."""
        from variegate.linalg.compiled.agreement import augment_matchings

        sets = self._members, self._sizes, self._owner, self._adds
        augment_matchings(item, self._alike, *sets)
        self._hits = self._hits + self._adds[item]
        self._free &= ~self._same[item]
        self._size += 1

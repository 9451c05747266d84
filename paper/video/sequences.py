"""Rows beyond the paper: key frames chosen segment by segment, as of a sequence.

"SEQ" is :class:`variegate.SequentialDPP`, learned from segments beside the frames that
a user chose from the last ones; "by segments" is the set model of the paper, with the
same weights.  "forward" chooses each segment as the library does, by the F-score of
matched frames; "beam" looks for the likeliest sequence of choices.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import chain, product
from typing import Any

import numpy as np

import variegate as vg
from paper.held_out import Choice
from paper.video.features import PaperPicker
from paper.video.pool import Videos
from paper.video.settings import Settings
from variegate._typing import IntArray
from variegate.ground_set import GroundSet
from variegate.video.candidates import TrainingVideo, VideoView
from variegate.video.choosing import Amount, choose_frames
from variegate.video.fisher import FisherEncoder

__all__ = ["SEQUENCE_ROWS", "SequenceLearner"]

#: The rows: what is learned, and what chooses.
SEQUENCE_ROWS = {
    "SEQ+MKR, forward": ("SEQ", "forward"),
    "SEQ+MKR, beam": ("SEQ", "beam"),
    "LME+MKR, by segments": ("LME", "forward"),
}

#: Partial sequences that a beam search keeps.
_BEAM = 8

#: Of a video, with a seed: the frames.
Choose = Callable[[TrainingVideo, int], IntArray]


@dataclass(frozen=True, eq=False)
class SequenceLearner:
    """Learns from sequences of frames, and chooses its settings.

    ``picker`` has the l2, features and, for the set model, λ of the rows of the paper;
    ``parts`` of the videos are held out in turn to choose the rest.
    """

    settings: Settings
    picker: PaperPicker
    encoder: FisherEncoder
    videos: Videos
    parts: Sequence[Sequence[int]]

    def rows(self, names: Iterable[str]) -> Iterator[tuple[str, Choice, Choose]]:
        """Yield each row with its settings, and what chooses frames of a video."""
        for name in names:
            learned, decoder = SEQUENCE_ROWS[name]
            choice = self._best(learned)[decoder]
            model = self._fit(learned, choice, range(len(self.videos)))
            yield name, choice, self._chooser(model, choice, decoder)

    @cache  # noqa: B019 - one learner for each piece of work
    def _best(self, learned: str) -> dict[str, Choice]:
        """Return the best settings for each decoder, parts held out in turn."""
        settings = self.settings
        choices: list[Choice] = [
            {"lam": lam, "omega": omega, "segment": segment, "memory": memory}
            for lam, omega, segment, memory in product(
                settings.sequence_lambdas if learned == "SEQ" else (self.picker.lam,),
                settings.sequence_omegas,
                settings.segments,
                settings.memories,
            )
        ]
        decoders = [d for row, d in SEQUENCE_ROWS.values() if row == learned]
        totals = np.zeros((len(decoders), len(choices)))
        for part in self.parts:
            inside = [i for i in range(len(self.videos)) if i not in part]
            fitted: dict[tuple[Any, ...], Any] = {}
            for column, choice in enumerate(choices):
                # The set model is the same for all segments.
                key = tuple(choice.values())[: None if learned == "SEQ" else 2]
                if key not in fitted:
                    fitted[key] = self._fit(learned, choice, inside)
                model = fitted[key]
                for row, decoder in enumerate(decoders):
                    choose = self._chooser(model, choice, decoder)
                    for video, prepared in (self.videos[i] for i in part):
                        frames = choose(prepared, 0).tolist()
                        totals[row, column] += video.score(frames).f
        best = np.argmax(totals, axis=1)
        return {d: choices[i] for d, i in zip(decoders, best, strict=True)}

    @cache  # noqa: B019
    def _ground_set(self, view: VideoView) -> GroundSet:
        """Return the features of a video, which are computed once."""
        return self.picker.ground_set(view)

    def _fit(self, learned: str, choice: Choice, members: Iterable[int]) -> Any:
        """Return a fitted model of segments ("SEQ") or of whole videos ("LME")."""
        settings = self.settings
        estimator = vg.LargeMarginDPP(
            lam=choice["lam"],
            omega=choice["omega"],
            kernel=self.picker._make_kernel(),
            l2=self.picker.l2,
            max_iter=settings.max_iter,
        )
        training = [self.videos[i][1] for i in members]
        pairs = [
            (self._ground_set(video.view), target)
            for video in training
            for target in video.targets
        ]
        ground_sets, subsets = map(list, zip(*pairs, strict=True))
        if learned == "LME":
            return estimator.fit(ground_sets, subsets)
        model = vg.SequentialDPP(
            estimator, choice["segment"], choice["memory"], beam=_BEAM
        )
        return model.fit(ground_sets, subsets)

    def _chooser(self, model: Any, choice: Choice, decoder: str) -> Choose:
        """Return what chooses the frames of a video, segment by segment."""
        if decoder == "beam":
            return lambda video, _: model.predict([self._ground_set(video.view)])[0]
        fitted = getattr(model, "estimator_", model)

        def choose(video: TrainingVideo, seed: int) -> IntArray:
            """Choose frames of each segment beside those of the last ones."""
            view, ground_set = video.view, self._ground_set(video.view)
            rng = np.random.default_rng(seed)
            chosen: list[list[int]] = []
            for start in range(0, len(view), choice["segment"]):
                earlier = list(chain.from_iterable(chosen[-choice["memory"] :]))
                end = min(start + choice["segment"], len(view))
                items = [*earlier, *range(start, end)]
                found = choose_frames(
                    fitted.ensemble(ground_set.take(items)),
                    VideoView([view.descriptions[i] for i in items], view.duration),
                    self.picker._make_decoder,
                    self.picker.max_similarity,
                    Amount(),
                    rng,
                    len(earlier),
                )
                chosen.append((start + found.selection.indices).tolist())
            return np.array([*chain.from_iterable(chosen)], dtype=np.intp)

        return choose

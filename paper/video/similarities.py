"""Rows beyond the paper: similarities that learn their features, and expected F."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from sklearn.base import clone

from paper.held_out import Choice
from paper.learned import (
    DECODERS,
    ROWS,
    SIMILARITIES,
    best_choices,
    expected_f,
    kernel_choices,
    kernel_of,
)
from paper.video.features import PaperPicker
from paper.video.pool import Videos
from paper.video.settings import Settings
from variegate._typing import IntArray
from variegate.video.candidates import VideoView
from variegate.video.fisher import FisherEncoder

#: The block that is learned from: the measure looks at hues alone.
_BLOCK = "palette"

#: Of a view, with a seed: the frames.
Choose = Callable[[VideoView, int], IntArray]


@dataclass(frozen=True)
class Learner:
    """What learns from some videos.

    ``picker`` has the λ, l2 and features that were chosen for the rows of the paper;
    ``parts`` of the videos are held out in turn to choose the rest.
    """

    settings: Settings
    picker: PaperPicker
    encoder: FisherEncoder
    videos: Videos
    parts: Sequence[Sequence[int]]

    def rows(self, names: Iterable[str]) -> Iterator[tuple[str, Choice, Choose]]:
        """Yield the rows that are asked for: what was chosen, and what chooses."""
        wanted = [(name, *ROWS[name]) for name in names]
        everything = range(len(self.videos))
        for similarity in dict.fromkeys(row[1] for row in wanted):
            best = self._best(similarity)
            for name, of, decoder in wanted:
                if of == similarity:
                    choice = best[decoder]
                    picker = self._fit(similarity, choice, everything)
                    yield name, choice, _chooser(picker, choice)

    def _best(self, similarity: str) -> dict[str, Choice]:
        """Return the best settings for each decoder, parts held out in turn."""
        settings = self.settings
        kernels: list[Choice] = [{}]
        if similarity in SIMILARITIES:
            kernels = kernel_choices([_BLOCK], settings.sizes, settings.penalties)
        omegas = settings.inner_omegas
        choices = [kernel | {"omega": omega} for kernel in kernels for omega in omegas]
        totals = np.zeros((len(choices), len(DECODERS)))
        for part in self.parts:
            inside = [i for i in range(len(self.videos)) if i not in part]
            held_out = [self.videos[i] for i in part]
            for row, choice in enumerate(choices):
                if row % len(omegas) == 0:  # one fit for all omegas
                    picker = self._fit(similarity, choice, inside)
                for column, decoder in enumerate(DECODERS):
                    choose = _chooser(picker, choice | decoder)
                    totals[row, column] += _total_f(choose, held_out)
        return best_choices(choices, totals)

    def _fit(
        self, similarity: str, choice: Choice, members: Iterable[int]
    ) -> PaperPicker:
        picker: PaperPicker = clone(self.picker).set_params(
            omega=self.settings.inner_omegas
        )
        if similarity in SIMILARITIES:
            # No other blocks need to be computed.
            picker.set_params(blocks=(_BLOCK,), kernel=kernel_of(similarity, choice))
        training = [self.videos[i][1] for i in members]
        return picker.fit_prepared(training, self.encoder)


def _chooser(picker: PaperPicker, choice: Choice) -> Choose:
    """Return what chooses frames: "expected-f" if its settings were chosen, or MBR."""
    omega, decoder = choice["omega"], expected_f(choice)
    if decoder is None:
        return lambda view, seed: (
            picker.choose(view, omega, random_state=seed).selection.indices
        )
    model = picker.family_.at(omega)
    return lambda view, _: (
        model.ensemble(picker.ground_set(view)).decode(decoder).indices
    )


def _total_f(choose: Choose, videos: Videos) -> float:
    return sum(
        video.score(choose(prepared.view, 0).tolist()).f for video, prepared in videos
    )

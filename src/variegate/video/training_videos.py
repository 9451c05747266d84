"""Prepare videos to learn from: their candidates, and which of these users picked."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from variegate._typing import FloatArray, IntArray
from variegate.model_format import COUNT
from variegate.schema import Number, Record
from variegate.video.candidates import VideoView, read_candidates
from variegate.video.evaluation import evaluate_keyframes, oracle_keyframes
from variegate.video.picks import PickedVideo

__all__ = ["REACH", "TRAINING", "TrainingVideo", "describe_training"]

#: Seconds by which a picked time may miss the frames that are looked at.
REACH = 2.0

#: The section of a model file about its training.
TRAINING = Record(
    {
        **dict.fromkeys(("n_videos", "n_candidates", "n_users", "n_lost"), COUNT),
        "oracle_f": Number(least=0),
    }
)


@dataclass(frozen=True, eq=False)
class TrainingVideo:
    """A video, called by its path in messages, and which candidates users chose of it.

    Of each user, ``n_unmatchable`` frames are not among the candidates.
    """

    view: VideoView
    users: Sequence[Sequence[int]]
    n_unmatchable: Sequence[int]
    path: str = "a video"

    @classmethod
    def of(cls, video: PickedVideo, every: float) -> TrainingVideo:
        """Read the candidates of a video, and which of them users picked."""
        read = read_candidates(video.path, every)
        users, lost = [], []
        for times in video.users:
            places = [read.candidate_at(time, REACH) for time in times]
            users.append([place for place in places if place is not None])
            lost.append(len(places) - len(users[-1]))
        if not any(users):
            raise ValueError(
                f"{video.path}: no picked time is within {REACH:g} s of a frame worth "
                f"looking at; the video ends at {read.view.duration:.1f} s"
            )
        return cls(read.view, users, lost, str(video.path))

    @property
    def targets(self) -> list[IntArray]:
        """The subsets to learn from, one for each user who chose any candidate."""
        return [np.unique(np.array(user, dtype=np.intp)) for user in self.users if user]

    @property
    def _hues(self) -> tuple[FloatArray, list[FloatArray]]:
        """Histograms of the candidates, (N, 16), and of those of each user."""
        hues = np.array([d.hue for d in self.view.descriptions])
        return hues, [hues[list(user)] for user in self.users]

    @cached_property
    def oracle(self) -> IntArray:
        """The candidates that agree best with all users."""
        return oracle_keyframes(*self._hues, self.n_unmatchable)

    @property
    def oracle_f(self) -> float:
        """The mean F-score of the oracle against the users."""
        hues, users = self._hues
        chosen = hues[self.oracle]
        return evaluate_keyframes(users, chosen, n_unmatchable=self.n_unmatchable).f


def describe_training(videos: Sequence[TrainingVideo]) -> dict[str, float]:
    """Return how much there is to learn from, and how well the oracle agrees."""
    return {
        "n_videos": len(videos),
        "n_candidates": sum(len(video.view) for video in videos),
        "n_users": sum(len(video.users) for video in videos),
        "n_lost": int(sum(sum(video.n_unmatchable) for video in videos)),
        "oracle_f": float(np.mean([video.oracle_f for video in videos])),
    }

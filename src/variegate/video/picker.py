"""From videos with chosen frames to a model, from a video to its key frames."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from os import PathLike
from pathlib import Path
from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from variegate._random import generator
from variegate._typing import BoolArray, FloatArray, IntArray, RandomState
from variegate._validation import check_choice, check_count, check_number
from variegate.decoding import Constraint
from variegate.ensemble import LEnsemble
from variegate.estimator import LargeMarginDPP
from variegate.ground_set import GroundSet
from variegate.kernels import MultipleKernel
from variegate.selection import Selection
from variegate.tuning.omega import as_omegas, model_at, resolve_omega
from variegate.video.candidates import ReadVideo, read_candidates
from variegate.video.decoding import (
    CONSENSUS,
    OLD_DECODERS,
    SEARCHES,
    VIDEO_DECODERS,
    video_decoder,
)
from variegate.video.fisher import FisherEncoder
from variegate.video.picks import PickedVideo
from variegate.video.reading import Frame, read_frames
from variegate.video.screening import Screening
from variegate.video.summary import Candidate, Keyframe, VideoSummary
from variegate.video.training import TARGETS, TrainingVideo
from variegate.video.view import BLOCKS, FEATURE_SETS, VideoView, feature_names

__all__ = ["REACH", "KeyframePicker"]

#: Bandwidths of the Gaussians; vectors in every block have length 1.
_LADDER = (0.125, 0.25, 0.5, 1.0, 2.0)

#: Seconds by which a picked time may miss the frames that are looked at.
REACH = 2.0

#: Images to learn local patterns from, at most.
_MAX_IMAGES = 2000


class KeyframePicker(BaseEstimator):  # type: ignore[misc]
    """Key frames of videos (section 4.3 of the paper).

    Frames are the items of a determinantal point process whose quality and similarity
    are learned from frames that people have chosen.

    Parameters
    ----------
    lam : float, default=6.0
        Weight of the margin; 0 is maximum likelihood.
    omega : float or several, default=1.0
        What a missed frame costs against one too many.  Of several, a model is learned
        for each, and :meth:`pick` takes any value between them.
    default_omega : float, default=1.0
        What :meth:`pick` takes where nothing is said, or the nearest to it.
    features : {"picture", "paper", "full"}
        Quality features: see :data:`~variegate.video.view.FEATURE_SETS`.
    blocks : sequence of str
        What frames are compared by: "palette", "layout" and "patterns".
    bandwidths : sequence of float
        Of the Gaussians in each block; vectors have length 1.
    targets : {"users", "oracle"}
        Whether to learn from the choice of each user, or from the one choice that
        agrees best with all of them, as the paper does.
    decoder : {"mbr", "greedy"}
        How frames are chosen: for the best expected agreement with samples (minimum
        Bayes risk), or greedily by probability.  "mbr-samples" is "mbr" with
        ``search="samples"``, and "mbr-items" with ``consensus="equal"`` too.
    beta : float, default=1.0
        Of the F-score of matched frames; above 1 recall counts for more.
    max_similarity : float, default=1.0
        The greedy search of "mbr" takes no two frames whose learned similarity is above
        this; 1 allows all.
    n_samples : int, default=300
        Sets that the choice agrees with.
    l2, max_iter : as for ``LargeMarginDPP``
    random_state : None, int or numpy.random.Generator
    search : {"greedy", "samples"}
        Where "mbr" looks: frames are added one by one, or the best of the samples is
        taken, as in the paper.
    consensus : {"matched", "equal"}
        What the agreement of "mbr" is the F-score of: frames that look alike and can be
        matched, or the same frames.

    Attributes
    ----------
    models_ : tuple of LargeMarginDPP
        One for each of ``omegas_``, which is sorted.
    encoder_ : FisherEncoder
    training_ : dict
        Numbers of videos, candidates and users, of picks that reach no candidate
        ("n_lost"), and how well the oracle agrees with the users.
    """

    def __init__(
        self,
        lam: float = 6.0,
        omega: float | Sequence[float] = 1.0,
        default_omega: float = 1.0,
        features: str = "picture",
        blocks: Sequence[str] = BLOCKS,
        bandwidths: Sequence[float] = _LADDER,
        targets: str = "users",
        decoder: str = "mbr",
        beta: float = 1.0,
        max_similarity: float = 1.0,
        n_samples: int = 300,
        l2: float = 0.1,
        max_iter: int = 1000,
        random_state: RandomState = 0,
        search: str = "greedy",
        consensus: str = "matched",
    ) -> None:
        self.lam = lam
        self.omega = omega
        self.default_omega = default_omega
        self.features = features
        self.blocks = blocks
        self.bandwidths = bandwidths
        self.targets = targets
        self.decoder = decoder
        self.beta = beta
        self.max_similarity = max_similarity
        self.n_samples = n_samples
        self.l2 = l2
        self.max_iter = max_iter
        self.random_state = random_state
        self.search = search
        self.consensus = consensus

    # Learning ---------------------------------------------------------------------

    def fit(
        self,
        videos: Sequence[PickedVideo],
        every: float = 0.5,
        progress: Callable[[int, int], None] | None = None,
    ) -> Self:
        """Learn from videos and the times that people picked in them.

        A picked time stands for the stretch of the video that it lies in, of which one
        frame is a candidate.

        Parameters
        ----------
        videos : sequence of PickedVideo
        every : float
            Seconds between the frames that are looked at.
        progress : callable, optional
            Called with (finished, all) steps.
        """
        self._check_parameters()
        if not videos:
            raise ValueError("there are no videos to learn from")
        report = progress or (lambda done, total: None)
        n_steps = len(videos) + len(as_omegas(self.omega))
        training = []
        for done, video in enumerate(videos, 1):
            training.append(_prepared(video, every))
            report(done, n_steps)
        encoder = self.fit_encoder([video.view for video in training])
        return self.fit_prepared(
            training, encoder, lambda done: report(len(videos) + done, n_steps)
        )

    def fit_encoder(self, views: Sequence[VideoView]) -> FisherEncoder:
        """Learn which local patterns there are, from some videos."""
        images = [d.sift for view in views for d in view.descriptions]
        rng = generator(self.random_state)
        if len(images) > _MAX_IMAGES:
            kept = rng.choice(len(images), size=_MAX_IMAGES, replace=False)
            images = [images[i] for i in np.sort(kept)]
        return FisherEncoder().fit(images, random_state=rng)

    def fit_prepared(
        self,
        training: Sequence[TrainingVideo],
        encoder: FisherEncoder,
        report: Callable[[int], None] | None = None,
    ) -> Self:
        """Learn from videos that were made ready before, for several fits."""
        self._check_parameters()
        self.encoder_ = encoder
        ground_sets, subsets = [], []
        for video in training:
            ground_set = self.ground_set(video.view)
            for target in video.targets(self.targets):
                ground_sets.append(ground_set)
                subsets.append(target)
        if not subsets:
            raise ValueError("no user chose a frame that can be learned from")
        models = []
        omegas = as_omegas(self.omega)
        for done, omega in enumerate(omegas, 1):
            kernel = MultipleKernel(
                bandwidths={block: list(self.bandwidths) for block in self.blocks},
                linear=True,
                blocks=list(self.blocks),
            )
            model = LargeMarginDPP(
                lam=self.lam,
                omega=omega,
                kernel=kernel,
                l2=self.l2,
                max_iter=self.max_iter,
            )
            models.append(model.fit(ground_sets, subsets))
            if report is not None:
                report(done)
        self.omegas_, self.models_ = omegas, tuple(models)
        self.training_ = {
            "n_videos": len(training),
            "n_candidates": sum(len(video.view) for video in training),
            "n_users": sum(len(video.users) for video in training),
            "n_lost": int(sum(sum(video.n_unmatchable) for video in training)),
            "oracle_f": float(np.mean([video.oracle_f for video in training])),
        }
        return self

    def ground_set(self, view: VideoView) -> GroundSet:
        """Return the features of the candidates of a video."""
        return GroundSet(
            view.quality(self.features), view.similarity(self.encoder_, self.blocks)
        )

    def _check_parameters(self) -> None:
        check_choice("features", self.features, FEATURE_SETS)
        check_choice("targets", self.targets, TARGETS)
        choosing = self._choosing()
        check_choice("decoder", choosing["decoder"], VIDEO_DECODERS)
        check_choice("search", choosing["search"], SEARCHES)
        check_choice("consensus", choosing["consensus"], CONSENSUS)
        if isinstance(self.blocks, str) or not len(self.blocks):
            raise ValueError(f"blocks must be a list of names, got {self.blocks!r}")
        for block in self.blocks:
            check_choice("block", block, BLOCKS)
        check_count("n_samples", self.n_samples)
        check_number("beta", self.beta, positive=True)
        check_number("max_similarity", self.max_similarity, positive=True)
        check_number("default_omega", self.default_omega, positive=True)
        as_omegas(self.omega)

    def _choosing(self) -> dict[str, Any]:
        """Return how frames are chosen, by the names of today."""
        names = ("decoder", "search", "consensus", "beta", "n_samples")
        return {name: getattr(self, name) for name in names} | OLD_DECODERS.get(
            self.decoder, {}
        )

    @property
    def feature_names_(self) -> list[str]:
        """Names of the quality features."""
        return list(feature_names(self.features))

    # Choosing ---------------------------------------------------------------------

    def pick(
        self,
        path: str | PathLike[str],
        *,
        omega: float | None = None,
        max_frames: int | None = None,
        every: float = 0.5,
        screening: Screening | None = None,
        progress: Callable[[int, float], None] | None = None,
        random_state: RandomState = None,
    ) -> VideoSummary:
        """Choose the frames that tell what is in a video.

        The file is read twice: once to describe it, once for the pictures of what was
        chosen, so that memory does not grow with its length.

        Parameters
        ----------
        path : str or path
        omega : float, optional
            Below 1 precise and few, above 1 complete and many; between the values that
            were learned.  By default ``default_omega``.
        max_frames : int, optional
            The most frames to choose; by default the model decides.
        every : float
            Seconds between the frames that are looked at.
        screening : Screening, optional
            Which frames are not worth looking at.
        progress : callable, optional
            Called with the number and the time of each frame that is looked at.
        random_state : None, int or numpy.random.Generator
            By default that of the model.
        """
        check_is_fitted(self, "models_")
        if max_frames is not None:
            check_count("max_frames", max_frames)
        omega = resolve_omega(self.omegas_, omega, self.default_omega)
        video = read_candidates(path, every, screening, progress)
        ensemble, selection = self._select(video.view, omega, max_frames, random_state)
        chosen = selection.indices
        probabilities = ensemble.marginals()
        numbers = [video.view.descriptions[i].number for i in chosen]
        frames = _frames_numbered(path, every, numbers)
        return VideoSummary(
            str(path),
            [
                Keyframe(frame.number, frame.time, float(probabilities[i]), frame.image)
                for i, frame in zip(chosen, frames, strict=True)
            ],
            _candidates(video, probabilities, chosen),
            video.decisions,
            omega,
            selection.among(np.arange(len(video.view))),
        )

    def choose(
        self,
        view: VideoView,
        omega: float | None = None,
        max_frames: int | None = None,
        random_state: RandomState = None,
    ) -> tuple[LEnsemble, IntArray]:
        """Choose among the candidates of a view; also return the ensemble over them."""
        ensemble, selection = self._select(view, omega, max_frames, random_state)
        return ensemble, selection.indices

    def _select(
        self,
        view: VideoView,
        omega: float | None,
        max_frames: int | None,
        random_state: RandomState,
    ) -> tuple[LEnsemble, Selection]:
        check_is_fitted(self, "models_")
        self._check_parameters()
        omega = resolve_omega(self.omegas_, omega, self.default_omega)
        model = model_at(self.omegas_, self.models_, omega)
        ensemble = model.ensemble(self.ground_set(view))
        seed = self.random_state if random_state is None else random_state
        same = _too_similar(ensemble, self.max_similarity)
        decode = video_decoder(**self._choosing(), alike=view.alike, same=same)
        limit = min(len(view), max_frames or len(view))
        constraint = Constraint(None, limit, np.ones(len(view)))
        return ensemble, decode(ensemble, constraint, generator(seed))

    # Keeping ----------------------------------------------------------------------

    def save(self, path: str | Path) -> None:
        """Write the fitted model to a JSON file; :func:`variegate.load` reads it."""
        from variegate.video import model_file

        check_is_fitted(self, "models_")
        model_file.save(self, path)

    @classmethod
    def load(cls, path: str | Path) -> KeyframePicker:
        """Read a model that :meth:`save` wrote."""
        from variegate.video import model_file

        return model_file.load(path)


def _too_similar(ensemble: LEnsemble, limit: float) -> BoolArray:
    """Return which pairs have a similarity above a limit; all have with themselves."""
    S = ensemble.S
    lengths = np.sqrt(np.diagonal(S))
    above = np.outer(lengths, lengths) * min(limit, 1.0) < S
    if limit >= 1.0:  # up to rounding, none is
        above[:] = False
    np.fill_diagonal(above, True)
    return np.asarray(above)


def _prepared(video: PickedVideo, every: float) -> TrainingVideo:
    """Return the candidates of a video, and which of them users picked."""
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
    return TrainingVideo(read.view, users, lost)


def _frames_numbered(
    path: str | PathLike[str], every: float, numbers: Sequence[int]
) -> list[Frame]:
    """Read some of the frames that were looked at again."""
    import warnings

    wanted = set(numbers)
    found: list[Frame] = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # whatever is wrong was said the first time
        for frame in read_frames(path, every):
            if frame.number in wanted:
                found.append(frame)
                if len(found) == len(wanted):
                    break
    return found


def _candidates(
    video: ReadVideo, probabilities: FloatArray, chosen: IntArray
) -> list[Candidate]:
    taken = set(chosen.tolist())

    def each() -> Iterator[Candidate]:
        for place, description in enumerate(video.view.descriptions):
            yield Candidate(
                description.number,
                description.time,
                float(probabilities[place]),
                place in taken,
            )

    return list(each())

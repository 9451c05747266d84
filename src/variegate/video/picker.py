"""Learn key frames from videos with picked frames, and pick them in a video."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from os import PathLike
from typing import Any, ClassVar, Self

import numpy as np
from sklearn.utils.validation import check_is_fitted

from variegate._progress import Progress, ignore
from variegate._random import as_generator
from variegate._typing import BoolArray, RandomState
from variegate._validation import check_choice, check_flag, check_number
from variegate.application.base import FamilyApplication, packaged_model
from variegate.decoding import MBR, Decoder, GreedySearch
from variegate.files.model_format import POSITIVE
from variegate.files.schema import Shape
from variegate.ground_set import GroundSet
from variegate.kernels import Kernel, MultipleKernel
from variegate.video.candidates import (
    BLOCKS,
    TRAINING,
    CandidateReader,
    TrainingVideo,
    VideoView,
    read_candidates,
)
from variegate.video.choosing import (
    Amount,
    Choice,
    MatchingAgreement,
    choose_frames,
)
from variegate.video.fisher import PATTERNS, FisherEncoder
from variegate.video.picks import PickedVideo
from variegate.video.picture import PICTURE_STATISTICS
from variegate.video.picture_store import PictureStore
from variegate.video.reading import EVERY
from variegate.video.sequence import KeyframeSequence, choose_in_order
from variegate.video.sharpest import sharpest_frames
from variegate.video.summary import VideoSummary

_BANDWIDTHS = (0.125, 0.25, 0.5, 1.0, 2.0)  # of the Gaussians
_MAX_IMAGES = 2000  # to learn local patterns from


@dataclass(eq=False, repr=False)
class KeyframePicker(FamilyApplication):
    """Key frames of videos (section 4.3 of the paper).

    Frames are the items of a determinantal point process whose quality and similarity
    are learned from people's choices.

    Parameters
    ----------
    lam : float, default=6.0
        Weight of the margin; 0 is maximum likelihood.
    omega : float or several, default=1.0
        Cost of a missed frame relative to one too many.  Of several, a model is learned
        for each, and :meth:`pick` takes any value between them.
    blocks : features that frames are compared by: "palette", "layout" and "patterns"
    bandwidths : of the Gaussians in each block; vectors have length 1
    beta : float, default=1.0
        Of the F-score of matched frames; above 1 recall counts for more.
    max_similarity : float, default=1.0
        Largest learned similarity of two chosen frames.
    n_samples : int, default=300
        Samples with which chosen frames must agree: minimum Bayes risk decoding.
    l2, max_iter : as for ``LargeMarginDPP``
    random_state : None, int or numpy.random.Generator
    verbose : bool, default=False
        Whether :meth:`fit` and :meth:`pick` print their progress on standard error.

    Attributes
    ----------
    family_ : OmegaFamily
        The models; also as ``models_``, one for each of ``omegas_``, which is sorted.
    encoder_ : FisherEncoder
    every_ : seconds between the sampled frames of the training videos
    training_ : dict
        Numbers of videos, candidates and users, of picks that reach no candidate
        ("n_lost"), and how well the oracle agrees with the users.
    """

    _type = "keyframe-picker"
    _noun = "key frames"
    _not_stored = ("verbose",)
    _count_nouns = ("videos", "candidates", "users")
    _sections: ClassVar[Mapping[str, Shape]] = {
        "patterns": PATTERNS,
        "training": TRAINING,
        "every": POSITIVE,
    }

    lam: float = 6.0
    omega: float | Sequence[float] = 1.0
    blocks: Sequence[str] = BLOCKS
    bandwidths: Sequence[float] = _BANDWIDTHS
    beta: float = 1.0
    max_similarity: float = 1.0
    n_samples: int = 300
    l2: float = 0.1
    max_iter: int = 1000
    random_state: RandomState = 0
    verbose: bool = False

    def fit(
        self,
        videos: Sequence[PickedVideo],
        every: float = EVERY,
        progress: Progress | None = None,
    ) -> Self:
        """Learn from videos and the times that people picked in them.

        A picked time stands for the stretch of the video that it lies in, of which one
        frame is a candidate.  Sampled frames are ``every`` seconds apart; ``progress``
        is called with "fitting" and the numbers of finished and of all steps.
        """
        self._check_parameters()
        if not videos:
            raise ValueError("there are no videos to learn from")
        reading, learning = self._progress_parts(progress, len(videos))
        training = []
        for done, video in enumerate(videos, 1):
            training.append(TrainingVideo.read(video, every))
            reading("fitting", done, len(videos))
        encoder = self.fit_encoder([video.view for video in training])
        self.fit_prepared(training, encoder, learning)
        self.every_ = float(every)
        return self

    def fit_encoder(self, views: Sequence[VideoView]) -> FisherEncoder:
        """Return an encoder of local patterns, fitted to the candidates of videos."""
        images = [d.sift for view in views for d in view.descriptions]
        rng = as_generator(self.random_state)
        if len(images) > _MAX_IMAGES:
            kept = rng.choice(len(images), size=_MAX_IMAGES, replace=False)
            images = [images[i] for i in np.sort(kept)]
        return FisherEncoder.fit(images, rng)

    def fit_prepared(
        self,
        training: Sequence[TrainingVideo],
        encoder: FisherEncoder,
        progress: Progress = ignore,
    ) -> Self:
        """Learn from videos that are read, and an encoder that is fitted.

        Both can serve several fits.  ``progress`` is called with "fitting"; ``every_``
        becomes the default, 0.5 seconds: set it if another was used.
        """
        self._check_parameters()
        self.encoder_ = encoder
        self.every_ = EVERY
        ground_sets = [self.ground_set(video.view) for video in training]
        examples = [
            (ground_set, target, video.path)
            for ground_set, video in zip(ground_sets, training, strict=True)
            for target in video.targets
        ]
        if not examples:
            raise ValueError("no user chose a frame that can be learned from")
        every_set, subsets, names = zip(*examples, strict=True)
        self._fit_family(self._make_kernel(), every_set, subsets, names, progress)
        self.training_ = {
            "n_videos": len(training),
            "n_candidates": sum(len(video.view) for video in training),
            "n_users": sum(len(video.users) for video in training),
            "n_lost": int(sum(sum(video.n_unmatchable) for video in training)),
            "oracle_f": float(np.mean([video.oracle_f for video in training])),
        }
        return self

    def _make_kernel(self) -> Kernel:
        """Return a sum to learn of a linear kernel and Gaussians on each block."""
        return MultipleKernel(
            bandwidths={block: list(self.bandwidths) for block in self.blocks},
            linear=True,
            blocks=list(self.blocks),
        )

    def ground_set(self, view: VideoView) -> GroundSet:
        """Return the quality and similarity features of the candidates of a video."""
        return GroundSet(view.quality(), view.similarity(self.encoder_, self.blocks))

    def _check_parameters(self) -> None:
        """Raise ValueError for invalid parameters of the constructor."""
        super()._check_parameters()
        if isinstance(self.blocks, str) or not len(self.blocks):
            raise ValueError(f"blocks must be a list of names, got {self.blocks!r}")
        for block in self.blocks:
            check_choice("block", block, BLOCKS)
        for name in ("beta", "max_similarity"):
            check_number(name, getattr(self, name), positive=True)

    @property
    def feature_names_(self) -> list[str]:
        """Names of the quality features."""
        return list(PICTURE_STATISTICS)

    def _oracle_text(self) -> str:
        """Return text on the F-score of the best choices, for a description."""
        f = self.training_["oracle_f"]
        return f"best choice of candidates: F {f:.3f} against the picks"

    def pick(
        self,
        path: str | PathLike[str],
        *,
        omega: float | None = None,
        max_frames: int | None = None,
        count: int | None = None,
        per_shot: bool = False,
        every: float | None = None,
        sequential: bool = False,
        folder: str | PathLike[str] | None = None,
        progress: Progress | None = None,
        random_state: RandomState = None,
    ) -> VideoSummary:
        """Choose the key frames of a video.

        The file is read twice: once to describe it, once for the pictures of the chosen
        frames.  Of the frames around a chosen one, in its shot and half way to the next
        candidates, the sharpest is taken.

        At most a thousand candidates are held, and the pictures of key frames.  With
        ``sequential``, a hundred candidates are held, and pictures are in a file: a
        film of any length is chosen from in segments, each beside the key frames of
        the one before.

        Parameters
        ----------
        path : str or path
        omega : float, optional
            Below 1 precise and few, above 1 complete and many; between the values that
            were learned.  By default 1, or the nearest to it.
        max_frames : int, optional
            The most frames to choose; by default the model decides.
        count : int, optional
            The exact number of frames to choose: as with ``max_frames``, and then the
            frames that raise the probability of the set most, even similar ones.
        per_shot : bool
            Choose only the likeliest frame of each shot.  Of ``max_frames``, ``count``
            and ``per_shot`` only one can be given.
        every : float, optional
            Seconds between sampled frames; by default as in training.
        sequential : bool
            Choose in segments of at most a hundred candidates, for long films.  Key
            frames are diverse within segments and beside those of the segment before.
            With ``max_frames``, a second choice is made among all key frames.
        folder : str or path, optional
            With ``sequential``, the folder for the temporary file of pictures; by
            default that of the system.
        progress : callable, optional
            Called with "reading", the time of each sampled frame, and the duration of
            the video, 0 where it is not known.
        random_state : None, int or numpy.random.Generator; by default the model's
        """
        check_is_fitted(self, "family_")
        amount = Amount(max_frames, count, per_shot)
        check_flag("sequential", sequential)
        every = self.every_ if every is None else every
        omega = self.family_.resolve(omega)
        progress = self._progress_callback(progress)
        if sequential:
            reader = CandidateReader(path, every, progress)
            return self._pick_in_order(
                path, reader, omega, amount, folder, random_state
            )
        video = read_candidates(path, every, progress)
        choice = self.choose(video.view, omega, amount, random_state)
        chosen = choice.selection.indices.tolist()
        frames = sharpest_frames(path, map(video.span_around, chosen))
        pictures = [(frame.number, frame.time, frame.image) for frame in frames]
        return VideoSummary.from_choice(
            path, video, video.frames, choice, pictures, omega
        )

    def _pick_in_order(
        self,
        path: str | PathLike[str],
        reader: CandidateReader,
        omega: float,
        amount: Amount,
        folder: str | PathLike[str] | None,
        random_state: RandomState,
    ) -> VideoSummary:
        """Choose the key frames of a video segment by segment.

        Without ``max_frames``, the second reading follows the first: pictures are
        stored while later segments are not read yet.
        """
        if amount.count is not None or amount.per_shot:
            raise ValueError(
                "count and per_shot need all candidates at once: give max_frames with "
                "sequential, or leave sequential out"
            )
        self._check_parameters()
        rng = self._make_generator(random_state)
        sequence = KeyframeSequence(self, omega, rng, amount.max_frames)
        spans: Iterable[tuple[float, float]] = choose_in_order(sequence, reader)
        if amount.max_frames is not None:
            for _ in spans:  # until the end is read
                pass
            spans = sequence.limit(reader.shots)
        store = PictureStore(folder)
        pictures = [
            (frame.number, frame.time, store.add(frame.image))
            for frame in sharpest_frames(path, spans)
        ]
        return VideoSummary.from_choice(
            path, reader, sequence.frames, sequence, pictures, omega
        )

    def choose(
        self,
        view: VideoView,
        omega: float | None = None,
        amount: Amount = Amount(),  # noqa: B008 - it is frozen
        random_state: RandomState = None,
    ) -> Choice:
        """Choose candidates of a video that is read, as :meth:`pick` does.

        ``amount`` stands for its arguments ``max_frames``, ``count`` and ``per_shot``.
        """
        check_is_fitted(self, "family_")
        self._check_parameters()
        model = self.family_.at(self.family_.resolve(omega))
        ensemble = model.ensemble(self.ground_set(view))
        rng = self._make_generator(random_state)
        return choose_frames(
            ensemble, view, self._make_decoder, self.max_similarity, amount, rng
        )

    def _make_decoder(
        self, alike: BoolArray, same: BoolArray, nonempty: bool = True
    ) -> Decoder:
        """Return a decoder by the F-score of matched frames, of minimum Bayes risk.

        Pairs (N, N) that are ``alike`` can be matched; of the ``same`` one is chosen.
        ``nonempty`` chooses a frame even where all samples are empty.
        """
        agreement = MatchingAgreement(alike, self.beta, same)
        return MBR(self.n_samples, None, agreement, GreedySearch(nonempty=nonempty))

    def _encode_rest(self) -> dict[str, Any]:
        """Return the sections of a model file that only pickers have, by name."""
        return {"every": self.every_, "patterns": self.encoder_.to_dict()}

    def _decode_rest(self, document: Mapping[str, Any]) -> None:
        """Set ``encoder_`` and ``every_`` from a file: see :meth:`_encode_rest`."""
        self.encoder_ = FisherEncoder.from_dict(document["patterns"])
        self.every_ = float(document["every"])


def load_default() -> KeyframePicker:
    """Return the picker that comes with the package: see ``models/videos.md``."""
    model: KeyframePicker = packaged_model("variegate.video", "videos.json")
    return model

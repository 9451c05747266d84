"""One piece of work: learn on some videos, pick frames of the others, score them."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache, partial
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.base import clone

from paper.experiment import Record
from paper.held_out import Choice, choose
from paper.learned import ROWS
from paper.video.baselines import (
    kmeans_keyframes,
    random_keyframes,
    uniform_keyframes,
    vsumm,
)
from paper.video.features import PaperPicker
from paper.video.pool import PoolVideo, Videos, read_pool
from paper.video.rows import HERO
from paper.video.sequences import SEQUENCE_ROWS, SequenceLearner
from paper.video.settings import Settings, Setup
from paper.video.similarities import Learner
from variegate._typing import IntArray
from variegate.video.fisher import FisherEncoder

#: From what the paper describes to what this library does, one step at a time.
STEPS: tuple[tuple[str, dict[str, Any]], ...] = (
    (
        "maximum likelihood of the oracle; saliency, neighbours and position; one "
        "Gaussian of the palette; greedy with as many frames as are expected",
        {
            "lam": 0.0,
            "targets": "oracle",
            "features": "paper",
            "l2": 1.0,
            "blocks": ("palette",),
            "bandwidths": (0.5,),
            "decoder": "greedy",
        },
    ),
    (
        "decoder: of many samples the one with the best set F",
        {"decoder": "mbr", "best_sample": "equal"},
    ),
    ("consensus: F of matched frames instead", {"best_sample": "matched"}),
    ("a search for the best consensus, not only samples", {"best_sample": None}),
    ("features: of the picture instead", {"features": "picture", "l2": 0.1}),
    (
        "kernel: five Gaussians and a linear part",
        {"bandwidths": PaperPicker().bandwidths},
    ),
    ("blocks: palette, layout and patterns", {"blocks": PaperPicker().blocks}),
    ("learning from each user, not from the oracle", {"targets": "users"}),
    ("large margin, λ = 6, ω = 1", {"lam": 6.0}),
    ("ω = 4", {"omega": 4.0}),
)


#: The rows that are learned, by ``LME`` or ``MLE``: the second for each ω, the others
#: for the ω that was chosen, which is 1 for maximum likelihood: it knows none.
_LEARNED = ("MLE+MKR", "LME+MKR", HERO)

#: Baselines that are told how many frames to choose: of a video, a number, with a seed.
_COUNTED: dict[str, Callable[[PoolVideo, int, int], IntArray]] = {
    "k-means": lambda video, k, seed: kmeans_keyframes(
        video.histograms, min(k, len(video.frames)), seed
    ),
    "uniform": lambda video, k, _: uniform_keyframes(len(video.frames), k),
    "random": lambda video, k, seed: random_keyframes(
        len(video.frames), k, np.random.default_rng(seed)
    ),
}

#: Methods whose choice is published with the pool.
_PUBLISHED = ("VSUMM1", "VSUMM2", "VISTO", "OVS")

#: Our versions of two of them.
_OWN = {f"VSUMM{k}, our implementation on the pool": k == 2 for k in (1, 2)}

#: The names of all rows of the table.
ROW_NAMES = (*_LEARNED, *ROWS, *SEQUENCE_ROWS, "oracle", *_OWN, *_COUNTED, *_PUBLISHED)


def work_list(setup: Setup) -> list[tuple[str, int]]:
    """Return the pieces: what to compute, and the fold that is held out.

    With test data there is one fold, 0: learn on everything.
    """
    folds = range(1 if setup.test_data else setup.settings.n_folds)
    kinds = ("table",) if setup.settings.rows else ("table", "steps")
    return [(kind, fold) for fold in folds for kind in kinds]


def compute_piece(setup: Setup, kind: str, fold: int) -> list[Record]:
    """Return the scores of every method on every video that is held out."""
    settings = setup.settings
    with warnings.catch_warnings():
        # What stops a fit at its limit of iterations is the same for all methods.
        warnings.simplefilter("ignore")
        learn, judge = split(setup, fold)
        picker = PaperPicker(
            n_samples=settings.n_samples,
            max_iter=settings.max_iter,
            random_state=settings.seed,
        )
        encoder = picker.fit_encoder([prepared.view for _, prepared in learn])
        if kind == "steps":
            return list(_steps(picker, encoder, learn, judge))
        chosen = _choose_on_training(settings, picker, encoder, learn)
        learned = _learned(settings, chosen, picker, encoder, learn, judge)
        picker = clone(picker).set_params(**chosen["LME"])
        parts = _parts(settings, len(learn), settings.n_inner)
        learner = Learner(settings, picker, encoder, learn, parts)
        beyond = _beyond(settings, learner, chosen["LME"], judge)
        picker.encoder_ = encoder
        in_order = SequenceLearner(settings, picker, encoder, learn, parts)
        sequences = _sequences(settings, in_order, chosen["LME"], judge)
        others = _others(settings, learn, judge)
        return [*learned, *beyond, *sequences, *others]


@lru_cache(maxsize=2)
def _pool(folder: str) -> Videos:
    return [(video, video.prepared()) for video in read_pool(Path(folder))]


def split(setup: Setup, fold: int) -> tuple[Videos, Videos]:
    """Return the videos to learn from and those to judge."""
    pool = _pool(setup.data)
    if setup.test_data:
        return pool, _pool(setup.test_data)
    held_out = _parts(setup.settings, len(pool), setup.settings.n_folds)[fold]
    kept = [number for number in range(len(pool)) if number not in set(held_out)]
    return [pool[i] for i in kept], [pool[i] for i in held_out]


def _parts(settings: Settings, n_videos: int, n_parts: int) -> list[list[int]]:
    order = np.random.default_rng(settings.seed).permutation(n_videos)
    return [sorted(part.tolist()) for part in np.array_split(order, n_parts)]


def _learned(
    settings: Settings,
    chosen: dict[str, Choice],
    picker: PaperPicker,
    encoder: FisherEncoder,
    learn: Videos,
    judge: Videos,
) -> Iterator[Record]:
    """Yield the scores of maximum likelihood and of large margins for each ω."""
    seeds = range(settings.seed, settings.seed + settings.n_runs)
    fitted: dict[str, PaperPicker] = {}
    names = [name for name in _LEARNED if name == HERO or settings.wants(name)]
    for name in names:
        learner = name[:3]
        best = chosen[learner]["omega"]
        if learner not in fitted:
            others = settings.omegas if "LME+MKR" in names and learner == "LME" else ()
            model = clone(picker).set_params(**chosen[learner])
            model.set_params(omega=sorted({best, *others}))
            training = [prepared for _, prepared in learn]
            fitted[learner] = model.fit_prepared(training, encoder)
        every_omega = name == "LME+MKR"
        for video, prepared in judge:
            for omega in settings.omegas if every_omega else (best,):
                choose = partial(fitted[learner].choose, prepared.view, omega)
                runs = [choose(random_state=seed).selection.indices for seed in seeds]
                shown = omega if every_omega else None
                record = _record("table", name, video, runs, omega=shown)
                yield record | {"chosen": chosen[learner]}


def _beyond(
    settings: Settings, learner: Learner, chosen: Choice, judge: Videos
) -> Iterator[Record]:
    """Yield the scores of the rows beyond the paper."""
    seeds = range(settings.seed, settings.seed + settings.n_runs)
    names = [name for name in ROWS if name in settings.rows]
    for name, choice, choose_frames in learner.rows(names):
        seen = seeds[:1] if "beta" in choice else seeds
        for video, prepared in judge:
            runs = [choose_frames(prepared.view, seed) for seed in seen]
            yield _record("table", name, video, runs) | {"chosen": chosen | choice}


def _sequences(
    settings: Settings, learner: SequenceLearner, chosen: Choice, judge: Videos
) -> Iterator[Record]:
    """Yield the scores of the rows of sequences."""
    seeds = range(settings.seed, settings.seed + settings.n_runs)
    names = [name for name in SEQUENCE_ROWS if name in settings.rows]
    for name, choice, choose_frames in learner.rows(names):
        seen = seeds[:1] if name.endswith("beam") else seeds
        for video, prepared in judge:
            runs = [choose_frames(prepared, seed) for seed in seen]
            yield _record("table", name, video, runs) | {"chosen": chosen | choice}


def _choose_on_training(
    settings: Settings, picker: PaperPicker, encoder: FisherEncoder, learn: Videos
) -> dict[str, Choice]:
    """Choose λ, l2, features and ω on the videos that are learned from.

    Parts of them are held out in turn, and what gives the best mean F-score is taken:
    for large margins, and with λ = 0 for maximum likelihood.
    """
    choices: list[Choice] = [
        {"lam": lam, "l2": l2, "features": features, "omega": omega}
        for lam in ((0.0,) if settings.wants("MLE+MKR") else ()) + settings.lambdas
        for l2 in settings.ridges
        for features in settings.feature_sets
        for omega in ((1.0,) if lam == 0.0 else settings.inner_omegas)
    ]
    parts = _parts(settings, len(learn), settings.n_inner)
    return choose(choices, parts, partial(_held_out_scores, picker, encoder, learn))


def _held_out_scores(
    picker: PaperPicker,
    encoder: FisherEncoder,
    learn: Videos,
    part: Sequence[int],
    choices: Sequence[Choice],
) -> Iterator[float]:
    """Yield the sum of the F-scores of each choice on the held-out videos."""
    inside = [prepared for i, (_, prepared) in enumerate(learn) if i not in part]
    for choice in choices:
        picker.set_params(**choice).fit_prepared(inside, encoder)
        total = 0.0
        for video, prepared in (learn[i] for i in part):
            chosen = picker.choose(prepared.view, choice["omega"]).selection
            total += video.score(chosen.indices.tolist()).f
        yield total


def _steps(
    picker: PaperPicker, encoder: FisherEncoder, learn: Videos, judge: Videos
) -> Iterator[Record]:
    """Yield the scores after each step from the paper's method to this one."""
    training = [prepared for _, prepared in learn]
    for name, change in STEPS:
        picker.set_params(**change).fit_prepared(training, encoder)
        for video, prepared in judge:
            chosen = picker.choose(prepared.view).selection.indices
            yield _record("steps", name, video, [chosen])


def _others(settings: Settings, learn: Videos, judge: Videos) -> Iterator[Record]:
    """Yield the scores of the oracle, of what is published, and of baselines."""
    seeds = range(settings.seed, settings.seed + settings.n_runs)
    counts = {
        name: max((_mean_f(baseline, k, learn), k) for k in settings.counts)[1]
        for name, baseline in _COUNTED.items()
        if settings.wants(name)
    }
    for video, prepared in judge:
        record = partial(_record, "table", video=video)
        if settings.wants("oracle"):
            yield record("oracle", runs=[prepared.oracle])
        for name, key_clusters in _OWN.items():
            if settings.wants(name):
                chosen = vsumm(video.histograms, key_clusters=key_clusters)
                yield record(name, runs=[chosen])
        for name, k in counts.items():
            seen = seeds[:1] if name == "uniform" else seeds
            yield record(name, runs=[_COUNTED[name](video, k, seed) for seed in seen])
        for name in _PUBLISHED:
            if name in video.methods and settings.wants(name):
                places, n_lost = video.methods[name]
                yield record(name, runs=[places], n_lost=n_lost)


def _mean_f(
    baseline: Callable[[PoolVideo, int, int], IntArray], k: int, videos: Videos
) -> float:
    scores = [video.score(baseline(video, k, 0).tolist()).f for video, _ in videos]
    return float(np.mean(scores))


def _record(
    kind: str,
    method: str,
    video: PoolVideo,
    runs: Sequence[Sequence[int] | IntArray],
    n_lost: int = 0,
    omega: float | None = None,
) -> Record:
    chosen = [[int(place) for place in places] for places in runs]
    scores = [video.score(places, n_lost) for places in chosen]
    return {
        "kind": kind,
        "method": method,
        "omega": omega,
        "judged": video.name,
        "runs": [[s.precision, s.recall, s.f] for s in scores],
        "n_frames": float(np.mean([len(places) + n_lost for places in chosen])),
        "frames": chosen[0],
    }

"""One piece of work: learn on some videos, pick frames of the others, score them."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np

from variegate.experiments.video.pool import PoolVideo, read_pool
from variegate.experiments.video.rows import HERO
from variegate.experiments.video.settings import Settings
from variegate.video import KeyframePicker
from variegate.video.baselines import (
    kmeans_keyframes,
    random_keyframes,
    uniform_keyframes,
    vsumm,
)
from variegate.video.fisher import FisherEncoder
from variegate.video.training import TrainingVideo

__all__ = ["STEPS", "compute_piece", "work_list"]

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
    ("decoder: of many samples the one with the best set F", {"decoder": "mbr-items"}),
    ("consensus: F of matched frames instead", {"decoder": "mbr-samples"}),
    ("a search for the best consensus, not only samples", {"decoder": "mbr"}),
    ("features: of the picture instead", {"features": "picture", "l2": 0.1}),
    (
        "kernel: five Gaussians and a linear part",
        {"bandwidths": KeyframePicker().bandwidths},
    ),
    ("blocks: palette, layout and patterns", {"blocks": KeyframePicker().blocks}),
    ("learning from each user, not from the oracle", {"targets": "users"}),
    ("large margin, λ = 6, ω = 1", {"lam": 6.0}),
    ("ω = 4", {"omega": 4.0, "default_omega": 4.0}),
)

#: Methods whose choice is published with the pool.
_PUBLISHED = ("VSUMM1", "VSUMM2", "VISTO", "OVS")

Record = dict[str, Any]
_Pool = tuple[list[PoolVideo], list[TrainingVideo]]


def work_list(settings: Settings, with_test_data: bool) -> list[tuple[str, int]]:
    """Return the pieces: what to compute, and the fold that is held out.

    With test data there is one fold, 0: learn on everything.
    """
    folds = range(1 if with_test_data else settings.n_folds)
    return [(kind, fold) for fold in folds for kind in ("table", "steps")]


def compute_piece(
    settings: Settings, data: str, test_data: str | None, kind: str, fold: int
) -> list[Record]:
    """Return the scores of every method on every video that is held out."""
    with warnings.catch_warnings():
        # What stops a fit at its limit of iterations is the same for all methods.
        warnings.simplefilter("ignore")
        learn, judge = _split(settings, data, test_data, fold)
        training = [prepared for _, prepared in learn]
        picker = KeyframePicker(
            n_samples=settings.n_samples,
            max_iter=settings.max_iter,
            random_state=settings.seed,
        )
        encoder = picker.fit_encoder([video.view for video in training])
        if kind == "steps":
            return _steps(picker, training, encoder, judge)
        return [
            *_learned(settings, picker, learn, encoder, judge),
            *_others(settings, [video for video, _ in learn], judge),
        ]


@lru_cache(maxsize=2)
def _pool(folder: str) -> _Pool:
    videos = read_pool(Path(folder))
    return videos, [video.prepared() for video in videos]


_Videos = list[tuple[PoolVideo, TrainingVideo]]


def _split(
    settings: Settings, data: str, test_data: str | None, fold: int
) -> tuple[_Videos, _Videos]:
    pool = list(zip(*_pool(data), strict=True))
    if test_data is not None:
        return pool, list(zip(*_pool(test_data), strict=True))
    held_out = _parts(settings, len(pool), settings.n_folds)[fold]
    kept = [number for number in range(len(pool)) if number not in set(held_out)]
    return [pool[i] for i in kept], [pool[i] for i in held_out]


def _parts(settings: Settings, n_videos: int, n_parts: int) -> list[list[int]]:
    order = np.random.default_rng(settings.seed).permutation(n_videos)
    return [sorted(part.tolist()) for part in np.array_split(order, n_parts)]


# Learned --------------------------------------------------------------------------


def _learned(
    settings: Settings,
    picker: KeyframePicker,
    learn: _Videos,
    encoder: FisherEncoder,
    judge: _Videos,
) -> list[Record]:
    """Return the scores of maximum likelihood and of large margins for each ω."""
    training = [prepared for _, prepared in learn]
    chosen = choose_on_training(settings, picker, learn, encoder)
    records = []
    for name, omegas in (("MLE+MKR", (1.0,)), ("LME+MKR", settings.omegas)):
        best = chosen[name]["omega"]
        picker.set_params(**{k: v for k, v in chosen[name].items() if k != "omega"})
        picker.set_params(omega=sorted({*omegas, best}))
        picker.fit_prepared(training, encoder)
        for video, prepared in judge:
            # Maximum likelihood knows no ω.
            shown = {omega: omega if name == "LME+MKR" else None for omega in omegas}
            of_video = [
                _runs(settings, picker, video, prepared, omega)
                | {"method": name, "omega": shown[omega], "chosen": chosen[name]}
                for omega in omegas
            ]
            if name == "LME+MKR":
                hero = _runs(settings, picker, video, prepared, best)
                of_video.append(hero | {"method": HERO, "omega": None})
            records += of_video
    return records


def choose_on_training(
    settings: Settings,
    picker: KeyframePicker,
    learn: _Videos,
    encoder: FisherEncoder,
) -> dict[str, dict[str, Any]]:
    """Choose λ, l2, features and ω on the videos that are learned from.

    Parts of them are held out in turn, and what gives the best mean F-score is taken:
    for large margins, and with λ = 0 for maximum likelihood.
    """
    choices: list[dict[str, Any]] = [
        {"lam": lam, "l2": l2, "features": features, "omega": omega}
        for lam in (0.0, *settings.lambdas)
        for l2 in settings.ridges
        for features in settings.feature_sets
        for omega in ((1.0,) if lam == 0.0 else settings.inner_omegas)
    ]
    total = np.zeros(len(choices))
    for part in _parts(settings, len(learn), settings.n_inner):
        inside = [prepared for i, (_, prepared) in enumerate(learn) if i not in part]
        for number, choice in enumerate(choices):
            picker.set_params(**choice).fit_prepared(inside, encoder)
            for i in part:
                video, prepared = learn[i]
                places = picker.choose(prepared.view, choice["omega"])[1]
                total[number] += video.score(places.tolist()).f
    is_margin = np.array([choice["lam"] != 0.0 for choice in choices])
    return {
        name: choices[int(np.argmax(np.where(is_margin == margin, total, -np.inf)))]
        for name, margin in (("LME+MKR", True), ("MLE+MKR", False))
    }


def _runs(
    settings: Settings,
    picker: KeyframePicker,
    video: PoolVideo,
    prepared: TrainingVideo,
    omega: float,
) -> Record:
    seeds = range(settings.seed, settings.seed + settings.n_runs)
    runs = [
        picker.choose(prepared.view, omega, random_state=seed)[1].tolist()
        for seed in seeds
    ]
    return _record("table", "", omega, video, runs)


def _steps(
    picker: KeyframePicker,
    training: Sequence[TrainingVideo],
    encoder: FisherEncoder,
    judge: _Videos,
) -> list[Record]:
    """Return the scores after each step from the paper's method to this one."""
    records = []
    for name, change in STEPS:
        picker.set_params(**change).fit_prepared(training, encoder)
        for video, prepared in judge:
            places = picker.choose(prepared.view)[1].tolist()
            records.append(_record("steps", name, None, video, [places]))
    return records


# Not learned ----------------------------------------------------------------------


def _others(
    settings: Settings, learn: Sequence[PoolVideo], judge: _Videos
) -> list[Record]:
    """Return the scores of the oracle, of what is published, and of baselines."""
    seeds = range(settings.seed, settings.seed + settings.n_runs)
    best = {
        name: max((_mean_f(name, k, learn), k) for k in settings.counts)[1]
        for name in ("k-means", "uniform", "random")
    }
    records = []
    for video, prepared in judge:
        fixed = {
            "oracle": prepared.oracle.tolist(),
            "VSUMM1, our implementation on the pool": vsumm(video.histograms).tolist(),
            "VSUMM2, our implementation on the pool": vsumm(
                video.histograms, key_clusters=True
            ).tolist(),
        }
        for name, places in fixed.items():
            records.append(_record("table", name, None, video, [places]))
        for name, k in best.items():
            seen = seeds[:1] if name == "uniform" else seeds
            runs = [_baseline(name, video, k, seed) for seed in seen]
            records.append(_record("table", name, None, video, runs))
        for name in _PUBLISHED:
            if name in video.methods:
                places, n_lost = video.methods[name]
                records.append(_record("table", name, None, video, [places], n_lost))
    return records


def _mean_f(name: str, k: int, videos: Sequence[PoolVideo]) -> float:
    scores = [video.score(_baseline(name, video, k, 0)).f for video in videos]
    return float(np.mean(scores))


def _baseline(name: str, video: PoolVideo, k: int, seed: int) -> list[int]:
    n = len(video.frames)
    if name == "k-means":
        chosen = kmeans_keyframes(video.histograms, min(k, n), seed)
    elif name == "uniform":
        chosen = uniform_keyframes(n, k)
    else:
        chosen = random_keyframes(n, k, np.random.default_rng(seed))
    return [int(place) for place in chosen]


def _record(
    kind: str,
    method: str,
    omega: float | None,
    video: PoolVideo,
    runs: Sequence[Sequence[int]],
    n_lost: int = 0,
) -> Record:
    scores = [video.score(places, n_lost) for places in runs]
    return {
        "kind": kind,
        "method": method,
        "omega": omega,
        "video": video.name,
        "runs": [[s.precision, s.recall, s.f] for s in scores],
        "n_frames": float(np.mean([len(places) + n_lost for places in runs])),
        "frames": [int(place) for place in runs[0]],
    }

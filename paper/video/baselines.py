"""Key frames without learning, to compare with.

All take histograms of frames in the order of the video and return sorted frame numbers.
"""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np

from variegate._typing import FloatArray, IntArray
from variegate._validation import check_count
from variegate.video.evaluation import THRESHOLD, frame_distances

__all__ = ["kmeans_keyframes", "random_keyframes", "uniform_keyframes", "vsumm"]

#: A cluster is key if it has at least this share of the mean number of frames.
_KEY_SHARE = 0.5


def uniform_keyframes(n_frames: int, k: int) -> IntArray:
    """Return the middles of ``k`` equal parts of the video."""
    check_count("k", k)
    middles = (np.arange(min(k, n_frames)) + 0.5) * n_frames / min(k, n_frames)
    return np.unique(middles.astype(np.intp))


def random_keyframes(n_frames: int, k: int, generator: np.random.Generator) -> IntArray:
    """Return ``k`` frames drawn without replacement."""
    check_count("k", k)
    chosen = generator.choice(n_frames, size=min(k, n_frames), replace=False)
    return np.sort(chosen).astype(np.intp)


def kmeans_keyframes(histograms: Any, k: int, random_state: int = 0) -> IntArray:
    """Return the frame nearest to the centre of each of ``k`` clusters."""
    check_count("k", k)
    features = np.asarray(histograms, dtype=np.float64)
    labels, centres = _clusters(features, k, random_state)
    return _nearest(features, labels, centres)


def vsumm(
    histograms: Any, key_clusters: bool = False, random_state: int = 0
) -> IntArray:
    """Return the key frames of VSUMM1, or of VSUMM2 with ``key_clusters``.

    Avila et al., 2011: as many clusters as there are changes of more than the threshold
    between neighbouring frames, and one; the frame nearest to the centre of each, or of
    those with at least half of the mean number of frames; of frames that are alike only
    the first.
    """
    features = np.asarray(histograms, dtype=np.float64)
    changes = np.abs(np.diff(features, axis=0)).sum(axis=1) > THRESHOLD
    labels, centres = _clusters(features, 1 + int(changes.sum()), random_state)
    if key_clusters:
        sizes = np.bincount(labels, minlength=len(centres))
        key = sizes >= _KEY_SHARE * sizes[sizes > 0].mean()
        labels = np.where(key[labels], labels, -1)
    return _without_repeats(features, _nearest(features, labels, centres))


def _clusters(
    features: FloatArray, k: int, random_state: int
) -> tuple[IntArray, FloatArray]:
    from sklearn.cluster import KMeans
    from sklearn.exceptions import ConvergenceWarning

    # Frames that are equal leave clusters empty, which is no fault.
    k = min(k, len(np.unique(features, axis=0)))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        fitted = KMeans(k, n_init=4, random_state=random_state).fit(features)
    return fitted.labels_.astype(np.intp), fitted.cluster_centers_


def _nearest(features: FloatArray, labels: IntArray, centres: FloatArray) -> IntArray:
    chosen = []
    for cluster, centre in enumerate(centres):
        members = np.flatnonzero(labels == cluster)
        if len(members):
            distance = ((features[members] - centre) ** 2).sum(axis=1)
            chosen.append(int(members[np.argmin(distance)]))
    return np.sort(np.array(chosen, dtype=np.intp))


def _without_repeats(features: FloatArray, chosen: IntArray) -> IntArray:
    kept: list[int] = []
    for frame in chosen.tolist():
        if (
            not kept
            or (frame_distances(features[[frame]], features[kept]) >= THRESHOLD).all()
        ):
            kept.append(frame)
    return np.array(kept, dtype=np.intp)

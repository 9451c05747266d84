"""Decoding against others: greedy, exact, and all decoders side by side."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from benchmarks.timing import Row, measure_time, optional, row
from variegate._typing import FloatArray
from variegate.decoding import DECODERS, all_subsets
from variegate.ensemble import LEnsemble


def measure(quick: bool = False) -> list[Row]:
    """Compare greedy and exact decoding with others, and all decoders."""
    rows = _greedy(5_000 if quick else 50_000, 3 if quick else 5)
    rows += _exact(10 if quick else 15, 3)
    return rows + _side_by_side(30 if quick else 60)


def _greedy(n_items: int, repeats: int, columns: int = 128, k: int = 50) -> list[Row]:
    pyversity = optional("pyversity")
    rng = np.random.default_rng(0)
    F = rng.standard_normal((n_items, columns))
    F /= np.linalg.norm(F, axis=1, keepdims=True)
    single = F.astype(np.float32)  # what embeddings come in
    rows = []
    for deviation in (0.0, 1.0):
        log_quality = deviation * rng.standard_normal(n_items)
        B = (np.exp(log_quality)[:, None] * F).astype(np.float32)

        theirs = None
        if pyversity is not None:
            diversify = partial(
                pyversity.diversify,
                single,
                log_quality,
                k,
                strategy=pyversity.Strategy.DPP,
                diversity=0.5,
            )
            theirs = measure_time(diversify, repeats)
        case = f"greedy, k={k}, log-quality of deviation {deviation:g}"
        mine = measure_time(partial(_choose, B, k), repeats)
        rows.append(row(case, mine, "pyversity", theirs, n_items))
    return rows


def _choose(B: Any, k: int) -> None:
    LEnsemble.from_factor(B).decode("greedy", k=k)


def typical_kernel(n_items: int, seed: int = 0) -> FloatArray:
    """Return a Gaussian similarity times qualities."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n_items, 5))
    q = np.exp(0.5 * rng.standard_normal(n_items) + 1.0)
    squared = ((X[:, None] - X) ** 2).sum(axis=2)
    return np.asarray(q[:, None] * np.exp(-squared / 16.0) * q)


def _exact(n_items: int, repeats: int) -> list[Row]:
    L = typical_kernel(n_items)
    masks = all_subsets(n_items)

    def brute_force() -> None:
        # One batch of determinants, subsets embedded in an identity.
        both = masks[:, :, None] & masks[:, None, :]
        padding = ~masks[:, :, None] * np.eye(n_items)
        np.linalg.slogdet(np.where(both, L, padding))

    mine = measure_time(lambda: LEnsemble(L).decode("exact"), repeats)
    theirs = measure_time(brute_force, repeats)
    return [row("exact", mine, "batched brute force", theirs, n_items)]


def _side_by_side(n_items: int) -> list[Row]:
    ensemble = LEnsemble(typical_kernel(n_items))
    rows = []
    for name in DECODERS:
        chosen = ensemble.decode(name, random_state=0)
        timing = measure_time(partial(ensemble.decode, name, random_state=0), 3)
        entry = row(f"decoder {name}", timing, "", None, n_items)
        gap = chosen.gap if np.isfinite(chosen.gap) else None
        rows.append(entry | {"log_prob": chosen.log_prob, "gap": gap})
    return rows

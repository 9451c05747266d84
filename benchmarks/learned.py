"""Kernels whose features are learned: one evaluation, against what it is made of.

* ``Kinds`` and ``Metric`` for a stack of small ground sets, against their formulas and
  the paper's appendix in NumPy, set by set; and against the loss alone, which has the
  similarity given and leaves its gradient there.
* For one ground set, against LAPACK's floor.
* ``Kinds`` for a million items, by as many columns as there are kinds, against the two
  products of features and kinds that a value and a gradient cannot do without.
"""

from __future__ import annotations

import json
import time
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from scipy.special import softmax
from threadpoolctl import threadpool_limits

from benchmarks.competitors import (
    FLOOR,
    Floor,
    appendix_loss,
    check_agreement,
)
from benchmarks.instances import Evaluation
from benchmarks.timing import (
    Effort,
    Row,
    Timing,
    compared,
    output_of,
    resident,
    take_turns,
)
from variegate._typing import FloatArray, IntArray
from variegate.ground_set import GroundSet
from variegate.kernels import Kinds, Metric
from variegate.learning.examples import check_examples
from variegate.learning.objective import LargeMarginLoss, Targets
from variegate.learning.problem import TrainingProblem

_N_FEATURES = 64
_RANK = 16
_JITTER = 1e-6


@dataclass(frozen=True, eq=False)
class LearnedInstance:
    """Ground sets of equal size with wanted subsets, and a point to evaluate at."""

    ground_sets: list[GroundSet]
    subsets: list[IntArray]
    kernel: Kinds | Metric
    problem: TrainingProblem
    point: FloatArray
    set_up: float

    @classmethod
    def of(
        cls, n_sets: int, n_items: int, kernel: Kinds | Metric, log_quality: float = 0.0
    ) -> LearnedInstance:
        """Return random ground sets, the kernel fitted, parameters near the start."""
        rng = np.random.default_rng(0)
        shape = (n_items, _N_FEATURES)
        ground_sets = [
            GroundSet(rng.standard_normal((n_items, 5)), rng.standard_normal(shape))
            for _ in range(n_sets)
        ]
        size = max(2, n_items // 5) if n_items < 100 else 10
        subsets = [
            np.sort(rng.choice(n_items, size, replace=False)) for _ in range(n_sets)
        ]
        start = time.perf_counter()
        kernel.fit(ground_sets)
        problem = TrainingProblem(
            check_examples(ground_sets, subsets, 1.0),
            kernel,
            LargeMarginLoss(1.0),
            jitter=_JITTER,
        )
        set_up = time.perf_counter() - start
        parts = {
            "theta": 0.1 * rng.standard_normal(5),
            "intercept": np.array([log_quality]),
            "kernel": 0.1 * rng.standard_normal(kernel.domain.size),
        }
        point = problem.space.pack(parts)
        return cls(ground_sets, subsets, kernel, problem, point, set_up)

    @property
    def parts(self) -> dict[str, FloatArray]:
        """The point, by the names of its parts."""
        return self.problem.space.unpack(self.point)

    @property
    def evaluation(self) -> Evaluation:
        """The evaluation at the point."""
        return partial(self.problem.value_and_gradient, self.point)

    def log_qualities(self) -> FloatArray:
        """Return ``u`` of all ground sets."""
        X = (
            np.stack([gs.quality for gs in self.ground_sets])
            - self.problem.coordinates.center
        )
        return np.asarray(X @ self.parts["theta"] + self.parts["intercept"])


# Competitors ----------------------------------------------------------------------


def set_by_set(instance: LearnedInstance) -> Evaluation:
    """Return formulas as they are documented, ground set after ground set."""
    kernel, own = instance.kernel, instance.parts["kernel"]
    similarity: Any = _kinds if isinstance(kernel, Kinds) else _metric
    items = [kernel.prepare(ground_set) for ground_set in instance.ground_sets]
    qualities = [
        gs.quality - instance.problem.coordinates.center for gs in instance.ground_sets
    ]
    theta, intercept = instance.parts["theta"], instance.parts["intercept"]

    def evaluate() -> tuple[float, FloatArray]:
        total, gradient = 0.0, np.zeros(len(instance.point))
        for X, x, y in zip(qualities, items, instance.subsets, strict=True):
            S, pull_back = similarity(kernel, x, own)
            jitter = np.diag(_JITTER * np.diagonal(S))
            q = np.exp(X @ theta + intercept)
            value, G, L = appendix_loss(S + jitter, q, y)
            total += value
            d_u = 2.0 * (G * L).sum(axis=1)
            d_S = q[:, None] * G * q
            d_S += np.diag(_JITTER * np.diagonal(d_S))
            gradient += np.concatenate([X.T @ d_u, [d_u.sum()], pull_back(d_S)])
        gradient /= len(items)
        gradient[-len(own) :] += kernel.penalty * own
        penalty = 0.5 * kernel.penalty * float(own @ own)
        return total / len(items) + penalty, gradient

    return evaluate


def _kinds(kernel: Kinds, x: FloatArray, own: FloatArray) -> Any:
    W, b = kernel.weights(own)
    epsilon = kernel.learned_epsilon(own)
    p = softmax(x @ W.T + b, axis=1)
    roots = np.sqrt(p)
    alike = roots @ roots.T

    def pull_back(d_S: FloatArray) -> FloatArray:
        d_roots = 2.0 * (1.0 - epsilon) * d_S @ roots
        d_log = 0.5 * d_roots * roots
        d_logits = d_log - p * d_log.sum(axis=1, keepdims=True)
        d_epsilon = float(np.trace(d_S) - (d_S * alike).sum())
        d_odds = epsilon * (1.0 - epsilon) * d_epsilon
        return np.concatenate(
            [(d_logits.T @ x).ravel(), d_logits.sum(axis=0), [d_odds]]
        )

    return (1.0 - epsilon) * alike + epsilon * np.eye(len(x)), pull_back


def _metric(kernel: Metric, x: FloatArray, own: FloatArray) -> Any:
    z = x @ kernel.weights(own).T
    apart = z[:, None] - z
    S = np.exp(-0.5 * (apart**2).sum(axis=-1))

    def pull_back(d_S: FloatArray) -> FloatArray:
        d_z = -2.0 * ((d_S * S)[..., None] * apart).sum(axis=1)
        return np.asarray(d_z.T @ x).ravel()

    return S, pull_back


def loss_alone(instance: LearnedInstance) -> Any:
    """Return the loss of similarities that are there, and its gradient in them."""
    kernel, own = instance.kernel, instance.parts["kernel"]
    prepared = [kernel.prepare(ground_set) for ground_set in instance.ground_sets]
    S = kernel.value(kernel.stack(prepared), own)
    S[..., np.arange(S.shape[-1]), np.arange(S.shape[-1])] *= 1.0 + _JITTER
    costs = np.ones(S.shape[:-1])
    targets = Targets.from_subsets(instance.subsets, S.shape[-1], costs, costs)
    u, G = instance.log_qualities(), np.empty_like(S)
    return lambda: LargeMarginLoss(1.0).value_and_gradient(S, u, targets, out=G)


# Rows -----------------------------------------------------------------------------


def learned_rows(stack: tuple[int, int], n_items: int, effort: Effort) -> list[Row]:
    """Compare a stack of small ground sets, and one of ``n_items``."""
    rows = []
    for kernel, name in ((Kinds(_RANK), "Kinds"), (Metric(_RANK), "Metric")):
        small = LearnedInstance.of(*stack, kernel)
        ours, loop = small.evaluation, set_by_set(small)
        check_agreement(ours, loop, "the loop in NumPy")
        of_ours, of_loop, alone = take_turns([ours, loop, loss_alone(small)], effort)
        case = f"{name}, {stack[0]} sets of {stack[1]}"
        size = stack[0] * stack[1]
        extra: dict[str, Any] = {"n_sets": stack[0], "set_up_s": small.set_up}
        times = [of_ours, of_loop]
        text = "formulas in NumPy"
        rows.append(compared("learned features", case, times, text, size, **extra))
        multiple = of_ours.median / alone.median
        times = [of_ours, alone]
        text = f"the loss alone ({multiple:.1f}×)"
        extra = extra | {"multiple": multiple}
        rows.append(compared("learned features", case, times, text, size, **extra))
        large = LearnedInstance.of(1, n_items, kernel, log_quality=-2.0)
        times = take_turns([large.evaluation, Floor(n_items)], effort)
        multiple = times[0].median / times[1].median
        text = f"{FLOOR} ({multiple:.1f}×)"
        extra = {"multiple": multiple, "set_up_s": large.set_up}
        entry = compared("learned features", name, times, text, n_items, **extra)
        rows.append(entry)
    return rows


def large_rows(n_items: int) -> list[Row]:
    """Measure ``Kinds`` for one large ground set, in a process of its own."""
    code = f"from {__name__} import report_large; print(report_large({n_items}))"
    found = json.loads(output_of(code))
    times = [Timing(*timing) for timing in found.pop("times")]
    multiple = times[0].median / times[1].median
    memory = found["process_mib"]
    known = "memory unknown" if memory is None else f"{memory / 1024:.1f} GiB in all"
    return [
        compared(
            "learned features",
            f"Kinds by {_RANK} columns, {known}",
            times,
            f"two products ({multiple:.1f}×)",
            n_items,
            multiple=multiple,
            **found,
        )
    ]


def report_large(n_items: int) -> str:
    """Return, as JSON, times and the most memory that the process ever had."""
    with threadpool_limits(limits=1):
        # About as many items as are wanted: Σ L_ii = N e^{2b} = 100.
        log_quality = 0.5 * float(np.log(100.0 / n_items))
        instance = LearnedInstance.of(1, n_items, Kinds(_RANK), log_quality)
        ours = instance.evaluation
        value, gradient = ours()
        assert value > 0.0
        assert gradient.any()
        memory = resident("VmHWM")
        X = instance.ground_sets[0].features()
        W = instance.kernel.weights(instance.parts["kernel"])[0]
        times = take_turns([ours, lambda: (X @ W.T).T @ X], Effort(1, 0.0))
    found = {"times": times, "set_up_s": instance.set_up, "process_mib": memory}
    return json.dumps(found)

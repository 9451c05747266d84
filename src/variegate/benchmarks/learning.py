"""Learning: one evaluation of objective and gradient, against three yardsticks.

* One ground set against LAPACK's floor: ``potrf`` and ``potri`` of a matrix of its
  size, which is what the log-determinant and the inverse cost by themselves.
* The same loss differentiated by PyTorch, from base kernels computed beforehand.
* Many small ground sets against the paper's appendix, a loop in NumPy.

Competitors take turns, so that a machine that slows down slows all of them; each must
return our value and gradient to 1e-8 before its time counts.  Beside the fields of
every benchmark a row has ``question`` and ``least_ratio``, the ratio of the smallest
times: on a busy machine medians favour whoever is done before being interrupted, and
where the two ratios differ the machine was busy.  Where it makes sense a row has
``growth`` and ``competitor_growth`` (the exponent ``e`` of ``time ~ n_items^e`` over
all sizes), ``multiple`` (our time in floors) and ``set_up_s`` (building the problem,
once), and where something could not be measured ``skipped``, the reason.
"""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from inspect import signature
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from scipy.linalg import lapack
from scipy.spatial.distance import pdist, squareform
from threadpoolctl import threadpool_limits

from variegate._typing import FloatArray, IntArray
from variegate.benchmarks.timing import Row, optional, row
from variegate.ground_set import GroundSet
from variegate.kernels import Gaussian, Kernel, MultipleKernel
from variegate.learning.objective import LargeMarginLoss
from variegate.learning.problem import TrainingProblem

_FLOOR = "potrf + potri"
_JITTER = 1e-6
_TOLERANCE = 1e-8
_MANY_ITEMS = 10
_FINE_LADDER = tuple(2.0 ** np.arange(-6.0, 7.0))
_COARSE_LADDER = (0.5, 1.0, 2.0)

Evaluation = Callable[[], tuple[float, FloatArray]]


class Timing(NamedTuple):
    """Seconds: the median, the largest less the smallest, and the smallest."""

    median: float
    spread: float
    least: float


#: Calls on end in a turn.
_CALLS = 4


class Effort(NamedTuple):
    """Rounds that are always measured, and seconds to fill with further ones."""

    rounds: int
    seconds: float


def measure(quick: bool = False) -> list[Row]:
    """Measure one ground set of several sizes, many small ones, and memory."""
    # Here as well as in the command: only a library that is loaded can be limited.
    with threadpool_limits(limits=1):
        return _measure(quick)


def _measure(quick: bool) -> list[Row]:
    if quick:
        effort = Effort(2, 0.05)
        rows = floor_rows((50, 100), effort) + autograd_rows((50,), effort)
        rows += many_rows((10, 100), effort) + low_rank_rows(100, (4, 8), effort)
        return rows + memory_rows(100)
    effort = Effort(5, 4.0)
    rows = floor_rows((100, 250, 500, 1000, 2000), effort)
    rows += autograd_rows((250, 1000), effort)
    rows += many_rows((10, 100, 1000, 10_000), effort)
    rows += low_rank_rows(2000, (32, 64, 128, 256), effort)
    return rows + memory_rows(2000)


# Instances


@dataclass(frozen=True, eq=False)
class Instance:
    """Ground sets with wanted subsets, a kernel, and a point to evaluate at.

    ``bandwidths`` and ``linear`` say what the kernel is to those who compute it
    themselves; ``weights`` is empty where it is fixed.
    """

    ground_sets: list[GroundSet]
    subsets: list[IntArray]
    bandwidths: list[float]
    linear: bool
    theta: FloatArray
    intercept: float
    weights: FloatArray

    @property
    def point(self) -> FloatArray:
        """The point as the vector that a problem takes."""
        return np.concatenate([self.theta, [self.intercept], self.weights])

    def kernel(self) -> Kernel:
        """Return the kernel of the library."""
        if not len(self.weights):
            return Gaussian(self.bandwidths[0])
        return MultipleKernel(bandwidths=self.bandwidths, linear=self.linear)

    def problem(self, kernel: Kernel | None = None, **options: Any) -> TrainingProblem:
        """Return the problem, the paper's costs at ω = 1 and λ = 1."""
        ones = [1.0] * len(self.ground_sets)
        return TrainingProblem(
            self.ground_sets,
            self.subsets,
            self.kernel() if kernel is None else kernel,
            LargeMarginLoss(1.0),
            false_positive=ones,
            false_negative=ones,
            jitter=_JITTER,
            **options,
        )

    def centred_qualities(self) -> list[FloatArray]:
        """Return ``X`` of every ground set less the mean over all items."""
        center = np.concatenate([gs.quality for gs in self.ground_sets]).mean(axis=0)
        return [gs.quality - center for gs in self.ground_sets]

    def base_kernels(self) -> list[FloatArray]:
        """Return ``(K, N, N)`` of every ground set, jitter and all."""
        return [self._base_kernels(gs) for gs in self.ground_sets]

    def _base_kernels(self, ground_set: GroundSet) -> FloatArray:
        features = ground_set.features()
        distances = squareform(pdist(features, "sqeuclidean"))
        matrices = [np.exp(-distances / sigma**2) for sigma in self.bandwidths]
        if self.linear:
            matrices.append(features @ features.T)
        bases = np.stack(matrices)
        items = np.arange(len(features))
        bases[:, items, items] *= 1.0 + _JITTER
        return bases


def make_instance(
    n_sets: int, n_items: int, sizes: tuple[int, int], ladder: Sequence[float] | None
) -> Instance:
    """Return random ground sets with 20 similarity and 5 quality features.

    Parameters
    ----------
    sizes : the smallest and the largest wanted subset
    ladder : sequence of float or None
        Bandwidths as multiples of the median distance, beside a linear part, with
        weights to learn; None is one Gaussian at that distance.
    """
    rng = np.random.default_rng(0)
    ground_sets = [
        GroundSet(
            rng.standard_normal((n_items, 5)),
            rng.standard_normal((n_items, 20)) / np.sqrt(20.0),
        )
        for _ in range(n_sets)
    ]
    drawn = rng.integers(sizes[0], sizes[1] + 1, n_sets)
    subsets = [np.sort(rng.permutation(n_items)[:size]) for size in drawn]
    median = float(np.median(pdist(ground_sets[0].features())))
    weights = rng.uniform(0.5, 1.5, 0 if ladder is None else len(ladder) + 1)
    return Instance(
        ground_sets,
        subsets,
        [median * factor for factor in ((1.0,) if ladder is None else ladder)],
        ladder is not None,
        0.3 * rng.standard_normal(5),
        -1.0,
        weights / weights.sum(),
    )


def one_large(n_items: int, learned: bool) -> Instance:
    """Return one ground set; 13 Gaussians and a linear part if ``learned``."""
    size = max(1, n_items // 20)
    return make_instance(1, n_items, (size, size), _FINE_LADDER if learned else None)


def many_small(n_sets: int, learned: bool) -> Instance:
    """Return ground sets of ten; 3 Gaussians and a linear part if ``learned``."""
    return make_instance(
        n_sets, _MANY_ITEMS, (2, 4), _COARSE_LADDER if learned else None
    )


# Competitors


def appendix(instance: Instance) -> Evaluation:
    """Return the paper's eq. 14 and appendix B, ground set after ground set."""
    qualities = instance.centred_qualities()
    bases = instance.base_kernels()
    learned = len(instance.weights) > 0
    weights = instance.weights if learned else np.ones(1)

    def evaluate() -> tuple[float, FloatArray]:
        total, d_theta, d_intercept = 0.0, np.zeros_like(instance.theta), 0.0
        d_weights = np.zeros_like(weights)
        for X, S_k, y in zip(qualities, bases, instance.subsets, strict=True):
            S = np.tensordot(weights, S_k, axes=1) if learned else S_k[0]
            q = np.exp(X @ instance.theta + instance.intercept)
            value, G, L = appendix_loss(S, q, y)
            total += value
            d_u = 2.0 * (G * L).sum(axis=1)
            d_theta += X.T @ d_u
            d_intercept += d_u.sum()
            if learned:
                d_S = q[:, None] * G * q
                d_weights += [np.sum(d_S * matrix) for matrix in S_k]
        gradient = np.append(d_theta, d_intercept)
        gradient = np.append(gradient, d_weights) if learned else gradient
        return total / len(bases), gradient / len(bases)

    return evaluate


def appendix_loss(
    S: FloatArray, q: FloatArray, y: IntArray
) -> tuple[float, FloatArray, FloatArray]:
    """Return value, ``∂f/∂L`` and ``L`` of one ground set, at ω = 1 and λ = 1."""
    identity = np.eye(len(S))
    L = q[:, None] * S * q
    A_inverse = np.linalg.inv(L + identity)
    K = identity - A_inverse
    L_y = L[np.ix_(y, y)]
    log_prob = np.linalg.slogdet(L_y)[1] - np.linalg.slogdet(L + identity)[1]
    W = np.ones(len(S))
    W[y] = -1.0
    margin = (W * np.diag(K)).sum() + len(y)
    value = float(-log_prob + np.log(margin))
    if value <= 0.0:
        return 0.0, np.zeros_like(L), L
    G = A_inverse + A_inverse @ np.diag(W) @ A_inverse / margin
    G[np.ix_(y, y)] -= np.linalg.inv(L_y)
    return value, G, L


def autograd(torch: Any, instance: Instance) -> Evaluation:
    """Return the loss of one ground set as written for PyTorch.

    Of the ways to get the diagonal of ``(L + I)⁻¹`` that PyTorch differentiates, the
    inverse of the Cholesky factor is the fastest (against ``linalg.inv``,
    ``cholesky_inverse`` and ``cholesky_solve``).
    """
    X = torch.from_numpy(instance.centred_qualities()[0])
    bases = torch.from_numpy(instance.base_kernels()[0])
    n_items = len(X)
    identity = torch.eye(n_items, dtype=torch.float64)
    y = torch.from_numpy(instance.subsets[0])
    wanted = torch.zeros(n_items, dtype=torch.bool)
    wanted[y] = True
    learned = len(instance.weights) > 0
    parts = [instance.theta, np.array([instance.intercept])]
    parts += [instance.weights] if learned else []

    def evaluate() -> tuple[float, FloatArray]:
        leaves = [torch.tensor(part, requires_grad=True) for part in parts]
        q = torch.exp(X @ leaves[0] + leaves[1])
        flat = bases.view(len(bases), -1)
        S = (leaves[2] @ flat).view(n_items, n_items) if learned else bases[0]
        L = q[:, None] * S * q
        factor = torch.linalg.cholesky(L + identity)
        log_det = 2.0 * factor.diagonal().log().sum()
        inverse = torch.linalg.solve_triangular(factor, identity, upper=False)
        K_diagonal = 1.0 - (inverse**2).sum(dim=0)
        margin = torch.where(wanted, 1.0 - K_diagonal, K_diagonal).sum()
        log_prob = torch.linalg.slogdet(L[y][:, y])[1] - log_det
        value = torch.relu(-log_prob + torch.log(margin))
        value.backward()
        gradient = np.concatenate([leaf.grad.numpy() for leaf in leaves])
        return float(value.detach()), gradient

    return evaluate


class Floor:
    """``potrf`` and ``potri`` in place, on a copy that is made beforehand."""

    def __init__(self, n_items: int) -> None:
        B = np.random.default_rng(0).standard_normal((n_items, n_items))
        self.matrix = np.asfortranarray(B @ B.T / n_items + np.eye(n_items))

    def prepare(self) -> FloatArray:
        """Return the copy that is overwritten."""
        return self.matrix.copy(order="F")

    def __call__(self, matrix: FloatArray) -> FloatArray:
        """Return the lower half of the inverse."""
        factor, failed = lapack.dpotrf(matrix, lower=1, clean=0, overwrite_a=1)
        inverse, failed_too = lapack.dpotri(factor, lower=1, overwrite_c=1)
        assert not failed
        assert not failed_too
        return np.asarray(inverse)


# Measuring


def take_turns(functions: Sequence[Evaluation | Floor], effort: Effort) -> list[Timing]:
    """Time all functions in turns, a few calls on end as a solver makes them."""
    times: list[list[float]] = [[] for _ in functions]
    begin = time.perf_counter()
    for turn in range(1000):
        spent = time.perf_counter() - begin
        if turn > effort.rounds and spent > effort.seconds:
            break
        for function, measured in zip(functions, times, strict=True):
            in_turn = []
            for _ in range(_CALLS):
                arguments = (function.prepare(),) if isinstance(function, Floor) else ()
                start = time.perf_counter()
                function(*arguments)
                in_turn.append(time.perf_counter() - start)
            # The first call finds the caches full of what another left there.
            measured += in_turn[1:]
    # The first turn warms up.
    return [_timing(measured[_CALLS - 1 :]) for measured in times]


def _timing(times: list[float]) -> Timing:
    return Timing(float(np.median(times)), float(np.ptp(times)), min(times))


def _row(
    case: str, ours: Timing, competitor: str, theirs: Timing | None, n_items: int
) -> Row:
    entry = row(
        case, ours[:2], competitor, None if theirs is None else theirs[:2], n_items
    )
    ratio = None if theirs is None else theirs.least / ours.least
    return entry | {"variegate_least_s": ours.least, "least_ratio": ratio}


def check_agreement(ours: Evaluation, theirs: Evaluation, name: str) -> None:
    """Refuse to time a competitor that computes something else."""
    (value, gradient), (their_value, their_gradient) = ours(), theirs()
    here, there = np.append(gradient, value), np.append(their_gradient, their_value)
    scale = np.append(np.full_like(gradient, np.abs(gradient).max()), abs(value))
    apart = float(np.max(np.abs(here - there) / np.maximum(1.0, scale)))
    if not apart <= _TOLERANCE:
        raise RuntimeError(
            f"{name} and variegate differ by {apart:.2g}: nothing to compare"
        )


def _built(
    instance: Instance, kernel: Kernel | None = None, **options: Any
) -> tuple[Evaluation, float]:
    """Return the evaluation at the point, and the seconds to get ready for it."""
    start = time.perf_counter()
    problem = instance.problem(kernel, **options)
    seconds = time.perf_counter() - start
    point = instance.point
    return lambda: problem.value_and_gradient(point), seconds


def with_growth(rows: list[Row]) -> list[Row]:
    """Add to the rows of one case how time grows with the number of items."""
    growth = {
        "growth": _exponent((row["n_items"], row["variegate_s"]) for row in rows),
        "competitor_growth": _exponent(
            (row["n_items"], row["competitor_s"]) for row in rows
        ),
    }
    case = f"{rows[0]['case']}, ~n^{growth['growth']:.2f}"
    return [row | growth | {"case": case} for row in rows]


def _exponent(pairs: Iterable[tuple[int, float]]) -> float:
    sizes, times = np.log(np.array(list(pairs))).T
    return float(np.polyfit(sizes, times, 1)[0])


# Questions


def floor_rows(sizes: Sequence[int], effort: Effort) -> list[Row]:
    """Compare one ground set with a factorisation and inverse of its size."""
    rows: list[Row] = []
    for learned, case in (
        (True, "13 Gaussians + linear"),
        (False, "fixed Gaussian"),
    ):
        measured = []
        for n_items in sizes:
            ours, set_up = _built(one_large(n_items, learned))
            timing, floor = take_turns([ours, Floor(n_items)], effort)
            multiple = timing.median / floor.median
            competitor = f"{_FLOOR} ({multiple:.1f}× at {n_items})"
            entry = _row(case, timing, competitor, floor, n_items)
            extra = {"question": "floor", "multiple": multiple, "set_up_s": set_up}
            measured.append(entry | extra)
        rows += with_growth(measured)
    return rows


def autograd_rows(sizes: Sequence[int], effort: Effort) -> list[Row]:
    """Compare one ground set with PyTorch, float64 on one thread."""
    torch = optional("torch")
    rows = []
    for learned, case in (
        (True, "13 Gaussians + linear, autograd"),
        (False, "fixed Gaussian, autograd"),
    ):
        for n_items in sizes:
            instance = one_large(n_items, learned)
            ours, set_up = _built(instance)
            if torch is None:
                (timing,), theirs = take_turns([ours], effort), None
                extra = {"skipped": "torch is not installed: pip install torch"}
            else:
                timing, theirs = _against_torch(torch, instance, ours, effort)
                extra = {"version": torch.__version__}
            entry = _row(case, timing, "PyTorch", theirs, n_items)
            rows.append(entry | {"question": "autograd", "set_up_s": set_up} | extra)
    return rows


def _against_torch(
    torch: Any, instance: Instance, ours: Evaluation, effort: Effort
) -> list[Timing]:
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        theirs = autograd(torch, instance)
        check_agreement(ours, theirs, "PyTorch")
        return take_turns([ours, theirs], effort)
    finally:
        torch.set_num_threads(threads)


def many_rows(counts: Sequence[int], effort: Effort) -> list[Row]:
    """Compare many ground sets of ten with the appendix's loop, then with two jobs."""
    rows: list[Row] = []
    for learned, case in (
        (True, "sets of 10, 3 Gaussians + linear"),
        (False, "sets of 10, fixed Gaussian"),
    ):
        measured = []
        for n_sets in counts:
            instance = many_small(n_sets, learned)
            ours, set_up = _built(instance)
            theirs = appendix(instance)
            check_agreement(ours, theirs, "the appendix's loop")
            timing, loop = take_turns([ours, theirs], effort)
            entry = _row(case, timing, "appendix in NumPy", loop, n_sets * _MANY_ITEMS)
            extra = {"question": "sets", "n_sets": n_sets, "set_up_s": set_up}
            measured.append(entry | extra)
        rows += with_growth(measured)
        rows.append(_two_jobs(case, instance, effort))
    return rows


def _two_jobs(case: str, instance: Instance, effort: Effort) -> Row:
    ours, set_up = _built(instance)
    both: Timing | None = None
    extra: dict[str, Any] = {"question": "jobs", "n_sets": len(instance.subsets)}
    if "n_jobs" in signature(TrainingProblem).parameters:
        together, _ = _built(instance, n_jobs=2)
        check_agreement(ours, together, "n_jobs=2")
        timing, both = take_turns([ours, together], effort)
    else:
        (timing,) = take_turns([ours], effort)
        extra["skipped"] = "TrainingProblem has no parameter n_jobs"
    n_items = _MANY_ITEMS * len(instance.subsets)
    entry = _row(f"{case}, two jobs", timing, "n_jobs=2", both, n_items)
    return entry | extra | {"set_up_s": set_up}


def low_rank_rows(n_items: int, ranks: Sequence[int], effort: Effort) -> list[Row]:
    """Compare random Fourier features with the exact evaluation.

    ``columns`` of a row is ``D``, the features of all Gaussians and of the linear
    part; ``growth`` is in it.
    """
    size = max(1, n_items // 20)
    instance = make_instance(1, n_items, (size, size), _COARSE_LADDER)
    exact, _ = _built(instance)
    if not {"approximation", "rank"} <= signature(MultipleKernel).parameters.keys():
        (timing,) = take_turns([exact], effort)
        entry = _row("low rank: exact instead", timing, "low rank", None, n_items)
        reason = "MultipleKernel has no parameters approximation and rank"
        return [entry | {"question": "low rank", "skipped": reason}]
    rows: list[Row] = []
    for rank in ranks:
        kernel = MultipleKernel(
            bandwidths=instance.bandwidths,
            linear=True,
            approximation="fourier",
            rank=rank,
        ).fit(instance.ground_sets)
        ours, set_up = _built(instance, kernel)
        timing, theirs = take_turns([ours, exact], effort)
        columns = (
            rank * len(_COARSE_LADDER) + instance.ground_sets[0].features().shape[1]
        )
        entry = _row(f"low rank, D = {columns}", timing, "exact", theirs, n_items)
        extra = {"question": "low rank", "columns": columns, "set_up_s": set_up}
        rows.append(entry | extra)
    growth = _exponent((entry["columns"], entry["variegate_s"]) for entry in rows)
    return [entry | {"growth": growth} for entry in rows]


def memory_rows(n_items: int) -> list[Row]:
    """Measure the resident memory of one evaluation, in a process of its own."""
    code = f"from {__name__} import report_memory; print(report_memory({n_items}))"
    command = [sys.executable, "-c", code]
    answer = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    found = json.loads(answer)
    timing, floor = found.pop("times")
    extra = {"question": "memory", **found}
    if found["peak_mib"] is None:
        case = "peak memory unknown"
    else:
        case = (
            f"memory: {found['held_mib']:.0f} MiB held, "
            f"{found['peak_mib']:.0f} MiB at the peak"
        )
    competitor = f"{_FLOOR} in {found['matrix_mib']:.0f} MiB"
    entry = _row(case, Timing(*timing), competitor, Timing(*floor), n_items)
    return [entry | extra]


def report_memory(n_items: int) -> str:
    """Return, as JSON, memory above that of a process that did the same on few items.

    ``held_mib`` is what the problem keeps, ``peak_mib`` the most there was during an
    evaluation, the problem included.
    """
    with threadpool_limits(limits=1):
        # Libraries loaded late and work space of the BLAS are no cost of the problem.
        _built(one_large(50, learned=True))[0]()
        instance = one_large(n_items, learned=True)
        before = _resident("VmRSS")
        ours, set_up = _built(instance)
        held = _resident("VmRSS")
        separate = _forget_peak()
        ours()
        peak = _resident("VmHWM")
        times = take_turns([ours, Floor(n_items)], Effort(1, 0.0))
    found: dict[str, Any] = {
        "times": times,
        "set_up_s": set_up,
        "matrix_mib": 8.0 * n_items**2 / 2.0**20,
        "held_mib": None,
        "peak_mib": None,
    }
    if before is None or held is None or peak is None:
        found["skipped"] = "resident memory is read from /proc, which is not here"
    else:
        found["held_mib"] = held - before
        found["peak_mib"] = peak - before
        found["peak_includes_set_up"] = not separate
    return json.dumps(found)


def _resident(field: str) -> float | None:
    """Return a field of /proc/self/status in MiB, or None where there is none."""
    status = Path("/proc/self/status")
    if not status.exists():
        return None
    for line in status.read_text().splitlines():
        if line.startswith(field):
            return int(line.split()[1]) / 1024.0
    return None


def _forget_peak() -> bool:
    """Start the peak of resident memory anew; return whether that is possible."""
    try:
        Path("/proc/self/clear_refs").write_text("5")
    except OSError:
        return False
    return True

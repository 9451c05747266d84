"""Learning: one evaluation of objective and gradient, against its yardsticks.

* One ground set against LAPACK's floor: ``potrf`` and ``potri`` of a matrix of its
  size, which is what the log-determinant and the inverse cost by themselves.
* The same loss differentiated by PyTorch, from base kernels computed beforehand.
* Many small ground sets against the paper's appendix, a loop in NumPy.
* Kernels with learned features: see :mod:`benchmarks.learned`.

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
from collections.abc import Sequence
from typing import Any

import numpy as np
from threadpoolctl import threadpool_limits

from benchmarks.competitors import (
    FLOOR,
    Floor,
    appendix,
    autograd,
    check_agreement,
)
from benchmarks.instances import (
    COARSE_LADDER,
    MANY_ITEMS,
    Evaluation,
    Instance,
    make_instance,
    many_small,
    one_large,
)
from benchmarks.learned import large_rows, learned_rows
from benchmarks.timing import (
    Effort,
    Row,
    Timing,
    compared,
    forget_peak,
    optional,
    output_of,
    resident,
    take_turns,
)
from variegate.kernels import MultipleKernel


def measure(quick: bool = False) -> list[Row]:
    """Measure one ground set of several sizes, many small ones, and memory."""
    # Here as well as in the command: only a library that is loaded can be limited.
    with threadpool_limits(limits=1):
        if quick:
            effort = Effort(2, 0.05)
            rows = floor_rows((50, 100), effort) + autograd_rows((50,), effort)
            rows += many_rows((10, 100), effort) + low_rank_rows(100, (4, 8), effort)
            rows += learned_rows((4, 8), 100, effort) + large_rows(2000)
            return rows + memory_rows(100)
        effort = Effort(5, 4.0)
        rows = floor_rows((100, 250, 500, 1000, 2000), effort)
        rows += autograd_rows((250, 1000), effort)
        rows += many_rows((10, 100, 1000, 10_000), effort)
        rows += low_rank_rows(2000, (32, 64, 128, 256), effort)
        rows += learned_rows((240, 24), 1000, effort) + large_rows(1_000_000)
        return rows + memory_rows(2000)


def with_growth(rows: list[Row]) -> list[Row]:
    """Add to the rows of one case how time grows with the number of items."""
    sizes = [row["n_items"] for row in rows]
    growth = _exponent(sizes, [row["variegate_s"] for row in rows])
    theirs = _exponent(sizes, [row["competitor_s"] for row in rows])
    found = {"growth": growth, "competitor_growth": theirs}
    case = f"{rows[0]['case']}, ~n^{growth:.2f}"
    return [row | found | {"case": case} for row in rows]


def _exponent(sizes: Sequence[int], times: Sequence[float]) -> float:
    return float(np.polyfit(np.log(sizes), np.log(times), 1)[0])


def floor_rows(sizes: Sequence[int], effort: Effort) -> list[Row]:
    """Compare one ground set with a factorisation and inverse of its size."""
    rows: list[Row] = []
    for learned, case in ((True, "13 Gaussians + linear"), (False, "fixed Gaussian")):
        measured = []
        for n_items in sizes:
            ours, set_up = one_large(n_items, learned).evaluation()
            times = take_turns([ours, Floor(n_items)], effort)
            multiple = times[0].median / times[1].median
            competitor = f"{FLOOR} ({multiple:.1f}× at {n_items})"
            extra = {"multiple": multiple, "set_up_s": set_up}
            entry = compared("floor", case, times, competitor, n_items, **extra)
            measured.append(entry)
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
            ours, set_up = instance.evaluation()
            times: list[Timing | None]
            extra: dict[str, Any] = {"set_up_s": set_up}
            if torch is None:
                times = [*take_turns([ours], effort), None]
                extra["skipped"] = "torch is not installed: pip install torch"
            else:
                times = [*_against_torch(torch, instance, ours, effort)]
                extra["version"] = torch.__version__
            rows.append(compared("autograd", case, times, "PyTorch", n_items, **extra))
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
            ours, set_up = instance.evaluation()
            extra = {"n_sets": n_sets, "set_up_s": set_up}
            n_items = n_sets * MANY_ITEMS
            loop = appendix(instance)
            check_agreement(ours, loop, "the appendix's loop")
            times = take_turns([ours, loop], effort)
            name = "appendix in NumPy"
            measured.append(compared("sets", case, times, name, n_items, **extra))
        together, _ = instance.evaluation(n_jobs=2)
        check_agreement(ours, together, "n_jobs=2")
        times = take_turns([ours, together], effort)
        last = compared(
            "jobs", f"{case}, two jobs", times, "n_jobs=2", n_items, **extra
        )
        rows += [*with_growth(measured), last]
    return rows


def low_rank_rows(n_items: int, ranks: Sequence[int], effort: Effort) -> list[Row]:
    """Compare random Fourier features with the exact evaluation.

    ``columns`` of a row is ``D``, the features of all Gaussians and of the linear
    part; ``growth`` is in it.
    """
    size = max(1, n_items // 20)
    instance = make_instance(1, n_items, (size, size), COARSE_LADDER)
    exact, _ = instance.evaluation()
    n_features = instance.ground_sets[0].features().shape[1]
    rows: list[Row] = []
    for rank in ranks:
        kernel = MultipleKernel(
            bandwidths=instance.bandwidths,
            linear=True,
            approximation="fourier",
            rank=rank,
        ).fit(instance.ground_sets)
        ours, set_up = instance.evaluation(kernel)
        times = take_turns([ours, exact], effort)
        columns = rank * len(COARSE_LADDER) + n_features
        case = f"low rank, D = {columns}"
        extra = {"columns": columns, "set_up_s": set_up}
        rows.append(compared("low rank", case, times, "exact", n_items, **extra))
    growth = _exponent(
        [row["columns"] for row in rows], [row["variegate_s"] for row in rows]
    )
    return [row | {"growth": growth} for row in rows]


def memory_rows(n_items: int) -> list[Row]:
    """Measure the resident memory of one evaluation, in a process of its own."""
    code = f"from {__name__} import report_memory; print(report_memory({n_items}))"
    found = json.loads(output_of(code))
    times = [Timing(*timing) for timing in found.pop("times")]
    case = "peak memory unknown"
    if found["peak_mib"] is not None:
        held, peak = found["held_mib"], found["peak_mib"]
        case = f"memory: {held:.0f} MiB held, {peak:.0f} MiB at the peak"
    competitor = f"{FLOOR} in {found['matrix_mib']:.0f} MiB"
    return [compared("memory", case, times, competitor, n_items, **found)]


def report_memory(n_items: int) -> str:
    """Return, as JSON, memory above that of a process that did the same on few items.

    ``held_mib`` is what the problem keeps, ``peak_mib`` the most there was during an
    evaluation, the problem included.
    """
    with threadpool_limits(limits=1):
        # Libraries loaded late and work space of the BLAS are no cost of the problem.
        one_large(50, learned=True).evaluation()[0]()
        instance = one_large(n_items, learned=True)
        before = resident("VmRSS")
        ours, set_up = instance.evaluation()
        held = resident("VmRSS")
        separate = forget_peak()
        ours()
        peak = resident("VmHWM")
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

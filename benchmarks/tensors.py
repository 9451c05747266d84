"""The loss on PyTorch's tensors: value and full gradient, in double precision.

Many sets of few items to one set of many, given by ``L``, on a GPU where there is one
and, of smaller sizes, on one thread of the CPU; then one set of very many items given
by features.  A tenth of the items are wanted, three at least.  Yardsticks:

* the floor, batched ``cholesky`` and ``cholesky_inverse``: what a log-determinant and
  an inverse cost by themselves;
* the same loss written with ``solve`` and ``slogdet`` and differentiated by autograd;
* the same with a Cholesky factor and triangular solves;
* our closed form by calls of PyTorch, where a fused kernel has taken its place;
* for features, the product ``FᵀF`` by itself.

Competitors take turns, and each must return our gradient to 1e-6 before its time
counts; a time ends when the device is done.  Beside the fields of every benchmark, a
row has ``n_sets``, ``device`` and, on a GPU, ``peak_mib`` and ``competitor_peak_mib``,
memory beside the input.  ``growth`` is in the number of items, of the time of a set.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial

import numpy as np
import torch
from torch import Tensor

import variegate.torch as vt
from benchmarks.timing import Effort, Row, compared, take_turns
from variegate.torch.dense import can_use_fused_kernel, plain_loss_terms
from variegate.torch.targets import LossSettings, Targets

__all__ = ["feature_rows", "loss_rows", "measure"]

_GPU_SIZES = (
    (100_000, 10),
    (20_000, 50),
    (4_000, 100),
    (256, 250),
    (16, 1_000),
    (4, 2_000),
    (1, 8_000),
    (1, 16_000),
)
_CPU_SIZES = ((2_000, 10), (200, 50), (50, 100), (8, 250), (1, 1_000))

Evaluation = Callable[[], Tensor]


def measure(quick: bool = False) -> list[Row]:
    """Measure on the CPU and, where there is one, on a GPU."""
    has_gpu = torch.cuda.is_available()
    if quick:
        rows = loss_rows("cpu", ((100, 10), (10, 40)), Effort(1, 0.05))
        return rows + feature_rows("cpu", (2_000, 4_000), 8, Effort(1, 0.05))
    rows = []
    if has_gpu:
        rows += loss_rows("cuda", _GPU_SIZES, Effort(2, 1.0))
        rows += feature_rows("cuda", (10**6, 10**7), 64, Effort(2, 0.5))
    rows += loss_rows("cpu", _CPU_SIZES, Effort(3, 2.0))
    return rows + feature_rows("cpu", (10_000, 100_000), 64, Effort(3, 2.0))


def loss_rows(
    device: str, sizes: Sequence[tuple[int, int]], effort: Effort
) -> list[Row]:
    """Compare the loss of sets given by ``L``, (number, items) of each size."""
    rows: list[Row] = []
    with _one_thread():
        for n_sets, n_items in sizes:
            rows += _loss_rows(device, n_sets, n_items, effort)
    return _with_growth(rows)


def _loss_rows(device: str, n_sets: int, n_items: int, effort: Effort) -> list[Row]:
    L, wanted = _instance(device, n_sets, n_items)
    competitors: dict[str, Evaluation] = {
        "floor": partial(_floor, L),
        "autograd, solve": partial(_by_solve, L, wanted),
        "autograd, Cholesky": partial(_by_cholesky, L, wanted),
    }
    if can_use_fused_kernel(L):
        competitors["closed form, no kernel"] = partial(_closed, L, wanted)
    ours: Evaluation = partial(_ours, L, wanted)
    gradient = ours()
    for name, theirs in competitors.items():
        if name != "floor":
            _check(gradient, theirs(), name)
    del gradient
    functions = [_Finished(each, device) for each in (ours, *competitors.values())]
    times = take_turns(functions, effort)
    peaks = [_peak(each, device) for each in functions]
    case = f"{device}, loss and gradient"
    return [
        compared(
            "loss",
            case,
            (times[0], theirs),
            name,
            n_items,
            n_sets=n_sets,
            device=device,
            peak_mib=peaks[0],
            competitor_peak_mib=peak,
        )
        for name, theirs, peak in zip(competitors, times[1:], peaks[1:], strict=True)
    ]


def feature_rows(
    device: str, sizes: Sequence[int], rank: int, effort: Effort
) -> list[Row]:
    """Compare the loss of one set given by features with one product of these."""
    rows = []
    with _one_thread():
        for n_items in sizes:
            generator = torch.Generator(device).manual_seed(0)
            normal = partial(torch.randn, generator=generator, device=device)
            F = normal(n_items, rank, dtype=torch.float64) / rank**0.5
            u = normal(n_items, dtype=torch.float64) / 2 - np.log(n_items) / 2
            wanted = torch.randperm(n_items, generator=generator, device=device)[:20]
            ours = partial(_by_features, F, u, wanted[None])
            functions = [_Finished(each, device) for each in (ours, partial(_gram, F))]
            times = take_turns(functions, effort)
            peaks = [_peak(each, device) for each in functions]
            rows.append(
                compared(
                    "features",
                    f"{device}, features of rank {rank}",
                    times,
                    "FᵀF alone",
                    n_items,
                    n_sets=1,
                    device=device,
                    peak_mib=peaks[0],
                    competitor_peak_mib=peaks[1],
                )
            )
    return _with_growth(rows)


def _with_growth(rows: list[Row]) -> list[Row]:
    """Add the exponent of time a set in the number of items, over all sizes."""
    if len({row["n_items"] for row in rows}) < 2:
        return rows
    sizes = np.log([row["n_items"] for row in rows])
    times = np.log([row["variegate_s"] / row["n_sets"] for row in rows])
    growth = float(np.polyfit(sizes, times, 1)[0])
    return [row | {"growth": growth} for row in rows]


# What is compared ------------------------------------------------------------------


def _instance(device: str, n_sets: int, n_items: int) -> tuple[Tensor, Tensor]:
    """Return random kernels (B, N, N) and the numbers of wanted items (B, k)."""
    generator = torch.Generator(device).manual_seed(n_items)
    shape = (n_sets, n_items, n_items + 8)
    F = torch.randn(shape, generator=generator, device=device, dtype=torch.float64)
    L = F @ F.mT / n_items
    order = torch.rand(n_sets, n_items, generator=generator, device=device)
    return L, order.argsort(dim=1)[:, : max(3, n_items // 10)].contiguous()


def _ours(L: Tensor, wanted: Tensor) -> Tensor:
    # On a GPU, flags of sets without a loss are not sent.
    loss = vt.LargeMarginLoss(reduction="sum", check=L.device.type == "cpu")
    return _gradient(L, lambda at: loss(vt.LEnsembles(at), wanted))


def _by_features(F: Tensor, u: Tensor, wanted: Tensor) -> Tensor:
    at, quality = F.detach().requires_grad_(), u.detach().requires_grad_()
    ensembles = vt.LEnsembles(vt.LowRank(at), log_quality=quality, jitter=1e-6)
    vt.LargeMarginLoss(check=F.device.type == "cpu")(ensembles, wanted).backward()
    return at.grad


def _gram(F: Tensor) -> Tensor:
    return F.mT @ F


def _closed(L: Tensor, wanted: Tensor) -> Tensor:
    targets = Targets(wanted, L.shape[-1])
    settings = LossSettings(1.0, True)
    return plain_loss_terms(L, None, targets, settings, gradient=True)[1]


def _floor(L: Tensor) -> Tensor:
    A = L.clone()
    A.diagonal(dim1=-2, dim2=-1).add_(1.0)
    return torch.cholesky_inverse(torch.linalg.cholesky_ex(A).L)


def _by_solve(L: Tensor, wanted: Tensor) -> Tensor:
    eye = torch.eye(L.shape[-1], device=L.device, dtype=L.dtype)

    def loss(at: Tensor) -> Tensor:
        K = torch.linalg.solve(at + eye, at).diagonal(dim1=-2, dim2=-1)
        log_det = torch.linalg.slogdet(at + eye)[1]
        of_target = torch.linalg.slogdet(_restricted(at, wanted))[1]
        return torch.relu(log_det - of_target + _margin(K, wanted)).sum()

    return _gradient(L, loss)


def _by_cholesky(L: Tensor, wanted: Tensor) -> Tensor:
    eye = torch.eye(L.shape[-1], device=L.device, dtype=L.dtype)

    def loss(at: Tensor) -> Tensor:
        factor = torch.linalg.cholesky_ex(at + eye).L
        inverse = torch.linalg.solve_triangular(factor, eye, upper=False)
        K = 1.0 - (inverse**2).sum(dim=-2)
        of_target = torch.linalg.cholesky_ex(_restricted(at, wanted)).L
        log_det, log_det_target = (
            2.0 * each.diagonal(dim1=-2, dim2=-1).log().sum(dim=-1)
            for each in (factor, of_target)
        )
        return torch.relu(log_det - log_det_target + _margin(K, wanted)).sum()

    return _gradient(L, loss)


def _restricted(L: Tensor, wanted: Tensor) -> Tensor:
    sets = torch.arange(len(L), device=L.device)[:, None, None]
    return L[sets, wanted[:, :, None], wanted[:, None, :]]


def _margin(K: Tensor, wanted: Tensor) -> Tensor:
    is_wanted = torch.zeros_like(K, dtype=torch.bool).scatter_(1, wanted, True)
    return torch.where(is_wanted, 1.0 - K, K).sum(dim=-1).log()


def _gradient(L: Tensor, loss: Callable[[Tensor], Tensor]) -> Tensor:
    at = L.detach().requires_grad_()
    loss(at).backward()
    return at.grad


def _check(ours: Tensor, theirs: Tensor, name: str) -> None:
    # Gradients of autograd need not be symmetric; their symmetric part counts.
    off = (ours - (theirs + theirs.mT) / 2).abs().max() / ours.abs().max()
    if not off < 1e-6:
        raise RuntimeError(f"{name} finds another gradient: it differs by {off:.1e}")


class _Finished:
    """A function that has ended when its device is done."""

    def __init__(self, function: Evaluation, device: str) -> None:
        self.function, self.device = function, device

    def __call__(self) -> None:
        self.function()
        if self.device != "cpu":
            torch.cuda.synchronize()


def _peak(function: Callable[[], None], device: str) -> float | None:
    """Return the most memory, in MiB, that was there beside the input; of a GPU."""
    if device == "cpu":
        return None
    before = torch.cuda.memory_allocated()
    torch.cuda.reset_peak_memory_stats()
    function()
    return float(torch.cuda.max_memory_allocated() - before) / 2.0**20


@contextmanager
def _one_thread() -> Iterator[None]:
    """Hold PyTorch to one thread of the CPU."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)

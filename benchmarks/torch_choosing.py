"""Choosing in batches on a device against the library's own path on two processes.

- greedy: ten of fifty items, of 100,000 groups;
- samples: a million subsets of one kernel of 1,000 items with 20 items expected, as
  many of exactly 20 items, and one subset of each of 10,000 kernels of fifty items;
- diverse mini-batches of 64: seconds an item by the number of items, and how many kinds
  of handwritten digits batches of 16 have, against random ones.

The CPU's path is measured on a share, by two processes of one thread each that are
warm, and given as a number a second.  Before a time counts, choices must be equal (all
but one in a hundred in single precision, where gains may be equal to rounding) and
sizes of samples must have the mean that is expected.

    python -m benchmarks.torch_choosing [--device cuda] [--share 1.0] [--out FILE.json]

A ``--share`` of all sizes makes it a try on the CPU.
"""

import argparse
import json
import multiprocessing
import os
import platform
import time
from pathlib import Path

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

from functools import partial

import numpy as np
import torch
from sklearn.datasets import load_digits

import variegate as vg
import variegate.torch as vt

GROUPS, GROUP_ITEMS, K = 100_000, 50, 10
SAMPLES, ITEMS, EXPECTED = 1_000_000, 1_000, 20
KERNELS = 10_000
PROCESSES = 2


def measured(work, device, repeats=3):
    """Return the times of some work, done once before, and what it returned."""
    wait = torch.cuda.synchronize if device.type == "cuda" else lambda: None
    result, times = work(), []
    wait()
    for _ in range(repeats):
        start = time.perf_counter()
        result = work()
        wait()
        times.append(time.perf_counter() - start)
    return np.array(times), result


def kernel_of_groups(n_groups, device, dtype):
    """Gaussian similarities of random points, and log-qualities."""
    draw = torch.Generator(device=device).manual_seed(0)
    options = {"generator": draw, "device": device, "dtype": dtype}
    X = torch.randn((n_groups, GROUP_ITEMS, 8), **options)
    u = torch.randn((n_groups, GROUP_ITEMS), **options)
    S = torch.cdist(X, X).square_().div_(-8.0).exp_()
    S = (S + S.mT) / 2
    # No rounding of single precision makes a negative eigenvalue of that.
    torch.diagonal(S, dim1=1, dim2=2).fill_(1.0 + 1e-5)
    return S, u


def large_kernel():
    """Return a Gaussian kernel of 1,000 points, scaled to an expected size."""
    X = np.random.default_rng(0).standard_normal((ITEMS, 5))
    S = np.exp(-((X[:, None] - X) ** 2).sum(axis=2) / 4.0)
    values = np.linalg.eigvalsh(S).clip(0.0)
    low, high = -20.0, 20.0
    for _ in range(60):
        middle = (low + high) / 2
        scaled = np.exp(middle) * values
        few = (scaled / (1.0 + scaled)).sum() < EXPECTED
        low, high = (middle, high) if few else (low, middle)
    return np.exp(middle) * S


def greedy_on_cpu(work):
    """Return seconds and choices of some groups, on a warm process."""
    similarities, log_qualities = work

    def one(S, u):
        return vg.LEnsemble.from_quality(S, u).decode("greedy", k=K).indices

    one(similarities[0], log_qualities[0])
    start = time.perf_counter()
    chosen = list(map(one, similarities, log_qualities))
    return time.perf_counter() - start, chosen


def samples_on_cpu(work):
    """Return seconds for some samples, by a warm process."""
    L, n, k, seed = work
    ensemble = vg.LEnsemble(L)

    def draw(n):
        if k is None:
            return ensemble.sample(n, random_state=seed)
        return ensemble.sample_k(k, n, random_state=seed)

    draw(200)
    start = time.perf_counter()
    draw(n)
    return time.perf_counter() - start


def small_samples_on_cpu(work):
    """Return seconds for one sample of each of some kernels."""
    similarities, log_qualities = work

    def one(S, u):
        return vg.LEnsemble.from_quality(S, u).sample(1, random_state=0)

    one(similarities[0], log_qualities[0])
    start = time.perf_counter()
    list(map(one, similarities, log_qualities))
    return time.perf_counter() - start


def row(name, count, times, cpu_rate, **extra):
    """Print and return one comparison."""
    rate = count / np.median(times)
    spread = np.ptp(times) / np.median(times)
    ratio = rate / cpu_rate
    print(
        f"{name}: {rate:,.0f} a second ({count:,} in {np.median(times):.3f} s, spread "
        f"{spread:.0%}), CPU {cpu_rate:,.0f} a second: {ratio:,.3g} times",
        *(f"{key} {value:.4g}" for key, value in extra.items()),
        flush=True,
    )
    return {
        "name": name,
        "count": count,
        "device_s": times.tolist(),
        "device_per_s": rate,
        "cpu_per_s": cpu_rate,
        "ratio": ratio,
        **extra,
    }


def halves(S, u, n):
    """Return kernels in parts, one for each process."""
    S, u = S[:n].double().cpu().numpy(), u[:n].double().cpu().numpy()
    return [(S[i::PROCESSES], u[i::PROCESSES]) for i in range(PROCESSES)]


def greedy(device, share, pool):
    """Return rows of greedy choosing from many groups."""
    rows = []
    for dtype in (torch.float32, torch.float64):
        S, u = kernel_of_groups(max(100, int(GROUPS * share)), device, dtype)
        ensembles = vt.LEnsembles(S, log_quality=u)
        times, found = measured(partial(ensembles.greedy, K), device, 5)
        n_cpu = min(400, len(S))
        done = pool.map(greedy_on_cpu, halves(S, u, n_cpu))
        same = 0
        for start, (_, chosen) in enumerate(done):
            ours = found.items[start:n_cpu:PROCESSES].sort(dim=1).values.cpu().numpy()
            same += sum(map(np.array_equal, ours, chosen))
        assert same >= (0.99 if dtype == torch.float32 else 1.0) * n_cpu, same
        rate = n_cpu / max(seconds for seconds, _ in done)
        name = f"greedy, {K} of {GROUP_ITEMS}, {str(dtype)[6:]}"
        rows.append(row(name, len(S), times, rate, same_as_cpu=same / n_cpu))
    return rows


def one_kernel(device, share, pool):
    """Return rows of samples of one large kernel."""
    L = large_kernel()
    there = torch.as_tensor(L, device=device)
    first, _ = measured(lambda: vt.LEnsembles(there).sample(1, generator=0), device, 2)
    rows = []
    for k in (None, EXPECTED):
        n = max(1_000, int(SAMPLES * share))
        draw = torch.Generator(device=device).manual_seed(0)
        times, found = measured(
            lambda: vt.LEnsembles(there).sample(n, k, generator=draw),  # noqa: B023
            device,
            2,
        )
        mean = float(found.sizes.double().mean())
        assert abs(mean - EXPECTED) < 10 * 3.5 / np.sqrt(n), mean
        n_cpu = 4_000
        work = [(L, n_cpu // PROCESSES, k, seed) for seed in range(PROCESSES)]
        rate = n_cpu / max(pool.map(samples_on_cpu, work))
        name = f"samples of {ITEMS:,} items, " + (
            f"{EXPECTED} expected" if k is None else f"exactly {k}"
        )
        extra = {"mean_size": mean, "eigendecomposition_s": float(first.min())}
        rows.append(row(name, n, times, rate, **extra))
    return rows


def many_kernels(device, share, pool):
    """Return rows of samples of many small kernels."""
    S, u = kernel_of_groups(max(100, int(KERNELS * share)), device, torch.float64)
    n_cpu = min(200, len(S))
    rate = n_cpu / max(pool.map(small_samples_on_cpu, halves(S, u, n_cpu)))
    times, found = measured(
        lambda: vt.LEnsembles(S, log_quality=u).sample(generator=0), device, 2
    )
    mean = float(found.sizes.double().mean())
    expected = float(vt.LEnsembles(S, log_quality=u).expected_size().mean())
    assert abs(mean - expected) < 10 * 3.0 / np.sqrt(len(S)), (mean, expected)
    name = f"one sample each of kernels of {GROUP_ITEMS} items"
    extra = {"mean_size": mean, "expected_size": expected}
    return [row(name, len(S), times, rate, **extra)]


def batches(device, share):
    """Measure diverse mini-batches: time by size, and how diverse they are."""
    found = {}
    for n in (16_384, 65_536):
        n = max(2_048, int(n * share))
        X = torch.randn((n, 64), generator=torch.Generator().manual_seed(0))
        sampler = vt.DPPBatchSampler(X.to(device), 64)
        times, _ = measured(lambda: list(sampler), device, 1)  # noqa: B023
        found[f"ms_an_item_of_{n}"] = 1e3 * float(times.min()) / n
    digits, labels = load_digits(return_X_y=True)
    sampler = vt.DPPBatchSampler(digits, 16, drop_last=True, device=device)
    unit = digits / np.linalg.norm(digits, axis=1, keepdims=True)
    order = np.random.default_rng(0).permutation(len(digits))[: 16 * len(sampler)]
    for name, parts in (("dpp", list(sampler)), ("random", order.reshape(-1, 16))):
        found[f"kinds_{name}"] = float(np.mean([len(set(labels[b])) for b in parts]))
        likeness = [((unit[b] @ unit[b].T).sum() - 16) / 240 for b in parts]
        found[f"likeness_{name}"] = float(np.mean(likeness))
    print("mini-batches:", *(f"{key} {value:.4g}" for key, value in found.items()))
    return found


def main():
    """Measure, print and write."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--share", type=float, default=1.0)
    parser.add_argument("--out", type=Path)
    given = parser.parse_args()
    device = torch.device(given.device)
    name = f"{platform.machine()} without a GPU"
    if device.type == "cuda":
        name = torch.cuda.get_device_name(device)
    print(f"{name}, PyTorch {torch.__version__}, {PROCESSES} processes of the CPU")
    with multiprocessing.get_context("spawn").Pool(PROCESSES) as pool:
        rows = greedy(device, given.share, pool)
        rows += one_kernel(device, given.share, pool)
        rows += many_kernels(device, given.share, pool)
    found = {"device": name, "rows": rows, "batches": batches(device, given.share)}
    if given.out is not None:
        given.out.write_text(json.dumps(found, indent=2) + "\n")


if __name__ == "__main__":
    main()

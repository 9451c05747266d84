"""Learning on a GPU against the compiled path on two threads of the CPU.

A million ground sets of ten items with 13 Gaussians and a linear part, all weights
learned:

- one evaluation of objective and gradient on the device, and on two threads of the CPU
  of a share of the ground sets, scaled up (both take time in proportion to them; value
  and gradient of the share must agree to 1e-9 before a time counts);
- a whole ``fit`` of fewer ground sets on both, to the same objective, and one of all
  of them on the device.

    python -m benchmarks.device [--device cuda] [--n-sets N] [--share N] [--n-fit N]
                                [--jobs 2] [--out FILE.json]
"""

import argparse
import json
import os
import platform
import time
import warnings
from functools import partial
from pathlib import Path

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import numpy as np
import torch
from sklearn.exceptions import ConvergenceWarning

import variegate as vg
from variegate.estimator import AllAlikeWarning
from variegate.learning.examples import Example
from variegate.learning.objective import LargeMarginLoss
from variegate.learning.problem import TrainingProblem
from variegate.torch.problem import DeviceProblem

N_ITEMS, N_QUALITY, N_SIMILARITY = 10, 8, 16
#: Two items are about this far from each other.
DISTANCE = (2 * N_SIMILARITY) ** 0.5
BANDWIDTHS = (DISTANCE * 2.0 ** np.arange(-3.0, 3.5, 0.5)).tolist()


def generated(n_sets, seed=0):
    """Ground sets, of which good items are chosen that are not near to a better one."""
    rng = np.random.default_rng(seed)
    theta = rng.standard_normal(N_QUALITY)
    ground_sets, subsets = [], []
    for start in range(0, n_sets, 10_000):
        n = min(10_000, n_sets - start)
        quality = rng.standard_normal((n, N_ITEMS, N_QUALITY))
        features = rng.standard_normal((n, N_ITEMS, N_SIMILARITY))
        value = quality @ theta + rng.gumbel(size=(n, N_ITEMS))
        squared = ((features[:, :, None] - features[:, None]) ** 2).sum(axis=3)
        better = value[:, None, :] > value[:, :, None]
        beaten = (better & (squared < 0.7 * DISTANCE**2)).any(axis=2)
        wanted = (value > 1.0) & ~beaten
        ground_sets += map(vg.GroundSet, quality, features)
        subsets += map(np.flatnonzero, wanted)
    return ground_sets, subsets


def seconds(work, repeats):
    """Return the median time of some work, done once before."""
    work()
    times = []
    for _ in range(repeats):
        start = time.perf_counter()
        work()
        times.append(time.perf_counter() - start)
    return float(np.median(times))


def evaluations(ground_sets, subsets, share, device, jobs):
    """Measure objective and gradient of all on the device, of a share on the CPU."""
    costs = [1.0] * len(ground_sets)
    examples = list(
        map(Example, range(len(ground_sets)), ground_sets, subsets, costs, costs)
    )
    kernel = vg.MultipleKernel(BANDWIDTHS).fit(ground_sets[:1000])
    loss = LargeMarginLoss(1.0)
    some = examples[:share]
    start = time.perf_counter()
    here = TrainingProblem(some, kernel, loss, n_jobs=jobs)
    prepared_here = time.perf_counter() - start
    there = DeviceProblem(
        some, kernel, loss, device=device, coordinates=here.coordinates
    )
    point = a_point(here)
    check_agreement(here.value_and_gradient(point), there.value_and_gradient(point))
    del there
    on_cpu = seconds(lambda: here.value_and_gradient(point), 5)
    on_cpu *= len(examples) / len(some)
    start = time.perf_counter()
    there = DeviceProblem(examples, kernel, loss, device=device)
    prepared = time.perf_counter() - start
    on_device = seconds(lambda: there.value_and_gradient(point), 10)
    held_gb = 8e-9 * len(examples) * N_ITEMS**2 * kernel.n_weights
    return {
        "n_sets": len(examples),
        "n_sets_cpu": len(some),
        "device_s": on_device,
        "cpu_s": on_cpu,
        "ratio": on_cpu / on_device,
        "device_prepare_s": prepared,
        "cpu_prepare_s": prepared_here * len(examples) / len(some),
        "held_gb": held_gb,
        # Both passes over the similarities, if nothing else were done.
        "passes_gb_per_s": 2 * held_gb / on_device,
        "parts_s": parts(there, point),
        **memory(device),
    }


def parts(problem, point):
    """Measure what an evaluation is made of, in seconds."""
    at = problem.space.unpack(problem.send(point).requires_grad_())
    found = dict.fromkeys(("qualities", "similarity", "loss", "gradient"), 0.0)
    for stack in problem._stacks:
        for name, work in pieces(stack, at).items():
            found[name] += seconds(partial(waited_for, work, problem.device), 5)
    return found


def pieces(stack, at):
    """Return the work of an evaluation: three pieces, and all of it with gradient."""
    targets, kernels = stack.batch.targets, stack.build_kernels(at)

    def gradient():
        stack.build_kernels(at).losses(targets, 1.0)[0].sum().backward()

    return {
        "qualities": partial(torch.matmul, at["theta"], stack.quality),
        "similarity": partial(stack.kernel, at["kernel"]),
        "loss": partial(kernels.losses, targets, 1.0),
        "gradient": gradient,
    }


def waited_for(work, device):
    """Do some work, and wait until a GPU has done it."""
    work()
    if torch.device(device).type == "cuda":
        torch.cuda.synchronize(device)


def a_point(problem):
    """Return a point like those that a solver comes by."""
    rng = np.random.default_rng(1)
    point = problem.space.center()
    parts = problem.space.unpack(point)
    parts["theta"][:] = 0.3 * rng.standard_normal(len(parts["theta"]))
    parts["intercept"][:] = -1.0
    return point


def check_agreement(here, there):
    """Raise unless two values and gradients agree."""
    np.testing.assert_allclose(there[0], here[0], rtol=1e-9)
    scale = np.abs(here[1]).max()
    np.testing.assert_allclose(there[1], here[1], rtol=1e-7, atol=1e-9 * scale)


def memory(device):
    """Return the peak of the device's memory, on a GPU."""
    if torch.device(device).type != "cuda":
        return {}
    return {"device_peak_gb": torch.cuda.max_memory_allocated(device) / 1e9}


def fits(ground_sets, subsets, device, jobs):
    """Fit on both; the two must end at the same objective."""
    found = {
        "n_sets": len(ground_sets),
        **fitted("device", ground_sets, subsets, device=device),
        **fitted("cpu", ground_sets, subsets, n_jobs=jobs),
    }
    found["ratio"] = found["cpu_s"] / found["device_s"]
    difference = abs(found["device_objective"] - found["cpu_objective"])
    found["objectives_differ_by"] = difference / found["cpu_objective"]
    return found


def fitted(name, ground_sets, subsets, **settings):
    """Fit, and return how long it took, how often it looked, and where it ended."""
    kernel = vg.MultipleKernel(BANDWIDTHS)
    model = vg.LargeMarginDPP(kernel=kernel, l2=1e-4, tol=1e-6, **settings)
    start = time.perf_counter()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        warnings.simplefilter("ignore", AllAlikeWarning)
        model.fit(ground_sets, subsets)
    result = model.solver_result_
    return {
        f"{name}_s": time.perf_counter() - start,
        f"{name}_objective": result.objective,
        f"{name}_evaluations": result.n_evaluations,
    }


def main():
    """Measure, print and write."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--n-sets", type=int, default=1_000_000)
    parser.add_argument("--share", type=int, default=20_000)
    parser.add_argument("--n-fit", type=int, default=20_000)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--out", type=Path)
    given = parser.parse_args()
    device = torch.device(given.device)
    name = f"{platform.machine()} without a GPU"
    if device.type == "cuda":
        name = torch.cuda.get_device_name(device)
    start = time.perf_counter()
    ground_sets, subsets = generated(given.n_sets)
    made = time.perf_counter() - start
    print(f"{name}, {given.jobs} threads of the CPU; data made in {made:.0f} s")
    one = evaluations(ground_sets, subsets, given.share, given.device, given.jobs)
    print(
        f"{one['n_sets']:,} sets of {N_ITEMS} items, {len(BANDWIDTHS)} Gaussians and a "
        f"linear part, one evaluation: {1e3 * one['device_s']:.2f} ms on the device, "
        f"{one['cpu_s']:.2f} s on the CPU ({one['n_sets_cpu']:,} sets, scaled up): "
        f"{one['ratio']:.0f} times; prepared in {one['device_prepare_s']:.1f} s, on "
        f"the CPU in {one['cpu_prepare_s']:.0f} s (scaled up)"
    )
    shares = [f"{name} {1e3 * s:.2f} ms" for name, s in one["parts_s"].items()]
    print(f"of which, one after the other: {', '.join(shares)}")
    whole = fits(
        ground_sets[: given.n_fit], subsets[: given.n_fit], given.device, given.jobs
    )
    print(
        f"{whole['n_sets']:,} sets, a whole fit: {whole['device_s']:.1f} s on the "
        f"device ({whole['device_evaluations']} evaluations), {whole['cpu_s']:.1f} s "
        f"on the CPU ({whole['cpu_evaluations']}): {whole['ratio']:.1f} times; "
        f"objectives differ by {whole['objectives_differ_by']:.1g}"
    )
    largest = fitted("device", ground_sets, subsets, device=given.device)
    print(
        f"{len(ground_sets):,} sets, a whole fit: {largest['device_s']:.1f} s on the "
        f"device ({largest['device_evaluations']} evaluations)"
    )
    if given.out is not None:
        found = {"device": name, "evaluation": one, "fit": whole, "largest": largest}
        given.out.write_text(json.dumps(found, indent=2) + "\n")


if __name__ == "__main__":
    main()

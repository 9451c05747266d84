"""CPU seconds that Numba takes to compile each loop of the library.

    python -m benchmarks.compile_times --out FOLDER
    PYTHONPATH=OTHER/src python -m benchmarks.compile_times    of another source tree

A fresh process with an empty cache runs short examples that reach every loop, on sizes
from which the library uses them.  Seconds are taken from Numba's compile events:
``inclusive`` counts the loops that a loop calls and that are not compiled yet, ``own``
does not, so that these add up to the total.  What Numba does once in a process is paid
by an empty loop before, and shown apart.  Garbage collection is off, since each would
be charged to the loop that it falls upon.  Writes compile_times.json, prints a table.
"""

from __future__ import annotations

import argparse
import gc
import importlib
import json
import os
import pkgutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
from scipy import sparse

import variegate as vg
from variegate.decoding import ExpectedF
from variegate.learning.objective import LargeMarginLoss, Targets
from variegate.sampling.chain import sample_chain

RNG = np.random.default_rng(0)


def kernel(n_items, rank=None, scale=3.0):
    """Return a random kernel matrix."""
    B = RNG.standard_normal((n_items, rank or 2 * n_items))
    return scale * B @ B.T / B.shape[1]


def graded(n_items, columns):
    """Return an ensemble whose items differ in quality by more than digits allow."""
    B = RNG.standard_normal((n_items, columns))
    return vg.LEnsemble.from_factor(
        B * np.exp(np.linspace(-9.0, 9.0, n_items))[:, None]
    )


def exact():
    """Decode exactly, at full and at low rank."""
    costs = RNG.uniform(1.0, 2.0, 16)
    for ensemble in (vg.LEnsemble(kernel(16)), vg.LEnsemble(kernel(16, rank=5))):
        ensemble.decode("exact")
        ensemble.decode("exact", k=3)
        ensemble.decode("exact", budget=6, costs=costs)
    for ensemble in (vg.LEnsemble(kernel(8)), vg.LEnsemble(kernel(8, rank=5))):
        ensemble.decode("exact")


def rows_at_the_edge():
    """Condition and sample a kernel at the edge of its rank."""
    ensemble = graded(20, 25)
    ensemble.condition([1, 3], [5])
    sample_chain(ensemble, n=5)
    sample_chain(ensemble, n=5, k=3)
    vg.LEnsemble(kernel(150, rank=20)).marginals()


def chains():
    """Run Markov chains, of free and of fixed size."""
    for k in (None, 3):
        sample_chain(vg.LEnsemble(kernel(16)), n=5, k=k)
        B = RNG.standard_normal((30, 10))
        sample_chain(vg.LEnsemble.from_factor(B), n=5, k=k)


def samples():
    """Draw samples, of free and of fixed size."""
    B = RNG.standard_normal((300, 30))
    for ensemble in (vg.LEnsemble(kernel(300)), vg.LEnsemble.from_factor(B)):
        ensemble.sample(200, random_state=0)
        ensemble.sample_k(10, 200, random_state=0)


def greedy():
    """Choose rows greedily, in double and single precision."""
    B = RNG.standard_normal((20_000, 64))
    for factor in (B, B.astype(np.float32)):
        vg.LEnsemble.from_factor(factor).decode("greedy", k=50)


def expected_f():
    """Decode for the expected F-score within a budget."""
    ensemble, costs = vg.LEnsemble(kernel(40)), RNG.uniform(1.0, 2.0, 40)
    for repetition in (0.0, 0.5):
        ensemble.decode(ExpectedF(repetition=repetition), budget=7, costs=costs)
        ensemble.decode(ExpectedF(repetition=repetition), k=5)


def losses():
    """Evaluate the loss of many small sets and of a large one."""
    for n_sets, n_items in ((60, 40), (1, 240)):
        S = np.stack([kernel(n_items, scale=1.0) for _ in range(n_sets)])
        u = RNG.standard_normal((n_sets, n_items))
        targets = Targets.from_subsets([np.arange(3)] * n_sets, n_items)
        for loss in (LargeMarginLoss(1.0), LargeMarginLoss(0.0)):
            loss.value_and_gradient(S, u, targets)
            loss.value_and_gradient(
                S,
                u,
                targets,
                target_log_det=np.zeros(n_sets),
                similarity_gradient=False,
            )


def learning():
    """Fit and predict with every kernel."""
    features = [RNG.standard_normal((30, 8)) for _ in range(60)]
    sets = [vg.GroundSet(X[:, :1], X) for X in features]
    kernels = (
        vg.MultipleKernel(), vg.MultipleKernel(anchored=True), vg.Gaussian(1.0),
        vg.Linear(), vg.Kinds(4), vg.Metric(4),
    )  # fmt: skip
    for similarity in kernels:
        model = vg.LargeMarginDPP(kernel=similarity, tol=0.1, n_jobs=1)
        model.fit(sets, [[0, 1]] * len(sets))
        model.predict(sets[:1])


def texts():
    """Grow a summary that agrees with samples."""
    from variegate.text.consensus import WordAgreement

    counts = sparse.csr_array(RNG.integers(3, size=(12, 30)))
    growing = WordAgreement([counts]).growing(
        RNG.random((5, 12)) < 0.4, np.ones(5, int)
    )
    growing.add(int(np.argmax(growing.gain())))


def frames():
    """Match frames of a video."""
    from variegate.video.choosing import MatchingAgreement

    alike = np.eye(12, dtype=bool) | (RNG.random((12, 12)) < 0.2)
    growing = MatchingAgreement(alike | alike.T, 1.0, np.eye(12, dtype=bool)).growing(
        RNG.random((5, 12)) < 0.4, np.ones(5, int)
    )
    growing.add(int(np.argmax(growing.gain())))


EXAMPLES = (
    exact, rows_at_the_edge, chains, samples, greedy, expected_f, losses, learning,
    texts, frames,
)  # fmt: skip


def record():
    """Run the examples; return seconds and counts of each compiled function."""
    import numba
    from numba.core import event

    class Recorder(event.Listener):
        def __init__(self):
            self.open, self.found = [], {}

        def on_start(self, event):
            self.open.append([time.process_time(), 0.0])

        def on_end(self, event):
            start, nested = self.open.pop()
            spent = time.process_time() - start
            function = event.data["dispatcher"].py_func
            if function.__module__.startswith("variegate."):
                module = function.__module__.removeprefix("variegate.linalg.compiled.")
                one = self.found.setdefault(
                    f"{module}.{function.__name__}",
                    {"inclusive": 0.0, "own": 0.0, "specialisations": 0},
                )
                one["inclusive"] += spent
                one["own"] += spent - nested
                one["specialisations"] += 1
            else:  # of Numba's own, which belongs to whoever calls it
                spent = nested
            if self.open:
                self.open[-1][1] += spent

    gc.disable()
    recorder = Recorder()
    event.register("numba:compile", recorder)
    start = time.process_time()
    numba.njit(lambda numbers: numbers[0])(np.zeros(1))
    first = time.process_time() - start
    for example in EXAMPLES:
        example()
    return {"first": first, "loops": recorder.found, "not called": not_called()}


def not_called():
    """Return the compiled functions of the library that no example has reached."""
    import variegate.linalg.compiled

    missing = []
    for found in pkgutil.iter_modules(variegate.linalg.compiled.__path__):
        module = importlib.import_module(f"variegate.linalg.compiled.{found.name}")
        for name, value in vars(module).items():
            if getattr(value, "__module__", None) != module.__name__:
                continue
            # Those that are inlined are compiled with whoever calls them.
            is_loop = (
                hasattr(value, "overloads") and "inline" not in value.targetoptions
            )
            if is_loop and not value.overloads:
                missing.append(f"{found.name}.{name}")
    return missing


def main():
    """Print the table, of a fresh process."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path)
    parser.add_argument("--record", action="store_true", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.record:
        print(json.dumps(record()))
        return
    with tempfile.TemporaryDirectory() as cache:
        done = subprocess.run(
            [sys.executable, __file__, "--record"],
            env={**os.environ, "NUMBA_CACHE_DIR": cache},
            check=True,
            stdout=subprocess.PIPE,
            text=True,
        )
    results = json.loads(done.stdout)
    loops = results["loops"]
    results["total"] = sum(one["own"] for one in loops.values())
    print(f"{'':36}{'inclusive':>10}{'own':>8}  specialisations")
    for name, one in sorted(loops.items(), key=lambda pair: -pair[1]["inclusive"]):
        seconds = f"{one['inclusive']:10.2f}{one['own']:8.2f}"
        print(f"{name:36}{seconds}{one['specialisations']:17}")
    print(f"{len(loops)} loops: {results['total']:.1f} s of CPU")
    print(f"Numba's own start: {results['first']:.1f} s")
    print("not called:", ", ".join(results["not called"]) or "none")
    if arguments.out:
        arguments.out.mkdir(parents=True, exist_ok=True)
        file = arguments.out / "compile_times.json"
        file.write_text(json.dumps(results, indent=1) + "\n")


if __name__ == "__main__":
    main()

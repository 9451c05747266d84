"""Does learning pay? Tables with different truths, learned and rivals.

    python -m benchmarks.taste contest            all tasks, 240 groups to learn from
    python -m benchmarks.taste contest --seed 1   the same truths, other data
    python -m benchmarks.taste growth             25 to 800 groups, with a plot
    python -m benchmarks.taste time               240 groups of 24 rows and 64 numbers

The learned model is ``TableSelector`` as it comes, told what the columns are.  Rivals
learn a relevance with scikit-learn from the same groups and columns, and make it
diverse with an untrained method; how many rows, and how diverse, is chosen on these
groups too.
"""

from __future__ import annotations

import argparse
import json
import time
import warnings
from pathlib import Path

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from benchmarks.taste_tasks import TASKS
from variegate.application.base import bootstrap_means
from variegate.tables import TableSelector
from variegate.tuning.held_out import SCORES

SIZES = (25, 50, 100, 200, 400, 800)


def judge(task, n_train, n_test, seed):
    """Return F-scores of the test groups by name, the model, and seconds to fit."""
    train, test = task.tables(seed, n_train, n_test)
    selector = TableSelector(**task.columns, n_jobs=-1)
    started = time.perf_counter()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        selector.fit(train)
    seconds = time.perf_counter() - started
    found = selector.evaluate(test, train=train, name="learned")
    scores = {name: rows[:, SCORES.index("f")] for name, rows in found.scores.items()}
    return {n: f for n, f in scores.items() if n != "wanted rows"}, selector, seconds


def less(first, second):
    """Return the mean of paired differences, with a 95 % interval."""
    means = bootstrap_means((first - second)[:, None], 2000, 0)
    low, high = np.quantile(means, [0.025, 0.975])
    return float((first - second).mean()), float(low), float(high)


def contest(out, seed, tasks, n_train=240, n_test=300):
    """Print how the learned model does against every rival on every task."""
    print("| task | learned | F | best baseline | F | difference | seconds |")
    print("|---|---|---|---|---|---|---|")
    record = {}
    for task in tasks:
        scores, selector, seconds = judge(task, n_train, n_test, seed)
        learned = scores.pop("learned")
        gaps = {name: less(learned, f) for name, f in scores.items()}
        best = min(gaps, key=lambda name: gaps[name][0])
        mean, low, high = gaps[best]
        winner = selector.training_["compared"]["kernels"][0]["name"]
        mark = "*" if task.has_kinds else ""
        print(
            f"| {task.name}{mark} | {winner} | {learned.mean():.3f} | {best} "
            f"| {scores[best].mean():.3f} | {mean:+.3f} [{low:+.3f}, {high:+.3f}] "
            f"| {seconds:.0f} |",
            flush=True,
        )
        record[task.name] = {
            "has_kinds": task.has_kinds,
            "learned": float(learned.mean()),
            "kernel": repr(selector.model_.kernel_),
            "k": selector.k_,
            "decoder": repr(selector.model_.decoder),
            "rivals": {name: float(f.mean()) for name, f in scores.items()},
            "less": gaps,
            "seconds": seconds,
        }
    path = out / f"taste-contest-{seed}.json"
    path.write_text(json.dumps(record, indent=1))
    print(f"\n* the truth goes by kinds. All rivals: {path}")


def growth(out, seed, tasks, n_test=300):
    """Print and plot F-scores by the number of groups that were learned from.

    What is there from an earlier run is not computed again.
    """
    path = out / f"taste-growth-{seed}.json"
    found = json.loads(path.read_text()) if path.exists() else {}
    for task in tasks:
        points = found.setdefault(task.name, {})
        for size in SIZES:
            if str(size) in points:
                continue
            scores, selector, seconds = judge(task, size, n_test, seed)
            means = {name.split(" (")[0]: f.mean() for name, f in scores.items()}
            winner = selector.training_["compared"]["kernels"][0]["name"]
            points[str(size)] = means
            path.write_text(json.dumps(found, indent=1))
            learned, *rivals = means.values()
            print(
                f"{task.name:18} {size:4}  learned {learned:.3f} ({winner})  "
                f"best baseline {max(rivals):.3f}  {seconds:.0f} s",
                flush=True,
            )
    plot({task.name: found[task.name] for task in tasks}, out / "taste-growth.png")


def plot(lines, path):
    """Draw the learned model and the best and worst of the rivals, task by task."""
    from matplotlib.figure import Figure

    n_columns = 3 if len(lines) % 3 == 0 else min(2, len(lines))
    n_rows = -(-len(lines) // n_columns)
    figure = Figure(figsize=(3.0 * n_columns, 2.4 * n_rows), layout="constrained")
    panels = figure.subplots(n_rows, n_columns, squeeze=False)
    for axes in panels.flat[len(lines) :]:
        axes.set_visible(False)
    for axes, (name, points) in zip(panels.flat, lines.items(), strict=False):
        sizes = [int(size) for size in points]
        table = np.array([list(means.values()) for means in points.values()])
        learned, every = table[:, 0], table[:, 1:]
        axes.fill_between(
            sizes, every.min(axis=1), every.max(axis=1), color="#b9c2cc", alpha=0.6,
            linewidth=0, label="six baselines",
        )  # fmt: skip
        axes.plot(sizes, every.max(axis=1), color="#5b6b7b", linewidth=1)
        axes.plot(
            sizes, learned, "o-", color="#b3432b", markersize=4, label="Variegate"
        )
        axes.set_xscale("log")
        axes.set_xticks(sizes, list(map(str, sizes)))
        axes.tick_params(axis="x", which="minor", bottom=False, labelbottom=False)
        axes.set_title(name, fontsize=10)
        axes.spines[["top", "right"]].set_visible(False)
    panels.flat[0].legend(frameon=False, fontsize=8, loc="center right")
    figure.supxlabel("training groups", fontsize=9)
    figure.supylabel("F on new groups", fontsize=9)
    figure.savefig(path, dpi=160)
    print(f"wrote {path}")


def time_fit(out, seed, tasks):
    """Print how long the default takes on 240 groups of 24 rows and 64 numbers."""
    task = next(task for task in TASKS if task.name == "12 kinds")
    train, _ = task.tables(seed, 240, 2)
    for _ in range(3):
        started = time.perf_counter()
        TableSelector(**task.columns, n_jobs=-1).fit(train)
        print(f"{time.perf_counter() - started:.1f} s")


def main():
    """Run the command that is named."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parts = {"contest": contest, "growth": growth, "time": time_fit}
    parser.add_argument("part", choices=parts)
    parser.add_argument("--out", type=Path, default=Path("."))
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--tasks", help="their names, with commas between")
    given = parser.parse_args()
    given.out.mkdir(parents=True, exist_ok=True)
    names = given.tasks.split(",") if given.tasks else [task.name for task in TASKS]
    tasks = [task for task in TASKS if task.name in names]
    parts[given.part](given.out, given.seed, tasks)


if __name__ == "__main__":
    main()

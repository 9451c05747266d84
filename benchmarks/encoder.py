"""Does training an encoder pay? Digits, by the number of pages to learn from.

    python -m benchmarks.encoder              all of it, a table and a plot
    python -m benchmarks.encoder --seed 1     other pages

The truth and the pages are those of ``taste.py``: of 20 pictures, the sharpest of each
digit, which no method is told.  Networks (the default ones of ``NeuralDPP``, and a
small convolutional encoder) are compared with ``Kinds``, ``Metric``, and what
``taste.py`` has: ``TableSelector`` as it comes and six rivals.  Settings, with their
decoder, are those that do best on a fifth of 100 training pages; pages to be judged by
are looked at once.  One thread does it in a quarter of an hour; what is there from an
earlier run is not computed again.
"""

from __future__ import annotations

import argparse
import json
import time
import warnings
from collections.abc import Callable
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import torch
from sklearn.exceptions import ConvergenceWarning
from torch import nn

import variegate as vg
import variegate.torch as vt
from benchmarks.taste import judge, less
from benchmarks.taste_tasks import TASKS

SIZES = (25, 50, 100, 200, 400)
N_TEST = 300
#: Pages that settings are chosen on, a fifth of them held out.
N_TRIED = 100
DECODERS = ("greedy", "expected-f")
#: Steps that a network may take, whatever the number of pages.
N_STEPS = 2500
BATCH = 8
#: What a table is learned from by default.
TABLE = "TableSelector"

task = next(task for task in TASKS if task.name == "digits")


def pages(n_train, seed):
    """Return pages to learn from, and pages to be judged by, as taste.py has them."""
    rng = np.random.default_rng([sum(map(ord, task.name)), seed])
    return task.make(rng, n_train, N_TEST)


def examples(groups):
    """Return ground sets and subsets."""
    sets = [vg.GroundSet(group.quality, group.similarity) for group in groups]
    return sets, [group.chosen for group in groups]


def conv_encoder():
    """Return a small convolutional network for pictures of 8 x 8."""
    torch.manual_seed(0)
    return nn.Sequential(
        nn.Unflatten(1, (1, 8, 8)),
        nn.Conv2d(1, 16, 3, padding=1),
        nn.ReLU(),
        nn.Conv2d(16, 32, 3, stride=2, padding=1),
        nn.ReLU(),
        nn.Flatten(),
        nn.Linear(512, 32),
    )


def network(n_pages, **settings):
    """Return a model of networks, for so many pages."""
    return vt.NeuralDPP(
        batch_size=BATCH,
        max_epochs=int(np.clip(N_STEPS * BATCH / n_pages, 20, 300)),
        patience=20,
        validation_fraction=0.2 if n_pages <= 50 else 0.1,
        device="cpu",
        random_state=0,
        **settings,
    )


def large_margin(kernel, **settings):
    """Return a model of a kernel."""
    return vg.LargeMarginDPP(kernel=kernel, l2=1e-4, max_iter=200, tol=1e-2, **settings)


LAMS = [{"lam": 1.0}, {"lam": 4.0}]
RATES = [{"learning_rate": rate} for rate in (0.005, 0.02)]
WITH_RATES = [lam | rate for lam, rate in product(LAMS, RATES)]
WAYS: dict[str, tuple[Callable[..., Any], list[dict[str, float]]]] = {
    "Kinds": (lambda n, **s: large_margin(vg.Kinds(), **s), LAMS),
    "Metric": (lambda n, **s: large_margin(vg.Metric(), **s), LAMS),
    "network": (network, WITH_RATES),
    "convolutions": (
        lambda n, **s: network(n, encoder=conv_encoder(), standardize=False, **s),
        WITH_RATES,
    ),
}


def fitted(make, settings, groups):
    """Return a model that has learned from pages."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        return make(len(groups), **settings).fit(*examples(groups))


def f_scores(model, decoder, groups):
    """Return the F-score of every page."""
    sets, wanted = examples(groups)
    chosen = model.set_params(decoder=decoder).predict(sets)
    return np.array(
        [vg.metrics.f_score(a, b) for a, b in zip(chosen, wanted, strict=True)]
    )


def choose_settings(name, seed):
    """Return the settings and the decoder that do best on a fifth of some pages."""
    make, grid = WAYS[name]
    groups, _ = pages(N_TRIED, seed)
    learned_from, held_out = groups[: 4 * N_TRIED // 5], groups[4 * N_TRIED // 5 :]
    found = []
    for settings in grid:
        model = fitted(make, settings, learned_from)
        for decoder in DECODERS:
            f = float(f_scores(model, decoder, held_out).mean())
            found.append((f, settings, decoder))
    best = max(found, key=lambda one: one[0])
    print(f"{name}: {best[1]} {best[2]}, F {best[0]:.3f} on held-out pages", flush=True)
    return best[1:]


def measure(out, seed):
    """Fill the record, and return it."""
    path = out / f"encoder-{seed}.json"
    record = json.loads(path.read_text()) if path.exists() else {}
    record.setdefault("settings", {})
    record.setdefault("f", {})
    for name in WAYS:
        if name not in record["settings"]:
            record["settings"][name] = choose_settings(name, seed)
            path.write_text(json.dumps(record))
    for size in SIZES:
        scores = record["f"].setdefault(str(size), {})
        if TABLE not in scores:
            found, _, _ = judge(task, size, N_TEST, seed)
            scores[TABLE] = found.pop("learned").tolist()
            scores["rivals"] = {name: f.tolist() for name, f in found.items()}
            path.write_text(json.dumps(record))
        train, test = pages(size, seed)
        for name, (make, _) in WAYS.items():
            if name in scores:
                continue
            settings, decoder = record["settings"][name]
            started = time.perf_counter()
            model = fitted(make, settings, train)
            seconds = time.perf_counter() - started
            scores[name] = f_scores(model, decoder, test).tolist()
            mean = np.mean(scores[name])
            print(f"{size:4} {name:13} F {mean:.3f} {seconds:.0f} s", flush=True)
            path.write_text(json.dumps(record))
    path.write_text(json.dumps(record))
    return record


def best_rival(scores):
    """Return the name and the F-scores of the best baseline on these very pages."""
    means = {name: np.mean(values) for name, values in scores["rivals"].items()}
    name = max(means, key=means.get)
    return name, np.array(scores["rivals"][name])


def report(record):
    """Print F-scores, and by how much networks are ahead of what has none."""
    shown = ["Kinds", "Metric", TABLE, "network", "convolutions"]
    print(f"\n| pages | {' | '.join(shown)} | best baseline | F |")
    print("|---" * (len(shown) + 3) + "|")
    for size, scores in record["f"].items():
        name, values = best_rival(scores)
        cells = [f"{np.mean(scores[way]):.3f}" for way in shown]
        print(f"| {size} | {' | '.join(cells)} | {name} | {values.mean():.3f} |")
    print(f"\n| pages | network less {TABLE} | convolutions less {TABLE} |")
    print("|---|---|---|")
    for size, scores in record["f"].items():
        other = np.array(scores[TABLE])
        gaps = [less(np.array(scores[w]), other) for w in ("network", "convolutions")]
        cells = [f"{mean:+.3f} [{low:+.3f}, {high:+.3f}]" for mean, low, high in gaps]
        print(f"| {size} | {' | '.join(cells)} |")


def plot(record, path):
    """Draw F by the number of pages."""
    from variegate.report.figures import new_figure

    figure, (axes,) = new_figure(6.4, 3.6, panels=1)
    sizes = [int(size) for size in record["f"]]
    colours = {
        "network": "#D55E00",
        "convolutions": "#E69F00",
        TABLE: "#009E73",
        "Kinds": "#0072B2",
        "Metric": "#56B4E9",
    }
    for way, colour in colours.items():
        means = [np.mean(scores[way]) for scores in record["f"].values()]
        axes.plot(sizes, means, "o-", color=colour, label=way, markersize=4)
    best = [best_rival(scores)[1].mean() for scores in record["f"].values()]
    axes.plot(sizes, best, "--", color="#5b6b7b", label="best baseline")
    axes.set_xscale("log")
    axes.set_xticks(sizes, list(map(str, sizes)))
    axes.tick_params(axis="x", which="minor", bottom=False, labelbottom=False)
    axes.set(xlabel="training pages", ylabel="F on new pages")
    axes.legend(frameon=False, fontsize=9)
    figure.savefig(path, dpi=160)
    print(f"wrote {path}")


def main():
    """Run the contest, and write its table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, default=Path("."))
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args()
    torch.set_num_threads(1)
    given.out.mkdir(parents=True, exist_ok=True)
    record = measure(given.out, given.seed)
    report(record)
    plot(record, given.out / "encoder-growth.png")


if __name__ == "__main__":
    main()

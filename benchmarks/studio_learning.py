"""Does the studio's learning pay before 30 groups? A scripted person picks digits.

    python -m benchmarks.studio_learning curve                 seeds 1 to 5
    python -m benchmarks.studio_learning curve --order given   pages in their order
    python -m benchmarks.studio_learning time                  how long it takes

The person has a hidden rule: of 20 pictures on a page, the sharpest of each digit.
Pages are a folder of PNG files, as a user would have them, and nobody is told what a
digit or its sharpness is.  Each page is judged when it is first shown, before the
person corrects the proposal; then it is learned from.  Beside it stands what the same
proposals do on pages that are never picked from, and the untrained DPP, which is told
how many pictures were picked from a page so far.  Defaults were chosen with seed 0.
"""

from __future__ import annotations

import argparse
import json
import tempfile
import time
from pathlib import Path

import cv2
import numpy as np
from sklearn.datasets import load_digits

import variegate as vg
from variegate import metrics
from variegate.material.base import Item
from variegate.material.opening import open_material
from variegate.studio.choices import untrained_choice, usual_size
from variegate.studio.group_learner import GroupLearner, LearningResult
from variegate.studio.kernel_candidates import candidates_for, fit_model, odds_family
from variegate.studio.proposals import Proposer
from variegate.studio.teacher import Teacher

N_PAGES, N_SHOWN, PAGE = 80, 40, 20
REPORTED = (0, 1, 2, 3, 4, 6, 8, 12, 16, 24, 30)


class Person:
    """Digits in a folder, and who knows which to pick."""

    def __init__(self, seed, folder):
        data = load_digits()
        order = np.random.default_rng(seed).permutation(len(data.images))
        self.pictures = order[: N_PAGES * PAGE]
        for place, number in enumerate(self.pictures):
            grey = (data.images[number] / 16.0 * 255.0).astype(np.uint8)
            large = cv2.resize(grey, (64, 64), interpolation=cv2.INTER_CUBIC)
            cv2.imwrite(str(folder / f"{place:04d}.png"), large)
        steps = [np.diff(data.images / 16.0, axis=axis) for axis in (1, 2)]
        sharp = sum((step**2).sum(axis=(1, 2)) for step in steps)
        self.digit, self.sharp = data.target[self.pictures], sharp[self.pictures]

    def picks(self, page):
        """Return the sharpest of each digit on a page."""
        rows = np.arange(page * PAGE, (page + 1) * PAGE)
        best = [
            rows[self.digit[rows] == digit][
                np.argmax(self.sharp[rows][self.digit[rows] == digit])
            ]
            for digit in np.unique(self.digit[rows])
        ]
        return np.sort(np.array(best) - page * PAGE)


def f_of(proposer, material, person, pages):
    """Return the mean F-score of proposals on some pages."""
    return float(
        np.mean(
            [
                metrics.f_score(proposer.propose(p).chosen, person.picks(p))
                for p in pages
            ]
        )
    )


def session(seed, order, n_groups=30):
    """Return rows of (groups seen, F of this page, F on new pages, untrained F)."""
    with tempfile.TemporaryDirectory() as folder:
        person = Person(seed, Path(folder))
        material = open_material(folder)
        sets = [material.ground_set(page) for page in range(N_PAGES)]
        # Pages that are never picked from; those before may be.
        new = range(N_SHOWN, N_PAGES)
        learner = GroupLearner(sets, material.kernels, material.feature_names)
        done, rows = {}, []
        for seen in range(n_groups + 1):
            proposer = Proposer(material, learner.last, done)
            hidden = set(new)
            page = proposer.next_group({*done, *hidden}, order)
            own = f_of(proposer, material, person, [page])
            k = usual_size(len(picks) for picks in done.values())
            base = np.mean(
                [
                    metrics.f_score(untrained_choice(sets[p], k), person.picks(p))
                    for p in new
                ]
            )
            on_new = f_of(proposer, material, person, new) if seen in REPORTED else None
            rows.append((seen, own, on_new, float(base)))
            if on_new is not None:
                print(f"seed {seed}, {seen}: F {on_new:.3f}, {base:.3f}", flush=True)
            done[page] = person.picks(page)
            learner.learn(done)
        return rows


def curve(out, seeds, order):
    """Print F by groups seen, mean over seeds."""
    found = {}
    for seed in seeds:
        found[seed] = session(seed, order)
        last = [row for row in found[seed] if row[2] is not None][-1]
        print(f"seed {seed}: after 30 pages F {last[2]:.3f}, untrained {last[3]:.3f}")
    (out / f"studio-curve-{order}.json").write_text(json.dumps(found))
    print("| groups seen | F on new pages | untrained | F of the page shown |")
    print("|---|---|---|---|")
    for n in REPORTED:
        rows = np.array(
            [
                [
                    found[s][n][2],
                    found[s][n][3],
                    np.mean([r[1] for r in found[s][max(0, n - 1) : n + 2]]),
                ]
                for s in seeds
            ]
        )
        new, base, own = rows.mean(axis=0)
        spread = rows[:, 0].std(ddof=1) if len(seeds) > 1 else 0.0
        print(f"| {n} | {new:.3f} ± {spread:.3f} | {base:.3f} | {own:.3f} |")


def made_group(rng, n_rows, centres):
    """Return a group of rows of 12 kinds in 64 dimensions, and what is picked."""
    kind = rng.integers(12, size=n_rows)
    vectors = centres[kind] + 0.5 * rng.standard_normal((n_rows, 64))
    quality = rng.standard_normal((n_rows, 8))
    best = [
        np.flatnonzero(kind == k)[np.argmax(quality[kind == k, 0])]
        for k in range(8)
        if (kind == k).any()
    ]
    return vg.GroundSet(quality, vectors), np.sort(np.array(best))


class Made:
    """Groups of random rows as material."""

    kind, nouns, prior = "table", ("row", "rows"), None

    def __init__(self, sets):
        self.sets = sets
        self.names = [str(number) for number in range(len(sets))]
        self.sizes = [len(one) for one in sets]
        self.feature_names = [f"q{k}" for k in range(8)]
        self.kernels = {"16 kinds": vg.Kinds(16, penalty=1e-2)}

    def ground_set(self, group):
        """Return the features of a group."""
        return self.sets[group]

    def items(self, group):
        """Return nothing that is shown, but names."""
        return [Item(str(n)) for n in range(self.sizes[group])]


def report(name, seconds):
    """Print the median and the largest of some times."""
    print(f"{name}: median {np.median(seconds):.3f} s, largest {max(seconds):.3f} s")


def time_all(out, seeds, order):
    """Print how long learning and choosing take, in seconds on the clock."""
    rng = np.random.default_rng(0)
    centres = rng.standard_normal((12, 64))
    groups = [made_group(rng, 50, centres) for _ in range(110)]
    teacher = Teacher(Made([one for one, _ in groups]), compares=False)
    done = [(number, picks) for number, (_, picks) in enumerate(groups)]
    teacher.teach(dict(done[:99]))
    teacher.wait(120)
    seconds = []
    for n in range(100, 106):
        started = time.perf_counter()
        teacher.teach(dict(done[:n]))
        while teacher.learned.n_groups < n:
            time.sleep(0.001)
        seconds.append(time.perf_counter() - started)
        teacher.wait(120)
    report("learning after a group, 100 groups of 50 rows", seconds)
    teacher.close()
    kernels = {"k": vg.Kinds(16, penalty=1e-2)}
    candidate = candidates_for(kernels, [g for g, _ in groups])["k"]
    family = odds_family(fit_model(candidate, groups[:30]))
    for n_rows in (100, 2000):
        material = Made([made_group(rng, n_rows, centres)[0]])
        proposer = Proposer(material, LearningResult(30, family))
        proposer.propose(0)
        seconds = []
        for omega in np.geomspace(1 / 30, 30, 8):
            started = time.perf_counter()
            proposer.propose(0, float(omega))
            seconds.append(time.perf_counter() - started)
        report(f"slider to new choice, {n_rows} rows", seconds)


def main():
    """Run one part."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parts = {"curve": curve, "time": time_all}
    parser.add_argument("part", choices=parts)
    parser.add_argument("--out", type=Path, default=Path("."))
    parser.add_argument("--seeds", default="1,2,3,4,5")
    parser.add_argument("--order", choices=("unsure", "given"), default="unsure")
    given = parser.parse_args()
    given.out.mkdir(parents=True, exist_ok=True)
    seeds = [int(seed) for seed in given.seeds.split(",")]
    parts[given.part](given.out, seeds, given.order)


if __name__ == "__main__":
    main()

"""CPU seconds and choices of ``vg.select``, and of learning, with given items.

    python -m benchmarks.given_items [--repeats 7] [--candidates 50000]

10 of the candidates are chosen, with and without given items, in turn in one process.
Run it with OPENBLAS_NUM_THREADS=1.  Vectors are Gaussian; relevance is the cosine with
a query, or equal for all.  "ratio" is the median CPU time with given items over that
without, with the least and largest ratio of a pair of runs.  In "pages", every tenth
candidate is a near copy of a given item, at a cosine of about 0.95, and the most
relevant items are among these; the columns are the mean relevance of the picks, as a
share of that of the most relevant new candidates, and the near copies among the picks.

"learning" compares one evaluation of objective and gradient where a quarter of the
items is given, and 5 are wanted, with the same sets without given items: with 5 wanted
ones, and with as many as are wanted or given.
"""

import argparse
import itertools
import time
from functools import partial

import numpy as np

import variegate as vg
from paper.text_tables import markdown_table
from variegate.learning.examples import check_examples
from variegate.learning.objective import LargeMarginLoss
from variegate.learning.problem import TrainingProblem

WIDTHS = (64, 384)
#: Numbers of given items, and the share of dimensions that they span.
GIVEN = {"10": (10, 1.0), "1,000": (1000, 1.0), "1,000 in a quarter": (1000, 0.25)}
METHODS = ("dpp", "mmr", "max-min", "top")
#: Numbers of ground sets to learn from, by their size.
SETS = {10: 2000, 50: 200, 250: 10, 1000: 2}


def draw_given(rng, width, n_given, share):
    """Return given items that span a share of the dimensions."""
    rank = int(width * share)
    plane = np.linalg.qr(rng.standard_normal((width, rank)))[0].T
    return rng.standard_normal((n_given, rank)) @ plane


def seconds(E, relevance, method, given):
    """Return the CPU seconds of a choice of 10 items."""
    start = time.process_time()
    vg.select(E, relevance, 10, method, given=given)
    return time.process_time() - start


def rows_of_times(rng, n_candidates, repeats):
    """Yield a row for each width, method, relevance and number of given items."""
    for width in WIDTHS:
        E = rng.standard_normal((n_candidates, width))
        cosines = E @ rng.standard_normal(width)
        kinds = {"cosine": cosines, "equal": None}
        for title, (n_given, share) in GIVEN.items():
            G = draw_given(rng, width, n_given, share)
            for method, name in itertools.product(METHODS, kinds):
                run = partial(seconds, E, kinds[name], method)
                # The first pair compiles.
                pairs = [(run(None), run(G)) for _ in range(repeats + 1)][1:]
                plain, besides = np.median(pairs, axis=0)
                ratios = [later / first for first, later in pairs]
                ratio = f"{besides / plain:.2f} [{min(ratios):.2f}, {max(ratios):.2f}]"
                yield str(width), method, name, title, f"{plain:.3f}", ratio


def rows_of_pages(rng, n_candidates):
    """Yield a row for each width, method and number of given items."""
    for width in WIDTHS:
        for title, (n_given, share) in GIVEN.items():
            G = draw_given(rng, width, n_given, share)
            G /= np.linalg.norm(G, axis=1, keepdims=True)
            E = rng.standard_normal((n_candidates, width))
            E /= np.linalg.norm(E, axis=1, keepdims=True)
            is_near = np.arange(n_candidates) % 10 == 0
            E[is_near] = G[rng.integers(n_given, size=is_near.sum())] + E[is_near] / 3
            relevance = rng.standard_normal(n_candidates) + 3.0 * is_near
            for method in METHODS:
                picks = vg.select(E, relevance, 10, method, given=G)
                most = np.sort(relevance[~is_near])[-10:].mean()
                kept = relevance[picks].mean() / most
                yield (
                    str(width),
                    method,
                    title,
                    f"{kept:.2f}",
                    str(is_near[picks].sum()),
                )


def evaluation(n_items, n_sets, n_given, n_wanted):
    """Return a function that evaluates the objective of random ground sets."""
    rng = np.random.default_rng(n_items)
    ground_sets = [
        vg.GroundSet(
            rng.standard_normal((n_items, 10)),
            rng.standard_normal((n_items, 8)),
            given=range(n_given),
        )
        for _ in range(n_sets)
    ]
    wanted = [range(n_given, n_given + n_wanted)] * n_sets
    kernel = vg.MultipleKernel(bandwidths=[1.0, 2.0]).fit(ground_sets)
    examples = check_examples(ground_sets, wanted, 1.0)
    problem = TrainingProblem(examples, kernel, LargeMarginLoss(1.0, False), n_jobs=1)
    return partial(problem.value_and_gradient, problem.space.center())


def rows_of_learning(repeats):
    """Yield a row for each size of a ground set: the least time of ``repeats``."""
    for n_items, n_sets in SETS.items():
        n_given = n_items // 4
        ways = [
            evaluation(n_items, n_sets, *counts)
            for counts in ((0, 5), (n_given, 5), (0, 5 + n_given))
        ]
        seconds = []
        for _ in range(3 * repeats + 1):
            for way in ways:
                start = time.process_time()
                way()
                seconds.append(time.process_time() - start)
        few, given, many = np.reshape(seconds, (-1, 3))[1:].min(axis=0)
        ratios = f"{given / few:.2f}", f"{given / many:.2f}"
        yield f"{n_items:,}", f"{1e3 * given / n_sets:.3g} ms", *ratios


def main():
    """Print the three tables."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--repeats", type=int, default=7)
    parser.add_argument("--candidates", type=int, default=50_000)
    options = parser.parse_args()
    rng = np.random.default_rng(0)
    print("learning\n")
    header = ("items", "time a set", "of 5 wanted", "of as many wanted")
    print(markdown_table(header, list(rows_of_learning(options.repeats))), flush=True)
    print("\nchoices\n")
    header = ("width", "method", "relevance", "given", "seconds without", "ratio")
    rows = rows_of_times(rng, options.candidates, options.repeats)
    print(markdown_table(header, list(rows)), flush=True)
    print("\npages\n")
    header = ("width", "method", "given", "relevance", "near copies")
    print(markdown_table(header, list(rows_of_pages(rng, options.candidates))))


if __name__ == "__main__":
    main()

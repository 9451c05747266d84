"""Draw the picture of docs/concepts.md: candidates, similarity, subsets, decoder."""

from itertools import chain, combinations

import numpy as np
from matplotlib.figure import Figure
from matplotlib.patches import FancyBboxPatch

BLUE = "#0072B2"
GREY = "#b5bcc4"
STEPS = [
    "examples:\ngroups and\nchosen subsets",
    "learning\n(with ω and λ)",
    "quality and\nsimilarity of\ncandidates",
    "probability of\nevery subset",
    "decoder",
    "selection:\none subset",
]


def draw_concepts(points, names, quality, similarity, ensemble, chosen):
    """Draw the steps of a model, and one group with its most probable subsets."""
    figure = Figure(figsize=(9.6, 4.8), layout="constrained")
    grid = figure.add_gridspec(2, 3, height_ratios=[0.9, 3], width_ratios=[1.2, 1, 1.1])
    draw_steps(figure.add_subplot(grid[0, :]))
    draw_group(figure.add_subplot(grid[1, 0]), points, names, quality, chosen)
    draw_similarity(figure.add_subplot(grid[1, 1]), names, similarity)
    draw_subsets(figure.add_subplot(grid[1, 2]), names, ensemble, chosen)
    return figure


def draw_steps(axes):
    axes.set(xlim=(0, len(STEPS)), ylim=(0, 1))
    axes.set_axis_off()
    for number, step in enumerate(STEPS):
        box = FancyBboxPatch(
            (number + 0.08, 0.12),
            0.78,
            0.76,
            boxstyle="round,pad=0.02,rounding_size=0.06",
            facecolor="#eef4f9" if number not in (1, 4) else "#ffffff",
            edgecolor=BLUE,
        )
        axes.add_patch(box)
        axes.text(number + 0.47, 0.5, step, ha="center", va="center", fontsize=9.5)
        if number:
            axes.annotate(
                "",
                (number + 0.06, 0.5),
                (number - 0.12, 0.5),
                arrowprops={"arrowstyle": "-|>", "color": "#444444"},
            )


def draw_group(axes, points, names, quality, chosen):
    colours = [BLUE if i in chosen else GREY for i in range(len(names))]
    axes.scatter(*points.T, s=260 * quality, c=colours, linewidths=0)
    for name, point, size in zip(names, points, quality, strict=True):
        axes.annotate(
            f"{name}  {size:.1f}",
            point,
            (6 + 5 * np.sqrt(size), 0),
            textcoords="offset points",
            va="center",
            fontsize=9.5,
        )
    axes.set_title("a group of five candidates", fontsize=11)
    axes.set_xlabel(
        "size of a dot: quality\nnear dots: similar candidates", fontsize=9.5
    )
    axes.set(xticks=[], yticks=[])
    axes.set(xlim=(-0.6, 3.5), ylim=(-0.6, 2.5))


def draw_similarity(axes, names, similarity):
    axes.imshow(similarity, cmap="Blues", vmin=0, vmax=1.6)
    for i, j in np.ndindex(*similarity.shape):
        axes.text(j, i, f"{similarity[i, j]:.1f}", ha="center", va="center", fontsize=9)
    axes.set_title("similarity of each pair", fontsize=11)
    axes.set_xticks(range(len(names)), names)
    axes.set_yticks(range(len(names)), names)
    axes.tick_params(length=0)
    axes.spines[:].set_visible(False)


def draw_subsets(axes, names, ensemble, chosen, n_shown=9):
    items = range(len(names))
    subsets = list(
        chain(*(combinations(items, size) for size in range(len(names) + 1)))
    )
    probability = {each: np.exp(ensemble.log_prob(list(each))) for each in subsets}
    shown = sorted(subsets, key=probability.get, reverse=True)[:n_shown]
    axes.barh(
        ["{" + " ".join(names[i] for i in each) + "}" for each in shown],
        [probability[each] for each in shown],
        color=[BLUE if set(each) == set(chosen) else GREY for each in shown],
    )
    axes.invert_yaxis()
    axes.spines[["top", "right"]].set_visible(False)
    axes.set_title(f"{n_shown} of the {len(subsets)} subsets", fontsize=11)
    axes.set_xticks([0.0, 0.05, 0.1])
    axes.set_xlabel("probability; blue: the decoder's choice", fontsize=9.5)

"""Draw docs/images/which-method.png: what each method picks from the same points.

Run it with ``python examples/which_method.py [FILE]``.
"""

import sys
from pathlib import Path

import numpy as np
from matplotlib.figure import Figure

from variegate.baselines import METHODS, select
from variegate.report.figures import to_png

PICTURE = Path(__file__).parent.parent / "docs" / "images" / "which-method.png"
K = 8
RING = "#D55E00"


def clusters(rng):
    """Points in the plane: four clusters of different density and a few strays."""
    centres = [(-1.6, 1.2), (1.5, 1.4), (1.3, -1.3), (-1.4, -1.4)]
    spreads = [0.22, 0.45, 0.6, 0.4]
    sizes = [110, 60, 35, 20]
    parts = [
        rng.normal(centre, spread, (size, 2))
        for centre, spread, size in zip(centres, spreads, sizes, strict=True)
    ]
    strays = [(0.0, 0.1), (0.1, 2.4), (-2.7, -0.2), (2.8, 0.2), (-0.1, -2.5)]
    return np.vstack([*parts, strays])


def embed(points, width=0.7):
    """Embeddings whose cosine similarity is a Gaussian of the distance."""
    squared = ((points[:, None] - points) ** 2).sum(axis=2)
    values, vectors = np.linalg.eigh(np.exp(-squared / (2 * width**2)))
    return vectors * np.sqrt(np.maximum(values, 0.0))


def draw(points, relevance, picks):
    figure = Figure(figsize=(9.2, 4.9), layout="constrained")
    *panels, key = figure.subplots(2, 4).ravel()  # the last place is for the key
    for axes, (method, chosen) in zip(panels, picks.items(), strict=True):
        dots = axes.scatter(
            *points.T, c=relevance, s=9, linewidths=0, cmap="GnBu", vmin=-0.35, vmax=1
        )
        axes.scatter(
            *points[chosen].T, s=48, facecolors="none", edgecolors=RING, linewidths=1.6
        )
        axes.set_title(method, fontsize=11)
        axes.set_xlabel(f"mean relevance {relevance[chosen].mean():.2f}", fontsize=9)
        axes.set(xticks=[], yticks=[], aspect="equal", xlim=(-3.2, 3.2))
        axes.set_ylim(-3.3, 2.9)
        axes.grid(visible=False)
        axes.spines[:].set(visible=True, color="#cccccc")
    key.set_axis_off()
    bar = figure.colorbar(dots, cax=key.inset_axes([0.1, 0.1, 0.08, 0.8]))
    bar.ax.set_ylim(0.0, 1.0)
    bar.set_ticks([0.0, 0.5, 1.0])
    bar.set_label("relevance", fontsize=9)
    bar.outline.set_visible(False)
    return figure


def main():
    rng = np.random.default_rng(5)
    points = clusters(rng)
    # The densest cluster is a little more relevant than the rest.
    near = np.exp(-((points - [-1.6, 1.2]) ** 2).sum(axis=1) / 4.0)
    relevance = rng.uniform(0.0, 0.8, len(points)) + 0.2 * near
    embeddings = embed(points)
    picks = {
        method: select(embeddings, relevance, K, method, random_state=0)
        for method in METHODS
    }
    path = Path(sys.argv[1]) if len(sys.argv) > 1 else PICTURE
    path.write_bytes(to_png(draw(points, relevance, picks)))
    print(path)


if __name__ == "__main__":
    main()

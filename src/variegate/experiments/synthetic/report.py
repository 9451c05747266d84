"""The Markdown report of the synthetic experiments."""

from __future__ import annotations

from typing import Any

from variegate.experiments.frame import Results
from variegate.experiments.synthetic.claims import number, signed
from variegate.experiments.synthetic.figures import PANELS
from variegate.experiments.synthetic.settings import Settings
from variegate.experiments.synthetic.summary import AXES, METRICS
from variegate.experiments.wording import numbers
from variegate.report.figures import NAMES
from variegate.report.markdown import markdown_table

_SECTIONS = (
    (
        "fig1a",
        "Figure 1a: learning θ with the true similarity",
        "As in the paper, `q = exp(θᵀx)` without an intercept and `S = X Xᵀ`.",
    ),
    (
        "fig1b",
        "Figure 1b: learning θ with a wrong similarity",
        "As in the paper, without an intercept: only θ can set the scale of `L`.",
    ),
    (
        "fig1b_intercept",
        "Figure 1b with an intercept",
        "The same fits with one more number to learn, the scale of `L`. What maximum "
        "likelihood lost in figure 1b was the scale more than the shape of `S`.",
    ),
    (
        "fig1c",
        "Figure 1c: learning θ and the similarity",
        "A mixture of the Gaussians of figure 1b, no linear part, with an intercept.",
    ),
    (
        "fig1c_no_intercept",
        "Figure 1c without an intercept",
        "As the paper writes the model.",
    ),
    (
        "clean",
        "Clean data",
        "Figure 1a with no noise in training, holdout or test subsets. Most probable "
        "subsets are sharper than samples: the likelihood grows with the length of θ "
        "beyond the true one, which moves the most probable subset.",
    ),
    (
        "gap",
        "What closes the gap of figure 1c",
        "A wide Gaussian is a constant plus an inner product, and the constant is what "
        "the true similarity does not have. Starts, bandwidths and alternation change "
        "little; a log-norm in the quality changes little; taking the constant away "
        "(centring the Gaussians, or anchoring them at the origin, with the same "
        "solver and the same number of weights) is what closes the gap.",
    ),
)

_AXIS_NAMES = {"n_train": "training pairs", "sigma": "σ", "variant": "variant"}


def report(
    settings: Settings, results: Results, claims: str, made_by: str
) -> list[str]:
    """Return the parts of the report."""
    parts = [
        "# The paper's synthetic experiments",
        "![Figure 1](fig1.png)",
        made_by,
        f"{settings.n_draws} draws of θ and of all data; ground sets of 10 items with "
        "5 features, θ from N(0, I), the most probable subset by exhaustive search, "
        f"each item flipped with probability {settings.noise:g}; "
        f"{settings.n_holdout} holdout and {settings.n_test} test pairs; λ from "
        f"{numbers(settings.lambdas)} by the F-score on "
        "the holdout; exact MAP. Means ± standard errors over draws; differences are "
        "paired by draw. F, P, R against the noisy test subsets, *clean F* against "
        "the subsets before the noise.",
    ]
    for figure, title, text in _SECTIONS:
        if figure in results:
            parts += [f"## {title}", text]
            parts += [f"![{title}]({figure}.png)"] * (figure in PANELS)
            parts += [_rows_table(results, figure), _difference_table(results, figure)]
    return [*parts, "## What the paper says and what we measured", claims]


def _rows_table(results: Results, figure: str) -> str:
    axis = AXES[figure]
    header = (_AXIS_NAMES[axis], "method", "F", "P", "R", "clean F")
    return markdown_table(
        (*header, "λ: median (range)"),
        [
            (
                _label(row[axis]),
                NAMES[row["method"]],
                *(number(row[name]) for name in METRICS),
                number(row["against_clean"]["f"]),
                "" if row["lam"] is None else _chosen(row["lam"]["chosen"]),
            )
            for row in results[figure]
        ],
    )


def _difference_table(results: Results, figure: str) -> str:
    axis = AXES[figure]
    header = ("large margin - maximum likelihood: F", "P", "R")
    return markdown_table(
        (_AXIS_NAMES[axis], *header),
        [
            (
                _label(row[axis]),
                *(signed(row[f"{name}_lme_minus_mle"]) for name in METRICS),
            )
            for row in results["differences"][figure]
        ],
    )


def _label(value: Any) -> str:
    return f"{value:g}" if isinstance(value, int | float) else str(value)


def _chosen(lams: list[float]) -> str:
    ordered = sorted(lams)
    median = ordered[len(ordered) // 2]
    return f"{median:g} ({ordered[0]:g}-{ordered[-1]:g})"

"""The Markdown report of the synthetic experiments."""

from __future__ import annotations

from typing import Any

from variegate._version import __version__
from variegate.experiments.outcome import Claim
from variegate.experiments.synthetic.claims import number, signed
from variegate.experiments.synthetic.settings import Settings
from variegate.experiments.synthetic.summary import AXES
from variegate.report.figures import NAMES
from variegate.report.markdown import markdown_table

CLAIM_HEADER = ("what the paper says", "what we measured", "does it hold")

_SECTIONS = (
    (
        "fig1a",
        "Figure 1a: learning θ with the true similarity",
        "training pairs",
        "As in the paper, `q = exp(θᵀx)` without an intercept and `S = X Xᵀ`.",
    ),
    (
        "fig1b",
        "Figure 1b: learning θ with a wrong similarity",
        "σ",
        "As in the paper, without an intercept: only θ can set the scale of `L`.",
    ),
    (
        "fig1b_intercept",
        "Figure 1b with an intercept",
        "σ",
        "The same fits with one more number to learn, the scale of `L`. What maximum "
        "likelihood lost in figure 1b was the scale more than the shape of `S`.",
    ),
    (
        "fig1c",
        "Figure 1c: learning θ and the similarity",
        "training pairs",
        "A mixture of the Gaussians of figure 1b, no linear part, with an intercept.",
    ),
    (
        "fig1c_no_intercept",
        "Figure 1c without an intercept",
        "training pairs",
        "As the paper writes the model.",
    ),
    (
        "clean",
        "Clean data",
        "training pairs",
        "Figure 1a with no noise in training, holdout or test subsets. Most probable "
        "subsets are sharper than samples: the likelihood grows with the length of θ "
        "beyond the true one, which moves the most probable subset.",
    ),
    (
        "gap",
        "What closes the gap of figure 1c",
        "variant",
        "A wide Gaussian is a constant plus an inner product, and the constant is what "
        "the true similarity does not have. Starts, bandwidths and alternation change "
        "little; a log-norm in the quality changes little; taking the constant away "
        "(centring the Gaussians, or anchoring them at the origin, with the same "
        "solver and the same number of weights) is what closes the gap.",
    ),
)

_PICTURES = {"fig1a", "fig1b", "fig1c", "clean", "gap"}


def claims_table(claims: list[Claim]) -> str:
    """Return the last section's table."""
    return markdown_table(
        CLAIM_HEADER, [(claim.paper, claim.measured, claim.holds) for claim in claims]
    )


def report(
    settings: Settings, results: dict[str, Any], claims: list[Claim], command: str
) -> str:
    """Return the whole report."""
    parts = [
        "# The paper's synthetic experiments",
        "![Figure 1](fig1.png)",
        f"Made by `{command}` with variegate {__version__}.",
        f"{settings.n_draws} draws of θ and of all data; ground sets of 10 items with "
        "5 features, θ from N(0, I), the most probable subset by exhaustive search, "
        f"each item flipped with probability {settings.noise:g}; "
        f"{settings.n_holdout} holdout and {settings.n_test} test pairs; λ from "
        f"{{{', '.join(f'{lam:g}' for lam in settings.lambdas)}}} by the F-score on "
        "the holdout; exact MAP. Means ± standard errors over draws; differences are "
        "paired by draw. F, P, R against the noisy test subsets, *clean F* against "
        "the subsets before the noise.",
    ]
    for figure, title, axis, text in _SECTIONS:
        if figure not in results:
            continue
        parts += [f"## {title}", text]
        if figure in _PICTURES:
            parts.append(f"![{title}]({figure}.png)")
        parts.append(_rows_table(results, figure, axis))
        parts.append(_difference_table(results, figure, axis))
    parts += ["## What the paper says and what we measured", claims_table(claims)]
    return "\n\n".join(parts) + "\n"


def _rows_table(results: dict[str, Any], figure: str, axis: str) -> str:
    rows = []
    for row in results[figure]:
        lam = row["lam"]
        rows.append(
            (
                _label(row[AXES[figure]]),
                NAMES[row["method"]],
                number(row["f"]),
                number(row["precision"]),
                number(row["recall"]),
                number(row["against_clean"]["f"]),
                "" if lam is None else _chosen(lam["chosen"]),
            )
        )
    header = (axis, "method", "F", "P", "R", "clean F", "λ: median (range)")
    return markdown_table(header, rows)


def _difference_table(results: dict[str, Any], figure: str, axis: str) -> str:
    rows = [
        (
            _label(row[AXES[figure]]),
            *(
                signed(row[f"{name}_lme_minus_mle"])
                for name in ("f", "precision", "recall")
            ),
        )
        for row in results["differences"][figure]
    ]
    return markdown_table(
        (axis, "large margin - maximum likelihood: F", "P", "R"), rows
    )


def _label(value: Any) -> str:
    return f"{value:g}" if isinstance(value, int | float) else str(value)


def _chosen(lambdas: list[float]) -> str:
    ordered = sorted(lambdas)
    median = ordered[len(ordered) // 2]
    return f"{median:g} ({ordered[0]:g}-{ordered[-1]:g})"

"""The report of the video experiments, in Markdown."""

from __future__ import annotations

from typing import Any

from variegate._version import __version__
from variegate.experiments.outcome import Claim
from variegate.experiments.video.claims import PAPER, interval
from variegate.experiments.video.figures import label
from variegate.experiments.video.rows import HERO, SCORES
from variegate.experiments.video.settings import Settings
from variegate.report.markdown import markdown_table

__all__ = ["CLAIM_HEADER", "report"]

CLAIM_HEADER = ("the paper, its own frames", "measured here, the pool", "holds")

_NOT_THE_PAPER = (
    "This is not the paper's table. Its frames and features are not public: what is "
    "public of its 50 videos are the frames that four other methods chose, about 25 a "
    "video, and only of 40 of them. Here these frames are what is chosen from, so "
    "every method starts from a choice already made, and a user's frame that has no "
    "public picture within 60 frames cannot be matched. The paper's numbers stand "
    "beside ours for reference, not for comparison."
)


def report(
    settings: Settings, results: dict[str, Any], claims: list[Claim], command: str
) -> str:
    """Return the whole report."""
    n_videos = max(row["n_videos"] for row in results["rows"])
    parts = [
        "# Video summarization (section 4.3 of the paper)",
        f"Made by `{command}` with variegate {__version__}.",
        _NOT_THE_PAPER,
        f"{n_videos} videos"
        + (
            ", learned from others"
            if results["test_data"]
            else f", {settings.n_folds} parts held out in turn"
        )
        + f". λ from {_numbers(settings.lambdas)}, l2 from "
        f"{_numbers(settings.ridges)}, quality features from "
        f"{{{', '.join(settings.feature_sets)}}} and the best ω from "
        f"{_numbers(settings.inner_omegas)} are chosen on the training videos "
        f"({settings.n_inner} parts held out in turn), and so are the numbers of "
        "frames of k-means, uniform and random. Rows of the DPP are means ± standard "
        f"errors of {settings.n_runs} runs of MBR decoding with {settings.n_samples} "
        "samples.",
        "## Table 2",
        "![F-scores](table-2.png)",
        _rows(results["rows"]),
        f"{HERO}, less the other, with 95% intervals of a paired bootstrap over "
        "videos:",
        _differences(results),
        "## Figure 2: precision and recall",
        "![precision and recall](figure-2.png)",
        _over_one(results),
        "## What each step bought",
        "From what the paper describes to what this library does; settings fixed, one "
        "run, the same held-out videos.",
        "![steps](steps.png)",
        _steps(results["steps"]),
        f"## Figure 3: one video ({results['storyboard']})",
        "![storyboard](figure-3.png)",
        "## What the paper says and what we measured",
        markdown_table(CLAIM_HEADER, [(c.paper, c.measured, c.holds) for c in claims]),
        "## What was chosen on the training videos",
        markdown_table(
            ("method", "held out", "λ", "l2", "features", "ω"),
            [
                (
                    c["method"],
                    f"{len(c['videos'])} videos",
                    f"{c['lam']:g}",
                    f"{c['l2']:g}",
                    c["features"],
                    f"{c['omega']:g}" if c["lam"] else "",
                )
                for c in results["chosen"]
            ],
        ),
    ]
    return "\n\n".join(parts) + "\n"


def _numbers(values: tuple[float, ...]) -> str:
    return "{" + ", ".join(f"{value:g}" for value in values) + "}"


def _rows(rows: list[dict[str, Any]]) -> str:
    lines = []
    for row in sorted(rows, key=lambda row: -row["f"]):
        paper = PAPER.get((row["method"], row["omega"]))
        lines.append(
            (
                label(row),
                f"{row['n_frames']:.1f}",
                *(_with_error(row, score) for score in SCORES),
                "" if paper is None else " / ".join(f"{v:.1f}" for v in paper),
            )
        )
    header = ("method", "frames", "precision", "recall", "F", "the paper: P / R / F")
    return markdown_table(header, lines)


def _with_error(row: dict[str, Any], score: str) -> str:
    error = row["se"][score]
    more = "" if error is None else f" ± {100 * error:.1f}"
    return f"{100 * row[score]:.1f}{more}"


def _differences(results: dict[str, Any]) -> str:
    return markdown_table(
        ("method", "precision", "recall", "F"),
        [
            (
                label({"method": c["less"], "omega": c["less_omega"]}),
                *(interval(c, score) for score in SCORES),
            )
            for c in results["comparisons"]
            if c["method"] == HERO
        ],
    )


def _over_one(results: dict[str, Any]) -> str:
    return markdown_table(
        ("less ω = 1", "precision", "recall", "F"),
        [
            (label(c), *(interval(c, score) for score in SCORES))
            for c in results["comparisons"]
            if c["method"] == "LME+MKR"
        ],
    )


def _steps(steps: list[dict[str, Any]]) -> str:
    return markdown_table(
        ("step", "frames", "precision", "recall", "F"),
        [
            (
                row["method"],
                f"{row['n_frames']:.1f}",
                *(f"{100 * row[score]:.1f}" for score in SCORES),
            )
            for row in steps
        ],
    )

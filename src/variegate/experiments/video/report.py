"""The report of the video experiments, in Markdown."""

from __future__ import annotations

from typing import Any

from variegate.experiments.frame import Results
from variegate.experiments.video.claims import PAPER
from variegate.experiments.video.figures import label
from variegate.experiments.video.rows import HERO, SCORES
from variegate.experiments.video.settings import Settings, Setup
from variegate.experiments.wording import interval, numbers, with_error
from variegate.report.markdown import markdown_table

__all__ = ["report"]

_NOT_THE_PAPER = (
    "This is not the paper's table. Its frames and features are not public: what is "
    "public of its 50 videos are the frames that four other methods chose, about 25 a "
    "video, and only of 40 of them. Here these frames are what is chosen from, so "
    "every method starts from a choice already made, and a user's frame that has no "
    "public picture within 60 frames cannot be matched. The paper's numbers stand "
    "beside ours for reference, not for comparison."
)


def report(setup: Setup, results: Results, claims: str, made_by: str) -> list[str]:
    """Return the parts of the report."""
    return [
        "# Video summarization (section 4.3 of the paper)",
        made_by,
        _NOT_THE_PAPER,
        _how(setup.settings, results),
        "## Table 2",
        "![F-scores](table-2.png)",
        _rows(results),
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
        _steps(results),
        f"## Figure 3: one video ({results['storyboard']})",
        "![storyboard](figure-3.png)",
        "## What the paper says and what we measured",
        claims,
        "## What was chosen on the training videos",
        _chosen(results),
    ]


def _how(settings: Settings, results: Results) -> str:
    n_videos = max(row["n_videos"] for row in results["rows"])
    turns = f"{settings.n_folds} parts held out in turn"
    return (
        f"{n_videos} videos, "
        f"{'learned from others' if results['test_data'] else turns}. "
        f"λ from {numbers(settings.lambdas)}, l2 from "
        f"{numbers(settings.ridges)}, quality features from "
        f"{{{', '.join(settings.feature_sets)}}} and the best ω from "
        f"{numbers(settings.inner_omegas)} are chosen on the training videos "
        f"({settings.n_inner} parts held out in turn), and so are the numbers of "
        "frames of k-means, uniform and random. Rows of the DPP are means ± standard "
        f"errors of {settings.n_runs} runs of MBR decoding with {settings.n_samples} "
        "samples."
    )


def _rows(results: Results) -> str:
    lines = []
    for row in sorted(results["rows"], key=lambda row: -row["f"]):
        paper = PAPER.get((row["method"], row["omega"]), ())
        lines.append(
            (
                label(row),
                f"{row['n_frames']:.1f}",
                *(with_error(row, score, 1) for score in SCORES),
                " / ".join(f"{value:.1f}" for value in paper),
            )
        )
    header = ("method", "frames", "precision", "recall", "F", "the paper: P / R / F")
    return markdown_table(header, lines)


def _differences(results: Results) -> str:
    compared = [c for c in results["comparisons"] if c["method"] == HERO]
    names = [label({"method": c["less"], "omega": c["less_omega"]}) for c in compared]
    return _intervals("method", names, compared)


def _over_one(results: Results) -> str:
    compared = [c for c in results["comparisons"] if c["method"] == "LME+MKR"]
    return _intervals("less ω = 1", [label(c) for c in compared], compared)


def _intervals(title: str, names: list[str], compared: list[dict[str, Any]]) -> str:
    return markdown_table(
        (title, "precision", "recall", "F"),
        [
            (name, *(interval(c, score, 1) for score in SCORES))
            for name, c in zip(names, compared, strict=True)
        ],
    )


def _steps(results: Results) -> str:
    return markdown_table(
        ("step", "frames", "precision", "recall", "F"),
        [
            (
                row["method"],
                f"{row['n_frames']:.1f}",
                *(f"{100 * row[score]:.1f}" for score in SCORES),
            )
            for row in results["steps"]
        ],
    )


def _chosen(results: Results) -> str:
    return markdown_table(
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
    )

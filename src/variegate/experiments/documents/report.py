"""The Markdown report of the document experiments."""

from __future__ import annotations

from typing import Any

from variegate._version import __version__
from variegate.experiments.documents.claims import PAPER
from variegate.experiments.documents.rows import SCORES
from variegate.experiments.documents.settings import Settings
from variegate.experiments.outcome import Claim
from variegate.report.markdown import markdown_table

CLAIM_HEADER = ("what the paper says", "what we measured", "does it hold")

_HEADER = ("method", *(f"R{name[6]} {name[8].upper()}" for name in SCORES))

_ABOUT = {
    "duc 2004 665b": "The paper's own protocol: learned on DUC 2003, judged on 2004.",
    "multiling english 250w": "ROUGE-1.5.5 without stemming, as published.",
    "multiling english 665b": "ROUGE-1.5.5 with stemming, 665 bytes, as for DUC 2004.",
    "multiling all languages 250w": "ROUGE in Unicode where ROUGE-1.5.5 cannot read.",
    "fewsum 300c": "Reviews: learned on the training part, judged on the other.",
}


def report(
    settings: Settings, results: dict[str, Any], claims: list[Claim], command: str
) -> str:
    """Return the whole report."""
    parts = [
        "# Document summarization (section 4.2 of the paper)",
        f"Made by `{command}` with variegate {__version__}.",
        "The paper's data (DUC 2003 and 2004) are licensed and not used here; these "
        "are the clusters of the MultiLing pilot of 2011 and of FewSum. Topics are "
        "left out one at a time, in all their languages at once, unless test data "
        f"were given. λ from {_numbers(settings.lambdas)}, l2 from "
        f"{_numbers(settings.ridges)} and the consensus of decoding are chosen on the "
        f"training topics ({settings.n_inner} parts held out in turn, cosine "
        f"similarity). Rows of the DPP are means ± standard errors of "
        f"{settings.n_runs} runs of MBR decoding with {settings.n_samples} samples.",
    ]
    for name in dict.fromkeys(row["set"] for row in results["rows"]):
        parts.append(f"## {name}")
        if name in _ABOUT:
            parts += [_ABOUT[name], f"![{name}]({name.replace(' ', '-')}.png)"]
        parts.append(_rows(results, name))
        if name in _ABOUT:
            parts += [
                "LME+MKR less the other, with 95% intervals of a paired bootstrap over "
                "clusters:",
                _differences(results, name),
            ]
    if results["omega"]:
        parts += ["## Precision and recall by ω", "![ω](omega.png)", _omega(results)]
    parts += [
        "## What the paper says and what we measured",
        "Table 1 of the paper, ROUGE-1 F and ROUGE-2 F on DUC 2004: "
        + ", ".join(f"{k} {one:.2f} / {two:.2f}" for k, (one, two) in PAPER.items())
        + ".",
        markdown_table(CLAIM_HEADER, [(c.paper, c.measured, c.holds) for c in claims]),
        "## What was chosen on the training topics",
        markdown_table(
            ("summaries", "held out", "learner", "λ", "l2", "consensus"),
            [
                (
                    c["kind"],
                    c["held_out"],
                    c["learner"],
                    f"{c['lam']:g}",
                    f"{c['l2']:g}",
                    c["consensus"],
                )
                for c in results["chosen"]
            ],
        ),
    ]
    return "\n\n".join(parts) + "\n"


def _numbers(values: tuple[float, ...]) -> str:
    return "{" + ", ".join(f"{value:g}" for value in values) + "}"


def _rows(results: dict[str, Any], name: str) -> str:
    rows = [row for row in results["rows"] if row["set"] == name]
    rows.sort(key=lambda row: -row["rouge_1_f"])
    lines = []
    for row in rows:
        lines.append((row["method"], *(_with_error(row, score) for score in SCORES)))
    return markdown_table(_HEADER, lines)


def _with_error(row: dict[str, Any], score: str) -> str:
    error = row["se"][score]
    more = "" if error is None else f" ± {100 * error:.2f}"
    return f"{100 * row[score]:.2f}{more}"


def _differences(results: dict[str, Any], name: str) -> str:
    lines = []
    for c in results["comparisons"]:
        if c["set"] == name:
            cells = (
                f"{100 * c['difference'][score]:+.2f} "
                f"[{100 * c['low'][score]:+.2f}, {100 * c['high'][score]:+.2f}]"
                for score in ("rouge_1_f", "rouge_2_f")
            )
            lines.append((c["method"], *cells))
    return markdown_table(("method", "ROUGE-1 F", "ROUGE-2 F"), lines)


def _omega(results: dict[str, Any]) -> str:
    return markdown_table(
        ("ω", "words", "ROUGE-1 P", "ROUGE-1 R", "ROUGE-1 F"),
        [
            (
                f"{row['omega']:g}",
                f"{row['words']:.0f}",
                *(_with_error(row, f"rouge_1_{letter}") for letter in "prf"),
            )
            for row in results["omega"]
        ],
    )

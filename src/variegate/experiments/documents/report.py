"""The Markdown report of the document experiments."""

from __future__ import annotations

from variegate.experiments.documents.claims import PAPER
from variegate.experiments.documents.rows import ABOUT, SCORES
from variegate.experiments.documents.settings import Settings, Setup
from variegate.experiments.frame import Results
from variegate.experiments.wording import interval, numbers, with_error
from variegate.report.markdown import markdown_table

_HEADER = ("method", *(f"R{name[6]} {name[8].upper()}" for name in SCORES))


def report(setup: Setup, results: Results, claims: str, made_by: str) -> list[str]:
    """Return the parts of the report."""
    parts = [
        "# Document summarization (section 4.2 of the paper)",
        made_by,
        _how(setup.settings),
    ]
    for name in dict.fromkeys(row["set"] for row in results["rows"]):
        parts.append(f"## {name}")
        if name in ABOUT:
            parts += [ABOUT[name], f"![{name}]({name.replace(' ', '-')}.png)"]
        parts.append(_rows(results, name))
        if name in ABOUT:
            parts += [
                "LME+MKR less the other, with 95% intervals of a paired bootstrap over "
                "clusters:",
                _differences(results, name),
            ]
    if results["omega"]:
        parts += ["## Precision and recall by ω", "![ω](omega.png)", _omega(results)]
    paper = (f"{name} {one:.2f} / {two:.2f}" for name, (one, two) in PAPER.items())
    return [
        *parts,
        "## What the paper says and what we measured",
        "Table 1 of the paper, ROUGE-1 F and ROUGE-2 F on DUC 2004: "
        f"{', '.join(paper)}.",
        claims,
        "## What was chosen on the training topics",
        _chosen(results),
    ]


def _how(settings: Settings) -> str:
    return (
        "The paper's data (DUC 2003 and 2004) are licensed and not used here; these "
        "are the clusters of the MultiLing pilot of 2011 and of FewSum. Topics are "
        "left out one at a time, in all their languages at once, unless test data "
        f"were given. λ from {numbers(settings.lambdas)}, l2 from "
        f"{numbers(settings.ridges)} and the consensus of decoding are chosen on the "
        f"training topics ({settings.n_inner} parts held out in turn, cosine "
        f"similarity). Rows of the DPP are means ± standard errors of "
        f"{settings.n_runs} runs of MBR decoding with {settings.n_samples} samples."
    )


def _rows(results: Results, name: str) -> str:
    rows = [row for row in results["rows"] if row["set"] == name]
    rows.sort(key=lambda row: -row["rouge_1_f"])
    return markdown_table(
        _HEADER,
        [
            (row["method"], *(with_error(row, score, 2) for score in SCORES))
            for row in rows
        ],
    )


def _differences(results: Results, name: str) -> str:
    return markdown_table(
        ("method", "ROUGE-1 F", "ROUGE-2 F"),
        [
            (c["method"], *(interval(c, f"rouge_{n}_f", 2) for n in (1, 2)))
            for c in results["comparisons"]
            if c["set"] == name
        ],
    )


def _omega(results: Results) -> str:
    return markdown_table(
        ("ω", "words", "ROUGE-1 P", "ROUGE-1 R", "ROUGE-1 F"),
        [
            (
                f"{row['omega']:g}",
                f"{row['words']:.0f}",
                *(with_error(row, f"rouge_1_{letter}", 2) for letter in "prf"),
            )
            for row in results["omega"]
        ],
    )


def _chosen(results: Results) -> str:
    return markdown_table(
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
    )

"""What the paper says about documents, and what we measured."""

from __future__ import annotations

from typing import Any

from variegate.experiments.outcome import Claim

__all__ = ["ORDERS", "PAPER", "claims"]

#: Table 1 of the paper: ROUGE-1 and ROUGE-2 F on DUC 2004, 665 characters.
PAPER = {
    "MLE+COS": (37.89, 7.72),
    "LME+COS": (38.36, 8.20),
    "MLE+MKR": (39.14, 9.25),
    "LME+MKR": (39.71, 9.40),
}

_SETS = ("duc 2004 665b", "multiling english 665b", "multiling all languages 250w")

#: The official system that sees the references.
_TOPLINE = "official ID10"

_SAID = (
    ("large margin beats maximum likelihood, cosine", "LME+COS", "MLE+COS"),
    ("large margin beats maximum likelihood, multiple kernels", "LME+MKR", "MLE+MKR"),
    ("multiple kernels beat the cosine, maximum likelihood", "MLE+MKR", "MLE+COS"),
    ("multiple kernels beat the cosine, large margin", "LME+MKR", "LME+COS"),
)

#: The pairs of methods that the paper compares.
ORDERS = tuple((first, second) for _, first, second in _SAID)


def claims(results: dict[str, Any]) -> list[Claim]:
    """Return the claims of section 4.2 in the order of its table."""
    found = []
    rows = {(row["set"], row["method"]): row for row in results["rows"]}
    pairs = {(c["set"], c["first"], c["second"]): c for c in results["paired"]}
    for text, first, second in _SAID:
        (paper_1, paper_2), (other_1, other_2) = PAPER[first], PAPER[second]
        said = (
            f"{text}: {paper_1 - other_1:+.2f} ROUGE-1 F, "
            f"{paper_2 - other_2:+.2f} ROUGE-2 F"
        )
        measured, verdicts = [], []
        for name in _SETS:
            if (name, first, second) not in pairs:
                continue
            c = pairs[name, first, second]
            measured.append(f"{name}: {_interval(c, 'rouge_1_f')}")
            verdicts.append(_verdict(c["low"]["rouge_1_f"], c["high"]["rouge_1_f"]))
        if measured:
            found.append(Claim(said, "; ".join(measured), _together(verdicts)))
    for name in ("multiling english 250w", "multiling english 665b"):
        if (name, "LME+MKR") in rows:
            found.append(_systems(name, results, rows))
    return found


def _systems(name: str, results: dict[str, Any], rows: dict[Any, Any]) -> Claim:
    hero = rows[name, "LME+MKR"]
    others = {
        method: row
        for (of_set, method), row in rows.items()
        if of_set == name and method.startswith("official ")
    }
    below = [
        method.removeprefix("official ")
        for method, row in others.items()
        if row["rouge_1_f"] < hero["rouge_1_f"] and row["rouge_2_f"] < hero["rouge_2_f"]
    ]
    return Claim(
        "the complete method is above the best systems of the competition (DUC 2004)",
        f"{name}: {100 * hero['rouge_1_f']:.2f} / {100 * hero['rouge_2_f']:.2f}, above "
        f"{len(below)} of {len(others)} official systems in both (ID10 is the topline, "
        "which sees the references)",
        "yes" if set(others) - {f"official {b}" for b in below} <= {_TOPLINE} else "no",
    )


def _interval(c: dict[str, Any], score: str) -> str:
    return (
        f"{100 * c['difference'][score]:+.2f} "
        f"[{100 * c['low'][score]:+.2f}, {100 * c['high'][score]:+.2f}]"
    )


def _verdict(low: float, high: float) -> str:
    if low > 0.0:
        return "yes"
    return "no" if high < 0.0 else "not told apart"


def _together(verdicts: list[str]) -> str:
    return verdicts[0] if len(set(verdicts)) == 1 else " / ".join(verdicts)

"""What the paper says about documents, and what we measured."""

from __future__ import annotations

from typing import Any

from paper.documents.settings import Setup
from paper.experiment import Claim, Results, interval, verdict

#: Table 1 of the paper: ROUGE-1 and ROUGE-2 F on DUC 2004, 665 characters.
PAPER = {
    "MLE+COS": (37.89, 7.72),
    "LME+COS": (38.36, 8.20),
    "MLE+MKR": (39.14, 9.25),
    "LME+MKR": (39.71, 9.40),
}

_SETS = ("duc 2004 665b", "multiling english 665b", "multiling all languages 250w")

#: The score that decides.
_JUDGED = "rouge_1_f"

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


def claims(setup: Setup, results: Results) -> list[Claim]:
    """Return the claims of section 4.2 in the order of its table."""
    found = []
    pairs = {(c["set"], c["first"], c["second"]): c for c in results["paired"]}
    for text, first, second in _SAID:
        gains = (a - b for a, b in zip(PAPER[first], PAPER[second], strict=True))
        said = "{}: {:+.2f} ROUGE-1 F, {:+.2f} ROUGE-2 F".format(text, *gains)
        keys = [key for name in _SETS if (key := (name, first, second)) in pairs]
        measured = [f"{key[0]}: {interval(pairs[key], _JUDGED, 2)}" for key in keys]
        verdicts = [verdict(pairs[key], _JUDGED) for key in keys]
        if measured:
            holds = verdicts[:1] if len(set(verdicts)) == 1 else verdicts
            found.append(Claim(said, "; ".join(measured), " / ".join(holds)))
    rows = {(row["set"], row["method"]): row for row in results["rows"]}
    official = {row["set"] for row in rows.values() if "official" in row["method"]}
    for name in ("multiling english 250w", "multiling english 665b"):
        if (name, "LME+MKR") in rows and name in official:
            found.append(_systems(name, rows))
    return found


def _systems(name: str, rows: dict[Any, Any]) -> Claim:
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

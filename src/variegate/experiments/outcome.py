"""What every experiment ends in."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

__all__ = ["Claim", "Outcome"]


@dataclass(frozen=True)
class Claim:
    """A statement of the paper beside our measurement of it."""

    paper: str
    measured: str
    holds: str


@dataclass(frozen=True)
class Outcome:
    """What a run found, and the files it wrote."""

    results: dict[str, Any]
    claims: list[Claim]
    files: list[Path]

"""Labels of documents from their metadata, to limit the documents of each label."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from variegate.integrations.core import Candidates


def labels_of(candidates: Candidates, per: str) -> list[str]:
    """Return the metadata ``per`` of every candidate as text; all must have it."""
    for place, metadata in zip(candidates.places, candidates.metadata, strict=True):
        if metadata.get(per) is None:
            raise ValueError(
                f"document {place} has no metadata {per!r}, which per names: give it "
                "to every document"
            )
    # Metadata may be lists, which are not hashable.
    return [str(metadata[per]) for metadata in candidates.metadata]


def largest_k(labels: Sequence[str], at_most: int) -> int:
    """Return the largest number of documents, at most ``at_most`` of each label."""
    return sum(min(number, at_most) for number in Counter(labels).values())

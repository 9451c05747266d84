"""Where the data are, and which of it each experiment learns from and is judged on."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from paper.documents.duc import read_duc
from paper.held_out import find_folder
from variegate.text import Cluster, Rouge, read_clusters
from variegate.text.rouge import read_exceptions

_MULTILING = "multiling2011.jsonl"
_SYSTEMS = "multiling2011_systems.jsonl"
_FEWSUM = "fewsum.jsonl"
_EXCEPTIONS = "wordnet2_exceptions.tsv"


@dataclass(frozen=True, eq=False)
class Corpus:
    """The data of one folder.

    Clusters of the MultiLing pilot, ``group`` their topic; the English summary of each
    topic by each official system; and FewSum clusters by split.
    """

    news: list[Cluster]
    systems: dict[str, dict[str, str]]
    reviews: dict[str, list[Cluster]]

    def topics(self) -> list[str]:
        """Return the topics of the news."""
        return sorted({topic_of(cluster) for cluster in self.news})


def find_data(given: Path | None, option: str = "--data") -> Path:
    """Return the folder of texts: see :func:`find_folder`."""
    return find_folder(given, _MULTILING, ["text"], option)


@lru_cache(maxsize=4)
def load_corpus(name: str) -> Corpus:
    """Read all that a folder holds; the systems and the reviews may be missing."""
    folder = Path(name)
    systems: dict[str, dict[str, str]] = {}
    if (folder / _SYSTEMS).is_file():
        for line in (folder / _SYSTEMS).read_text(encoding="utf-8").splitlines():
            entry = json.loads(line)
            systems.setdefault(entry["peer"], {})[entry["id"]] = entry["summary"]
    reviews: dict[str, list[Cluster]] = {}
    if (folder / _FEWSUM).is_file():
        clusters = read_clusters(folder / _FEWSUM)
        lines = (folder / _FEWSUM).read_text(encoding="utf-8").splitlines()
        splits = [json.loads(line).get("split", "") for line in lines if line.strip()]
        for split, cluster in zip(splits, clusters, strict=True):
            reviews.setdefault(split, []).append(cluster)
    return Corpus(read_clusters(folder / _MULTILING), systems, reviews)


def rouge_for(kind: str, cluster: Cluster, folder: Path) -> Rouge:
    """Return the scorer of an experiment, as its scores are published.

    "long" is 250 words without stemming; "short" 665 bytes with stemming; "reviews"
    has stemming and no limit.  Languages that ROUGE-1.5.5 cannot read are scored in
    Unicode, unstemmed.  The folder may hold the table of irregular forms.
    """
    english = cluster.language in (None, "english")
    if kind == "long":
        return Rouge(n=(1, 2), unicode=not english)
    table = folder / _EXCEPTIONS
    exceptions = read_exceptions(table) if table.is_file() else None
    if kind == "reviews":
        return Rouge(n=(1, 2), stem=True, exceptions=exceptions)
    return Rouge(
        n=(1, 2),
        stem=english,
        exceptions=exceptions,
        max_bytes=665,
        unicode=not english,
    )


def topic_of(cluster: Cluster) -> str:
    """Return what is held out together: the texts of a topic in all languages."""
    return cluster.group or cluster.id


def held_out_parts(topics: Sequence[str], n_parts: int) -> list[list[str]]:
    """Return the topics in parts, for choosing settings."""
    n_parts = min(n_parts, len(topics))
    return [list(topics[part::n_parts]) for part in range(n_parts)]


def check_duc(folder: Path) -> Path:
    """Return the folder of DUC 2003 and 2004; refuse another shape before any work."""
    for year in ("duc2003", "duc2004"):
        for part in ("docs", "models"):
            if not (folder / year / part).is_dir():
                raise ValueError(
                    f"no folder {year}/{part} in {folder}: --duc DIR expects duc2003 "
                    "and duc2004, each with docs and models as NIST distributes them"
                )
    return folder.resolve()


def read_year(folder: str, year: str) -> list[Cluster]:
    """Return the clusters of ``duc2003`` or ``duc2004``."""
    return read_duc(Path(folder) / year / "docs", Path(folder) / year / "models")

"""Documents as material: the sentences of each cluster, as ``Summarizer`` sees them."""

from __future__ import annotations

import hashlib
import json
import shlex
import tempfile
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from variegate._progress import Progress
from variegate._typing import AnyArray, IntArray
from variegate.files.folders import files_below
from variegate.ground_set import GroundSet
from variegate.kernels import Linear, MultipleKernel
from variegate.studio.material.base import (
    Item,
    Material,
    MaterialError,
    Picks,
    is_any,
)
from variegate.text import Summarizer
from variegate.text.budget import Budget
from variegate.text.cluster_view import ClusterView, feature_names
from variegate.text.documents import Cluster
from variegate.text.languages import language_of
from variegate.text.readers import DOCUMENT_SUFFIXES, read_clusters, read_documents

#: Files that may hold clusters of documents, or a table.
CLUSTER_SUFFIXES = (".jsonl", ".ndjson")

#: Sentences of a cluster, at most.
_MOST_SENTENCES = 5000


class DocumentsMaterial(Material):
    """Sentences of clusters of documents.

    Of a folder of folders, each is a cluster; of a folder of files, each file.  A file
    of JSON lines, as ``variegate fit-summarizer`` reads, has a cluster in each line.
    """

    kind = "documents"
    nouns = ("sentence", "sentences")

    def __init__(
        self, path: Path, prior: Summarizer | None, progress: Progress
    ) -> None:
        self._path = path
        clusters, self.names = _read(path)
        self.prior = None if prior is None else prior.family_
        embed = None if prior is None else prior.embed
        features = "full" if prior is None else prior.features
        self.feature_names = feature_names(features)
        self.kernels = {
            "Gaussians": MultipleKernel(
                bandwidths=[2.0**q for q in range(-6, 7)], linear=True
            ),
            "cosine": Linear(),
        }
        self._views, self._ground_sets = [], []
        for done, cluster in enumerate(clusters, 1):
            view = ClusterView.of(cluster)
            if len(view) > _MOST_SENTENCES:
                raise MaterialError(
                    f"{self.names[done - 1]} has {len(view):,} sentences: divide "
                    f"what has more than {_MOST_SENTENCES:,}"
                )
            self._views.append(view)
            self._ground_sets.append(
                GroundSet(view.quality(features), view.similarity(embed))
            )
            progress("opening", done, len(clusters))
        self.sizes = [len(view) for view in self._views]
        texts = [(n, v.texts) for n, v in zip(self.names, self._views, strict=True)]
        self.fingerprint = hashlib.sha256(json.dumps(texts).encode()).hexdigest()

    def _items(self, group: int) -> Sequence[Item]:
        n_documents = len(self._views[group].cluster.documents)
        items = []
        for number, (document, position, text) in enumerate(self._sentences(group), 1):
            fields = (("document", document),) * (n_documents > 1)
            fields += (("sentence", str(position)),)
            items.append(Item(str(number), text, fields))
        return items

    def _sentences(self, group: int) -> Iterator[tuple[str, int, str]]:
        """Yield document, number in it and text of the sentences of a group."""
        view = self._views[group]
        for sentence, text in zip(view.candidate_sentences, view.texts, strict=True):
            document = view.cluster.documents[sentence.document]
            yield Path(document.id).name, sentence.position + 1, text

    def _picture(self, group: int, item: int) -> AnyArray:
        raise MaterialError("sentences have no pictures")

    _columns_of_picks = (
        ("cluster", "string"),
        ("document", "string"),
        ("sentence", "int64"),
        ("text", "string"),
        ("picked", "int8"),
    )

    def _rows(self, picks: Picks) -> list[tuple[Any, ...]]:
        return [
            (self.names[group], *sentence, int(place in chosen))
            for group, chosen in picks.items()
            for place, sentence in enumerate(self._sentences(group))
        ]

    def picks_text(self, name: str, picks: Picks) -> str | None:
        """Return JSON lines as ``variegate fit-summarizer`` takes them.

        Clusters have their picks as reference summaries; one without picks says
        nothing about summaries.
        """
        if name != "picks.jsonl":
            return None
        lines = []
        for group, chosen in picks.items():
            if len(chosen):
                cluster = self._views[group].cluster
                row: dict[str, Any] = {
                    "id": self.names[group],
                    "documents": [
                        {"id": one.id, "text": one.text} for one in cluster.documents
                    ],
                    "references": ["\n".join(self._picked(group, chosen))],
                }
                if cluster.language is not None:
                    row["language"] = cluster.language
                lines.append(json.dumps(row, ensure_ascii=False) + "\n")
        return "".join(lines)

    def _picked(self, group: int, chosen: IntArray) -> list[str]:
        return [self._views[group].texts[place] for place in chosen]

    def _budget(self, picks: Picks) -> Budget:
        """Return room for the longest of the picks."""
        texts = [" ".join(self._picked(*one)) for one in picks.items()]
        longest = max(1, *(len(text.split()) for text in texts))
        return Budget(longest + longest // 10, "words")

    def learner(self, picks: Picks) -> Callable[[], Summarizer]:
        """Return a function that learns a summarizer from picks.

        By way of a file, as the command does it: the markup of a page is not kept.
        """
        if not any(map(len, picks.values())):
            raise MaterialError("nothing was picked yet")
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "picks.jsonl"
            path.write_text(self.picks_text(path.name, picks) or "", encoding="utf-8")
            clusters = read_clusters(path)
        budget = str(self._budget(picks))
        return partial(Summarizer(omega=(0.25, 1.0, 4.0), budget=budget).fit, clusters)

    def command_line(self, picks: Picks) -> str:
        """Return the commands that learn the same from a file of picks."""
        return (
            f"variegate fit-summarizer picks.jsonl --budget {self._budget(picks)} "
            "--omega 0.25 --omega 1 --omega 4 -o model.json\n"
            f"variegate summarize {shlex.quote(str(self._path))} --model model.json\n"
        )


def _read(path: Path) -> tuple[Sequence[Cluster], list[str]]:
    if path.is_file() and path.suffix.lower() in CLUSTER_SUFFIXES:
        clusters = read_clusters(path, need_references=False)
        return clusters, [one.id or str(n) for n, one in enumerate(clusters, 1)]
    places = [path]
    if not path.is_file():
        inside = sorted(path.iterdir())
        folders = [f for f in inside if f.is_dir() and _has_documents(f)]
        places = folders + [f for f in inside if is_any(f, DOCUMENT_SUFFIXES)]
    if not places:
        raise MaterialError(f"there are no documents in {path}")
    found = [read_documents(place) for place in places]
    clusters = [Cluster(one, language=language_of(one, None)) for one in found]
    return clusters, [place.name for place in places]


def _has_documents(folder: Path) -> bool:
    is_hidden = folder.name.startswith(".")
    return not is_hidden and bool(files_below(folder, DOCUMENT_SUFFIXES))

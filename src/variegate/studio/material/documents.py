"""Documents as material: the sentences of each cluster, as ``Summarizer`` sees them."""

from __future__ import annotations

import hashlib
import json
import shlex
import tempfile
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from variegate._typing import AnyArray
from variegate.application.progress import Progress
from variegate.ground_set import GroundSet
from variegate.kernels import Linear, MultipleKernel
from variegate.studio.material.base import Item, Material, MaterialError, Picks
from variegate.text import Summarizer
from variegate.text.budget import Budget
from variegate.text.detection import language_of
from variegate.text.documents import Cluster
from variegate.text.quality import feature_names
from variegate.text.readers import read_clusters, read_documents
from variegate.text.view import ClusterView

__all__ = [
    "CLUSTER_SUFFIXES",
    "DOCUMENT_SUFFIXES",
    "DocumentsMaterial",
    "document_material",
]

DOCUMENT_SUFFIXES = (".txt", ".md", ".markdown", ".html", ".htm")

#: Files that may hold clusters of documents, or a table.
CLUSTER_SUFFIXES = (".jsonl", ".ndjson")

#: Sentences of a cluster, at most.
_MOST_SENTENCES = 5000


class DocumentsMaterial(Material):
    """Sentences of clusters of documents.

    Parameters
    ----------
    clusters : sequence of Cluster
    names : sequence of str
    source : str
        Where they were read from, for the command line.
    prior : Summarizer or None
        A model to propose by before anything is picked.
    progress : callable
    """

    kind = "documents"
    nouns = ("sentence", "sentences")

    def __init__(
        self,
        clusters: Sequence[Cluster],
        names: Sequence[str],
        source: str,
        prior: Summarizer | None,
        progress: Progress,
    ) -> None:
        self.names, self._source = list(names), source
        self.prior = None if prior is None else prior.family_
        embed = None if prior is None else prior.embed
        corpus = None if prior is None else prior.corpus_
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
            view = ClusterView.of(cluster, corpus)
            if len(view) > _MOST_SENTENCES:
                raise MaterialError(
                    f"{names[done - 1]} has {len(view):,} sentences: divide what has "
                    f"more than {_MOST_SENTENCES:,}"
                )
            self._views.append(view)
            self._ground_sets.append(
                GroundSet(view.quality(features), view.similarity(embed))
            )
            progress(done, len(clusters))
        self.sizes = [len(view) for view in self._views]
        texts = [(name, v.texts) for name, v in zip(names, self._views, strict=True)]
        self.fingerprint = hashlib.sha256(json.dumps(texts).encode()).hexdigest()

    def _items(self, group: int) -> Sequence[Item]:
        view = self._views[group]
        documents = view.cluster.documents
        items = []
        for number, (sentence, text) in enumerate(
            zip(view.material.sentences, view.texts, strict=True), 1
        ):
            document = Path(documents[sentence.document].id).name
            fields = (("document", document),) * (len(documents) > 1)
            fields += (("sentence", str(sentence.position + 1)),)
            items.append(Item(str(number), f"{number}", text, fields))
        return items

    def _picture(self, group: int, item: int) -> AnyArray:
        raise MaterialError("sentences have no pictures")

    # Exports ----------------------------------------------------------------------

    def picks_table(self, picks: Picks) -> Any:
        """Return a row for every sentence of the clusters."""
        import pyarrow as pa

        rows = []
        for group, chosen in picks.items():
            view, wanted = self._views[group], set(chosen.tolist())
            for place, sentence in enumerate(view.material.sentences):
                document = Path(view.cluster.documents[sentence.document].id).name
                values = (self.names[group], document, sentence.position + 1)
                rows.append((*values, view.texts[place], int(place in wanted)))
        names = ("cluster", "document", "sentence", "text", "picked")
        types = (pa.string(), pa.string(), pa.int64(), pa.string(), pa.int8())
        return pa.Table.from_pylist(
            [dict(zip(names, row, strict=True)) for row in rows],
            pa.schema(list(zip(names, types, strict=True))),
        )

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
                view = self._views[group]
                row: dict[str, Any] = {
                    "id": self.names[group],
                    "documents": [
                        {"id": d.id, "text": d.text} for d in view.cluster.documents
                    ],
                    "references": ["\n".join(view.texts[place] for place in chosen)],
                }
                if view.cluster.language is not None:
                    row["language"] = view.cluster.language
                lines.append(json.dumps(row, ensure_ascii=False) + "\n")
        return "".join(lines)

    def _budget(self, picks: Picks) -> Budget:
        """Return room for the longest of the picks."""
        longest = 1
        for group, chosen in picks.items():
            texts = [self._views[group].texts[place] for place in chosen]
            longest = max(longest, sum(len(text.split()) for text in texts))
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
            f"variegate summarize {shlex.quote(self._source)} --model model.json\n"
        )


def document_material(
    path: Path, prior: Summarizer | None, progress: Progress
) -> DocumentsMaterial:
    """Open documents.

    A folder of folders: each is a cluster.  A folder of files: each file is one by
    itself.  A file of JSON lines, as ``variegate fit-summarizer`` reads: one a line.
    """
    if path.is_file() and path.suffix.lower() in CLUSTER_SUFFIXES:
        clusters = read_clusters(path, need_references=False)
        names = [cluster.id or str(n) for n, cluster in enumerate(clusters, 1)]
        return DocumentsMaterial(clusters, names, str(path), prior, progress)
    places = [path]
    if not path.is_file():
        folders = [f for f in sorted(path.iterdir()) if f.is_dir() and _has_texts(f)]
        places = [*folders, *(f for f in sorted(path.iterdir()) if _is_text(f))]
    if not places:
        raise MaterialError(f"there are no documents in {path}")
    clusters = []
    for place in places:
        documents = read_documents(place)
        clusters.append(Cluster(documents, language=language_of(documents, None)))
    names = [place.name for place in places]
    return DocumentsMaterial(clusters, names, str(path), prior, progress)


def _is_text(path: Path) -> bool:
    is_hidden = path.name.startswith(".")
    return path.suffix.lower() in DOCUMENT_SUFFIXES and path.is_file() and not is_hidden


def _has_texts(folder: Path) -> bool:
    return not folder.name.startswith(".") and any(map(_is_text, folder.rglob("*")))

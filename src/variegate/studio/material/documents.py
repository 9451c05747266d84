"""Documents as material: the sentences of each cluster, as ``Summarizer`` sees them."""

from __future__ import annotations

import hashlib
import json
import shlex
import tempfile
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache, partial
from pathlib import Path
from typing import Any

import numpy as np

from variegate._progress import Progress, ignore
from variegate.ground_set import GroundSet
from variegate.kernels import Kernel, Linear, MultipleKernel
from variegate.studio.material.base import Item, MaterialError, Picks
from variegate.text import Summarizer
from variegate.text.budget import Budget
from variegate.text.cluster_view import ClusterView, feature_names
from variegate.text.documents import Cluster
from variegate.text.languages import language_of
from variegate.text.readers import read_clusters, read_documents
from variegate.tuning.family import OmegaFamily

__all__ = [
    "CLUSTER_SUFFIXES",
    "DOCUMENT_SUFFIXES",
    "DocumentsMaterial",
    "document_material",
]

DOCUMENT_SUFFIXES = (".txt", ".md", ".markdown", ".html", ".htm")

#: Files that may hold clusters of documents, or a table.
CLUSTER_SUFFIXES = (".jsonl", ".ndjson")

_FEATURES = "full"

#: Sentences of a cluster, at most.
_MOST_SENTENCES = 5000


class DocumentsMaterial:
    """Sentences of clusters of documents.

    Parameters
    ----------
    clusters : sequence of Cluster
    names : sequence of str
    source : str
        Where they were read from, for the command line.
    prior : Summarizer, optional
        A model to propose by before anything is picked.
    progress : callable, optional
    """

    kind = "documents"
    nouns = ("sentence", "sentences")

    def __init__(
        self,
        clusters: Sequence[Cluster],
        names: Sequence[str],
        source: str,
        prior: Summarizer | None = None,
        progress: Progress = ignore,
    ) -> None:
        self.names = list(names)
        self._source, self._prior = source, prior
        self._embed = None if prior is None else prior.embed
        corpus = None if prior is None else prior.corpus_
        features = _FEATURES if prior is None else prior.features
        self.feature_names = feature_names(features)
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
                GroundSet(view.quality(features), view.similarity(self._embed))
            )
            progress("opening", done, len(clusters))
        self.sizes = [len(view) for view in self._views]
        texts = [(name, v.texts) for name, v in zip(names, self._views, strict=True)]
        self.fingerprint = hashlib.sha256(json.dumps(texts).encode()).hexdigest()
        self.items = lru_cache(maxsize=64)(self._items)

    @property
    def kernels(self) -> Mapping[str, Kernel]:
        """Those of :class:`variegate.text.Summarizer`."""
        ladder = [2.0**q for q in range(-6, 7)]
        return {
            "Gaussians": MultipleKernel(bandwidths=ladder, linear=True),
            "cosine": Linear(),
        }

    @property
    def prior(self) -> OmegaFamily | None:
        """The models that were given, if any were."""
        return None if self._prior is None else self._prior.family_

    def ground_set(self, group: int) -> GroundSet:
        """Return the features of a cluster."""
        return self._ground_sets[group]

    def _items(self, group: int) -> Sequence[Item]:
        view = self._views[group]
        documents = view.cluster.documents
        sentences = view.candidate_sentences
        items = []
        for number, (sentence, text) in enumerate(
            zip(sentences, view.texts, strict=True), 1
        ):
            document = Path(documents[sentence.document].id).name
            fields = (("document", document),) * (len(documents) > 1)
            fields += (("sentence", str(sentence.position + 1)),)
            items.append(Item(str(number), f"{number}", text, fields))
        return items

    def image(self, group: int, item: int, width: int) -> tuple[bytes, str]:
        """Say that sentences have no pictures."""
        raise MaterialError("sentences have no pictures")

    # What comes out ---------------------------------------------------------------

    def picks_table(self, picks: Picks) -> Any:
        """Return a row for every sentence of the clusters."""
        import pyarrow as pa

        rows: dict[str, list[Any]] = {
            name: [] for name in ("cluster", "document", "sentence", "text", "picked")
        }
        for group, chosen in picks.items():
            view = self._views[group]
            wanted = set(np.asarray(chosen).tolist())
            for place, sentence in enumerate(view.candidate_sentences):
                document = view.cluster.documents[sentence.document]
                rows["cluster"].append(self.names[group])
                rows["document"].append(Path(document.id).name)
                rows["sentence"].append(sentence.position + 1)
                rows["text"].append(view.texts[place])
                rows["picked"].append(int(place in wanted))
        types = [pa.string(), pa.string(), pa.int64(), pa.string(), pa.int8()]
        return pa.table(
            [pa.array(v, t) for v, t in zip(rows.values(), types, strict=True)],
            names=list(rows),
        )

    def clusters(self, picks: Picks) -> list[Cluster]:
        """Return clusters with what was picked as their reference summaries.

        Those from which nothing was picked say nothing about summaries.
        """
        found = []
        for group, chosen in picks.items():
            if len(chosen):
                view = self._views[group]
                old = view.cluster
                summary = "\n".join(view.texts[place] for place in chosen)
                found.append(
                    Cluster(old.documents, (summary,), old.language, self.names[group])
                )
        return found

    def jsonl(self, picks: Picks) -> str:
        """Return clusters as ``variegate fit-summarizer`` takes them."""
        lines = []
        for cluster in self.clusters(picks):
            texts = [{"id": d.id, "text": d.text} for d in cluster.documents]
            row: dict[str, Any] = {"id": cluster.id, "documents": texts}
            row |= {"references": list(cluster.references)}
            if cluster.language is not None:
                row["language"] = cluster.language
            lines.append(json.dumps(row, ensure_ascii=False))
        return "".join(f"{line}\n" for line in lines)

    def _budget(self, picks: Picks) -> Budget:
        """Return room for the longest of the picks."""
        longest = 1
        for group, chosen in picks.items():
            texts = [self._views[group].texts[place] for place in chosen]
            longest = max(longest, sum(len(text.split()) for text in texts))
        return Budget(longest + longest // 10, "words")

    def learner(self, picks: Picks) -> Callable[[], Summarizer]:
        """Return what learns a summarizer from picks.

        By way of a file, as the command does it: what a page's markup said is not kept.
        """
        if not any(map(len, picks.values())):
            raise MaterialError("nothing was picked yet")
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "picks.jsonl"
            path.write_text(self.jsonl(picks), encoding="utf-8")
            clusters = read_clusters(path)
        budget = str(self._budget(picks))
        return partial(Summarizer(omega=(0.25, 1.0, 4.0), budget=budget).fit, clusters)

    def command_line(self, picks_file: str, picks: Picks) -> str:
        """Return the commands that learn the same from a file of picks."""
        return (
            f"variegate fit-summarizer {picks_file} --budget {self._budget(picks)} "
            "--omega 0.25 --omega 1 --omega 4 -o model.json\n"
            f"variegate summarize {shlex.quote(self._source)} --model model.json\n"
        )


def document_material(
    path: Path,
    prior: Summarizer | None = None,
    progress: Progress = ignore,
) -> DocumentsMaterial:
    """Open documents.

    A folder of folders: each is a cluster.  A folder of files: each file is one by
    itself.  A file of JSON lines, as ``variegate fit-summarizer`` reads: one a line.
    """
    if path.is_file() and path.suffix.lower() in CLUSTER_SUFFIXES:
        clusters = read_clusters(path, need_references=False)
        names = [cluster.id or str(n) for n, cluster in enumerate(clusters, 1)]
        return DocumentsMaterial(clusters, names, str(path), prior, progress)
    if path.is_file():
        places = [path]
    else:
        folders = [f for f in sorted(path.iterdir()) if f.is_dir() and _has_texts(f)]
        files = [f for f in sorted(path.iterdir()) if _is_text(f)]
        places = [*folders, *files]
    if not places:
        raise MaterialError(f"there are no documents in {path}")
    clusters = []
    for place in places:
        documents = read_documents(place)
        clusters.append(Cluster(documents, language=language_of(documents, None)))
    return DocumentsMaterial(
        clusters, [place.name for place in places], str(path), prior, progress
    )


def _is_text(path: Path) -> bool:
    is_hidden = path.name.startswith(".")
    return path.suffix.lower() in DOCUMENT_SUFFIXES and path.is_file() and not is_hidden


def _has_texts(folder: Path) -> bool:
    return not folder.name.startswith(".") and any(map(_is_text, folder.rglob("*")))

"""Documents as material: the sentences of each cluster, as ``Summarizer`` sees them."""

from __future__ import annotations

import json
from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np

from variegate._progress import Progress
from variegate._typing import IntArray
from variegate.files.folders import files_below
from variegate.ground_set import GroundSet
from variegate.kernels import Linear, MultipleKernel
from variegate.material.base import Item, Material, MaterialError, Picks, has_suffix
from variegate.material.identity import digest, unique_texts
from variegate.text import Summarizer
from variegate.text.budget import Budget
from variegate.text.cluster_view import ClusterView, feature_names, raw_features
from variegate.text.documents import Cluster
from variegate.text.languages import language_of
from variegate.text.readers import DOCUMENT_SUFFIXES, read_clusters, read_documents
from variegate.tuning.family import OmegaFamily
from variegate.tuning.path import PathPoint

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
        if prior is not None and prior.embedded_:
            raise MaterialError(
                "the model compares sentences by vectors of its owner, which no file "
                "holds: give one that was learned without embed"
            )
        clusters, self.names = _read_clusters(path)
        self.prior = None if prior is None else prior.family_
        self._features = "full" if prior is None else prior.features
        self.feature_names = feature_names(self._features)
        self.kernels = {
            "Gaussians": MultipleKernel(
                bandwidths=[2.0**q for q in range(-6, 7)], linear=True
            ),
            "cosine": Linear(),
        }
        self._views, self._ground_sets = [], []
        for done, cluster in enumerate(clusters, 1):
            view = ClusterView.from_cluster(cluster)
            if len(view) > _MOST_SENTENCES:
                raise MaterialError(
                    f"{self.names[done - 1]} has {len(view):,} sentences: divide "
                    f"documents of more than {_MOST_SENTENCES:,}"
                )
            self._views.append(view)
            quality = view.quality(self._features)
            self._ground_sets.append(GroundSet(quality, view.similarity()))
            progress("opening", done, len(clusters))
        self.sizes = [len(view) for view in self._views]
        self._raw = lru_cache(16)(
            lambda group: raw_features(self._views[group], self._features)
        )

    def identities(self, group: int) -> Sequence[str]:
        """Return a digest of each sentence, with one of its document if it repeats."""
        view = self._views[group]
        documents = [digest(one.text) for one in view.cluster.documents]
        contents = [documents[one.document] for one in view.candidate_sentences]
        return unique_texts([digest(text) for text in view.texts], contents)

    def _items(self, group: int) -> Sequence[Item]:
        """Return the sentences of a group, with document and position as fields."""
        n_documents = len(self._views[group].cluster.documents)
        items = []
        for number, (_, file, position, text) in enumerate(self._places(group), 1):
            fields = (("document", Path(file).name),) * (n_documents > 1)
            fields += (("sentence", str(position)),)
            items.append(Item(str(number), text, fields))
        return items

    def values(self, group: int, item: int) -> Sequence[str]:
        """Return the value of each quality feature of a sentence as text."""
        values = []
        for name, column in self._raw(group).items():
            value = float(column[item])
            if name == "length":
                values.append(f"{self._views[group].length[item]:.0f} words")
            elif np.isin(column, (0.0, 1.0)).all():
                values.append("yes" if value else "no")
            else:
                values.append(f"{value:.3g}")
        return values

    _place_columns = (
        ("group", "string"),
        ("file", "string"),
        ("sentence", "int64"),
        ("text", "string"),
    )

    def _places(self, group: int) -> Sequence[tuple[str, str, int, str]]:
        """Return group, file, position from 1 and text of every sentence of a group."""
        view = self._views[group]
        files = [
            self._document_name(document.id) for document in view.cluster.documents
        ]
        return [
            (self.names[group], files[one.document], one.position + 1, text)
            for one, text in zip(view.candidate_sentences, view.texts, strict=True)
        ]

    def _labels(self, per: str, group: int) -> Sequence[Any]:
        """Return the value of a field ("document" or "sentence") of every sentence."""
        if per == "document":
            return [file for _, file, *_ in self._places(group)]
        return super()._labels(per, group)

    def _document_name(self, name: str) -> str:
        """Return a document's path, relative to the opened folder if it is inside."""
        folder = self._path if self._path.is_dir() else self._path.parent
        path = Path(name)
        return (
            path.relative_to(folder).as_posix() if path.is_relative_to(folder) else name
        )

    def picks_text(self, name: str, picks: Picks) -> str | None:
        """Return JSON lines for ``variegate fit-summarizer``, one for each cluster.

        Picks are reference summaries; clusters without picks are left out.  None for
        any ``name`` but "picks.jsonl".
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
                    "references": ["\n".join(self._sentence_texts(group, chosen))],
                }
                if cluster.language is not None:
                    row["language"] = cluster.language
                lines.append(json.dumps(row, ensure_ascii=False) + "\n")
        return "".join(lines)

    def _sentence_texts(self, group: int, chosen: IntArray) -> list[str]:
        """Return the texts of the sentences of a group with the numbers ``chosen``."""
        return [self._views[group].texts[place] for place in chosen]

    def _budget_for(self, picks: Picks) -> Budget:
        """Return a word budget, a tenth above the most words picked in a group."""
        texts = [" ".join(self._sentence_texts(*one)) for one in picks.items()]
        longest = max(1, *(len(text.split()) for text in texts))
        return Budget(longest + longest // 10, "words")

    def model(
        self, family: OmegaFamily, picks: Picks, path: Sequence[PathPoint]
    ) -> Summarizer:
        """Return a fitted summarizer with the family of models.

        The best possible summaries (oracles) are the picks, with a score of 1.
        """
        first = family.models[0]
        summarizer = Summarizer(
            lam=first.lam,
            omega=family.omegas,
            features=self._features,
            budget=str(self._budget_for(picks)),
            l2=first.l2,
        )
        summarizer.family_, summarizer.embedded_ = family, False
        summarizer.training_ = {
            "n_clusters": len(picks),
            "n_sentences": sum(self.sizes[group] for group in picks),
            "oracle_rouge_1_f": 1.0,
            "oracle_rouge_2_f": 1.0,
        }
        return summarizer

    def fit_command(self, picks: Picks) -> str:
        """Return the shell command that learns a summarizer from ``picks.jsonl``."""
        return (
            f"variegate fit-summarizer picks.jsonl --budget {self._budget_for(picks)} "
            "--omega 0.25 --omega 1 --omega 4 -o summarizer.json"
        )


def _read_clusters(path: Path) -> tuple[Sequence[Cluster], list[str]]:
    """Return clusters and their names.

    Clusters are the lines of a JSON lines file, one other file, or the folders and
    files in a folder; MaterialError if there are none.
    """
    if path.is_file() and path.suffix.lower() in CLUSTER_SUFFIXES:
        clusters = read_clusters(path, need_references=False)
        return clusters, [one.id or str(n) for n, one in enumerate(clusters, 1)]
    places = [path]
    if not path.is_file():
        inside = sorted(path.iterdir())
        folders = [f for f in inside if f.is_dir() and _has_documents(f)]
        places = folders + [f for f in inside if has_suffix(f, DOCUMENT_SUFFIXES)]
    if not places:
        raise MaterialError(f"there are no documents in {path}")
    found = [read_documents(place) for place in places]
    clusters = [Cluster(one, language=language_of(one, None)) for one in found]
    return clusters, [place.name for place in places]


def _has_documents(folder: Path) -> bool:
    """Return whether a folder is not hidden and holds documents."""
    is_hidden = folder.name.startswith(".")
    return not is_hidden and bool(files_below(folder, DOCUMENT_SUFFIXES))

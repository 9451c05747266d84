"""Summarizers in files: the format of :mod:`variegate.persistence`, several at once."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from variegate import persistence
from variegate.application.settings import decode_settings, encode_settings
from variegate.kernels import Kernel
from variegate.persistence import ModelFileError
from variegate.text.quality import feature_names
from variegate.text.summarizer import Summarizer
from variegate.text.tfidf import CorpusFrequencies
from variegate.text.view import Embed
from variegate.tuning import OmegaFamily

__all__ = ["decode", "load", "save"]

_TYPE = "summarizer"

#: Settings that are code or data, and so are not stored with the others.
_NOT_STORED = ("corpus", "embed")


def save(model: Summarizer, path: str | Path) -> None:
    """Write a fitted summarizer."""
    corpus = model.corpus_
    content = {
        "type": _TYPE,
        "settings": encode_settings(model.get_params(deep=False), _NOT_STORED),
        "embedded": model.embedded_,
        "corpus": corpus and {"n_texts": corpus.n_texts, "counts": dict(corpus.counts)},
        "models": OmegaFamily(model.omegas_, model.models_).encode(),
        "training": model.training_,
    }
    persistence.write_document(content, path)


def load(path: str | Path, embed: Embed | None = None) -> Summarizer:
    """Read a summarizer."""
    model = persistence.load(path)
    if not isinstance(model, Summarizer):
        raise ModelFileError(f"{path} holds a {type(model).__name__}, no summarizer")
    model.embed = embed
    return model


def decode(
    document: Mapping[str, Any], kernels: Sequence[type[Kernel]] = ()
) -> Summarizer:
    """Return the summarizer that a file describes."""
    known = set(Summarizer().get_params(deep=False)) - set(_NOT_STORED)
    summarizer = Summarizer(**decode_settings(document, sorted(known)))
    summarizer._check_parameters()
    features = summarizer.features
    family = OmegaFamily.decode(
        document, kernels, features, len(feature_names(features))
    )
    summarizer.omegas_, summarizer.models_ = family.omegas, family.models
    corpus = document.get("corpus")
    summarizer.corpus_ = None if corpus is None else _corpus(corpus)
    summarizer.embedded_ = bool(document.get("embedded", False))
    summarizer.training_ = dict(document.get("training", {}))
    return summarizer


def _corpus(section: Mapping[str, Any]) -> CorpusFrequencies:
    n_texts = int(section["n_texts"])
    counts = {str(word): int(count) for word, count in section["counts"].items()}
    if n_texts < 1 or not all(0 <= count <= n_texts for count in counts.values()):
        raise ModelFileError('"corpus" holds counts that cannot be')
    return CorpusFrequencies(n_texts, counts)

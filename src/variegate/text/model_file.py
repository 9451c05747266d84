"""Summarizers in files: the format of :mod:`variegate.persistence`, several at once."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from variegate import persistence
from variegate.kernels import Kernel
from variegate.persistence import ModelFileError
from variegate.text.budget import Budget
from variegate.text.quality import feature_names
from variegate.text.summarizer import Summarizer
from variegate.text.tfidf import CorpusFrequencies
from variegate.text.view import Embed

__all__ = ["decode", "load", "save"]

_TYPE = "summarizer"

#: Settings that are code or data, and so are not stored with the others.
_NOT_STORED = ("corpus", "embed")


def save(model: Summarizer, path: str | Path) -> None:
    """Write a fitted summarizer."""
    settings = {
        name: _plain(value)
        for name, value in model.get_params(deep=False).items()
        if name not in _NOT_STORED
    }
    corpus = model.corpus_
    content = {
        "type": _TYPE,
        "settings": settings,
        "embedded": model.embedded_,
        "corpus": corpus and {"n_texts": corpus.n_texts, "counts": dict(corpus.counts)},
        "models": [
            {"omega": omega, **persistence.encode(fitted)}
            for omega, fitted in zip(model.omegas_, model.models_, strict=True)
        ],
        "training": model.training_,
    }
    persistence.write_document(content, path)


def _plain(value: Any) -> Any:
    if isinstance(value, Budget):
        return str(value)
    if isinstance(value, np.random.Generator):
        return None  # a position in a stream is not part of a model
    if isinstance(value, np.ndarray | np.generic):
        return value.tolist()
    return (
        [_plain(entry) for entry in value] if isinstance(value, list | tuple) else value
    )


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
    settings = document.get("settings")
    if not isinstance(settings, dict):
        raise ModelFileError('the section "settings" is missing')
    known = set(Summarizer().get_params(deep=False)) - set(_NOT_STORED)
    unknown = sorted(set(settings) - known)
    if unknown:
        raise ModelFileError(f"unknown settings: {', '.join(unknown)}")
    summarizer = Summarizer(**settings)
    summarizer._check_parameters()
    entries = document.get("models")
    if not isinstance(entries, list) or not entries:
        raise ModelFileError('the section "models" is missing')
    entries = sorted(entries, key=lambda entry: float(entry["omega"]))
    models = tuple(persistence.decode(entry, kernels) for entry in entries)
    _check_models(summarizer.features, entries, models)
    corpus = document.get("corpus")
    summarizer.corpus_ = None if corpus is None else _corpus(corpus)
    summarizer.embedded_ = bool(document.get("embedded", False))
    summarizer.omegas_ = tuple(float(entry["omega"]) for entry in entries)
    summarizer.models_ = models
    summarizer.training_ = dict(document.get("training", {}))
    return summarizer


def _check_models(
    features: str, entries: Sequence[Mapping[str, Any]], models: Sequence[Any]
) -> None:
    n_features = len(feature_names(features))
    for entry, model in zip(entries, models, strict=True):
        if not np.isfinite(entry["omega"]) or entry["omega"] <= 0.0:
            raise ModelFileError(
                f'"omega" is {entry["omega"]!r}, not a positive number'
            )
        if len(model.theta_) != n_features:
            raise ModelFileError(
                f"{len(model.theta_)} weights for the {n_features} features of "
                f"{features!r}"
            )


def _corpus(section: Mapping[str, Any]) -> CorpusFrequencies:
    n_texts = int(section["n_texts"])
    counts = {str(word): int(count) for word, count in section["counts"].items()}
    if n_texts < 1 or not all(0 <= count <= n_texts for count in counts.values()):
        raise ModelFileError('"corpus" holds counts that cannot be')
    return CorpusFrequencies(n_texts, counts)

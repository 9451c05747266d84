"""Summarizers in files: the format of :mod:`variegate.persistence`, several at once."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from variegate import persistence
from variegate.kernels import Kernel
from variegate.persistence import ModelFileError
from variegate.text.budget import Budget
from variegate.text.quality import FEATURE_SETS
from variegate.text.summarizer import Summarizer
from variegate.text.tfidf import CorpusFrequencies
from variegate.text.view import Embed

__all__ = ["decode", "load", "save"]

_TYPE = "summarizer"

#: Settings that are code or data, and so are not stored with the others.
_NOT_STORED = ("corpus", "embed", "random_state")


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
        "embedded": model.embed is not None,
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
    if hasattr(value, "tolist"):
        return value.tolist()
    return list(value) if isinstance(value, tuple) else value


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
    corpus = document.get("corpus")
    summarizer.corpus_ = corpus and CorpusFrequencies(
        int(corpus["n_texts"]), {str(w): int(n) for w, n in corpus["counts"].items()}
    )
    summarizer.omegas_ = tuple(float(entry["omega"]) for entry in entries)
    summarizer.models_ = models
    summarizer.training_ = dict(document.get("training", {}))
    if summarizer.features not in FEATURE_SETS:
        raise ModelFileError(f"unknown features {summarizer.features!r}")
    return summarizer

"""The skeleton of an application: fit a family, choose at an omega, save, load."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from pathlib import Path
from typing import Any, ClassVar, Self

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from variegate import persistence
from variegate.application.description import Description, described
from variegate.estimator import LargeMarginDPP
from variegate.estimator.display import LearnedDisplay
from variegate.model_format import application
from variegate.persistence import NOTHING, ModelFileError, Own
from variegate.schema import Shape
from variegate.tuning import OmegaFamily

__all__ = ["Application"]


class Application(LearnedDisplay, BaseEstimator):  # type: ignore[misc]
    """An estimator that has learned a family of models over omega.

    A file holds the settings, what the application adds (``_encode_rest``), the models,
    and ``training_``; all of it is checked against a schema when it is read.  A
    subclass names its type of file, which an entry point in the group
    ``variegate.applications`` leads back to its ``decode``.

    Attributes
    ----------
    family_ : OmegaFamily
    omegas_ : tuple of float
        Sorted.
    models_ : tuple of LargeMarginDPP
        One for each of ``omegas_``.
    training_ : dict
        What was learned from, as plain values.
    """

    #: The type of its model files.
    _type: ClassVar[str]
    #: What it is called in messages.
    _noun: ClassVar[str]
    #: Settings that are code or data, and so are not in its files.
    _not_stored: ClassVar[tuple[str, ...]] = ()
    #: The sections that it adds to a file; the shape of ``training_`` is among them.
    _sections: ClassVar[Mapping[str, Shape]] = {}

    family_: OmegaFamily
    training_: dict[str, Any]

    def __init_subclass__(cls) -> None:
        """Let files of this type be read; entry points are for what is not imported."""
        super().__init_subclass__()
        persistence.register(cls._type, cls.decode)

    @property
    def omegas_(self) -> tuple[float, ...]:
        """The values of omega that were learned, sorted."""
        return self.family_.omegas

    @property
    def models_(self) -> tuple[LargeMarginDPP, ...]:
        """The model for each of ``omegas_``."""
        return self.family_.models

    @property
    @abstractmethod
    def feature_names_(self) -> list[str]:
        """Names of the quality features."""

    @property
    def _feature_set(self) -> str:
        """What the quality features are of, in messages about files."""
        return self._noun

    @abstractmethod
    def _check_parameters(self) -> None:
        """Refuse settings that cannot be."""

    def _encode_rest(self) -> dict[str, Any]:
        """Return what else a file holds, as plain values."""
        return {}

    def _decode_rest(self, document: Mapping[str, Any]) -> None:
        """Take what else a file holds, before the models."""

    def save(self, path: str | Path) -> None:
        """Write the fitted model to a JSON file; :func:`variegate.load` reads it."""
        check_is_fitted(self, "family_")
        content = {
            "type": self._type,
            "settings": {
                name: _plain(value)
                for name, value in self.get_params(deep=False).items()
                if name not in self._not_stored
            },
            **self._encode_rest(),
            "models": self.family_.encode(),
            "training": self.training_,
        }
        persistence.write_document(content, path)

    def describe(self) -> Description:
        """Return what the model was learned from and what it learned: ``print`` it."""
        model = self.family_.at(self.family_.resolve(None))
        return described(self, model, self.feature_names_, self.omegas_, self.training_)

    def _learned_html(self) -> str:
        check_is_fitted(self, "family_")
        return self.describe()._repr_html_()

    @classmethod
    def load(cls, path: str | Path) -> Self:
        """Read a model that :meth:`save` wrote."""
        model = persistence.load(path)
        if not isinstance(model, cls):
            raise ModelFileError(
                f"{path} holds a {type(model).__name__}, no {cls._noun}"
            )
        return model

    @classmethod
    def decode(cls, document: Mapping[str, Any], own: Own = NOTHING) -> Self:
        """Return the model that a file describes."""
        application(cls._sections).check(document)
        settings = persistence.read_settings(document, cls(), cls._not_stored)
        model = cls(**settings)
        model._decode_rest(document)
        model._check_parameters()
        model.family_ = OmegaFamily.decode(
            document, own, model._feature_set, len(model.feature_names_)
        )
        model.training_ = dict(document["training"])
        return model


def _plain(value: Any) -> Any:
    """Return a setting as JSON holds it."""
    if isinstance(value, np.random.Generator):
        return None  # a position in a stream is not part of a model
    if isinstance(value, np.ndarray | np.generic):
        return value.tolist()
    if isinstance(value, list | tuple):
        return [_plain(entry) for entry in value]
    if isinstance(value, Mapping):
        return {str(key): _plain(entry) for key, entry in value.items()}
    if value is None or isinstance(value, bool | int | float | str):
        return value
    return str(value)

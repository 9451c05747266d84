"""The base class of applications, and helpers that text, video and tables share."""

from __future__ import annotations

import copy
from abc import abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from importlib.resources import as_file, files
from pathlib import Path
from typing import Any, ClassVar, Self

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from variegate._progress import Progress, ProgressPrinter, offset_progress
from variegate._random import as_generator, check_random_state
from variegate._typing import BoolArray, FloatArray, IntArray, RandomState
from variegate._validation import check_choice, check_count, check_flag, check_number
from variegate.application.description import Description, make_description
from variegate.estimator import DPPEstimator, LargeMarginDPP
from variegate.estimator.base import LearnedDisplay
from variegate.files import models as model_files
from variegate.files.model_format import application_format, read_settings
from variegate.files.models import NOTHING, ModelFileError, Own
from variegate.files.schema import Shape
from variegate.ground_set import GroundSet, GroundSetError
from variegate.kernels import Kernel
from variegate.tuning.family import OmegaFamily, check_omegas

#: Random numbers that the bootstrap draws at a time.
_DRAWN = 2**21


class Application(LearnedDisplay, BaseEstimator):  # type: ignore[misc]
    """An estimator that has learned a family of models over omega.

    A model file holds the settings, the sections of the application
    (``_encode_rest``), the models, and ``training_``, checked against a schema when
    read.  A subclass names its type of file, which its ``decode`` reads, found by an
    entry point in the group ``variegate.applications``.

    Attributes
    ----------
    family_ : OmegaFamily
    training_ : dict
        Facts about the training data, as plain values.
    """

    _type: ClassVar[str]  # of its model files
    _noun: ClassVar[str]  # its name in messages
    _not_stored: ClassVar[tuple[str, ...]] = ()  # settings that are code or data
    _sections: ClassVar[Mapping[str, Shape]] = {}  # of its files, with "training"
    family_: OmegaFamily
    training_: dict[str, Any]

    def __init_subclass__(cls) -> None:
        """Register ``decode`` as the reader of the subclass's type of files."""
        super().__init_subclass__()
        if hasattr(cls, "_type"):
            model_files.register_reader(cls._type, cls.decode)

    @property
    def omegas_(self) -> tuple[float, ...]:
        """The sorted values of the setting omega; a model is fitted for each."""
        return self.family_.omegas

    @property
    def models_(self) -> tuple[LargeMarginDPP, ...]:
        """The model for each of ``omegas_``."""
        return self.family_.models

    @property
    @abstractmethod
    def feature_names_(self) -> list[str]:
        """The names of the quality features."""

    @abstractmethod
    def _check_parameters(self) -> None:
        """Raise ValueError for invalid parameters of the constructor."""

    def _encode_rest(self) -> dict[str, Any]:
        """Return the sections of a file that only the subclass has, as plain values."""
        return {}

    def _decode_rest(self, document: Mapping[str, Any]) -> None:
        """Set what :meth:`_encode_rest` gave, before ``family_`` and ``training_``."""

    def save(self, path: str | Path) -> None:
        """Write the fitted model to a JSON file; :func:`variegate.load` reads it."""
        check_is_fitted(self, "family_")
        content = {
            "type": self._type,
            "settings": {
                name: _plain_setting(value)
                for name, value in self.get_params(deep=False).items()
                if name not in self._not_stored
            },
            **self._encode_rest(),
            "models": self.family_.encode(),
            "training": self.training_,
        }
        model_files.write_document(content, path)

    def describe(self) -> Description:
        """Return a description of the training data and the model of omega near 1."""
        model = self.family_.at(self.family_.resolve(None))
        return make_description(
            self, model, self.feature_names_, self.omegas_, self.training_
        )

    def _learned_html(self) -> str:
        """Return the description as HTML, or raise NotFittedError."""
        check_is_fitted(self, "family_")
        return self.describe()._repr_html_()

    @classmethod
    def load(cls, path: str | Path) -> Self:
        """Read a model that :meth:`save` wrote; ModelFileError for another class."""
        model = model_files.load(path)
        if not isinstance(model, cls):
            raise ModelFileError(
                f"{path} holds a {type(model).__name__}, no {cls._noun}"
            )
        return model

    @classmethod
    def decode(cls, document: Mapping[str, Any], own: Own = NOTHING) -> Self:
        """Return the model of a parsed file, checked; ModelFileError if it is invalid.

        ``own`` has kernels and modules that the user wrote and files only name.
        """
        application_format(cls._sections).check(document)
        settings = read_settings(document, cls(), cls._not_stored)
        model = cls(**settings)
        model._decode_rest(document)
        model._check_parameters()
        model.family_ = OmegaFamily.decode(document, own, len(model.feature_names_))
        model.training_ = dict(document["training"])
        return model


class FamilyApplication(Application):
    """An application that is learned from examples by ``LargeMarginDPP`` alone."""

    _choices: ClassVar[Mapping[str, Iterable[str]]] = {}  # allowed, by parameter
    _count_nouns: ClassVar[Sequence[str]]  # "rows" for training_["n_rows"], and so on
    lam: float
    omega: float | Sequence[float]
    n_samples: int
    l2: float
    max_iter: int
    random_state: RandomState
    verbose: bool

    def _check_parameters(self) -> None:
        """Raise ValueError for invalid parameters of the constructor."""
        for name, known in self._choices.items():
            check_choice(name, getattr(self, name), known)
        for name in ("lam", "l2"):
            check_number(name, getattr(self, name))
        for name in ("max_iter", "n_samples"):
            check_count(name, getattr(self, name))
        check_flag("verbose", self.verbose)
        check_random_state(self.random_state)
        check_omegas(self.omega)

    def _fit_family(
        self,
        kernel: Kernel,
        ground_sets: Sequence[GroundSet],
        subsets: Sequence[IntArray],
        names: Sequence[str],
        progress: Progress,
    ) -> None:
        """Set ``family_``, fitted for each omega to ground sets and a subset of each.

        ``names`` of these examples are for the ValueError of one that is unusable.
        """
        estimator = LargeMarginDPP(
            lam=self.lam, kernel=kernel, l2=self.l2, max_iter=self.max_iter
        )
        try:
            self.family_ = OmegaFamily.fit(
                estimator, self.omega, ground_sets, subsets, progress=progress
            )
        except GroundSetError as error:
            raise ValueError(f"{names[error.position]}: {error.problem}") from error

    def describe_training(self) -> str:
        """Return lines on the training data: sizes, omegas and the best agreement."""
        check_is_fitted(self, "family_")
        counts = [f"{n}: {self.training_[f'n_{n}']:,}" for n in self._count_nouns]
        omegas = ", ".join(f"{omega:g}" for omega in self.omegas_)
        return "\n".join([*counts, f"learned for ω = {omegas}", self._oracle_text()])

    @abstractmethod
    def _oracle_text(self) -> str:
        """Return text on how well the best possible choices score in training data."""

    def _make_generator(self, random_state: RandomState) -> np.random.Generator:
        """Return a generator of ``random_state``, or of the setting if that is None."""
        return as_generator(self.random_state if random_state is None else random_state)

    def _progress_parts(
        self, progress: Progress | None, n_examples: int
    ) -> tuple[Progress, Progress]:
        """Return callbacks for preparing examples and for learning, of one total.

        The total is ``n_examples`` steps, and one for each omega.
        """
        progress = self._progress_callback(progress)
        n_steps = n_examples + len(check_omegas(self.omega))
        return offset_progress(progress, 0, n_steps), offset_progress(
            progress, n_examples, n_steps
        )

    def _progress_callback(self, progress: Progress | None) -> Progress | None:
        """Return the callback, perhaps None; with ``verbose`` one that also prints."""
        if not self.verbose:
            return progress
        printed = ProgressPrinter(type(self).__name__).progress

        def print_progress(stage: str, done: float, total: float) -> None:
            """Print the progress, and call the callback."""
            printed(stage, done, total)
            if progress is not None:
                progress(stage, done, total)

        return print_progress


def _plain_setting(value: Any) -> Any:
    """Return a setting for JSON: None for a generator, ``str`` of other objects."""
    if isinstance(value, np.random.Generator):
        return None  # a position in a stream is not part of a model
    if isinstance(value, Mapping):
        return {str(key): _plain_setting(entry) for key, entry in value.items()}
    known = (bool, int, float, str, list, tuple, np.ndarray, np.generic)
    return value if value is None or isinstance(value, known) else str(value)


def best_by_quality(
    model: DPPEstimator,
    features: FloatArray,
    most: int,
    allowed: BoolArray | None = None,
) -> IntArray:
    """Return the sorted numbers of the ``most`` rows of highest quality in a model.

    Rows that the mask ``allowed`` lacks are taken only if the others are fewer.
    """
    if len(features) <= most:
        return np.arange(len(features))
    u = model.log_quality(features)
    if allowed is not None:
        u = np.where(allowed, u, -np.inf)
    return np.sort(np.argsort(-u, kind="stable")[:most])


def bootstrap_means(rows: FloatArray, n_bootstrap: int, seed: int) -> FloatArray:
    """Return means (n_bootstrap, ...) of n draws of rows (n, ...), with replacement."""
    n = len(rows)
    rng = np.random.default_rng(seed)
    at_a_time = max(1, _DRAWN // n)
    flat = rows.reshape(n, -1)
    means = []
    for first in range(0, n_bootstrap, at_a_time):
        count = min(at_a_time, n_bootstrap - first)
        draws = rng.integers(n, size=(count, n))
        # How often each row was drawn is all that matters, and BLAS does the rest.
        draws += n * np.arange(count)[:, None]
        times = np.bincount(draws.ravel(), minlength=count * n).reshape(count, n)
        means.append(times @ flat / n)
    return np.concatenate(means).reshape(n_bootstrap, *rows.shape[1:])


def packaged_model(package: str, name: str) -> Any:
    """Return a shallow copy of a model, which is read once in a process.

    The file is ``models/NAME`` of ``package``, such as "variegate.text".
    """
    return copy.copy(_load_packaged(package, name))


@cache
def _load_packaged(package: str, name: str) -> Any:
    """Return the model in the file ``models/NAME`` of a package, always the same."""
    with as_file(files(package) / "models" / name) as path:
        return model_files.load(path)

"""The base of estimators of determinantal point processes: choosing and display."""

from __future__ import annotations

import warnings
from abc import abstractmethod
from collections.abc import Sequence
from pathlib import Path
from typing import Any, ClassVar, Literal

import numpy as np
from sklearn import get_config
from sklearn.base import BaseEstimator
from sklearn.exceptions import NotFittedError
from sklearn.utils import estimator_html_repr
from sklearn.utils.validation import check_is_fitted

from variegate import metrics
from variegate._random import as_generator
from variegate._typing import FloatArray, IntArray, RandomState
from variegate.decoding import Decoder, as_decoder
from variegate.decoding.at_most import labels_among
from variegate.decoding.residuals import rank_members
from variegate.ensemble import LEnsemble
from variegate.files import models as model_files
from variegate.ground_set import (
    GroundSet,
    check_ground_sets,
    check_subsets,
    name_position_in_errors,
)
from variegate.report.notebook import (
    format_number,
    hidden_rows_note,
    html_card,
    html_table,
)
from variegate.selection import Subsets
from variegate.solvers import SolverResult

#: Weights that are shown, the largest first.
_SHOWN = 12


class LearnedDisplay:
    """Adds the learned weights to the diagram of an estimator."""

    @abstractmethod
    def _learned_html(self) -> str:
        """Return the learned weights as HTML, or raise NotFittedError."""

    def _repr_html_(self) -> str:
        """Return scikit-learn's diagram, and below it the learned weights if fitted."""
        try:
            learned = self._learned_html()
        except NotFittedError:
            learned = ""
        return f"<div>{estimator_html_repr(self)}{learned}</div>"

    def _repr_mimebundle_(self, **kwargs: Any) -> dict[str, str]:
        """Return the text and, if scikit-learn's display is "diagram", the HTML."""
        bundle = {"text/plain": repr(self)}
        if get_config()["display"] == "diagram":
            bundle["text/html"] = self._repr_html_()
        return bundle


def weights_html(theta: FloatArray, intercept: float, kernel: Any, status: str) -> str:
    """Return a card of the largest weights ``theta``, the kernel and the fit, as HTML.

    ``status`` says in a sentence how learning ended.
    """
    largest = np.argsort(-np.abs(theta), kind="stable")[:_SHOWN]
    rows = [[str(feature), f"{theta[feature]:+.4g}"] for feature in largest]
    note = hidden_rows_note(_SHOWN, len(theta), "features")
    weights = html_table(["quality feature", "weight"], rows, note)
    facts = {
        "intercept": format_number(intercept),
        "kernel": repr(kernel),
        "fit": status,
    }
    return html_card("Learned", facts, weights)


class DPPEstimator(BaseEstimator):  # type: ignore[misc]
    """An estimator that makes a determinantal point process of each ground set."""

    #: The name of an attribute that only a fitted estimator has.
    _fitted: ClassVar[str]

    lam: float
    omega: float
    decoder: str | Decoder
    random_state: RandomState
    solver_result_: SolverResult
    n_features_in_: int

    @abstractmethod
    def _ensemble(self, ground_set: GroundSet) -> LEnsemble:
        """Return the ensemble of a ground set with as many features as in training."""

    @abstractmethod
    def _log_quality(self, features: FloatArray) -> FloatArray:
        """Return ``u = log q`` (N,) for quality features (N, d)."""

    @abstractmethod
    def _check_parameters(self) -> None:
        """Raise ValueError for invalid parameters of the constructor."""

    @abstractmethod
    def encode(self) -> dict[str, Any]:
        """Return the fitted model as a dict of plain values, as its file holds it."""

    def ensemble(self, ground_set: GroundSet) -> LEnsemble:
        """Return the determinantal point process of one ground set.

        Beside given items it is that of the candidates; ``items`` has their numbers.
        """
        check_is_fitted(self, self._fitted)
        return self._checked_ensemble(check_ground_sets([ground_set])[0])

    def log_quality(self, features: FloatArray) -> FloatArray:
        """Return ``log q`` (N,) for quality features (N, d)."""
        check_is_fitted(self, self._fitted)
        self._check_n_features(features.shape[1])
        return self._log_quality(features)

    def predict(
        self,
        ground_sets: Sequence[GroundSet],
        k: int | None = None,
        budget: float | None = None,
        order: Literal["number", "importance"] = "number",
        *,
        at_most: Any = None,
        per: Sequence[Any] | None = None,
    ) -> list[IntArray]:
        """Choose a subset of every ground set; return arrays of item numbers.

        Items that are given are never chosen, and do not count for ``k``, ``budget``
        and ``at_most``.

        Parameters
        ----------
        ground_sets : list of GroundSet
        k : int, optional
            Choose exactly ``k`` items of each; with the greedy decoder fewer, with a
            warning, where the rank of the kernel is less.
        budget : float, optional
            Choose items whose ``costs`` sum to at most this.
        order : {"number", "importance"}, default="number"
            Items sorted by number, or the one of the highest quality first, next the
            one that adds most to it, and so on.
        at_most : int or sequence of int, optional
            Choose at most this many items with the same label.
        per : list, optional
            For each ground set, the ``per`` of :meth:`variegate.LEnsemble.decode`: one
            label for every item, or a sequence of such arrays if ``at_most`` is one.
        """
        check_is_fitted(self, self._fitted)
        if order not in ("number", "importance"):
            raise ValueError(f"order must be 'number' or 'importance', got {order!r}")
        ground_sets = check_ground_sets(ground_sets)
        decoder = as_decoder(self.decoder)
        if per is not None and len(per) != len(ground_sets):
            raise ValueError(
                f"per has labels of {len(per)} ground sets, but there are "
                f"{len(ground_sets)}: give one array of labels for each"
            )
        # The same numbers for every ground set: a choice does not depend on the others.
        seed = int(as_generator(self.random_state).integers(2**63))
        chosen = Subsets()
        for position, ground_set in enumerate(ground_sets):
            costs = ground_set.costs if budget is not None else None
            with name_position_in_errors(position):
                ensemble = self._checked_ensemble(ground_set)
                ensemble.n_together = len(ground_sets)
                labels = None if per is None else per[position]
                if len(ground_set.given):
                    costs = None if costs is None else costs[ensemble.items]
                    labels = labels_among(
                        ensemble.items, len(ground_set), at_most, labels
                    )
                selection = ensemble.decode(
                    decoder, k, budget, costs, seed, at_most=at_most, per=labels
                )
            if k is not None and len(selection) < k:
                warnings.warn(
                    f"ground set {position}: {selection.stop_reason}",
                    UserWarning,
                    stacklevel=2,
                )
            members = selection.indices
            if order == "importance":
                members = rank_members(ensemble, members)
            chosen.append(ensemble.items[members])
        return chosen

    def score(self, ground_sets: Sequence[GroundSet], subsets: Sequence[Any]) -> float:
        """Return the mean F-score of the predictions against wanted ``subsets``."""
        ground_sets = check_ground_sets(ground_sets)
        wanted = check_subsets(subsets, ground_sets)
        return metrics.mean_scores(self.predict(ground_sets), wanted)["f"]

    def _check_n_features(self, n_features: int) -> None:
        """Raise ValueError unless as many quality features are given as in training."""
        if n_features != self.n_features_in_:
            raise ValueError(
                f"{n_features} quality features, but the model was fitted with "
                f"{self.n_features_in_}"
            )

    def _checked_ensemble(self, ground_set: GroundSet) -> LEnsemble:
        """Return the ensemble of a ground set; ValueError for other features."""
        self._check_n_features(ground_set.n_features)
        return self._ensemble(ground_set)

    def save(self, path: str | Path) -> None:
        """Write the fitted model to a JSON file; :func:`variegate.load` reads it."""
        check_is_fitted(self, self._fitted)
        model_files.save(self, path)

"""How estimators look in a notebook: scikit-learn's diagram, and what was learned."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any

import numpy as np
from sklearn import get_config
from sklearn.exceptions import NotFittedError
from sklearn.utils import estimator_html_repr

from variegate._typing import FloatArray
from variegate.report.notebook import card, more, number, table

__all__ = ["LearnedDisplay", "weights_html"]

#: Weights that are shown, the largest first.
_SHOWN = 12


class LearnedDisplay:
    """Adds what was learned to the diagram of an estimator."""

    @abstractmethod
    def _learned_html(self) -> str:
        """Return what was learned, or raise NotFittedError."""

    def _repr_html_(self) -> str:
        try:
            learned = self._learned_html()
        except NotFittedError:
            learned = ""
        return f"<div>{estimator_html_repr(self)}{learned}</div>"

    def _repr_mimebundle_(self, **kwargs: Any) -> dict[str, str]:
        bundle = {"text/plain": repr(self)}
        if get_config()["display"] == "diagram":
            bundle["text/html"] = self._repr_html_()
        return bundle


def weights_html(theta: FloatArray, intercept: float, kernel: Any, status: str) -> str:
    """Return the weights of features, by number, and how learning ended."""
    largest = np.argsort(-np.abs(theta), kind="stable")[:_SHOWN]
    rows = [[str(feature), f"{theta[feature]:+.4g}"] for feature in largest]
    note = more(_SHOWN, len(theta), "features")
    weights = table(["quality feature", "weight"], rows, note)
    facts = {"intercept": number(intercept), "kernel": repr(kernel), "fit": status}
    return card("Learned", facts, weights)

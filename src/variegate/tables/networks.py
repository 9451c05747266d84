"""Learning by an estimator of networks: fitted once, for one omega, in memory.

It has neither a kernel to compare with others nor weights of features to show, and
networks for two values of omega cannot be mixed; what needs that is refused in words.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from sklearn.base import clone

from variegate._typing import IntArray
from variegate.estimator import DPPEstimator, LargeMarginDPP
from variegate.tables.groups import Groups
from variegate.tables.splitting import examples
from variegate.tables.table import Progress, TableError, ignore
from variegate.tables.training import Learned, features_width, refuse_large_groups
from variegate.tables.ways import Way
from variegate.tuning import OmegaFamily
from variegate.tuning.family import as_omegas

if TYPE_CHECKING:
    from variegate.tables.selector import TableSelector

__all__ = [
    "NetworkLesson",
    "check_network_settings",
    "is_network",
    "no_weights",
    "refuse_network",
]


def is_network(estimator: DPPEstimator | None) -> bool:
    """Tell whether an estimator has networks in place of a kernel."""
    return estimator is not None and not isinstance(estimator, LargeMarginDPP)


def refuse_network(model: DPPEstimator, what: str) -> None:
    """Refuse to show weights that networks do not have."""
    if is_network(model):
        raise TableError(no_weights(model, what))


def no_weights(model: DPPEstimator, what: str) -> str:
    """Say that a model has no weights to show."""
    return (
        f"a {type(model).__name__} has no weights of features: {what} is for models of "
        "a LargeMarginDPP. Its networks are model_.network_"
    )


def check_network_settings(selector: TableSelector) -> None:
    """Refuse what cannot be asked of an estimator of networks."""
    estimator = selector.estimator
    if estimator is None or not is_network(estimator):
        return
    name = type(estimator).__name__
    if selector.kernel is not None:
        raise ValueError(
            f"kernel={selector.kernel!r} is for a LargeMarginDPP: the similarity of a "
            f"{name} is its encoder and similarity"
        )
    known = estimator.get_params(deep=False)
    for setting in ("l2", "max_iter", "tol"):
        if getattr(selector, setting) is not None and setting not in known:
            raise ValueError(
                f"{setting} is a setting of LargeMarginDPP, which {name} does not have"
            )
    targets = (selector.target_precision, selector.target_recall)
    if selector.tune or targets != (None, None):
        raise ValueError(
            "tune, target_precision and target_recall are for a LargeMarginDPP, whose "
            f"models for two values of omega can be mixed; a {name} learns for the "
            "lam and omega that it is given"
        )
    if selector.omega is not None and len(as_omegas(selector.omega)) > 1:
        raise ValueError(f"a {name} learns for one omega, got {selector.omega!r}")


@dataclass(frozen=True, eq=False)
class NetworkLesson:
    """How to learn; ``memory`` is bytes of features that may be held."""

    estimator: DPPEstimator
    omega: float
    memory: int
    progress: Progress = ignore

    def learn(self, groups: Groups, numbers: IntArray) -> Learned:
        """Learn from the groups with these numbers."""
        refuse_large_groups(groups, numbers)
        sizes = groups.survey.index.sizes[numbers]
        n_bytes = 8 * int(sizes.sum()) * features_width(groups.encoding)
        name = type(self.estimator).__name__
        if n_bytes > self.memory:
            raise TableError(
                f"the features of the table take {n_bytes:,} bytes, more than "
                f"memory={self.memory:,}, and a {name} holds them all: raise memory, "
                "or learn with a LargeMarginDPP, which reads larger tables in batches"
            )
        model: Any = clone(self.estimator)
        model.set_params(omega=self.omega, callback=self._watch)
        with groups.named(numbers):
            model.fit(*examples(groups, numbers))
        model.set_params(callback=None)
        self.progress("learning", 1, 1)
        return Learned(Way(OmegaFamily((self.omega,), (model,)), self.omega))

    def _watch(self, step: Any) -> object:
        """Tell how far learning has come; ask who waits whether it is enough."""
        estimator: Any = self.estimator
        self.progress("learning", step.iteration, estimator.max_epochs)
        return None if estimator.callback is None else estimator.callback(step)

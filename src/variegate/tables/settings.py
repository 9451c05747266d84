"""What the settings of a selector come to: columns, an estimator, a lesson."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from sklearn.base import clone

from variegate._progress import ProgressPrinter
from variegate._validation import check_choice, check_count, check_flag, check_number
from variegate.application.table_defaults import (
    EMPTY_GROUPS,
    KERNELS,
    default_estimator,
)
from variegate.estimator import DPPEstimator
from variegate.kernels import Kernel
from variegate.tables.columns import Columns
from variegate.tables.encoding import Encoding
from variegate.tables.networks import (
    NetworkLesson,
    check_network_settings,
    is_network,
)
from variegate.tables.similarities import has_target, kernel_for, search_for
from variegate.tables.table import Progress, Table, ignore
from variegate.tables.training import Lesson
from variegate.tuning import LargeMarginDPPCV
from variegate.tuning.family import as_omegas

if TYPE_CHECKING:
    from variegate.tables.selector import TableSelector

__all__ = [
    "check_parameters",
    "columns_wanted",
    "estimator_of",
    "lesson_of",
    "watched",
]

#: Parameters that count in place of those of the estimator.
_SHORT = ("lam", "l2", "decoder", "max_iter", "tol", "n_jobs", "device")

#: Parameters that say what columns are.
_COLUMNS = (
    "group", "label", "item", "quality", "categorical", "similarity", "relevance",
    "cost", "missing",
)  # fmt: skip


def columns_wanted(
    selector: TableSelector, table: Table | None = None, y: Any = None
) -> Columns:
    """Return what a selector was told about columns.

    Where labels are given beside a table, the label is a column only if there is one.
    """
    wanted = Columns.of(**{name: getattr(selector, name) for name in _COLUMNS})
    if table is None or y is None or wanted.label in table.schema.names:
        return wanted
    name = getattr(y, "name", None)
    return replace(wanted, label=name if name in table.schema.names else None)


def estimator_of(selector: TableSelector) -> Any:
    """Return the estimator with what counts in place of its own settings."""
    if selector.estimator is None:
        estimator = default_estimator()
    else:
        estimator = clone(selector.estimator)
        estimator.set_params(callback=selector.estimator.callback)
    known = estimator.get_params(deep=False)
    given = {name: getattr(selector, name) for name in _SHORT if name in known}
    estimator.set_params(**{n: v for n, v in given.items() if v is not None})
    return estimator


def lesson_of(
    selector: TableSelector, encoding: Encoding, progress: Progress
) -> Lesson | NetworkLesson:
    """Return what learns as a selector says, from features of an encoding."""
    estimator = estimator_of(selector)
    if is_network(estimator):
        estimator.set_params(random_state=selector.seed_)
        omega = estimator.omega if selector.omega is None else selector.omega
        (omega,) = as_omegas(omega)
        return NetworkLesson(estimator, omega, selector.memory, progress)
    kernel = estimator.kernel if selector.kernel is None else selector.kernel
    estimator.set_params(
        kernel=kernel_for(kernel, encoding), random_state=selector.seed_
    )
    search = None
    if selector.tune or has_target(selector):
        search = LargeMarginDPPCV(
            lams=selector.lams,
            target_precision=selector.target_precision,
            target_recall=selector.target_recall,
            n_jobs=selector.n_jobs,
            random_state=selector.seed_,
            refit=False,
        )
    omegas = None if selector.omega is None else as_omegas(selector.omega)
    kernels = None
    if kernel in (None, "auto"):
        kernels = search_for(selector, estimator, encoding)
    return Lesson(
        estimator,
        omegas,
        search,
        selector.memory,
        selector.seed_,
        kernels,
        selector.n_epochs,
        progress,
    )


def watched(progress: Progress | None, verbose: bool) -> Progress:
    """Return who is told how far work has come: as given, or lines if verbose."""
    if progress is not None:
        return progress
    return ProgressPrinter("TableSelector").progress if verbose else ignore


def check_parameters(selector: TableSelector) -> None:
    """Refuse settings that cannot be."""
    check_choice("empty_groups", selector.empty_groups, EMPTY_GROUPS)
    if selector.kernel is not None and not isinstance(selector.kernel, Kernel):
        check_choice("kernel", selector.kernel, KERNELS)
    check_flag("tune", selector.tune)
    check_flag("verbose", selector.verbose)
    fraction = selector.validation_fraction
    check_number("validation_fraction", fraction)
    if fraction >= 1.0:
        raise ValueError(f"validation_fraction must be below 1, got {fraction!r}")
    check_count("memory", selector.memory)
    if selector.n_epochs is not None:
        check_count("n_epochs", selector.n_epochs)
    if selector.omega is not None:
        as_omegas(selector.omega)
    if not isinstance(selector.estimator, DPPEstimator | None):
        raise ValueError(
            f"estimator must be a LargeMarginDPP, got {selector.estimator!r}"
        )
    check_network_settings(selector)
    estimator_of(selector)._check_parameters()
    columns_wanted(selector)

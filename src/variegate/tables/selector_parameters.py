"""Columns, estimator and training plan from the parameters of a selector.

An estimator of networks is fitted once, for one omega, in memory.  It has neither a
kernel to compare with others nor weights of features to show, and networks for two
values of omega cannot be mixed; parameters that need these are refused.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from sklearn.base import clone

from variegate._progress import Progress, ProgressPrinter, ignore
from variegate._typing import IntArray
from variegate._validation import check_choice, check_count, check_flag, check_number
from variegate.application.table_defaults import (
    EMPTY_GROUPS,
    KERNELS,
    default_estimator,
)
from variegate.estimator import DPPEstimator, LargeMarginDPP
from variegate.files.run_store import RunStore
from variegate.kernels import Kernel, Kinds, Linear, Metric, Mixture, MultipleKernel
from variegate.tables.cells import check_relevance
from variegate.tables.columns import Columns, no_label
from variegate.tables.derived import Derivation, derive
from variegate.tables.encoding import Encoding
from variegate.tables.errors import TableError
from variegate.tables.groups import Groups
from variegate.tables.policy import Policy
from variegate.tables.table import Table
from variegate.tables.training import Learned, TrainingPlan, refuse_large_groups
from variegate.tuning import LargeMarginDPPCV, OmegaFamily
from variegate.tuning.family import as_omegas
from variegate.tuning.kernel_search import KernelSearch

if TYPE_CHECKING:
    from variegate.tables.selector import TableSelector

#: Parameters that count in place of those of the estimator.
_SHORT = ("lam", "l2", "decoder", "max_iter", "tol", "n_jobs", "device")

#: Numbers of kinds that are compared.
_N_KINDS = (8, 16, 32)

#: Parameters that say what columns are.
_COLUMNS = (
    "group", "label", "item", "quality", "categorical", "similarity", "relevance",
    "cost", "missing",
)  # fmt: skip


def columns_wanted(
    selector: TableSelector, names: Sequence[str] = (), y: Any = None
) -> Columns:
    """Return the columns that a selector was given.

    Where labels are given beside a table, whose columns have these names, the label is
    a column only if there is one.
    """
    wanted = Columns.of(**{name: getattr(selector, name) for name in _COLUMNS})
    if y is None or wanted.label in names:
        return wanted
    name = getattr(y, "name", None)
    return replace(wanted, label=name if name in names else None)


def training_columns(
    selector: TableSelector, table: Table, y: Any, newest: Callable[[str], str]
) -> Columns:
    """Return the roles of the columns of a training table, with vectors and ages."""
    wanted = columns_wanted(selector, table.schema.names, y)
    wanted = derive(table.schema, wanted, newest)
    schema = Derivation(table.schema, wanted).schema
    columns = wanted.resolve(schema, is_untyped=table.is_untyped)
    if columns.relevance is not None and not table.is_untyped:
        check_relevance(schema.field(columns.relevance).type, columns.relevance)
    if y is not None:
        return replace(columns, label=None)
    if columns.label is None:
        raise no_label()
    return columns


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


def training_plan(
    selector: TableSelector,
    encoding: Encoding,
    progress: Progress,
    store: RunStore | None = None,
) -> TrainingPlan | NetworkPlan:
    """Return the training plan of a selector for features of an encoding."""
    estimator = estimator_of(selector)
    if is_network(estimator):
        estimator.set_params(random_state=selector.seed_)
        omega = estimator.omega if selector.omega is None else selector.omega
        (omega,) = as_omegas(omega)
        return NetworkPlan(estimator, omega, selector.memory, progress)
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
    return TrainingPlan(
        estimator,
        omegas,
        search,
        selector.memory,
        selector.seed_,
        kernels,
        selector.first_passes,
        progress,
        store,
    )


def progress_callback(progress: Progress | None, verbose: bool) -> Progress:
    """Return the progress callback that was given, or one that prints if verbose."""
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
    if selector.first_passes:
        check_count("first_passes", selector.first_passes)
    if selector.omega is not None:
        as_omegas(selector.omega)
    if not isinstance(selector.estimator, DPPEstimator | None):
        raise ValueError(
            f"estimator must be a LargeMarginDPP, got {selector.estimator!r}"
        )
    check_network_settings(selector)
    estimator_of(selector)._check_parameters()
    columns_wanted(selector)


# Kernels --------------------------------------------------------------------------


def kernel_for(name: Any, encoding: Encoding) -> Kernel:
    """Return the kernel that a name stands for, over all blocks of the similarity.

    "auto" and None stand for "multiple"; what is no name is a kernel.
    """
    if isinstance(name, Kernel):
        return name
    if name == "linear":
        return _of_blocks(Linear, encoding)
    if name == "kinds":
        return _of_blocks(Kinds, encoding)
    if name == "metric":
        return _of_blocks(Metric, encoding)
    blocks = list(encoding.blocks) if len(encoding.blocks) > 1 else None
    return MultipleKernel(blocks=blocks)


def search_for(
    selector: TableSelector, estimator: LargeMarginDPP, encoding: Encoding
) -> KernelSearch:
    """Return the comparison of kernels that suit a table.

    What a selector was given stays as it is; the rest is open.
    """
    fixed = {
        "Gaussians": kernel_for("multiple", encoding),
        "linear": kernel_for("linear", encoding),
    }
    kinds = {
        f"{n} kinds": _of_blocks(
            lambda block=None, n=n: Kinds(n, block=block), encoding
        )
        for n in _N_KINDS
    }
    cosine = _of_blocks(lambda block=None: Linear(True, block), encoding)
    return KernelSearch(
        estimator,
        fixed | kinds,
        cosine,
        tuple(fixed),
        **_open_settings(selector, estimator),
    )


def has_target(selector: TableSelector) -> bool:
    """Return whether a precision or a recall is aimed at."""
    return (selector.target_precision, selector.target_recall) != (None, None)


def _open_settings(
    selector: TableSelector, estimator: LargeMarginDPP
) -> dict[str, Any]:
    """Return the settings that are decided beside the kernel."""
    varies = ["penalty"]
    if selector.estimator is None:
        is_tuned = selector.tune or has_target(selector)
        names = ["l2"] if is_tuned else ["lam", "l2", "omega"]
        varies += [name for name in names if getattr(selector, name) is None]
    if selector.decoder is None and selector.estimator is None:
        return {"varies": varies, "tries_sizes": not has_target(selector)}
    return {"varies": varies, "decoders": [estimator.decoder], "tries_sizes": False}


def _of_blocks(make: Callable[..., Kernel], encoding: Encoding) -> Kernel:
    """Return one kernel, or a mixture of one for each block."""
    if len(encoding.blocks) < 2:
        return make()
    return Mixture([make(block=block) for block in encoding.blocks])


# Networks -------------------------------------------------------------------------


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
class NetworkPlan:
    """How to learn; ``memory`` is bytes of features that may be held."""

    estimator: DPPEstimator
    omega: float
    memory: int
    progress: Progress = ignore

    def learn(self, groups: Groups, numbers: IntArray) -> Learned:
        """Learn from the groups with these numbers."""
        refuse_large_groups(groups, numbers)
        sizes = groups.survey.sizes[numbers]
        n_bytes = 8 * int(sizes.sum()) * groups.encoding.width
        name = type(self.estimator).__name__
        if n_bytes > self.memory:
            raise TableError(
                f"the features of the table take {n_bytes:,} bytes, more than "
                f"memory={self.memory:,}, and a {name} holds them all: raise memory, "
                "or learn with a LargeMarginDPP, which reads larger tables in parts"
            )
        model: Any = clone(self.estimator)
        model.set_params(omega=self.omega, callback=self._watch)
        with groups.named(numbers):
            model.fit(*groups.examples(numbers))
        model.set_params(callback=None)
        self.progress("learning", 1, 1)
        return Learned(Policy(OmegaFamily((self.omega,), (model,)), self.omega))

    def _watch(self, step: Any) -> object:
        """Tell how far learning has come; ask who waits whether it is enough."""
        estimator: Any = self.estimator
        self.progress("learning", step.iteration, estimator.max_epochs)
        return None if estimator.callback is None else estimator.callback(step)

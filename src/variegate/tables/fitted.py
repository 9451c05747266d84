"""Fitted selectors, which choose from other tables."""

from __future__ import annotations

import copy
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any, Self

import numpy as np
from sklearn.utils.validation import check_is_fitted

from variegate._progress import Progress, ProgressPrinter, ignore
from variegate._typing import BoolArray, FloatArray
from variegate._validation import check_number
from variegate.application.base import Application
from variegate.application.refusal import Setting
from variegate.estimator import DPPEstimator, LargeMarginDPP
from variegate.partitions import Engine
from variegate.tables.choosing import Choices, Chooser, choose_from_groups
from variegate.tables.columns import Columns
from variegate.tables.encoding import Encoding
from variegate.tables.errors import TableError
from variegate.tables.groups import Groups
from variegate.tables.kinds import RowKinds, kinds_of, row_kinds
from variegate.tables.limits import NO_LIMIT, Limit, warn_of_few_rows
from variegate.tables.output import Output
from variegate.tables.policy import Policy
from variegate.tables.problems import Inspection
from variegate.tables.survey import resolve_columns, survey_table
from variegate.tables.table import FolderTable, Table, as_table
from variegate.tuning.path import OmegaPath


class FittedSelector(Application):
    """The part of a :class:`~variegate.tables.TableSelector` that needs no labels.

    It goes by ``columns_``, ``encoding_``, ``policy_`` and ``seed_``.
    """

    columns_: Columns
    encoding_: Encoding
    policy_: Policy
    path_: OmegaPath | None
    seed_: int
    decoder: Any
    empty_groups: str
    memory: int
    segment_memory: int
    n_jobs: int | None
    verbose: bool

    # Learned attributes -----------------------------------------------------------

    @property
    def lam_(self) -> float:
        """The weight of the margin in the loss; 0 is maximum likelihood."""
        return float(self.model_.lam)

    @property
    def omega_(self) -> float:
        """The default cost of missing a row, relative to choosing a wrong one."""
        return self.policy_.omega

    @property
    def k_(self) -> int | None:
        """The default number of rows of each group; None where the model decides."""
        return self.policy_.k

    @property
    def model_(self) -> LargeMarginDPP:
        """The learned model."""
        check_is_fitted(self, "policy_")
        return self.policy_.model

    @property
    def feature_names_(self) -> list[str]:
        """Names of the quality features."""
        return self.encoding_.names

    @property
    def weights_(self) -> dict[str, float]:
        """The weight of every quality feature by name; AttributeError for networks."""
        if is_network(self.model_):
            raise AttributeError(_no_weights_message(self.model_, "weights_"))
        weights = self.model_.theta_.tolist()
        return dict(zip(self.feature_names_, weights, strict=True))

    def with_columns(
        self,
        group: str | None = None,
        label: str | None = None,
        cost: str | None = None,
        relevance: str | None = None,
        given: str | None = None,
        segment: str | None = None,
    ) -> Self:
        """Return a copy for tables with these columns; None keeps a column's name."""
        check_is_fitted(self, "policy_")
        other = copy.copy(self)
        roles = {"group": group, "label": label, "cost": cost}
        roles |= {"relevance": relevance, "given": given, "segment": segment}
        other.columns_ = self.columns_.with_roles(roles)
        return other

    def _set_names(self, names: Sequence[str]) -> None:
        """Set ``feature_names_in_`` and ``n_features_in_`` by the training columns."""
        self.feature_names_in_ = np.array(names, dtype=object)
        self.n_features_in_ = len(names)

    def _progress(self, progress: Progress | None) -> Progress:
        """Return the callback, or if None one that prints (``verbose``) or ignores."""
        if progress is not None:
            return progress
        return ProgressPrinter("TableSelector").progress if self.verbose else ignore

    # Choosing ---------------------------------------------------------------------

    def choose(
        self,
        X: Any,
        k: int | None = None,
        budget: float | None = None,
        omega: float | None = None,
        progress: Progress | None = None,
        *,
        at_most: int | Sequence[int] | None = None,
        per: str | Sequence[str] | None = None,
    ) -> Choices:
        """Choose rows of every group.

        Parameters
        ----------
        X : data frame, Arrow table or path
            With the columns that the model was learned with; labels are not needed.
        k : int, optional
            Rows to choose from each group, all of it if it has no more.  By default
            ``k_``; where that is None the model decides how many are worth choosing.
        budget : float, optional
            The most that the rows of a group may cost together.
        omega : float, optional
            What a missed row costs against a wrong one; by default ``omega_``, that of
            the model.  Another one multiplies the odds of all rows by ``omega /
            omega_``, and moves the end of the ranking: what a smaller omega chooses, a
            larger one chooses too.  Not with ``k``, which fixes the end.
        progress : callable, optional
        at_most, per : int and str, or sequences of them, optional
            Choose at most this many rows of a group with the same value in this column.
            Where that allows fewer than ``k`` rows, or than ``k_``, fewer are chosen,
            with a warning.

        Returns
        -------
        Choices
            Arrays with a value for each row: whether it is selected, its rank in its
            group, and the probability with which the model includes it, NaN for given
            rows; and for each group how the search ended.
        """
        check_is_fitted(self, "policy_")
        progress = self._progress(progress)
        limit = Limit.of(k, budget, at_most, per)
        chooser = self._make_chooser(omega, limit)
        table, columns = as_table(X), self._required_columns(False, limit)
        groups = self._read_groups(table, columns, progress=progress)
        with self._list_all_problems(table, columns):
            choices = choose_from_groups(groups, chooser, self.n_jobs, progress)
        limit = limit.with_k(self.k_)
        warn_of_few_rows(choices.n_short, len(choices.groups), limit)
        return choices

    def _make_chooser(
        self,
        omega: float | None = None,
        limit: Limit = NO_LIMIT,
    ) -> Chooser:
        """Return a chooser by omega (None: ``omega_``); refuse omega beside ``k``."""
        if omega is not None:
            check_number("omega", omega, positive=True)
            if limit.k is not None:
                raise TableError(
                    Setting("k"),
                    " fixes the number of rows, which ",
                    Setting("omega"),
                    " would change: leave out one of the two",
                )
        memory = None if self.columns_.segment is None else self.segment_memory
        return self.policy_.chooser(omega, limit, self.decoder, self.seed_, memory)

    def _read_groups(
        self,
        table: Table,
        columns: Columns,
        *,
        labels: BoolArray | None = None,
        empty_groups: str | None = None,
        progress: Progress = ignore,
        engine: Engine | None = None,
        skip_unreadable: bool = False,
        by_file: bool = False,
    ) -> Groups:
        """Return the groups of another table, its columns encoded as in training.

        If it is refused, all problems are listed, those of ``empty_groups`` among them.
        ``labels`` of all rows stand in place of a column.  With ``by_file``, partitions
        end where files do; with ``skip_unreadable``, unreadable files are left out.
        """
        with self._list_all_problems(table, columns, labels, empty_groups, engine):
            try:
                resolve_columns(table, columns)
            except TableError as error:
                raise error.with_prefix(
                    f"{table.name} does not fit the model: "
                ) from None
            found = survey_table(
                table,
                columns,
                labels,
                engine=engine,
                memory=self.memory,
                progress=progress,
                skip_unreadable=skip_unreadable,
                by_file=by_file,
            )
        return Groups(found, self.encoding_, labels, engine=engine, memory=self.memory)

    @contextmanager
    def _list_all_problems(
        self,
        table: Table,
        columns: Columns,
        labels: BoolArray | None = None,
        empty_groups: str | None = None,
        engine: Engine | None = None,
    ) -> Iterator[None]:
        """Replace a TableError of the block by one with all problems of the table.

        ``labels`` are of all rows; without any, ``empty_groups`` does nothing.
        """
        try:
            yield
        except TableError as error:
            has_labels = columns.label is not None or labels is not None
            how = empty_groups if has_labels else None
            found = Inspection(
                table, columns, labels, how,
                of_model=True, engine=engine, memory=self.memory,
            )  # fmt: skip
            raise found.list_problems(error) from error

    def _required_columns(
        self,
        use_labels: bool,
        limit: Limit = NO_LIMIT,
        relevance: str | None = None,
        subtopics: str | None = None,
    ) -> Columns:
        """Return the roles for one call: label and cost only where they are used."""
        use_costs = limit.budget is not None
        if use_costs and self.columns_.cost is None:
            raise TableError(
                "a budget needs a column of costs: name it with ", Setting("cost")
            )
        return replace(
            self.columns_,
            label=self.columns_.label if use_labels else None,
            cost=self.columns_.cost if use_costs else None,
            relevance=relevance,
            subtopics=subtopics,
            per=limit.per,
        )

    def predict(self, X: Any) -> BoolArray:
        """Return whether each row is chosen, (n_rows,)."""
        return self.choose(X).selected

    def inclusion_probability(self, X: Any) -> FloatArray:
        """Return the probability that the model includes each row, (n_rows,).

        It is NaN for given rows.
        """
        probability = self.choose(X).probability
        assert probability is not None  # a model always tells
        return probability

    def kinds(self, X: Any, block: str | None = None) -> RowKinds:
        """Return, for every row, its most probable kind and how probable that is.

        For a model with a kernel :class:`variegate.Kinds`, by itself or in a mixture;
        ``block`` names the kernel where a mixture has several.  Rows of one kind are
        alike to the model.  :meth:`describe` has the same numbers for kinds.

        Returns
        -------
        RowKinds
            Two arrays with a value for each row: ``kind`` and ``probability``.
        """
        check_is_fitted(self, "policy_")
        refuse_network(self.model_, "kinds")
        table, columns = as_table(X), self._required_columns(False)
        with self._list_all_problems(table, columns):
            kinds = kinds_of(self.model_, block)
            return row_kinds(kinds, self._read_groups(table, columns))

    def select(
        self,
        X: Any,
        k: int | None = None,
        budget: float | None = None,
        omega: float | None = None,
        keep_all: bool = False,
        *,
        drop: Sequence[str] = (),
        out: str | Path | None = None,
        progress: Progress | None = None,
        engine: Engine | None = None,
        skip_unreadable: bool = False,
        at_most: int | Sequence[int] | None = None,
        per: str | Sequence[str] | None = None,
    ) -> Any:
        """Return the chosen rows, with their rank and probability in new columns.

        Parameters
        ----------
        X : data frame, Arrow table or path
            The result is of the same kind, an Arrow table for a path.
        k, budget, omega, at_most, per : as for :meth:`choose`
        keep_all : bool, default=False
            Whether to return all rows, with one more column that says which are
            selected.
        drop : sequence of str, optional
            Columns to leave out; ``*`` in a name stands for anything.
        out : str or Path, optional
            A file to write the rows to, batch by batch, so that they may be more than
            fit in memory; ``.parquet``, ``.csv``, ``.jsonl`` or ``.arrow``.  What is
            returned is then what :meth:`choose` returns.
        progress : callable, optional
        engine : Engine, optional
            Chooses from the files of a folder, of which each holds all rows of its
            groups, one by one.  ``out`` is then a folder, to which workers write a
            file for each, whole or not at all, and a :class:`FolderSelection` is
            returned.  Run again, only missing files are written; another model, other
            settings or files that have changed are refused.
        skip_unreadable : bool, default=False
            Whether an engine leaves out files that cannot be read, which are named in
            the result.
        """
        check_is_fitted(self, "policy_")
        progress = self._progress(progress)
        table = as_table(X, skip_unreadable)
        if engine is not None:
            from variegate.tables.selecting import select_into_folder

            if out is None or not isinstance(table, FolderTable):
                raise ValueError(
                    "with an engine, rows of a folder are written to a folder: name "
                    "both, X and out"
                )
            return select_into_folder(
                self, table, Output(keep_all, drop, out), engine, omega,
                Limit.of(k, budget, at_most, per), skip_unreadable, progress,
            )  # fmt: skip
        output = Output(keep_all, drop, out)
        output.check(table, adds_probability=True)
        choices = self.choose(
            table, k, budget, omega, progress, at_most=at_most, per=per
        )
        return output.deliver(X, choices, progress)


def is_network(estimator: DPPEstimator | None) -> bool:
    """Tell whether an estimator has networks in place of a kernel; False for None."""
    return estimator is not None and not isinstance(estimator, LargeMarginDPP)


def refuse_network(model: DPPEstimator, attribute: str) -> None:
    """Refuse an ``attribute`` that needs weights where the model has networks."""
    if is_network(model):
        raise TableError(_no_weights_message(model, attribute))


def _no_weights_message(model: DPPEstimator, attribute: str) -> str:
    """Return the message for an attribute that networks lack."""
    return (
        f"a {type(model).__name__} has no weights of features: {attribute} is for "
        "models of a LargeMarginDPP. Its networks are model_.network_"
    )

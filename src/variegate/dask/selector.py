"""The selector of table rows that learns and chooses on a cluster."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Self

from distributed import Client

from variegate._typing import RandomState
from variegate.application.table_defaults import EMPTY_GROUPS, MEMORY, MISSING
from variegate.dask.on_cluster import OnCluster
from variegate.estimator import DPPEstimator
from variegate.files import models as model_files
from variegate.kernels import Kernel
from variegate.tables.folder.judging import FolderEvaluation, evaluate_folder
from variegate.tables.folder.learning import learn_folder
from variegate.tables.folder.selecting import FolderSelection, select_folder
from variegate.tables.selector import TableSelector as Home
from variegate.tables.table import Progress

__all__ = ["TableSelector"]


class TableSelector(OnCluster, Home):
    """:class:`variegate.tables.TableSelector`, learned on a Dask cluster.

    The parameters and what is learned are the same; ``fit`` takes a folder of Parquet
    or Arrow files, which every worker must be able to read under the same path.  The
    rows of a group must lie in one file (:func:`variegate.tables.gather` sees to that).
    What ``kernel="auto"`` and ``tune`` compare, they compare on a sample of the groups,
    brought here.

    What was learned chooses here, by the methods of home, or on the cluster, by
    :meth:`select_folder`; a file that :meth:`save` writes is one of
    :class:`variegate.tables.TableSelector`.

    Parameters
    ----------
    client : distributed.Client, optional
        The cluster; the client that was made last if not given.
    group, label, quality, ... : as for TableSelector at home
    """

    _home = Home

    def __init__(
        self,
        group: str | None = None,
        label: str | None = None,
        quality: str | Sequence[str] | None = None,
        similarity: str | Sequence[str] | Mapping[str, Any] | None = None,
        categorical: str | Sequence[str] | None = None,
        item: str | None = None,
        cost: str | None = None,
        missing: str = MISSING[0],
        empty_groups: str = EMPTY_GROUPS[0],
        lam: float | None = None,
        omega: float | Sequence[float] | None = None,
        tune: bool = False,
        lams: Sequence[float] = (0.0, 4.0, 16.0),
        target_precision: float | None = None,
        target_recall: float | None = None,
        kernel: str | Kernel | None = None,
        l2: float | None = None,
        decoder: Any = None,
        max_iter: int | None = None,
        tol: float | None = None,
        n_epochs: int | None = None,
        validation_fraction: float = 0.0,
        memory: int = MEMORY,
        n_jobs: int | None = None,
        random_state: RandomState = 0,
        estimator: DPPEstimator | None = None,
        relevance: str | None = None,
        verbose: bool = False,
        device: str | None = None,
        *,
        client: Client | None = None,
    ) -> None:
        super().__init__(
            group=group,
            label=label,
            quality=quality,
            similarity=similarity,
            categorical=categorical,
            item=item,
            cost=cost,
            missing=missing,
            empty_groups=empty_groups,
            lam=lam,
            omega=omega,
            tune=tune,
            lams=lams,
            target_precision=target_precision,
            target_recall=target_recall,
            kernel=kernel,
            l2=l2,
            decoder=decoder,
            max_iter=max_iter,
            tol=tol,
            n_epochs=n_epochs,
            validation_fraction=validation_fraction,
            memory=memory,
            n_jobs=n_jobs,
            random_state=random_state,
            estimator=estimator,
            relevance=relevance,
            verbose=verbose,
            device=device,
        )
        self.client = client

    def fit(
        self,
        X: Any,
        y: Any = None,
        progress: Progress | None = None,
        *,
        journal: str | Path | None = None,
        skip_unreadable: bool = False,
        first_passes: int | None = None,
    ) -> Self:
        """Learn from a folder, on the cluster.

        Parameters
        ----------
        X : str, Path or FolderTable
            Files with the same columns.
        y : None
            Labels are a column of the files.
        progress : callable, optional
            Called with what is being done, and (finished, all) steps of it.
        journal : path, optional
            A file by which a fit that was interrupted goes on, with the same bits.  It
            is removed at the end.
        skip_unreadable : bool, default=False
            Whether files that cannot be read are left out, and named in ``training_``.
        first_passes : int, optional
            As for :class:`variegate.partitions.PartitionedExamples`.

        Returns
        -------
        self
        """
        if y is not None:
            raise ValueError("on a cluster, labels are a column of the files, not y")
        home = self.at_home()
        learn_folder(
            home,
            X,
            self._engine(),
            progress=progress,
            journal=journal,
            skip_unreadable=skip_unreadable,
            first_passes=first_passes,
        )
        return self._take(home)

    def select_folder(
        self, folder: str | Path, out: str | Path, **options: Any
    ) -> FolderSelection:
        """Choose rows of every group of a folder into another folder, on the cluster.

        Parameters
        ----------
        folder, out : str or Path
            Workers write to ``out``.  Run again, only what is missing is done.
        **options
            ``k``, ``budget``, ``omega``, ``keep_all``, ``drop`` and ``progress`` of
            :meth:`variegate.tables.TableSelector.select`, and ``skip_unreadable``.

        Returns
        -------
        FolderSelection
        """
        return select_folder(self.at_home(), folder, out, self._engine(), **options)

    def evaluate_folder(self, folder: str | Path, **options: Any) -> FolderEvaluation:
        """Compare what is chosen with the labels of a folder, on the cluster.

        Parameters
        ----------
        folder : str or Path
        **options
            Those of :meth:`variegate.tables.TableSelector.evaluate` but ``y`` and
            ``others``, and ``skip_unreadable``.

        Returns
        -------
        FolderEvaluation
        """
        return evaluate_folder(self.at_home(), folder, self._engine(), **options)

    def save(self, path: str | Path) -> None:
        """Write the fitted model to a JSON file, as one of home."""
        self.at_home().save(path)

    @classmethod
    def load(cls, path: str | Path) -> Self:
        """Read a model that was saved here or at home."""
        home = Home.load(path)
        return cls(**home.get_params(deep=False))._take(home)


# Files are read as models of home, which ask for no cluster.
model_files.register(Home._type, Home.decode)

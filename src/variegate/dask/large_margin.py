"""The estimator that learns on a cluster."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Self

from distributed import Client

from variegate._typing import RandomState
from variegate.dask.on_cluster import OnCluster
from variegate.decoding import Decoder
from variegate.estimator import LargeMarginDPP as Home
from variegate.kernels import Kernel
from variegate.partitions import Engine, PairShards, PartitionedExamples
from variegate.solvers import Callback
from variegate.streaming import PairFolder

__all__ = ["LargeMarginDPP"]


class LargeMarginDPP(OnCluster, Home):
    """:class:`variegate.LargeMarginDPP`, learned on a Dask cluster.

    The parameters and what is learned are the same; ``fit`` takes a folder, which every
    worker must be able to read under the same path.  What was learned predicts here,
    and a file that ``save`` writes is one of :class:`variegate.LargeMarginDPP`.

    Parameters
    ----------
    client : distributed.Client, optional
        The cluster; the client that was made last if not given.
    lam, omega, kernel, ... : as for LargeMarginDPP at home
        ``n_jobs`` does not matter: each thread of each worker works on one file at a
        time.

    Examples
    --------
    >>> import tempfile
    >>> import variegate as vg
    >>> from distributed import Client
    >>> from variegate.dask import LargeMarginDPP
    >>> from variegate.streaming import write_pairs
    >>> data = vg.datasets.make_synthetic(n_sets=30, random_state=0)
    >>> pairs = zip(data.ground_sets, data.subsets)
    >>> with (
    ...     tempfile.TemporaryDirectory() as folder,
    ...     Client(processes=False, dashboard_address="127.0.0.1:0") as client,
    ... ):
    ...     _ = write_pairs(folder, pairs, shard_size=10)
    ...     model = LargeMarginDPP(kernel=vg.Linear(), client=client).fit(folder)
    >>> len(model.theta_)
    5
    """

    _home = Home

    def __init__(
        self,
        lam: float = 1.0,
        omega: float = 1.0,
        kernel: Kernel | None = None,
        fit_intercept: bool = True,
        l2: float = 0.0,
        solver: Any = "lbfgs",
        decoder: str | Decoder = "mbr",
        jitter: float = 1e-6,
        max_iter: int = 500,
        tol: float = 1e-5,
        n_starts: int = 1,
        warm_start: bool = False,
        callback: Callback | None = None,
        random_state: RandomState = None,
        n_jobs: int | None = None,
        verbose: bool = False,
        device: str | None = None,
        *,
        client: Client | None = None,
    ) -> None:
        super().__init__(
            lam=lam,
            omega=omega,
            kernel=kernel,
            fit_intercept=fit_intercept,
            l2=l2,
            solver=solver,
            decoder=decoder,
            jitter=jitter,
            max_iter=max_iter,
            tol=tol,
            n_starts=n_starts,
            warm_start=warm_start,
            callback=callback,
            random_state=random_state,
            n_jobs=n_jobs,
            verbose=verbose,
            device=device,
        )
        self.client = client

    def fit(
        self,
        ground_sets: Any,
        subsets: Any = None,
        *,
        false_positive: Any = None,
        false_negative: Any = None,
        validation: Any = None,
        checkpoint: str | Path | None = None,
        first_passes: int | None = None,
        group: str | None = None,
        label: str | None = None,
        quality: str | Sequence[str] | None = None,
        similarity: str | Sequence[str] | Mapping[str, Any] | None = None,
    ) -> Self:
        """Learn from a folder, on the cluster.

        Parameters
        ----------
        ground_sets : str, Path or PairFolder
            A folder of pairs, such as :func:`variegate.streaming.write_pairs` makes; or
            one of Parquet or Arrow files, with ``group`` and ``label``, whose numbers
            are taken as they are: :class:`variegate.dask.TableSelector` makes features
            of columns.
        checkpoint : path, optional
            A file by which a fit that was interrupted goes on, with the same bits.  It
            is removed at the end.
        first_passes : int, optional
            As for :class:`variegate.partitions.PartitionedExamples`.
        group, label : str, optional
            For a folder of tables: the columns of the names of groups, and of 1 in rows
            that were chosen and 0 in others.
        quality, similarity : str or sequence of str, optional
            Columns of numbers or vectors, as for
            :class:`variegate.tables.TableSelector`.
        subsets, false_positive, false_negative, validation
            Not for a folder.

        Returns
        -------
        self
        """
        given = (subsets, false_positive, false_negative, validation)
        if any(one is not None for one in given):
            raise ValueError(
                "on a cluster, fit takes a folder and nothing beside it: subsets, "
                "costs and validation are for variegate.LargeMarginDPP"
            )
        parts = [("group", group), ("label", label)]
        parts += [("quality", quality), ("similarity", similarity)]  # type: ignore[list-item]
        columns = {part: named for part, named in parts if named is not None}
        examples = _examples(ground_sets, self._engine(), first_passes, columns)
        home = self.at_home()
        home.fit(examples, checkpoint=checkpoint)
        return self._take(home)

    def encode(self) -> dict[str, Any]:
        """Return the fitted model as plain values, as a file of home holds it."""
        encoded: dict[str, Any] = self.at_home().encode()
        return encoded


def _examples(
    data: Any, engine: Engine, first_passes: int | None, columns: Mapping[str, Any]
) -> PartitionedExamples:
    """Return the examples of a folder of pairs or, where columns are named, tables."""
    if isinstance(data, PairFolder):
        data = data.folder
    if not isinstance(data, str | Path):
        raise ValueError(
            "on a cluster, fit takes a folder that workers can read, not "
            f"{type(data).__name__}: write ground sets to one by "
            "variegate.streaming.write_pairs"
        )
    if not columns:
        return PartitionedExamples(PairShards(data), engine, first_passes=first_passes)
    from variegate.tables.folder.raw import raw_source  # which needs its own extra

    source = raw_source(data, engine, **columns)
    return PartitionedExamples(source, engine, first_passes=first_passes)

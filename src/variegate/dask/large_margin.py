"""The estimator that learns on a cluster."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Self

from distributed import Client
from sklearn.base import clone

from variegate.dask.engine import DaskEngine
from variegate.estimator import LargeMarginDPP as Local
from variegate.partitions import Engine, PairShards, PartitionedExamples
from variegate.streaming import PairFolder

__all__ = ["LargeMarginDPP"]


class LargeMarginDPP(Local):
    """:class:`variegate.LargeMarginDPP`, learned on a Dask cluster.

    The parameters and what is learned are the same; ``fit`` takes a folder, which every
    worker must be able to read under the same path.  The fitted model predicts in this
    process, and a file that ``save`` writes is one of
    :class:`variegate.LargeMarginDPP`.

    Parameters
    ----------
    client : distributed.Client, optional
        The cluster; the client that was made last if not given.
    lam, omega, kernel, ... : as for :class:`variegate.LargeMarginDPP`
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

    def __init__(
        self, *arguments: Any, client: Client | None = None, **parameters: Any
    ) -> None:
        super().__init__(*arguments, **parameters)
        self.client = client

    @classmethod
    def _get_param_names(cls) -> list[str]:
        return sorted([*Local._get_param_names(), "client"])

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
            are taken as they are: :class:`variegate.tables.TableSelector` makes
            features of columns.
        checkpoint : path, optional
            A file by which a fit that was interrupted is resumed, with the same bits.
            It is removed at the end.
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
        engine = DaskEngine(self.client)
        local = self.local()
        local.fit(
            _examples(ground_sets, engine, first_passes, columns), checkpoint=checkpoint
        )
        self.__dict__.update(_learned(local))
        return self

    def local(self) -> Local:
        """Return the same estimator, fitted if this one is, without a cluster."""
        local = Local(**self._local_parameters())
        local.__dict__.update(_learned(self))
        return local

    def _local_parameters(self) -> dict[str, Any]:
        parameters: dict[str, Any] = self.get_params(deep=False)
        return {name: it for name, it in parameters.items() if name != "client"}

    def encode(self) -> dict[str, Any]:
        """Return the fitted model as plain values, as of a local estimator."""
        return self.local().encode()

    def __sklearn_clone__(self) -> Self:
        """Return an unfitted copy, on the same cluster."""
        parameters = {
            name: clone(it, safe=False) for name, it in self._local_parameters().items()
        }
        return type(self)(client=self.client, **parameters)

    def __getstate__(self) -> dict[str, Any]:
        state: dict[str, Any] = super().__getstate__()
        return state | {"client": None}  # a connection cannot be pickled


def _learned(model: Local) -> dict[str, Any]:
    parameters = model.get_params(deep=False)
    return {name: it for name, it in vars(model).items() if name not in parameters}


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
    from variegate.tables.folder.groups import raw_source  # which needs its own extra

    source = raw_source(data, engine, **columns)
    return PartitionedExamples(source, engine, first_passes=first_passes)

"""What estimators on a cluster share: a client, and a twin at home."""

from __future__ import annotations

from typing import Any, ClassVar, Self

from distributed import Client, get_client
from sklearn.base import clone

from variegate.dask.engine import DaskEngine

__all__ = ["OnCluster"]


class OnCluster:
    """Adds a client to an estimator of home.

    The work is done by a twin at home, which knows nothing of clusters; so it learns,
    writes and sends to workers what the estimator of home does.
    """

    #: The class at home.
    _home: ClassVar[type[Any]]

    client: Client | None

    def at_home(self) -> Any:
        """Return the same estimator, with what it has learned, without a cluster."""
        home = self._home(**self._home_parameters())
        vars(home).update(self._learned())
        return home

    def _take(self, home: Any) -> Self:
        """Take what a twin has learned."""
        settings = home.get_params(deep=False)
        learned = {name: it for name, it in vars(home).items() if name not in settings}
        vars(self).update(learned)
        return self

    def _engine(self) -> DaskEngine:
        if self.client is not None:
            return DaskEngine(self.client)
        try:
            return DaskEngine(get_client())
        except ValueError as error:
            raise ValueError(
                "there is no cluster: give client=distributed.Client(...), or make "
                "such a client before"
            ) from error

    def _home_parameters(self) -> dict[str, Any]:
        settings: dict[str, Any] = self.get_params(deep=False)  # type: ignore[attr-defined]
        return {name: it for name, it in settings.items() if name != "client"}

    def _learned(self) -> dict[str, Any]:
        settings = {*self._home_parameters(), "client"}
        return {name: it for name, it in vars(self).items() if name not in settings}

    def __sklearn_clone__(self) -> Self:
        """Return a copy that has not learned, on the same cluster."""
        settings = {
            name: clone(it, safe=False) for name, it in self._home_parameters().items()
        }
        return type(self)(client=self.client, **settings)  # type: ignore[call-arg]

    def __getstate__(self) -> dict[str, Any]:
        state: dict[str, Any] = super().__getstate__()  # type: ignore[assignment]
        return state | {"client": None}  # a connection stays where it is

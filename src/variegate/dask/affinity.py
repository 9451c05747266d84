"""Which worker an item belongs to, so that what a worker keeps serves it again."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from math import ceil
from typing import Any

__all__ = ["Affinity"]


class Affinity:
    """Owners of items, which stay the same as long as the workers do.

    Neighbours have the same owner, so that their results are added where they lie.
    Where a worker is lost, its items alone go to others; where one joins, the others
    give up what is above their share.
    """

    def __init__(self) -> None:
        self._owners: dict[Hashable, str] = {}
        self._workers: dict[str, int] = {}

    def owners(self, items: Sequence[Any], workers: Mapping[str, int]) -> list[str]:
        """Return the address of each item's owner.

        Parameters
        ----------
        items : sequence
            What cannot be hashed is known by its place.
        workers : mapping from address to number of threads
            At least one.
        """
        if self._workers != workers:
            self._workers = dict(sorted(workers.items()))
            self._owners = self._kept(self._owners)
        names = [_name(item, k) for k, item in enumerate(items)]
        shares = self._shares(len(names))
        for name in names:
            if name in self._owners:
                shares[self._owners[name]] -= 1
        for name in names:
            if name not in self._owners:
                owner = next((w for w, left in shares.items() if left > 0), None)
                owner = owner or max(shares, key=lambda w: shares[w])
                shares[owner] -= 1
                self._owners[name] = owner
        return [self._owners[name] for name in names]

    def _kept(self, owners: Mapping[Hashable, str]) -> dict[Hashable, str]:
        """Return what the present workers keep of what they had."""
        shares = self._shares(len(owners))
        kept = {}
        for name, owner in owners.items():
            if shares.get(owner, 0) > 0:
                shares[owner] -= 1
                kept[name] = owner
        return kept

    def _shares(self, n_items: int) -> dict[str, int]:
        n_threads = sum(self._workers.values())
        return {
            worker: ceil(n_items * threads / n_threads)
            for worker, threads in self._workers.items()
        }


def _name(item: Any, place: int) -> Hashable:
    try:
        hash(item)
    except TypeError:
        return place
    return item  # type: ignore[no-any-return]

"""Preferences: the knob or a target for it, and the order of the groups."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from typing import Any, Self

#: Orders of groups: that of least confidence next, or as in DATA.
ORDERS = ("unsure", "given")


@dataclass(frozen=True)
class Preferences:
    """The preferences of a person."""

    #: The cost of a missed item against one too many.
    omega: float = 1.0
    #: ``{"recall": 0.9}`` or ``{"precision": 0.9}``: the omega at which that is
    #: expected is taken instead.
    target: dict[str, float] | None = None
    order: str = ORDERS[0]

    def changed(self, changes: Mapping[str, Any]) -> Self:
        """Return preferences with some changed; to set omega ends a target."""
        if not changes or changes.keys() - {"omega", "target", "order"}:
            raise ValueError("give omega, target or order")
        new = self
        if "omega" in changes:
            omega = changes["omega"]
            if not _is_number(omega) or not omega > 0.0:
                raise ValueError("omega is a positive number")
            new = replace(new, omega=float(omega), target=None)
        if "target" in changes:
            new = replace(new, target=_target(changes["target"]))
        if "order" in changes:
            if changes["order"] not in ORDERS:
                raise ValueError(f"order is one of {', '.join(ORDERS)}")
            new = replace(new, order=changes["order"])
        return new

    def to_json(self) -> dict[str, Any]:
        """Return them by name."""
        return asdict(self)


def _target(value: Any) -> dict[str, float] | None:
    if value is None:
        return None
    if isinstance(value, dict) and len(value) == 1:
        ((name, share),) = value.items()
        is_known = name in ("precision", "recall")
        if is_known and _is_number(share) and 0.0 < share <= 1.0:
            return {name: float(share)}
    raise ValueError('a target is {"recall": 0.9}, {"precision": 0.9} or null')


def _is_number(value: Any) -> bool:
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    # An integer may be too large for a float.
    return is_number and abs(value) < 1e300 and math.isfinite(value)

"""Ways to choose from groups that a selector has learned, and when to take which."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from variegate.baselines.learned import METHODS
from variegate.baselines.ordering import Ordering
from variegate.decoding import as_decoder
from variegate.estimator import LargeMarginDPP
from variegate.files.model_format import MODELS, POSITIVE
from variegate.files.models import ModelFileError, Own
from variegate.files.schema import Maybe, Number, Record, Shape, Text
from variegate.tables.choosing import ByMethod, ByModel, Choice, inclusion
from variegate.tables.groups import Group
from variegate.tuning import OmegaFamily
from variegate.tuning.familiarity import Familiarity, kinds_of

__all__ = [
    "ELSEWHERE",
    "RULE",
    "Chooser",
    "Elsewhere",
    "Way",
    "decode_elsewhere",
    "decode_rule",
    "encode_elsewhere",
    "encode_rule",
]

Chooser = Callable[[Group], Choice]

#: The shape of a rule in a file.
RULE: dict[str, Shape] = {
    "k": Maybe(Number(least=1, is_whole=True)),
    "ordering": Maybe(
        Record({"method": Text(tuple(METHODS)), "trade_off": Number(least=0, most=1)})
    ),
}
#: The shape of another way, for groups elsewhere.
ELSEWHERE = Record({"least": Number(), "omega": POSITIVE, "models": MODELS, **RULE})


@dataclass(frozen=True, eq=False)
class Way:
    """Models, and how rows are chosen by them if nothing else is asked for.

    Attributes
    ----------
    family : OmegaFamily
    omega : float
    k : int or None
        Rows to choose from each group; None: as many as the model finds right.
    ordering : Ordering or None
        A method of :func:`variegate.select` to choose by, with the model's log-quality
        for relevance; None: the decoder of the model.
    """

    family: OmegaFamily
    omega: float
    k: int | None = None
    ordering: Ordering | None = None

    def chooser(
        self,
        omega: float | None = None,
        k: int | None = None,
        budget: float | None = None,
        decoder: Any = None,
        seed: int = 0,
    ) -> Chooser:
        """Return what chooses from a group.

        Whoever names an omega lets the model decide how many rows that makes, unless
        he names their number too.
        """
        model = self.family.at(self.family.resolve(omega, self.omega))
        if omega is None and budget is None:
            k = self.k if k is None else k
        if self.ordering is not None and omega is None and decoder is None:
            method, trade_off = self.ordering.method, self.ordering.trade_off
            return ByRelevance(model, ByMethod(method, k, budget, trade_off, seed))
        decoder = model.decoder if decoder is None else decoder
        return ByModel(model, as_decoder(decoder), k, budget, seed)


@dataclass(frozen=True, eq=False)
class ByRelevance:
    """Choose by a method that learns nothing, from rows of learned relevance."""

    model: LargeMarginDPP
    method: ByMethod

    def __call__(self, group: Group) -> Choice:
        """Choose from one group."""
        relevance = self.model.log_quality(group.quality)
        chosen = self.method(replace(group, relevance=relevance))
        ending = {
            "stop_reason": f"rows of learned relevance, chosen by {self.method.method}",
            "gap": None,
            "is_optimal": False,
        }
        return Choice(chosen.order, inclusion(self.model, group), ending)


@dataclass(frozen=True, eq=False)
class Elsewhere:
    """What to do with groups unlike those that kinds were learned from."""

    way: Way
    is_familiar: Familiarity

    def chooser(self, usual: Chooser, **given: Any) -> Chooser:
        """Return what chooses from a group, be it familiar or not."""
        omega = given.get("omega")
        if omega is not None:
            low, high = self.way.family.omegas[0], self.way.family.omegas[-1]
            given["omega"] = min(max(omega, low), high)
        other = self.way.chooser(**given)
        return lambda group: (
            usual(group) if self.is_familiar(group.ground_set) else other(group)
        )


def encode_rule(way: Way) -> dict[str, Any]:
    """Return how a way chooses as plain values."""
    found = way.ordering
    ordering = found and {"method": found.method, "trade_off": found.trade_off}
    return {"k": way.k, "ordering": ordering}


def decode_rule(section: Mapping[str, Any]) -> tuple[int | None, Ordering | None]:
    """Return ``k`` and ``ordering`` of a file."""
    ordering = section["ordering"]
    return section["k"], ordering and Ordering(**ordering)


def encode_elsewhere(elsewhere: Elsewhere | None) -> dict[str, Any] | None:
    """Return it as plain values; the kernel is that of the selector."""
    if elsewhere is None:
        return None
    way = elsewhere.way
    return {
        "least": elsewhere.is_familiar.least,
        "omega": way.omega,
        **encode_rule(way),
        "models": way.family.encode(),
    }


def decode_elsewhere(
    section: Mapping[str, Any] | None,
    model: LargeMarginDPP,
    own: Own,
) -> Elsewhere | None:
    """Return what :func:`encode_elsewhere` has put into a file, beside a model."""
    if section is None:
        return None
    if not kinds_of(model.kernel_):
        raise ModelFileError('"elsewhere" needs a model with kinds')
    n_features = len(model.theta_)
    family = OmegaFamily.decode(section, own, "elsewhere", n_features)
    omega = family.resolve(section["omega"])
    way = Way(family, omega, *decode_rule(section))
    return Elsewhere(way, Familiarity(model.kernel_, float(section["least"])))

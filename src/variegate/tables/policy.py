"""Policies: how a fitted selector chooses from groups, and its fallback."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from variegate.baselines.learned import METHODS
from variegate.baselines.ordering import Ordering
from variegate.decoding import as_decoder
from variegate.estimator import LargeMarginDPP
from variegate.files.model_format import MODELS, POSITIVE
from variegate.files.models import ModelFileError, Own
from variegate.files.schema import Maybe, Number, Record, Shape, String
from variegate.tables.choosing import ByMethod, ByModel, Choice, Chooser, inclusion
from variegate.tables.groups import Group
from variegate.tuning import OmegaFamily
from variegate.tuning.kernel_search import Familiarity, kinds_of

#: The shape of a rule in a file.
RULE: dict[str, Shape] = {
    "k": Maybe(Number(least=1, is_whole=True)),
    "ordering": Maybe(
        Record({"method": String(tuple(METHODS)), "trade_off": Number(least=0, most=1)})
    ),
}
#: The shape of a fallback in a file.
FALLBACK = Record({"least": Number(), "omega": POSITIVE, "models": MODELS, **RULE})


@dataclass(frozen=True, eq=False)
class Policy:
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
        """Return a chooser; with an ``omega`` and no ``k`` the model decides on k."""
        model = self.family.at(self.family.resolve(omega, self.omega))
        if omega is None and budget is None:
            k = self.k if k is None else k
        if self.ordering is not None and omega is None and decoder is None:
            method, trade_off = self.ordering.method, self.ordering.trade_off
            by_method = ByMethod(method, k, budget, trade_off, seed, model.log_quality)
            return _ByQuality(model, by_method)
        decoder = model.decoder if decoder is None else decoder
        return ByModel(model, as_decoder(decoder), k, budget, seed)

    def encode_rule(self) -> dict[str, Any]:
        """Return ``k`` and ``ordering`` as plain values."""
        found = self.ordering
        ordering = found and {"method": found.method, "trade_off": found.trade_off}
        return {"k": self.k, "ordering": ordering}

    @staticmethod
    def decode_rule(section: Mapping[str, Any]) -> tuple[int | None, Ordering | None]:
        """Return ``k`` and ``ordering`` of a file."""
        ordering = section["ordering"]
        return section["k"], ordering and Ordering(**ordering)


@dataclass(frozen=True, eq=False)
class _ByQuality:
    """Choose by an untrained method, with a model's quality as relevance."""

    model: LargeMarginDPP
    method: ByMethod

    def __call__(self, group: Group, k: int | None = None) -> Choice:
        ending = {
            "stop_reason": f"rows of learned relevance, chosen by {self.method.method}",
            "gap": None,
            "is_optimal": False,
        }
        order = self.method(group, k).order
        return Choice(order, inclusion(self.model, group), ending)


@dataclass(frozen=True, eq=False)
class Fallback:
    """The policy for groups unlike those that kinds were learned from."""

    policy: Policy
    is_familiar: Familiarity

    def chooser(self, usual: Chooser, **given: Any) -> Chooser:
        """Return a chooser that takes ``usual`` for familiar groups."""
        omega = given.get("omega")
        if omega is not None:
            low, high = self.policy.family.omegas[0], self.policy.family.omegas[-1]
            given["omega"] = min(max(omega, low), high)
        return _ByFamiliarity(usual, self.policy.chooser(**given), self.is_familiar)

    def encode(self) -> dict[str, Any]:
        """Return it as plain values; the kernel is that of the selector."""
        return {
            "least": self.is_familiar.least,
            "omega": self.policy.omega,
            **self.policy.encode_rule(),
            "models": self.policy.family.encode(),
        }

    @classmethod
    def decode(
        cls, section: Mapping[str, Any] | None, model: LargeMarginDPP, own: Own
    ) -> Fallback | None:
        """Return the fallback that :meth:`encode` has put into a file."""
        if section is None:
            return None
        if not kinds_of(model.kernel_):
            raise ModelFileError('"fallback" needs a model with kinds')
        family = OmegaFamily.decode(section, own, "fallback", len(model.theta_))
        omega = family.resolve(section["omega"])
        policy = Policy(family, omega, *Policy.decode_rule(section))
        return cls(policy, Familiarity(model.kernel_, float(section["least"])))


@dataclass(frozen=True, eq=False)
class _ByFamiliarity:
    """Choose by one chooser from familiar groups, by another from the rest."""

    usual: Chooser
    other: Chooser
    is_familiar: Familiarity

    def __call__(self, group: Group, k: int | None = None) -> Choice:
        is_familiar = self.is_familiar(group.ground_set)
        return (self.usual if is_familiar else self.other)(group, k)

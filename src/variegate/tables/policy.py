"""The policy of a fitted selector: how it chooses from groups."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from variegate.baselines.learned import METHODS, Ordering
from variegate.decoding import as_decoder
from variegate.files.model_format import MODELS, POSITIVE
from variegate.files.models import ModelFileError, Own
from variegate.files.schema import Maybe, Number, Record, Shape, String
from variegate.report.wording import count
from variegate.tables.choosing import ByMethod, ByModel, Choice, Chooser
from variegate.tables.encoded import Group
from variegate.tuning import OmegaFamily
from variegate.tuning.kernel_search import Familiarity, kinds_of

_RULE: dict[str, Shape] = {
    "omega": POSITIVE,
    "k": Maybe(Number(least=1, is_whole=True)),
    "ordering": Maybe(
        Record({"method": String(tuple(METHODS)), "diversity": Number(least=0, most=1)})
    ),
}
#: The shape of a policy in a file, whose models stand beside it.
POLICY = Record(
    {
        **_RULE,
        "fallback": Maybe(Record({"least": Number(), "models": MODELS, **_RULE})),
    }
)


@dataclass(frozen=True, eq=False)
class Policy:
    """Models, and the default way to choose rows by them."""

    family: OmegaFamily
    omega: float
    #: Rows to choose from each group; None: as many as the model finds right.
    k: int | None = None
    #: A method of :func:`variegate.select` to choose by, with the model's log-quality
    #: for relevance; None: the decoder of the model.
    ordering: Ordering | None = None
    #: For groups that are not familiar: models without learned kinds.
    fallback: Policy | None = None
    #: Tells whether a group is like those that kinds were learned from.
    is_familiar: Familiarity | None = None

    def __str__(self) -> str:
        """Return how many rows are chosen by default, and how."""
        decoder = self.family.at(self.omega).decoder
        by = decoder if isinstance(decoder, str) else type(decoder).__name__
        if self.ordering is not None:
            diversity = f"(diversity {self.ordering.diversity:g})"
            by = f"{self.ordering.method} {diversity} on learned relevance"
        number = "as many as the model finds right"
        if self.k is not None:
            number = f"{count(self.k, 'row')} of each group"
        return f"{number}, by {by}"

    def chooser(
        self,
        omega: float | None = None,
        k: int | None = None,
        budget: float | None = None,
        decoder: Any = None,
        seed: int = 0,
    ) -> Chooser:
        """Return a chooser; with an ``omega`` and no ``k`` the model decides on k."""
        if self.fallback is not None and self.is_familiar is not None:
            alone = replace(self, fallback=None)
            usual = alone.chooser(omega, k, budget, decoder, seed)
            if omega is not None:
                known = self.fallback.family.omegas
                omega = min(max(omega, known[0]), known[-1])
            other = self.fallback.chooser(omega, k, budget, decoder, seed)
            return _ByFamiliarity(usual, other, self.is_familiar)
        model = self.family.at(self.family.resolve(omega, self.omega))
        if omega is None and budget is None:
            k = self.k if k is None else k
        if self.ordering is not None and omega is None and decoder is None:
            method, diversity = self.ordering.method, self.ordering.diversity
            relevance = model.log_quality
            return ByMethod(method, k, budget, diversity, seed, relevance, model)
        decoder = model.decoder if decoder is None else decoder
        return ByModel(model, as_decoder(decoder), k, budget, seed)

    def encode(self) -> dict[str, Any]:
        """Return all but the models as plain values."""
        values: dict[str, Any] = self._encode_rule() | {"fallback": None}
        if self.fallback is not None and self.is_familiar is not None:
            values["fallback"] = self.fallback._encode_rule() | {
                "least": self.is_familiar.least,
                "models": self.fallback.family.encode(),
            }
        return values

    def _encode_rule(self) -> dict[str, Any]:
        found = self.ordering
        ordering = found and {"method": found.method, "diversity": found.diversity}
        return {"omega": self.omega, "k": self.k, "ordering": ordering}

    @classmethod
    def decode(
        cls, section: Mapping[str, Any], family: OmegaFamily, own: Own
    ) -> Policy:
        """Return the policy that :meth:`encode` wrote, with its models."""
        usual, there = cls._decode_rule(section, family), section["fallback"]
        if there is None:
            return usual
        model = family.models[0]
        if not kinds_of(model.kernel_):
            raise ModelFileError('"fallback" needs a model with kinds')
        others = OmegaFamily.decode(there, own, len(model.theta_))
        return replace(
            usual,
            fallback=cls._decode_rule(there, others),
            is_familiar=Familiarity(model.kernel_, float(there["least"])),
        )

    @classmethod
    def _decode_rule(cls, section: Mapping[str, Any], family: OmegaFamily) -> Policy:
        ordering = section["ordering"]
        omega = family.resolve(section["omega"])
        return cls(family, omega, section["k"], ordering and Ordering(**ordering))


@dataclass(frozen=True, eq=False)
class _ByFamiliarity:
    """Choose by one chooser from familiar groups, by another from the rest."""

    usual: Chooser
    other: Chooser
    is_familiar: Familiarity

    def __call__(self, group: Group, k: int | None = None) -> Choice:
        is_familiar = self.is_familiar(group.ground_set)
        return (self.usual if is_familiar else self.other)(group, k)

"""The policy of a fitted selector: how it chooses from groups."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from variegate.baselines.learned import METHODS, Ordering
from variegate.decoding import Decoder, as_decoder
from variegate.estimator import LargeMarginDPP
from variegate.files.model_format import MODELS
from variegate.files.models import ModelFileError, Own
from variegate.files.schema import Maybe, Number, Record, Shape, String
from variegate.report.wording import count
from variegate.tables.choosing import ByModel, Choice, Chooser
from variegate.tables.encoded import Group
from variegate.tables.limits import NO_LIMIT, Limit
from variegate.tables.segments import BySegments
from variegate.tuning import OmegaFamily
from variegate.tuning.kernel_search import Familiarity, kinds_of

_RULE: dict[str, Shape] = {
    "k": Maybe(Number(least=1, is_whole=True)),
    "ordering": Maybe(
        Record({"method": String(tuple(METHODS)), "diversity": Number(least=0, most=1)})
    ),
}
#: The shape of a policy in a file, whose model stands beside it.
POLICY = Record(
    {
        **_RULE,
        "fallback": Maybe(Record({"least": Number(), "models": MODELS, **_RULE})),
    }
)


@dataclass(frozen=True, eq=False)
class Policy:
    """A model, and the default way to choose rows by it."""

    model: LargeMarginDPP
    #: Rows to choose from each group; None: as many as the model finds right.
    k: int | None = None
    #: A method of :func:`variegate.select` to choose by, with the model's log-quality
    #: for relevance; None: the decoder of the model.
    ordering: Ordering | None = None
    #: For groups that are not familiar: a model without learned kinds.
    fallback: Policy | None = None
    #: Tells whether a group is like those that kinds were learned from.
    is_familiar: Familiarity | None = None

    def __str__(self) -> str:
        """Return how many rows are chosen by default, and how."""
        decoder = self.model.decoder
        by = decoder if isinstance(decoder, str) else type(decoder).__name__
        if self.ordering is not None:
            diversity = f"(diversity {self.ordering.diversity:g})"
            by = f"{self.ordering.method} {diversity} on learned relevance"
        number = "as many as the model finds right"
        if self.k is not None:
            number = f"{count(self.k, 'row')} of each group"
        return f"{number}, by {by}"

    @property
    def omega(self) -> float:
        """The omega that the model was learned for, and the default one."""
        return float(self.model.omega)

    def chooser(
        self,
        omega: float | None = None,
        limit: Limit = NO_LIMIT,
        decoder: Any = None,
        seed: int = 0,
        segment_memory: int | None = None,
    ) -> Chooser:
        """Return a chooser; None stands for the policy's own omega or decoder.

        With a budget and no ``k``, the model decides how many rows to choose.  The seed
        is for decoders that draw at random.  Another omega multiplies the odds of all
        rows by its ratio to that of the model, after the model has chosen.  With
        ``segment_memory``, groups are chosen from segment by segment.
        """
        if self.fallback is not None and self.is_familiar is not None:
            how_to = (omega, limit, decoder, seed, segment_memory)
            usual = replace(self, fallback=None).chooser(*how_to)
            other = self.fallback.chooser(*how_to)
            return _ByFamiliarity(usual, other, self.is_familiar)
        if limit.budget is None:
            limit = limit.with_k(self.k)
        how: Decoder | Ordering | None = self.ordering
        if how is None or decoder is not None:
            how = as_decoder(self.model.decoder if decoder is None else decoder)
        odds = 1.0 if omega is None else omega / self.omega
        by_model = ByModel(self.model, how, limit, seed, odds)
        if segment_memory is None:
            return by_model
        return BySegments(by_model, segment_memory)

    def encode(self) -> dict[str, Any]:
        """Return all but the policy's own model as plain values of form ``POLICY``."""
        values: dict[str, Any] = self._encode_rule() | {"fallback": None}
        if self.fallback is not None and self.is_familiar is not None:
            values["fallback"] = self.fallback._encode_rule() | {
                "least": self.is_familiar.least,
                "models": self.fallback.family.encode(),
            }
        return values

    @property
    def family(self) -> OmegaFamily:
        """The model as a family for one omega, the form that files hold."""
        return OmegaFamily((self.omega,), (self.model,))

    def _encode_rule(self) -> dict[str, Any]:
        """Return ``k`` and the ordering as plain values, by the schema ``_RULE``."""
        found = self.ordering
        ordering = found and {"method": found.method, "diversity": found.diversity}
        return {"k": self.k, "ordering": ordering}

    @classmethod
    def decode(
        cls, section: Mapping[str, Any], family: OmegaFamily, own: Own
    ) -> Policy:
        """Return the policy that :meth:`encode` wrote, for the model of ``family``.

        ``own`` has the user's classes that the fallback's model may need.
        """
        usual, there = cls._decode_rule(section, family), section["fallback"]
        if there is None:
            return usual
        if not kinds_of(usual.model.kernel_):
            raise ModelFileError('"fallback" needs a model with kinds')
        others = OmegaFamily.decode(there, own, len(usual.model.theta_))
        return replace(
            usual,
            fallback=cls._decode_rule(there, others),
            is_familiar=Familiarity(usual.model.kernel_, float(there["least"])),
        )

    @classmethod
    def _decode_rule(cls, section: Mapping[str, Any], family: OmegaFamily) -> Policy:
        """Return the policy of :meth:`_encode_rule` for the one model of a family."""
        if len(family.models) > 1:
            raise ModelFileError(f"{len(family.models)} models, where one is expected")
        ordering = section["ordering"]
        return cls(family.models[0], section["k"], ordering and Ordering(**ordering))


@dataclass(frozen=True, eq=False)
class _ByFamiliarity:
    """Choose by one chooser from familiar groups, by another from the rest."""

    usual: Chooser
    other: Chooser
    is_familiar: Familiarity

    def __call__(self, group: Group) -> Choice:
        """Choose from one group."""
        is_familiar = self.is_familiar(group.ground_set)
        return (self.usual if is_familiar else self.other)(group)

"""The kinds, soft clusters of rows, that a kernel :class:`variegate.Kinds` learns."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from variegate._typing import BoolArray, FloatArray, IntArray
from variegate.application.model_facts import LearnedKernel, learned_parts
from variegate.estimator import LargeMarginDPP
from variegate.files.model_format import COUNT
from variegate.files.schema import FLAG, ListOf, Maybe, Number, Record, String
from variegate.kernels import Kinds
from variegate.tables.cells import abbreviate_value
from variegate.tables.encoded import Group
from variegate.tables.encoding import Encoding
from variegate.tables.errors import TableError
from variegate.tables.groups import Groups

#: The most groups of the sample for a training record, rows of it unless a single group
#: has more, and numbers in the features of these rows.
_MAX_GROUPS, _MAX_ROWS, _MAX_NUMBERS = 500, 20_000, 2**23

#: Typical rows and traits of a kind that are kept.
_TYPICAL = 5
_TRAITS = 3

#: A trait differs from the mean of all rows by this many standard deviations, and a
#: category is that of this share of the rows, at least.
_DIFFERS = 0.5
_COMMON = 0.3

#: The most common kinds, which have typical rows.
_MAX_KINDS = 64

_SHARE = Number(least=0)
_WHOLE = Number(least=1, is_whole=True)
_TYPICAL_ROW = Record(
    {"row": _WHOLE, "group": Maybe(String()), "item": Maybe(String())}
)
_TRAIT = Record(
    {"name": String(), "mean": Number(), "overall": Number(), "is_share": FLAG}
)
_KIND = Record(
    {
        "share": _SHARE,
        "chosen": _SHARE,
        "traits": ListOf(_TRAIT),
        "typical": ListOf(_TYPICAL_ROW),
    }
)
#: The schema of the kinds in a training record.
KINDS = ListOf(
    Record(
        {
            "block": Maybe(String()),
            "weight": _SHARE,
            "epsilon": _SHARE,
            "n_groups": _WHOLE,
            "n_rows": COUNT,
            "effective": _SHARE,
            "kinds": ListOf(_KIND),
        }
    )
)


class RowKinds(NamedTuple):
    """Of every row of a table, its most probable kind and how probable that is.

    Kinds are called by numbers from 0, as :meth:`variegate.Kinds.kinds` and
    :meth:`~variegate.tables.TableSelector.describe` do.
    """

    kind: IntArray
    probability: FloatArray


def kinds_of(model: LargeMarginDPP, block: str | None = None) -> LearnedKernel[Kinds]:
    """Return a model's only kernel of kinds, or the one of ``block``; else refuse."""
    every = learned_parts(model, Kinds)
    if not every:
        raise TableError(
            f"the model has learned no kinds, its kernel is a "
            f"{type(model.kernel_).__name__}: fit with kernel=vg.Kinds()"
        )
    found = [one for one in every if block is None or one.kernel.block == block]
    if len(found) == 1:
        return found[0]
    names = ", ".join(repr(one.kernel.block) for one in every)
    if not found:
        raise TableError(f"the model has no kinds of block {block!r}, but of {names}")
    raise TableError(f"the model has several sorts of kinds: name a block, of {names}")


def row_kinds(kinds: LearnedKernel[Kinds], groups: Groups) -> RowKinds:
    """Return the most probable kind of every row, and its probability."""
    n_rows = groups.survey.n_rows
    kind = np.zeros(n_rows, dtype=np.intp)
    probability = np.zeros(n_rows)
    for group in groups:
        p = kinds.kernel.kinds(group.ground_set, kinds.parameters)
        kind[group.rows] = p.argmax(axis=1)
        probability[group.rows] = p.max(axis=1)
    return RowKinds(kind, probability)


# For the record of a training ---------------------------------------------------------


def kinds_record(
    model: LargeMarginDPP, groups: Groups, numbers: IntArray, seed: int
) -> dict[str, Any]:
    """Return {"kinds": list by ``KINDS``}, or {} for a model without kinds.

    Kinds are described by rows of a sample, drawn by the seed, of groups by number.
    """
    every = learned_parts(model, Kinds)
    if not every:
        return {}
    n_rows = min(_MAX_ROWS, _MAX_NUMBERS // max(groups.encoding.width, 1))
    some = list(groups.only(groups.sample(numbers, seed, _MAX_GROUPS, n_rows)))
    samples = [_Sample.of(kinds, some) for kinds in every]
    features = _Features.of(groups.encoding, some)
    typical = [one.typical_rows() for one in samples]
    rows = np.unique([row for kinds in typical for kind in kinds for row in kind])
    columns = groups.survey.columns
    items: dict[int, tuple[str, ...]] = {}
    if columns.item is not None:
        items = groups.read_texts(rows.astype(np.int64), [columns.item])
    names: dict[int, str] = {}
    for group in some if columns.group is not None else ():
        names |= dict.fromkeys(group.rows.tolist(), abbreviate_value(group.name))

    def row_record(row: int) -> dict[str, Any]:
        """Return "row", a number from 1, and "group" and "item", None if unknown."""
        item = items[row][0] if items else None
        return {"row": row + 1, "group": names.get(row), "item": item}

    return {
        "kinds": [
            {
                "block": kinds.kernel.block,
                "weight": kinds.weight,
                "epsilon": kinds.kernel.learned_epsilon(kinds.parameters),
                "n_groups": len(some),
                "n_rows": len(one.rows),
                "effective": one.effective_count,
                "kinds": [
                    {
                        "share": float(share),
                        "chosen": float(chosen) / len(some),
                        "traits": features.traits(p),
                        "typical": list(map(row_record, found)),
                    }
                    for share, chosen, p, found in zip(
                        one.shares,
                        one.p[one.chosen].sum(axis=0),
                        one.p.T,
                        several,
                        strict=True,
                    )
                ],
            }
            for kinds, one, several in zip(every, samples, typical, strict=True)
        ]
    }


class _Sample(NamedTuple):
    """N sampled rows: table numbers, features (N, d), labels, and probabilities.

    ``p`` (N, K) is the probability of each of K kinds for each row.
    """

    rows: IntArray
    features: FloatArray
    p: FloatArray
    chosen: BoolArray

    @classmethod
    def of(cls, kinds: LearnedKernel[Kinds], groups: Sequence[Group]) -> _Sample:
        """Join the rows of labelled groups; a kernel computes features and ``p``."""
        kernel, sets = kinds.kernel, [group.ground_set for group in groups]
        return cls(
            np.concatenate([group.rows for group in groups]),
            np.concatenate([kernel.prepare(one) for one in sets]),
            np.concatenate([kernel.kinds(one, kinds.parameters) for one in sets]),
            np.concatenate([np.asarray(group.chosen) for group in groups]),
        )

    @property
    def shares(self) -> FloatArray:
        """The share of every kind in the rows, (K,); they sum to one."""
        return np.asarray(self.p.mean(axis=0))

    @property
    def effective_count(self) -> float:
        """The effective number of kinds, the exponential of their entropy."""
        shares = self.shares[self.shares > 0.0]
        return float(np.exp(-(shares * np.log(shares)).sum()))

    def typical_rows(self) -> list[list[int]]:
        """Return for every kind the table numbers of the rows nearest to its mean.

        They are at most ``_TYPICAL`` rows that differ, the nearest first; none of a
        kind that is not among the ``_MAX_KINDS`` commonest.
        """
        kind = self.p.argmax(axis=1)
        common = set(np.argsort(-self.shares, kind="stable")[:_MAX_KINDS].tolist())
        return [
            self._typical_rows_of(k, np.flatnonzero(kind == k)) if k in common else []
            for k in range(self.p.shape[1])
        ]

    def _typical_rows_of(self, k: int, places: IntArray) -> list[int]:
        """Return table numbers of distinct rows nearest to the mean of kind ``k``.

        ``places`` are the positions of candidates in the sample.
        """
        weights = self.p[:, k]
        mean = weights @ self.features / max(float(weights.sum()), 1e-300)
        far = np.linalg.norm(self.features[places] - mean, axis=1)
        found: list[int] = []
        for place in places[np.argsort(far, kind="stable")].tolist():
            is_new = all(
                (self.features[place] != self.features[i]).any() for i in found
            )
            found += [place] * is_new
            if len(found) == _TYPICAL:
                break
        return [int(self.rows[place]) for place in found]


# What the rows of a kind have in common -----------------------------------------------


class _Features(NamedTuple):
    """Numbers and indicators of categories of N sampled rows, in their own units.

    ``values`` is (N, d); ``names`` and ``is_share`` (indicators) have d entries.
    """

    names: list[str]
    is_share: BoolArray
    values: FloatArray

    @classmethod
    def of(cls, encoding: Encoding, groups: Sequence[Group]) -> _Features:
        """Return the features of groups, without vectors, their scaling undone."""
        found: dict[str, tuple[bool, FloatArray]] = {}
        for block, columns in [(None, encoding.quality), *encoding.blocks.items()]:
            parts = [g.quality if block is None else g.blocks[block] for g in groups]
            values = np.concatenate(parts).T
            for column in columns:
                own, values = values[: column.size], values[column.size :]
                if column.kind not in ("number", "category"):
                    continue
                for place, name in enumerate(column.names):
                    is_share = place > 0 or column.kind == "category"
                    feature = own[place]
                    if not is_share:
                        feature = column.mean + column.scale * feature
                    found.setdefault(name, (is_share, feature))
        n_rows = sum(map(len, groups))
        empty = np.zeros((n_rows, 0))
        return cls(
            list(found),
            np.array([is_share for is_share, _ in found.values()], dtype=bool),
            np.column_stack([empty, *(values for _, values in found.values())]),
        )

    def traits(self, p: FloatArray) -> list[dict[str, Any]]:
        """Return records of the features in which a kind differs most from all rows.

        ``p`` (N,) is the probability of the kind for every row.  Records are as in
        ``_TRAIT``, ``_TRAITS`` at most, the largest difference first.
        """
        mean = p @ self.values / max(float(p.sum()), 1e-300)
        overall, spread = self.values.mean(axis=0), self.values.std(axis=0)
        differs = (mean - overall) / np.where(spread > 0.0, spread, np.inf)
        # What few rows of the kind have is not common to them.
        is_common = ~self.is_share | ((mean >= _COMMON) & (differs > 0.0))
        differs = np.where(is_common, np.abs(differs), 0.0)
        best = np.argsort(-differs, kind="stable")[:_TRAITS]
        return [
            {
                "name": self.names[j],
                "mean": float(mean[j]),
                "overall": float(overall[j]),
                "is_share": bool(self.is_share[j]),
            }
            for j in best.tolist()
            if differs[j] >= _DIFFERS
        ]

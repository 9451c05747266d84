"""All measures of ROUGE-1.5.5: beside those of the library, ROUGE-L, W and S.

C.-Y. Lin, 2004, "ROUGE: a package for automatic evaluation of summaries".
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from paper.rouge.pairs import skip_bigrams
from paper.rouge.sequences import longest_common, weighted_longest_common
from paper.rouge.texts import SentenceTokenizer
from variegate.text.rouge import Pool, Rouge

__all__ = ["FullRouge"]


@dataclass(frozen=True, kw_only=True)
class FullRouge(SentenceTokenizer, Rouge):
    """:class:`variegate.text.Rouge` with more measures.

    Texts hold one sentence a line, which matters to ROUGE-L and ROUGE-W only.

    Parameters
    ----------
    lcs : bool
        Whether to score longest common subsequences: ``rouge-l``.
    w : float or None
        Weight of runs in longest common subsequences, 1.2 by custom:
        ``rouge-w-1.2``.
    skip, su : number or None
        Most words between the two of a pair, ``math.inf`` for any number:
        ``rouge-s4``, ``rouge-s*``; with ``su`` single words count too: ``rouge-su4``.
    """

    lcs: bool = False
    w: float | None = None
    skip: float | None = None

    def _check_measures(self) -> None:
        if self.w is not None and not 1.0 < self.w < math.inf:
            raise ValueError(f"the weight w must be above 1, got {self.w}")
        for name, distance in (("skip", self.skip), ("su", self.su)):
            if distance is None or distance == math.inf:
                continue
            if distance < 0 or distance != int(distance):
                raise ValueError(
                    f"{name} must be a whole number from 0 or math.inf, got {distance}"
                )

    @property
    def measures(self) -> dict[str, Callable[[Sequence[Any]], Pool]]:
        """What makes a pool of references, by the names of the scores."""
        found = Rouge(n=self.n).measures if self.n else {}
        if self.lcs:
            found["rouge-l"] = longest_common()
        if self.w is not None:
            found[f"rouge-w-{self.w:g}"] = weighted_longest_common(self.w)
        for letters, skip in (("s", self.skip), ("su", self.su)):
            if skip is not None:
                reach = "*" if math.isinf(skip) else f"{skip:.0f}"
                pool = skip_bigrams(skip, unigrams=letters == "su")
                found[f"rouge-{letters}{reach}"] = pool
        return found

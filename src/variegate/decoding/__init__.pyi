from .agreement import Agreement
from .base import Constraint, Decoder
from .exact import Exact, all_subsets
from .expected_f import ExpectedF, expected_f_score
from .greedy import Greedy
from .local import Local
from .mbr import MBR, GreedySearch
from .registry import DECODERS, as_decoder
from .relaxed import Relaxed

__all__ = [
    "DECODERS",
    "MBR",
    "Agreement",
    "Constraint",
    "Decoder",
    "Exact",
    "ExpectedF",
    "Greedy",
    "GreedySearch",
    "Local",
    "Relaxed",
    "all_subsets",
    "as_decoder",
    "expected_f_score",
]

from .cache import Limits
from .engine import Engine, Serial
from .examples import PartitionedExamples
from .partition import (
    Partition,
    PartitionChangedError,
    PartitionError,
    UnreadablePartitionError,
)
from .shards import PairShards
from .source import Reader, Source

__all__ = [
    "Engine",
    "Limits",
    "PairShards",
    "Partition",
    "PartitionChangedError",
    "PartitionError",
    "PartitionedExamples",
    "Reader",
    "Serial",
    "Source",
    "UnreadablePartitionError",
]

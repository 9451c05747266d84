from .cache import Limits
from .engine import Engine, Serial, Threads
from .examples import PartitionedExamples
from .partition import (
    Partition,
    PartitionChangedError,
    PartitionError,
    Reader,
    Source,
    UnreadablePartitionError,
)
from .shards import PairShards

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
    "Threads",
    "UnreadablePartitionError",
]

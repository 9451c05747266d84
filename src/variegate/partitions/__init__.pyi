from .cache import Limits
from .engine import Engine, Serial, Threads
from .examples import PartitionedExamples
from .partition import (
    PairPartitions,
    Partition,
    PartitionChangedError,
    PartitionError,
    Reader,
    Source,
    UnreadablePartitionError,
)

__all__ = [
    "Engine",
    "Limits",
    "PairPartitions",
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

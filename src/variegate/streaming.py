"""Learning from more pairs than memory holds.

A stream is any object that yields ``(ground set, subset)`` pairs each time it is
iterated over: a list, a class with ``__iter__`` that reads a data base, a
:class:`PairFolder` on disk.  ``LargeMarginDPP().fit(stream)`` learns from one; see
:class:`~variegate.solvers.MiniBatch`.

A folder of pairs holds numbered shards, each of a few plain ``.npy`` files, and an
index that is written last::

    pairs.json              format, number of pairs and their shards, blocks
    quality-00000.npy       (items, d)  rows of all ground sets, one after another
    similarity-00000-0.npy  (items, p)  one file a block; none if quality serves both
    chosen-00000.npy        (items,)    which items are in the subset
    offsets-00000.npy       (pairs + 1,) where each ground set begins

Ground sets may differ in size.  Costs and items are not stored.
"""

from __future__ import annotations

import io
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse

from variegate._typing import AnyArray, BoolArray
from variegate._validation import check_count
from variegate.files.atomic import write_atomic
from variegate.ground_set import GroundSet
from variegate.learning.examples import (
    Example,
    Examples,
    ListedExamples,
    as_examples,
    check_stream,
)
from variegate.subsets import as_indicator

__all__ = [
    "Example",
    "Examples",
    "ListedExamples",
    "PairFolder",
    "as_examples",
    "check_stream",
    "write_pairs",
]

FORMAT = "variegate-pairs"
VERSION = 1
_INDEX = "pairs.json"


def write_pairs(
    folder: str | Path,
    pairs: Iterable[tuple[GroundSet, Any]],
    shard_size: int = 10_000,
    dtype: str = "float64",
) -> PairFolder:
    """Write pairs to a folder, holding no more than a shard in memory.

    Parameters
    ----------
    folder : str or Path
        Made if it does not exist; one that already holds pairs is refused.
    pairs : iterable of (GroundSet, subset)
        A generator will do.
    shard_size : int, default=10_000
        Pairs a shard.
    dtype : {"float64", "float32"}
        The latter takes half the space and keeps about 7 digits.

    Returns
    -------
    PairFolder
    """
    check_count("shard_size", shard_size)
    if dtype not in ("float64", "float32"):
        raise ValueError(f"dtype must be 'float64' or 'float32', got {dtype!r}")
    folder = Path(folder)
    if (folder / _INDEX).exists():
        raise ValueError(f"{folder} already holds pairs: delete it, or name another")
    folder.mkdir(parents=True, exist_ok=True)
    examples = Examples(_Once(pairs), omega=1.0).starting_at(0)
    sizes: list[int] = []
    blocks: list[str] | None = None
    while shard := list(islice(examples, shard_size)):
        if not sizes:
            blocks = _blocks_to_store(shard[0].ground_set)
        _write_shard(folder, len(sizes), shard, blocks, dtype)
        sizes.append(len(shard))
    if not sizes:
        raise ValueError("there are no pairs to write")
    index = {
        "format": FORMAT,
        "version": VERSION,
        "n_pairs": sum(sizes),
        "shards": sizes,
        "blocks": blocks,
    }
    write_atomic(folder / _INDEX, json.dumps(index) + "\n")
    return PairFolder(folder)


class _Once:
    """Pairs to read once: a generator is welcome where one pass is all there is."""

    def __init__(self, pairs: Iterable[Any]) -> None:
        if isinstance(pairs, Mapping | str | bytes) or not isinstance(pairs, Iterable):
            raise ValueError(f"expected (ground set, subset) pairs, got {pairs!r}")
        self._iterator = iter(pairs)

    def __iter__(self) -> Iterator[Any]:
        return self._iterator


def _blocks_to_store(ground_set: GroundSet) -> list[str] | None:
    """Return the names of the blocks, None where quality serves both purposes."""
    blocks = ground_set.blocks
    if list(blocks) == [""] and blocks[""] is ground_set.quality:
        return None
    return list(blocks)


def _write_shard(
    folder: Path,
    number: int,
    shard: Sequence[Example],
    blocks: list[str] | None,
    dtype: str,
) -> None:
    sets = [example.ground_set for example in shard]
    for example in shard:
        here = _blocks_to_store(example.ground_set)
        if (here is None) != (blocks is None):
            raise ValueError(
                f"pair {example.position} and the first one differ: only one of them "
                "has similarity features of its own"
            )
        if here is not None and any(
            sparse.issparse(block) for block in example.ground_set.blocks.values()
        ):
            raise ValueError(
                f"pair {example.position}: a folder of pairs holds dense features "
                "only; use .toarray() on sparse ones"
            )
    arrays = {
        "quality": np.concatenate([gs.quality for gs in sets]).astype(dtype),
        "chosen": np.concatenate(
            [as_indicator(e.members, len(e.ground_set)) for e in shard]
        ),
        "offsets": np.cumsum([0, *map(len, sets)], dtype=np.int64),
    }
    files = {f"{name}-{number:05d}.npy": array for name, array in arrays.items()}
    for k, name in enumerate(blocks or []):
        try:
            rows = np.concatenate([gs.blocks[name] for gs in sets]).astype(dtype)
        except ValueError:
            raise ValueError(
                f"ground sets differ in the width of their similarity {name!r}: a "
                "folder of pairs needs the same features in all"
            ) from None
        files[f"similarity-{number:05d}-{k}.npy"] = rows
    for name, array in files.items():
        content = io.BytesIO()
        np.save(content, array, allow_pickle=False)
        write_atomic(folder / name, content.getvalue())


class PairFolder:
    """A folder of pairs on disk, to iterate over again and again.

    Yields ground sets and boolean masks.  Files are memory-mapped, one shard at a time;
    a pair is copied out of them when its turn comes.

    Parameters
    ----------
    folder : str or Path
        What :func:`write_pairs` made.

    Attributes
    ----------
    shard_sizes : list of int
        The number of pairs in every shard.

    Examples
    --------
    >>> import tempfile
    >>> import variegate as vg
    >>> from variegate.streaming import write_pairs
    >>> data = vg.datasets.make_synthetic(n_sets=3, random_state=0)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     pairs = write_pairs(folder, zip(data.ground_sets, data.subsets))
    ...     [len(ground_set) for ground_set, subset in pairs]
    [10, 10, 10]
    """

    def __init__(self, folder: str | Path) -> None:
        self.folder = Path(folder)
        path = self.folder / _INDEX
        try:
            index = json.loads(path.read_bytes())
        except FileNotFoundError:
            raise ValueError(
                f"there is no {path}: not a folder of pairs, or one whose writing was "
                "interrupted"
            ) from None
        except ValueError as error:
            raise ValueError(f"{path} is damaged: {error}") from None
        if not isinstance(index, dict) or index.get("format") != FORMAT:
            raise ValueError(f'{path}: "format" is not "{FORMAT}"')
        if index.get("version") != VERSION:
            raise ValueError(
                f"{path}: format version {index.get('version')!r}, but this variegate "
                f"reads {VERSION}"
            )
        self.shard_sizes: list[int] = index["shards"]
        self._blocks: list[str] | None = index["blocks"]

    def __repr__(self) -> str:
        return f"<PairFolder: {len(self)} pairs in {self.folder}>"

    def __len__(self) -> int:
        return sum(self.shard_sizes)

    def __iter__(self) -> Iterator[tuple[GroundSet, BoolArray]]:
        return self.starting_at(0)

    def starting_at(self, position: int) -> Iterator[tuple[GroundSet, BoolArray]]:
        """Yield the pairs from ``position`` on, without reading those before."""
        for number, size in enumerate(self.shard_sizes):
            if position < size:
                yield from self._shard(number, position)
            position = max(position - size, 0)

    def shard_files(self, number: int) -> list[str]:
        """Return the names of the files of one shard."""
        blocks = range(len(self._blocks or []))
        return [
            f"quality-{number:05d}.npy",
            f"chosen-{number:05d}.npy",
            f"offsets-{number:05d}.npy",
            *(f"similarity-{number:05d}-{k}.npy" for k in blocks),
        ]

    def _shard(self, number: int, start: int) -> Iterator[tuple[GroundSet, BoolArray]]:
        offsets = self._array(f"offsets-{number:05d}.npy").tolist()
        X = self._array(f"quality-{number:05d}.npy")
        chosen = self._array(f"chosen-{number:05d}.npy")
        features = {
            name: self._array(f"similarity-{number:05d}-{k}.npy")
            for k, name in enumerate(self._blocks or [])
        }
        if len(offsets) != self.shard_sizes[number] + 1 or any(
            len(rows) != offsets[-1] for rows in (X, chosen, *features.values())
        ):
            raise ValueError(
                f"shard {number} of {self.folder} is damaged: its files differ in "
                "length"
            )
        for first, end in zip(offsets[start:-1], offsets[start + 1 :], strict=True):
            similarity = {name: rows[first:end] for name, rows in features.items()}
            yield (
                GroundSet(X[first:end], similarity or None),
                chosen[first:end].copy(),
            )

    def _array(self, name: str) -> AnyArray:
        path = self.folder / name
        try:
            # Slices of a plain view are made several times faster than a memmap's.
            return np.asarray(np.load(path, mmap_mode="r", allow_pickle=False))
        except (OSError, ValueError) as error:
            raise ValueError(f"{path} is missing or damaged: {error}") from None

"""Sizes at which an algorithm or a representation changes, and tolerances.

Times are of one core of a server with OpenBLAS unless stated otherwise;
``docs/which-method.md`` has a table for users.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from variegate._typing import IntArray

# Learning -------------------------------------------------------------------------

#: Entries of all similarities of a problem (the sum of N²) from which compiled loops
#: evaluate it; below, NumPy does, a stack of sets of equal size at a time.  A fit of 60
#: sets of 12: 33 ms by NumPy, 16 compiled; of 100 sets of 10: 38 and 18; of 340 sets of
#: 12: 290 and 100; compiling takes 1.7 s, once.
COMPILED_ENTRIES = 10_000

#: Ground sets up to this size go through one compiled loop, a stack of them in a call;
#: above it, one LAPACK call a matrix is faster for most sizes.  Loss and gradient of a
#: set of 32 items: 0.01 ms compiled, 0.09 by LAPACK; of 64: 0.04 and 0.12; of 256: 7
#: and 1.2.
STACK_LIMIT = 64

#: Ground sets in a stack, and entries of their similarities: enough for small
#: overheads, few enough for the cache (2 MB) and to share among threads.
STACK_SETS = 1000
STACK_ENTRIES = 250_000

#: The fewest items, and items a column of the factors, from which a similarity of low
#: rank is learned from by its factors; below, the N x N matrix is faster.  Loss and
#: gradient of 100 items with 30 columns: 0.5 ms by the matrix, 0.6 by factors; 150 with
#: 45: 0.8 by both; 200 with 20: 1.2 and 0.5; 400 with 130: 7 and 4.
FEWEST_FACTORED = 150
FACTORED_SHARE = 3

#: Items of a ground set whose distances give the median that bandwidths follow, where
#: these are approximated: 4 million pairs, 32 MB.
MEDIAN_ITEMS = 2000

#: Ground sets, evenly spaced, that this median is taken over: a second for ten items.
MEDIAN_SETS = 10_000

#: Items, drawn at random, that landmarks of Nyström's method are chosen among.
POOLED_ITEMS = 20_000

# On a GPU, measured on an H200 in double precision ----------------------------------

#: The most items of a set for one fused kernel, a set a program.  Loss and gradient of
#: 20,000 sets of 50: 3.6 ms, by calls of cuSOLVER and cuBLAS 9.4; of 4,000 sets of 100,
#: where a matrix fills the registers: 8.4, by calls 7.5.  cuBLAS takes the last product
#: of the gradient: 3.2 ms for 20,000 sets of 50, within the kernel 8.2.
FUSED_ITEMS = 64

# Representations ------------------------------------------------------------------

#: The most items of a learned ensemble that is held as a matrix, with its jitter;
#: beyond, as a factor if the similarity has a low rank.  At 2000 items the matrix takes
#: 32 MB and its marginals 1.5 s, those of a factor of 100 columns 0.03 s.
MATRIX_ITEMS = 2000

#: The most items of a singular matrix that is held by rows, which settle its rank: half
#: a second at nearly full rank.
RANKED_ITEMS = 1000

#: The most items of a factor that is held by rows of unit length, where its rows differ
#: too widely in length to keep their digits.
GRADED_ITEMS = 2000

#: The largest number of items for which an N x N matrix is made: 3.2 GB.
MAX_MATRIX = 20_000

#: The trace of ``L`` up to which eigenvalues of ``L``, or a factor of it, serve for
#: ``K``: no eigenvalue exceeds the trace, and errors of 1e-16 of the largest are then
#: at most 1e-10 in a probability.
TAME_TRACE = 1e6

# Choosing -------------------------------------------------------------------------

#: The most items of which "exact" tries all subsets: 16,384 of 14 items in 0.4 ms.
TABLED_ITEMS = 14

#: The most items of "exact": its search keeps a matrix for every item that is settled,
#: 500 of 2 MB.
EXACT_ITEMS = 500

#: The most items of "relaxed": every step inverts a matrix of all, half a second.
RELAXED_ITEMS = 2000

#: With a repetition, "expected-f" chooses among this many items of the largest weights:
#: it compares all pairs of them, a matrix of 32 MB.
REPEATED_ITEMS = 2000

#: The most items of "facility-location", which reads all pairs at every step.
MAX_PAIRED = 20_000

# Compiled -------------------------------------------------------------------------

#: Samples times items times expected size from which compiled loops draw samples.
#: 1,000 samples of 12 items, 2.5 expected: 2 ms by NumPy, 0.25 compiled; 5 of 20: 6 and
#: 0.9; 13 of 40: 27 and 8; compiling takes 0.45 s, once.
COMPILED_SAMPLES = 100_000

#: The same for all ground sets of one call together: 300 sets of 12 take 0.7 s more.
COMPILED_SAMPLES_TOGETHER = 10_000_000

#: Rows times columns times choices from which compiled loops choose rows greedily.  10
#: of 1,000 x 64: 0.16 ms by NumPy, 0.05 to 0.12 compiled; 50 of 5,000 x 128: 3.6 and
#: 1.4 to 2.7; 50 of 50,000 x 128: 70 and 0.8 to 25; compiling takes 0.7 s, once.
COMPILED_ROWS = 20_000_000

#: Entries of a factor from which a compiled loop takes the lengths of its rows: 64,000
#: in single precision, 0.02 ms by NumPy, 0.003 compiled; 6.4 million: 2 and 0.3.
COMPILED_LENGTHS = 1_000_000

#: Items from which a compiled loop factors a matrix with pivoting.  12 of full rank:
#: 0.2 ms by NumPy, 0.002 compiled; 128: 3.7 and 0.35; 500: 100 and 20.
COMPILED_PIVOTS = 128

# Rounding --------------------------------------------------------------------------

#: A squared residual below this share of the item's own diagonal is rounding error:
#: the item lies in the span of earlier ones, and the determinant is zero.
RANK_TOLERANCE = 1e-12

#: A squared residual below this share counts as none besides items that are there
#: already: embeddings of copies differ by noise, 1e-7 in single precision.  The share
#: is that of the default jitter of a learned model.
NOISE_SHARE = 1e-6

#: Without pivoting, rounding in a pivot is divided by earlier ones.  A share of the
#: diagonal below the root of rounding is then in doubt, and a loss that depends on it
#: is refused.
DOUBTFUL_PIVOT = 1e-8


def should_use_compiled(sizes: Sequence[int] | IntArray) -> bool:
    """Tell whether compiled loops evaluate ground sets of these numbers of items.

    They do where all similarities together have ``COMPILED_ENTRIES`` entries or more.
    """
    squared = np.asarray(sizes, dtype=np.float64) ** 2
    return bool(squared.sum() >= COMPILED_ENTRIES)

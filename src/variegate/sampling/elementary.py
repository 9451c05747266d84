"""Sample elementary determinantal processes with NumPy, many samples at a time.

By the proposals and random numbers of :mod:`variegate.linalg.compiled.elementary`, so
that both draw the same items: an item is proposed with probability proportional to its
squared length in the kept vectors, and accepted with the share of that which is left
outside the span of the items picked before, its squared residual.

Samples that keep the same eigenvectors and have picked the same items share one
*state*: the basis of the picked items and the squared residual of every item.  Small
ground sets have few states, whatever the number of samples.  A *window* are proposals
of one sample that are evaluated together.
"""

from __future__ import annotations

import numpy as np

from variegate._random import splitmix_uniforms
from variegate._typing import BoolArray, FloatArray, IntArray
from variegate.subsets import distinct_rows

#: Proposals of a sample that are decided together, after its first ones failed.
_WINDOW = 16

#: Stands for the residual of an item that was picked before, or of no item.
_TAKEN = -1.0


def sample_elementary(
    vectors: FloatArray, kept: BoolArray, seeds: IntArray
) -> BoolArray:
    """Draw a subset for each of n samples, from the span of the vectors that it keeps.

    ``vectors`` (M, N) are orthonormal, in rows; ``kept`` (n, M) is True for those of
    each sample, whose number is the size of its subset; ``seeds`` (n,) are of uint64.
    Returns a boolean array (n, N).
    """
    first, state, _ = distinct_rows(kept)
    states, state = _States(vectors, kept[first]), state.copy()
    size = kept.sum(axis=1)
    chosen = np.zeros((len(seeds), vectors.shape[1]), dtype=bool)
    drawn = np.zeros(len(seeds), dtype=np.int64)
    for count in range(int(size.max(initial=0))):
        samples = np.flatnonzero(size > count)
        item = np.empty(len(seeds), dtype=np.intp)
        # The first item is accepted; later ones take ever more proposals.
        waiting, window = samples, 2 * count + 1
        while len(waiting):
            steps = drawn[waiting, None] + np.arange(1, window + 2)
            uniform = splitmix_uniforms(seeds[waiting, None], steps)
            found, at = states.propose_items(state[waiting], uniform)
            is_done = at < window
            # An accepted proposal used two numbers.
            drawn[waiting] += at + 2 * is_done
            item[waiting[is_done]] = found[is_done]
            waiting, window = waiting[~is_done], _WINDOW
        chosen[samples, item[samples]] = True
        samples = np.flatnonzero(size > count + 1)
        state[samples] = states.pick_items(state[samples], item[samples])
    return chosen


class _States:
    """P elementary processes, and S states: a process given the items picked so far.

    Rows of ``kept`` (P, M) are True for the ``vectors`` (M, N) that span each process.
    At first there is one state for each process, without items.
    """

    def __init__(self, vectors: FloatArray, kept: BoolArray) -> None:
        sizes = kept.sum(axis=1)
        n_processes, n_items = len(kept), vectors.shape[1]
        # (P, N, K): each item's entries of the kept vectors, padded with zeros.
        self.rows = np.zeros((n_processes, n_items, int(sizes.max(initial=0))))
        process, vector = np.nonzero(kept)
        place = np.arange(len(vector)) - np.repeat(np.cumsum(sizes) - sizes, sizes)
        self.rows[process, :, place] = vectors[vector]
        # (P, N + 1): their squared lengths, the last of no item.
        self.squared = np.zeros((n_processes, n_items + 1))
        self.squared[:, :-1] = np.einsum("pik,pik->pi", self.rows, self.rows)
        # (P, N + 1): the sums of these up to each item, the last infinite.
        self.cumulative = np.full(self.squared.shape, np.inf)
        self.squared[:, :-1].cumsum(axis=1, out=self.cumulative[:, :-1])
        # (S,): the process of each state.
        self.process = np.arange(n_processes)
        # (S, count, K): an orthonormal basis of the picked items' rows.
        self.basis = np.zeros((n_processes, 0, self.rows.shape[2]))
        # (S, N + 1): squared residuals of the items outside its span.
        self.left = self.squared.copy()
        self.left[:, -1] = _TAKEN

    def propose_items(
        self, state: IntArray, uniform: FloatArray
    ) -> tuple[IntArray, IntArray]:
        """Return the first accepted item of each sample, and its index in ``uniform``.

        ``state`` (n,) is the state of each sample, ``uniform`` (n, window + 1) its next
        random numbers.  A proposal takes one number, and one more to decide on it
        unless the item was picked before.  The second result (n,) is the index of the
        number that proposed the item; if it is ``window`` or more, no item was
        accepted, the first result has no meaning, and the next proposal begins there.
        """
        process = self.process[state]
        cumulative = self.cumulative.take(process, axis=0)
        window, width = uniform.shape[1] - 1, cumulative.shape[1]
        target = uniform[:, :-1] * cumulative[:, -2:-1]
        item = (cumulative[:, None] > target[:, :, None]).argmax(axis=2)
        left = self.left.take(width * state[:, None] + item)
        squared = self.squared.take(width * process[:, None] + item)
        is_accepted = uniform[:, 1:] * squared < left
        following = np.tile(np.arange(window + 2), (len(state), 1))
        used = np.where(left == _TAKEN, 1, 2)
        following[:, :window] += np.where(is_accepted, 0, used)
        samples, at = np.arange(len(state)), np.zeros(len(state), dtype=np.intp)
        for _ in range(window):
            at = following[samples, at]
        return item[samples, np.minimum(at, window - 1)], at

    def pick_items(self, state: IntArray, item: IntArray) -> IntArray:
        """Replace all states by those after the picks; return each sample's new state.

        ``state`` and ``item`` (n,) are the states, by index, and the picked items of
        the samples that go on; states of others are lost.
        """
        n_items = self.rows.shape[1]
        found, number = np.unique(state * n_items + item, return_inverse=True)
        before, picked = np.divmod(found, n_items)
        process, basis = self.process[before], self.basis[before]
        direction = self.rows[process, picked]
        for _ in range(2):  # once more, to be orthogonal to rounding
            inner = np.einsum("sjk,sk->sj", basis, direction)
            direction = direction - np.einsum("sj,sjk->sk", inner, basis)
        direction /= np.sqrt(np.einsum("sk,sk->s", direction, direction))[:, None]
        left = self.left[before]
        explained = np.einsum("sik,sk->si", self.rows[process], direction)
        is_open = left[:, :-1] != _TAKEN
        left[:, :-1] = np.where(
            is_open, np.maximum(left[:, :-1] - explained**2, 0.0), _TAKEN
        )
        left[np.arange(len(found)), picked] = _TAKEN
        self.process, self.left = process, left
        self.basis = np.concatenate([basis, direction[:, None]], axis=1)
        return np.asarray(number)

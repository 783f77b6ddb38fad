"""Observations stored once: a slot for each row, and places of their own for next observations that no slot holds."""

from __future__ import annotations

import functools

import numpy as np

from agents.replay.spaces import Layout
from agents.replay.streams import Rows

SMALL = 16_384
"""Bytes that are compared as a whole."""


class ObservationStore:
    """Arrays of ``capacity`` slots and, behind them, as many own places as are needed.

    Args:
        layout: Of the observation space.
        capacity: Number of slots. Indices in [0, capacity) are slots, the ones from ``capacity`` on own places.
    """

    def __init__(self, layout: Layout, capacity: int):
        self.layout, self.capacity = layout, capacity
        self.arrays = [np.zeros((capacity, *leaf.shape), leaf.dtype) for leaf in layout.leaves]
        self._free = np.zeros(0, np.int64)  # a stack of the unused own places
        self._num_free = 0

    @property
    def nbytes(self) -> int:
        """Bytes of all arrays."""
        return sum(array.nbytes for array in self.arrays) + self._free.nbytes

    def reserve(self, count: int) -> np.ndarray:
        """Indices (count,) of unused own places."""
        if count > self._num_free:
            self._grow(count - self._num_free)
        self._num_free -= count
        return self._free[self._num_free : self._num_free + count].copy()

    def release(self, places: np.ndarray) -> None:
        """Give own places back."""
        self._free[self._num_free : self._num_free + len(places)] = places
        self._num_free += len(places)

    def keep(self, batch: list[np.ndarray], rows: np.ndarray | int) -> np.ndarray | int:
        """Store one row of a batch, or several (k,), in unused own places; gives their indices."""
        if not isinstance(rows, int):
            places: np.ndarray | int = self.reserve(len(rows))
        else:
            if not self._num_free:
                self._grow(1)
            self._num_free -= 1
            places = self._free.item(self._num_free)
        for store, array in zip(self.arrays, batch, strict=True):
            store[places] = array[rows]
        return places

    def write(self, places: np.ndarray, arrays: list[np.ndarray]) -> None:
        """Store a batch, one row a place."""
        for store, array in zip(self.arrays, arrays, strict=True):
            store[places] = array

    def take(self, places: np.ndarray) -> list[np.ndarray]:
        """Copies of the observations at these places, whatever the shape of ``places``."""
        return [store.take(places, 0) for store in self.arrays]

    def _grow(self, count: int) -> None:
        used = len(self._free)  # own places there are, all in use but for num_free
        more = max(count, used // 2, 16)
        self.arrays = [store if store.flags.owndata else store.copy() for store in self.arrays]  # pickles borrow theirs
        for store in self.arrays:
            # in place, so that large memories need not exist twice; no view of a store is ever handed out
            store.resize((self.capacity + used + more, *store.shape[1:]), refcheck=False)
        free = np.zeros(used + more, np.int64)
        free[: self._num_free] = self._free[: self._num_free]
        free[self._num_free : self._num_free + more] = np.arange(more) + self.capacity + used
        self._free, self._num_free = free, self._num_free + more


def torn_rows(first: list[np.ndarray], of_first: Rows, second: list[np.ndarray], of_second: Rows) -> np.ndarray | None:
    """Which rows of two batches differ in any byte, (k,), or None; only some rows of each are compared.

    The arrays (N, ...) of both are C-contiguous and of the same dtypes.
    """
    torn: np.ndarray | None = None
    for place, one in enumerate(first):
        rows, others = one[of_first], second[place][of_second]
        if rows.nbytes <= SMALL and rows.tobytes() == others.tobytes():  # for few bytes the shortest way
            continue
        if rows.size:
            word = _word(rows.nbytes // len(rows))
            equal = rows.reshape(-1).view(word) == others.reshape(-1).view(word)
            if not equal.item(equal.argmin()):
                differ = ~np.logical_and.reduce(equal.reshape(len(rows), -1), 1)
                torn = differ if torn is None else torn | differ
    return None if torn is None else torn.nonzero()[0]


@functools.cache
def _word(row_bytes: int) -> np.dtype:
    """The widest unsigned integer that divides a row."""
    return np.dtype(f"u{next(width for width in (8, 4, 2, 1) if row_bytes % width == 0)}")

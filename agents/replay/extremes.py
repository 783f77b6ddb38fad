"""The largest or smallest positive number of a large array that changes a few entries at a time."""

from __future__ import annotations

import numpy as np

BLOCK = 512
_LOG_BLOCK = np.array(9)  # as an array without axes it costs NumPy less than as a number


class Extreme:
    """Largest (or smallest) positive entry of an array, worked out when asked, from the blocks that have changed.

    Args:
        values: (N,), non-negative. The owner writes to it and calls ``touch``.
        smallest: Whether the smallest positive entry is wanted instead of the largest.
    """

    def __init__(self, values: np.ndarray, smallest: bool = False):
        self._values, self._smallest = values, smallest
        num_blocks = -(-len(values) // BLOCK)
        self._of_block = np.zeros(num_blocks)
        self._changed = np.ones(num_blocks, bool)

    def touch(self, indices: np.ndarray) -> None:
        """Note that these entries have changed."""
        self._changed[indices >> _LOG_BLOCK] = True

    def touch_range(self, start: int, stop: int) -> None:
        """Note that the entries from ``start`` to before ``stop`` have changed."""
        self._changed[start // BLOCK : -(-stop // BLOCK)] = True

    def get(self) -> float:
        """The extreme positive entry, 0 if there is none."""
        for block in np.flatnonzero(self._changed):
            self._of_block[block] = self._reduce(self._values[block * BLOCK : (block + 1) * BLOCK])
        self._changed[:] = False
        return float(self._reduce(self._of_block))

    def _reduce(self, values: np.ndarray) -> float:
        if not self._smallest:
            return values.max()
        positive = values[values > 0]
        return positive.min() if positive.size else 0.0

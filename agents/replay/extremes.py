"""The largest or smallest positive number of a large array that changes a few entries at a time."""

from __future__ import annotations

import numpy as np

BLOCK = 64
_LOG_BLOCK = np.array(6)  # as an array without axes it costs NumPy less than as a number
_OFFSETS = np.arange(BLOCK)


class Extreme:
    """Largest (or smallest) positive entry of an array, worked out when asked, from the blocks that have changed.

    Args:
        size: Length of the array, whose owner calls ``touch`` for what changes.
        smallest: Whether the smallest positive entry is wanted instead of the largest.
    """

    def __init__(self, size: int, smallest: bool = False):
        self._smallest = smallest
        num_blocks = -(-size // BLOCK)
        self._of_block = np.zeros(num_blocks)
        self._changed = np.ones(num_blocks, bool)
        self._known: float | None = None

    def touch(self, indices: np.ndarray) -> None:
        """Note that these entries have changed."""
        self._changed[indices >> _LOG_BLOCK] = True
        self._known = None

    def touch_range(self, start: int, stop: int) -> None:
        """Note that the entries from ``start`` to before ``stop`` have changed."""
        self._changed[start // BLOCK : -(-stop // BLOCK)] = True
        self._known = None

    def settle(self, value: float) -> None:
        """Note that for all those changes this is the extreme: the owner knows, since it is what was written."""
        self._known = value

    def get(self, values: np.ndarray) -> float:
        """The extreme positive entry of the array as it is now, (size,), 0 if there is none."""
        if self._known is None:
            self._known = self._find(values)
        return self._known

    def _find(self, values: np.ndarray) -> float:
        changed = self._changed.nonzero()[0]
        if changed.size:
            places = np.add.outer(changed << _LOG_BLOCK, _OFFSETS)
            self._of_block[changed] = self._reduce(values.take(places, mode="clip"))  # the last entry may come often
            self._changed[changed] = False
        if not self._smallest:
            return self._of_block.item(self._of_block.argmax())
        return self._reduce(self._of_block[None]).item()

    def _reduce(self, values: np.ndarray) -> np.ndarray:
        """Extremes of rows (k, n)."""
        if not self._smallest:
            return np.maximum.reduce(values, 1)
        least = np.where(values > 0, values, np.inf).min(1)
        return np.where(np.isfinite(least), least, 0.0)

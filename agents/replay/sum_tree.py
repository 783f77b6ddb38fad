"""A sum tree for whole batches: set many leaves at once, find many leaves by running sum at once.

The tree of Schaul et al. (2016, appendix B.2.1), but wide: a node has 16 children, and each block of 32 siblings keeps
the running sums of its values, so that a search reads one block a level. NumPy then needs a few calls a level, and a
million leaves need three levels.
"""

from __future__ import annotations

from typing import Any

import numpy as np

FAN_OUT = 16
"""Children of a node: a power of two."""
ROOT_SIZE = 4096
"""Largest number of nodes on the top level, which is one single block."""


class SumTree:
    """Non-negative float64 leaves with fast sums.

    Parents are always summed up anew from their children, from left to right, never corrected by differences: nothing
    drifts, and equal leaves give equal trees whatever happened before.

    Args:
        capacity: Number of leaves, at least 1. All are 0 at first.
    """

    def __init__(self, capacity: int):
        if int(capacity) != capacity or capacity < 1:
            raise ValueError(f"capacity must be an integer of at least 1, got {capacity!r}")
        self.capacity = int(capacity)
        self.largest = float(np.finfo(np.float64).max) / (2 * self.capacity)  # keeps every sum finite
        self._levels = [_Level(self.capacity)]  # the leaves first
        while len(self._levels[-1].values) > ROOT_SIZE:
            self._levels.append(_Level(len(self._levels[-1].values)))
        self._top = np.zeros(len(self._levels[-1].values))  # (R,), sums of the highest level's blocks
        self._top_sums = np.zeros(len(self._top) + 1)  # (R + 1,), running sums with a 0 before them

    @property
    def total(self) -> float:
        """Sum of all leaves."""
        return float(self._top_sums[-1])

    @property
    def leaves(self) -> np.ndarray:
        """All leaves, (capacity,): a read-only view."""
        view = self._levels[0].flat_values[: self.capacity]
        view.flags.writeable = False
        return view

    def get(self, indices: Any) -> np.ndarray:
        """Values of the leaves at ``indices`` (k,)."""
        return self._levels[0].flat_values[self._check_indices(indices)]

    def set(self, indices: Any, values: Any) -> None:
        """Give the leaves at ``indices`` the ``values``; where an index comes twice, the last value counts.

        Args:
            indices: (k,), integers in [0, capacity).
            values: (k,) or one number: finite and not negative.

        Raises:
            ValueError: Naming the first bad entry. Nothing is written then.
        """
        indices = self._check_indices(indices)
        values = np.broadcast_to(np.asarray(values, np.float64), indices.shape)
        good = (values >= 0) & (values <= self.largest)
        if not good.all():
            row = int(np.argmin(good))
            raise ValueError(f"value at index {row} must lie in [0, {self.largest:.3g}], got {values[row]}")
        self.set_checked(indices, values)

    def set_checked(self, indices: np.ndarray, values: np.ndarray) -> None:
        """``set`` without the checks, for callers who have made them: int64 indices, good float64 values."""
        if not indices.size:
            return
        self._levels[0].flat_values[indices] = values
        for level, above in zip(
            self._levels, [level.flat_values for level in self._levels[1:]] + [self._top], strict=True
        ):
            indices = level.refresh(indices // FAN_OUT, above)
        np.add.accumulate(self._top, out=self._top_sums[1:])

    def find(self, masses: Any) -> np.ndarray:
        """For each mass the first leaf whose running sum from the left is greater: never a leaf of value 0.

        Args:
            masses: (k,) or one number, in [0, total).

        Returns:
            Indices of leaves, shaped as ``masses``.

        Raises:
            ValueError: If a mass lies outside [0, total).
        """
        masses = np.asarray(masses, np.float64)
        good = (masses >= 0) & (masses < self.total)
        if not good.all():
            raise ValueError(f"masses must lie in [0, {self.total}), the total, got {masses[~good].flat[0]}")
        return self.find_checked(masses.ravel()).reshape(masses.shape)

    def find_checked(self, masses: np.ndarray) -> np.ndarray:
        """``find`` without the checks, for float64 masses (k,) in [0, total)."""
        node = self._top_sums[1:].searchsorted(masses, side="right")
        rest, value = masses - self._top_sums[node], self._top[node]
        for level in reversed(self._levels):
            # the difference above may have been rounded up to the node's whole value
            rest = np.minimum(rest, np.nextafter(value, 0.0))
            node, rest, value = level.descend(node, rest)
        return node

    def _check_indices(self, indices: Any) -> np.ndarray:
        indices = np.asarray(indices)
        if indices.dtype.kind not in "iu" and indices.size:
            raise TypeError(f"indices must be integers, got {indices.dtype}")
        indices = np.atleast_1d(indices).astype(np.int64, copy=False)
        if indices.size and (indices.min() < 0 or indices.max() >= self.capacity):
            bad = indices[(indices < 0) | (indices >= self.capacity)][0]
            raise ValueError(f"indices must lie in [0, {self.capacity}), got {bad}")
        return indices


class _Level:
    """One level below the top, in blocks of FAN_OUT siblings; values beyond ``size`` stay 0."""

    def __init__(self, size: int):
        num_blocks = -(-size // FAN_OUT)
        self.values = np.zeros((num_blocks, FAN_OUT))
        self.before = np.zeros((num_blocks, FAN_OUT))  # sum of the values to the left in the same block
        self.flat_values, self.flat_before = self.values.reshape(-1), self.before.reshape(-1)

    def refresh(self, blocks: np.ndarray, above: np.ndarray) -> np.ndarray:
        """Sum up these blocks anew (a block may come many times) and write their sums to the level ``above``."""
        num_blocks = len(self.values)
        if blocks.size * 4 > num_blocks:
            touched = np.zeros(num_blocks, bool)
            touched[blocks] = True
            blocks = np.flatnonzero(touched)
        values = self.values.take(blocks, 0)  # (k, FAN_OUT)
        before = np.zeros_like(values)
        np.add.accumulate(values[:, :-1], axis=1, out=before[:, 1:])
        self.before[blocks] = before
        above[blocks] = before[:, -1] + values[:, -1]
        return blocks

    def descend(self, blocks: np.ndarray, rest: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """In each block the child that holds the mass ``rest``, what is left of the mass there, the child's value."""
        beyond = self.before.take(blocks, 0) > rest[:, None]  # (k, FAN_OUT)
        child = (beyond.argmax(1) - 1) & (FAN_OUT - 1)  # none beyond gives 0 - 1: the last child
        node = blocks * FAN_OUT + child
        return node, rest - self.flat_before[node], self.flat_values[node]

"""A sum tree for whole batches: set many leaves at once, find many leaves by running sum at once.

The tree of Schaul et al. (2016, appendix B.2.1), but wide: a node has 16 children, so that NumPy needs a handful of
calls a level and a million leaves need three levels. The top level is one block, searched by bisection.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from agents.replay.checks import check_integer

FAN_OUT = 16
"""Children of a node: a power of two."""
ROOT_SIZE = 8192
"""Largest number of nodes on the top level."""
NODES_PER_MASS = 8
"""A level of up to so many nodes for each mass to be found is added up in one go."""
LARGE = 200
"""Batches from this size on bisect blocks, smaller ones add up running sums: fewer calls, more work a row."""


class SumTree:
    """Non-negative float64 leaves with fast sums.

    Parents are always summed up anew from their children, never corrected by differences: nothing drifts, and equal
    leaves give equal trees whatever happened before.

    Args:
        capacity: Number of leaves, at least 1. All are 0 at first.

    Raises:
        ValueError: For a capacity that is no positive integer.
    """

    def __init__(self, capacity: int):
        self.capacity = check_integer("capacity", capacity, 1)
        self.largest = float(np.finfo(np.float64).max) / (2 * self.capacity)  # keeps every sum finite
        self._blocks: list[np.ndarray] = []  # from the leaves up: (num_blocks, FAN_OUT), siblings in a row
        size = self.capacity
        while size > ROOT_SIZE or not self._blocks:
            size = -(-size // FAN_OUT)
            self._blocks.append(np.zeros((size, FAN_OUT)))
        self._flat = [level.reshape(-1) for level in self._blocks] + [np.zeros(size)]  # the same by node; the top last
        self._running = np.zeros(size + 1)  # running sums of the top, with a 0 before them
        self._top_changed = False

    @property
    def total(self) -> float:
        """Sum of all leaves."""
        return float(self._top_sums()[-1])

    @property
    def leaves(self) -> np.ndarray:
        """All leaves, (capacity,): a read-only view."""
        view = self._flat[0][: self.capacity]
        view.flags.writeable = False
        return view

    def get(self, indices: Any) -> np.ndarray:
        """Values of the leaves at ``indices`` (k,)."""
        return self._flat[0].take(self._check_indices(indices))

    def set(self, indices: Any, values: Any) -> None:
        """Give the leaves at ``indices`` the ``values``; where an index comes twice, the last value counts.

        Args:
            indices: (k,), integers in [0, capacity).
            values: (k,) or one number: finite and not negative.

        Raises:
            TypeError, ValueError: Naming the first bad entry. Nothing is written then.
        """
        indices = self._check_indices(indices)
        values = np.broadcast_to(np.asarray(values, np.float64), indices.shape)
        good = (values >= 0) & (values <= self.largest)
        if not good.all():
            row = int(np.argmin(good))
            raise ValueError(f"values must lie in [0, {self.largest:.3g}], got {values[row]} at index {row}")
        self.set_checked(indices, values)

    def set_checked(self, indices: np.ndarray, values: np.ndarray) -> None:
        """``set`` without the checks, for callers who have made them: int64 indices, good float64 values."""
        self._flat[0][indices] = values
        for level, flat, above in zip(self._blocks, self._flat[:-1], self._flat[1:], strict=True):
            if len(indices) * 4 >= len(level):  # all parents at once cost less than a part of them
                above[: len(level)] = _sums(flat)
            else:
                indices = indices // FAN_OUT  # a parent may come often: summing it up twice is no fault
                above[indices] = _sums(level.take(indices, 0).reshape(-1))
        self._top_changed = True

    def set_range(self, start: int, values: np.ndarray) -> None:
        """``set_checked`` for the leaves from ``start`` on."""
        stop = start + len(values)
        self._flat[0][start:stop] = values
        for level, above in zip(self._blocks, self._flat[1:], strict=True):
            start, stop = start // FAN_OUT, -(-stop // FAN_OUT)
            above[start:stop] = _sums(level[start:stop].reshape(-1))
        self._top_changed = True

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
        return self.find_checked(masses.ravel())[0].reshape(masses.shape)

    def find_checked(self, masses: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """``find`` without the checks, for float64 masses (k,) in [0, total).

        Returns:
            Indices (k,) and values (k,) of the leaves.
        """
        leaf = self._descend(masses, *self._start(len(masses)), _bisect if len(masses) >= LARGE else _count)
        value = self._flat[0].take(leaf)
        if np.count_nonzero(value) < len(value):  # a sum or difference was rounded over a block's end
            lost = value == 0
            leaf[lost] = self._descend(masses[lost], len(self._blocks), self._top_sums(), _count_within)
            value = self._flat[0].take(leaf)
        return leaf, value

    def _descend(self, masses: np.ndarray, height: int, running: np.ndarray, descend: Any) -> np.ndarray:
        """Go down from the level at ``height``, whose running sums are given."""
        node = running[1:].searchsorted(masses, "right")
        if height == 0:
            return np.minimum(node, self.capacity - 1)
        rest = masses - running.take(node)
        for level in self._blocks[height - 1 : 0 : -1]:
            node, rest = descend(level, node, rest, False)
        return descend(self._blocks[0], node, rest, True)[0]

    def _start(self, count: int) -> tuple[int, np.ndarray]:
        """The level at which a search for so many masses starts, and its running sums with a 0 before them.

        The larger the batch, the more nodes are worth adding up in one go instead of going down through their parents.
        """
        for height, nodes in enumerate(self._flat[:-1]):
            if len(nodes) <= count * NODES_PER_MASS:
                running = np.zeros(len(nodes) + 1)
                np.add.accumulate(nodes, 0, None, running[1:])
                return height, running
        return len(self._blocks), self._top_sums()

    def _top_sums(self) -> np.ndarray:
        if self._top_changed:
            np.add.accumulate(self._flat[-1], 0, None, self._running[1:])
            self._top_changed = False
        return self._running

    def _check_indices(self, indices: Any) -> np.ndarray:
        indices = np.atleast_1d(np.asarray(indices))
        if indices.dtype.kind not in "iu" and indices.size:
            raise TypeError(f"indices must be integers, got {indices.dtype}")
        good = (indices >= 0) & (indices < self.capacity)
        if not good.all():
            raise ValueError(f"indices must lie in [0, {self.capacity}), got {indices[~good][0]}")
        return indices.astype(np.int64, copy=False)


def _sums(values: np.ndarray) -> np.ndarray:
    """Sums of blocks that lie one after the other: always halves of halves, whatever the number of blocks."""
    for _ in range(FAN_OUT.bit_length() - 1):
        values = values[0::2] + values[1::2]
    return values


def _count(level: np.ndarray, block: np.ndarray, rest: np.ndarray, last: bool) -> tuple[np.ndarray, np.ndarray]:
    """The child in each block (k,) that holds the mass ``rest`` (k,), and unless ``last`` what is left of it there."""
    sums = np.add.accumulate(level.take(block, 0), 1)  # (k, FAN_OUT)
    sums[:, -1] = np.inf  # a rest that was rounded up to the block's sum belongs to the last child
    child = (sums > rest[:, None]).argmax(1)
    if not last:
        sums[:, -1] = 0.0  # stands before the next row's first child
        rest = rest - sums.reshape(-1).take(np.arange(-1, sums.size - 1, FAN_OUT) + child)
    return block * FAN_OUT + child, rest


def _count_within(level: np.ndarray, block: np.ndarray, rest: np.ndarray, last: bool) -> tuple[np.ndarray, np.ndarray]:
    """``_count`` with ``rest`` moved below each block's sum, so that no child of value 0 is found."""
    sums = np.add.accumulate(level.take(block, 0), 1)
    return _count(level, block, np.minimum(rest, np.nextafter(sums[:, -1], 0.0)), last)


def _bisect(level: np.ndarray, block: np.ndarray, rest: np.ndarray, last: bool) -> tuple[np.ndarray, np.ndarray]:
    """``_count`` for large k: halves of halves, as in ``_sums``."""
    parts = [level.take(block, 0).reshape(-1)]
    while len(parts[-1]) > 2 * len(block):
        parts.append(parts[-1][0::2] + parts[-1][1::2])
    node = np.arange(0, 2 * len(block), 2)
    for sums in reversed(parts):
        left = sums.take(node)
        right = rest >= left
        rest = rest - left * right
        node = node + right
        node = node + node
    child = node // 2 - np.arange(0, FAN_OUT * len(block), FAN_OUT)
    return block * FAN_OUT + child, rest

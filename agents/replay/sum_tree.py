"""A sum tree for whole batches: set many leaves at once, find many leaves by running sum at once.

The tree of Schaul et al. (2016, appendix B.2.1), but wide: a node has 16 children, so that NumPy needs a handful of
calls a level and a million leaves need three levels of blocks. The running sums of many blocks are one product with a
triangular matrix; the top level is one block of its own, searched by bisection.
"""

from __future__ import annotations

import itertools
from typing import Any, NamedTuple

import numpy as np

from agents.replay.checks import as_array, as_numbers, check_integer

FAN_OUT = 16
"""Children of a node."""
ROOT_SIZE = 1024
"""Largest number of nodes on the top level."""
NODES_PER_MASS, MOST_NODES = 4, 16_384
"""A search starts at the widest level with at most so many nodes for each mass, and so many in all."""
CHUNK = 512
"""Blocks that are multiplied or searched together: they stay in the cache, and BLAS in one thread."""
UPPER = np.triu(np.ones((FAN_OUT, FAN_OUT)))
"""A block times this: its running sums."""
_SEARCHED = UPPER.copy()
_SEARCHED[:, -1] = 2.0  # a rest that was rounded up to the block's sum belongs to the last child
_BEFORE = np.hstack([np.zeros((FAN_OUT, 1)), _SEARCHED])  # what comes before each child, too
_ONES = np.ones(FAN_OUT)
_LOG_FAN_OUT = FAN_OUT.bit_length() - 1
_LOG_WIDTH = np.array(_LOG_FAN_OUT)  # as an array without axes it costs NumPy less than as a number


class Level(NamedTuple):
    """One level of blocks."""

    blocks: np.ndarray  # (num_blocks, FAN_OUT), siblings in a row
    sums: np.ndarray  # (num_blocks,), their sums: the nodes above


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
        size, num_levels = -(-self.capacity // FAN_OUT), 1
        while size > ROOT_SIZE:
            size, num_levels = -(-size // FAN_OUT), num_levels + 1
        nodes = [np.zeros(size * FAN_OUT**height) for height in range(num_levels, -1, -1)]  # from the leaves up
        self._leaves, self._top = nodes[0], nodes[-1]
        self._levels = [Level(low.reshape(-1, FAN_OUT), high) for low, high in itertools.pairwise(nodes)]
        self._lowest = self._levels[0].blocks
        self._sizes = [level.blocks.size for level in self._levels]
        self._many = -(-self._sizes[-1] // NODES_PER_MASS)  # masses from which on a search starts below the top
        self._starts = np.zeros(size + 1)  # running sums of the top, with a 0 before them
        self._ends, self._inner = self._starts[1:], self._starts[1:-1]
        self._top_changed = False

    def __reduce__(self) -> tuple[Any, ...]:
        # copied as it is, each of the views that share memory would get its own
        return _restored, (self.capacity, self.leaves.copy())

    @property
    def total(self) -> float:
        """Sum of all leaves."""
        if self._top_changed:
            np.add.accumulate(self._top, 0, None, self._ends)
            self._top_changed = False
        return self._ends.item(-1)

    @property
    def leaves(self) -> np.ndarray:
        """All leaves, (capacity,): a read-only view."""
        view = self._leaves[: self.capacity]
        view.flags.writeable = False
        return view

    def get(self, indices: Any) -> np.ndarray:
        """Values of the leaves at ``indices`` (k,)."""
        return self._leaves.take(self._check_indices(indices))

    def set(self, indices: Any, values: Any) -> None:
        """Give the leaves at ``indices`` the ``values``; where an index comes twice, the last value counts.

        Args:
            indices: (k,), integers in [0, capacity).
            values: (k,) or one number: finite and not negative.

        Raises:
            TypeError, ValueError: Naming the first bad entry. Nothing is written then.
        """
        indices = self._check_indices(indices)
        values = as_numbers("values", values).astype(np.float64)
        if values.shape not in ((), indices.shape):
            raise ValueError(f"values must be one number or have shape {indices.shape}, got {values.shape}")
        values = np.broadcast_to(values, indices.shape)
        good = (values >= 0) & (values <= self.largest)
        if not good.all():
            row = int(np.argmin(good))
            raise ValueError(f"values must lie in [0, {self.largest:.3g}], got {values[row]} at index {row}")
        self.set_checked(indices, values)

    def set_checked(self, indices: np.ndarray, values: np.ndarray) -> None:
        """``set`` without the checks, for callers who have made them: int64 indices, good float64 values."""
        self._leaves[indices] = values
        for blocks, sums in self._levels:
            if len(indices) * 4 >= len(blocks):  # all blocks at once cost less than a part of them
                np.vecdot(blocks, _ONES, sums)  # each sum has the same bits, whatever stands beside it
            else:
                indices = indices >> _LOG_WIDTH  # a block may come often: adding it up twice is no fault
                sums[indices] = np.vecdot(blocks.take(indices, 0), _ONES)
        self._top_changed = True

    def set_range(self, start: int, values: np.ndarray) -> None:
        """``set_checked`` for the leaves from ``start`` on."""
        stop = start + len(values)
        self._leaves[start:stop] = values
        for blocks, sums in self._levels:
            start, stop = start >> _LOG_FAN_OUT, (stop + FAN_OUT - 1) >> _LOG_FAN_OUT
            np.vecdot(blocks[start:stop], _ONES, sums[start:stop])
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
        masses = as_numbers("masses", masses).astype(np.float64)
        good = (masses >= 0) & (masses < self.total)
        if not good.all():
            raise ValueError(f"masses must lie in [0, {self.total}), the total, got {masses[~good].flat[0]}")
        if not masses.size:
            return np.zeros(masses.shape, np.int64)
        return self.find_checked(masses.ravel())[0].reshape(masses.shape)

    def find_checked(self, masses: np.ndarray) -> tuple[np.ndarray, np.ndarray, float]:
        """``find`` without the checks, for float64 masses (k,) in [0, total), after ``total`` has been asked for.

        Returns:
            Indices (k,) and values (k,) of the leaves, and the smallest of the values.
        """
        height, starts, inner = len(self._levels), self._starts, self._inner
        if len(masses) >= self._many:
            height, starts = self._start(len(masses))
            inner = starts[1:-1]
        leaf = inner.searchsorted(masses, "right")
        if height:
            rest = masses - starts[leaf]
            leaf = self._in_parts(height, leaf, rest) if len(leaf) > CHUNK else self._descend(height, leaf, rest)
        value = self._leaves[leaf]
        least = value.item(value.argmin())
        if least == 0:  # a sum or difference was rounded over a block's end
            lost = value == 0
            leaf[lost] = self._search_again(masses[lost])
            value = self._leaves[leaf]
            least = value.item(value.argmin())
        return leaf, value, least

    def _in_parts(self, height: int, node: np.ndarray, rest: np.ndarray) -> np.ndarray:
        parts = (slice(start, start + CHUNK) for start in range(0, len(node), CHUNK))
        return np.concatenate([self._descend(height, node[part], rest[part]) for part in parts])

    def _descend(self, height: int, node: np.ndarray, rest: np.ndarray) -> np.ndarray:
        """Leaves (k,) below the nodes (k,) of the level at ``height``, in which the masses ``rest`` (k,) are left."""
        while height > 1:
            height -= 1
            level = self._levels[height]
            running = level.blocks.take(node, 0).dot(_BEFORE)  # (k, 1 + FAN_OUT)
            child = (running <= rest.repeat(FAN_OUT + 1).reshape(-1, FAN_OUT + 1)).argmin(1)
            child -= 1  # the first column is the 0 before all
            node = (node << _LOG_WIDTH) + child
            child += np.arange(0, running.size, FAN_OUT + 1)
            rest = rest - running.ravel()[child]
        running = self._lowest.take(node, 0).dot(_SEARCHED)  # (k, FAN_OUT)
        child = (running <= rest.repeat(FAN_OUT).reshape(-1, FAN_OUT)).argmin(1)
        child += node << _LOG_WIDTH
        return child

    def _search_again(self, masses: np.ndarray) -> np.ndarray:
        """Leaves for these masses, none of value 0: at each block the rest is moved into the block's sum."""
        node = self._ends.searchsorted(masses, "right")
        rest = masses - self._starts[node]
        for level in reversed(self._levels):
            running = np.add.accumulate(level.blocks.take(node, 0), 1)
            rest = np.clip(rest, 0.0, np.nextafter(running[:, -1], 0.0))
            child = (running > rest[:, None]).argmax(1)
            rest = rest - np.where(child > 0, running[np.arange(len(rest)), child - 1], 0.0)
            node = node * FAN_OUT + child
        return node

    def _start(self, count: int) -> tuple[int, np.ndarray]:
        """The level at which a search for so many masses starts, and its running sums with a 0 before them.

        The larger the batch, the more nodes are worth adding up in one go instead of going down through their parents.
        """
        height, starts = len(self._levels), self._starts
        most = min(count * NODES_PER_MASS, MOST_NODES)
        while height and self._sizes[height - 1] <= most:
            height -= 1
            blocks, before = self._levels[height].blocks, starts
            starts = np.zeros(blocks.size + 1)
            np.add(np.dot(blocks, UPPER), before[:-1, None], starts[1:].reshape(blocks.shape))
        return height, starts

    def _check_indices(self, indices: Any) -> np.ndarray:
        indices = np.atleast_1d(as_array("indices", indices))
        if indices.dtype.kind not in "iu" and indices.size:
            raise TypeError(f"indices must be integers, got {indices.dtype}")
        good = (indices >= 0) & (indices < self.capacity)
        if not good.all():
            raise ValueError(f"indices must lie in [0, {self.capacity}), got {indices[~good][0]}")
        return indices.astype(np.int64, copy=False)


def _restored(capacity: int, leaves: np.ndarray) -> SumTree:
    tree = SumTree(capacity)
    tree.set_range(0, leaves)
    return tree

"""What each row of a batch draws next, made ahead in blocks for many rows at once."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from gym_custom.drivers.row_random import RowGenerators

_CACHE = 2**21  # bytes that a window of all rows may take without leaving the processor's cache
_ROW = 512  # bytes that a row's window may take anyway
_MOST = 64  # items in a window
_NUMBERS_AT_ONCE = 16_384  # so that what lies between a number and an item stays in the cache

Make = Callable[[np.ndarray], Sequence[np.ndarray]]
"""From uniforms of shape (draws, m) to m items: for each block an array of shape (m, width)."""


class RowStreams:
    """A sequence of items a row, each made of the row's next ``draws`` uniforms.

    A row's coming items stand in a window of two halves. Once the first half is used up, the second takes its place
    and a new one is made, for all such rows in one go, as soon as any row runs dry. The generator of a row stands
    behind its window and can look back, so that the numbers behind an item can be had again.

    Args:
        num_envs: Number of rows.
        draws: Uniforms an item is made of.
        make: Makes items.
        at_once: Items a row may take in one call.
    """

    def __init__(self, num_envs: int, draws: int, make: Make, at_once: int = 1):
        self._generators = RowGenerators(num_envs)
        self._draws, self._make = draws, make
        example = make(np.full((draws, 1), 0.5))
        size = sum(block.nbytes for block in example)
        items = min(max(_CACHE // max(1, size * num_envs), _ROW // max(1, size), 2), _MOST)
        self._half = max(at_once, items // 2)
        self._store = [np.empty((num_envs, 2, self._half, block.shape[1]), block.dtype) for block in example]
        self._flat = [store.reshape(-1, store.shape[-1]) for store in self._store]
        self._begin = np.arange(num_envs) * (2 * self._half)
        self._end = self._begin + 2 * self._half
        self._left = np.zeros(num_envs, np.int64)
        self._cursor = self._begin.copy()  # where in _flat a row's next item stands
        self._safe = 0  # items that any row may take before one can run dry

    def seed(self, rows: np.ndarray, seeds: Sequence[int]) -> None:
        """Begins the sequences of these rows anew, as ``numpy.random.default_rng(seed)`` would."""
        self._generators.seed(rows, seeds)
        self._cursor[rows] = self._begin[rows]
        for half in (0, 1):
            self._fill(rows, half)
        self._safe = 0

    def take(self, rows: np.ndarray) -> list[np.ndarray]:
        """The next item of each of these rows: arrays of shape (m, width)."""
        if self._safe < 1:
            self._top_up(1)
        self._safe -= 1
        at = self._cursor.take(rows)
        self._cursor[rows] = at + 1
        return [flat.take(at, axis=0) for flat in self._flat]

    def take_many(self, rows: np.ndarray, count: int) -> list[np.ndarray]:
        """The next items of each of these rows: arrays of shape (count, m, width)."""
        if self._safe < count:
            self._top_up(count)
        self._safe -= count
        at = self._cursor.take(rows)
        self._cursor[rows] = at + count
        return [flat.take(at + np.arange(count)[:, None], axis=0) for flat in self._flat]

    def take_uniforms(self, rows: np.ndarray) -> np.ndarray:
        """The numbers, of shape (draws, m), behind the next item of each of these rows, which is used up."""
        self.take(rows)
        return self._generators.uniforms(rows, (self._cursor[rows] - self._end[rows] - 1) * self._draws, self._draws)

    def generator(self, row: int) -> np.random.Generator:
        """A generator that will draw what this row draws next."""
        return self._generators.generator(row, int(self._cursor[row] - self._end[row]) * self._draws)

    def get_state(self) -> dict[str, Any]:
        """All that moves, as arrays."""
        words = self._generators.words
        return {"store": self._store, "cursor": self._cursor, "safe": self._safe, "generators": words}

    def set_state(self, state: dict[str, Any]) -> None:
        """Goes back to what `get_state` gave."""
        for store, kept in zip(self._store, state["store"], strict=True):
            store[...] = kept
        self._cursor[...], self._safe = state["cursor"], state["safe"]
        self._generators.words[...] = state["generators"]

    def _top_up(self, count: int) -> None:
        """Makes sure that every row can take so many items."""
        left = np.subtract(self._end, self._cursor, out=self._left)
        while left.min() < count:
            rows = np.flatnonzero(left <= self._half)
            for store in self._store:
                store[rows, 0] = store[rows, 1]
            self._fill(rows, half=1)
            self._cursor[rows] -= self._half
            left[rows] += self._half
        self._safe = int(left.min())

    def _fill(self, rows: np.ndarray, half: int) -> None:
        """Makes half a window of items, those that come next."""
        wide = max(1, _NUMBERS_AT_ONCE // max(1, self._half * self._draws))
        for a in range(0, len(rows), wide):
            some = rows[a : a + wide]
            u = self._generators.draw(some, self._half, self._draws)  # (draws, half, m)
            made = self._make(u.reshape(self._draws, self._half * len(some)))
            for store, items in zip(self._store, made, strict=True):  # (half * m, width)
                store[some, half] = items.reshape(self._half, len(some), store.shape[-1]).swapaxes(0, 1)

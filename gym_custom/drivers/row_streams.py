"""What each row of a batch draws next: made ahead in blocks for many rows, or for those that need it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Protocol

import numpy as np

from gym_custom.drivers.row_random import RowGenerators, records

_MANY_ROWS = 32_768
"""Rows of a batch from which on enough of them draw at once, and windows of all would not stay in the cache."""

_ROOM = 2**21  # bytes that the windows of all rows may take without leaving the processor's cache
_ROW = 512  # bytes that a row's window may take anyway
_MOST = 64  # items in a window
_NUMBERS_AT_ONCE = 16_384  # so that what lies between a number and an item stays in the cache

Make = Callable[[np.ndarray], Sequence[np.ndarray]]
"""From uniforms of shape (draws, m) to m items: for each block an array of shape (width, m)."""


class RowStreams(Protocol):
    """A sequence of items a row, each made of the row's next ``draws`` uniforms."""

    def seed(self, rows: np.ndarray, seeds: Sequence[int]) -> None:
        """Begins the sequences of these rows anew, as ``numpy.random.default_rng(seed)`` would."""

    def take(self, rows: np.ndarray) -> list[np.ndarray]:
        """The next item of each of these rows: arrays of shape (width, m)."""

    def take_many(self, rows: np.ndarray, count: int) -> list[np.ndarray]:
        """The next items of each of these rows: arrays of shape (width, count, m)."""

    def take_uniforms(self, rows: np.ndarray) -> np.ndarray:
        """The numbers, of shape (draws, m), behind the next item of each of these rows, which is used up."""

    def generator(self, row: int) -> np.random.Generator:
        """A generator that will draw what this row draws next."""

    def get_state(self) -> dict[str, Any]:
        """All that moves, as arrays."""

    def set_state(self, state: dict[str, Any]) -> None:
        """Goes back to what `get_state` gave."""


def row_streams(num_envs: int, draws: int, make: Make, at_once: int = 1) -> RowStreams:
    """The quickest form for so many rows.

    Args:
        num_envs: Number of rows.
        draws: Uniforms an item is made of.
        make: Makes items.
        at_once: Items a row may take in one call.
    """
    if num_envs < _MANY_ROWS:
        return StreamsAhead(num_envs, draws, make, at_once)
    return StreamsOnDemand(num_envs, draws, make)


class StreamsOnDemand:
    """Makes an item when it is wanted."""

    def __init__(self, num_envs: int, draws: int, make: Make):
        self._generators = RowGenerators(num_envs)
        self._draws, self._make = draws, make
        self.seed, self.generator = self._generators.seed, self._generators.generator

    def take(self, rows: np.ndarray) -> list[np.ndarray]:
        """The next item of each of these rows: arrays of shape (width, m)."""
        return list(self._make(self.take_uniforms(rows)))

    def take_many(self, rows: np.ndarray, count: int) -> list[np.ndarray]:
        """The next items of each of these rows: arrays of shape (width, count, m)."""
        u = self._generators.draw(rows, count, self._draws)  # (draws, count, m)
        made = self._make(u.reshape(self._draws, count * len(rows)))
        return [items.reshape(len(items), count, len(rows)) for items in made]

    def take_uniforms(self, rows: np.ndarray) -> np.ndarray:
        """The numbers, of shape (draws, m), behind the next item of each of these rows, which is used up."""
        return self._generators.draw(rows, 1, self._draws)[:, 0]

    def get_state(self) -> dict[str, Any]:
        """All that moves, as arrays."""
        return {"generators": self._generators.words}

    def set_state(self, state: dict[str, Any]) -> None:
        """Goes back to what `get_state` gave."""
        self._generators.words[...] = state["generators"]


class StreamsAhead:
    """Makes items ahead.

    A row's coming items stand below each other in a window of two halves. Once the first half is used up, the second
    takes its place and a new one is made, for all such rows in one go, as soon as any row runs dry. The generator of a
    row stands behind its window and can look back, so that the numbers behind an item can be had again.
    """

    def __init__(self, num_envs: int, draws: int, make: Make, at_once: int = 1):
        self._generators = RowGenerators(num_envs)
        self._draws, self._make = draws, make
        example = make(np.full((draws, 1), 0.5))
        size = sum(block.nbytes for block in example)
        items = min(max(_ROOM // max(1, size * num_envs), _ROW // max(1, size), 2), _MOST)
        self._half = max(at_once, items // 2)
        self._flat = [np.empty((2 * self._half * num_envs, len(block)), block.dtype) for block in example]
        self._windows = [records(flat).reshape(2 * self._half, num_envs) for flat in self._flat if flat.size]
        self._num_envs = num_envs
        self._begin = np.arange(num_envs)
        self._end = self._begin + 2 * self._half * num_envs
        self._cursor = self._begin.copy()  # where in the flat store a row's next item stands
        self._safe = 0  # items that any row may take before one can run dry

    def seed(self, rows: np.ndarray, seeds: Sequence[int]) -> None:
        """Begins the sequences of these rows anew, as ``numpy.random.default_rng(seed)`` would."""
        self._generators.seed(rows, seeds)
        self._cursor[rows] = self._begin[rows]
        for half in (0, 1):
            self._fill(rows, half)
        self._safe = 0

    def take(self, rows: np.ndarray) -> list[np.ndarray]:
        """The next item of each of these rows: arrays of shape (width, m)."""
        if self._safe < 1:
            self._top_up(1)
        self._safe -= 1
        at = self._cursor.take(rows)
        self._cursor[rows] = at + self._num_envs
        return [flat.take(at, axis=0).T for flat in self._flat]

    def take_many(self, rows: np.ndarray, count: int) -> list[np.ndarray]:
        """The next items of each of these rows: arrays of shape (width, count, m)."""
        if self._safe < count:
            self._top_up(count)
        self._safe -= count
        at = self._cursor.take(rows)
        self._cursor[rows] = at + count * self._num_envs
        places = at + np.arange(count)[:, None] * self._num_envs
        return [flat.take(places, axis=0).transpose(2, 0, 1) for flat in self._flat]

    def take_uniforms(self, rows: np.ndarray) -> np.ndarray:
        """The numbers, of shape (draws, m), behind the next item of each of these rows, which is used up."""
        self.take(rows)
        last = -self._ahead(rows) - 1
        return self._generators.uniforms(rows, last * self._draws, self._draws)

    def generator(self, row: int) -> np.random.Generator:
        """A generator that will draw what this row draws next."""
        return self._generators.generator(row, -int(self._ahead(row)) * self._draws)

    def get_state(self) -> dict[str, Any]:
        """All that moves, as arrays."""
        words = self._generators.words
        return {"items": self._flat, "cursor": self._cursor, "safe": self._safe, "generators": words}

    def set_state(self, state: dict[str, Any]) -> None:
        """Goes back to what `get_state` gave."""
        for flat, kept in zip(self._flat, state["items"], strict=True):
            flat[...] = kept
        self._cursor[...], self._safe = state["cursor"], state["safe"]
        self._generators.words[...] = state["generators"]

    def _top_up(self, count: int) -> None:
        """Makes sure that every row can take so many items."""
        left = self._ahead(slice(None))
        while left.min() < count:
            rows = np.flatnonzero(left <= self._half)
            for window in self._windows:
                window[: self._half, rows] = window[self._half :, rows]
            self._fill(rows, half=1)
            self._cursor[rows] -= self._half * self._num_envs
            left[rows] += self._half
        self._safe = int(left.min())

    def _ahead(self, rows: Any) -> Any:
        """How many items these rows have made ahead."""
        return (self._end[rows] - self._cursor[rows]) // self._num_envs

    def _fill(self, rows: np.ndarray, half: int) -> None:
        """Makes half a window of items, those that come next."""
        wide = max(1, _NUMBERS_AT_ONCE // max(1, self._half * self._draws))
        lines = slice(half * self._half, (half + 1) * self._half)
        for a in range(0, len(rows), wide):
            some = rows[a : a + wide]
            u = self._generators.draw(some, self._half, self._draws)  # (draws, half, m)
            made = self._make(u.reshape(self._draws, self._half * len(some)))
            items = [records(np.ascontiguousarray(block.T)) for block in made if block.size]
            for window, new in zip(self._windows, items, strict=True):
                window[lines, some] = new.reshape(self._half, len(some))

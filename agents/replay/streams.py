"""Which rows follow each other: every source (an actor's environment row, say) is a stream of rows in order."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

Rows = slice | np.ndarray
"""Row numbers within a batch, as an index."""


class Split(NamedTuple):
    """A batch of rows seen as pieces of streams."""

    earlier: Rows  # (P,), rows that have a next row of the same source in the batch
    later: Rows  # (P,), that next row
    first: np.ndarray  # (S,), first row of each source
    newest_before: np.ndarray  # (S,), id of the source's newest row before the batch, -1 for none


class Streams:
    """The newest row of each source."""

    def __init__(self) -> None:
        self.sources = np.zeros(0, np.int64)  # (S,), sorted
        self.newest = np.zeros(0, np.int64)  # (S,), ids
        self._place_of: dict[int, np.ndarray] = {}  # what is known of ``sources`` as it is, for single sources

    def advance(self, sources: np.ndarray | int, ids: np.ndarray) -> Split:
        """Split a batch with these ids (N,) into streams and remember the newest row of each.

        Args:
            sources: One for the whole batch, or (N,).
            ids: (N,), at least one.
        """
        if isinstance(sources, int):
            count = len(ids)
            place = self._place_of.get(sources)
            if place is None:
                place = self._places(np.array([sources]))
                self._place_of[sources] = place
            split = Split(slice(0, count - 1), slice(1, count), np.zeros(1, np.int64), self.newest[place])
            self.newest[place] = ids[-1]
            return split
        order = np.argsort(sources, kind="stable")
        ordered = sources[order]
        continues = ordered[1:] == ordered[:-1]
        starts, ends = np.append(True, ~continues), np.append(~continues, True)
        place = self._places(ordered[starts])
        split = Split(order[:-1][continues], order[1:][continues], order[starts], self.newest[place])
        self.newest[place] = ids[order[ends]]
        return split

    def _places(self, sources: np.ndarray) -> np.ndarray:
        """Where these distinct sources stand; new ones are entered."""
        place = self.sources.searchsorted(sources)
        known = np.zeros(len(sources), bool)
        inside = place < len(self.sources)
        known[inside] = self.sources[place[inside]] == sources[inside]
        if known.all():
            return place
        self._place_of = {}
        self.sources = np.insert(self.sources, place[~known], sources[~known])
        self.newest = np.insert(self.newest, place[~known], -1)
        return self.sources.searchsorted(sources)


def check_source(source: Any, num_rows: int) -> np.ndarray | int:
    """``source`` of ``append`` as one int, or as int64 (num_rows,); else ValueError."""
    array = np.asarray(source)
    if array.dtype.kind not in "iu":
        raise ValueError(f"source must be an integer or one integer a row, got {source!r}")
    if array.ndim == 0:
        return int(array)
    if array.shape != (num_rows,):
        raise ValueError(f"source must be one integer or have shape ({num_rows},), got {array.shape}")
    return array.astype(np.int64)

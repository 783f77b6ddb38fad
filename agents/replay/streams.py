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
    joints: list[tuple[int, int]]  # per source: id of its newest row before the batch, its first row in the batch


class Streams:
    """The newest row of each source."""

    def __init__(self) -> None:
        self.newest: dict[int, int] = {}  # by source: id

    def advance(self, sources: np.ndarray | int, ids: np.ndarray) -> Split:
        """Split a batch with these ids (N,) into streams and remember the newest row of each.

        Args:
            sources: One for the whole batch, or (N,).
            ids: (N,), at least one.
        """
        if isinstance(sources, int):
            count = len(ids)
            joints = [(self.newest[sources], 0)] if sources in self.newest else []
            self.newest[sources] = ids.item(-1)
            return Split(slice(0, count - 1), slice(1, count), joints)
        order = np.argsort(sources, kind="stable")
        ordered = sources[order]
        continues = ordered[1:] == ordered[:-1]
        firsts, lasts = order[np.append(True, ~continues)], order[np.append(~continues, True)]
        present = sources[firsts].tolist()
        joints = [(self.newest[s], row) for s, row in zip(present, firsts.tolist(), strict=True) if s in self.newest]
        self.newest.update(zip(present, ids[lasts].tolist(), strict=True))
        return Split(order[:-1][continues], order[1:][continues], joints)


def check_source(source: Any, num_rows: int) -> np.ndarray | int:
    """``source`` of ``append`` as one int, or as int64 (num_rows,); else ValueError."""
    if type(source) is int:
        return source
    array = np.asarray(source)
    if array.dtype.kind not in "iu":
        raise ValueError(f"source must be an integer or one integer a row, got {source!r}")
    if array.ndim == 0:
        return int(array)
    if array.shape != (num_rows,):
        raise ValueError(f"source must be one integer or have shape ({num_rows},), got {array.shape}")
    return array.astype(np.int64)

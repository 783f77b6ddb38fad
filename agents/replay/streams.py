"""Which rows follow each other: every source (an actor's environment row, say) is a stream of rows in order."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from agents.replay.checks import as_array

Rows = slice | np.ndarray
"""Row numbers within a batch, as an index."""


class Split(NamedTuple):
    """A batch of rows seen as pieces of streams."""

    earlier: Rows  # (P,), rows that have a next row of the same source in the batch
    later: Rows  # (P,), that next row
    newest: np.ndarray | int  # (S,), the last row of each source, one number for a batch of one source
    joints: list[tuple[int, int]]  # per source: id of its newest row before the batch, its first row in the batch


class Streams:
    """The newest row of each source."""

    def __init__(self) -> None:
        self.newest: dict[int, int] = {}  # by source: id

    def advance(self, sources: np.ndarray | int, first: int, count: int) -> Split:
        """Split a batch into streams and remember the newest row of each.

        Args:
            sources: One for the whole batch, or (N,).
            first: Id of the first row.
            count: Number of rows N, at least 1.
        """
        if isinstance(sources, int):
            joints = [(self.newest[sources], 0)] if sources in self.newest else []
            self.newest[sources] = first + count - 1
            return Split(slice(0, count - 1), slice(1, count), count - 1, joints)
        order = np.argsort(sources, kind="stable")
        ordered = sources[order]
        continues = ordered[1:] == ordered[:-1]
        firsts, lasts = order[np.append(True, ~continues)], order[np.append(~continues, True)]
        present = sources[firsts].tolist()
        joints = [(self.newest[s], row) for s, row in zip(present, firsts.tolist(), strict=True) if s in self.newest]
        self.newest.update(zip(present, (first + lasts).tolist(), strict=True))
        return Split(order[:-1][continues], order[1:][continues], lasts, joints)


def check_source(source: Any, num_rows: int) -> np.ndarray | int:
    """``source`` of ``append`` as one int, or as int64 (num_rows,); else ValueError."""
    if type(source) is int and -(2**63) <= source < 2**63:
        return source
    array = as_array("source", source)
    if array.dtype.kind not in "iu" or (array.dtype == np.uint64 and (array >= 2**63).any()):
        raise ValueError(f"source must be an integer of 64 bits or one such integer a row, got {source!r}")
    if array.ndim == 0:
        return int(array)
    if array.shape != (num_rows,):
        raise ValueError(f"source must be one integer or have shape ({num_rows},), got {array.shape}")
    return array.astype(np.int64)

"""What GridWorld's constructor and options accept, and one sentence for what they do not."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from gym_custom.gridworld.layout import MAPS, Layout, empty, parse

MOST_CELLS = 1_000_000


def legal_layout(layout: str | Sequence[str], size: int | Sequence[int] | None) -> Layout:
    """The map that the arguments ``layout`` and ``size`` describe."""
    if layout == "empty":
        rows, cols = _size(5 if size is None else size)
        return empty(rows, cols)
    if size is not None:
        raise ValueError(f"size={size!r} is for the layout 'empty' only")
    if not isinstance(layout, str):
        return parse(layout)
    if layout not in MAPS:
        legal = ", ".join(map(repr, ("empty", *MAPS)))
        raise ValueError(f"layout must be {legal} or a list of strings, not {layout!r}")
    return parse(MAPS[layout])


def _size(size: Any) -> tuple[int, int]:
    pair = (size, size) if _is_integer(size) else size
    if not _is_pair(pair) or min(pair) < 1 or max(pair) < 2:
        raise ValueError(f"size must be an integer or [rows, columns] with at least two cells, not {size!r}")
    if int(pair[0]) * int(pair[1]) > MOST_CELLS:
        raise ValueError(f"size must make at most {MOST_CELLS:,} cells, not {size!r}")
    return int(pair[0]), int(pair[1])


def legal_cell(land: Layout, name: str, place: Sequence[int] | None) -> int | None:
    """The number of the free cell at (row, column)."""
    if place is None:
        return None
    if not _is_pair(place):
        raise ValueError(f"{name} must be [row, column], not {place!r}")
    row, col = int(place[0]), int(place[1])
    if not (0 <= row < land.rows and 0 <= col < land.cols):
        raise ValueError(f"{name} {place!r} is outside the map of {land.rows} rows and {land.cols} columns")
    cell = row * land.cols + col
    if not land.is_free[cell]:
        raise ValueError(f"{name} {place!r} is a {'wall' if land.is_wall[cell] else 'pit'}")
    return cell


def _is_integer(value: Any) -> bool:
    return isinstance(value, (int, np.integer)) and not isinstance(value, bool)


def _is_pair(value: Any) -> bool:
    if isinstance(value, np.ndarray):
        value = list(value) if value.ndim else ()
    if isinstance(value, str) or not isinstance(value, Sequence):
        return False
    return len(value) == 2 and all(_is_integer(number) for number in value)

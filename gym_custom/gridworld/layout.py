"""Maps of GridWorld: from text to tables, and which cells lead to which.

The one convention of this world, for observations, options, text, pictures and plots alike: a place is (row, column),
row 0 is at the top and column 0 at the left, and a cell's number counts row by row.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

RIGHT, DOWN, LEFT, UP = range(4)
ACTION_NAMES = ("right", "down", "left", "up")
MOVES = ((0, 1), (1, 0), (0, -1), (-1, 0))  # change of (row, column)
SYMBOLS = {"S": "start", "G": "goal", "#": "wall", ".": "free", "O": "pit"}

MAPS: dict[str, list[str]] = {
    # Silver's lecture 3 and Sutton & Barto 2018, example 4.1: two terminal corners
    "small": ["G...", "....", "....", "...G"],
    # Sutton, Precup & Singh 1999, figure 2
    "four_rooms": [
        "#############",
        "#G....#.....#",
        "#.....#.....#",
        "#...........#",
        "#.....#.....#",
        "#.....#.....#",
        "##.####.....#",
        "#.....###.###",
        "#.....#.....#",
        "#.....#.....#",
        "#...........#",
        "#.....#....S#",
        "#############",
    ],
    # Sutton & Barto 2018, example 6.6; here a fall ends the episode
    "cliff": ["............", "............", "............", "SOOOOOOOOOOG"],
    # Sutton & Barto 2018, example 8.1, the Dyna maze
    "maze": [".......#G", "..#....#.", "S.#....#.", "..#......", ".....#...", "........."],
}
SETTINGS: dict[str, dict[str, Any]] = {
    "small": {"random_start": True, "step_reward": -1.0, "goal_reward": -1.0},
    "cliff": {"step_reward": -1.0, "goal_reward": -1.0, "pit_reward": -100.0},
}
"""What a named map changes in the constructor's defaults."""


class Layout(NamedTuple):
    """A map as arrays over its cells."""

    rows: int
    cols: int
    is_wall: np.ndarray  # (cells,), bool
    is_pit: np.ndarray  # (cells,), bool
    goals: np.ndarray  # cells marked G
    starts: np.ndarray  # cells marked S
    next_cell: np.ndarray  # (cells, 4), where each move leads

    @property
    def is_free(self) -> np.ndarray:
        """Cells that a walker can stand on and leave, (cells,)."""
        return ~(self.is_wall | self.is_pit)

    def place(self, cell: Any) -> tuple[int, int]:
        """Row and column of a cell."""
        return divmod(int(cell), self.cols)


class Places(NamedTuple):
    """Where episodes begin and end."""

    start: int  # the first of starts where the start is not random
    goal: int  # -1 for all goals of the map
    starts: np.ndarray
    goals: np.ndarray


def parse(text: Sequence[str]) -> Layout:
    """Makes a layout from lines of `S`, `G`, `#` (wall), `.` (free) and `O` (pit).

    Raises:
        ValueError: The lines are not equally long, or hold another character.
    """
    if isinstance(text, str) or not isinstance(text, Sequence) or not all(isinstance(line, str) for line in text):
        raise ValueError(f"a layout is a name or a list of strings, one a row, not {text!r}")
    if not text or not text[0]:
        raise ValueError("a layout needs at least one row and one column")
    lengths = [len(line) for line in text]
    if len(set(lengths)) > 1:
        raise ValueError(f"all rows of a layout must be equally long, not {lengths}")
    symbols = np.array([list(line) for line in text])
    for row, col in np.argwhere(~np.isin(symbols, list(SYMBOLS))):
        legal = ", ".join(f"{symbol!r} ({meaning})" for symbol, meaning in SYMBOLS.items())
        raise ValueError(f"{str(symbols[row, col])!r} at row {row}, column {col} of the layout is none of {legal}")
    flat = symbols.ravel()
    return Layout(
        rows=symbols.shape[0],
        cols=symbols.shape[1],
        is_wall=flat == "#",
        is_pit=flat == "O",
        goals=np.flatnonzero(flat == "G"),
        starts=np.flatnonzero(flat == "S"),
        next_cell=_next_cells(symbols == "#"),
    )


def empty(rows: int, cols: int) -> Layout:
    """A map without walls: start at the bottom right, goal at the top left."""
    text = [["."] * cols for _ in range(rows)]
    text[0][0], text[-1][-1] = "G", "S"
    return parse(["".join(line) for line in text])


def _next_cells(is_wall: np.ndarray) -> np.ndarray:
    """Where each move leads from each cell, (cells, 4): walls and edges leave the walker where it is."""
    rows, cols = is_wall.shape
    row, col = np.divmod(np.arange(rows * cols), cols)
    table = np.empty((rows * cols, 4), np.int64)
    for action, (down, right) in enumerate(MOVES):
        to_row, to_col = np.clip(row + down, 0, rows - 1), np.clip(col + right, 0, cols - 1)
        blocked = is_wall[to_row, to_col] | is_wall.ravel()
        table[:, action] = np.where(blocked, row * cols + col, to_row * cols + to_col)
    return table


def flood(layout: Layout, seeds: np.ndarray) -> np.ndarray:
    """Free cells that can be reached from some cells, these included, (k,) in order.

    Moves can be taken back, so they are as well the cells from which one of the seeds can be reached.
    """
    seen, frontier = np.zeros(layout.is_wall.size, bool), np.asarray(seeds)
    while frontier.size:
        seen[frontier] = True
        reached = np.unique(layout.next_cell[frontier])
        frontier = reached[~seen[reached] & layout.is_free[reached]]
    return np.flatnonzero(seen)


def settle(
    layout: Layout, start: int | None, goal: int | None, random_start: bool = False, random_goal: bool = False
) -> Places:
    """Decides where episodes may begin and end, so that the goal can always be reached.

    Args:
        layout: The map.
        start: Cell of the start, None for the map's.
        goal: Cell of the goal, None for the map's (which may be several).
        random_start: Draw the start among the cells from which a goal can be reached; ``start`` is not used.
        random_goal: Draw the goal among the cells that can be reached; ``goal`` is not used.

    Raises:
        ValueError: There is no path from start to goal, no start or no goal.
    """
    if random_start and random_goal:
        cells = _largest_region(layout)
        if cells.size < 2:
            raise ValueError("a random start and goal need two free cells side by side; the layout has none")
        return Places(int(cells[0]), int(cells[-1]), cells, cells)
    if random_goal:
        begin = _only_start(layout, start)
        return Places(begin, -1, np.array([begin]), _goals_from(layout, begin))
    goals = layout.goals if goal is None else np.array([goal])
    if not goals.size:
        raise ValueError("the layout has no goal: mark one with 'G', or give goal=[row, column] or random_goal=True")
    named = int(goals[0]) if goals.size == 1 else -1
    if random_start:
        starts = _starts_to(layout, goals)
        return Places(int(np.setdiff1d(starts, goals)[0]), named, starts, goals)
    begin = _only_start(layout, start)
    _demand_path(layout, begin, goals)
    return Places(begin, named, np.array([begin]), goals)


def _only_start(layout: Layout, start: int | None) -> int:
    if start is not None:
        return start
    if layout.starts.size == 1:
        return int(layout.starts[0])
    found = [layout.place(cell) for cell in layout.starts] or "none"
    raise ValueError(f"the layout needs one start 'S' (it has {found}), or start=[row, column], or random_start=True")


def _largest_region(layout: Layout) -> np.ndarray:
    """The largest set of free cells that are connected, the first of equals."""
    best, rest = np.array([], int), layout.is_free.copy()
    while rest.any():
        region = flood(layout, np.flatnonzero(rest)[:1])
        rest[region] = False
        best = region if region.size > best.size else best
    return best


def _goals_from(layout: Layout, start: int) -> np.ndarray:
    reached = flood(layout, np.array([start]))
    if reached.size < 2:
        raise ValueError(f"the start {layout.place(start)} is shut in: no other cell can be reached for a random goal")
    return reached[reached != start]


def _starts_to(layout: Layout, goals: np.ndarray) -> np.ndarray:
    """Cells from which a goal can be reached; a single goal stays in the list, where initial_state skips it."""
    cells = flood(layout, goals)
    outside = np.setdiff1d(cells, goals)
    if not outside.size:
        ends = ", ".join(str(layout.place(goal)) for goal in goals)
        raise ValueError(f"the goal {ends} is shut in by walls and pits: no other cell leads to it")
    return cells if goals.size == 1 else outside


def _demand_path(layout: Layout, start: int, goals: np.ndarray) -> None:
    if start in goals:
        raise ValueError(f"start and goal are the same cell {layout.place(start)}")
    reached = flood(layout, np.array([start]))
    if not np.isin(goals, reached).any():
        ends = ", ".join(str(layout.place(goal)) for goal in goals)
        raise ValueError(
            f"no path leads from the start {layout.place(start)} to the goal {ends}: "
            f"walls and pits shut in the {reached.size} cells around the start"
        )

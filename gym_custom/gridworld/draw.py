"""Pictures of GridWorld: the map, the walker, its way so far, and the values that an agent gives to cells and moves."""

from __future__ import annotations

from typing import Any

import numpy as np

from gym_custom.gridworld.layout import MOVES, Layout
from gym_custom.rendering import Canvas, Palette, fade, mix

_MARGINS = (14, 14, 14, 44)  # left, bottom, right, top, in pixels
_LONGEST, _SMALLEST, _LARGEST = 560, 6, 72  # pixels of the longer side, and of a cell
_NARROWEST = 240  # pixels that the texts above the map need


def draw(land: Layout, canvas: Canvas, params: Any, state: Any, values: np.ndarray | None = None) -> None:
    """Draws one state; x is the column and y is minus the row.

    Args:
        land: The map.
        canvas: What to draw on.
        params: The world's parameters.
        state: The state, or None for the map alone.
        values: Of each move in each cell, (cells, 4), for the overlay of `GridWorldEnv.draw_values`.
    """
    side = int(min(max(_LONGEST / max(land.rows, land.cols), _SMALLEST), _LARGEST))
    width, height = max(side * land.cols + 28, _NARROWEST), side * land.rows + 58
    if canvas.begin((width + width % 2, height + height % 2), (0, -land.rows, land.cols, 0), _MARGINS):
        for cell in range(land.is_wall.size):
            _paint_ground(canvas, land, cell)
        canvas.keep()
    goals = np.flatnonzero(params.is_goal) if state is None or state.goal < 0 else [int(state.goal)]
    if values is not None:
        _paint_values(canvas, land, values, set(goals), side)
    for goal in goals:
        _paint_goal(canvas, _center(land, goal))
    if len(params.starts) == 1 and values is None:
        _paint_start(canvas, _center(land, params.start), side)
    if state is not None:
        _paint_walker(canvas, land, int(state.cell), side)
        steps = f"{canvas.steps} step" + "s" * (canvas.steps != 1)
        canvas.banner(steps, f"return {canvas.episode_return:g}")
    elif values is not None:
        canvas.banner("value of the best move")


def ansi(land: Layout, params: Any, state: Any) -> str:
    """The map as text, one line a row: `A` the walker, else as in a layout (`S` only where the start is fixed)."""
    text = np.where(land.is_wall, "#", np.where(land.is_pit, "O", "."))
    if len(params.starts) == 1:
        text[params.start] = "S"
    text[np.flatnonzero(params.is_goal) if state.goal < 0 else int(state.goal)] = "G"
    text[int(state.cell)] = "A"
    return "\n".join("".join(row) for row in text.reshape(land.rows, land.cols))


def _center(land: Layout, cell: Any) -> tuple[float, float]:
    row, col = land.place(cell)
    return col + 0.5, -row - 0.5


def _tile(canvas: Canvas, center: tuple[float, float], color: Any, gap: float = 0.03, rounding: float = 5) -> None:
    half = 0.5 - gap
    low, high = (center[0] - half, center[1] - half), (center[0] + half, center[1] + half)
    canvas.rectangle(low, high, color, rounding)


def _paint_ground(canvas: Canvas, land: Layout, cell: int) -> None:
    center = _center(land, cell)
    if land.is_wall[cell]:
        _tile(canvas, center, Palette.WALL, gap=-0.005, rounding=0)
        return
    _tile(canvas, center, Palette.PANEL)
    if land.is_pit[cell]:
        for radius, share in ((0.4, 0.3), (0.36, 0.75), (0.28, 1.0)):
            canvas.circle(center, radius, mix(Palette.PANEL, Palette.INK, share))


def _paint_goal(canvas: Canvas, center: tuple[float, float]) -> None:
    """A flag on a green cell."""
    x, y = center
    _tile(canvas, center, fade(Palette.GOAL, 0.22))
    canvas.rectangle((x - 0.2, y - 0.34), (x - 0.14, y + 0.34), Palette.INK, rounding=2)
    canvas.polygon([(x - 0.14, y + 0.33), (x + 0.3, y + 0.15), (x - 0.14, y - 0.03)], Palette.GOAL)
    canvas.rectangle((x - 0.3, y - 0.36), (x - 0.04, y - 0.31), Palette.INK, rounding=2)


def _paint_start(canvas: Canvas, center: tuple[float, float], side: float) -> None:
    canvas.circle(center, 0.36, fade(Palette.MUTED, 0.8), width=max(1.0, side / 28))


def _paint_walker(canvas: Canvas, land: Layout, cell: int, side: float) -> None:
    """A round fellow, whose trail shows the way."""
    x, y = _center(land, cell)
    color = Palette.DANGER if land.is_pit[cell] else Palette.AGENT
    canvas.trail("walker", (x, y), color, width=max(1.5, side / 12))
    canvas.circle((x + 0.02, y - 0.05), 0.3, fade(Palette.INK, 0.15))
    canvas.circle((x, y), 0.29, color)
    canvas.circle((x, y + 0.02), 0.25, mix(color, Palette.PAPER, 0.12))
    for eye in (x - 0.1, x + 0.1):
        canvas.circle((eye, y + 0.05), 0.075, Palette.PAPER)
        canvas.circle((eye, y + 0.04), 0.035, Palette.INK)


def _paint_values(canvas: Canvas, land: Layout, values: np.ndarray, goals: set[int], side: float) -> None:
    """Colors each cell by its best move's value and points along all moves that reach it."""
    best = values.max(axis=1)
    shown = [cell for cell in np.flatnonzero(land.is_free) if cell not in goals]
    low, high = best[shown].min(), best[shown].max()
    decimals = max(0, 3 - len(str(int(max(abs(low), abs(high))))))
    for cell in shown:
        share = (best[cell] - low) / (high - low) if high > low else 0.0
        _tile(canvas, _center(land, cell), mix(Palette.PANEL, Palette.ACCENT, 0.9 * share))
        _paint_moves(canvas, _center(land, cell), values[cell], side)
        if side >= 44:
            x, y = _center(land, cell)
            canvas.text((x, y - 0.36), f"{best[cell]:.{decimals}f}", Palette.INK, size=min(11.0, side / 5))


def _paint_moves(canvas: Canvas, center: tuple[float, float], values: np.ndarray, side: float) -> None:
    """An arrow for each of the best moves; none where no move has a value yet."""
    if not values.any():
        return
    x, y = center[0], center[1] + (0.06 if side >= 44 else 0.0)
    moves = np.flatnonzero(np.isclose(values, values.max(), rtol=1e-9, atol=1e-12))
    back = 0.22 if moves.size == 1 else 0.0  # several arrows start from the middle
    for move in moves:
        down, right = MOVES[move]
        tail, tip = (x - back * right, y + back * down), (x + 0.26 * right, y - 0.26 * down)
        canvas.arrow(tail, tip, Palette.INK, width=max(1.0, side / 30), head=side / 7)

"""The robot's world as a picture and as text."""

from __future__ import annotations

import math
from typing import Any

from gym_custom.rendering import Canvas, Palette, fade


def draw(canvas: Canvas, params: Any, state: Any) -> None:
    """Draws one state."""
    canvas.begin(size=(600, 600), view=(-5.2, -5.2, 5.2, 5.2))
    x, y = state.position
    canvas.circle(state.goal, params.goal_radius, Palette.GOAL)
    for k in range(state.obstacle_radii.shape[0]):
        if state.obstacle_radii[k] > 0:
            canvas.circle(state.obstacles[:, k], state.obstacle_radii[k], Palette.WALL)
    for k in range(state.pedestrian_radii.shape[0]):
        if state.pedestrian_radii[k] > 0:
            canvas.circle(state.pedestrians[:, k], state.pedestrian_radii[k], Palette.ACCENT)
    canvas.trail("robot", state.position, Palette.AGENT)
    canvas.circle(state.position, params.robot_radius, Palette.AGENT)
    nose = (x + 0.3 * math.cos(state.heading), y + 0.3 * math.sin(state.heading))
    canvas.line(state.position, nose, Palette.PAPER)
    canvas.banner(f"{state.steps * params.dt:.1f} s", f"return {canvas.episode_return:.1f}", fade(Palette.INK, 1))

"""The robot's world as a picture and as text."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from gym_custom.my_env.lidar import Scan, scan
from gym_custom.my_env.state import OBSTACLE, OUTCOMES, PEDESTRIAN, RUNNING, SUCCESS, WALL
from gym_custom.rendering import Canvas, Palette, fade, mix

_SIZE = (600, 600)
_ANSI = 21
_AWARE, _UNAWARE = Palette.ACCENT, Palette.SECOND
_LEGEND = (  # text, color, offset in tenths of the picture
    ("robot", Palette.AGENT, 0.0),
    ("pedestrian", _AWARE, 1.7),
    ("does not notice it", _UNAWARE, 4.1),
    ("obstacle", Palette.WALL, 7.2),
    ("goal", Palette.GOAL, 9.1),
)
OBSTACLE_BULGE = 0.5  # m, by which obstacles may stand out of the walls of a corridor
_ENDINGS = {
    SUCCESS: ("Goal reached", Palette.GOAL),
    PEDESTRIAN: ("Hit a pedestrian", Palette.DANGER),
    OBSTACLE: ("Hit an obstacle", Palette.DANGER),
    WALL: ("Hit a wall", Palette.DANGER),
}


def draw(canvas: Canvas, params: Any, state: Any) -> None:
    """Draws one state: room, goal, rays, trail, obstacles, pedestrians and robot, with time, return and outcome."""
    half = [float(width) for width in state.room]
    margin = 0.12
    view = (-half[0] - margin, -half[1] - margin, half[0] + margin, half[1] + margin)
    if canvas.begin(_SIZE, view, margins=(12, 40, 12, 40)):
        _draw_room(canvas, half, margin)
        canvas.keep()
    _draw_goal(canvas, state.goal, params.goal_radius)
    _draw_rays(canvas, params, state)
    for k in np.flatnonzero(state.obstacle_radii > 0.0):
        _draw_obstacle(canvas, state.obstacles[:, k], float(state.obstacle_radii[k]))
    canvas.trail("robot", state.position, Palette.AGENT)
    for k in np.flatnonzero(state.pedestrian_radii > 0.0):
        aware = float(state.notices[k]) > 0.0
        _draw_pedestrian(
            canvas, state.pedestrians[:, k], float(state.pedestrian_radii[k]), state.velocities[:, k], aware
        )
    _draw_robot(canvas, params, state)
    _draw_labels(canvas, params, state)


def ansi(params: Any, state: Any) -> str:
    """The room as 21 lines of 21 letters: R robot, G goal, P pedestrian, p one who does not notice, O obstacle."""
    x, y = (np.linspace(-half, half, _ANSI) for half in state.room)
    letters = np.full((_ANSI, _ANSI), ".")  # the first row is the top
    for k in np.flatnonzero(state.obstacle_radii > 0.0):
        inside = np.hypot(x - state.obstacles[0, k], (y - state.obstacles[1, k])[:, None]) <= state.obstacle_radii[k]
        letters[inside] = "O"
    things = [("G", state.goal)]
    things += [("O", state.obstacles[:, k]) for k in np.flatnonzero(state.obstacle_radii > 0.0)]
    things += [
        ("P" if state.notices[k] > 0.0 else "p", state.pedestrians[:, k])
        for k in np.flatnonzero(state.pedestrian_radii > 0.0)
    ]
    for letter, (px, py) in [*things, ("R", state.position)]:
        letters[np.argmin(np.abs(y - py)), np.argmin(np.abs(x - px))] = letter
    lines = "\n".join("".join(row) for row in letters[::-1])
    facts = f"t={state.steps * params.dt:.1f}s goal={state.goal_distance:.2f}m {OUTCOMES[int(state.outcome)]}"
    return f"{lines}\n{facts}"


def _draw_room(canvas: Canvas, half: list[float], margin: float) -> None:
    canvas.rectangle((-half[0] - margin, -half[1] - margin), (half[0] + margin, half[1] + margin), Palette.WALL, 6)
    canvas.rectangle((-half[0], -half[1]), (half[0], half[1]), Palette.PANEL)
    for line in range(-math.ceil(half[0]) + 1, math.ceil(half[0])):
        canvas.line((line, -half[1]), (line, half[1]), Palette.GRID, 1)
    for line in range(-math.ceil(half[1]) + 1, math.ceil(half[1])):
        canvas.line((-half[0], line), (half[0], line), Palette.GRID, 1)


def _draw_goal(canvas: Canvas, place: Any, radius: float) -> None:
    canvas.circle(place, radius, fade(Palette.GOAL, 0.22))
    canvas.circle(place, radius, Palette.GOAL, 3)
    x, y = float(place[0]), float(place[1])
    canvas.line((x, y - 0.16), (x, y + 0.26), Palette.GOAL, 2.5)
    canvas.polygon([(x, y + 0.28), (x + 0.24, y + 0.17), (x, y + 0.06)], Palette.GOAL)


def _draw_rays(canvas: Canvas, params: Any, state: Any) -> None:
    seen: Scan = scan(np, params, state)
    ends = params.ray_ends
    cos = np.concatenate([end * params.ray_cos for end in ends])
    sin = np.concatenate([end * params.ray_sin for end in ends])
    turn = math.cos(state.heading), math.sin(state.heading)
    directions = np.stack([cos * turn[0] - sin * turn[1], sin * turn[0] + cos * turn[1]])
    hits = state.position[:, None] + seen.ranges * directions
    around = list(hits.T)
    canvas.polygon(around if len(ends) == 2 else [state.position, *around], fade(Palette.AGENT, 0.06))
    for k, end in enumerate(around):
        canvas.line(state.position, end, fade(Palette.AGENT, 0.16), 1)
        if seen.pedestrian[k]:
            canvas.circle(end, 0.06, Palette.DANGER)
        elif seen.ranges[k] < params.max_range:
            canvas.circle(end, 0.035, fade(Palette.AGENT, 0.55))


def _draw_obstacle(canvas: Canvas, place: Any, radius: float) -> None:
    canvas.circle(place, radius, Palette.WALL)
    canvas.circle(place, 0.78 * radius, mix(Palette.WALL, Palette.PAPER, 0.18))


def _draw_pedestrian(canvas: Canvas, place: Any, radius: float, velocity: Any, aware: bool) -> None:
    """Shoulders, head and an arrow as long as one second of walking."""
    color = _AWARE if aware else _UNAWARE
    speed = math.hypot(*velocity)
    if speed > 0.05:
        tip = place + velocity * (1.0 + radius / max(speed, 0.3))
        canvas.arrow(place, tip, mix(color, Palette.INK, 0.25), 2.5, 9)
    canvas.circle(place, radius, color)
    canvas.circle(place, radius, mix(color, Palette.INK, 0.35), 2)
    canvas.circle(place, 0.45 * radius, mix(color, Palette.INK, 0.45))


def _draw_robot(canvas: Canvas, params: Any, state: Any) -> None:
    """A disc with a pointed nose, so that nobody takes it for a pedestrian."""
    radius, place = params.robot_radius, state.position
    canvas.circle(place, radius, Palette.AGENT)
    canvas.circle(place, radius, mix(Palette.AGENT, Palette.INK, 0.5), 2)
    turn = np.array([math.cos(state.heading), math.sin(state.heading)])
    side = np.array([-turn[1], turn[0]])
    nose = [place + 0.86 * radius * turn, place + radius * (-0.42 * turn + 0.56 * side), place - 0.18 * radius * turn]
    canvas.polygon([*nose, place + radius * (-0.42 * turn - 0.56 * side)], Palette.PAPER)


def _draw_labels(canvas: Canvas, params: Any, state: Any) -> None:
    """Time, return and outcome above the room, who is who below it."""
    canvas.banner(f"{state.steps * params.dt:.1f} s", f"return {canvas.episode_return:+.1f}")
    wide, high = (float(width) for width in state.room)
    unit = max(wide, high) / 5.0
    below = -high - 0.47 * unit - (OBSTACLE_BULGE if high < wide else 0.0)
    for text, color, offset in _LEGEND:
        place = (-wide + (offset + 0.15) * unit, below)
        canvas.circle(place, 0.12 * unit, color)
        canvas.text((place[0] + 0.22 * unit, place[1]), text, Palette.INK, 12, "midleft")
    if int(state.outcome) != RUNNING:
        text, color = _ENDINGS[int(state.outcome)]
        top, half = max(wide, high) + 0.47 * unit, 1.75 * unit
        canvas.rectangle((-half, top - 0.3 * unit), (half, top + 0.3 * unit), color, 8)
        canvas.text((0.0, top), text, Palette.PAPER, 18)

"""The picture of cart and pole: the track with its limits, and the cone in which the pole counts as standing."""

from __future__ import annotations

import math
from typing import Any

from gym_custom.rendering import Canvas, Palette, fade, mix

_SIZE = (600, 400)
_BELOW, _ABOVE = 1 / 3, 1.0  # what the picture shows below and above the track, in half widths


def draw(canvas: Canvas, params: Any, state: Any) -> None:
    """Draws one state; positions in m, scaled so that the whole track and the pole fit."""
    half = max(1.25 * params.x_threshold, 2.6 * params.length)
    unit = half / 3.0  # sizes below are those of the usual track, whose picture is 6 m wide
    if canvas.begin(_SIZE, (-half, -_BELOW * half, half, _ABOVE * half)):
        _paint_track(canvas, params, half, unit)
        canvas.keep()
    x, theta = float(state.x), float(state.theta)
    hinge = (x, 0.36 * unit)
    lost = abs(x) > params.x_threshold or abs(theta) > params.theta_threshold
    length = max(2 * params.length, unit)  # not to scale where a long track would leave a dot of the pole
    _paint_cone(canvas, params.theta_threshold, hinge, 1.12 * length)
    canvas.trail("cart", (x, -0.13 * unit), Palette.AGENT, width=4)
    _paint_cart(canvas, x, unit)
    _paint_pole(canvas, hinge, theta, length, Palette.DANGER if lost else Palette.ACCENT, unit)
    canvas.banner(f"{canvas.steps * params.tau:.2f} s", f"return {canvas.episode_return:g}")


def _paint_track(canvas: Canvas, params: Any, half: float, unit: float) -> None:
    """All that never moves: ground, scale and limits."""
    canvas.rectangle((-half, -_BELOW * half), (half, 0.0), Palette.PANEL)
    canvas.line((-half, 0.0), (half, 0.0), Palette.WALL, width=4)
    for sign in (-1, 1):
        limit = sign * params.x_threshold
        canvas.rectangle((limit, -_BELOW * half), (sign * half, _ABOVE * half), fade(Palette.DANGER, 0.06))
        canvas.line((limit, 0.0), (limit, 0.8 * half), Palette.DANGER, width=2, dash=7)
        canvas.text((limit, -0.28 * unit), f"{limit:+g}", Palette.DANGER, size=13)
    spacing = 10.0 ** math.floor(math.log10(half))
    spacing /= 5 if half < 2.5 * spacing else 1
    for mark in range(-math.floor(half / spacing), math.floor(half / spacing) + 1):
        place = mark * spacing
        if abs(place) < params.x_threshold:
            canvas.line((place, 0.0), (place, -0.09 * unit), Palette.WALL, width=2)
            canvas.text((place, -0.28 * unit), f"{place:g}", Palette.MUTED, size=13)
    canvas.text((0.0, -0.6 * unit), "cart position in m", Palette.MUTED, size=13)


def _paint_cone(canvas: Canvas, limit: float, hinge: tuple[float, float], reach: float) -> None:
    """The angles at which the pole counts as standing."""
    limit = min(limit, math.pi)
    angles = [limit * (step / 12 - 1) for step in range(25)]
    rim = [(hinge[0] + reach * math.sin(angle), hinge[1] + reach * math.cos(angle)) for angle in angles]
    canvas.polygon([hinge, *rim], fade(Palette.GOAL, 0.13))


def _paint_cart(canvas: Canvas, x: float, unit: float) -> None:
    for wheel in (x - 0.17 * unit, x + 0.17 * unit):
        canvas.circle((wheel, 0.085 * unit), 0.085 * unit, Palette.INK)
        canvas.circle((wheel, 0.085 * unit), 0.03 * unit, Palette.PAPER)
    low, high = (x - 0.32 * unit, 0.11 * unit), (x + 0.32 * unit, 0.4 * unit)
    canvas.rectangle(low, high, Palette.AGENT, rounding=7)
    canvas.rectangle((low[0], 0.3 * unit), high, mix(Palette.AGENT, Palette.PAPER, 0.18), rounding=7)


def _paint_pole(
    canvas: Canvas, hinge: tuple[float, float], theta: float, length: float, color: Any, unit: float
) -> None:
    tip = (hinge[0] + length * math.sin(theta), hinge[1] + length * math.cos(theta))
    canvas.polyline([hinge, tip], color, width=11)
    canvas.circle(hinge, 0.075 * unit, Palette.INK)
    canvas.circle(hinge, 0.035 * unit, Palette.PAPER)

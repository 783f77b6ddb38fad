"""Outlines of round shapes, lines and paths as polygons, in pixels: the geometry behind the canvas."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence

Outline = list[tuple[float, float]]


def arc(x: float, y: float, radius: float, start: float, end: float) -> Outline:
    """Points along an arc, close enough together to look round."""
    count = max(4, min(90, math.ceil(abs(end - start) * math.sqrt(radius + 1) * 1.6)))
    angles = [start + (end - start) * i / count for i in range(count + 1)]
    return [(x + radius * math.cos(angle), y - radius * math.sin(angle)) for angle in angles]


def pieces(points: Sequence[tuple[float, float]]) -> list[tuple[float, Outline]]:
    """A path in pieces without sharp turns, each with its share of the way from the oldest (0) to the newest (1).

    A piece is filled at once: translucent pieces that overlap would show their joints.
    """
    found: list[tuple[float, Outline]] = []
    before = (0.0, 0.0)
    for age, ((x0, y0), (x1, y1)) in enumerate(itertools.pairwise(points), start=1):
        length = math.hypot(x1 - x0, y1 - y0)
        if not length > 1e-6:
            continue
        share, heading = math.ceil(16 * age / len(points)) / 16, ((x1 - x0) / length, (y1 - y0) / length)
        straight = heading[0] * before[0] + heading[1] * before[1] > 0.5
        if not (found and straight and found[-1][0] == share):
            found.append((share, [(x0, y0)]))
        found[-1][1].append((x1, y1))
        before = heading
    return found


def ribbon(points: Sequence[tuple[float, float]], half: float) -> Outline:
    """The outline of a line of some width through points."""
    left, right = [], []
    for i, (x, y) in enumerate(points):
        (x0, y0), (x1, y1) = points[max(i - 1, 0)], points[min(i + 1, len(points) - 1)]
        length = math.hypot(x1 - x0, y1 - y0) or 1.0
        nx, ny = -(y1 - y0) / length * half, (x1 - x0) / length * half
        left.append((x + nx, y + ny))
        right.append((x - nx, y - ny))
    return left + right[::-1]


def rounded(left: float, top: float, right: float, bottom: float, radius: float) -> Outline:
    """The outline of a rectangle with rounded corners, in device pixels."""
    if radius <= 0:
        return [(left, top), (right, top), (right, bottom), (left, bottom)]
    quarter = math.pi / 2
    corners = [(right, top, 1, 1), (left, top, -1, 1), (left, bottom, -1, -1), (right, bottom, 1, -1)]
    outline: Outline = []
    for turn, (x, y, sx, sy) in enumerate(corners):
        outline += arc(x - sx * radius, y + sy * radius, radius, turn * quarter, (turn + 1) * quarter)
    return outline

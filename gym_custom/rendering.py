"""The canvas that every world draws on: anti-aliased shapes in world units, as an array or in a window.

A world's ``draw(canvas, params, state)`` describes one picture and knows nothing of windows, pixels or time::

    def draw(canvas, params, state):
        if canvas.begin(size=(600, 400), view=(-3.0, -1.0, 3.0, 3.0)):      # True the first time:
            canvas.line((-3.0, 0.0), (3.0, 0.0), Palette.INK)               # paint what never moves,
            canvas.keep()                                                   # and keep it as the background
        canvas.trail("ball", (state.x, state.y), Palette.AGENT)
        canvas.circle((state.x, state.y), 0.2, Palette.AGENT)
        canvas.banner(f"{canvas.steps * params.tau:.2f} s", f"return {canvas.episode_return:g}")

A driver owns one canvas an env (a vector env one for all rows) and asks it for pictures::

    canvas = Canvas(title="MyEnv-v0", fps=30)
    frame = canvas.frame(world.draw, params, state, steps=3, episode_return=2.5, row=0)   # (H, W, 3), uint8
    canvas.show(world.draw, params, state, steps=3, episode_return=2.5)                   # window, paced to fps
    canvas.forget()              # at each reset: the trails begin anew (canvas.forget([2, 5]): those of rows 2 and 5)
    canvas.close()               # as often as you like; a later frame or show opens everything again

Conventions: points are ``(x, y)`` in world units with y up; radii and lengths are in world units; line widths, text
sizes and corner roundings are in pixels of the finished picture. A color is one of `Palette`, or `fade(color, alpha)`.
Shapes cover each other in the order drawn. `frame` opens no window and starts no display, sound or clock.

pygame-ce is loaded when the first picture is made, so training never needs it.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np

from gym_custom.outlines import arc, pieces, ribbon, rounded
from gym_custom.window import Window, load_pygame

Point = Sequence[float]
Color = tuple[int, ...]
Draw = Callable[..., None]

_FINENESS = 2  # device pixels per picture pixel and axis, whose mean is taken; SDL's is exact for powers of two
_TRAIL_POINTS = 250  # the older part is forgotten, so that drawing takes no longer and longer
_FAR = 16_000  # device pixels; SDL's coordinates are 16 bits wide


class Palette:
    """The colors of all worlds (red, green, blue)."""

    PAPER = (250, 249, 246)  # the background of every picture
    PANEL = (240, 239, 234)  # ground, cells
    GRID = (221, 222, 222)  # thin lines
    MUTED = (138, 146, 158)  # labels, marks
    INK = (43, 52, 66)  # text, strong lines
    WALL = (78, 90, 110)  # what stands in the way
    AGENT = (38, 108, 216)  # what the agent moves
    GOAL = (34, 154, 98)  # where it should be
    DANGER = (212, 62, 66)  # where it should not
    ACCENT = (238, 156, 46)  # what else moves; values
    SECOND = (126, 87, 194)  # one more thing to tell apart


def fade(color: Color, alpha: float) -> Color:
    """The color with an opacity from 0 (invisible) to 1."""
    return (*color[:3], round(255 * min(max(alpha, 0.0), 1.0)))


def mix(first: Color, second: Color, share: float) -> Color:
    """A color between two others: share 0 is the first, 1 the second."""
    return tuple(round(a + (b - a) * min(max(share, 0.0), 1.0)) for a, b in zip(first[:3], second[:3], strict=True))


class Canvas:
    """Draws pictures of worlds; see the module's docstring.

    Attributes:
        steps: Steps since the episode began, as told by the driver.
        episode_return: Sum of the rewards since the episode began, as told by the driver.
        row: Row of the vector env that is being drawn, 0 in a single env.
    """

    def __init__(self, title: str = "gym_custom", fps: float = 30):
        self.steps, self.episode_return, self.row = 0, 0.0, 0
        self._trails: dict[tuple[int, Any], list[tuple[int, Point]]] = {}
        self._fonts: dict[float, Any] = {}
        self._view: tuple | None = None
        self._device: Any = None
        self._picture: Any = None
        self._background: Any = None
        self._window = Window(title, fps)

    # What drivers call

    def frame(self, draw: Draw, params: Any, state: Any, steps: int, episode_return: float, row: int = 0) -> np.ndarray:
        """One picture of one state.

        Args:
            draw: The world's ``draw(canvas, params, state)``.
            params: The world's parameters.
            state: A state without batch axis.
            steps: Steps since the episode began.
            episode_return: Sum of the rewards since then.
            row: Row of the vector env; each has trails of its own.

        Returns:
            An array of its own memory of shape (H, W, 3), uint8.
        """
        picture = self._paint(draw, params, state, steps, episode_return, row)
        width, height = picture.get_size()
        pixels = np.frombuffer(load_pygame().image.tobytes(picture, "RGB"), np.uint8)
        return pixels.reshape(height, width, 3).copy()

    def show(self, draw: Draw, params: Any, state: Any, steps: int, episode_return: float) -> None:
        """Shows one state in this canvas's window and waits until the frame's time is over.

        Arguments as for `frame`. A window that its user closed stays closed, without a wait, until `close`.
        """
        if not self._window.dismissed:
            self._window.show(self._paint(draw, params, state, steps, episode_return, 0))

    def forget(self, rows: Iterable[int] | None = None) -> None:
        """Clears the trails of these rows, or of all: their episodes begin anew."""
        gone = None if rows is None else {int(row) for row in rows}
        self._trails = {} if gone is None else {key: trail for key, trail in self._trails.items() if key[0] not in gone}

    def close(self) -> None:
        """Closes the window and gives the memory back; the next picture opens everything again."""
        self._window.close()
        self._view = self._device = self._background = self._picture = None
        self._fonts.clear()
        self._trails.clear()

    # What worlds call

    def begin(self, size: tuple[int, int], view: Sequence[float], margins: Sequence[float] = (0, 0, 0, 0)) -> bool:
        """Starts a picture.

        Args:
            size: Width and height in pixels.
            view: The part of the world to show, ``(left, bottom, right, top)`` in world units; it keeps its shape and
                is centered in the picture.
            margins: Pixels to leave free around it, ``(left, bottom, right, top)``.

        Returns:
            True where no background is kept for this size and view yet: paint it, then call `keep`.
        """
        key = (tuple(size), tuple(view), tuple(margins))
        fresh = key != self._view
        if fresh:
            self._lay_out(*key)
        if fresh or self._background is None:
            self._device.fill(Palette.PAPER)
            return True
        self._device.blit(self._background, (0, 0))
        return False

    def keep(self) -> None:
        """Keeps what is drawn so far as the background of this and all later pictures."""
        self._background = self._device.copy()

    def polygon(self, points: Iterable[Point], color: Color) -> None:
        """A filled polygon."""
        self._fill([self._to_device(point) for point in points], color)

    def rectangle(self, low: Point, high: Point, color: Color, rounding: float = 0.0) -> None:
        """A filled rectangle between two corners, its own corners rounded by some pixels."""
        (left, bottom), (right, top) = self._to_device(low), self._to_device(high)
        left, right, top, bottom = min(left, right), max(left, right), min(top, bottom), max(top, bottom)
        radius = min(rounding * _FINENESS, (right - left) / 2, (bottom - top) / 2)
        self._fill(rounded(left, top, right, bottom, radius), color)

    def circle(self, center: Point, radius: float, color: Color, width: float = 0.0) -> None:
        """A disc, or a ring where a line width in pixels is given."""
        (x, y), outer = self._to_device(center), radius * self._scale
        edge = arc(x, y, outer, 0.0, 2 * math.pi)
        if width:  # a ring is one polygon with a seam, so that it may be translucent
            inner = max(outer - width * _FINENESS, 0.0)
            edge = edge + arc(x, y, inner, 2 * math.pi, 0.0)
        self._fill(edge, color)

    def line(self, start: Point, end: Point, color: Color, width: float = 2.0, dash: float = 0.0) -> None:
        """A straight line with a width in pixels, in dashes of some pixels where asked for."""
        (x0, y0), (x1, y1) = self._to_device(start), self._to_device(end)
        length = math.hypot(x1 - x0, y1 - y0)
        count = min(max(1, round(length / (dash * _FINENESS))), 999) if dash else 1
        for i in range(0, count, 2):
            a, b = i / count, (i + 1) / count
            begin, stop = (x0 + (x1 - x0) * a, y0 + (y1 - y0) * a), (x0 + (x1 - x0) * b, y0 + (y1 - y0) * b)
            self._stroke(begin, stop, color, width)

    def polyline(self, points: Iterable[Point], color: Color, width: float = 2.0) -> None:
        """An open chain of lines with round joints; for an opaque color."""
        device = [self._to_device(point) for point in points]
        for first, second in itertools.pairwise(device):
            self._stroke(first, second, color, width)
        for x, y in device:
            self._fill(arc(x, y, width * _FINENESS / 2, 0.0, 2 * math.pi), color)

    def arrow(self, start: Point, end: Point, color: Color, width: float = 2.0, head: float = 8.0) -> None:
        """An arrow with a width and a length of its head in pixels; a very short one is only its head."""
        (x0, y0), (x1, y1) = self._to_device(start), self._to_device(end)
        length = math.hypot(x1 - x0, y1 - y0)
        if not length > 1e-9:
            return
        ux, uy = (x1 - x0) / length, (y1 - y0) / length
        head = min(head * _FINENESS, length)
        neck, half = (x1 - ux * head, y1 - uy * head), 0.55 * head
        self._stroke((x0, y0), (neck[0] + ux, neck[1] + uy), color, width)
        edge = [(x1, y1), (neck[0] - uy * half, neck[1] + ux * half), (neck[0] + uy * half, neck[1] - ux * half)]
        self._fill(edge, color)

    def text(
        self, point: Point, text: str, color: Color = Palette.INK, size: float = 15, anchor: str = "center"
    ) -> None:
        """Text whose anchor ("center", "midleft", "topright", ...) lies at the point; size in pixels."""
        self._write(self._to_device(point), text, color, size, anchor)

    def trail(self, key: Any, point: Point, color: Color, width: float = 3.0) -> None:
        """The path of a thing as drawn so far in this episode, this point the newest; older parts are fainter."""
        path = self._trails.setdefault((self.row, key), [])
        while path and path[-1][0] >= self.steps:
            path.pop()
        path.append((self.steps, tuple(point)))
        del path[:-_TRAIL_POINTS]
        for share, piece in pieces([self._to_device(place) for _, place in path]):
            self._fill(ribbon(piece, width * _FINENESS / 2), fade(color, 0.1 + 0.5 * share))

    def banner(self, left: str, right: str = "", color: Color = Palette.INK) -> None:
        """Two texts in the upper corners of the picture, such as time and return."""
        inset, width = 14 * _FINENESS, self._device.get_width()
        self._write((inset, inset), left, color, 17, "topleft")
        self._write((width - inset, inset), right, color, 17, "topright")

    def stamp(self, text: str, color: Color) -> None:
        """A large label across the middle of the picture, such as how the episode ended."""
        width, height = self._device.get_size()
        font = self._font(26)
        half_width, half_height = font.size(text)[0] / 2 + 20 * _FINENESS, 25 * _FINENESS
        x, y = width / 2, height / 2
        edge = rounded(x - half_width, y - half_height, x + half_width, y + half_height, 10 * _FINENESS)
        self._fill(edge, fade(color, 0.9))
        self._write((x, y), text, Palette.PAPER, 26, "center")

    # How it is done

    def _paint(self, draw: Draw, params: Any, state: Any, steps: int, episode_return: float, row: int) -> Any:
        self.steps, self.episode_return, self.row = int(steps), float(episode_return), int(row)
        draw(self, params, state)
        load_pygame().transform.smoothscale(self._device, self._picture.get_size(), self._picture)
        return self._picture

    def _lay_out(self, size: tuple[int, ...], view: tuple[float, ...], margins: tuple[float, ...]) -> None:
        """Makes the surfaces and the map from world units to device pixels."""
        pygame = load_pygame()
        (width, height), (left, bottom, right, top) = size, view
        room = (width - margins[0] - margins[2], height - margins[1] - margins[3])
        scale = min(room[0] / (right - left), room[1] / (top - bottom))
        self._scale = scale * _FINENESS
        self._origin = (
            (margins[0] + room[0] / 2 - scale * (left + right) / 2) * _FINENESS,
            (margins[3] + room[1] / 2 + scale * (bottom + top) / 2) * _FINENESS,
        )
        if self._view is None or self._view[0] != size:
            self._device = pygame.Surface((width * _FINENESS, height * _FINENESS), 0, 32)
            self._picture = pygame.Surface(size, 0, 32)
        self._background, self._view = None, (size, view, margins)

    def _to_device(self, point: Point) -> tuple[float, float]:
        return self._origin[0] + self._scale * float(point[0]), self._origin[1] - self._scale * float(point[1])

    def _fill(self, points: Sequence[tuple[float, float]], color: Color) -> None:
        """The one way to color pixels: SDL blends and clips; NaN and far points must not reach it."""
        whole = [(_device_integer(x), _device_integer(y)) for x, y in points]
        drawing = load_pygame().gfxdraw
        drawing.filled_polygon(self._device, whole, color)
        if len(color) == 3:  # smooth edges; over a translucent shape they would show as a line
            drawing.aapolygon(self._device, whole, color)

    def _stroke(self, start: tuple[float, float], end: tuple[float, float], color: Color, width: float) -> None:
        self._fill(ribbon([start, end], width * _FINENESS / 2), color)

    def _font(self, size: float) -> Any:
        if size not in self._fonts:
            pygame = load_pygame()
            pygame.font.init()
            self._fonts[size] = pygame.font.Font(None, round(size * 1.35 * _FINENESS))
        return self._fonts[size]

    def _write(self, place: tuple[float, float], text: str, color: Color, size: float, anchor: str) -> None:
        label = self._font(size).render(text, True, color[:3])
        if len(color) == 4:
            label.set_alpha(color[3])
        self._device.blit(label, label.get_rect(**{anchor: (_device_integer(place[0]), _device_integer(place[1]))}))


def _device_integer(value: float) -> int:
    return int(min(max(value, -_FAR), _FAR)) if value == value else _FAR

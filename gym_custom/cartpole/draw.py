"""The picture of the cart-pole."""

from __future__ import annotations

import math
from typing import Any

from gym_custom.rendering import Palette


def draw(canvas: Any, params: Any, state: Any) -> None:
    """Draws cart and pole on their track."""
    reach = params.x_threshold
    if canvas.begin(size=(600, 400), view=(-reach, -reach / 3, reach, reach)):
        canvas.line((-reach, 0.0), (reach, 0.0), Palette.INK)
        canvas.keep()
    x, theta, length = float(state.x), float(state.theta), 2 * params.length
    canvas.line((x, 0.0), (x + length * math.sin(theta), length * math.cos(theta)), Palette.ACCENT)
    canvas.circle((x, 0.0), 0.1, Palette.AGENT)

"""What a policy thinks of its actions, in the picture: on the map where a world draws that, else as bars below it.

A policy tells it by ``q_values``, a table (*sizes, actions), or by ``action_values(observation)``, which gives
(actions,) for one observation and (N, actions) for a batch of N.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from typing import Any

import gymnasium as gym
import numpy as np

from gym_custom.rendering import Canvas, Palette, mix

_HEIGHT = 64  # pixels of the bars' panel
_BAR = 30  # pixels of the longest bar
_MOST = 16  # actions that find room


def picture_with_values(env: Any, policy: Any) -> Callable[[Any], Any]:
    """A function from the present observation to the present picture of a single env."""
    table = getattr(policy, "q_values", None)
    maps = hasattr(env.unwrapped, "draw_values")
    if maps and table is None and hasattr(policy, "action_values"):
        table = values_of_all_places(env.observation_space, policy)
    if maps and table is not None:
        return lambda observation: env.unwrapped.draw_values(table)
    if not _has_values(policy, env.action_space):
        return lambda observation: env.render()
    bars = Bars()
    return lambda observation: bars.below(env.render(), policy.action_values(observation))


def rows_with_values(rows: Any, policy: Any) -> Callable[[Any], Sequence[np.ndarray]]:
    """A function from the present observations to the present pictures of a vector env's rows."""
    if not _has_values(policy, rows.single_action_space):
        return lambda observations: rows.render()
    bars = Bars()
    return lambda observations: [
        bars.below(frame, values)
        for frame, values in zip(rows.render(), policy.action_values(observations), strict=True)
    ]


def values_of_all_places(space: gym.Space, policy: Any) -> np.ndarray | None:
    """The values (*sizes, actions) for every observation of a Discrete or MultiDiscrete space, else None."""
    if isinstance(space, gym.spaces.Discrete):
        return policy.action_values(np.arange(space.n) + space.start)
    if isinstance(space, gym.spaces.MultiDiscrete):
        places = np.array(list(itertools.product(*map(range, space.nvec))))
        return policy.action_values(places).reshape(*space.nvec, -1)
    return None


def _has_values(policy: Any, space: gym.Space) -> bool:
    return hasattr(policy, "action_values") and isinstance(space, gym.spaces.Discrete) and space.n <= _MOST


class Bars:
    """A panel with a bar for each action: the best is full and colored, the others lack what they are worth less.

    The scale is the largest difference shown so far: values of neighboring actions differ by little, and in that little
    lies the decision.
    """

    def __init__(self) -> None:
        self._canvas = Canvas()
        self._spread = 1e-9

    def below(self, frame: np.ndarray, values: np.ndarray) -> np.ndarray:
        """The frame with the panel of its action values (actions,) under it."""
        self._spread = max(self._spread, float(values.max() - values.min()))
        panel = self._canvas.frame(_draw, (frame.shape[1], self._spread), np.asarray(values, float), 0, 0.0)
        return np.concatenate([frame, panel])


def _draw(canvas: Canvas, params: tuple[int, float], values: np.ndarray) -> None:
    width, spread = params
    if canvas.begin((width, _HEIGHT), (0.0, 0.0, width, _HEIGHT)):
        canvas.rectangle((0, 0), (width, _HEIGHT), Palette.PANEL)
        canvas.keep()
    column, best = width / len(values), int(values.argmax())
    for action, lack in enumerate(values[best] - values):
        middle, height = (action + 0.5) * column, _BAR - (_BAR - 3) * lack / spread
        half, chosen = min(0.38 * column, 40), action == best
        color = Palette.AGENT if chosen else mix(Palette.MUTED, Palette.PANEL, 0.45)
        canvas.rectangle((middle - half, 22), (middle + half, 22 + height), color, rounding=3)
        label = f"Q {values[best]:.1f}" if chosen else f"-{lack:.2g}"
        canvas.text((middle, 10), label, Palette.INK if chosen else Palette.MUTED, size=min(13, column / 3.4))

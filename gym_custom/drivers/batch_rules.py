"""The rules of a world over many rows: recorded and replayed where that is possible, else called."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, Protocol

import numpy as np

from gym_custom.drivers.recorded_rules import RecordedRules, TiledRules, buffers, recorded_rules, tiles
from gym_custom.drivers.state_layout import Blocks, StateLayout
from gym_custom.drivers.trial import over_rows
from gym_custom.world import World

_NUMBERS_AT_ONCE = 65_536  # of the widest leaf in a tile of called rules


Look = tuple[slice, Any, dict[str, Any]]
"""Some rows, the parts of their observations (a list, or a matrix with a part a row), and their info."""


class BatchRules(Protocol):
    """The states of n rows and the rules that move them on.

    Attributes:
        blocks: The present states.
        action: What the next `advance` does, of shape (n,) or (*box.shape, n), to be filled in by the caller.
        u: The next step's uniforms, of shape (step_draws, n), to be filled in by the caller.
        reward: What the last `advance` earned, of shape (n,).
        terminated: Whether it ended the episode, of shape (n,).
    """

    blocks: Blocks
    action: np.ndarray
    u: np.ndarray
    reward: np.ndarray
    terminated: np.ndarray

    def advance(self) -> None:
        """One step of all rows."""

    def look(self) -> Iterable[Look]:
        """What there is to see, tile by tile."""


def batch_rules(world: World, params: Any, layout: StateLayout, num_envs: int) -> BatchRules:
    """The fastest form of the rules for this world; may tell the layout which leaves no step changes."""
    recorded = recorded_rules(world, layout)
    if recorded is None:
        return CalledRules(world, params, layout, num_envs)
    layout.hold(recorded.held)
    return (RecordedRules if recorded.flat else TiledRules)(world, layout, num_envs, recorded)


class CalledRules:
    """Calls the rules as they are, on tiles of rows."""

    def __init__(self, world: World, params: Any, layout: StateLayout, num_envs: int):
        self._world, self._params, self._layout = world, params, layout
        self.blocks, self._others = layout.allocate(num_envs), layout.allocate(num_envs)
        self.action, self.u, self.reward, self.terminated = buffers(world, num_envs)
        wide = max(layout.widest, *(np.prod(space.shape, dtype=int) for space in _leaves(world.observation_space)))
        self._tiles = list(tiles(num_envs, max(64, _NUMBERS_AT_ONCE // int(wide))))

    def advance(self) -> None:
        """One step of all rows."""
        world, params, layout = self._world, self._params, self._layout
        for rows in self._tiles:
            state, action = layout.state(self.blocks, rows), self.action[..., rows]
            u = self.u[:, rows] if world.step_draws else None
            with over_rows():
                layout.write(world.transition(np, params, state, action, u), self._others, rows)
                next_state = layout.state(self._others, rows)
                self.reward[rows], self.terminated[rows] = world.outcome(np, params, state, action, next_state)
        self.blocks, self._others = self._others, self.blocks

    def look(self) -> Iterable[Look]:
        """What there is to see, tile by tile."""
        for rows in self._tiles:
            with over_rows():
                seen = self._layout.look(self._world, np, self._params, self._layout.state(self.blocks, rows))
            yield rows, *seen


def _leaves(space: Any) -> Iterator[Any]:
    inner = getattr(space, "spaces", None)
    if inner is None:
        yield space
    else:
        for leaf in inner.values() if hasattr(inner, "values") else inner:
            yield from _leaves(leaf)

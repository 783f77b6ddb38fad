"""What the rows of a batch draw: initial states, and the numbers of steps."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from gym_custom.drivers.row_streams import row_streams
from gym_custom.drivers.state_layout import Blocks, StateLayout
from gym_custom.drivers.trial import over_rows
from gym_custom.world import World


class RowDraws:
    """The randomness of a world over rows, each with a generator of its own.

    Where steps draw nothing, initial states may be made ahead; else the numbers of steps and resets of a row come
    from one sequence, one after the other.

    Args:
        world: The world.
        params: Its plain parameters.
        layout: How states are laid out.
        num_envs: Number of rows.
    """

    def __init__(self, world: World, params: Any, layout: StateLayout, num_envs: int):
        self._world, self._params, self._layout = world, params, layout
        self._all_rows = np.arange(num_envs)
        if world.step_draws:
            at_once = max(world.step_draws, world.reset_draws)
            self._streams = row_streams(num_envs, 1, lambda u: [u], at_once)
        else:
            self._streams = row_streams(num_envs, world.reset_draws, self._beginnings)

    def seed(self, rows: np.ndarray, seeds: Sequence[int]) -> None:
        """Seeds the generators of these rows."""
        self._streams.seed(rows, seeds)

    def beginnings(self, rows: np.ndarray, options: dict[str, Any]) -> Blocks:
        """Initial states of these rows."""
        world = self._world
        if options and world.reset_with is not None:
            state = world.reset_with(np, self._params, self._reset_uniforms(rows), options)
            return self._layout.blocks_of(state, len(rows))
        if world.step_draws:
            return self._beginnings(self._reset_uniforms(rows))
        return self._streams.take(rows)

    def step(self, u: np.ndarray, without: np.ndarray) -> None:
        """Draws the numbers of a step into ``u``, of shape (step_draws, n), but not those of some rows."""
        rows = np.delete(self._all_rows, without) if without.size else self._all_rows
        numbers = self._streams.take_many(rows, self._world.step_draws)[0][0]
        u[:, rows if without.size else slice(None)] = numbers

    def generator(self, row: int) -> np.random.Generator:
        """A generator that will draw what this row draws next."""
        return self._streams.generator(row)

    def get_state(self) -> dict[str, Any]:
        """All that moves, as arrays."""
        return self._streams.get_state()

    def set_state(self, state: dict[str, Any]) -> None:
        """Goes back to what `get_state` gave."""
        self._streams.set_state(state)

    def _beginnings(self, u: np.ndarray) -> Blocks:
        """Initial states from uniforms of shape (reset_draws, m)."""
        with over_rows():
            return self._layout.blocks_of(self._world.initial_state(np, self._params, u), u.shape[1])

    def _reset_uniforms(self, rows: np.ndarray) -> np.ndarray:
        """The next numbers of a reset, of shape (reset_draws, m)."""
        if self._world.step_draws:
            return self._streams.take_many(rows, self._world.reset_draws)[0][0]
        return self._streams.take_uniforms(rows)

"""GridWorld as a table: probabilities and rewards for planning, made by the world's own rules."""

from __future__ import annotations

import numpy as np

from gym_custom.gridworld import dynamics
from gym_custom.world import World


def transition_model(world: World, goal: int) -> tuple[np.ndarray, np.ndarray]:
    """The world's probabilities and mean rewards, made by its own rules.

    Args:
        world: A GridWorld.
        goal: Cell of the goal, -1 for all of the map's own.

    Returns:
        P of shape (cells, 4, cells), the probability of each next cell, and R of shape (cells, 4), the mean reward.
        Walls, pits and goals lead to themselves and earn nothing.
    """
    params = world.params
    cells = params.is_pit.size
    cell, action = np.divmod(np.arange(cells * 4), 4)
    state = dynamics.State(cell, np.full(cells * 4, goal))
    p, r = np.zeros((cells, 4, cells)), np.zeros((cells, 4))
    slip = params.slip
    for u, probability in ((0.25 * slip, slip / 2), (0.75 * slip, slip / 2), (0.5 + 0.5 * slip, 1 - slip)):
        after = world.transition(np, params, state, action, np.full((1, cells * 4), u))
        reward, _ = world.outcome(np, params, state, action, after)
        p[cell, action, after.cell] += probability
        r[cell, action] += probability * reward
    stuck = (params.next_cell.reshape(cells, 4) == np.arange(cells)[:, None]).all(axis=1)
    over = stuck | world.outcome(np, params, state, action, state)[1][::4]
    p[over], r[over] = np.eye(cells)[over][:, None], 0.0
    return p, r

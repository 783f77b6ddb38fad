"""Policies that know GridWorld's map: yardsticks for those that have to learn it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np


def value_iteration(p: np.ndarray, r: np.ndarray, discount: float, tolerance: float = 1e-10) -> np.ndarray:
    """The optimal values of moves (Sutton & Barto 2018, equation 4.10).

    Args:
        p: Probabilities of shape (states, actions, states).
        r: Mean rewards of shape (states, actions).
        discount: From 0 to 1; at 1 the best policy must reach an end from everywhere where moves cost.
        tolerance: Largest change of a value in the last sweep.

    Returns:
        Q of shape (states, actions).
    """
    q = np.zeros_like(r)
    while True:
        better = r + discount * p @ q.max(axis=1)
        if abs(better - q).max() < tolerance:
            return better
        q = better


def shortest_path(env: Any) -> Callable[[Any], int]:
    """A policy for a GridWorld environment: the best moves by its transition model, so it minds slips and pits too.

    It plans anew whenever the goal has moved. Ties go to the first of right, down, left, up.

    Args:
        env: A `GridWorldEnv`, wrapped or not.

    Returns:
        The policy: an observation of this environment in, an action out.
    """
    world: Any = env.unwrapped
    plans: dict[int, np.ndarray] = {}

    def policy(observation: Any) -> int:
        state = world.get_state().state
        if state.goal not in plans:
            p, r = world.transition_model()
            plans[state.goal] = value_iteration(p, r, discount=0.99)
        return int(plans[state.goal][state.cell].argmax())

    return policy

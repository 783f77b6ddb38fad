"""Policies that know GridWorld's map: yardsticks for those that have to learn it."""

from __future__ import annotations

from typing import Any

import numpy as np

from gym_custom.arguments import legal_choice
from gym_custom.gridworld.model import transition_model

POLICIES = {"shortest_path": 0.99}
"""Names of the policies, and their discount: with 1 an agent that pays nothing for steps would be in no hurry."""


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


class ScriptedPolicy:
    """The best moves by the transition model, so slips and pits are minded, as a model with ``predict``.

    It plans when it first meets a goal. Ties go to the first of right, down, left, up.

    Args:
        name: One of POLICIES.
        env: A `GridWorldEnv` or a `GridWorldVectorEnv`, wrapped or not; the policy reads its state.
    """

    def __init__(self, name: str, env: Any):
        self._env = env.unwrapped
        self._discount = POLICIES[legal_choice("policy", name, POLICIES)]
        self._moves: dict[int, np.ndarray] = {}

    def predict(
        self, observation: Any, state: Any = None, episode_start: Any = None, deterministic: bool = True
    ) -> Any:
        """The move, or the moves of all rows, and None; what is asked is the environment's present state."""
        present = self._env.get_state().state
        if not hasattr(self._env, "num_envs"):
            return int(self._plan(present.goal)[present.cell]), None
        pairs = zip(np.asarray(present.cell).tolist(), np.asarray(present.goal).tolist(), strict=True)
        return np.array([self._plan(goal)[cell] for cell, goal in pairs]), None

    def _plan(self, goal: int) -> np.ndarray:
        """The best move of each cell, (cells,)."""
        if goal not in self._moves:
            p, r = transition_model(self._env._world, goal)
            self._moves[goal] = value_iteration(p, r, self._discount).argmax(axis=1)
        return self._moves[goal]

"""Greedy policies from stored values, in NumPy alone."""

from __future__ import annotations

from typing import Any

import numpy as np
from gymnasium import spaces

from agents.apex.features import feature_array
from agents.apex.frozen import FrozenNetwork
from agents.trees import tree_map


class NetworkPolicy:
    """The best actions of a dueling network.

    Args:
        weights: by name, as ``agents.apex.network.to_arrays`` gives them.
        observation_space: of one observation.
        action_space: of one action.
        reward_scale: what rewards were multiplied with in the training, above 0.
    """

    def __init__(
        self,
        weights: dict[str, np.ndarray],
        observation_space: spaces.Space,
        action_space: spaces.Discrete,
        reward_scale: float = 1.0,
    ) -> None:
        self.observation_space, self.action_space, self.reward_scale = observation_space, action_space, reward_scale
        self._network = FrozenNetwork(weights)

    def predict(
        self, observation: Any, state: Any = None, episode_start: Any = None, deterministic: bool = True
    ) -> tuple[Any, Any]:
        """Choose the best action for one observation, or (N,) of them for a batch; the first of equals.

        Returns:
            The actions, and ``state`` as it was given.
        """
        return self.action_values(observation).argmax(axis=-1) + int(self.action_space.start), state

    def action_values(self, observation: Any) -> np.ndarray:
        """Give the values (A,) of the actions for one observation, (N, A) for a batch, in the env's own rewards."""
        single = _first_shape(observation) == _first_shape(self.observation_space.sample())
        batch = tree_map(lambda leaf: np.asarray(leaf)[None], observation) if single else observation
        values = self._network(feature_array(self.observation_space, batch)) / np.float32(self.reward_scale)
        return values[0] if single else values

    def fits(self, observation_space: spaces.Space, action_space: spaces.Space) -> bool:
        """Whether these are the spaces of the training; the bounds of a Box may differ."""
        known = self.observation_space
        if isinstance(known, spaces.Box) and isinstance(observation_space, spaces.Box):
            return (observation_space.shape, action_space) == (known.shape, self.action_space)
        return (observation_space, action_space) == (known, self.action_space)

    @property
    def needs(self) -> str:
        """What it fits, in words."""
        return f"was trained on observations {self.observation_space} and actions {self.action_space}"


class TablePolicy:
    """The best actions of a table of Q-values.

    Args:
        q_values: of shape ``(*sizes, A)``, where the observation is a place in a table of these sizes.
    """

    def __init__(self, q_values: np.ndarray) -> None:
        self.q_values = q_values

    def predict(
        self, observation: Any, state: Any = None, episode_start: Any = None, deterministic: bool = True
    ) -> tuple[Any, Any]:
        """Choose the best action for one observation, or (N,) of them for a batch; the first of equals.

        Returns:
            The actions, and ``state`` as it was given.
        """
        return self.action_values(observation).argmax(axis=-1), state

    def action_values(self, observation: Any) -> np.ndarray:
        """Give the values (A,) of the actions for one observation, (N, A) for a batch."""
        place = np.asarray(observation)
        return self.q_values[tuple(np.moveaxis(place, -1, 0)) if self.q_values.ndim > 2 else place]

    def fits(self, observation_space: spaces.Space, action_space: spaces.Space) -> bool:
        """Whether each observation has its row of values."""
        sizes = getattr(observation_space, "nvec", getattr(observation_space, "n", ()))
        return self.q_values.shape == (*np.atleast_1d(sizes), getattr(action_space, "n", 0))

    @property
    def needs(self) -> str:
        """What it fits, in words."""
        return f"is a table of shape {self.q_values.shape}"


def _first_shape(observation: Any) -> tuple[int, ...]:
    """The shape of an observation, of a composite one that of its first part."""
    while isinstance(observation, (dict, tuple)):
        observation = next(iter(observation.values() if isinstance(observation, dict) else observation))
    return np.shape(observation)

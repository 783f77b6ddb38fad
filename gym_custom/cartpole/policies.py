"""A policy that balances the pole without any learning: a yardstick for those that have to."""

from __future__ import annotations

from typing import Any

import numpy as np

from gym_custom.arguments import legal_choice

GAINS = np.array([0.2, 0.4, 3.0, 0.8])  # of position, speed, angle and angular speed, found by trying


def balance(observation: Any) -> np.ndarray:
    """Pushes to where the pole leans and the cart is off (a linear controller with the one force there is).

    Args:
        observation: Of shape (..., 4).

    Returns:
        Actions of shape (...).
    """
    return (np.asarray(observation, float) @ GAINS > 0).astype(np.int64)


POLICIES = {"balance": balance}


class ScriptedPolicy:
    """A scripted policy as a model with ``predict``, for one environment or a vector environment.

    Args:
        name: One of POLICIES.
        env: The environment, which this policy does not need.
    """

    def __init__(self, name: str = "balance", env: Any = None):
        self._policy = POLICIES[legal_choice("policy", name, POLICIES)]

    def predict(
        self, observation: Any, state: Any = None, episode_start: Any = None, deterministic: bool = True
    ) -> Any:
        """The action, or the actions of all rows, and None."""
        actions = self._policy(observation)
        return (int(actions) if actions.ndim == 0 else actions), None

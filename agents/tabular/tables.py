"""Where in a table an observation stands."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from gymnasium import spaces

from .equations import Array


def table_shape(observation_space: spaces.Space, action_space: spaces.Space) -> tuple[int, ...]:
    """Shape of one agent's table: the observation's sizes, then the number of actions.

    Raises:
        TypeError: where a space is not finite in the sense of Discrete or MultiDiscrete.
    """
    if not isinstance(action_space, spaces.Discrete):
        raise TypeError(f"tabular Q-learning needs a Discrete action space, got {action_space}")
    if isinstance(observation_space, spaces.Discrete):
        return int(observation_space.n), int(action_space.n)
    if isinstance(observation_space, spaces.MultiDiscrete):
        return *(int(n) for n in observation_space.nvec.ravel()), int(action_space.n)
    raise TypeError(f"tabular Q-learning needs Discrete or MultiDiscrete observations, got {observation_space}")


def state_index(observation_space: spaces.Space, obs: Array) -> Array:
    """Number of an observation's state, row-major: Discrete (...) or MultiDiscrete (..., *shape) to (...)."""
    if isinstance(observation_space, spaces.Discrete):
        return obs - int(observation_space.start) if observation_space.start else obs
    assert isinstance(observation_space, spaces.MultiDiscrete)
    if observation_space.nvec.ndim > 1:
        obs = obs.reshape(*obs.shape[: -observation_space.nvec.ndim], -1)
    return _row_major([obs[..., i] for i in range(obs.shape[-1])], *_radices(observation_space))


def legal_observations(space: spaces.Space, obs: Any) -> np.ndarray:
    """One observation of a space, or many with the space's axes last, as an array.

    Raises:
        ValueError: some are no members of the space.
    """
    found = np.asarray(obs)
    assert isinstance(space, (spaces.Discrete, spaces.MultiDiscrete))
    sizes: Any = space.n if isinstance(space, spaces.Discrete) else space.nvec
    axes = np.ndim(sizes)
    shaped = found.dtype.kind in "iu" and found.shape[max(found.ndim - axes, 0) :] == np.shape(sizes)
    if not shaped or not np.all((found >= space.start) & (found < space.start + sizes)):
        raise ValueError(f"observations must be of {space}, got {obs!r}")
    return found


def indexer(space: spaces.Space) -> Callable[[Any], int]:
    """``state_index`` for single observations of a space, on Python numbers."""
    if not isinstance(space, spaces.MultiDiscrete):
        return lambda obs: int(state_index(space, obs))
    radices = _radices(space)
    return lambda obs: _row_major(np.ravel(obs).tolist(), *radices)


def _radices(space: spaces.MultiDiscrete) -> tuple[list[int], list[int]]:
    """Sizes and starts of the numbers in an observation."""
    return space.nvec.ravel().tolist(), space.start.ravel().tolist()


def _row_major(columns: list[Array], sizes: list[int], starts: list[int]) -> Array:
    index = 0
    for column, size, start in zip(columns, sizes, starts, strict=True):
        index = index * size + (column - start if start else column)
    return index

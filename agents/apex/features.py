"""How observations of any space become a network's input; without torch, which actors do not load."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
from gymnasium import spaces
from gymnasium.spaces.utils import flatdim

from agents.apex.masks import ActionMask
from agents.trees import tree_map

BOUNDLESS = 1e6  # a Box's bound of this size or more says nothing about what to expect


def feature_array(space: spaces.Space, obs: Any) -> np.ndarray:
    """Turn a batch of observations into network input: numbers as they are, categories as one-hot vectors.

    The same order of values as Gymnasium's ``flatten``, for whole batches at once.

    Args:
        space: space of one observation.
        obs: array (N, ...), or a dict or tuple of such arrays for composite spaces.

    Returns:
        (N, F), float32, F being Gymnasium's ``flatdim`` of the space without action masks; may share memory with
        ``obs``.

    Raises:
        ValueError: no network can read such a space, or a category is none of its space's.
    """
    if isinstance(space, spaces.Box):
        return _numbers(obs)
    parts = list(_parts(space, obs))
    return parts[0] if len(parts) == 1 else np.concatenate(parts, axis=1)


def _parts(space: spaces.Space, obs: Any) -> Iterable[np.ndarray]:
    if isinstance(space, ActionMask):
        return  # says what may be done, not what is seen
    if isinstance(space, (spaces.Box, spaces.MultiBinary)):
        yield _numbers(obs)
    elif isinstance(space, spaces.Dict):
        for key, part in space.spaces.items():
            yield from _parts(part, obs[key])
    elif isinstance(space, spaces.Tuple):
        for part, values in zip(space.spaces, obs, strict=True):
            yield from _parts(part, values)
    elif isinstance(space, spaces.Discrete):
        yield _one_hot(obs, int(space.start), int(space.n))
    elif isinstance(space, spaces.MultiDiscrete):
        table = np.asarray(obs).reshape(len(obs), -1)  # (N, K)
        for column, (start, size) in enumerate(zip(space.start.ravel(), space.nvec.ravel(), strict=True)):
            yield _one_hot(table[:, column], int(start), int(size))
    else:
        raise ValueError(f"Ape-X cannot read {space}; legal are Box, Discrete, MultiDiscrete, MultiBinary, Dict, Tuple")


def _numbers(values: Any) -> np.ndarray:
    return np.ascontiguousarray(np.asarray(values).reshape(len(values), -1), dtype=np.float32)


def _one_hot(values: Any, start: int, size: int) -> np.ndarray:
    index = np.asarray(values, dtype=np.int64).ravel() - start
    legal = (index >= 0) & (index < size)
    if not legal.all():
        raise ValueError(f"category {index[~legal][0] + start} is none of {start} to {start + size - 1}")
    return np.eye(size, dtype=np.float32)[index]


def input_range(space: spaces.Space) -> tuple[np.ndarray, np.ndarray]:
    """Middle and half width of each feature, (F,) each: of a Box's bounds where both are finite, else 0 and 1."""
    if isinstance(space, (spaces.Dict, spaces.Tuple)):
        parts = space.spaces.values() if isinstance(space, spaces.Dict) else space.spaces
        middles, halves = zip(*(input_range(part) for part in parts), strict=True)
        return np.concatenate(middles), np.concatenate(halves)
    size = 0 if isinstance(space, ActionMask) else flatdim(space)
    middle, half = np.zeros(size), np.ones(size)
    if isinstance(space, spaces.Box):
        low, high = space.low.ravel().astype(float), space.high.ravel().astype(float)
        bounded = (abs(low) < BOUNDLESS) & (abs(high) < BOUNDLESS) & (low < high)
        middle[bounded] = (low[bounded] + high[bounded]) / 2
        half[bounded] = (high[bounded] - low[bounded]) / 2
    return middle, half


def is_single(space: spaces.Space, observation: Any) -> bool:
    """Whether it is one observation, judged by its first array."""
    if isinstance(space, spaces.Dict):
        key = next(iter(space.spaces))
        return is_single(space[key], observation[key])
    if isinstance(space, spaces.Tuple):
        return is_single(space[0], observation[0])
    shape, given = space.shape, np.shape(observation)
    if given == shape:
        return True
    if given[1:] == shape:
        return False
    raise ValueError(f"the observation must have shape {shape}, or (n, ...) of it, not {given}")


def batch_of_one(observation: Any) -> Any:
    """Give one observation as a batch."""
    return tree_map(lambda leaf: np.asarray(leaf)[None], observation)

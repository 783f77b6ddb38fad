"""Shared by the tests that run over every registered id: the ids, how to make them, play them and compare results."""

from __future__ import annotations

import warnings
from typing import Any

import gymnasium as gym
import numpy as np

import gym_custom  # registers the ids

assert gym_custom.World

IDS = sorted(i for i, spec in gym.registry.items() if str(spec.entry_point).startswith("gym_custom"))

# Arguments other than the defaults, one set a family of ids.
ARGUMENTS: dict[str, dict[str, Any]] = {
    "NumpyCartPole": {"gravity": 1.6, "length": 1.0, "integrator": "semi-implicit", "cart_friction": 0.4},
    "GridWorld": {"layout": ["S..#", ".O..", "#..G"], "slip": 0.2, "random_start": True, "step_reward": -0.1},
    "MyEnv": {"n_pedestrians": 2, "n_obstacles": 1, "notice_prob": 0.5},
}


def arguments(env_id: str) -> dict[str, Any]:
    """Arguments that differ from the id's defaults."""
    return next(kwargs for family, kwargs in ARGUMENTS.items() if env_id.startswith(family))


def make(env_id: str, **kwargs: Any) -> gym.Env:
    """``gym.make`` without the news that NumpyCartPole has a version 1 too."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="(?s).*is out of date", category=DeprecationWarning)
        return gym.make(env_id, **kwargs)


def make_vec(env_id: str, **kwargs: Any) -> gym.vector.VectorEnv:
    """``gym.make_vec`` without the same news."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="(?s).*is out of date", category=DeprecationWarning)
        return gym.make_vec(env_id, **kwargs)


def same(x: Any, y: Any) -> bool:
    """Equal to the last bit, with equal types, through dicts, tuples and object arrays; NaN equals NaN."""
    if isinstance(x, dict):
        return isinstance(y, dict) and x.keys() == y.keys() and all(same(x[k], y[k]) for k in x)
    if isinstance(x, tuple | list):
        return type(x) is type(y) and len(x) == len(y) and all(map(same, x, y))
    if not isinstance(x, np.ndarray):
        return type(x) is type(y) and (x == y or (x != x and y != y))
    if x.dtype == object:
        return isinstance(y, np.ndarray) and x.shape == y.shape and all(map(same, x.ravel(), y.ravel()))
    return isinstance(y, np.ndarray) and x.dtype == y.dtype and np.array_equal(x, y, equal_nan=x.dtype.kind == "f")


def actions(env: Any, steps: int, seed: int = 0) -> list[Any]:
    """Random actions of an env's own or a vector env's batched space, without touching the space's generator."""
    space = env.action_space
    rng = np.random.default_rng(seed)
    if isinstance(space, gym.spaces.Discrete):
        return rng.integers(space.n, size=steps).tolist()
    if isinstance(space, gym.spaces.MultiDiscrete):
        return list(rng.integers(space.nvec, size=(steps, *space.shape)))
    return list(rng.uniform(space.low, space.high, size=(steps, *space.shape)).astype(space.dtype))


def play(env: gym.Env, choices: list[Any], seed: int | None = 0) -> list[Any]:
    """Results of reset and of every step, starting over whenever an episode ends."""
    results: list[Any] = [env.reset(seed=seed)]
    for action in choices:
        result = env.step(action)
        results.append(result)
        if result[2] or result[3]:
            results.append(env.reset())
    return results


def play_rows(env: gym.vector.VectorEnv, choices: list[Any], seed: Any = 0) -> list[Any]:
    """Results of reset and of every step of a vector env, which starts its rows over by itself."""
    return [env.reset(seed=seed), *(env.step(action) for action in choices)]


def writable(results: Any) -> list[np.ndarray]:
    """Every array in a result, for tests that write into what they were given."""
    if isinstance(results, dict):
        return [array for value in results.values() for array in writable(value)]
    if isinstance(results, tuple | list):
        return [array for value in results for array in writable(value)]
    return [results] if isinstance(results, np.ndarray) else []

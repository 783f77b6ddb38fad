"""Greedy evaluation on fixed seeds, the same episodes for every algorithm and repetition."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from agents.sb3 import same_step_env

Predict = Callable[[Any], np.ndarray]
"""From observations (N, ...) to greedy actions (N, ...)."""


class Episodes(NamedTuple):
    """What greedy episodes earned, one entry a seed."""

    returns: np.ndarray  # (N,), float64, undiscounted
    lengths: np.ndarray  # (N,), int64, steps


def greedy_episodes(predict: Predict, env_id: str, seeds: list[int]) -> Episodes:
    """Play one episode from each seed, all side by side in one vector env.

    Args:
        predict: the greedy policy.
        env_id: Gymnasium id.
        seeds: one reset seed an episode.

    Returns:
        Return and length of each episode, in the order of the seeds.
    """
    env = same_step_env(env_id, len(seeds))
    returns, lengths = np.zeros(len(seeds)), np.zeros(len(seeds), dtype=np.int64)
    running = np.ones(len(seeds), dtype=bool)
    obs, _ = env.reset(seed=seeds)  # type: ignore[arg-type]
    while running.any():
        obs, rewards, terminated, truncated, _ = env.step(predict(obs))
        returns += np.where(running, rewards, 0.0)
        lengths += running
        running &= ~(terminated | truncated)
    env.close()
    return Episodes(returns, lengths)


def seed_block(first: int, count: int) -> list[int]:
    """``count`` seeds from ``first`` on."""
    return list(range(first, first + count))

"""Greedy evaluation on fixed seeds, the same episodes for every algorithm and repetition."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from agents.apex.masks import MASK
from agents.sb3 import same_step_env

Predict = Callable[..., np.ndarray]
"""From observations (N, ...) to greedy actions (N, ...); what takes ``action_masks`` (N, A) too gets the env's."""


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
    obs, infos = env.reset(seed=seeds)  # type: ignore[arg-type]
    while running.any():
        obs, rewards, terminated, truncated, infos = env.step(predict(obs, **masks_for(predict, infos)))
        returns += np.where(running, rewards, 0.0)
        lengths += running
        running &= ~(terminated | truncated)
    env.close()
    return Episodes(returns, lengths)


def masks_for(predict: Predict, infos: dict[str, Any]) -> dict[str, Any]:
    """The env's action masks as a keyword for a policy that takes them; nothing where there are none."""
    takes = MASK in infos and "action_masks" in inspect.signature(predict).parameters
    return {"action_masks": np.stack(list(infos[MASK]))} if takes else {}


def seed_block(first: int, count: int) -> list[int]:
    """``count`` seeds from ``first`` on."""
    return list(range(first, first + count))

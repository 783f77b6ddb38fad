"""Training and restoring tabular Q-learning in a comparison."""

from __future__ import annotations

import time
from pathlib import Path

import gymnasium as gym
import numpy as np
from stable_baselines3.common.monitor import Monitor

from agents.tabular import QLearning
from comparison.cells import Cell
from comparison.curve import CurveWriter
from comparison.evaluation import Predict
from comparison.judge import Judge
from comparison.progress import Progress

BEST, LAST = "best_model.npy", "last_model.npy"


def train(cell: Cell, folder: Path, curve: CurveWriter, progress: Progress) -> None:
    """Train one agent in a single env, stopping for an evaluation every ``eval_freq`` env steps."""
    agent = QLearning(Monitor(gym.make(cell.env_id), str(folder)), seed=cell.training_seed, **cell.settings)
    judge, seconds = Judge(cell, curve), 0.0
    while True:
        if judge.is_best(_greedy(agent), agent.num_timesteps, seconds):
            np.save(folder / BEST, agent.q_values)
        progress.update(agent.num_timesteps)
        left = cell.total_timesteps - agent.num_timesteps
        if left <= 0 or (cell.max_seconds is not None and seconds >= cell.max_seconds):
            break
        started = time.perf_counter()
        agent.learn(min(cell.eval_freq, left))
        seconds += time.perf_counter() - started
    np.save(folder / LAST, agent.q_values)
    agent.env.close()


def load_policy(cell: Cell, folder: Path, which: str = BEST) -> Predict:
    """The greedy policy of a saved table."""
    agent = QLearning(cell.env_id, seed=cell.training_seed, **cell.settings)
    agent.q_values[...] = np.load(folder / which, allow_pickle=False)
    return _greedy(agent)


def _greedy(agent: QLearning) -> Predict:
    return lambda obs: agent.predict(obs, deterministic=True)[0]

"""Training and restoring the stable-baselines3 algorithms of a comparison."""

from __future__ import annotations

import time
from pathlib import Path

import stable_baselines3
import torch
from stable_baselines3.common.base_class import BaseAlgorithm
from stable_baselines3.common.callbacks import BaseCallback
from stable_baselines3.common.logger import configure

from agents import sb3
from comparison.cells import Cell, events_folder
from comparison.curve import CurveWriter
from comparison.evaluation import Predict
from comparison.judge import Judge
from comparison.progress import Progress
from comparison.settings import resolve

CLASSES = {
    "dqn": lambda: stable_baselines3.DQN,
    "prioritized_dqn": lambda: sb3.PrioritizedDQN,
    "ppo": lambda: stable_baselines3.PPO,
    "a2c": lambda: stable_baselines3.A2C,
}
BEST, LAST = "best_model.zip", "last_model.zip"


def build(cell: Cell, monitor_dir: Path | None = None) -> BaseAlgorithm:
    """The untrained model on its training env."""
    settings = {key: resolve(value) for key, value in cell.settings.items()}
    n_envs = settings.pop("n_envs", 1)
    venv = sb3.make_vec_env(
        cell.env_id, n_envs, cell.training_seed, monitor_dir=None if monitor_dir is None else str(monitor_dir)
    )
    policy = "MultiInputPolicy" if hasattr(venv.observation_space, "spaces") else "MlpPolicy"
    return CLASSES[cell.algo]()(policy, venv, seed=cell.training_seed, device="cpu", **settings)


def train(cell: Cell, folder: Path, curve: CurveWriter, progress: Progress) -> None:
    """Train in this process; leaves curve, ``monitor.csv``, TensorBoard events and both checkpoints in the folder."""
    torch.set_num_threads(1)
    model = build(cell, folder)
    model.set_logger(configure(str(events_folder(cell, folder)), ["tensorboard"]))
    recorder = Recorder(cell, folder, curve, progress)
    model.learn(cell.total_timesteps, callback=recorder)
    recorder.evaluate()
    model.save(folder / LAST)
    model.get_env().close()  # type: ignore[union-attr]


def load_policy(cell: Cell, folder: Path, which: str = BEST) -> Predict:
    """The greedy policy of a checkpoint: the model is built from the configuration, only tensors are read."""
    model = build(cell)
    model.set_parameters(str(folder / which), device="cpu")
    return greedy(model)


def greedy(model: BaseAlgorithm) -> Predict:
    """The model's deterministic actions."""
    return lambda obs: model.predict(obs, deterministic=True)[0]


class Recorder(BaseCallback):
    """Evaluates every ``eval_freq`` env steps, keeps the best checkpoint and ends the run on its time budget.

    Evaluations do not count as training time.
    """

    def __init__(self, cell: Cell, folder: Path, curve: CurveWriter, progress: Progress) -> None:
        super().__init__()
        self._cell, self._folder, self._progress = cell, folder, progress
        self._judge = Judge(cell, curve)
        self._next = 0
        self._paused = 0.0
        self._started = 0.0
        self._last: int | None = None

    def _on_training_start(self) -> None:
        self._started = time.perf_counter()
        self.evaluate()

    @property
    def seconds(self) -> float:
        """Training time so far."""
        return time.perf_counter() - self._started - self._paused

    def _on_step(self) -> bool:
        if self.num_timesteps >= self._next:
            self.evaluate()
        self._progress.update(self.num_timesteps)
        return self._cell.max_seconds is None or self.seconds < self._cell.max_seconds

    def evaluate(self) -> None:
        """Play the evaluation episodes now, unless that was done at this very step."""
        if self._last == self.num_timesteps:
            return
        seconds, before = self.seconds, time.perf_counter()
        self.model.policy.set_training_mode(False)
        if self._judge.is_best(greedy(self.model), self.num_timesteps, seconds):
            self.model.save(self._folder / BEST)
        self._last = self.num_timesteps
        self._next = (self.num_timesteps // self._cell.eval_freq + 1) * self._cell.eval_freq
        self._paused += time.perf_counter() - before

"""Training and restoring Ape-X in a comparison."""

from __future__ import annotations

import csv
import dataclasses
import os
import signal
import threading
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import numpy as np
import torch
from stable_baselines3.common.monitor import ResultsWriter

from agents.apex import ApeX, ApeXConfig
from agents.apex.evaluator import Evaluator
from agents.apex.masks import carries_mask
from comparison.cells import Cell
from comparison.curve import Curve, CurveWriter, read_curve
from comparison.evaluation import Episodes, Predict
from comparison.progress import Progress

BEST, LAST = "best_model.pt", "last_model.pt"
POLL_SECONDS = 0.5


def configuration(cell: Cell, run_folder: Path | None = None) -> ApeXConfig:
    """The id's preset with the cell's settings; its learning rate falls over the cell's budget."""
    preset = ApeXConfig.preset(cell.env_id)
    return dataclasses.replace(
        preset,
        annealing_steps=cell.total_timesteps,
        evaluation_interval=cell.eval_freq,
        evaluation_episodes=cell.eval_episodes,
        run_folder=None if run_folder is None else str(run_folder),
        **cell.settings,
    )


def train(cell: Cell, folder: Path, curve: CurveWriter, progress: Progress) -> None:
    """Train with actors in their own processes; this one learns, and Ape-X's own logs go to ``apex/``."""
    torch.set_num_threads(1)
    agent = ApeX(cell.env_id, configuration(cell, folder / "apex"), seed=cell.training_seed)
    with _followed(agent, folder / "apex", curve, progress), _time_budget(cell.max_seconds):
        agent.learn(cell.total_timesteps)
    if agent.num_timesteps < cell.total_timesteps:
        _judge_last(agent, cell, curve)
    agent.take_best()
    torch.save(agent.policy.state_dict(), folder / BEST)
    torch.save(agent.learner.network.state_dict(), folder / LAST)
    _write_monitor(folder, cell.env_id, read_curve(folder))


def _judge_last(agent: ApeX, cell: Cell, curve: CurveWriter) -> None:
    """The closing evaluation, which a run that its time budget ended did not come to: the one of Ape-X itself."""
    evaluator = Evaluator(agent.source, cell.eval_episodes, carries_mask(agent.input_space))
    with closing(evaluator):
        episodes = evaluator(lambda obs: agent.greedy(agent.learner.average, obs))
    agent.judge(float(episodes.returns.mean()))
    curve.write(agent.num_timesteps, agent.seconds, Episodes(*(values.mean(keepdims=True) for values in episodes)))


def load_policy(cell: Cell, folder: Path, which: str = BEST) -> Predict:
    """The greedy policy of a checkpoint, of which only tensors are read; it heeds action masks."""
    agent = ApeX(cell.env_id, configuration(cell), seed=cell.training_seed)
    agent.policy.load_state_dict(torch.load(folder / which, weights_only=True))
    return lambda obs, action_masks=None: agent.predict(obs, action_masks=action_masks)[0]


@contextmanager
def _followed(agent: ApeX, run_folder: Path, curve: CurveWriter, progress: Progress) -> Iterator[None]:
    """While the agent learns, tell how far it is and copy its evaluations to the cell's curve as they come.

    Ape-X writes the mean over an evaluation's episodes, so each evaluation has one column here.
    """
    num_copied = 0
    ended = threading.Event()

    def copy() -> None:
        nonlocal num_copied
        rows = _rows(run_folder / "evaluations.csv")
        for row in rows[num_copied:]:
            mean, length = float(row["mean_return"]), float(row["mean_length"])
            curve.write(int(row["env_steps"]), float(row["seconds"]), Episodes(np.array([mean]), np.array([length])))
        num_copied = len(rows)
        progress.update(agent.num_timesteps)

    def follow() -> None:
        while not ended.wait(POLL_SECONDS):
            copy()

    follower = threading.Thread(target=follow, daemon=True)
    follower.start()
    try:
        yield
    finally:
        ended.set()
        follower.join()
        copy()


def _rows(path: Path) -> list[dict[str, str]]:
    """Complete rows of a growing CSV file."""
    if not path.exists():
        return []
    with open(path, encoding="utf-8", newline="") as file:
        return [row for row in csv.DictReader(file) if all(value not in (None, "") for value in row.values())]


@contextmanager
def _time_budget(seconds: float | None) -> Iterator[None]:
    """End the body after so many seconds by the way Ctrl+C takes, which Ape-X answers by stopping its actors."""
    if seconds is None:
        yield
        return
    spent = threading.Event()

    def interrupt() -> None:
        spent.set()
        os.kill(os.getpid(), signal.SIGINT)

    timer = threading.Timer(seconds, interrupt)
    timer.start()
    try:
        yield
    except KeyboardInterrupt:
        if not spent.is_set():
            raise
    finally:
        timer.cancel()


def _write_monitor(folder: Path, env_id: str, curve: Curve) -> None:
    """``monitor.csv`` in SB3's form of all actors' episodes; their times are those of the nearest evaluations."""
    writer = ResultsWriter(str(folder), header={"t_start": 0.0, "env_id": env_id})
    for row in _rows(folder / "apex" / "episodes.csv"):
        seconds = float(np.interp(int(row["env_steps"]), curve.timesteps, curve.seconds))
        writer.write_row({"r": float(row["episode_return"]), "l": int(row["length"]), "t": round(seconds, 6)})
    writer.close()

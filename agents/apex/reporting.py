"""What a run tells: CSV files and TensorBoard in its folder, lines on the screen, a progress bar.

Files of a run folder (``seconds`` counts from the call of learn(), start of processes included and evaluations left
out; after a resume it goes on where it was):

- ``config.json``: the settings, the env's id, the seed.
- ``evaluations.csv``: env_steps, updates, seconds, mean_return, std_return, min_return, max_return, mean_length,
  best_return; one row a greedy evaluation.
- ``progress.csv``: env_steps, updates, seconds, loss, error, value, learning_rate, samples_per_insert, memory_rows,
  version_lag (updates between the weights that acted and the learner's), restarts, rows_in_per_second,
  rows_out_per_second, row_age, effective_sample_size, never_drawn (see ``health.py``); means since the row before.
- ``episodes.csv``: env_steps, actor, row, epsilon, episode_return, length; one row a finished exploring episode.
- ``last.apex``: the newest checkpoint, from which a run is resumed. ``best.pt``: weights of the best evaluation.
"""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
from tqdm import tqdm

from agents.apex.channel import Block
from agents.apex.evaluator import Evaluation
from agents.apex.learner import Update
from agents.apex.loggers import CsvLogger, Loggers, TensorBoardLogger


class Reporter:
    """Turns a run's events into rows, points and lines.

    Args:
        folder: of the run; exists.
        verbose: 1 prints a line per episode and change of state, 0 nothing.
        bar: progress bar, or None.
    """

    def __init__(self, folder: Path, verbose: int, bar: tqdm | None) -> None:
        self._verbose, self._bar = verbose, bar
        self._board = TensorBoardLogger(folder)
        self._evaluations = Loggers(CsvLogger(folder / "evaluations.csv"), self._board.under("evaluation"))
        self._progress = Loggers(CsvLogger(folder / "progress.csv"), self._board.under("training"))
        self._episodes = CsvLogger(folder / "episodes.csv")
        self._updates: list[Update] = []
        self._lags: list[int] = []
        self._count: Counter[int] = Counter()

    def say(self, sentence: str) -> None:
        """Print a change of state."""
        if self._verbose:
            tqdm.write(sentence) if self._bar is not None else print(sentence, flush=True)

    def update(self, update: Update) -> None:
        """Keep the figures of one gradient step."""
        self._updates.append(update)

    def block(self, block: Block, env_steps: int, total_steps: int, updates: int) -> None:
        """Report what came with a block."""
        self._lags.append(updates - block.version)
        for episode in block.episodes:
            self._count[block.actor] += 1
            self._episodes.write(
                env_steps,
                {
                    "actor": block.actor,
                    "row": episode.row,
                    "epsilon": episode.epsilon,
                    "episode_return": episode.reward,
                    "length": episode.length,
                },
            )
            self.say(
                f"actor {block.actor} episode: {self._count[block.actor]} step: {env_steps} of {total_steps} "
                f"epsilon: {episode.epsilon:.3g} reward: {episode.reward:g} length: {episode.length}"
            )
        if self._bar is not None:
            self._bar.update(min(block.steps, self._bar.total - self._bar.n))  # the last block goes a little beyond

    def progress(self, env_steps: int, figures: dict[str, Any]) -> None:
        """Write the means since the last row, and the given figures."""
        means = np.mean(self._updates, axis=0) if self._updates else np.full(3, np.nan)
        loss, error, value = map(float, means)
        lag = float(np.mean(self._lags)) if self._lags else 0.0
        self._progress.write(env_steps, {**figures, "loss": loss, "error": error, "value": value, "version_lag": lag})
        self._updates, self._lags = [], []

    def evaluation(self, env_steps: int, updates: int, seconds: float, result: Evaluation, best: float) -> None:
        """Write one greedy evaluation."""
        returns = result.returns
        figures = {
            "updates": updates,
            "seconds": seconds,
            "mean_return": float(returns.mean()),
            "std_return": float(returns.std()),
            "min_return": float(returns.min()),
            "max_return": float(returns.max()),
            "mean_length": float(result.lengths.mean()),
            "best_return": best,
        }
        self._evaluations.write(env_steps, figures)
        if self._bar is not None:
            self._bar.set_postfix({"greedy return": f"{returns.mean():.1f}", "best": f"{best:.1f}"})

    def close(self) -> None:
        """Finish files and bar."""
        self._board.close()
        if self._bar is not None:
            self._bar.close()

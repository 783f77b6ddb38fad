"""A run's learning curve on disk: ``evaluations.csv`` as it grows, ``evaluations.npz`` in SB3's form at the end."""

from __future__ import annotations

import csv
import json
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from stable_baselines3.common.logger import configure

from comparison.cells import CURVE
from comparison.evaluation import Episodes

COLUMNS = ("timesteps", "seconds", "mean_return", "mean_length", "returns", "lengths")


class Curve(NamedTuple):
    """Evaluations of one run, oldest first."""

    timesteps: np.ndarray  # (E,), int64, env steps trained for
    seconds: np.ndarray  # (E,), training time without evaluations where they stop the training
    returns: np.ndarray  # (E, N), one column an episode
    lengths: np.ndarray  # (E, N)

    @property
    def mean_returns(self) -> np.ndarray:
        """Mean over the episodes of each evaluation, (E,)."""
        return self.returns.mean(axis=1) if len(self.returns) else np.zeros(0)


class CurveWriter:
    """Appends evaluations to the CSV; each row is on disk when :meth:`write` returns.

    Args:
        folder: the run's folder.
        header: provenance, written as a ``#`` line of JSON above the columns, as in SB3's monitor files.
        events: folder of TensorBoard events, which get the means under the names of SB3's ``EvalCallback``.
    """

    def __init__(self, folder: Path, header: dict[str, Any], events: Path) -> None:
        self._folder = folder
        self._board = configure(str(events), ["tensorboard"])
        self._rows: list[tuple[int, float, Episodes]] = []
        with open(folder / CURVE, "w", encoding="utf-8", newline="") as file:
            file.write(f"#{json.dumps(header)}\n")
            csv.writer(file).writerow(COLUMNS)

    def write(self, timesteps: int, seconds: float, episodes: Episodes) -> float:
        """Append one evaluation and give its mean return."""
        self._rows.append((timesteps, seconds, episodes))
        mean = float(episodes.returns.mean())
        row = [timesteps, round(seconds, 4), mean, float(episodes.lengths.mean())]
        lists = [" ".join(f"{value:.10g}" for value in values) for values in episodes]
        with open(self._folder / CURVE, "a", encoding="utf-8", newline="") as file:
            csv.writer(file).writerow(row + lists)
        self._board.record("eval/mean_reward", mean)
        self._board.record("eval/mean_ep_length", row[3])
        self._board.dump(timesteps)
        return mean

    def close(self) -> None:
        """Write ``evaluations.npz`` with the keys of SB3's ``EvalCallback``, and the seconds."""
        self._board.close()
        if not self._rows:
            return
        timesteps, seconds, episodes = zip(*self._rows, strict=True)
        np.savez(
            self._folder / "evaluations.npz",
            timesteps=np.array(timesteps),
            seconds=np.array(seconds),
            results=np.stack([each.returns for each in episodes]),
            ep_lengths=np.stack([each.lengths for each in episodes]),
        )


def read_curve(folder: Path) -> Curve:
    """Read the CSV back; rows that a killed run left unfinished are dropped.

    Raises:
        OSError: if there is no curve.
    """
    with open(folder / CURVE, encoding="utf-8", newline="") as file:
        rows = [row for row in csv.DictReader(line for line in file if not line.startswith("#")) if row["lengths"]]
    returns = [np.array(row["returns"].split(), dtype=float) for row in rows]
    lengths = [np.array(row["lengths"].split(), dtype=float) for row in rows]
    return Curve(
        np.array([int(row["timesteps"]) for row in rows], dtype=np.int64),
        np.array([float(row["seconds"]) for row in rows]),
        np.stack(returns) if rows else np.zeros((0, 0)),
        np.stack(lengths) if rows else np.zeros((0, 0)),
    )
